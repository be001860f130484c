/* tree.c - kills all processes of an instance.
 *
 * Uses two methods, because neither finds every process: the cgroup, which contains everything that the instance forks,
 * and the shim's role as subreaper, by which orphaned descendants become its children until waitpid finds none.
 * Processes that fork faster than they are killed are stopped first: by cgroup.kill if the kernel has it, else by the
 * freezer, else by pids.max.
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
/* About half of the rounds that fit into that time. A minimum, because no process dies while the whole machine is
 * suspended, and that time must not count. */
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

/* Kills every process whose number is in a file, separated by lines or spaces; returns how many there were. */
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
            /* 0 is a process outside this PID namespace; kill(0) would signal the shim's own process group. */
            if (pid > 1 && pid != getpid()) {
                (void)kill(pid, SIGKILL);
                killed++;
            }
            pid = 0;
        }
    return killed;
}

/* Writes to a file in the cgroup of an entrance; false: the file does not exist or rejects the text. */
static bool cgroup_file_write(const char *entrance, const char *file, const char *text)
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

static void forking_stop(const struct launch *l)
{
    for (size_t i = 0; i < l->procs_paths_len; i++) {
        if (cgroup_file_write(l->procs_paths[i], "cgroup.kill", "1"))
            continue;
        (void)cgroup_file_write(l->procs_paths[i], "pids.max", "0");
        (void)cgroup_file_write(l->procs_paths[i], "freezer.state", "FROZEN");
    }
}

static size_t kill_round(const struct launch *l)
{
    char children[64];
    size_t killed = 0;

    for (size_t i = 0; i < l->procs_paths_len; i++)
        killed += kill_listed(l->procs_paths[i]);
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
        /* Processes that survive the first round fork, or do not die at once. */
        if (round >= 1) {
            forking_stop(l);
            (void)kill_round(l);
            for (size_t i = 0; i < l->procs_paths_len; i++)
                (void)cgroup_file_write(l->procs_paths[i], "freezer.state", "THAWED"); /* frozen processes do not die */
        }
        nanosleep(&(struct timespec){.tv_nsec = wait_ns}, NULL);
        if (wait_ns < 100000000)
            wait_ns *= 2;
    }
}
