/* plan_json.h - prints a plan as one JSON object, for programs.
 *
 * {"actions": [...], "pending": [...], "facts": [...], "recheck", "alarm", "hash", "summary"}; docs/cluster-file.md
 * describes the members. The output is streamed: a plan of a million actions is never a tree in memory.
 */
#pragma once

#include <stdio.h>

#include "berth.h"

/* Returns 0, or a negative errno if `to` could not be written. The same plan gives the same bytes. */
int plan_json_write(struct berth_plan *plan, FILE *to);
