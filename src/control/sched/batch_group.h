/* batch_group.h - which actions of a plan must be committed together, or not at all.
 *
 * A gang is placed whole. A reservation needs the stops that it waits for. A pod that is lost or stopped and placed anew
 * would run twice were only one of the two to happen. Where places are reserved, what stops makes room for others at once,
 * in what is promised, and so does a reservation that is dropped. A volume that goes free on one node may be taken on
 * another; what goes free of a quota, by others that count against it. All others stand for themselves.
 */
#pragma once

#include "control/state/state.h"

struct unit_groups;

struct unit_groups *unit_groups_new(const struct state *s);
void unit_groups_free(struct unit_groups *g);

/* A place on this node is being reserved by an earlier plan. */
void unit_groups_promised(struct unit_groups *g, const char *node);
/* Reads the whole plan, once, after those. */
void unit_groups_read(struct unit_groups *g, const struct berth_plan *plan);
/* A number above 0 that is the same for all that belong together; 0: it stands for itself. */
uint64_t unit_group_of(struct unit_groups *g, const struct berth_action *a);
