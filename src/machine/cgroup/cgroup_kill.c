/* cgroup_kill.c - signals all processes of a cgroup and its descendants, until none is left.
 *
 * Pids are reused: a pid read from a list may belong to another process when it is used. Therefore, a process is opened
 * as a pidfd first, and then checked for membership in the cgroup.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/cgroup/cgroup_parts.h"

#define KILL_NS_MAX (100 * INT64_C(1000000))
#define KILL_LOOK_NS INT64_C(1000000)

static int64_t steady_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

typedef void pid_call(void *ctx, pid_t pid);

/* Calls `call` for each process of the cgroup and its descendants; returns their number. */
static size_t pids_each(const char *path, int depth, pid_call *call, void *ctx)
{
    char below[GROUP_PATH_MAX], line[32];
    struct stat st;
    size_t count = 0;
    int len = snprintf(below, sizeof below, "%s/cgroup.procs", path);
    FILE *f = len < GROUP_PATH_MAX ? fopen(below, "re") : NULL;
    while (f && fgets(line, sizeof line, f)) {
        long pid = strtol(line, NULL, 10);
        count++;
        if (pid > 0 && call) /* 0: in another PID namespace */
            call(ctx, (pid_t)pid);
    }
    bool there = f != NULL;
    if (f)
        (void)fclose(f);
    /* a directory without subdirectories has a link count of 2 */
    bool leaf = !there || stat(path, &st) < 0 || st.st_nlink == 2;
    DIR *dir = !leaf && depth < GROUP_DEPTH_MAX ? opendir(path) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        len = snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (len < GROUP_PATH_MAX)
            count += pids_each(below, depth + 1, call, ctx);
    }
    if (dir)
        (void)closedir(dir);
    return count;
}

static size_t group_pids(const struct cgroup_tree *t, const char *name, pid_call *call, void *ctx)
{
    char path[GROUP_PATH_MAX];
    return cgfile_path(t, name, NULL, path) ? pids_each(path, 0, call, ctx) : 0;
}

bool cgroup_empty(const struct cgroups *c, const char *name)
{
    char text[256];
    for (size_t i = 0; cgroup_name_ok(name) && i < c->trees_len; i++) {
        const struct cgroup_tree *t = &c->trees[i];
        if (t->v2 && cgfile_get(t, name, "cgroup.events", text, sizeof text) >= 0) {
            if (sysfile_line(text, "populated") > 0)
                return false;
        } else if (group_pids(t, name, NULL, NULL) > 0) {
            return false;
        }
    }
    return true;
}

/* ---- signals ---------------------------------------------------------------------------------------------------- */

struct signal_request {
    char *path; /* path of the cgroup below the mounts: "/berth/17" */
    int signo;
};

/* Tells whether the process is in this cgroup or a descendant. */
static bool is_member(pid_t pid, const char *path)
{
    char file[64], line[GROUP_PATH_MAX];
    size_t len = strlen(path);
    bool found = false;
    (void)snprintf(file, sizeof file, "/proc/%d/cgroup", (int)pid);
    FILE *f = fopen(file, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, path);
        found = at && (at[len] == '/' || at[len] == '\n');
    }
    if (f)
        (void)fclose(f);
    return found;
}

static void signal_member(void *ctx, pid_t pid)
{
    const struct signal_request *s = ctx;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return; /* it has ended */
    if (is_member(pid, s->path))
        (void)syscall(SYS_pidfd_send_signal, fd, s->signo, NULL, 0);
    (void)close(fd);
}

static char *below_mounts(const struct cgroups *c, const char *name)
{
    struct str path = {0};
    str_addf(&path, "%s/%s", c->name, name);
    return str_take(&path);
}

int cgroup_signal(struct cgroups *c, const char *name, int signo)
{
    if (!cgroup_name_ok(name))
        return -EINVAL;
    /* Each process is in the cgroup of every hierarchy, except where a container's runtime left some out. Only the
     * hierarchy with the most processes is used, so that no process gets the signal twice. */
    const struct cgroup_tree *fullest = NULL;
    size_t most = 0;
    for (size_t i = 0; i < c->trees_len; i++) {
        size_t count = group_pids(&c->trees[i], name, NULL, NULL);
        if (count > most) {
            most = count;
            fullest = &c->trees[i];
        }
    }
    if (!fullest)
        return -ESRCH;
    CLEANUP(mem) char *path = below_mounts(c, name);
    struct signal_request signal_request = {.path = path, .signo = signo};
    (void)group_pids(fullest, name, signal_member, &signal_request);
    return 0;
}

static void kill_once(struct cgroups *c, const char *name)
{
    CLEANUP(mem) char *path = below_mounts(c, name);
    struct signal_request signal_request = {.path = path, .signo = SIGKILL};
    const struct cgroup_tree *freezer = c->of[CTL_FREEZER];
    if (freezer)
        (void)cgfile_put(freezer, name, "freezer.state", "FROZEN");
    for (size_t i = 0; i < c->trees_len; i++) {
        const struct cgroup_tree *t = &c->trees[i];
        if (t->v2 && cgfile_put(t, name, "cgroup.kill", "1") == 0)
            continue;
        if (t->v2)
            (void)cgfile_put(t, name, "cgroup.freeze", "1");
        (void)group_pids(t, name, signal_member, &signal_request);
        if (t->v2)
            (void)cgfile_put(t, name, "cgroup.freeze", "0");
    }
    if (freezer)
        (void)cgfile_put(freezer, name, "freezer.state", "THAWED");
}

int cgroup_kill(struct cgroups *c, const char *name)
{
    int64_t end_ns = steady_ns() + KILL_NS_MAX;
    if (!cgroup_name_ok(name))
        return -EINVAL;
    while (!cgroup_empty(c, name)) {
        if (steady_ns() >= end_ns)
            return -EBUSY;
        kill_once(c, name);
        if (!cgroup_empty(c, name))
            (void)nanosleep(&(struct timespec){.tv_nsec = KILL_LOOK_NS}, NULL);
    }
    return 0;
}
