/* image_trim.c - removes unused images, and what crashes have left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "machine/image/image_parts.h"
#include "machine/mount/mount_tree.h"

struct stored_image {
    char name[IMAGE_DIGEST_MAX]; /* sha256-HEX */
    int64_t used_ns;
    uint64_t bytes;
    bool in_use;
};

struct image_inventory {
    struct state_dir *state_dir;
    VEC(struct stored_image) at;
    uint64_t bytes;
};

static void image_inventory_cleanup(struct image_inventory *s)
{
    vec_done(&s->at);
}

static void dir_cleanup(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

/* Calls `each` for every name in a directory that does not start with a dot. */
static void names_each(int folder, void (*each)(void *ctx, int folder, const char *name), void *ctx)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(dir) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    while (dir && (e = readdir(dir)))
        if (e->d_name[0] != '.')
            each(ctx, folder, e->d_name);
}

/* ---- inventory -------------------------------------------------------------------------------------------------- */

static void stored_image_add(void *ctx, int folder, const char *name)
{
    struct image_inventory *s = ctx;
    struct stored_image k = {0};
    struct stat st;
    CLEANUP(mem) char *text = NULL;
    int64_t bytes = 0;
    if (strlen(name) >= sizeof k.name)
        return;
    (void)snprintf(k.name, sizeof k.name, "%s", name);
    CLEANUP(close_fd) int fd = tree_open(folder, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return;
    if (fstatat(fd, "used", &st, AT_SYMLINK_NOFOLLOW) == 0)
        k.used_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
    if (tree_read(fd, "bytes", 32, &text, NULL) == 0 && str_parse_i64(text, &bytes) && bytes > 0)
        k.bytes = (uint64_t)bytes;
    s->bytes += k.bytes;
    vec_push(&s->at, k);
}

static void mark_used(void *ctx, uint64_t id)
{
    struct image_inventory *s = ctx;
    char path[STATE_PATH_MAX];
    CLEANUP(mem) char *text = NULL;
    if (instance_dir_path(s->state_dir, id, "bundle", path) < 0)
        return;
    CLEANUP(close_fd) int bundle = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (bundle < 0 || tree_read(bundle, "image", IMAGE_DIGEST_MAX, &text, NULL) < 0 || !image_digest_valid(text))
        return;
    for (size_t i = 0; i < s->at.len; i++)
        if (strcmp(s->at.at[i].name + strlen("sha256-"), text + strlen("sha256:")) == 0)
            s->at.at[i].in_use = true;
}

static int older(const void *a, const void *b)
{
    const struct stored_image *x = a, *y = b;
    if (x->used_ns != y->used_ns)
        return x->used_ns < y->used_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* ---- removal ---------------------------------------------------------------------------------------------------- */

/* Renames the image first, so that a partly removed one is never used; a crash in between leaves a temporary directory
 * of an earlier epoch. */
static bool stored_image_remove(struct image_inventory *s, int images, int unpacked, const struct stored_image *k)
{
    char away[64 + IMAGE_DIGEST_MAX], root_name[IMAGE_DIGEST_MAX + 16];
    (void)snprintf(root_name, sizeof root_name, "%s/rootfs", k->name);
    CLEANUP(close_fd) int root = tree_open(unpacked, root_name, O_RDONLY | O_DIRECTORY, 0);
    if (root < 0 || flock(root, LOCK_EX | LOCK_NB) < 0)
        return false; /* a bundle is being made from it */
    struct image_inventory now = {.state_dir = s->state_dir};
    vec_push(&now.at, *k);
    (void)instance_dirs_each(s->state_dir, mark_used, &now);
    bool in_use = now.at.at[0].in_use;
    vec_done(&now.at);
    (void)snprintf(away, sizeof away, "tmp-%" PRIu64 "-%s", state_dir_epoch(s->state_dir), k->name);
    if (in_use || renameat(unpacked, k->name, images, away) < 0)
        return false;
    (void)tree_remove(images, away);
    return true;
}

static void remove_stale_image(void *ctx, int images, const char *name)
{
    const struct image_inventory *s = ctx;
    char *end = NULL;
    if (strncmp(name, "tmp-", 4) != 0)
        return;
    errno = 0;
    uint64_t epoch = strtoull(name + 4, &end, 10);
    if (errno == 0 && end != name + 4 && *end == '-' && epoch < state_dir_epoch(s->state_dir))
        (void)tree_remove(images, name);
}

/* Removes a name whose image is gone. */
static void ref_check(void *ctx, int refs, const char *name)
{
    const struct image_inventory *s = ctx;
    CLEANUP(mem) char *text = NULL;
    if (tree_read(refs, name, IMAGE_DIGEST_MAX, &text, NULL) < 0)
        return;
    CLEANUP(close_fd) int unpacked = image_digest_valid(text) ? unpacked_open(s->state_dir, text) : -ENOENT;
    if (unpacked == -ENOENT)
        (void)unlinkat(refs, name, 0);
}

void images_trim(struct state_dir *p, uint64_t bytes_max)
{
    CLEANUP(image_inventory) struct image_inventory s = {.state_dir = p};
    CLEANUP(close_fd) int images = images_open(p, NULL);
    CLEANUP(close_fd) int unpacked = images_open(p, "unpacked");
    CLEANUP(close_fd) int refs = images_open(p, "refs");
    if (images < 0 || unpacked < 0 || refs < 0)
        return;
    names_each(images, remove_stale_image, &s);
    names_each(unpacked, stored_image_add, &s);
    if (s.at.len)
        qsort(s.at.at, s.at.len, sizeof *s.at.at, older);
    (void)instance_dirs_each(p, mark_used, &s);
    for (size_t i = 0; i < s.at.len && s.bytes > bytes_max; i++)
        /* vectors: stored_image_remove pushes only to a vector of its own */
        if (!s.at.at[i].in_use && stored_image_remove(&s, images, unpacked, &s.at.at[i]))
            s.bytes -= s.at.at[i].bytes;
    names_each(refs, ref_check, &s);
}
