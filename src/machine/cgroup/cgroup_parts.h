/* cgroup_parts.h - the hierarchies of this machine, as the files of cgroup*.c share them. Not for others: cgroup.h.
 *
 * A tree is one mounted hierarchy. Groups of instances are made in the trees that are `ours`; in the others a container's
 * runtime may make one of the same name, which is looked for and removed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "machine/cgroup/cgroup.h"

enum controller { CTL_CPU, CTL_CPUACCT, CTL_MEMORY, CTL_PIDS, CTL_IO, CTL_FREEZER, CTL_HUGETLB, CTL_LEN };

enum { TREES_MAX = 24, GROUP_NAME_MAX = 128, GROUP_PATH_MAX = 4096, GROUP_DEPTH_MAX = 16 };

/* The leaf below the agent's group that it may have moved itself to; no instance's. */
#define CGROUP_LEAF "agent"

struct tree {
    bool v2, ours;
    unsigned controllers; /* bits of enum controller that are in force below the agent's group */
    char *mount;          /* its top, as it is seen here */
    char *path;           /* the agent's group; need not be there where the tree is not ours */
};

struct cgroups {
    struct tree trees[TREES_MAX];
    size_t trees_len;
    const struct tree *of[CTL_LEN];  /* who limits or counts it; NULL: nobody */
    char *name;                      /* of the agent's group below each mount, with a slash before it */
    struct str disks;                /* "8:0\0" "254:0\0" ... of what is limited by `io` */
    bool weighs_io;                  /* some disk's queue goes by weights */
    int64_t pages[CGROUP_PAGES_MAX]; /* sizes of huge pages that this machine knows; 0: no more */
};

bool cgroup_name_ok(const char *name);
/* TREE/NAME/FILE, or TREE/NAME without a file, in the caller's buffer; NULL: too long. */
const char *cgfile_path(const struct tree *t, const char *name, const char *file, char buf[static GROUP_PATH_MAX]);
/* Writes a value in one go; a negative errno of open or write. */
int sysfile_put(const char *path, const char *text);
/* Reads at most size - 1 bytes and ends them with NUL; their number, or a negative errno. Only for files that the kernel
 * gives in one piece: after a whole line there is no second read to see the end. Lists of processes are no such files. */
ssize_t sysfile_get(const char *path, char *buf, size_t size);
int cgfile_put(const struct tree *t, const char *name, const char *file, const char *text);
ssize_t cgfile_get(const struct tree *t, const char *name, const char *file, char *buf, size_t size);
/* The number in a file; "max" is INT64_MAX. */
int cgfile_number(const struct tree *t, const char *name, const char *file, int64_t *ret);
/* The number after a word at the start of a line ("oom_kill 3"); -1: no such line. */
int64_t sysfile_line(const char *text, const char *word);

/* Sets every limit, and names those that are not kept. `fresh`: the group has just been made, so what is not given is as the
 * kernel has it and need not be written. */
void cgroup_limits_apply(const struct cgroups *c, const char *name, const struct cgroup_limits *limits, bool fresh,
                         char ret_unenforced[static CGROUP_LIST_MAX]);
/* Adds a name to a comma-separated list; one that has no room left ends it with "...". */
void cgroup_names_add(char list[static CGROUP_LIST_MAX], const char *name);
