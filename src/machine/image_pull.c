/* image_pull.c - from a registry or a layout to a folder: skopeo fetches and umoci unpacks, both of them well kept and wary of
 * what they are given; this file tells them what, in a folder that is thrown away unless all went well. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/image_layout.h"
#include "machine/image_parts.h"
#include "machine/mount_tree.h"
#include "machine/oci_tool.h"
#include "wire/document.h"

#define SECOND_NS INT64_C(1000000000)
enum { RESOLVE_S = 60, FETCH_S = 1800, UNPACK_S = 1800, ARGS_MAX = 24 };

struct args {
    const char *at[ARGS_MAX];
    size_t len;
};

static void arg(struct args *a, const char *text)
{
    if (a->len < ARGS_MAX - 1)
        a->at[a->len++] = text;
}

/* Two hundredth parts of the disk, at least 64 MiB, stay free: a full disk would stop everything on this node. */
static uint64_t spare_bytes(int dir)
{
    struct statvfs v;
    uint64_t part = fstatvfs(dir, &v) == 0 ? (uint64_t)v.f_blocks * v.f_frsize / 50 : 0, most = UINT64_C(1) << 30;
    uint64_t least = UINT64_C(64) << 20;
    if (part > most)
        part = most;
    return part < least && part * 2 > least ? least : part;
}

/* Signatures are asked for where the administrator has a policy; without a file skopeo would refuse everything. */
static void skopeo_args(const struct place *p, struct args *a, const char *verb, char authfile[static PLACE_PATH_MAX])
{
    arg(a, "skopeo");
    if (access("/etc/containers/policy.json", R_OK) < 0)
        arg(a, "--insecure-policy");
    arg(a, verb);
    int n = snprintf(authfile, PLACE_PATH_MAX, "%s/registries.json", place_dir(p));
    if (n > 0 && n < PLACE_PATH_MAX && access(authfile, R_OK) == 0) {
        arg(a, "--authfile");
        arg(a, authfile);
    }
}

int pull_resolve(const struct place *p, const struct image_name *name, int tmp, char ret[static IMAGE_DIGEST_MAX],
                 struct berth_err *err)
{
    if (*name->digest) {
        (void)snprintf(ret, IMAGE_DIGEST_MAX, "%s", name->digest);
        return 0;
    }
    char authfile[PLACE_PATH_MAX], source[IMAGE_NAME_MAX + 16], what[IMAGE_NAME_MAX + 32];
    struct args a = {0};
    skopeo_args(p, &a, "inspect", authfile);
    arg(&a, "--no-tags");
    arg(&a, "--format");
    arg(&a, "{{.Digest}}");
    if (name->plain_http)
        arg(&a, "--tls-verify=false");
    (void)snprintf(source, sizeof source, "docker://%s", name->name);
    arg(&a, source);
    (void)snprintf(what, sizeof what, "cannot pull image %s", name->name);
    CLEANUP(str) struct str out = {0};
    int rc = tool_run(&(struct tool){.argv = a.at, .dir = tmp, .timeout_ns = RESOLVE_S * SECOND_NS, .what = what}, &out,
                      err);
    if (rc < 0)
        return rc;
    char digest[IMAGE_DIGEST_MAX] = "";
    (void)snprintf(digest, sizeof digest, "%.*s", (int)strcspn(str_text(&out), "\n"), str_text(&out));
    if (!image_digest_valid(digest))
        return err_set(err, EIO, "%s: the registry names no digest of it", what);
    memcpy(ret, digest, sizeof digest);
    return 0;
}

int pull_fetch(const struct place *p, const struct image_name *name, const char *digest, int tmp, struct berth_err *err)
{
    char authfile[PLACE_PATH_MAX], source[IMAGE_NAME_MAX + IMAGE_DIGEST_MAX + 16], what[IMAGE_NAME_MAX + 32];
    struct args a = {0};
    skopeo_args(p, &a, "copy", authfile);
    arg(&a, "--quiet");
    if (name->plain_http)
        arg(&a, "--src-tls-verify=false");
    (void)snprintf(source, sizeof source, "docker://%s@%s", name->repository, digest);
    arg(&a, source);
    arg(&a, "oci:pull:image");
    (void)snprintf(what, sizeof what, "cannot pull image %s", name->name);
    const struct tool t = {
        .argv = a.at, .dir = tmp, .timeout_ns = FETCH_S * SECOND_NS, .spare_bytes = spare_bytes(tmp), .what = what};
    return tool_run(&t, NULL, err);
}

static int config_keep(int unpacked, const json_t *config)
{
    char *text = json_dumps(config, JSON_COMPACT);
    if (!text)
        return -EINVAL;
    int rc = tree_write(unpacked, "config.json", text, strlen(text), geteuid(), getegid(), 0600);
    free(text);
    return rc;
}

/* Beside the root: what the image says, how large it is, when it was used. On disk before it can be found by its name. */
static int unpacked_complete(int unpacked, const json_t *config)
{
    CLEANUP(close_fd) int root = tree_open(unpacked, "rootfs", O_RDONLY | O_DIRECTORY, 0);
    if (root < 0)
        return root;
    char text[24];
    uint64_t bytes = 0;
    int rc = tree_bytes(root, &bytes);
    rc = rc < 0 ? rc : config_keep(unpacked, config);
    (void)snprintf(text, sizeof text, "%" PRIu64, bytes);
    rc = rc < 0 ? rc : tree_write(unpacked, "bytes", text, strlen(text), geteuid(), getegid(), 0600);
    rc = rc < 0 ? rc : tree_write(unpacked, "used", "", 0, geteuid(), getegid(), 0600);
    return rc < 0 ? rc : syncfs(unpacked) < 0 ? -errno : 0;
}

int pull_unpack(int layout, const char *path, const char *manifest, int tmp, const char *name, struct berth_err *err)
{
    CLEANUP(close_fd) int taken = tree_folder(tmp, "layout", 0700);
    CLEANUP(close_fd) int unpacked = tree_folder(tmp, "unpacked", 0700);
    if (taken < 0 || unpacked < 0)
        return err_set(err, taken < 0 ? -taken : -unpacked, "image %s: cannot make a folder: %s", name,
                       strerror(taken < 0 ? -taken : -unpacked));
    CLEANUP(json) json_t *config = NULL;
    int rc = layout_take(layout, path, manifest, taken, name, &config, err);
    if (rc < 0)
        return rc;
    char what[IMAGE_PATH_MAX + 64];
    (void)snprintf(what, sizeof what, "cannot unpack image %s", name);
    const char *const argv[] = {"umoci", "raw", "unpack", "--image", "layout:image", "unpacked/rootfs", NULL};
    const struct tool t = {
        .argv = argv, .dir = tmp, .timeout_ns = UNPACK_S * SECOND_NS, .spare_bytes = spare_bytes(tmp), .what = what};
    rc = tool_run(&t, NULL, err);
    if (rc < 0)
        return rc;
    rc = unpacked_complete(unpacked, config);
    return rc < 0 ? err_set(err, -rc, "%s: %s", what, strerror(-rc)) : 0;
}
