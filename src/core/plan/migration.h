/* migration.h - the migrations of a plan: facts of the snapshot, and the facts that the plan leaves.
 *
 * The fact and the two instances determine the next step of a migration; instance_status.c and reconcile.c carry it
 * out. This module finds migrations by the id of the old instance, records phase changes, and ends migrations whose
 * instances are gone.
 */
#pragma once

#include "core/plan/plan.h"

struct migration_state {
    enum berth_migration_phase phase;
    enum berth_cause cause;
    int64_t at_ns;
    sym to; /* the requested target node; 0: any */
};

/* Reads the facts of the snapshot. O(facts); with any migration also O(instances). */
void migrations_index(struct berth_plan *p);
void migrations_done(struct berth_plan *p);
/* Adds the workloads of migrating instances to the bit set. */
void migrations_mark_workloads(const struct berth_plan *p, uint64_t *workloads);
/* Stores the migration of this instance in *ret; false: there is none. */
bool migration_of(const struct berth_plan *p, uint64_t instance, struct migration_state *ret);
/* Returns whether the migration still goes on after the decisions made so far. A migration whose new instance is gone
 * does not. */
bool migration_is_active(struct berth_plan *p, uint64_t instance);
/* Records a phase unless it is recorded already. A migration that begins to stop the old instance keeps its cause. */
void migration_note(struct berth_plan *p, uint64_t instance, enum berth_migration_phase phase, enum berth_cause cause);
/* Returns whether any migration goes on after the decisions made so far. */
bool migrations_in_progress(struct berth_plan *p);
/* Ends the facts of finished migrations. */
void migrations_close(struct berth_plan *p);
