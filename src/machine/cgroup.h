/* cgroup.h - limits that the kernel keeps, and what it counts: cgroup v1, v2, or both mixed.
 *
 * One group per instance below one group of the agent's. Limits are set before any process can enter, so nothing ever runs
 * unlimited. What this kernel cannot limit is named, never silently left out.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct cgroups; /* where groups are on this machine */

/* Finds the hierarchies below `root` ("/sys/fs/cgroup"; a test may have another) and makes the agent's group `name` in each
 * controller there is. Without any it still works, and enforces nothing. */
int cgroups_open(const char *root, const char *name, struct cgroups **ret, struct berth_err *err);
void cgroups_free(struct cgroups *c); /* leaves the groups; NULL is fine */
/* "v1", "v2", "mixed" or "none". */
const char *cgroups_version(const struct cgroups *c);

enum { CGROUP_PATHS_MAX = 8, CGROUP_LIST_MAX = 128 };

struct cgroup_limits {
    int64_t cpu_milli;    /* at most this much; 0: no bound */
    int64_t cpu_weight;   /* share under contention, 1 to 10000; 0: as its request says */
    int64_t cpu_request;  /* thousandths asked for: the weight, where none is given; 0: 100 */
    int64_t memory_bytes; /* 0: no bound */
    int64_t pids;         /* 0: 4096 */
    int64_t io_weight;    /* 1 to 10000; 0: none */
    int64_t io_bytes;     /* per second, read and written each, of every disk; 0: no bound */
};

/* From `requests` and `limits` of an instance's object of node_config. `ret_other`: comma-separated names of limits that no
 * cgroup knows ("network"), which the caller reports as unenforced unless it has another way. */
int cgroup_limits_read(const json_t *config, struct cgroup_limits *ret, char ret_other[static CGROUP_LIST_MAX],
                       struct berth_err *err);

/* Makes the group and limits it. `ret_unenforced`: comma-separated resources of these limits that the kernel does not
 * enforce. On failure nothing of it is left. */
int cgroup_make(struct cgroups *c, const char *name, const struct cgroup_limits *limits,
                char ret_unenforced[static CGROUP_LIST_MAX], struct berth_err *err);
/* Other limits for a group with processes in it. Lowering memory below what is used: unenforced names it. */
int cgroup_set(struct cgroups *c, const char *name, const struct cgroup_limits *limits,
               char ret_unenforced[static CGROUP_LIST_MAX], struct berth_err *err);
/* The cgroup.procs files a process must write its number into to enter; texts are malloc'ed. Returns how many. */
size_t cgroup_entrances(const struct cgroups *c, const char *name, char *ret_paths[static CGROUP_PATHS_MAX]);
/* The path an OCI bundle takes as linux.cgroupsPath; relative to each hierarchy's root. */
const char *cgroup_path(const struct cgroups *c, const char *name, char *buf, size_t size);

struct cgroup_usage {
    int64_t cpu_ns; /* since it was made */
    int64_t memory_bytes, memory_peak_bytes, pids;
    int64_t io_read_bytes, io_write_bytes; /* since it was made; -1: not counted here */
    int64_t oom_kills;
};
int cgroup_usage(const struct cgroups *c, const char *name, struct cgroup_usage *ret);

/* Processes in it, or below it. */
int cgroup_signal(struct cgroups *c, const char *name, int signo);
bool cgroup_empty(const struct cgroups *c, const char *name);
/* Kills until nothing is left, also what forks faster than it dies (frozen first, or cgroup.kill). -EBUSY: something stays
 * that cannot be killed now; ask again. Does not wait longer than 100 ms. */
int cgroup_kill(struct cgroups *c, const char *name);
/* Empty groups only; -EBUSY else. -ENOENT is success. */
int cgroup_remove(struct cgroups *c, const char *name);
/* Groups that are there, for finding what an earlier agent has left. */
int cgroups_each(const struct cgroups *c, void (*each)(void *ctx, const char *name), void *ctx);
