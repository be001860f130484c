/* events.h - what happened lately, as a table. */
#pragma once

#include "cli/lib/api.h"

/* Prints the last events of one subject under a heading, or nothing where there are none. Returns an enum exit_code. */
int events_of(struct api *a, const char *id, uint64_t limit);
