/* span.h - lengths of time, moments and ranges as people write them to batch systems, made into what documents have.
 *
 * Pure functions: the clock is an argument. What cannot be read is -EINVAL and a sentence that says how to write it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SPAN_TEXT_MAX = 48, RANGE_TEXT_MAX = 64 };

/* "30m", "1h30m", "90" (units of `bare_s` seconds), and with colons and days as Slurm has them: "MM:SS", "HH:MM:SS", "D-HH",
 * "D-HH:MM", "D-HH:MM:SS". Into the form of a duration: "1d12h". */
int span_read(const char *text, int64_t bare_s, char ret[static SPAN_TEXT_MAX], struct berth_err *err);

/* "2026-03-01T12:00:00Z" and its kin; without an offset in the local time: "2026-03-01", "2026-03-01T12:00[:SS]", "18:30" (the
 * next one), "now", "today", "tomorrow", "midnight", "noon"; "+2h", "now+2hours". Into RFC 3339. */
int moment_read_text(const char *text, int64_t now_ns, char ret[static SPAN_TEXT_MAX], struct berth_err *err);

/* The same of a time that has passed: "-10m", "now-2hours" and a length alone ("7d") are so long ago, a time of day is
 * the latest one, and "yesterday" is a day, too. */
int moment_past_read(const char *text, int64_t now_ns, char ret[static SPAN_TEXT_MAX], struct berth_err *err);

/* "0-99", "0-99:2%10", "7", "1,3,5%2": indices with one distance between them, as "FROM-TO:STEP%PARALLEL". */
int range_read(const char *text, char ret[static RANGE_TEXT_MAX], struct berth_err *err);
