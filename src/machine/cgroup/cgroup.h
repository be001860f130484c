/* cgroup.h - limits that the kernel enforces, and usage that it counts: cgroup v1, v2, or both mixed.
 *
 * One cgroup per instance below the agent's cgroup. Limits are set before any process can enter, so nothing ever runs
 * unlimited. Limits that this kernel cannot enforce are reported, never silently dropped: each file is read back after
 * writing. This module does not decide limits, nor what happens when a limit is exceeded (limit_watch.h).
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

struct cgroups; /* the cgroup hierarchies of this machine */

/* Finds the hierarchies below `root` ("/sys/fs/cgroup"; tests use others) and creates the agent's cgroup `name` (a path
 * such as "berth" or "berth/n1") in each writable one: at its top, else below the agent's own cgroup. In a v2 hierarchy
 * the controllers are enabled on each level down to it. If a cgroup on the way contains the agent and other processes
 * (the top of a container), these are moved to the leaf NAME/agent first. Without any hierarchy it succeeds and
 * enforces nothing. -EINVAL: invalid name. */
int cgroups_open(const char *root, const char *name, struct cgroups **ret, struct berth_err *err);
void cgroups_free(struct cgroups *c); /* keeps the cgroups; NULL is fine */
/* Removes the agent's cgroups; -EBUSY: one of them still has children. */
int cgroups_remove(struct cgroups *c);
/* "v1", "v2", "mixed" or "none". */
const char *cgroups_version(const struct cgroups *c);

enum { CGROUP_PATHS_MAX = 8, CGROUP_LIST_MAX = 128, CGROUP_PAGES_MAX = 4 };

struct cgroup_limits {
    int64_t cpu_milli;    /* 0: unlimited */
    int64_t cpu_weight;   /* share under contention, 1 to 10000; 0: derived from cpu_request */
    int64_t cpu_request;  /* thousandths; a tenth of it is the default weight; 0: as 100 */
    int64_t memory_bytes; /* 0: unlimited */
    int64_t pids;         /* 0: 4096 */
    int64_t io_weight;    /* 1 to 10000; 0: none */
    int64_t io_bytes;     /* per second, for reads and writes each, of every disk; 0: unlimited */
    struct {
        int64_t page_bytes, bytes;
    } hugepages[CGROUP_PAGES_MAX]; /* page_bytes 0: end of the list */
};

/* Reads `requests` and `limits` of an instance's object of node_config. `ret_other`: comma-separated names of limits
 * that cgroups do not support ("network"); the caller enforces them otherwise or reports them. -EINVAL with the name of
 * the limit. */
int cgroup_limits_read(const json_t *config, struct cgroup_limits *ret, char ret_other[static CGROUP_LIST_MAX],
                       struct berth_err *err);

/* Creates the cgroup and sets its limits; an existing empty one is reused. `ret_unenforced`: comma-separated, sorted
 * resources of the given limits that the kernel does not enforce, or only partly; defaults are not listed. On failure
 * nothing is left. -EEXIST: it exists and has processes. About 0.3 ms in v1, a directory in each of seven
 * hierarchies. */
int cgroup_make(struct cgroups *c, const char *name, const struct cgroup_limits *limits,
                char ret_unenforced[static CGROUP_LIST_MAX], struct berth_err *err);
/* Changes the limits of a cgroup with processes. A memory limit below the usage is not applied: the old one stays, and
 * `ret_unenforced` lists it. -ENOENT: no such cgroup. */
int cgroup_set(struct cgroups *c, const char *name, const struct cgroup_limits *limits,
               char ret_unenforced[static CGROUP_LIST_MAX], struct berth_err *err);
/* Returns the paths of the cgroup.procs files into which a process writes its pid to enter; free each with mem_free.
 * Returns their number. */
size_t cgroup_procs_paths(const struct cgroups *c, const char *name, char *ret_paths[static CGROUP_PATHS_MAX]);
/* Returns its directory in a v2 hierarchy, which may be one without controllers beside v1, for features of v2 only
 * (net_meter.h); NULL: none. */
const char *cgroup_unified(const struct cgroups *c, const char *name, char *buf, size_t size);
/* Returns linux.cgroupsPath for an OCI bundle; relative to the root of each hierarchy. */
const char *cgroup_path(const struct cgroups *c, const char *name, char *buf, size_t size);

/* Restricts the cgroup and its descendants: of the character devices with this major number only these may be opened,
 * regardless of file permissions. For a cgroup without processes, once for each major number. -ENODEV: no cgroup v2;
 * another errno: the kernel does not support it. (cgroup_device.c) */
int cgroup_devices_only(struct cgroups *c, const char *name, unsigned major, const unsigned *minors, size_t len);
/* Returns the cgroup of an instance that contains the process, directly or below. -ENOENT: none; -ESRCH: no such
 * process. (cgroup_device.c) */
int cgroup_of_process(const struct cgroups *c, pid_t pid, char ret_name[static CGROUP_LIST_MAX]);

struct cgroup_usage {
    int64_t cpu_ns;       /* since the creation */
    int64_t memory_bytes; /* without reclaimable memory: inactive file pages */
    int64_t memory_peak_bytes, pids;
    int64_t io_read_bytes, io_write_bytes; /* since the creation; -1: not counted here */
    int64_t oom_kills;
};
/* Reads the usage. Values that are not counted here are 0, io -1. -ENOENT: no such cgroup; -ENODEV: nothing is counted
 * on this machine. Opens, reads and closes at most seven files: 50 to 100 us, so 1,000 cgroups every 10 s take up to 1
 * % of a core. */
int cgroup_usage(const struct cgroups *c, const char *name, struct cgroup_usage *ret);

/* Signal, or look for, processes in the cgroup and its descendants. Without any hierarchy there are none. */
int cgroup_signal(struct cgroups *c, const char *name, int signo);
bool cgroup_empty(const struct cgroups *c, const char *name);
/* Kills until no process is left, including processes that fork faster than they die (by freezing first, or by
 * cgroup.kill). -EBUSY: some cannot be killed now; call again. Takes at most 100 ms. A process that is just entering is
 * not seen: if cgroup_remove then returns -EBUSY, kill again before removing again. */
int cgroup_kill(struct cgroups *c, const char *name);
/* Removes an empty cgroup; -EBUSY: not empty. A missing one is success. Includes hierarchies in which only a
 * container's runtime created it. */
int cgroup_remove(struct cgroups *c, const char *name);
/* Lists existing cgroups of instances, each once and sorted by name, to find those that an earlier agent has left. */
int cgroups_each(const struct cgroups *c, void (*each)(void *ctx, const char *name), void *ctx);
