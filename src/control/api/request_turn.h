/* request_turn.h - runs the entries of the fair queue (fair_queue.h): requests, and watches that catch up with past
 * events.
 *
 * The caller's event loop runs one slice per iteration (control_serve). In an environment without such a loop
 * (env.serve_soon is NULL: tests, the simulator) every entry runs at once.
 */
#pragma once

#include "control/api/fair_queue.h"
#include "control/control.h"

/* Runs the entry at once if no account waits, else queues the entry until the turn of its account. Returns false,
 * without any effect, if too many entries of the account wait. The entry may be freed when this function returns. */
bool request_turn_run(struct control *c, struct fair_account *a, struct fair_entry *e);
/* The same for an entry that ran and is not finished: the entry runs after the turns of other accounts, before other
 * entries of its account. */
void request_turn_resume(struct control *c, struct fair_account *a, struct fair_entry *e);
/* Queues the entry at the end of its account's queue; only with env.serve_soon. Returns false as request_turn_run
 * does. */
bool request_turn_enqueue(struct control *c, struct fair_account *a, struct fair_entry *e);
/* Requests a slice from the event loop if a waiting entry may run. */
void request_turns_schedule(struct control *c);
/* Runs every waiting entry, for the shutdown of berthd. */
void request_turns_drain(struct control *c);
