/* plan_json.h - a plan as one JSON object, for programs.
 *
 * {"actions": [...], "pending": [...], "facts": [...], "recheck", "alarm", "hash", "summary"}; the members are
 * described in docs/cluster-file.md. Written as it goes: a plan of a million actions needs no million values in memory.
 */
#pragma once

#include <stdio.h>

#include "berth.h"

/* 0, or a negative errno when `to` could not be written. The same plan gives the same bytes. */
int plan_json_write(struct berth_plan *plan, FILE *to);
