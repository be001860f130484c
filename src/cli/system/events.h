/* events.h - prints recent events as a table. */
#pragma once

#include "cli/lib/api.h"

/* Prints the last events of one subject under a heading; nothing without events. Returns an enum exit_code. */
int events_of(struct api *a, const char *id, uint64_t limit);
