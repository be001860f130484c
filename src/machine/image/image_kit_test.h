/* image_kit_test.h - for tests of images: tar archives, OCI layouts, an agent's state directory. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "machine/image/image.h"
#include "machine/image/oci_tool.h"
#include "machine/launch/folder_test.h"
#include "machine/mount/mount_tree.h"

/* ---- archives ---- */

struct entry {
    char type; /* '0' file, '1' hard link, '2' symbolic link, '3' character device, '5' directory */
    const char *name, *link;
    unsigned mode;
    const char *data;
    size_t len; /* of `data`; 0: up to its NUL */
    unsigned uid, gid;
};

static inline void tar_add(struct str *tar, const struct entry *e)
{
    char head[512] = {0};
    size_t len = e->type == '0' && e->data ? (e->len ? e->len : strlen(e->data)) : 0;
    unsigned sum = 0;

    (void)snprintf(head, 100, "%s", e->name);
    (void)snprintf(head + 100, 8, "%07o", e->mode);
    (void)snprintf(head + 108, 8, "%07o", e->uid);
    (void)snprintf(head + 116, 8, "%07o", e->gid);
    (void)snprintf(head + 124, 12, "%011o", (unsigned)len);
    (void)snprintf(head + 136, 12, "%011o", 1);
    memset(head + 148, ' ', 8);
    head[156] = e->type;
    if (e->link)
        (void)snprintf(head + 157, 100, "%s", e->link);
    (void)snprintf(head + 257, 6, "ustar");
    (void)snprintf(head + 263, 3, "00");
    if (e->type == '3') {
        (void)snprintf(head + 329, 8, "%07o", 1); /* device number 1:3, as /dev/null */
        (void)snprintf(head + 337, 8, "%07o", 3);
    }
    for (size_t i = 0; i < sizeof head; i++)
        sum += (unsigned char)head[i];
    (void)snprintf(head + 148, 8, "%06o", sum);
    str_add_bytes(tar, head, sizeof head);
    if (len) {
        static const char zeros[512];
        str_add_bytes(tar, e->data, len);
        str_add_bytes(tar, zeros, (512 - len % 512) % 512);
    }
}

static inline void tar_end(struct str *tar)
{
    static const char zeros[1024];
    str_add_bytes(tar, zeros, sizeof zeros);
}

/* ---- layouts ---- */

static inline void sha256_of(const void *p, size_t len, char ret[static 72])
{
    unsigned char sum[32];
    assert_int_equal(gnutls_hash_fast(GNUTLS_DIG_SHA256, p, len, sum), 0);
    (void)snprintf(ret, 8, "sha256:");
    for (size_t i = 0; i < 32; i++)
        (void)snprintf(ret + 7 + 2 * i, 3, "%02x", sum[i]);
}

static inline void bytes_write(const char *path, const void *p, size_t len)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, len, f), len);
    assert_int_equal(fclose(f), 0);
}

/* Writes a blob and returns its digest. */
static inline void blob_put(const char *layout, const void *p, size_t len, char ret[static 72])
{
    char path[512];
    sha256_of(p, len, ret);
    (void)snprintf(path, sizeof path, "%s/blobs/sha256/%s", layout, ret + 7);
    bytes_write(path, p, len);
}

/* Makes a layout of these layers, uncompressed or gzipped (then with a wrong diff_id, as none is unpacked completely),
 * under this tag; `config`: members of the image's "config" object. */
static inline void layout_put(const char *layout, const char *tag, const struct str *layers, size_t layers_len,
                              const char *config, char ret_manifest[static 72])
{
    CLEANUP(str) struct str ids = {0}, list = {0}, doc = {0};
    char path[512], digest[72], config_digest[72];

    (void)mkdir(layout, 0755);
    (void)snprintf(path, sizeof path, "%s/blobs", layout);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/blobs/sha256", layout);
    (void)mkdir(path, 0755);
    for (size_t i = 0; i < layers_len; i++) {
        blob_put(layout, layers[i].at, layers[i].len, digest);
        str_addf(&ids, "%s\"%s\"", i ? "," : "", digest);
        bool packed = layers[i].len > 2 && memcmp(layers[i].at, "\x1f\x8b", 2) == 0;
        str_addf(&list, "%s{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar%s\",\"digest\":\"%s\",\"size\":%zu}",
                 i ? "," : "", packed ? "+gzip" : "", digest, layers[i].len);
    }
    str_addf(
        &doc,
        "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{%s},\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[%s]}}",
        config, str_text(&ids));
    blob_put(layout, doc.at, doc.len, config_digest);
    size_t config_len = doc.len;
    str_clear(&doc);
    str_addf(
        &doc,
        "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"config\":{\"mediaType\":"
        "\"application/vnd.oci.image.config.v1+json\",\"digest\":\"%s\",\"size\":%zu},\"layers\":[%s]}",
        config_digest, config_len, str_text(&list));
    blob_put(layout, doc.at, doc.len, ret_manifest);
    size_t manifest_len = doc.len;
    str_clear(&doc);
    str_addf(
        &doc,
        "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"digest\":"
        "\"%s\",\"size\":%zu,\"annotations\":{\"org.opencontainers.image.ref.name\":\"%s\"}}]}",
        ret_manifest, manifest_len, tag);
    (void)snprintf(path, sizeof path, "%s/index.json", layout);
    bytes_write(path, doc.at, doc.len);
    (void)snprintf(path, sizeof path, "%s/oci-layout", layout);
    bytes_write(path, "{\"imageLayoutVersion\":\"1.0.0\"}", 30);
}

/* Makes a layer with busybox under the names of some of its tools, and some directories; false: there is no static
 * busybox. */
static inline bool busybox_layer(struct str *tar)
{
    static const char *const names[] = {"sh",       "echo",  "cat",  "id", "sleep", "ls",
                                        "hostname", "touch", "true", "ps", "mount"};
    static const char *const places[] = {"/bin/busybox", "/usr/bin/busybox"};
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    for (size_t i = 0; !text && i < 2; i++)
        (void)tree_read(AT_FDCWD, places[i], (size_t)16 << 20, &text, &len);
    if (!text)
        return false;
    tar_add(tar, &(struct entry){.type = '5', .name = "bin/", .mode = 0755});
    tar_add(tar, &(struct entry){.type = '5', .name = "etc/", .mode = 0755});
    tar_add(tar, &(struct entry){.type = '5', .name = "tmp/", .mode = 01777});
    tar_add(tar, &(struct entry){.type = '0', .name = "bin/busybox", .mode = 0755, .data = text, .len = len});
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "bin/%s", names[i]);
        tar_add(tar, &(struct entry){.type = '2', .name = name, .link = "busybox", .mode = 0777});
    }
    tar_end(tar);
    return true;
}

/* ---- an agent's state directory --------------------------------------------------------------------------------- */

enum { FETCH_UID = 61236, FETCH_GID = 61237 };

struct image_kit {
    struct folder folder;
    struct state_dir *state_dir;
    struct berth_err err;
};

static inline int image_kit_setup(void **state)
{
    struct image_kit *k = mem_zalloc(sizeof *k);
    k->folder = folder_new();
    assert_int_equal(chmod(k->folder.path, 0711), 0); /* the fetch user may pass */
    if (state_dir_open(folder_at(&k->folder, "state"), &k->state_dir, &k->err))
        fail_msg("%s", k->err.text);
    if (geteuid() == 0)
        state_dir_set_fetcher(k->state_dir, FETCH_UID, FETCH_GID);
    *state = k;
    return 0;
}

static inline int image_kit_teardown(void **state)
{
    struct image_kit *k = *state;
    state_dir_free(k->state_dir);
    assert_int_equal(mounts_below_end(k->folder.path, NULL), 0);
    folder_cleanup(&k->folder);
    mem_free(k);
    return 0;
}

static inline json_t *json_of(const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_error_t wrong;
    json_t *doc = json_loads(text, 0, &wrong);
    if (!doc)
        fail_msg("%s: %s", text, wrong.text);
    return doc;
}

/* Skips the test if a program is missing, and prints its name. */
#define NEEDS(program)                                                                                                 \
    do {                                                                                                               \
        char path_[PATH_MAX];                                                                                          \
        if (tool_find(program, path_) < 0) {                                                                           \
            print_message("skip: there is no %s\n", program);                                                          \
            skip();                                                                                                    \
        }                                                                                                              \
        if (geteuid() != 0) {                                                                                          \
            print_message("skip: not root\n");                                                                         \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)
