/* transition.h - the states of nodes and instances, and their allowed transitions.
 *
 *                  to  ready joining cordoned draining lost
 *     from ready         .     -       yes      yes    yes
 *          joining      yes    .       yes       -     yes
 *          cordoned     yes    -        .       yes    yes
 *          draining     yes    -       yes       .     yes
 *          lost         yes   yes      yes      yes     .
 *
 * A node is joining until its agent has reported or an administrator enables it. Cordoned, draining and back to ready
 * are set by administrators' verbs. Lost is written when the node's lease expires; the node's next report restores the
 * state before that.
 *
 *                  to  reserved assigned starting running stopping ended
 *     from reserved       .       yes       -        -       -       -
 *          assigned       -        .       yes      yes     yes     yes
 *          starting       -        -        .       yes     yes     yes
 *          running        -        -       yes       .      yes     yes
 *          stopping       -        -        -        -       .      yes
 *          ended          -        -        -        -       -       .
 *
 * A plan promotes a reserved instance or drops it, and tells instances to stop. Agents report all other transitions.
 * Running changes back to starting when the agent restarts the instance in place. A failed or stopped instance has no
 * state: its document is deleted.
 *
 * Staying in a state (.) is no transition and always allowed. To add a state: berth.h, a row and a column here and in
 * transition.c, and the code that writes it.
 */
#pragma once

#include <stdbool.h>

#include "berth.h"

bool node_transition_ok(enum berth_node_state from, enum berth_node_state to);
bool instance_transition_ok(enum berth_state from, enum berth_state to);

/* Finds the state of that name. Returns false if there is none. */
bool node_state_find(const char *name, enum berth_node_state *ret);
