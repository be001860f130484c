/* time_text.h - parses durations, times and ranges in the forms of batch systems and converts them to the forms of
 * documents.
 *
 * Pure functions: the clock is an argument. Invalid text returns -EINVAL and a sentence with the valid forms.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SPAN_TEXT_MAX = 48, RANGE_TEXT_MAX = 64 };

/* Parses a duration: "30m", "1h30m", "90" (units of `bare_s` seconds), or Slurm's "MM:SS", "HH:MM:SS", "D-HH",
 * "D-HH:MM", "D-HH:MM:SS". The result has the form "1d12h". */
int duration_text_read(const char *text, int64_t bare_s, char ret[static SPAN_TEXT_MAX], struct berth_err *err);

/* Parses a time: RFC 3339, or without an offset in local time: "2026-03-01", "2026-03-01T12:00[:SS]", "18:30" (its next
 * occurrence), "now", "today", "tomorrow", "midnight", "noon", "+2h", "now+2hours". The result is in RFC 3339. */
int time_text_read(const char *text, int64_t now_ns, char ret[static SPAN_TEXT_MAX], struct berth_err *err);

/* Parses a past time like time_text_read, but "-10m", "now-2hours" and a plain duration ("7d") count back from now, a
 * time of day is its last occurrence, and "yesterday" is accepted. */
int past_time_read(const char *text, int64_t now_ns, char ret[static SPAN_TEXT_MAX], struct berth_err *err);

/* Parses indices with a constant step, "0-99", "0-99:2%10", "7", "1,3,5%2", to "FROM-TO:STEP%PARALLEL". */
int range_read(const char *text, char ret[static RANGE_TEXT_MAX], struct berth_err *err);
