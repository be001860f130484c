#include "machine/container/user_move.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/mount/mount_tree.h"

struct user_move {
    const struct user_numbers *from, *to;
};

/* Returns the new number for an old one. */
static uint32_t moved(const struct user_move *m, uint32_t number)
{
    const struct user_range *from = &m->from->more, *to = &m->to->more;
    if (number == m->from->own)
        return m->to->own;
    if (number >= from->first && number - from->first < from->count && number - from->first < to->count)
        return to->first + (number - from->first);
    return number;
}

/* Changes the ownership by descriptor, so that the file cannot be exchanged between the check and the change. */
static int number_change(const struct user_move *m, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    uid_t uid = moved(m, st.st_uid);
    gid_t gid = moved(m, st.st_gid);
    if (uid == st.st_uid && gid == st.st_gid)
        return 0;
    return fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int entry_move(void *ctx, int folder, const char *name)
{
    CLEANUP(close_fd) int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    return number_change(ctx, fd);
}

/* Changes the content before the directory itself: a directory with its new number is complete. */
static int folder_move(struct user_move *m, int parent, const char *name)
{
    CLEANUP(close_fd) int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
    int rc = tree_each(fd, entry_move, m);
    if (rc == 0)
        rc = number_change(m, fd);
    return rc == 0 && syncfs(fd) < 0 ? -errno : rc;
}

static void dir_cleanup(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static int volumes_move(struct user_move *m, const char *path, struct berth_err *err)
{
    CLEANUP(dir) DIR *dir = opendir(path);
    const struct dirent *e;
    int rc = 0;
    if (!dir)
        return errno == ENOENT ? 0 : err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    while (rc == 0 && (e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        rc = folder_move(m, dirfd(dir), e->d_name);
        if (rc < 0)
            (void)err_set(err, -rc, "cannot change the owner of volume %s to UID %u: %s", e->d_name,
                          (unsigned)m->to->own, strerror(-rc));
    }
    return rc;
}

int user_move(struct state_dir *p, const char *home, const struct user_numbers *from, const struct user_numbers *to,
              struct berth_err *err)
{
    struct user_move m = {from, to};
    char path[STATE_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/volumes", state_dir_path(p));
    int rc = volumes_move(&m, path, err);
    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof path, "%s/homes", state_dir_path(p));
    CLEANUP(close_fd) int homes = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = homes < 0 ? -errno : folder_move(&m, homes, home);
    return rc < 0 ? err_set(err, -rc, "cannot change the owner of the home of '%s' to UID %u: %s", home,
                            (unsigned)to->own, strerror(-rc))
                  : 0;
}
