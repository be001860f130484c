/* save.h - new files that only their owner may read, whole or not at all: tokens, archives, backups. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* Writes beside the name and gives it the name when it is whole and on disk. The file must not exist. */
struct save {
    const char *path;
    char *beside; /* NULL: nothing begun */
    int fd;
};

/* -EEXIST where the file is there already. */
int save_begin(struct save *s, const char *path, struct berth_err *err);
int save_write(struct save *s, const void *at, size_t len, struct berth_err *err);
/* Makes it appear. */
int save_end(struct save *s, struct berth_err *err);
/* Removes what was begun and not ended. */
void save_drop(struct save *s);
static inline void save_cleanup(struct save *s)
{
    save_drop(s);
}

/* All of that for a text. */
int save_new(const char *path, const struct str *text, struct berth_err *err);
