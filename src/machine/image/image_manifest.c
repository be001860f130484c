/* image_manifest.c - converts a registry's manifest into an OCI layout: the same blobs under OCI media types. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/image/image_layout.h"
#include "machine/mount/mount_tree.h"
#include "net/tls/tls.h"
#include "wire/text/document.h"

enum { MANIFEST_BYTES_MAX = 4 << 20, PARTS_MAX = 512 };

#define OCI "application/vnd.oci.image."
#define DOCKER "application/vnd.docker."

/* Media types of Docker schema 2 and their OCI equivalents: the bytes are the same. */
static const struct {
    const char *docker, *oci;
} types[] = {
    {DOCKER "container.image.v1+json",    OCI "config.v1+json"   },
    {DOCKER "image.rootfs.diff.tar",      OCI "layer.v1.tar"     },
    {DOCKER "image.rootfs.diff.tar.gzip", OCI "layer.v1.tar+gzip"},
    {DOCKER "image.rootfs.diff.tar.zstd", OCI "layer.v1.tar+zstd"},
};

static const char *type_of(const json_t *part)
{
    const char *is = json_string_value(json_object_get(part, "mediaType"));
    for (size_t i = 0; is && i < sizeof types / sizeof *types; i++)
        if (strcmp(is, types[i].docker) == 0)
            return types[i].oci;
    return is;
}

struct manifest_build {
    const char *name;
    int blobs;
    int (*each)(void *ctx, const char *digest, uint64_t size, int blobs);
    void *ctx;
    struct berth_err *err;
};

/* A layer may occur twice in a manifest; it is taken once. */
static int part_take(struct manifest_build *m, const json_t *part, json_t **ret)
{
    const char *type = type_of(part), *digest = json_string_value(json_object_get(part, "digest"));
    const json_t *size = json_object_get(part, "size");
    struct stat st;
    if (!type || !digest || !image_digest_valid(digest) || !json_is_integer(size) || json_integer_value(size) < 0)
        return err_set(m->err, EINVAL, "image %s: an entry of its manifest has no type, no size or no sha256 digest",
                       m->name);
    int rc = fstatat(m->blobs, digest + strlen("sha256:"), &st, AT_SYMLINK_NOFOLLOW) == 0
                 ? 0
                 : m->each(m->ctx, digest, (uint64_t)json_integer_value(size), m->blobs);
    if (rc == 0)
        *ret = json_pack("{s:s, s:s, s:I}", "mediaType", type, "digest", digest, "size", json_integer_value(size));
    return rc;
}

/* Builds an OCI manifest that contains only verified members. */
static int manifest_convert(struct manifest_build *m, const json_t *from, json_t **ret)
{
    const json_t *layers = json_object_get(from, "layers");
    json_t *part = NULL;
    if (json_integer_value(json_object_get(from, "schemaVersion")) != 2 || !json_is_array(layers) ||
        json_array_size(layers) > PARTS_MAX)
        return err_set(m->err, EINVAL,
                       "image %s: expected a manifest of OCI's or Docker's schema 2 with at most %d layers", m->name,
                       PARTS_MAX);
    CLEANUP(json) json_t *to = json_pack("{s:i, s:s}", "schemaVersion", 2, "mediaType", OCI "manifest.v1+json");
    CLEANUP(json) json_t *list = json_array();
    int rc = part_take(m, json_object_get(from, "config"), &part);
    if (rc < 0)
        return rc;
    (void)json_object_set_new(to, "config", part);
    for (size_t i = 0; i < json_array_size(layers); i++) {
        rc = part_take(m, json_array_get(layers, i), &part);
        if (rc < 0)
            return rc;
        (void)json_array_append_new(list, part);
    }
    (void)json_object_set(to, "layers", list);
    *ret = json_incref(to);
    return 0;
}

static int manifest_write(struct manifest_build *m, const json_t *doc, char ret[static IMAGE_DIGEST_MAX])
{
    char sum[SHA256_TEXT_MAX];
    char *text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        return err_set(m->err, EINVAL, "image %s: its manifest cannot be written", m->name);
    int rc = sha256_text(text, strlen(text), sum, m->err);
    if (rc == 0) {
        rc = tree_write(m->blobs, sum, text, strlen(text), geteuid(), getegid(), 0600);
        if (rc < 0)
            rc = err_set(m->err, -rc, "image %s: cannot write: %s", m->name, strerror(-rc));
    }
    free(text);
    if (rc == 0)
        (void)snprintf(ret, IMAGE_DIGEST_MAX, "sha256:%s", sum);
    return rc;
}

int layout_make(const char *text, size_t len, int to, const char *name,
                int (*each)(void *ctx, const char *digest, uint64_t size, int blobs), void *ctx,
                char ret[static IMAGE_DIGEST_MAX], struct berth_err *err)
{
    CLEANUP(json) json_t *doc = len > MANIFEST_BYTES_MAX ? NULL : json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    CLEANUP(json) json_t *manifest = NULL;
    if (!doc)
        return err_set(err, EINVAL, "image %s: its manifest is not JSON or is too large", name);
    CLEANUP(close_fd) int above = tree_folder(to, "blobs", 0700);
    CLEANUP(close_fd) int blobs = above < 0 ? above : tree_folder(above, "sha256", 0700);
    if (blobs < 0)
        return err_set(err, -blobs, "image %s: cannot create a folder: %s", name, strerror(-blobs));
    struct manifest_build m = {.name = name, .blobs = blobs, .each = each, .ctx = ctx, .err = err};
    int rc = manifest_convert(&m, doc, &manifest);
    return rc < 0 ? rc : manifest_write(&m, manifest, ret);
}
