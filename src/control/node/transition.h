/* transition.h - the states of nodes and instances, and which may follow which.
 *
 *                  to  ready joining cordoned draining lost
 *     from ready         .     -       yes      yes    yes
 *          joining      yes    .       yes       -     yes
 *          cordoned     yes    -        .       yes    yes
 *          draining     yes    -       yes       .     yes
 *          lost         yes   yes      yes      yes     .
 *
 * A node is joining until its agent has reported or an administrator enables it. Cordoned, draining and back to ready
 * are administrators' verbs; lost is written when its lease runs out, and the next report brings back what it was
 * before.
 *
 *                  to  reserved assigned starting running stopping ended
 *     from reserved       .       yes       -        -       -       -
 *          assigned       -        .       yes      yes     yes     yes
 *          starting       -        -        .       yes     yes     yes
 *          running        -        -       yes       .      yes     yes
 *          stopping       -        -        -        -       .      yes
 *          ended          -        -        -        -       -       .
 *
 * A reserved instance is promoted by a plan, or dropped. Agents report the rest; a plan tells one to stop. Running goes
 * back to starting when the agent restarts it in place. What has failed or stopped has no state: its document is
 * deleted.
 *
 * To stay in a state (.) is no transition, and always fine. To add a state: berth.h, a row and a column here and in
 * transition.c, and who writes it.
 */
#pragma once

#include <stdbool.h>

#include "berth.h"

bool node_transition_ok(enum berth_node_state from, enum berth_node_state to);
bool instance_transition_ok(enum berth_state from, enum berth_state to);

/* The state of that name; false: there is none. */
bool node_state_find(const char *name, enum berth_node_state *ret);
