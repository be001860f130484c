/* image.c - finds images of containers, or pulls and unpacks them, once each. */
#include "machine/image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "machine/image/image_layout.h"
#include "machine/image/image_parts.h"
#include "machine/mount/mount_tree.h"
#include "net/tls/tls.h"
#include "wire/text/document.h"

enum { CONFIG_MAX = 4 << 20 };

static bool controllers_are_mixed(void)
{
    struct statfs st;
    CLEANUP(close_fd) int fd = open("/sys/fs/cgroup/unified/cgroup.controllers", O_RDONLY | O_CLOEXEC);
    char some = '\n';
    return fd >= 0 && fstatfs(fd, &st) == 0 && st.f_type == CGROUP2_SUPER_MAGIC && read(fd, &some, 1) == 1 &&
           some != '\n';
}

static const char *first_program(const char *const *places)
{
    for (; *places; places++)
        if (access(*places, X_OK) == 0)
            return *places;
    return NULL;
}

const char *oci_runtime_find(void)
{
    static const char *const cruns[] = {"/usr/local/bin/crun", "/usr/bin/crun", "/usr/local/sbin/crun",
                                        "/usr/sbin/crun", NULL};
    static const char *const runcs[] = {"/usr/local/bin/runc", "/usr/bin/runc", "/usr/local/sbin/runc",
                                        "/usr/sbin/runc", NULL};
    const char *crun = controllers_are_mixed() ? NULL : first_program(cruns);
    return crun ? crun : first_program(runcs);
}

/* ---- local images ----------------------------------------------------------------------------------------------- */

int images_open(const struct state_dir *p, const char *folder)
{
    char path[STATE_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/images", state_dir_path(p));
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!folder)
        return take_fd(&fd);
    CLEANUP(close_fd) int in = tree_folder(fd, folder, 0700);
    /* the parent is searchable by others; this directory must not be, whichever process created it */
    if (in >= 0 && fchmod(in, 0700) < 0)
        return -errno;
    return take_fd(&in);
}

static const char *unpacked_name(const char *digest, char buf[static IMAGE_DIGEST_MAX])
{
    (void)snprintf(buf, IMAGE_DIGEST_MAX, "sha256-%.64s", digest + strlen("sha256:"));
    return buf;
}

int unpacked_open(const struct state_dir *p, const char *digest)
{
    char name[IMAGE_DIGEST_MAX];
    CLEANUP(close_fd) int all = images_open(p, "unpacked");
    return all < 0 ? all : tree_open(all, unpacked_name(digest, name), O_RDONLY | O_DIRECTORY, 0);
}

void unpacked_touch(int unpacked)
{
    (void)utimensat(unpacked, "used", NULL, 0); /* if this fails, the image only seems older */
}

static const char *ref_name(const struct image_name *name, char buf[static IMAGE_NAME_MAX])
{
    (void)snprintf(buf, IMAGE_NAME_MAX, "%s", name->name);
    for (char *at = buf; *at; at++)
        if (*at == '/')
            *at = '+'; /* '+' is invalid in image names */
    return buf;
}

int ref_read(const struct state_dir *p, const struct image_name *name, char ret[static IMAGE_DIGEST_MAX],
             int64_t *ret_at)
{
    char file[IMAGE_NAME_MAX];
    CLEANUP(close_fd) int refs = images_open(p, "refs");
    CLEANUP(mem) char *text = NULL;
    struct stat st;
    int rc = refs < 0 ? refs : tree_read(refs, ref_name(name, file), IMAGE_DIGEST_MAX, &text, NULL);
    if (rc < 0)
        return rc;
    if (!image_digest_valid(text) || fstatat(refs, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -ENOENT;
    CLEANUP(close_fd) int unpacked = unpacked_open(p, text);
    if (unpacked < 0)
        return unpacked;
    unpacked_touch(unpacked);
    (void)snprintf(ret, IMAGE_DIGEST_MAX, "%s", text);
    if (ret_at)
        *ret_at = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    return 0;
}

int ref_write(const struct state_dir *p, const struct image_name *name, const char *digest)
{
    char file[IMAGE_NAME_MAX];
    CLEANUP(close_fd) int refs = images_open(p, "refs");
    return refs < 0 ? refs : tree_write(refs, ref_name(name, file), digest, strlen(digest), geteuid(), getegid(), 0600);
}

/* ---- one pull at a time for each image -------------------------------------------------------------------------- */

/* Locks the byte of the file STATE/images/lock at the hash of the name. Held until the descriptor is closed. */
static int name_lock(const struct state_dir *p, const char *name)
{
    CLEANUP(close_fd) int images = images_open(p, NULL);
    if (images < 0)
        return images;
    CLEANUP(close_fd) int fd = openat(images, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    struct flock lock = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(hash_bytes(name, strlen(name), 0) >> 2),
        .l_len = 1,
    };
    while (fcntl(fd, F_OFD_SETLKW, &lock) < 0)
        if (errno != EINTR)
            return -errno;
    return take_fd(&fd);
}

/* A temporary directory, removed in any case. */
struct scratch_dir {
    int images, fd;
    char name[64];
};

static void scratch_cleanup(struct scratch_dir *s)
{
    close_fd_cleanup(&s->fd);
    if (s->images >= 0 && *s->name)
        (void)tree_remove(s->images, s->name); /* images_trim removes what is left */
    close_fd_cleanup(&s->images);
}

static int scratch_make(const struct state_dir *p, struct scratch_dir *s)
{
    s->images = images_open(p, NULL);
    if (s->images < 0)
        return s->images;
    for (unsigned i = 0; i < 10000; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "tmp-%" PRIu64 "-%u", state_dir_epoch(p), i);
        if (mkdirat(s->images, name, 0700) == 0) {
            memcpy(s->name, name, sizeof name);
            s->fd = tree_open(s->images, name, O_RDONLY | O_DIRECTORY, 0);
            return s->fd < 0 ? s->fd : 0;
        }
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

/* Publishes the unpacked image by rename. An image of the same digest that was published first is kept instead. */
static int unpacked_publish(const struct state_dir *p, const struct scratch_dir *s, const char *digest)
{
    char name[IMAGE_DIGEST_MAX];
    CLEANUP(close_fd) int all = images_open(p, "unpacked");
    if (all < 0)
        return all;
    if (renameat2(s->fd, "unpacked", all, unpacked_name(digest, name), RENAME_NOREPLACE) < 0 && errno != EEXIST)
        return -errno;
    return fsync(all) < 0 ? -errno : 0;
}

static int unpack(struct state_dir *p, struct scratch_dir *s, int layout, const char *path, const char *manifest,
                  const char *digest, const char *name, struct berth_err *err)
{
    int rc = pull_unpack(p, layout, path, manifest, s->fd, name, err);
    if (rc < 0)
        return rc;
    rc = unpacked_publish(p, s, digest);
    return rc < 0 ? err_set(err, -rc, "cannot store image %s: %s", name, strerror(-rc)) : 0;
}

/* ---- pulling ---------------------------------------------------------------------------------------------------- */

static int named_pull(struct state_dir *p, const struct image_name *n, struct berth_err *err)
{
    CLEANUP(scratch) struct scratch_dir s = {.images = -1, .fd = -1};
    CLEANUP(pull)
    struct image_pull pull = {
        .fetch = {.folder = -1, .secrets = -1}
    };
    char digest[IMAGE_DIGEST_MAX], manifest[IMAGE_DIGEST_MAX];
    int rc = scratch_make(p, &s);
    if (rc < 0)
        return err_set(err, -rc, "cannot pull image %s: cannot create its folder: %s", n->name, strerror(-rc));
    rc = pull_begin(p, n, s.fd, &pull, err);
    rc = rc < 0 ? rc : pull_resolve(&pull, digest, err);
    if (rc < 0)
        return rc;
    CLEANUP(close_fd) int here = unpacked_open(p, digest);
    if (here < 0) {
        rc = pull_fetch(&pull, digest, manifest, err);
        if (rc < 0)
            return rc;
        CLEANUP(close_fd) int layout = tree_open(s.fd, "pull", O_RDONLY | O_DIRECTORY, 0);
        if (layout < 0)
            return err_set(err, -layout, "cannot pull image %s: %s", n->name, strerror(-layout));
        /* Links are relative to layout/blobs/sha256. */
        rc = unpack(p, &s, layout, "../../../pull", manifest, digest, n->name, err);
        if (rc < 0)
            return rc;
    } else {
        unpacked_touch(here);
    }
    rc = ref_write(p, n, digest);
    return rc < 0 ? err_set(err, -rc, "cannot store image %s: %s", n->name, strerror(-rc)) : 0;
}

/* Not the coarse clock: times of files may be finer, and would then lie in its future. */
static int64_t clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int named_ensure(struct state_dir *p, const struct image_name *n, struct berth_err *err)
{
    char digest[IMAGE_DIGEST_MAX];
    int64_t asked_ns = clock_ns(), at_ns = 0;
    if (!n->pull_always && ref_read(p, n, digest, NULL) == 0)
        return 0;
    CLEANUP(close_fd) int lock = name_lock(p, n->name);
    if (lock < 0)
        return err_set(err, -lock, "cannot pull image %s: cannot lock it: %s", n->name, strerror(-lock));
    /* Another thread may have pulled it while this one waited for the lock; that counts for both. */
    if (ref_read(p, n, digest, &at_ns) == 0 && (!n->pull_always || at_ns > asked_ns))
        return 0;
    return named_pull(p, n, err);
}

static int layout_open(const struct image_name *n, int *ret, char ret_manifest[static IMAGE_DIGEST_MAX],
                       struct berth_err *err)
{
    CLEANUP(close_fd) int layout = open(n->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (layout < 0)
        return err_set(err, errno, "image oci:%s: cannot open the layout on this node: %s", n->path, strerror(errno));
    int rc = layout_find(layout, n->tag, n->path, ret_manifest, err);
    if (rc == 0)
        *ret = take_fd(&layout);
    return rc;
}

/* Locks the image of this key: returns 1 if it exists, 0 if the caller must create it in the scratch directory while it
 * holds the lock. `verb` and `scheme` are for errors. */
static int keep_begin(const struct state_dir *p, const char *key, const char *verb, const char *scheme,
                      const struct image_name *n, int *ret_lock, struct scratch_dir *s, struct berth_err *err)
{
    *ret_lock = name_lock(p, key);
    if (*ret_lock < 0)
        return err_set(err, -*ret_lock, "cannot %s image %s%.180s: cannot lock it: %s", verb, scheme, n->path,
                       strerror(-*ret_lock));
    CLEANUP(close_fd) int here = unpacked_open(p, key);
    if (here >= 0) {
        unpacked_touch(here);
        return 1;
    }
    int rc = scratch_make(p, s);
    return rc < 0 ? err_set(err, -rc, "cannot %s image %s%.180s: cannot create its folder: %s", verb, scheme, n->path,
                            strerror(-rc))
                  : 0;
}

static int layout_ensure(struct state_dir *p, const struct image_name *n, struct berth_err *err)
{
    CLEANUP(close_fd) int layout = -1;
    CLEANUP(close_fd) int lock = -1;
    CLEANUP(scratch) struct scratch_dir s = {.images = -1, .fd = -1};
    char manifest[IMAGE_DIGEST_MAX];
    int rc = layout_open(n, &layout, manifest, err);
    if (rc < 0)
        return rc;
    rc = keep_begin(p, manifest, "unpack", "oci:", n, &lock, &s, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    return unpack(p, &s, layout, n->path, manifest, manifest, n->path, err);
}

/* Returns the key of a virtual disk. Not the digest of the disk itself: its content could be chosen to have the digest
 * of a manifest, and would then pass as that image. */
static int url_key(const struct image_name *n, char ret[static IMAGE_DIGEST_MAX], struct berth_err *err)
{
    char text[IMAGE_DIGEST_MAX + 8], sum[SHA256_TEXT_MAX];
    int len = snprintf(text, sizeof text, "disk %s", n->digest);
    int rc = sha256_text(text, (size_t)len, sum, err);
    (void)snprintf(ret, IMAGE_DIGEST_MAX, "sha256:%.64s", sum);
    return rc;
}

static int url_ensure(struct state_dir *p, const struct image_name *n, struct berth_err *err)
{
    CLEANUP(close_fd) int lock = -1;
    CLEANUP(scratch) struct scratch_dir s = {.images = -1, .fd = -1};
    char key[IMAGE_DIGEST_MAX];
    int rc = url_key(n, key, err);
    if (rc < 0)
        return rc;
    rc = keep_begin(p, key, "fetch", "", n, &lock, &s, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = url_fetch(p, n, s.fd, err);
    if (rc < 0)
        return rc;
    rc = unpacked_publish(p, &s, key);
    return rc < 0 ? err_set(err, -rc, "cannot store image %.180s: %s", n->path, strerror(-rc)) : 0;
}

/* Rejects a directory that contains the agent's state: a copy of it would contain itself. */
static int folder_open(const struct state_dir *p, const struct image_name *n, int *ret, struct berth_err *err)
{
    char path[PATH_MAX];
    CLEANUP(close_fd) int fd = open(n->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !realpath(n->path, path))
        return err_set(err, errno, "rootfs %s: cannot open it on this node: %s", n->path, strerror(errno));
    size_t len = strlen(path);
    if (strncmp(state_dir_path(p), path, len) == 0 &&
        (len == 1 || state_dir_path(p)[len] == '/' || state_dir_path(p)[len] == '\0'))
        return err_set(err, EINVAL, "rootfs %s: must not contain the agent's state folder; choose another folder",
                       n->path);
    *ret = take_fd(&fd);
    return 0;
}

int image_ensure(struct state_dir *p, const json_t *config, struct berth_err *err)
{
    struct image_name n;
    CLEANUP(close_fd) int folder = -1;
    int rc = image_name_read(config, &n, err);
    if (rc < 0)
        return rc;
    switch (n.kind) {
    case IMAGE_FOLDER: return folder_open(p, &n, &folder, err);
    case IMAGE_LAYOUT: return layout_ensure(p, &n, err);
    case IMAGE_NAMED: return named_ensure(p, &n, err);
    case IMAGE_FILE: return file_open(n.path, "image", &folder, err);
    case IMAGE_URL: return url_ensure(p, &n, err);
    case IMAGE_NONE: break;
    }
    return 0; /* a virtual machine that boots only a kernel */
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static int digest_find(struct state_dir *p, const struct image_name *n, char ret[static IMAGE_DIGEST_MAX],
                       struct berth_err *err)
{
    CLEANUP(close_fd) int layout = -1;
    if (n->kind == IMAGE_LAYOUT)
        return layout_open(n, &layout, ret, err);
    if (n->kind == IMAGE_URL)
        return url_key(n, ret, err);
    int rc = ref_read(p, n, ret, NULL);
    return rc < 0 ? err_set(err, ENOENT, "image %s is not on this node: it must be pulled first", n->name) : 0;
}

int image_open(struct state_dir *p, const json_t *config, int *ret_root, json_t **ret_config,
               char ret_digest[static 72], struct berth_err *err)
{
    struct image_name n;
    char digest[IMAGE_DIGEST_MAX] = "";
    int rc = image_name_read(config, &n, err);
    if (rc < 0)
        return rc;
    if (n.kind == IMAGE_FOLDER) {
        rc = folder_open(p, &n, ret_root, err);
        if (rc < 0)
            return rc;
        *ret_digest = '\0';
        if (ret_config)
            *ret_config = json_object();
        return 0;
    }
    rc = digest_find(p, &n, digest, err);
    if (rc < 0)
        return rc;
    CLEANUP(close_fd) int unpacked = unpacked_open(p, digest);
    if (unpacked < 0)
        return err_set(err, ENOENT, "image %s is not unpacked on this node: it must be unpacked first", digest);
    CLEANUP(close_fd) int root = tree_open(unpacked, "rootfs", O_RDONLY | O_DIRECTORY, 0);
    CLEANUP(mem) char *text = NULL;
    rc = root < 0 ? root : flock(root, LOCK_SH) < 0 ? -errno : 0;
    /* Another process may have removed the image before this one locked it: then its path no longer exists. */
    CLEANUP(close_fd) int again = rc < 0 ? -1 : unpacked_open(p, digest);
    rc = rc < 0 ? rc : again < 0 ? again : tree_read(unpacked, "config.json", CONFIG_MAX, &text, NULL);
    if (rc < 0)
        return err_set(err, -rc, "image %s: cannot open the unpacked image: %s", digest, strerror(-rc));
    json_t *doc = json_loads(text, 0, NULL);
    if (!doc)
        return err_set(err, EIO, "image %s: cannot read its stored configuration", digest);
    unpacked_touch(unpacked);
    memcpy(ret_digest, digest, sizeof digest);
    *ret_root = take_fd(&root);
    if (ret_config)
        *ret_config = doc;
    else
        json_decref(doc);
    return 0;
}
