/* image_parts.h - what the files image*.c share; nobody else includes it. */
#pragma once

#include "base/str.h"
#include "machine/image/image.h"
#include "machine/image/image_fetch.h"
#include "machine/image/image_name.h"

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
struct pull {
    const struct place *place;
    const struct image_name *name;
    int tmp;
    struct fetch fetch;
    struct str document; /* what a tag meant, as the registry sent it */
};
void pull_cleanup(struct pull *pull);
int pull_begin(const struct place *p, const struct image_name *name, int tmp, struct pull *ret, struct berth_err *err);
/* The digest that the registry has under this name now. */
int pull_resolve(struct pull *pull, char ret[static IMAGE_DIGEST_MAX], struct berth_err *err);
/* Pulls it into tmp/pull, a layout of this process's own in which every part has the digest that it should, from the one of
 * pull_resolve on; *ret_manifest is the one in it. */
int pull_fetch(struct pull *pull, const char *digest, char ret_manifest[static IMAGE_DIGEST_MAX],
               struct berth_err *err);
/* Unpacks the layout (of `path` for links) into tmp/unpacked, durably. */
int pull_unpack(const struct place *p, int layout, const char *path, const char *manifest, int tmp, const char *name,
                struct berth_err *err);
/* Beside unpacked/rootfs: what the image says, how large it is, when it was used. On disk before it can be found. */
int unpacked_complete(int unpacked, const json_t *config);
/* So much of a disk stays free: a full one would stop everything on this node. */
uint64_t spare_bytes(int dir);

/* image_url.c: fetches the disk of a virtual machine into tmp/unpacked/rootfs/disk, durably, if its digest is right. */
int url_fetch(const struct place *p, const struct image_name *n, int tmp, struct berth_err *err);
/* Opens a regular file of the node; `what` it is, in errors. */
int file_open(const char *path, const char *what, int *ret, struct berth_err *err);
