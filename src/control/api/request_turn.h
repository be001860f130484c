/* request_turn.h - runs what waits in the fair queue (fair_queue.h): requests, and watches that catch up with the past.
 *
 * The caller's event loop runs one slice in each round (control_serve). Where the environment has no such loop
 * (env.serve_soon is NULL: tests, the simulator), nothing waits.
 */
#pragma once

#include "control/api/fair_queue.h"
#include "control/control.h"

/* Runs the entry at once if no account waits, else in the account's turn. False: too many entries of the account wait, and
 * nothing was done. The entry may be gone when this returns. */
bool turn_take(struct control *c, struct fair_account *a, struct fair_entry *e);
/* The same for an entry that ran and is not done: before the account's next, after the turns of others. */
void turn_take_again(struct control *c, struct fair_account *a, struct fair_entry *e);
/* Lets the entry wait at the end of the account's queue; where there are turns only (env.serve_soon). False: as turn_take. */
bool turn_wait(struct control *c, struct fair_account *a, struct fair_entry *e);
/* Asks for a slice if an entry waits that may run. */
void turns_serve_soon(struct control *c);
/* Runs every entry: berthd is stopping. */
void turns_stop(struct control *c);
