/* image_layout.c - reads OCI image layouts on disk. */
#include "machine/image/image_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/mount/mount_tree.h"
#include "wire/text/document.h"

enum { DOCUMENT_MAX = 4 << 20, LAYERS_MAX = 512, INDEX_DEPTH_MAX = 4 };

static int blob_name(const char *digest, char ret[static 96])
{
    if (!digest || !image_digest_valid(digest))
        return -EINVAL;
    (void)snprintf(ret, 96, "blobs/sha256/%s", digest + strlen("sha256:"));
    return 0;
}

static int object_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err)
{
    json_error_t wrong;
    CLEANUP(json) json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &wrong);
    if (!doc)
        return err_set(err, EINVAL, "image %s: not JSON: %s", name, wrong.text);
    if (!json_is_object(doc))
        return err_set(err, EINVAL, "image %s: expected an object", name);
    *ret = json_incref(doc);
    return 0;
}

static int object_read(int layout, const char *file, const char *name, json_t **ret, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    int rc = tree_read(layout, file, DOCUMENT_MAX, &text, &len);
    if (rc < 0)
        return err_set(err, -rc, "image %s: cannot read %s of the layout: %s", name, file, strerror(-rc));
    return object_parse(text, len, name, ret, err);
}

static const char *text_in(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

/* ---- choosing the manifest -------------------------------------------------------------------------------------- */

static const char *architecture(void)
{
    static const struct {
        const char *machine, *name;
    } rows[] = {
        {"x86_64",  "amd64"  },
        {"aarch64", "arm64"  },
        {"riscv64", "riscv64"},
        {"ppc64le", "ppc64le"},
        {"s390x",   "s390x"  },
    };
    struct utsname u;
    if (uname(&u) == 0)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (strcmp(rows[i].machine, u.machine) == 0)
                return rows[i].name;
    return "unknown";
}

/* Tells whether an entry fits this machine; an entry without a platform fits all. */
static bool is_for_this(const json_t *entry)
{
    const json_t *platform = json_object_get(entry, "platform");
    if (!json_is_object(platform))
        return true;
    const char *os = text_in(platform, "os"), *arch = text_in(platform, "architecture");
    return os && arch && strcmp(os, "linux") == 0 && strcmp(arch, architecture()) == 0;
}

static bool is_index(const json_t *entry)
{
    const char *type = text_in(entry, "mediaType");
    return type && (strcmp(type, "application/vnd.oci.image.index.v1+json") == 0 ||
                    strcmp(type, "application/vnd.docker.distribution.manifest.list.v2+json") == 0);
}

static bool has_tag(const json_t *entry, const char *tag)
{
    const char *is = text_in(json_object_get(entry, "annotations"), "org.opencontainers.image.ref.name");
    return is && strcmp(is, tag) == 0;
}

/* Finds the entry with this tag ("": the only one) for this machine; `tag` NULL: the first one. */
static const json_t *entry_of(const json_t *index, const char *tag)
{
    const json_t *entries = json_object_get(index, "manifests");
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        if ((!tag || !*tag || has_tag(entry, tag)) && is_for_this(entry)) {
            if (found && tag && !*tag)
                return NULL;
            if (!found)
                found = entry;
        }
    }
    return found;
}

bool index_lists(const char *text, size_t len, const char *digest)
{
    CLEANUP(json) json_t *index = NULL;
    if (len > DOCUMENT_MAX || object_parse(text, len, "", &index, NULL) < 0)
        return false;
    const json_t *entries = json_object_get(index, "manifests");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *entry = json_array_get(entries, i);
        const char *is = text_in(entry, "digest");
        if (is && strcmp(is, digest) == 0 && is_for_this(entry))
            return true;
    }
    return false;
}

int layout_find(int layout, const char *tag, const char *name, char ret[static IMAGE_DIGEST_MAX], struct berth_err *err)
{
    CLEANUP(json) json_t *index = NULL;
    int rc = object_read(layout, "index.json", name, &index, err);
    if (rc < 0)
        return rc;
    const json_t *entry = entry_of(index, tag);
    if (!entry)
        return err_set(err, ENOENT, "image %s: the layout has %s for this machine", name,
                       *tag ? "no image with this tag" : "no image, or several and no tag was given,");
    for (int depth = 0; is_index(entry); depth++) {
        char blob[96];
        json_t *inner = NULL;
        if (depth >= INDEX_DEPTH_MAX || blob_name(text_in(entry, "digest"), blob) < 0)
            return err_set(err, EINVAL, "image %s: invalid index", name);
        rc = object_read(layout, blob, name, &inner, err);
        if (rc < 0)
            return rc;
        json_decref(index);
        index = inner;
        entry = entry_of(index, NULL);
        if (!entry)
            return err_set(err, ENOENT, "image %s: no image for linux on %s", name, architecture());
    }
    const char *digest = text_in(entry, "digest");
    if (!digest || !image_digest_valid(digest))
        return err_set(err, EINVAL, "image %s: its manifest has no sha256 digest", name);
    (void)snprintf(ret, IMAGE_DIGEST_MAX, "%s", digest);
    return 0;
}

/* ---- single-image layout ---------------------------------------------------------------------------------------- */

static int blob_copy(int layout, const char *digest, int to, const char *name, json_t **ret, size_t *ret_len,
                     struct berth_err *err)
{
    char blob[96];
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    if (blob_name(digest, blob) < 0)
        return err_set(err, EINVAL, "image %s: an entry has no sha256 digest", name);
    int rc = tree_read(layout, blob, DOCUMENT_MAX, &text, &len);
    if (rc < 0)
        return err_set(err, -rc, "image %s: cannot read %s: %s", name, digest, strerror(-rc));
    CLEANUP(close_fd) int blobs = tree_open(to, "blobs/sha256", O_RDONLY | O_DIRECTORY, 0);
    if (blobs < 0)
        return err_set(err, -blobs, "image %s: %s", name, strerror(-blobs));
    rc = tree_write(blobs, digest + strlen("sha256:"), text, len, geteuid(), getegid(), 0600);
    if (rc < 0)
        return err_set(err, -rc, "image %s: cannot write: %s", name, strerror(-rc));
    *ret_len = len;
    return object_parse(text, len, name, ret, err);
}

static int layers_link(const char *layout_path, const json_t *manifest, int to, const char *name, struct berth_err *err)
{
    const json_t *layers = json_object_get(manifest, "layers");
    if (!json_is_array(layers) || json_array_size(layers) > LAYERS_MAX)
        return err_set(err, EINVAL, "image %s: expected a list of at most %d layers", name, LAYERS_MAX);
    for (size_t i = 0; i < json_array_size(layers); i++) {
        char blob[96], target[IMAGE_PATH_MAX + 128];
        if (blob_name(text_in(json_array_get(layers, i), "digest"), blob) < 0)
            return err_set(err, EINVAL, "image %s: layer %zu has no sha256 digest", name, i);
        (void)snprintf(target, sizeof target, "%s/%s", layout_path, blob);
        if (symlinkat(target, to, blob) < 0 && errno != EEXIST)
            return err_set(err, errno, "image %s: cannot write: %s", name, strerror(errno));
    }
    return 0;
}

static int index_write(const char *digest, size_t size, int to)
{
    static const char mark[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
    char text[512];
    int n =
        snprintf(text, sizeof text,
                 "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
                 "\"digest\":\"%s\",\"size\":%zu,\"annotations\":{\"org.opencontainers.image.ref.name\":\"image\"}}]}",
                 digest, size);
    int rc = tree_write(to, "index.json", text, (size_t)n, geteuid(), getegid(), 0600);
    return rc < 0 ? rc : tree_write(to, "oci-layout", mark, sizeof mark - 1, geteuid(), getegid(), 0600);
}

int layout_take(int layout, const char *layout_path, const char *digest, int to, const char *name, json_t **ret_config,
                struct berth_err *err)
{
    if (mkdirat(to, "blobs", 0700) < 0 || mkdirat(to, "blobs/sha256", 0700) < 0)
        return err_set(err, errno, "image %s: cannot create a folder: %s", name, strerror(errno));
    CLEANUP(json) json_t *manifest = NULL, *config = NULL;
    size_t size = 0, config_size = 0;
    int rc = blob_copy(layout, digest, to, name, &manifest, &size, err);
    if (rc < 0)
        return rc;
    rc =
        blob_copy(layout, text_in(json_object_get(manifest, "config"), "digest"), to, name, &config, &config_size, err);
    rc = rc < 0 ? rc : layers_link(layout_path, manifest, to, name, err);
    if (rc < 0)
        return rc;
    rc = index_write(digest, size, to);
    if (rc < 0)
        return err_set(err, -rc, "image %s: cannot write: %s", name, strerror(-rc));
    *ret_config = json_incref(config);
    return 0;
}
