/* backup_parts.h - shared parts of writing and restoring a backup. */
#pragma once

#include <unistd.h>

enum { BACKUP_NAME_MAX = 64 };

/* The name of the copy of the store in a backup. */
#define BACKUP_STORE_NAME "store.db"

/* Files of the daemon's folder; ends with NULL. */
extern const char *const backup_files[];

static inline void backup_fd_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}
