/* clock.h - the clock of decisions, and the wall clock for the expiry of certificates and tokens.
 *
 * The clock of decisions never goes back and never jumps: it advances with the steady clock and is slewed towards the
 * wall clock by at most a tenth. Therefore time limits, windows and back-off follow the steady clock whatever happens
 * to the wall clock, and a wall clock that is wrong for a while has no lasting effect. At the start of berthd the clock
 * of decisions is set to the wall clock. Expiry follows the wall clock alone: a token that expired because of a wrong
 * clock is valid again when the clock is corrected.
 */
#pragma once

#include <stdint.h>

struct control;

/* Returns the clock of decisions. */
int64_t control_now_ns(struct control *c);
/* Returns the wall clock, for expiry. */
int64_t control_wall_ns(const struct control *c);
/* Raises or clears the alarm about a wrong wall clock. */
void clock_tick(struct control *c);
