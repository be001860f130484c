/* hugepage.h - huge pages: what an instance asks for, the file system it gets them by, and the pools they come from.
 *
 * An instance that asks for `hugepages-2Mi` finds a hugetlbfs at /mnt/hugepages-2Mi that holds as much and no more, its own alone; its path is in
 * $BERTH_HUGEPAGES_2MI. Pages that it maps otherwise (MAP_HUGETLB) are bounded by its control group (cgroup.h). How much there is is
 * the probe's to tell (probe.h).
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "machine/container/user.h"
#include "machine/launch/launch.h"

#define HUGEPAGES_FOLDER "/mnt"

enum { HUGEPAGE_SIZES_MAX = 4 };

struct hugepages {
    const char *resource; /* "hugepages-2Mi"; the config's */
    int64_t page_bytes, bytes;
};

/* Size of the pages of a resource; 0: it is none of huge pages. */
int64_t hugepage_bytes(const char *resource);
/* The requests of an instance's object of node_config, in order of names. They are the limits, too: other pages are
 * for other instances, so `limits` are not looked at. A part of a page is cut off. Returns how many sizes. */
size_t hugepages_read(const json_t *config, struct hugepages ret[static HUGEPAGE_SIZES_MAX]);
/* How to mount them for this user; the arena's. Also what it is to know of them: `ret_env`, "BERTH_HUGEPAGES_2MI=/mnt/hugepages-2Mi". */
void hugepages_mounts(const struct hugepages *pages, size_t len, const struct user *user, struct arena *arena,
                      struct launch_mount *ret, const char **ret_env);

/* Sets how many pages of a size there are, now. The kernel gives what it can find: `*ret_got` are there then, which may be fewer, or more where those
 * in use cannot be given back. `root` as probe.h has it. -ENOENT: this machine has no pages of that size. */
int hugepages_set(const char *root, int64_t page_bytes, int64_t count, int64_t *ret_got, struct berth_err *err);
