/* batch.h - the actions of a plan, cut into units that are committed one after another.
 *
 * A unit is a gang, a reservation with the stops it waits for, or up to UNIT_ACTIONS_MAX other actions. All units of a plan
 * are assumed in the cluster when it is made; each is then submitted when the one before it is done, unless something it
 * rests on was changed meanwhile by somebody else. Pods of a job that is over by then, or that the unit itself ends, are left
 * out. What fails is given back, together with what later plans made of it, and the next plan sees to it.
 */
#pragma once

#include "control/control_parts.h"
#include "control/sched/scheduler.h"

struct units;

/* What a plan was made from, for the guards and the journal. */
struct unit_basis {
    uint64_t cycle, revision, state_hash, plan_hash, seed;
    int64_t now_ns;
    uint32_t kinds[KINDS]; /* of the state's hash, by kind of document: the lower half */
    const char *profile;
    struct str assumed; /* JSON array of what was assumed at the freeze: [[op, id, now, document or null], ...] */
};

struct units *units_new(struct control *control, void (*idle)(void *ctx), void *ctx);
void units_free(struct units *u);

/* Assumes and queues every action and fact of the plan, and takes what was assumed at its freeze out of the basis. Returns
 * the number of units. */
size_t units_add(struct units *u, struct berth_plan *plan, struct unit_basis *basis);
/* Units queued or under way. */
size_t units_len(const struct units *u);
/* JSON array of what is assumed now. */
void units_assumed(const struct units *u, struct str *to);
/* What happened since the last call: a unit that met a conflict is to be planned again at once; the store refuses. */
enum units_failure { UNITS_FINE, UNITS_CONFLICT, UNITS_TROUBLE };
enum units_failure units_failure(struct units *u);
/* Grows whenever something is given back: a plan frozen before that counted on what does not come true. */
uint64_t units_returned(const struct units *u);
