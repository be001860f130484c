/* mounts.c - mount namespace of an instance with its volumes and files.
 *
 * All steps use descriptors: a mount is created or cloned detached, gets its flags, and is moved onto its target. The
 * target is resolved one path component at a time from the root; symbolic links are rejected, because the workload may
 * have made them. A missing target is created in a tmpfs over its parent directory and not on the node, where an empty
 * file may have a meaning (/etc/nologin). Needs Linux 5.12.
 */
#include "shim/shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/launch/proc_view.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* ---- source ----------------------------------------------------------------------------------------------------- */

static int option_set(int fs, const char *option, size_t len)
{
    char key[256], *value;

    if (len == 0)
        return 0;
    if (len >= sizeof key)
        return -EINVAL;
    memcpy(key, option, len);
    key[len] = 0;
    value = strchr(key, '=');
    if (value)
        *value++ = 0;
    return fsconfig(fs, value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, key, value, 0) ? -errno : 0;
}

static int fs_make(const struct launch_mount *m)
{
    CLEANUP(close_fd) int fs = fsopen(m->type, FSOPEN_CLOEXEC);
    int tree, rc = fs < 0 ? -errno : 0;

    if (rc == 0 && m->source && fsconfig(fs, FSCONFIG_SET_STRING, "source", m->source, 0))
        rc = -errno;
    for (const char *at = m->data; rc == 0 && at && *at;) {
        size_t len = strcspn(at, ",");

        rc = option_set(fs, at, len);
        at += len + (at[len] == ',');
    }
    if (rc == 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        rc = -errno;
    if (rc)
        return rc;
    tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (m->read_only ? MOUNT_ATTR_RDONLY : 0));
    return tree < 0 ? -errno : tree;
}

static int bind_make(const struct launch_mount *m)
{
    CLEANUP(close_fd) int tree = open_tree(AT_FDCWD, m->source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | (m->read_only ? (uint64_t)MOUNT_ATTR_RDONLY : 0)};

    if (tree < 0)
        return -errno;
    if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr))
        return -errno;
    return take_fd(&tree);
}

/* ---- target ----------------------------------------------------------------------------------------------------- */

enum { COVERS_MAX = 64 };
struct covering_devices {
    dev_t at[COVERS_MAX];
    size_t len;
};

static int step(int dir, const char *name, uint64_t flags)
{
    struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC | flags,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, dir, name, &how, sizeof how);
    struct stat st;

    if (fd < 0) {
        int code = errno;

        return code == ENOTDIR && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) ? -ELOOP
                                                                                                           : -code;
    }
    /* O_PATH with O_NOFOLLOW opens the link itself. */
    if (fstat((int)fd, &st) || S_ISLNK(st.st_mode)) {
        close((int)fd);
        return -ELOOP;
    }
    return (int)fd;
}

static int entry_make(int dir, const char *name, bool is_folder)
{
    int fd;

    if (is_folder)
        return mkdirat(dir, name, 0755) && errno != EEXIST ? -errno : 0;
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return errno == EEXIST ? 0 : -errno;
    close(fd);
    return 0;
}

static int entry_make_as(const struct launch *l, int dir, const char *name, bool is_folder)
{
    int rc;

    (void)setfsgid(l->gid);
    (void)setfsuid(l->uid);
    rc = entry_make(dir, name, is_folder);
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    return rc;
}

/* Makes an entry of one directory appear in another under the same name: copies a link, bind-mounts everything else. */
static int entry_show(int from, int to, const char *name)
{
    CLEANUP(close_fd) int tree = -1;
    char target[4096];
    struct stat st;
    ssize_t len;
    int rc;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
        return errno == ENOENT ? 0 : -errno;
    if (S_ISLNK(st.st_mode)) {
        len = readlinkat(from, name, target, sizeof target - 1);
        if (len < 0)
            return -errno;
        target[len] = 0;
        return symlinkat(target, to, name) ? -errno : 0;
    }
    rc = entry_make(to, name, S_ISDIR(st.st_mode));
    if (rc)
        return rc;
    tree = open_tree(from, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
    return tree < 0 || move_mount(tree, "", to, name, MOVE_MOUNT_F_EMPTY_PATH) ? -errno : 0;
}

static void dir_cleanup(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static int all_show(DIR *from, int to)
{
    const struct dirent *e;
    int rc = 0;

    while (rc == 0 && (errno = 0, e = readdir(from)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = entry_show(dirfd(from), to, e->d_name);
    return rc ? rc : -errno;
}

/* Mounts a private tmpfs over the directory that shows all its entries and has room for more. */
static int cover(struct covering_devices *c, int *at)
{
    char data[64];
    struct stat st;
    int list = openat(*at, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(dir) DIR *dir = list < 0 ? NULL : fdopendir(list);
    CLEANUP(close_fd) int tree = -1;
    int rc;

    if (!dir || fstat(*at, &st))
        return -errno;
    if (c->len == COVERS_MAX)
        return -E2BIG;
    (void)snprintf(data, sizeof data, "size=1m,mode=%o,uid=%u,gid=%u", (unsigned)st.st_mode & 07777, st.st_uid,
                   st.st_gid);
    tree = fs_make(&(struct launch_mount){.type = "tmpfs", .source = "tmpfs", .data = data});
    if (tree < 0)
        return tree;
    if (move_mount(tree, "", *at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) || fstat(tree, &st))
        return -errno;
    rc = all_show(dir, tree);
    if (rc)
        return rc;
    c->at[c->len++] = st.st_dev;
    close(*at);
    *at = take_fd(&tree);
    return 0;
}

static bool is_cover(const struct covering_devices *c, int at)
{
    struct stat st;

    for (size_t i = 0; fstat(at, &st) == 0 && i < c->len; i++)
        if (c->at[i] == st.st_dev)
            return true;
    return false;
}

/* Creates a missing component of a target path. The node's file system changes only where the instance's user may
 * write, with one exception: an empty directory in "/", which cannot be covered by a tmpfs. */
static int missing_make(const struct launch *l, struct covering_devices *c, int *at, const char *name, bool is_folder,
                        bool top)
{
    int rc = entry_make_as(l, *at, name, is_folder);

    if (rc != -EACCES && rc != -EPERM && rc != -EROFS)
        return rc;
    if (top)
        return is_folder && name[0] != '.' ? entry_make(*at, name, true) : rc;
    if (!is_cover(c, *at)) {
        rc = cover(c, at);
        if (rc)
            return rc;
    }
    return entry_make(*at, name, is_folder);
}

static int target_open(const struct launch *l, struct covering_devices *c, const char *path, bool is_folder)
{
    CLEANUP(close_fd) int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool top = true;

    if (at < 0)
        return -errno;
    if (*path != '/')
        return -EINVAL;
    for (path += strspn(path, "/"); *path; top = false) {
        size_t len = strcspn(path, "/");
        const char *next = path + len + strspn(path + len, "/");
        bool folder = *next || is_folder;
        char name[256];
        int fd, rc;

        if (len >= sizeof name)
            return -ENAMETOOLONG;
        memcpy(name, path, len);
        name[len] = 0;
        if (strcmp(name, "..") == 0)
            return -EINVAL;
        fd = step(at, name, folder ? O_DIRECTORY : 0);
        if (fd == -ENOENT) {
            rc = missing_make(l, c, &at, name, folder, top);
            fd = rc ? rc : step(at, name, folder ? O_DIRECTORY : 0);
        }
        if (fd < 0)
            return fd;
        close(at);
        at = fd;
        path = next;
    }
    return take_fd(&at);
}

/* ---- namespace -------------------------------------------------------------------------------------------------- */

static int mount_one(const struct launch *l, struct covering_devices *c, const struct launch_mount *m,
                     struct berth_err *err)
{
    bool is_bind = !m->type || strcmp(m->type, "bind") == 0;
    CLEANUP(close_fd) int tree = is_bind ? bind_make(m) : fs_make(m);
    CLEANUP(close_fd) int target = -1;
    struct stat st;

    if (tree < 0)
        return err_set(err, -tree, "cannot mount '%s': %s", is_bind ? m->source : m->type, strerror(-tree));
    if (fstat(tree, &st))
        return err_set(err, errno, "cannot stat '%s': %s", m->source, strerror(errno));
    target = target_open(l, c, m->target, S_ISDIR(st.st_mode));
    if (target == -ELOOP)
        return err_set(err, ELOOP, "the path of '%s' contains a symbolic link; use the path of the mount without links",
                       m->target);
    if (target < 0)
        return err_set(err, -target, "cannot mount at '%s': %s", m->target, strerror(-target));
    if (move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
        return err_set(err, errno, "cannot mount at '%s': %s", m->target, strerror(errno));
    return 0;
}

static int processes_hide(struct berth_err *err)
{
    CLEANUP(close_fd) int tree = proc_view_make();

    if (tree >= 0 && move_mount(tree, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) == 0)
        return 0;
    return err_set(err, tree < 0 ? -tree : errno, "cannot hide the processes of other users: %s",
                   strerror(tree < 0 ? -tree : errno));
}

int mounts_enter(const struct launch *l, struct berth_err *err)
{
    struct covering_devices covers = {.len = 0};
    int rc = 0;

    if (geteuid() == 0 && setgroups(l->groups_len, l->groups)) /* for entries that are created as the user */
        return err_set(err, errno, "cannot set the groups of user %u: %s", (unsigned)l->uid, strerror(errno));
    /* An instance without mounts of its own receives later mounts of the node (slave propagation). */
    if (unshare(CLONE_NEWNS) ||
        mount(NULL, "/", NULL, MS_REC | (l->mounts_len > 0 ? (unsigned long)MS_PRIVATE : (unsigned long)MS_SLAVE),
              NULL))
        return err_set(err, errno, "cannot create a mount namespace: %s", strerror(errno));
    for (size_t i = 0; rc == 0 && i < l->mounts_len; i++)
        rc = mount_one(l, &covers, &l->mounts[i], err);
    return rc == 0 && l->hide_processes ? processes_hide(err) : rc;
}
