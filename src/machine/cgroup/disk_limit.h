/* disk_limit.h - disk usage of an instance: what it has written to its container or its virtual disk, and the volumes
 * that it can write to, each counted in full, including data of other writers.
 *
 * Writes are not blocked: usage is counted periodically and compared with the limit by limit_watch.h. An instance that
 * is a plain process writes wherever its user may, so only its volumes are counted.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/launch/instance_dir.h"

struct disk_limit {
    int64_t bytes; /* 0: no limit */
    bool wanted;   /* limited or requested: usage is counted */
    bool whole;    /* everything that it writes is counted */
};

/* Reads `storage` of `requests` and `limits` of an instance's object of node_config. -EINVAL: invalid limit. */
int disk_limit_read(const json_t *config, struct disk_limit *ret, struct berth_err *err);
/* Counts the allocated bytes. Visits every file, so it needs a thread that may wait. A file with several hard links
 * counts once for each. -errno: some files cannot be read. */
int disk_bytes(const struct state_dir *p, uint64_t id, const json_t *config, int64_t *ret);
