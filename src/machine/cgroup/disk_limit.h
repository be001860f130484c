/* disk_limit.h - how much of the disk an instance takes: what it has written to its container or its virtual disk, and the volumes it
 * may write to, each in full, whoever else writes there.
 *
 * Nobody keeps an instance from writing more: it is counted now and then, and judged by limit_watch.h. A process writes where its user may,
 * so of one only the volumes are known.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/launch/instance_dir.h"

struct disk_limit {
    int64_t bytes; /* 0: none */
    bool wanted;   /* it is limited or asked for: it is counted */
    bool whole;    /* all that it writes is counted */
};

/* `storage` from `requests` and `limits` of an instance's object of node_config. -EINVAL: it makes no sense. */
int disk_limit_read(const json_t *config, struct disk_limit *ret, struct berth_err *err);
/* Blocks that are taken. Looks at every file: for a thread that may wait. A file with several names counts once for each. -errno: some cannot be
 * looked at. */
int disk_bytes(const struct place *p, uint64_t id, const json_t *config, int64_t *ret);
