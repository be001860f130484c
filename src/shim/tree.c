/* tree.c - the end of all that an instance has brought forth.
 *
 * Two nets, since either alone has holes. The cgroup: whatever it forks stays in it. And the shim is the reaper of its
 * descendants: who loses a parent becomes a child of the shim, until waitpid finds nobody. What forks faster than it is
 * killed is held first: cgroup.kill where the kernel has it, else the freezer, else no more processes by pids.max.
 */
#include "shim/shim.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

static const int64_t kill_ns_max = INT64_C(10) * 1000000000;
/* About half of what fits into that time: while the whole machine stands still, nothing dies, and it does not count. */
enum { KILL_ROUNDS_MIN = 50 };

bool tree_reap(struct shim *s)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return pid < 0;
        if (pid == s->pid)
            s->ended = status;
    }
}

/* Kills every process that a file of numbers names, a line or a word each; returns how many there were. */
static size_t kill_listed(const char *path)
{
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char buf[4096];
    size_t killed = 0;
    pid_t pid = 0;
    ssize_t n;

    if (fd < 0)
        return 0;
    while ((n = read(fd, buf, sizeof buf)) > 0)
        for (ssize_t i = 0; i < n; i++) {
            if (isdigit((unsigned char)buf[i])) {
                pid = pid * 10 + (buf[i] - '0');
                continue;
            }
            /* 0 is a process that this one cannot see; kill would take it for the own group. */
            if (pid > 1 && pid != getpid()) {
                (void)kill(pid, SIGKILL);
                killed++;
            }
            pid = 0;
        }
    return killed;
}

/* Writes to a file beside an entrance; false: there is none, or it does not take it. */
static bool beside_put(const char *entrance, const char *file, const char *text)
{
    const char *slash = strrchr(entrance, '/');
    char path[4096];
    int fd;
    bool ok;

    if (!slash || snprintf(path, sizeof path, "%.*s/%s", (int)(slash - entrance), entrance, file) >= (int)sizeof path)
        return false;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ok = fd_write(fd, text, strlen(text)) == 0;
    close(fd);
    return ok;
}

static void hold(const struct launch *l)
{
    for (size_t i = 0; i < l->entrances_len; i++) {
        if (beside_put(l->entrances[i], "cgroup.kill", "1"))
            continue;
        (void)beside_put(l->entrances[i], "pids.max", "0");
        (void)beside_put(l->entrances[i], "freezer.state", "FROZEN");
    }
}

static size_t kill_round(const struct launch *l)
{
    char children[64];
    size_t killed = 0;

    for (size_t i = 0; i < l->entrances_len; i++)
        killed += kill_listed(l->entrances[i]);
    (void)snprintf(children, sizeof children, "/proc/self/task/%d/children", (int)getpid());
    return killed + kill_listed(children);
}

bool tree_kill(struct shim *s)
{
    const struct launch *l = &s->spec.launch;
    int64_t begin = boottime_ns(), wait_ns = 500000;
    bool alone = tree_reap(s);

    for (int round = 0;; round++) {
        size_t killed = kill_round(l);

        alone = tree_reap(s);
        if (alone && killed == 0)
            return true;
        if (round >= KILL_ROUNDS_MIN && boottime_ns() - begin > kill_ns_max)
            return false;
        /* Whoever is there after one round forks, or does not die at once. */
        if (round >= 1) {
            hold(l);
            (void)kill_round(l);
            for (size_t i = 0; i < l->entrances_len; i++)
                (void)beside_put(l->entrances[i], "freezer.state", "THAWED"); /* the frozen do not die */
        }
        nanosleep(&(struct timespec){.tv_nsec = wait_ns}, NULL);
        if (wait_ns < 100000000)
            wait_ns *= 2;
    }
}
