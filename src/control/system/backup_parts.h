/* backup_parts.h - what writing and restoring a backup share. */
#pragma once

#include <unistd.h>

enum { BACKUP_NAME_MAX = 64 };

/* The name of the store's copy in a backup. */
#define BACKUP_STORE_NAME "store.db"

/* Names of the folder's files; ends with NULL. */
extern const char *const backup_files[];

static inline void backup_fd_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}
