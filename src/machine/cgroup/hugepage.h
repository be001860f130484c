/* hugepage.h - huge pages: requests of an instance, the hugetlbfs mounts for them, and the machine's pools.
 *
 * An instance that requests `hugepages-2Mi` gets a private hugetlbfs of exactly this size at /mnt/hugepages-2Mi; its
 * path is in $BERTH_HUGEPAGES_2MI. Pages that it maps otherwise (MAP_HUGETLB) are limited by its cgroup (cgroup.h).
 * probe.h reports the available pages.
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
    const char *resource; /* "hugepages-2Mi"; points into the configuration */
    int64_t page_bytes, bytes;
};

/* Returns the page size of a resource name; 0: not a huge page resource. */
int64_t hugepage_bytes(const char *resource);
/* Reads the requests of an instance's object of node_config, sorted by name. Requests are also the limits, because
 * further pages are reserved for other instances; `limits` are ignored. Amounts are rounded down to whole pages.
 * Returns the number of page sizes. */
size_t hugepages_read(const json_t *config, struct hugepages ret[static HUGEPAGE_SIZES_MAX]);
/* Builds the mounts for this user, and the variables that tell the instance their paths: `ret_env`,
 * "BERTH_HUGEPAGES_2MI=/mnt/hugepages-2Mi". Texts are allocated from the arena. */
void hugepages_mounts(const struct hugepages *pages, size_t len, const struct instance_user *user, struct arena *arena,
                      struct launch_mount *ret, const char **ret_env);

/* Sets the number of pages of a size. The kernel allocates what it can find: `*ret_got` is the resulting number, which
 * may be smaller, or larger if pages in use cannot be freed. `root` is as in probe.h. -ENOENT: this machine has no
 * pages of that size. */
int hugepages_set(const char *root, int64_t page_bytes, int64_t count, int64_t *ret_got, struct berth_err *err);
