/* image_parts.h - what the files image*.c share; nobody else includes it. */
#pragma once

#include "machine/image.h"
#include "machine/image_name.h"

/* STATE/images or a folder of it, made where it is missing. -errno. */
int images_open(const struct place *p, const char *folder);
/* STATE/images/unpacked/sha256-HEX; -ENOENT. */
int unpacked_open(const struct place *p, const char *digest);
/* What a name was resolved to, if that is still unpacked; -ENOENT. `ret_at`: when (CLOCK_REALTIME); may be NULL. */
int ref_read(const struct place *p, const struct image_name *name, char ret[static IMAGE_DIGEST_MAX], int64_t *ret_at);
int ref_write(const struct place *p, const struct image_name *name, const char *digest);
/* It was used just now. */
void unpacked_touch(int unpacked);

/* image_pull.c: into the empty folder `tmp`, which it may leave full. */
/* The digest that the registry has under this name now. */
int pull_resolve(const struct place *p, const struct image_name *name, int tmp, char ret[static IMAGE_DIGEST_MAX],
                 struct berth_err *err);
/* Pulls it as a layout into tmp/pull. */
int pull_fetch(const struct place *p, const struct image_name *name, const char *digest, int tmp,
               struct berth_err *err);
/* Unpacks the layout (of `path` for links) into tmp/unpacked, durably. */
int pull_unpack(int layout, const char *path, const char *manifest, int tmp, const char *name, struct berth_err *err);
