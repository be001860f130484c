/* image_pull.c - pulls an image from a registry or a layout into a directory.
 *
 * skopeo fetches as an unprivileged user (image_fetch.h); umoci unpacks as root, because it sets file owners. Results
 * of skopeo are accepted only as far as digests verify them, in a directory that is removed unless everything succeeds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/image/image_layout.h"
#include "machine/image/image_parts.h"
#include "machine/image/oci_tool.h"
#include "machine/mount/mount_tree.h"
#include "net/tls/tls.h"
#include "wire/text/document.h"

#define SECOND_NS INT64_C(1000000000)
enum { RESOLVE_S = 60, FETCH_S = 1800, UNPACK_S = 1800, ARGS_MAX = 24 };
/* Above this size tool_run drops output in blocks of 4 KiB. */
enum { MANIFEST_BYTES_MAX = TOOL_OUT_MAX - 4096 };

struct tool_args {
    const char *at[ARGS_MAX];
    size_t len;
};

static void tool_arg_add(struct tool_args *a, const char *text)
{
    if (a->len < ARGS_MAX - 1)
        a->at[a->len++] = text;
}

/* Returns 2 % of the disk, between 64 MiB and 1 GiB; on disks smaller than 1.6 GiB 2 %. */
uint64_t spare_bytes(int dir)
{
    struct statvfs v;
    uint64_t part = fstatvfs(dir, &v) == 0 ? (uint64_t)v.f_blocks * v.f_frsize / 50 : 0, most = UINT64_C(1) << 30;
    uint64_t least = UINT64_C(64) << 20;
    if (part > most)
        part = most;
    return part < least && part * 2 > least ? least : part;
}

void pull_cleanup(struct image_pull *pull)
{
    fetch_cleanup(&pull->fetch);
    str_done(&pull->document);
}

int pull_begin(const struct state_dir *p, const struct image_name *name, int tmp, struct image_pull *ret,
               struct berth_err *err)
{
    *ret = (struct image_pull){
        .state_dir = p, .name = name, .tmp = tmp, .fetch = {.folder = -1, .secrets = -1}
    };
    return fetch_begin(p, tmp, &ret->fetch, err);
}

/* ---- running skopeo --------------------------------------------------------------------------------------------- */

struct skopeo {
    struct tool_args args;
    char authfile[STATE_PATH_MAX], source[IMAGE_NAME_MAX + IMAGE_DIGEST_MAX + 16], what[IMAGE_NAME_MAX + 32];
};

/* Builds the common arguments. Signatures are verified if the administrator has a policy; without a policy file skopeo
 * would reject every image. */
static int skopeo_begin(struct image_pull *pull, struct skopeo *s, const char *verb, struct berth_err *err)
{
    char path[STATE_PATH_MAX];
    tool_arg_add(&s->args, "skopeo");
    if (access("/etc/containers/policy.json", R_OK) < 0)
        tool_arg_add(&s->args, "--insecure-policy");
    tool_arg_add(&s->args, verb);
    (void)snprintf(s->what, sizeof s->what, "cannot pull image %s", pull->name->name);
    int n = snprintf(path, sizeof path, "%s/registries.json", state_dir_path(pull->state_dir));
    int rc = n < 0 || (size_t)n >= sizeof path ? -ENAMETOOLONG : fetch_secrets(&pull->fetch, path, s->authfile);
    if (rc < 0 && rc != -ENOENT)
        return err_set(err, -rc, "%s: cannot read the agent's registries.json: %s", s->what, strerror(-rc));
    if (rc == 0) {
        tool_arg_add(&s->args, "--authfile");
        tool_arg_add(&s->args, s->authfile);
    }
    return 0;
}

/* Fetches a manifest or index byte for byte: the one with `digest` or, if that is "", the one of the name's tag. */
static int document_fetch(struct image_pull *pull, const char *digest, struct str *ret, struct berth_err *err)
{
    struct skopeo s = {0};
    int rc = skopeo_begin(pull, &s, "inspect", err);
    if (rc < 0)
        return rc;
    tool_arg_add(&s.args, "--raw");
    if (pull->name->plain_http)
        tool_arg_add(&s.args, "--tls-verify=false");
    if (*digest)
        (void)snprintf(s.source, sizeof s.source, "docker://%s@%s", pull->name->repository, digest);
    else
        (void)snprintf(s.source, sizeof s.source, "docker://%s", pull->name->name);
    tool_arg_add(&s.args, s.source);
    rc = fetch_run(&pull->fetch, &(struct tool){.argv = s.args.at, .timeout_ns = RESOLVE_S * SECOND_NS, .what = s.what},
                   ret, err);
    if (rc == 0 && ret->len > MANIFEST_BYTES_MAX)
        return err_set(err, EFBIG, "%s: its manifest is larger than %d bytes", s.what, MANIFEST_BYTES_MAX);
    return rc;
}

static int digest_of(const char *text, size_t len, char ret[static IMAGE_DIGEST_MAX], struct berth_err *err)
{
    char sum[SHA256_TEXT_MAX];
    int rc = sha256_text(text, len, sum, err);
    if (rc == 0)
        (void)snprintf(ret, IMAGE_DIGEST_MAX, "sha256:%s", sum);
    return rc;
}

int pull_resolve(struct image_pull *pull, char ret[static IMAGE_DIGEST_MAX], struct berth_err *err)
{
    if (*pull->name->digest) {
        (void)snprintf(ret, IMAGE_DIGEST_MAX, "%s", pull->name->digest);
        return 0;
    }
    int rc = document_fetch(pull, "", &pull->document, err);
    if (rc == 0 && !pull->document.len)
        return err_set(err, EIO, "cannot pull image %s: the registry does not have it", pull->name->name);
    return rc < 0 ? rc : digest_of(str_text(&pull->document), pull->document.len, ret, err);
}

/* ---- results of skopeo ------------------------------------------------------------------------------------------ */

/* Copies the image unchanged ("dir:" also keeps the manifest's bytes). */
static int image_copy(struct image_pull *pull, const char *digest, struct berth_err *err)
{
    struct skopeo s = {0};
    int rc = skopeo_begin(pull, &s, "copy", err);
    if (rc < 0)
        return rc;
    tool_arg_add(&s.args, "--quiet");
    if (pull->name->plain_http)
        tool_arg_add(&s.args, "--src-tls-verify=false");
    (void)snprintf(s.source, sizeof s.source, "docker://%s@%s", pull->name->repository, digest);
    tool_arg_add(&s.args, s.source);
    tool_arg_add(&s.args, "dir:pull");
    const struct image_bounds bounds = image_bounds(pull->state_dir);
    const struct tool t = {.argv = s.args.at,
                           .timeout_ns = FETCH_S * SECOND_NS,
                           .spare_bytes = spare_bytes(pull->fetch.folder),
                           .bytes_max = bounds.image_bytes,
                           .entries_max = bounds.image_files,
                           .what = s.what};
    return fetch_run(&pull->fetch, &t, NULL, err);
}

/* Verifies the manifest: it has the digest itself, or is listed by an index with that digest. */
static int manifest_check(struct image_pull *pull, const char *digest, const char *text, size_t len,
                          struct berth_err *err)
{
    char is[IMAGE_DIGEST_MAX], index[IMAGE_DIGEST_MAX];
    int rc = digest_of(text, len, is, err);
    if (rc < 0 || strcmp(is, digest) == 0)
        return rc;
    if (!pull->document.len)
        rc = document_fetch(pull, digest, &pull->document, err);
    if (rc == 0)
        rc = digest_of(str_text(&pull->document), pull->document.len, index, err);
    if (rc < 0)
        return rc;
    if (strcmp(index, digest) == 0 && index_lists(str_text(&pull->document), pull->document.len, is))
        return 0;
    return err_set(err, EBADMSG, "cannot pull image %s: the download does not match %s", pull->name->name, digest);
}

struct blob_import {
    const struct image_pull *pull;
    struct berth_err *err;
};

static int part_take(void *ctx, const char *digest, uint64_t size, int blobs)
{
    const struct blob_import *t = ctx;
    const struct image_pull *pull = t->pull;
    const char *hex = digest + strlen("sha256:");
    char path[96];
    (void)snprintf(path, sizeof path, "pull/%s", hex);
    int rc = fetch_take(&pull->fetch, path, size, digest, blobs, hex);
    if (rc == -ENOSPC)
        return err_set(t->err, ENOSPC, "cannot pull image %s: the disk is full", pull->name->name);
    return rc == 0 ? 0
                   : err_set(t->err, -rc, "cannot pull image %s: %s %s", pull->name->name, digest,
                             rc == -EBADMSG  ? "does not match its digest"
                             : rc == -EINVAL ? "is not a regular file"
                                             : strerror(-rc));
}

int pull_fetch(struct image_pull *pull, const char *digest, char ret_manifest[static IMAGE_DIGEST_MAX],
               struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    int rc = image_copy(pull, digest, err);
    if (rc < 0)
        return rc;
    rc = fetch_read(&pull->fetch, "pull/manifest.json", MANIFEST_BYTES_MAX, &text, &len);
    if (rc < 0)
        return err_set(err, -rc, "cannot pull image %s: skopeo left no manifest: %s", pull->name->name, strerror(-rc));
    rc = manifest_check(pull, digest, text, len, err);
    if (rc < 0)
        return rc;
    CLEANUP(close_fd) int layout = tree_folder(pull->tmp, "pull", 0700);
    if (layout < 0)
        return err_set(err, -layout, "cannot pull image %s: cannot create a folder: %s", pull->name->name,
                       strerror(-layout));
    return layout_make(text, len, layout, pull->name->name, part_take, &(struct blob_import){pull, err}, ret_manifest,
                       err);
}

/* ---- unpacking -------------------------------------------------------------------------------------------------- */

static int config_write(int unpacked, const json_t *config)
{
    char *text = json_dumps(config, JSON_COMPACT);
    if (!text)
        return -EINVAL;
    int rc = tree_write(unpacked, "config.json", text, strlen(text), geteuid(), getegid(), 0600);
    free(text);
    return rc;
}

int unpacked_complete(int unpacked, const json_t *config)
{
    CLEANUP(close_fd) int root = tree_open(unpacked, "rootfs", O_RDONLY | O_DIRECTORY, 0);
    if (root < 0)
        return root;
    char text[24];
    uint64_t bytes = 0;
    int rc = tree_bytes(root, &bytes);
    rc = rc < 0 ? rc : config_write(unpacked, config);
    (void)snprintf(text, sizeof text, "%" PRIu64, bytes);
    rc = rc < 0 ? rc : tree_write(unpacked, "bytes", text, strlen(text), geteuid(), getegid(), 0600);
    rc = rc < 0 ? rc : tree_write(unpacked, "used", "", 0, geteuid(), getegid(), 0600);
    return rc < 0 ? rc : syncfs(unpacked) < 0 ? -errno : 0;
}

int pull_unpack(const struct state_dir *p, int layout, const char *path, const char *manifest, int tmp,
                const char *name, struct berth_err *err)
{
    CLEANUP(close_fd) int taken = tree_folder(tmp, "layout", 0700);
    CLEANUP(close_fd) int unpacked = tree_folder(tmp, "unpacked", 0700);
    if (taken < 0 || unpacked < 0)
        return err_set(err, taken < 0 ? -taken : -unpacked, "image %s: cannot create a folder: %s", name,
                       strerror(taken < 0 ? -taken : -unpacked));
    CLEANUP(json) json_t *config = NULL;
    int rc = layout_take(layout, path, manifest, taken, name, &config, err);
    if (rc < 0)
        return rc;
    char what[IMAGE_PATH_MAX + 64];
    (void)snprintf(what, sizeof what, "cannot unpack image %s", name);
    const char *const argv[] = {"umoci", "raw", "unpack", "--image", "layout:image", "unpacked/rootfs", NULL};
    const struct image_bounds bounds = image_bounds(p);
    const struct tool t = {.argv = argv,
                           .dir = tmp,
                           .timeout_ns = UNPACK_S * SECOND_NS,
                           .spare_bytes = spare_bytes(tmp),
                           .bytes_max = bounds.image_bytes,
                           .entries_max = bounds.image_files,
                           .what = what};
    rc = tool_run(&t, NULL, err);
    if (rc < 0)
        return rc;
    rc = unpacked_complete(unpacked, config);
    return rc < 0 ? err_set(err, -rc, "%s: %s", what, strerror(-rc)) : 0;
}
