/* publish.h - publishes a file atomically: a file written under a temporary name gets its final name, durably. */
#pragma once

#include "base/err.h"

/* Syncs a file and renames it to `to`, which must not exist (-EEXIST). Both must be in the same directory, which is
 * synced, too. */
int folder_file_publish(const char *from, const char *to, struct berth_err *err);
