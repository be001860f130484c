/* cgroup.h - limits that the kernel keeps, and what it counts: cgroup v1, v2, or both mixed.
 *
 * One group per instance below one group of the agent's. Limits are set before any process can enter, so nothing ever runs
 * unlimited. What this kernel cannot limit is named, never silently left out: each file is read back after writing. Who is
 * to use what, and what to do when a limit is broken all the same, is not known here (limit_watch.h).
 *
 * To add a resource: a field of cgroup_limits, a row in cgroup_read.c and one in cgroup_limit.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct cgroups; /* where groups are on this machine */

/* Finds the hierarchies below `root` ("/sys/fs/cgroup"; a test may have another) and makes the agent's group `name` (a path
 * like "berth" or "berth/n1") in each that is writable: at its top, or else below the agent's own group. In a v2 tree the
 * controllers are handed down on the way; where that fails because the agent and its neighbours sit in a group on the
 * way (a container's top), these are moved to the leaf NAME/agent. Without any hierarchy it still works, and enforces
 * nothing. -EINVAL: no such name. */
int cgroups_open(const char *root, const char *name, struct cgroups **ret, struct berth_err *err);
void cgroups_free(struct cgroups *c); /* leaves the groups; NULL is fine */
/* Removes the agent's groups too, where nothing is left below them; -EBUSY: something is. */
int cgroups_remove(struct cgroups *c);
/* "v1", "v2", "mixed" or "none". */
const char *cgroups_version(const struct cgroups *c);

enum { CGROUP_PATHS_MAX = 8, CGROUP_LIST_MAX = 128, CGROUP_PAGES_MAX = 4 };

struct cgroup_limits {
    int64_t cpu_milli;    /* at most this much; 0: no bound */
    int64_t cpu_weight;   /* share under contention, 1 to 10000; 0: as its request says */
    int64_t cpu_request;  /* thousandths asked for: a tenth of it is the weight, where none is given; 0: as if 100 */
    int64_t memory_bytes; /* 0: no bound */
    int64_t pids;         /* 0: 4096 */
    int64_t io_weight;    /* 1 to 10000; 0: none */
    int64_t io_bytes;     /* per second, read and written each, of every disk; 0: no bound */
    struct {
        int64_t page_bytes, bytes;
    } hugepages[CGROUP_PAGES_MAX]; /* page_bytes 0: no more of them */
};

/* From `requests` and `limits` of an instance's object of node_config. `ret_other`: comma-separated names of limits that no
 * cgroup knows ("network"), which the caller reports as unenforced unless it has another way. -EINVAL: names the limit. */
int cgroup_limits_read(const json_t *config, struct cgroup_limits *ret, char ret_other[static CGROUP_LIST_MAX],
                       struct berth_err *err);

/* Makes the group and limits it; an empty one that is there is taken. `ret_unenforced`: comma-separated, sorted resources
 * of these limits that the kernel does not enforce, or not wholly. What was not given (a default) is not named. On failure
 * nothing of it is left. -EEXIST: there is one, with processes in it. About 0.3 ms in v1, a folder in each of seven trees. */
int cgroup_make(struct cgroups *c, const char *name, const struct cgroup_limits *limits,
                char ret_unenforced[static CGROUP_LIST_MAX], struct berth_err *err);
/* Other limits for a group with processes in it. Lowering memory below what is used: the old bound stays, and unenforced
 * names it. -ENOENT: no such group. */
int cgroup_set(struct cgroups *c, const char *name, const struct cgroup_limits *limits,
               char ret_unenforced[static CGROUP_LIST_MAX], struct berth_err *err);
/* The cgroup.procs files a process must write its number into to enter; texts are for mem_free. Returns how many. */
size_t cgroup_entrances(const struct cgroups *c, const char *name, char *ret_paths[static CGROUP_PATHS_MAX]);
/* Its folder in a v2 hierarchy, be it one without controllers beside v1, for what only that has (net_meter.h); NULL: there is none. */
const char *cgroup_unified(const struct cgroups *c, const char *name, char *buf, size_t size);
/* The path an OCI bundle takes as linux.cgroupsPath; relative to each hierarchy's root. */
const char *cgroup_path(const struct cgroups *c, const char *name, char *buf, size_t size);

/* Of the character devices of this major number nobody in the group, or below it, may open any but these, whatever rights their files
 * have. For a group without processes, once for each number. -ENODEV: there is no cgroup v2; another errno: the kernel takes no such
 * rule. (cgroup_device.c) */
int cgroup_devices_only(struct cgroups *c, const char *name, unsigned major, const unsigned *minors, size_t len);
/* The group that a process is in, or below. -ENOENT: in none of the agent's; -ESRCH: there is no such process. (cgroup_device.c) */
int cgroup_of_process(const struct cgroups *c, pid_t pid, char ret_name[static CGROUP_LIST_MAX]);

struct cgroup_usage {
    int64_t cpu_ns;       /* since it was made */
    int64_t memory_bytes; /* without what the kernel may take back at once: unmapped file pages not used lately */
    int64_t memory_peak_bytes, pids;
    int64_t io_read_bytes, io_write_bytes; /* since it was made; -1: not counted here */
    int64_t oom_kills;
};
/* What is not counted here is 0, io -1. -ENOENT: no such group; -ENODEV: nothing is counted on this machine. Costs at most
 * seven files, each opened, read and closed: 50 to 100 us, so 1,000 groups every 10 s are up to 1 % of a core. */
int cgroup_usage(const struct cgroups *c, const char *name, struct cgroup_usage *ret);

/* Processes in it, or below it. Without any hierarchy there is nobody to be found. */
int cgroup_signal(struct cgroups *c, const char *name, int signo);
bool cgroup_empty(const struct cgroups *c, const char *name);
/* Kills until nothing is left, also what forks faster than it dies (frozen first, or cgroup.kill). -EBUSY: something stays
 * that cannot be killed now; ask again. Does not wait longer than 100 ms. Who is still on the way in is not seen: where
 * cgroup_remove then says -EBUSY, kill again before it is asked again, or it may say so for ever. */
int cgroup_kill(struct cgroups *c, const char *name);
/* Empty groups only; -EBUSY else. -ENOENT is success. Also in hierarchies where only a container's runtime made it. */
int cgroup_remove(struct cgroups *c, const char *name);
/* Groups that are there, each once and in order of names, for finding what an earlier agent has left. */
int cgroups_each(const struct cgroups *c, void (*each)(void *ctx, const char *name), void *ctx);
