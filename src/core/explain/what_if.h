/* what_if.h - a snapshot in which one thing is different, for a plan that shows what the difference changes.
 *
 * The copy is what berth_freeze would give after the same change through berth.h: berth_workload_put or
 * berth_node_put. It shares all other records with its original and is freed first. tests/plan/advice_check.c compares
 * the two ways.
 *
 * To add a change: enum berth_change in berth.h, a case here, its candidate and its words in advice.c, its case in
 * tests/plan/advice_check.c.
 */
#pragma once

#include "core/snapshot/snapshot.h"

struct what_if {
    enum berth_change change;
    uint32_t workload; /* slot */
    uint32_t resource; /* of BERTH_CHANGE_REQUEST */
    sym taint;         /* of BERTH_CHANGE_TOLERATION: the key */
    uint32_t position; /* of BERTH_CHANGE_UNCORDON */
    int64_t amount;    /* of BERTH_CHANGE_REQUEST, _GPUS and _GANG: above 0 */
};

/* The caller frees it with berth_snapshot_free. O(pages of the snapshot, nodes). */
struct berth_snapshot *what_if_new(const struct berth_snapshot *s, const struct what_if *what);
