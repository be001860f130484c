/* publish.h - a file that was written under another name appears under its own, whole and durable, or not at all. */
#pragma once

#include "base/err.h"

/* Syncs a file and gives it its name, which must be free (-EEXIST); both lie in one folder, which is synced too. */
int folder_file_publish(const char *from, const char *to, struct berth_err *err);
