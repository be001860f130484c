/* tar.h - folders as a stream of bytes and back, for `berth cp`.
 *
 * What is written is read by every tar (ustar, with GNU's long names). What is read may come from anybody: nothing is ever
 * written outside the folder that was named. Names with "..", or from the root, are refused; on the way to a file no
 * symbolic link is followed; links that would lead out are left out; so are devices and sockets, and set-user-id bits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Returns false to give up. */
typedef bool tar_sink(void *ctx, const void *at, size_t len);

struct tar_told {
    void *ctx;
    /* Something was left out; may be NULL. */
    void (*skipped)(void *ctx, const char *path, const char *why);
    /* Bytes of files so far, and of all files that are known of; may be NULL. */
    void (*moved)(void *ctx, size_t done, size_t total);
};

/* Writes the file or folder at `path` as an archive whose only entry, or topmost folder, is called `name`. -ECANCELED:
 * the sink gave up. */
int tar_write(const char *path, const char *name, tar_sink *sink, void *sink_ctx, const struct tar_told *told,
              struct berth_err *err);

/* Reads an archive of which everything is `top`, or below it, and makes it `as` in the folder `dir_fd`; top NULL: the
 * archive is the inside of a folder, which `as` is to be. Both are single names. */
struct untar;
struct untar *untar_new(int dir_fd, const char *top, const char *as, const struct tar_told *told);
/* -EINVAL: it is no archive, or one that nobody should unpack; or what the file system says. After a failure it may only
 * be freed. */
int untar_feed(struct untar *u, const char *at, size_t len, struct berth_err *err);
/* All was fed: -EPIPE if the archive had not ended, -ENOENT if there was nothing in it. */
int untar_end(struct untar *u, struct berth_err *err);
void untar_free(struct untar *u);
