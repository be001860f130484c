/* mount.c - creates the mounts of an instance. */
#include "machine/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/cgroup/hugepage.h"
#include "machine/image/image.h"
#include "machine/mount/mount_files.h"
#include "machine/mount/mount_plan.h"
#include "machine/mount/mount_tree.h"
#include "machine/mount/volume.h"

static const char *const folders[] = {"binds", "secrets", "files"};

/* ---- creation --------------------------------------------------------------------------------------------------- */

static bool is_container(const json_t *config)
{
    const char *runtime = json_string_value(json_object_get(config, "runtime"));
    if (runtime)
        return strcmp(runtime, "oci") == 0;
    return json_is_string(json_object_get(config, "image")) || json_is_string(json_object_get(config, "rootfs"));
}

/* Opens the directory that becomes the instance's "/". */
static int root_open(struct state_dir *p, const json_t *config, int *ret, struct berth_err *err)
{
    char digest[72];
    if (is_container(config))
        return image_open(p, config, ret, NULL, digest, err);
    *ret = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? err_set(err, errno, "cannot open /: %s", strerror(errno)) : 0;
}

static int mount_make(struct state_dir *p, uint64_t id, size_t index, const struct plan_mount *m,
                      const struct instance_user *user, struct arena *arena, struct launch_mount *ret,
                      struct berth_err *err)
{
    char path[STATE_PATH_MAX];
    int rc = 0;
    *ret = (struct launch_mount){.target = m->path, .read_only = m->read_only};
    switch (m->kind) {
    case PLAN_LOCAL: rc = volume_local(p, m->volume, user, path, err); break;
    case PLAN_BIND: rc = volume_pin(p, id, index, m->source, m->read_only, path, err); break;
    case PLAN_TMPFS:
        ret->type = ret->source = "tmpfs";
        ret->data = arena_fmt(arena, "size=%" PRId64 ",mode=0700,uid=%u,gid=%u", m->bytes, user->uid, user->gid);
        return 0;
    }
    if (rc == 0)
        ret->source = arena_strdup(arena, path);
    return rc;
}

static int target_compare(const void *a, const void *b)
{
    return strcmp(((const struct launch_mount *)a)->target, ((const struct launch_mount *)b)->target);
}

static int all_make(const struct file_set *s, const json_t *config, struct arena *arena, struct launch_mount *list,
                    size_t *len, struct berth_err *err)
{
    const struct mount_plan *plan = s->plan;
    CLEANUP(close_fd) int root = -1;
    int rc = plan->files_len ? root_open(s->state_dir, config, &root, err) : 0;
    for (size_t i = 0; rc == 0 && i < plan->mounts_len; i++) {
        rc = mount_make(s->state_dir, s->id, i, &plan->mounts[i], s->user, arena, &list[*len], err);
        *len += rc == 0;
    }
    if (rc == 0 && (plan->files_len || plan->settings))
        rc = files_make(s, root, arena, list, len, err);
    return rc;
}

/* Appends the mounts of huge pages to the list, and the variables with their paths to `env`. */
static int pages_add(const struct file_set *s, const json_t *config, struct arena *arena, struct launch_mount *list,
                     size_t *len, const char **env, struct berth_err *err)
{
    struct hugepages pages[HUGEPAGE_SIZES_MAX];
    size_t pages_len = hugepages_read(config, pages);
    if (pages_len && geteuid() != 0)
        return err_set(err, EPERM, "huge pages need an agent that runs as root");
    hugepages_mounts(pages, pages_len, s->user, arena, &list[*len], env);
    for (size_t i = 0; i < pages_len; i++)
        for (size_t k = 0; k < *len; k++)
            if (strcmp(list[k].target, list[*len + i].target) == 0)
                return err_set(err, EINVAL, "%s is the mount point of its huge pages; choose another path",
                               list[k].target);
    *len += pages_len;
    return 0;
}

/* Appends to the existing variables. */
static void env_add(const struct file_set *s, struct arena *arena, const char **env)
{
    char path[STATE_PATH_MAX];
    while (*env)
        env++;
    if (s->plan->settings && geteuid() == 0)
        env[0] = "BERTH_SETTINGS=" SETTINGS_FOLDER "/" SETTINGS_FILE;
    else if (s->plan->settings && instance_dir_path(s->state_dir, s->id, "files", path) == 0)
        env[0] = arena_fmt(arena, "BERTH_SETTINGS=%s/settings/" SETTINGS_FILE, path);
}

int mounts_make(struct state_dir *p, uint64_t id, const json_t *config, const struct instance_user *user,
                secret_find *find, void *ctx, struct arena *arena, struct launch_mount **ret, size_t *ret_len,
                const char ***ret_env, struct berth_err *err)
{
    struct mount_plan plan;
    int rc = mount_plan_read(config, arena, &plan, err);
    if (rc < 0)
        return rc;
    const struct file_set s = {.state_dir = p, .id = id, .plan = &plan, .user = user, .find = find, .ctx = ctx};
    if (geteuid() != 0 && (plan.mounts_len || plan.files_len))
        return err_set(err, EPERM, "mounts and files need an agent that runs as root");
    rc = files_check(&s, err);
    if (rc < 0)
        return rc;
    rc = mounts_end(p, id, err); /* left by a crash */
    if (rc < 0)
        return rc;
    struct launch_mount *list =
        ARENA_ARRAY(arena, struct launch_mount, plan.mounts_len + plan.files_len + 1 + HUGEPAGE_SIZES_MAX);
    const char **env = ARENA_ARRAY(arena, const char *, HUGEPAGE_SIZES_MAX + 2);
    size_t len = 0;
    rc = all_make(&s, config, arena, list, &len, err);
    if (rc == 0)
        rc = pages_add(&s, config, arena, list, &len, env, err);
    if (rc < 0) {
        (void)mounts_end(p, id, NULL);
        return rc;
    }
    /* Parent directories come before their subdirectories. */
    qsort(list, len, sizeof *list, target_compare);
    *ret = list;
    *ret_len = len;
    env_add(&s, arena, env);
    *ret_env = env;
    return 0;
}

int mounts_change(struct state_dir *p, uint64_t id, const json_t *config, const struct instance_user *user,
                  secret_find *find, void *ctx, struct berth_err *err)
{
    struct arena arena;
    struct mount_plan plan;
    arena_init(&arena);
    int rc = mount_plan_read(config, &arena, &plan, err);
    const struct file_set s = {.state_dir = p, .id = id, .plan = &plan, .user = user, .find = find, .ctx = ctx};
    rc = rc < 0 ? rc : files_check(&s, err);
    rc = rc < 0 ? rc : files_change(&s, err);
    arena_done(&arena);
    return rc;
}

/* ---- removal ---------------------------------------------------------------------------------------------------- */

/* Removes the secrets' content, because a copy of the mount may exist in another namespace for a while. Only if the
 * directory is the tmpfs. */
static int secrets_empty(int instance)
{
    struct stat here, above;
    CLEANUP(close_fd) int fd = openat(instance, "secrets", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (fstat(fd, &here) < 0 || fstat(instance, &above) < 0)
        return -errno;
    return here.st_dev == above.st_dev ? 0 : tree_empty(fd);
}

int mounts_end(struct state_dir *p, uint64_t id, struct berth_err *err)
{
    CLEANUP(close_fd) int instance = tree_open_instance(p, id);
    if (instance == -ENOENT)
        return 0;
    if (instance < 0)
        return err_set(err, -instance, "cannot open the folder of instance %" PRIu64 ": %s", id, strerror(-instance));
    int rc = secrets_empty(instance);
    if (rc < 0)
        return err_set(err, -rc, "cannot remove the secrets of instance %" PRIu64 ": %s", id, strerror(-rc));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[STATE_PATH_MAX];
        rc = instance_dir_path(p, id, folders[i], path);
        if (rc < 0)
            return err_set(err, -rc, "the path of the agent's folder is too long");
        if (faccessat(instance, folders[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        rc = mounts_below_end(path, err);
        if (rc < 0)
            return rc;
        rc = tree_remove(instance, folders[i]);
        if (rc < 0)
            return err_set(err, -rc, "cannot remove %s: %s", path, strerror(-rc));
    }
    return 0;
}
