/* image_parts.h - internals shared by image*.c; nothing else includes it. */
#pragma once

#include "base/str.h"
#include "machine/image/image.h"
#include "machine/image/image_fetch.h"
#include "machine/image/image_name.h"

/* Opens STATE/images or a directory in it, creating it if missing; -errno. */
int images_open(const struct state_dir *p, const char *folder);
/* Opens STATE/images/unpacked/sha256-HEX; -ENOENT: it does not exist. */
int unpacked_open(const struct state_dir *p, const char *digest);
/* Returns the digest to which a name was resolved, if that image is still unpacked; else -ENOENT. `ret_at` (may be
 * NULL): when (CLOCK_REALTIME). */
int ref_read(const struct state_dir *p, const struct image_name *name, char ret[static IMAGE_DIGEST_MAX],
             int64_t *ret_at);
int ref_write(const struct state_dir *p, const struct image_name *name, const char *digest);
/* Records that the image was used now. */
void unpacked_touch(int unpacked);

/* image_pull.c: pulls into the empty directory `tmp`, where it may leave files. */
struct image_pull {
    const struct state_dir *state_dir;
    const struct image_name *name;
    int tmp;
    struct image_fetch fetch;
    struct str document; /* manifest or index of the tag, as the registry sent it */
};
void pull_cleanup(struct image_pull *pull);
int pull_begin(const struct state_dir *p, const struct image_name *name, int tmp, struct image_pull *ret,
               struct berth_err *err);
/* Returns the digest to which the registry resolves the name now. */
int pull_resolve(struct image_pull *pull, char ret[static IMAGE_DIGEST_MAX], struct berth_err *err);
/* Pulls into tmp/pull, a layout owned by this process in which every blob has been verified, starting from the digest
 * of pull_resolve; *ret_manifest is the manifest in it. */
int pull_fetch(struct image_pull *pull, const char *digest, char ret_manifest[static IMAGE_DIGEST_MAX],
               struct berth_err *err);
/* Unpacks the layout (links use `path`) into tmp/unpacked, durably. */
int pull_unpack(const struct state_dir *p, int layout, const char *path, const char *manifest, int tmp,
                const char *name, struct berth_err *err);
/* Writes the image's configuration, its size and its time of use beside unpacked/rootfs. Synced to disk before the
 * image is published. */
int unpacked_complete(int unpacked, const json_t *config);
/* Returns the space that must stay free on a disk: a full disk would stop everything on this node. */
uint64_t spare_bytes(int dir);

/* image_url.c: fetches the disk of a virtual machine into tmp/unpacked/rootfs/disk, durably, and verifies its
 * digest. */
int url_fetch(const struct state_dir *p, const struct image_name *n, int tmp, struct berth_err *err);
/* Opens a regular file of the node; `what` describes it in errors. */
int file_open(const char *path, const char *what, int *ret, struct berth_err *err);
