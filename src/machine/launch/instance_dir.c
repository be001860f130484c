#include "machine/launch/instance_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/instance_dir_parts.h"
#include "machine/launch/state_file.h"

enum { EPOCH_STEP_MAX = UINT16_MAX + 1 };

static const char *const folders[] = {"instances", "logs", "volumes", "homes", "images", "roots", "pid-namespaces"};

/* ---- open ---- */

static int lock_take(struct state_dir *p, struct berth_err *err)
{
    p->lock_fd = openat(p->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (p->lock_fd < 0)
        return err_set(err, errno, "cannot create '%s/lock': %s", p->dir, strerror(errno));
    if (flock(p->lock_fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return err_set(err, errno, "cannot lock '%s/lock': %s", p->dir, strerror(errno));
        return err_set(err, EBUSY, "another agent uses '%s'; stop it, or choose another folder with --state", p->dir);
    }
    return 0;
}

/* Increases the epoch by a random number: of two machines cloned from one image, which start with the same number, the
 * one with the greater epoch wins and the other gives up the node. */
static int epoch_next(struct state_dir *p, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    char next[32];
    int64_t last = 0;
    uint16_t ahead = 0;
    int rc = file_read(p->dir_fd, "epoch", &text, NULL);

    if (rc && rc != -ENOENT)
        return err_set(err, -rc, "cannot read '%s/epoch': %s", p->dir, strerror(-rc));
    if (rc == 0) {
        text[strcspn(text, "\n")] = 0;
        if (!str_parse_i64(text, &last) || last < 0 || last > INT64_MAX - EPOCH_STEP_MAX)
            return err_set(err, EINVAL,
                           "'%s/epoch' does not contain a number; write one above every earlier epoch of this node",
                           p->dir);
    }
    if (getrandom(&ahead, sizeof ahead, 0) != sizeof ahead)
        return err_set(err, errno, "cannot get random bytes: %s", strerror(errno));
    p->epoch = (uint64_t)last + 1 + ahead;
    (void)snprintf(next, sizeof next, "%" PRIu64 "\n", p->epoch);
    rc = file_write(p->dir_fd, "epoch", next, strlen(next), true);
    return rc ? err_set(err, -rc, "cannot write '%s/epoch': %s", p->dir, strerror(-rc)) : 0;
}

/* Creates the directories. Mode 0711 lets owners reach their homes and the roots of their containers, and the image
 * fetcher its directory, without listing them; all others are 0700, because images contain set-user-id programs. Modes
 * are set regardless of the umask and of who created a directory. */
static int folders_make(struct state_dir *p, struct berth_err *err)
{
    if (fchmod(p->dir_fd, 0711))
        return err_set(err, errno, "cannot make '%s' accessible to owners: %s", p->dir, strerror(errno));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        bool passed =
            strcmp(folders[i], "homes") == 0 || strcmp(folders[i], "roots") == 0 || strcmp(folders[i], "images") == 0;
        mode_t mode = passed ? 0711 : 0700;

        if ((mkdirat(p->dir_fd, folders[i], mode) && errno != EEXIST) || fchmodat(p->dir_fd, folders[i], mode, 0))
            return err_set(err, errno, "cannot create '%s/%s': %s", p->dir, folders[i], strerror(errno));
    }
    p->instances_fd = openat(p->dir_fd, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->instances_fd < 0)
        return err_set(err, errno, "cannot open '%s/instances': %s", p->dir, strerror(errno));
    return 0;
}

static int state_dir_start(struct state_dir *p, const char *dir, struct berth_err *err)
{
    int rc;

    if (mkdir(dir, 0711) && errno != EEXIST)
        return err_set(err, errno, "cannot create the state folder '%s': %s", dir, strerror(errno));
    p->dir = realpath(dir, NULL);
    if (!p->dir)
        return err_set(err, errno, "cannot open the state folder '%s': %s", dir, strerror(errno));
    p->dir_fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->dir_fd < 0)
        return err_set(err, errno, "cannot open the state folder '%s': %s", dir, strerror(errno));
    rc = boot_id(p->boot);
    if (rc)
        return err_set(err, -rc, "cannot read the boot ID; is /proc mounted?");
    rc = lock_take(p, err);
    if (rc == 0)
        rc = folders_make(p, err);
    if (rc == 0)
        rc = epoch_next(p, err);
    if (rc == 0)
        rc = started_open(p, err);
    if (rc)
        return rc;
    p->heard_fd = openat(p->dir_fd, "heard", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (p->heard_fd < 0)
        return err_set(err, errno, "cannot create '%s/heard': %s", p->dir, strerror(errno));
    return 0;
}

int state_dir_open(const char *dir, struct state_dir **ret, struct berth_err *err)
{
    struct state_dir *p = mem_zalloc(sizeof *p);
    p->bounds = (struct image_bounds){.image_bytes = UINT64_C(50) << 30, .image_files = 2000000};
    int rc;

    p->dir_fd = p->instances_fd = p->lock_fd = p->heard_fd = p->started_fd = -1;
    pthread_mutex_init(&p->append_lock, NULL);
    pthread_mutex_init(&p->sync_lock, NULL);
    rc = state_dir_start(p, dir, err);
    if (rc) {
        state_dir_free(p);
        return rc;
    }
    *ret = p;
    return 0;
}

void state_dir_free(struct state_dir *p)
{
    if (!p)
        return;
    close_fd_cleanup(&p->started_fd);
    close_fd_cleanup(&p->heard_fd);
    close_fd_cleanup(&p->instances_fd);
    close_fd_cleanup(&p->dir_fd);
    close_fd_cleanup(&p->lock_fd);
    pthread_mutex_destroy(&p->append_lock);
    pthread_mutex_destroy(&p->sync_lock);
    free(p->dir);
    mem_free(p);
}

const char *state_dir_path(const struct state_dir *p)
{
    return p->dir;
}

uint64_t state_dir_epoch(const struct state_dir *p)
{
    return p->epoch;
}

void state_dir_set_fetcher(struct state_dir *p, uid_t uid, gid_t gid)
{
    p->fetches_as_other = true;
    p->fetch_uid = uid;
    p->fetch_gid = gid;
}

bool state_dir_fetcher(const struct state_dir *p, uid_t *ret_uid, gid_t *ret_gid)
{
    if (p->fetches_as_other) {
        *ret_uid = p->fetch_uid;
        *ret_gid = p->fetch_gid;
    }
    return p->fetches_as_other;
}

void state_dir_set_image_bounds(struct state_dir *p, const struct image_bounds *bounds)
{
    p->bounds = *bounds;
}

struct image_bounds image_bounds(const struct state_dir *p)
{
    return p->bounds;
}

/* ---- paths ---- */

static bool name_is_plain(const char *name)
{
    return *name && !strchr(name, '/') && name[strspn(name, ".")];
}

int state_dir_entry_path(const struct state_dir *p, const char *what, const char *name, char ret[static STATE_PATH_MAX])
{
    if (!name_is_plain(what) || !name_is_plain(name))
        return -EINVAL;
    return snprintf(ret, STATE_PATH_MAX, "%s/%s/%s", p->dir, what, name) < STATE_PATH_MAX ? 0 : -ENAMETOOLONG;
}

int instance_dir_path(const struct state_dir *p, uint64_t id, const char *file, char ret[static STATE_PATH_MAX])
{
    if (!name_is_plain(file))
        return -EINVAL;
    return snprintf(ret, STATE_PATH_MAX, "%s/instances/%" PRIu64 "/%s", p->dir, id, file) < STATE_PATH_MAX
               ? 0
               : -ENAMETOOLONG;
}

int instance_dir_open(const struct state_dir *p, uint64_t id)
{
    char name[24];
    int fd = openat(p->instances_fd, str_u64(id, name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* ---- instances ---- */

int instance_dir_create(struct state_dir *p, uint64_t id, const char *config, struct berth_err *err)
{
    CLEANUP(close_fd) int dir = -1;
    char name[24];
    int rc;

    str_u64(id, name);
    if (mkdirat(p->instances_fd, name, 0711)) {
        if (errno == EEXIST)
            return err_set(err, EEXIST, "instance %s was already started", name);
        return err_set(err, errno, "cannot create '%s/instances/%s': %s", p->dir, name, strerror(errno));
    }
    dir = instance_dir_open(p, id);
    rc = dir < 0 ? dir : file_write(dir, "config.json", config, strlen(config), false);
    if (rc == 0)
        rc = started_append(p, '+', id);
    if (rc == 0)
        return 0;
    if (dir >= 0)
        unlinkat(dir, "config.json", 0);
    unlinkat(p->instances_fd, name, AT_REMOVEDIR);
    return err_set(err, -rc, "cannot record the start of instance %s in '%s': %s", name, p->dir, strerror(-rc));
}

/* Opens a subdirectory; never follows a symbolic link or crosses a mount point (-EXDEV). */
static int open_below(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    long fd = syscall(SYS_openat2, dir, name, &how, sizeof how);

    return fd < 0 ? -errno : (int)fd;
}

enum { DEPTH_MAX = 512 };

/* Removes everything in the directory except `keep`; takes the descriptor. */
static int clear(int dir, const char *keep, int depth)
{
    DIR *entries;
    const struct dirent *e;
    int rc = 0;

    if (depth > DEPTH_MAX) {
        close(dir);
        return -ELOOP;
    }
    entries = fdopendir(dir);
    if (!entries) {
        rc = -errno;
        close(dir);
        return rc;
    }
    while (rc == 0 && (errno = 0, e = readdir(entries))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || (keep && strcmp(e->d_name, keep) == 0))
            continue;
        if (unlinkat(dirfd(entries), e->d_name, 0) == 0 || errno == ENOENT)
            continue;
        if (errno != EISDIR && errno != EPERM) {
            rc = -errno;
            break;
        }
        rc = open_below(dirfd(entries), e->d_name);
        if (rc >= 0)
            rc = clear(rc, NULL, depth + 1);
        if (rc == 0 && unlinkat(dirfd(entries), e->d_name, AT_REMOVEDIR) && errno != ENOENT)
            rc = -errno;
    }
    closedir(entries);
    return rc == -EXDEV ? -EBUSY : rc;
}

int instance_dir_remove(struct state_dir *p, uint64_t id, struct berth_err *err)
{
    char name[24];
    int dir = open_below(p->instances_fd, str_u64(id, name));
    int rc;

    if (dir == -ENOENT)
        return 0;
    /* config.json goes last: a crash in between leaves an ended instance, not an incomplete directory. */
    rc = dir < 0 ? dir : clear(dir, "config.json", 0);
    if (rc == 0) {
        dir = open_below(p->instances_fd, name);
        rc = dir < 0 ? dir : clear(dir, NULL, 0);
    }
    if (rc == 0 && unlinkat(p->instances_fd, name, AT_REMOVEDIR))
        rc = -errno;
    if (rc == 0)
        rc = started_append(p, '-', id);
    if (rc == -EBUSY)
        return err_set(err, EBUSY, "something is still mounted in '%s/instances/%s'", p->dir, name);
    return rc ? err_set(err, -rc, "cannot remove '%s/instances/%s': %s", p->dir, name, strerror(-rc)) : 0;
}

int instance_dirs_each(const struct state_dir *p, void (*each)(void *ctx, uint64_t id), void *ctx)
{
    struct instance_ids ids = {0};
    int rc = instance_dirs_list(p, &ids);

    for (size_t i = 0; rc == 0 && i < ids.len; i++)
        each(ctx, ids.at[i]);
    vec_done(&ids);
    return rc;
}

int instance_dir_read(const struct state_dir *p, uint64_t id, const char *file, char **ret, struct berth_err *err)
{
    CLEANUP(close_fd) int dir = instance_dir_open(p, id);
    int rc = !name_is_plain(file) ? -EINVAL : dir < 0 ? dir : file_read(dir, file, ret, NULL);

    return rc ? err_set(err, -rc, "cannot read '%s' of instance %" PRIu64 ": %s", file, id, strerror(-rc)) : 0;
}

int instance_dir_write(struct state_dir *p, uint64_t id, const char *file, const char *text, struct berth_err *err)
{
    CLEANUP(close_fd) int dir = instance_dir_open(p, id);
    int rc = !name_is_plain(file) ? -EINVAL : dir < 0 ? dir : file_write(dir, file, text, strlen(text), false);

    return rc ? err_set(err, -rc, "cannot write '%s' of instance %" PRIu64 ": %s", file, id, strerror(-rc)) : 0;
}

/* ---- heard ---- */

void state_dir_set_contact_ns(struct state_dir *p, int64_t boottime)
{
    char text[CONTACT_TIME_TEXT_MAX];
    size_t len = contact_time_text(p->boot, boottime, text);

    /* All texts have the same length. If a write fails, shims fence too early, never too late. */
    if (pwrite(p->heard_fd, text, len, 0) != (ssize_t)len)
        return;
}

int64_t state_dir_contact_ns(const struct state_dir *p)
{
    char path[STATE_PATH_MAX];

    if (snprintf(path, sizeof path, "%s/heard", p->dir) >= (int)sizeof path)
        return 0;
    return contact_time_read(path);
}
