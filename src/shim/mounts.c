/* mounts.c - a mount namespace of the instance's own, with its volumes and files in it.
 *
 * Everything goes by descriptors: a tree is made or copied where nobody sees it, given its flags, and moved onto its
 * target, which was reached a name at a time from the root. A link on that way is refused: it may be the workload's, and
 * what is missing is made as root. Needs Linux 5.12.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* ---- the target ---- */

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
    /* O_PATH opens a link itself. */
    if (fstat((int)fd, &st) || S_ISLNK(st.st_mode)) {
        close((int)fd);
        return -ELOOP;
    }
    return (int)fd;
}

static int step_or_make(int dir, const char *name, bool is_folder)
{
    int fd = step(dir, name, is_folder ? O_DIRECTORY : 0);

    if (fd != -ENOENT)
        return fd;
    if (is_folder) {
        if (mkdirat(dir, name, 0755) && errno != EEXIST)
            return -errno;
    } else {
        fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0 && errno != EEXIST)
            return -errno;
        close_fd_cleanup(&fd);
    }
    return step(dir, name, is_folder ? O_DIRECTORY : 0);
}

static int target_open(const char *path, bool is_folder)
{
    CLEANUP(close_fd) int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (at < 0)
        return -errno;
    if (*path != '/')
        return -EINVAL;
    for (path += strspn(path, "/"); *path;) {
        size_t len = strcspn(path, "/");
        const char *next = path + len + strspn(path + len, "/");
        char name[256];
        int fd;

        if (len >= sizeof name)
            return -ENAMETOOLONG;
        memcpy(name, path, len);
        name[len] = 0;
        if (strcmp(name, "..") == 0)
            return -EINVAL;
        fd = step_or_make(at, name, *next || is_folder);
        if (fd < 0)
            return fd;
        close(at);
        at = fd;
        path = next;
    }
    return take_fd(&at);
}

/* ---- the source ---- */

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

/* ---- both ---- */

static int mount_one(const struct launch_mount *m, struct berth_err *err)
{
    bool is_bind = !m->type || strcmp(m->type, "bind") == 0;
    CLEANUP(close_fd) int tree = is_bind ? bind_make(m) : fs_make(m);
    CLEANUP(close_fd) int target = -1;
    struct stat st;

    if (tree < 0)
        return err_set(err, -tree, "cannot mount '%s': %s", is_bind ? m->source : m->type, strerror(-tree));
    if (fstat(tree, &st))
        return err_set(err, errno, "cannot look at '%s': %s", m->source, strerror(errno));
    target = target_open(m->target, S_ISDIR(st.st_mode));
    if (target == -ELOOP)
        return err_set(err, ELOOP, "a link is on the way to '%s'; write the path of the mount without links",
                       m->target);
    if (target < 0)
        return err_set(err, -target, "cannot mount at '%s': %s", m->target, strerror(-target));
    if (move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH))
        return err_set(err, errno, "cannot mount at '%s': %s", m->target, strerror(errno));
    return 0;
}

int mounts_enter(const struct launch *l, struct berth_err *err)
{
    int rc = 0;

    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return err_set(err, errno, "cannot make a mount namespace: %s", strerror(errno));
    for (size_t i = 0; rc == 0 && i < l->mounts_len; i++)
        rc = mount_one(&l->mounts[i], err);
    return rc;
}
