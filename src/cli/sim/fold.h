/* fold.h - a long list of actions as a short table: what is alike becomes one row with a count.
 *
 * Actions are added in the order of the plan. Only neighbours are folded: the same operation and cause for pods of the
 * same workload. An action that names a resource or awaits stops stays on its own. What is added must outlive the fold
 * (the plan's strings do).
 */
#pragma once

#include "base/vec.h"
#include "berth.h"

enum fold_level {
    FOLD_NONE,     /* one row per action */
    FOLD_NODE,     /* one per workload and node */
    FOLD_WORKLOAD, /* one per workload */
};

struct fold_row {
    struct berth_action first;  /* node is NULL where there are several, replaces 0 where there are several pods */
    uint64_t pods, nodes, gpus; /* a GPU that pods share counts once */
    size_t ordinals_at;         /* into fold.ordinals: `pods` of them, ascending */
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
    /* The neighbours that are not yet rows. */
    struct berth_action open;
    VEC(struct fold_pod) pods;
};

void fold_init(struct fold *f, enum fold_level level);
void fold_done(struct fold *f);
void fold_add(struct fold *f, const struct berth_action *action);
/* After the last action. */
void fold_end(struct fold *f);
