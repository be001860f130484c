/* tar.h - folders as a stream of bytes and back, for `berth cp`.
 *
 * Every tar can read the written archives (ustar, with GNU's long names). Archives that are read are not trusted:
 * nothing is ever written outside the target folder. Absolute names and names with ".." are rejected. No symbolic link
 * is followed on the way to a file. Links that lead outside, devices, sockets and set-user-id bits are omitted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Returns false to abort. */
typedef bool tar_sink(void *ctx, const void *at, size_t len);

struct tar_callbacks {
    void *ctx;
    /* An entry was omitted; may be NULL. */
    void (*skipped)(void *ctx, const char *path, const char *why);
    /* File bytes so far, and the total of all files known so far; may be NULL. */
    void (*moved)(void *ctx, size_t done, size_t total);
};

/* Writes the file or folder at `path` as an archive whose only topmost entry is named `name`. Returns -ECANCELED if the
 * sink aborted. */
int tar_write(const char *path, const char *name, tar_sink *sink, void *sink_ctx, const struct tar_callbacks *callbacks,
              struct berth_err *err);

/* Unpacks an archive whose entries are all `top` or below `top`, as `as` in the folder `dir_fd`. With top NULL the
 * archive holds the contents of a folder, which becomes `as`. Both are single names. */
struct untar;
struct untar *untar_new(int dir_fd, const char *top, const char *as, const struct tar_callbacks *callbacks);
/* Returns -EINVAL for data that is no archive or an unsafe one, or the error of the file system. After an error only
 * untar_free may be called. */
int untar_feed(struct untar *u, const char *at, size_t len, struct berth_err *err);
/* Ends the input. Returns -EPIPE if the archive is incomplete, -ENOENT if it is empty. */
int untar_end(struct untar *u, struct berth_err *err);
void untar_free(struct untar *u);
