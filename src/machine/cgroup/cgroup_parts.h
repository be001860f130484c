/* cgroup_parts.h - internals shared by cgroup*.c: the cgroup hierarchies of this machine. Others include cgroup.h.
 *
 * A `tree` is one mounted hierarchy. Cgroups of instances are created in the trees that are `ours`; in others a
 * container's runtime may create one of the same name, which is found and removed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "machine/cgroup/cgroup.h"

enum controller { CTL_CPU, CTL_CPUACCT, CTL_MEMORY, CTL_PIDS, CTL_IO, CTL_FREEZER, CTL_HUGETLB, CTL_LEN };

enum { TREES_MAX = 24, GROUP_NAME_MAX = 128, GROUP_PATH_MAX = 4096, GROUP_DEPTH_MAX = 16 };

/* Leaf below the agent's cgroup to which the agent may have moved itself; never an instance's name. */
#define CGROUP_LEAF "agent"

struct cgroup_tree {
    bool v2, ours;
    unsigned controllers; /* bits of enum controller: enabled below the agent's cgroup */
    char *mount;          /* mount point */
    char *path;           /* the agent's cgroup; may not exist if the tree is not ours */
};

struct cgroups {
    struct cgroup_tree trees[TREES_MAX];
    size_t trees_len;
    const struct cgroup_tree *of[CTL_LEN]; /* tree of each controller; NULL: none */
    char *name;                            /* the agent's cgroup below each mount, with a leading slash */
    struct str disks;                      /* "8:0\0" "254:0\0" ...: disks that `io` limits */
    bool weighs_io;                        /* some disk's scheduler supports weights */
    int64_t pages[CGROUP_PAGES_MAX];       /* sizes of huge pages on this machine; 0: end of the list */
};

bool cgroup_name_ok(const char *name);
/* Builds TREE/NAME/FILE, or TREE/NAME without a file; NULL: too long. */
const char *cgfile_path(const struct cgroup_tree *t, const char *name, const char *file,
                        char buf[static GROUP_PATH_MAX]);
/* Writes a value by a single write; returns 0 or the negative errno of open or write. */
int sysfile_put(const char *path, const char *text);
/* Reads at most size - 1 bytes and appends a NUL; returns their number, or a negative errno. Only for files that the
 * kernel returns by one read: after a complete line it does not read again. Not for lists of processes. */
ssize_t sysfile_get(const char *path, char *buf, size_t size);
int cgfile_put(const struct cgroup_tree *t, const char *name, const char *file, const char *text);
ssize_t cgfile_get(const struct cgroup_tree *t, const char *name, const char *file, char *buf, size_t size);
/* Reads the number in a file; "max" is INT64_MAX. */
int cgfile_number(const struct cgroup_tree *t, const char *name, const char *file, int64_t *ret);
/* Returns the number behind a word at the start of a line ("oom_kill 3"); -1: no such line. */
int64_t sysfile_line(const char *text, const char *word);

/* Sets every limit and lists those that are not enforced. `fresh`: the cgroup was just created, so kernel defaults need
 * not be written. */
void cgroup_limits_apply(const struct cgroups *c, const char *name, const struct cgroup_limits *limits, bool fresh,
                         char ret_unenforced[static CGROUP_LIST_MAX]);
/* Appends a name to a comma-separated list; if there is no room, the list ends with "...". */
void cgroup_names_add(char list[static CGROUP_LIST_MAX], const char *name);
