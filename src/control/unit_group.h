/* unit_group.h - which actions of a plan must be committed together, or not at all.
 *
 * A gang is placed whole. A reservation needs the stops that it waits for. A pod that is lost and placed anew would run twice
 * were only one of the two to happen. A reservation that is dropped makes room for others on its node at once. All others
 * stand for themselves.
 */
#pragma once

#include "control/state.h"

struct unit_groups;

/* Reads the whole plan once. */
struct unit_groups *unit_groups_new(const struct state *s, const struct berth_plan *plan);
void unit_groups_free(struct unit_groups *g);

/* A number above 0 that is the same for all that belong together; 0: it stands for itself. */
uint64_t unit_group_of(struct unit_groups *g, const struct berth_action *a);
