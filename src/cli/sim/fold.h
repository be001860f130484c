/* fold.h - groups a long list of actions into a short table with counts.
 *
 * Actions are added in the order of the plan. Only consecutive actions are grouped: the same operation and cause for
 * pods of the same workload. An action that names a resource or waits for stops is never grouped. Added actions must
 * outlive the fold (as the plan's strings do).
 */
#pragma once

#include "base/vec.h"
#include "berth.h"

enum fold_level {
    FOLD_NONE,     /* one row per action */
    FOLD_NODE,     /* one row per workload and node */
    FOLD_WORKLOAD, /* one row per workload */
};

struct fold_row {
    struct berth_action first;  /* node is NULL for several nodes, replaces 0 for several pods */
    uint64_t pods, nodes, gpus; /* a GPU shared by pods counts once */
    size_t ordinals_at;         /* index into fold.ordinals: `pods` entries, ascending */
};

struct fold_pod {
    const char *node;
    uint32_t ordinal;
    uint64_t gpus;
};

struct fold {
    enum fold_level level;
    VEC(struct fold_row) rows;
    VEC(uint32_t) ordinals;
    /* Consecutive actions that are not yet rows. */
    struct berth_action open;
    VEC(struct fold_pod) pods;
};

void fold_init(struct fold *f, enum fold_level level);
void fold_done(struct fold *f);
void fold_add(struct fold *f, const struct berth_action *action);
/* Must be called after the last action. */
void fold_end(struct fold *f);
