/* clock.h - the time that decisions are made by, and the time that certificates and tokens expire by.
 *
 * Decisions go by a time that never goes back and never jumps: it passes as the steady clock does, and approaches the wall
 * clock by at most a tenth of that. So time limits, windows and back-off are those of the steady clock, whatever happens to
 * the wall clock, and a clock that is wrong for a while leaves nothing behind. A berthd that starts takes the wall clock's
 * time at once. Expiry goes by the wall clock alone: what a wrong clock let expire is good again when the clock is right.
 */
#pragma once

#include <stdint.h>

struct control;

/* The time of decisions. */
int64_t control_now_ns(struct control *c);
/* The wall clock, for what expires. */
int64_t control_wall_ns(const struct control *c);
/* Raises and ends the alarm. */
void clock_tick(struct control *c);
