/* what_if.h - a copy of a snapshot with one change, for a plan that shows the effect of the change.
 *
 * The copy equals what berth_freeze would return after the same change through berth.h: berth_workload_put or
 * berth_node_put. The copy shares all other records with its original and must be freed first.
 * tests/plan/advice_check.c compares the two ways.
 *
 * To add a change: enum berth_change in berth.h, a case here, its candidate and its words in advice.c, its case in
 * tests/plan/advice_check.c.
 */
#pragma once

#include "core/snapshot/snapshot.h"

struct what_if {
    enum berth_change change;
    uint32_t workload; /* slot */
    uint32_t resource; /* for BERTH_CHANGE_REQUEST */
    sym taint;         /* for BERTH_CHANGE_TOLERATION: the key */
    uint32_t position; /* for BERTH_CHANGE_UNCORDON */
    int64_t amount;    /* for BERTH_CHANGE_REQUEST, _GPUS and _GANG: above 0 */
};

/* The caller frees it with berth_snapshot_free. O(pages of the snapshot, nodes). */
struct berth_snapshot *what_if_new(const struct berth_snapshot *s, const struct what_if *what);
