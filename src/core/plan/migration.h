/* migration.h - migrations as a plan knows them: facts of the snapshot, and those it leaves.
 *
 * What a migration does follows from the fact and the two instances; instance_status.c and reconcile.c act on it. Here it is
 * found by the old instance's id, remembered anew when its phase changes, and ended when nothing of it is left.
 */
#pragma once

#include "core/plan/plan.h"

struct migration_seen {
    enum berth_migration_phase phase;
    enum berth_cause cause;
    int64_t at_ns;
    sym to; /* the node wished for; 0: any */
};

/* Reads the facts of the snapshot; O(facts), and where there are any one look at each instance. */
void migrations_index(struct berth_plan *p);
void migrations_done(struct berth_plan *p);
/* Adds the workloads whose instances they are about. */
void migrations_mark(const struct berth_plan *p, uint64_t *workloads);
/* What is remembered of this instance; false: nothing. */
bool migration_of(const struct berth_plan *p, uint64_t instance, struct migration_seen *ret);
/* Is it still going on, after what this plan has decided so far? One whose new instance is gone is not. */
bool migration_stands(struct berth_plan *p, uint64_t instance);
/* Remembers, unless it is remembered already. One that stops the old instance keeps its cause. */
void migration_note(struct berth_plan *p, uint64_t instance, enum berth_migration_phase phase, enum berth_cause cause);
/* Does any move, after what this plan has decided so far? */
bool migrations_under_way(struct berth_plan *p);
/* Ends what is over. */
void migrations_close(struct berth_plan *p);
