/* bundle_gate.c - makes a container's root and mount sources accessible to root of its user namespace. */
#include "machine/container/bundle_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/mount/mount_tree.h"

#define ROOT "rootfs"
#define FLAGS_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

struct gate_build {
    const struct container_ids *inside;
    const struct bundle_options *options;
    struct arena *arena;
    struct bundle_gate *gate;
    int dir;  /* descriptor of the gate */
    int swap; /* user namespace that exchanges the ids of the owner and the container's user; -1: they are equal */
};

static int gate_path(const struct state_dir *p, uint64_t id, char ret[static STATE_PATH_MAX])
{
    char name[24];
    return state_dir_entry_path(p, GATE_FOLDER, str_u64(id, name), ret);
}

/* ---- file systems ----------------------------------------------------------------------------------------------- */

static int option_set(int fs, char *option)
{
    char *value = strchr(option, '=');
    if (value)
        *value++ = '\0';
    return fsconfig(fs, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, option, value, 0) < 0 ? -errno : 0;
}

/* Returns a new detached file system. `options` are separated by commas. */
static int fs_make(const char *type, const char *options, struct arena *arena, unsigned flags)
{
    char *rest = arena_strdup(arena, options);
    CLEANUP(close_fd) int fs = fsopen(type, FSOPEN_CLOEXEC);
    int rc = fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "source", "berth", 0) < 0 ? -errno : 0;
    for (char *one; rc == 0 && (one = strsep(&rest, ","));)
        rc = *one ? option_set(fs, one) : 0;
    if (rc == 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        rc = -errno;
    if (rc < 0)
        return rc;
    int tree = fsmount(fs, FSMOUNT_CLOEXEC, flags);
    return tree < 0 ? -errno : tree;
}

/* Replaces uid= and gid= of the owner by those of the container's user: the ids inside if the container mounts it, else
 * those on the node. */
static const char *options_of(const struct gate_build *m, const char *data, bool inside)
{
    const struct instance_user *owner = m->options->user;
    CLEANUP(str) struct str made = {0};
    char *rest = arena_strdup(m->arena, data ? data : "");
    char uid_was[32], gid_was[32];
    uint32_t uid = m->inside->user.uid, gid = m->inside->user.gid;
    if (!inside) { /* bundle.c has checked that they are mapped */
        (void)id_map_out(&m->inside->maps.uids, uid, &uid);
        (void)id_map_out(&m->inside->maps.gids, gid, &gid);
    }
    (void)snprintf(uid_was, sizeof uid_was, "uid=%u", (unsigned)owner->uid);
    (void)snprintf(gid_was, sizeof gid_was, "gid=%u", (unsigned)owner->gid);
    for (const char *one; (one = strsep(&rest, ","));) {
        str_add(&made, made.len ? "," : "");
        if (strcmp(one, uid_was) == 0)
            str_addf(&made, "uid=%" PRIu32, uid);
        else if (strcmp(one, gid_was) == 0)
            str_addf(&made, "gid=%" PRIu32, gid);
        else
            str_add(&made, one);
    }
    return arena_strdup(m->arena, str_text(&made));
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

/* Mounts a tree in the gate under `name`. Returns its path; NULL with errno on failure. */
static const char *show(const struct gate_build *m, int tree, const char *name)
{
    struct stat st;
    if (fstat(tree, &st) < 0)
        return NULL;
    if (S_ISDIR(st.st_mode)) {
        if (mkdirat(m->dir, name, 0700) < 0)
            return NULL;
    } else {
        CLEANUP(close_fd) int fd = openat(m->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return NULL;
    }
    if (move_mount(tree, "", m->dir, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return NULL;
    return arena_fmt(m->arena, "%s/%s", m->gate->path, name);
}

static int flags_set(int tree, uint64_t flags)
{
    struct mount_attr attr = {.attr_set = flags, .propagation = MS_PRIVATE};
    return mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ? -errno : 0;
}

static int bind_show(const struct gate_build *m, const struct launch_mount *from, const char *name,
                     struct launch_mount *ret, struct berth_err *err)
{
    struct statvfs st;
    CLEANUP(close_fd) int tree = userns_tree(AT_FDCWD, from->source, m->swap);
    if (tree == -EINVAL || tree == -EPERM || tree == -EOPNOTSUPP)
        return err_set(err, EOPNOTSUPP, "mount %s: its file system does not support ID-mapped mounts", from->target);
    int rc = tree < 0 ? tree : flags_set(tree, FLAGS_SAFE | (from->read_only ? (uint64_t)MOUNT_ATTR_RDONLY : 0));
    if (rc == 0 && fstatvfs(tree, &st) < 0)
        rc = -errno;
    const char *path = rc == 0 ? show(m, tree, name) : NULL;
    if (!path)
        return err_set(err, rc < 0 ? -rc : errno, "mount %s: cannot mount it into the container: %s", from->target,
                       strerror(rc < 0 ? -rc : errno));
    *ret = *from;
    ret->source = path;
    ret->read_only = from->read_only || (st.f_flag & ST_RDONLY);
    ret->data =
        /* the container's bind must repeat this locked flag, or the kernel rejects it */
        st.f_flag & ST_NOEXEC ? "noexec" : NULL;
    return 0;
}

static int pages_show(const struct gate_build *m, const struct launch_mount *from, const char *name,
                      struct launch_mount *ret, struct berth_err *err)
{
    CLEANUP(close_fd) int tree = fs_make(from->type, options_of(m, from->data, false), m->arena, FLAGS_SAFE);
    int rc = tree < 0 ? tree : flags_set(tree, 0);
    const char *path = rc == 0 ? show(m, tree, name) : NULL;
    if (!path)
        return err_set(err, rc < 0 ? -rc : errno, "mount %s: cannot create it: %s", from->target,
                       strerror(rc < 0 ? -rc : errno));
    *ret = (struct launch_mount){.source = path, .target = from->target, .read_only = from->read_only};
    return 0;
}

static int mounts_show(const struct gate_build *m, struct berth_err *err)
{
    const struct bundle_options *o = m->options;
    struct bundle_gate *g = m->gate;
    g->mounts = ARENA_ARRAY(m->arena, struct launch_mount, o->mounts_len + 1);
    for (size_t i = 0; i < o->mounts_len; i++) {
        const struct launch_mount *from = &o->mounts[i];
        struct launch_mount *to = &g->mounts[g->mounts_len++];
        char buf[24];
        const char *name = str_u64(i, buf);
        int rc = 0;
        if (!from->type || strcmp(from->type, "bind") == 0) {
            rc = bind_show(m, from, name, to, err);
        } else if (strcmp(from->type, "hugetlbfs") == 0) {
            rc = pages_show(m, from, name, to, err);
        } else {
            *to = *from;
            to->data = options_of(m, from->data, true);
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Creates the device file here, because root of a user namespace cannot, and a runtime would use other modes or bind
 * the node's file. */
static int device_show(const struct gate_build *m, size_t i)
{
    const struct nvml_file *d = &m->options->devices[i];
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .attr_clr = MOUNT_ATTR_NODEV, .propagation = MS_PRIVATE};
    char name[32];
    (void)snprintf(name, sizeof name, "dev-%zu", i);
    if (mknodat(m->dir, name, S_IFCHR | 0666, makedev(d->major, d->minor)) < 0 ||
        fchmodat(m->dir, name, 0666, 0) < 0) /* independent of the umask; only root can write to this directory */
        return -errno;
    CLEANUP(close_fd) int tree = userns_tree(m->dir, name, -1);
    if (tree < 0)
        return tree;
    if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ||
        move_mount(tree, "", m->dir, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -errno;
    m->gate->devices[i] = arena_fmt(m->arena, "%s/%s", m->gate->path, name);
    return 0;
}

static int devices_show(const struct gate_build *m, struct berth_err *err)
{
    m->gate->devices = ARENA_ARRAY(m->arena, const char *, m->options->devices_len + 1);
    for (size_t i = 0; i < m->options->devices_len; i++) {
        int rc = device_show(m, i);
        if (rc < 0)
            return err_set(err, userns_code(rc), "device %s: cannot create it: %s", m->options->devices[i].path,
                           strerror(-rc));
    }
    return 0;
}

static int fixed_show(const struct gate_build *m, int bundle, struct berth_err *err)
{
    CLEANUP(close_fd) int tree = userns_tree(bundle, ROOT, -1);
    CLEANUP(close_fd) int sys = userns_tree(AT_FDCWD, "/sys", -1);
    int rc = tree < 0 ? tree : flags_set(tree, FLAGS_SAFE);
    rc = rc < 0 ? rc : sys < 0 ? sys : flags_set(sys, FLAGS_SAFE | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
    if (rc == 0) {
        m->gate->root = show(m, tree, ROOT);
        m->gate->sys = m->gate->root ? show(m, sys, "sys") : NULL;
        rc = m->gate->sys ? 0 : -errno;
    }
    return rc < 0 ? err_set(err, -rc, "cannot mount the root of a container: %s", strerror(-rc)) : 0;
}

/* ---- gate ------------------------------------------------------------------------------------------------------- */

/* Tells whether the owner may enter every directory on the path; otherwise the runtime would fail. */
static bool owner_may_pass(const char *path, const struct instance_user *owner)
{
    char at[STATE_PATH_MAX];
    struct stat st;
    (void)snprintf(at, sizeof at, "%s", path);
    for (char *slash; (slash = strrchr(at, '/')) && slash != at;) {
        *slash = '\0';
        mode_t need = S_IXOTH;
        if (stat(at, &st) < 0)
            return false;
        if (st.st_uid == owner->uid)
            need = S_IXUSR;
        else if (st.st_gid == owner->gid)
            need = S_IXGRP;
        if (!(st.st_mode & need))
            return false;
    }
    return true;
}

/* Creates the gate owned by root until it is filled: changes by the owner meanwhile would be followed with root's
 * privileges. */
static int gate_open(struct gate_build *m, struct berth_err *err)
{
    const struct instance_user *owner = m->options->user;
    static const char options[] = "size=1m,nr_inodes=4096,mode=0100";
    CLEANUP(close_fd) int tree = -1;
    struct mount_attr private = {.propagation = MS_PRIVATE};
    if (!owner_may_pass(m->gate->path, owner))
        return err_set(err, EOPNOTSUPP, "a parent folder of %s is not accessible to others", m->gate->path);
    /* The directory below the mount stays after the gate is closed: runc changes into it for a program beside the
     * container. */
    if (mkdir(m->gate->path, 0700) < 0 || mkdir(arena_fmt(m->arena, "%s/" ROOT, m->gate->path), 0700) < 0)
        return err_set(err, errno, "cannot create %s: %s", m->gate->path, strerror(errno));
    tree = fs_make("tmpfs", options, m->arena, FLAGS_SAFE | MOUNT_ATTR_NOEXEC);
    /* Made private after attaching: a mount attached below a shared mount becomes shared. */
    if (tree < 0 || move_mount(tree, "", AT_FDCWD, m->gate->path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
        mount_setattr(tree, "", AT_EMPTY_PATH, &private, sizeof private) < 0)
        return err_set(err, tree < 0 ? -tree : errno, "cannot mount %s: %s", m->gate->path,
                       strerror(tree < 0 ? -tree : errno));
    m->dir = take_fd(&tree);
    return 0;
}

static int swap_open(struct gate_build *m, struct berth_err *err)
{
    const struct instance_user *owner = m->options->user;
    struct userns_maps swap;
    uint32_t uid = owner->uid, gid = owner->gid;
    (void)id_map_out(&m->inside->maps.uids, m->inside->user.uid, &uid);
    (void)id_map_out(&m->inside->maps.gids, m->inside->user.gid, &gid);
    if (uid == owner->uid && gid == owner->gid)
        return 0;
    id_map_swap(owner->uid, uid, &swap.uids);
    id_map_swap(owner->gid, gid, &swap.gids);
    m->swap = userns_open(&swap);
    return m->swap < 0 ? err_set(err, userns_code(m->swap),
                                 "cannot create a namespace for the files of the image's user: %s", strerror(-m->swap))
                       : 0;
}

/* Makes the gate read-only and gives it to the owner, who may then enter it. The owner is changed through a detached
 * copy of the mount that is still writable. */
static int gate_chown(const struct gate_build *m)
{
    const struct instance_user *owner = m->options->user;
    CLEANUP(close_fd) int apart = userns_tree(m->dir, "", -1);
    int rc = apart < 0 ? apart : flags_set(m->dir, MOUNT_ATTR_RDONLY);
    return rc < 0 ? rc : fchownat(apart, "", owner->uid, owner->gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int gate_fill(struct gate_build *m, int bundle, struct berth_err *err)
{
    int rc = gate_open(m, err);
    rc = rc < 0 ? rc : swap_open(m, err);
    rc = rc < 0 ? rc : fixed_show(m, bundle, err);
    rc = rc < 0 ? rc : mounts_show(m, err);
    rc = rc < 0 ? rc : devices_show(m, err);
    if (rc < 0)
        return rc;
    rc = gate_chown(m);
    return rc < 0 ? err_set(err, -rc, "cannot close %s: %s", m->gate->path, strerror(-rc)) : 0;
}

int gate_make(struct state_dir *p, uint64_t id, int bundle, const struct container_ids *inside,
              const struct bundle_options *options, struct arena *arena, struct bundle_gate *ret, struct berth_err *err)
{
    struct gate_build m = {.inside = inside, .options = options, .arena = arena, .gate = ret, .dir = -1, .swap = -1};
    *ret = (struct bundle_gate){0};
    int rc = gate_path(p, id, ret->path);
    if (rc < 0)
        return err_set(err, -rc, "the path of the agent's folder is too long");
    rc = gate_fill(&m, bundle, err);
    close_fd_cleanup(&m.dir);
    close_fd_cleanup(&m.swap);
    if (rc < 0)
        (void)gate_end(p, id, NULL);
    return rc;
}

void gate_close(struct state_dir *p, uint64_t id)
{
    char path[STATE_PATH_MAX];
    if (gate_path(p, id, path) == 0)
        (void)mounts_below_end(path, NULL);
}

int gate_end(struct state_dir *p, uint64_t id, struct berth_err *err)
{
    char path[STATE_PATH_MAX];
    int rc = gate_path(p, id, path);
    if (rc < 0)
        return err_set(err, -rc, "the path of the agent's folder is too long");
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    CLEANUP(close_fd) int dir = -1;
    rc = mounts_below_end(path, err);
    if (rc < 0)
        return rc;
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)unlinkat(dir, ROOT, AT_REMOVEDIR); /* on failure rmdir below reports the error */
    return rmdir(path) == 0 || errno == ENOENT ? 0 : err_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
}
