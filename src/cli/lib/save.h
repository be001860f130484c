/* save.h - creates files atomically with mode 0600, for tokens, archives and backups. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* Writes to a temporary file in the same directory, and moves the complete, synced file to its final name. The final
 * name must not exist. */
struct saved_file {
    const char *path;
    char *beside; /* temporary file; NULL: not begun */
    int fd;
};

/* Creates the temporary file. Returns -EEXIST if the final name exists. */
int save_begin(struct saved_file *s, const char *path, struct berth_err *err);
int save_write(struct saved_file *s, const void *at, size_t len, struct berth_err *err);
/* Syncs the file and moves it to its final name. */
int save_end(struct saved_file *s, struct berth_err *err);
/* Removes the temporary file unless save_end succeeded. */
void save_drop(struct saved_file *s);
static inline void save_cleanup(struct saved_file *s)
{
    save_drop(s);
}

/* Creates a file with this text: save_begin, save_write and save_end. */
int save_new(const char *path, const struct str *text, struct berth_err *err);
