/* volume.c - locates or creates the data of a mount on this node. */
#include "machine/mount/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/mount/mount_tree.h"

/* Creates a volume under a temporary name until its owner is set, so that a crash leaves no volume with the wrong
 * owner. */
static int local_make(int volumes, const char *name, const struct instance_user *user)
{
    char fresh[160];
    (void)snprintf(fresh, sizeof fresh, ".new-%s", name);
    if (mkdirat(volumes, fresh, 0700) < 0 && errno != EEXIST)
        return -errno;
    /* ENOENT: another thread has just created the same volume. */
    if (geteuid() == 0 && fchownat(volumes, fresh, user->uid, user->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (renameat2(volumes, fresh, volumes, name, RENAME_NOREPLACE) < 0) {
        int rc = errno == EEXIST || errno == ENOENT ? 0 : -errno;
        (void)unlinkat(volumes, fresh, AT_REMOVEDIR);
        return rc;
    }
    return fsync(volumes) < 0 ? -errno : 0;
}

int volume_local(struct state_dir *p, const char *name, const struct instance_user *user,
                 char ret[static STATE_PATH_MAX], struct berth_err *err)
{
    char path[STATE_PATH_MAX], top[STATE_PATH_MAX];
    int rc = state_dir_entry_path(p, "volumes", name, path);
    if (rc < 0)
        return err_set(err, EINVAL, "volume %s: invalid name", name);
    memcpy(top, path, sizeof top);
    *strrchr(top, '/') = '\0';
    CLEANUP(close_fd) int volumes = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (volumes < 0)
        return err_set(err, errno, "volume %s: cannot open %s: %s", name, top, strerror(errno));
    CLEANUP(close_fd) int fd = tree_open(volumes, name, O_PATH | O_DIRECTORY, 0);
    rc = fd == -ENOENT ? local_make(volumes, name, user) : fd == -EXDEV ? 0 : fd; /* -EXDEV: a disk is mounted there */
    if (rc == -ENOTDIR || rc == -ELOOP)
        return err_set(err, ENOTDIR, "volume %s: %s is not a folder", name, path);
    if (rc < 0)
        return err_set(err, -rc, "volume %s: cannot create it: %s", name, strerror(-rc));
    memcpy(ret, path, sizeof path);
    return 0;
}

/* Creates the mount point, which must be a directory or a file like its source. */
static int point_make(int binds, const char *name, bool folder)
{
    if (folder)
        return mkdirat(binds, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
    CLEANUP(close_fd) int fd = openat(binds, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : 0;
}

static int bind_pin(int fd, const char *at, bool read_only)
{
    char from[32];
    (void)snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    unsigned long flags = MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV | (read_only ? (unsigned long)MS_RDONLY : 0);
    if (mount(from, at, NULL, MS_BIND, NULL) < 0)
        return -errno;
    if (mount(NULL, at, NULL, MS_PRIVATE, NULL) < 0 || mount(NULL, at, NULL, flags, NULL) < 0) {
        int rc = -errno;
        (void)umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW);
        return rc;
    }
    return 0;
}

int volume_pin(struct state_dir *p, uint64_t id, size_t index, const char *source, bool read_only,
               char ret[static STATE_PATH_MAX], struct berth_err *err)
{
    char path[STATE_PATH_MAX], name[24];
    struct stat st;
    int rc = instance_dir_path(p, id, "binds", path);
    size_t len = strlen(path);
    if (rc < 0 || len + sizeof name >= sizeof path)
        return err_set(err, ENAMETOOLONG, "the path of the agent's folder is too long");
    (void)snprintf(name, sizeof name, "%zu", index);
    (void)snprintf(path + len, sizeof path - len, "/%s", name);
    CLEANUP(close_fd) int fd = tree_open_real(source, O_PATH);
    if (fd == -ELOOP)
        return err_set(err, ELOOP, "bind %s: the path contains a symbolic link; use its target", source);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, fd < 0 ? -fd : errno, "bind %s: cannot open it on this node: %s", source,
                       strerror(fd < 0 ? -fd : errno));
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return err_set(err, EINVAL, "bind %s: is neither a folder nor a file", source);
    CLEANUP(close_fd) int instance = tree_open_instance(p, id);
    CLEANUP(close_fd) int binds = instance < 0 ? instance : tree_folder(instance, "binds", 0700);
    rc = binds < 0 ? binds : point_make(binds, name, S_ISDIR(st.st_mode));
    rc = rc < 0 ? rc : bind_pin(fd, path, read_only);
    if (rc < 0)
        return err_set(err, -rc, "bind %s: cannot mount it: %s", source, strerror(-rc));
    memcpy(ret, path, sizeof path);
    return 0;
}
