/* mount_tree.c - safe operations on directory trees with untrusted content. */
#include "machine/mount/mount_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"

static int open_resolved(int root, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = resolve,
    };
    for (;;) {
        long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
        if (fd >= 0)
            return (int)fd;
        if (errno != EINTR && errno != EAGAIN) /* EAGAIN: a concurrent rename on the path */
            return -errno;
    }
}

int tree_open(int root, const char *path, int flags, mode_t mode)
{
    return open_resolved(root, path, flags | O_NOFOLLOW, mode, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

int tree_open_in(int root, const char *path, int flags)
{
    return open_resolved(root, path, flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int tree_open_real(const char *path, int flags)
{
    return open_resolved(AT_FDCWD, path, flags, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int tree_open_instance(const struct state_dir *p, uint64_t id)
{
    char path[STATE_PATH_MAX];
    int rc = instance_dir_path(p, id, "x", path);
    if (rc < 0)
        return rc;
    *strrchr(path, '/') = '\0';
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int tree_folder(int root, const char *name, mode_t mode)
{
    bool made = mkdirat(root, name, mode) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    int fd = tree_open(root, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0 && made && fchmod(fd, mode) < 0) { /* independent of the agent's umask */
        int rc = -errno;
        (void)close(fd);
        return rc;
    }
    return fd;
}

/* ---- removal ---------------------------------------------------------------------------------------------------- */

static void dir_cleanup(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

/* Opens a directory stream; the caller keeps `folder`. */
static DIR *dir_of(int folder)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (!dir)
        (void)close(fd);
    return dir;
}

/* Returns the next name except "." and ".."; NULL at the end, with errno 0, or on an error. */
static const char *dir_next(DIR *dir)
{
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir);
        if (!e || (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0))
            return e ? e->d_name : NULL;
    }
}

/* Deeper than any path that was created by its full name, and safe for the stack. Deeper trees, made by relative steps,
 * are flattened first. */
enum { DEPTH_MAX = 256 };

static int empty_at(int folder, int top, int depth);

/* Moves an entry at the maximum depth to the top directory under a new name, from where it is removed. */
static int flatten(int folder, const char *name, int top)
{
    for (unsigned i = 0; i < 1000000; i++) {
        char fresh[32];
        (void)snprintf(fresh, sizeof fresh, ".deep-%u", i);
        if (renameat2(folder, name, top, fresh, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

static int remove_at(int folder, const char *name, int top, int depth)
{
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    if (depth >= DEPTH_MAX)
        return flatten(folder, name, top);
    CLEANUP(close_fd) int fd = tree_open(folder, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd == -EXDEV ? -EBUSY : fd;
    int rc = empty_at(fd, top, depth + 1);
    if (rc < 0)
        return rc;
    return unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

static int empty_at(int folder, int top, int depth)
{
    CLEANUP(dir) DIR *dir = dir_of(folder);
    if (!dir)
        return -errno;
    for (;;) {
        bool some = false;
        const char *name;
        while ((name = dir_next(dir))) {
            int rc = remove_at(folder, name, top, depth);
            if (rc < 0)
                return rc;
            some = true;
        }
        if (errno)
            return -errno;
        if (!some) /* rereads, because reading a changing directory may miss entries */
            return 0;
        rewinddir(dir);
    }
}

bool tree_is_empty(int folder)
{
    CLEANUP(dir) DIR *dir = dir_of(folder);
    return dir && !dir_next(dir) && errno == 0;
}

int tree_empty(int folder)
{
    return empty_at(folder, folder, 0);
}

int tree_remove(int root, const char *name)
{
    if (unlinkat(root, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno == ENOTDIR)
        return unlinkat(root, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    CLEANUP(close_fd) int fd = tree_open(root, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd == -EXDEV ? -EBUSY : fd;
    int rc = tree_empty(fd);
    if (rc < 0)
        return rc;
    return unlinkat(root, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -errno;
}

/* ---- counting --------------------------------------------------------------------------------------------------- */

#define HELD_BYTES_MAX ((size_t)64 << 20) /* bound of the memory for names and levels */
enum {
    FOLDER_BYTES = 4096, /* minimum size of a directory: some file systems report 0 */
    NAME_BYTES = 48,     /* overhead of a name: allocation and vector slot */
};

/* A directory on the path from the top to the present position. Only one descriptor is open, independent of the
 * depth. */
struct tree_level {
    dev_t dev;
    ino_t ino;
    char *name;
    VEC(char *) todo; /* subdirectories that are not visited yet */
};

struct tree_walk {
    int top, at; /* at: descriptor of the last level */
    VEC(struct tree_level) way;
    size_t held_bytes; /* approximate memory use */
    uint64_t sum, entries;
    uint64_t bytes_max, entries_max; /* limits: the walk fails above them */
    tree_visit *visit;               /* NULL: no callback */
    void *ctx;
};

static size_t name_bytes(const char *name)
{
    return name ? NAME_BYTES + strlen(name) : 0;
}

static void level_drop(struct tree_walk *w)
{
    struct tree_level *l = &w->way.at[--w->way.len];
    for (size_t i = 0; i < l->todo.len; i++) {
        w->held_bytes -= name_bytes(l->todo.at[i]);
        mem_free(l->todo.at[i]);
    }
    vec_done(&l->todo);
    w->held_bytes -= 2 * sizeof *l + name_bytes(l->name);
    mem_free(l->name);
}

static void walk_cleanup(struct tree_walk *w)
{
    while (w->way.len)
        level_drop(w);
    vec_done(&w->way);
    close_fd_cleanup(&w->at);
}

static bool is_level(int fd, const struct tree_level *l)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

static void walk_at(struct tree_walk *w, int fd)
{
    close_fd_cleanup(&w->at);
    w->at = fd;
}

/* Counts one entry of a directory. */
static int entry_count(struct tree_walk *w, struct tree_level *l, const char *name, const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_blocks * 512;
    if (++w->entries > w->entries_max || w->sum > w->bytes_max)
        return -EFBIG;
    if (!S_ISDIR(st->st_mode)) {
        w->sum += bytes / (st->st_nlink == 0 ? 1 : st->st_nlink); /* a file with several links counts once */
        return 0;
    }
    w->sum += bytes < FOLDER_BYTES ? FOLDER_BYTES : bytes;
    w->held_bytes += name_bytes(name);
    vec_push(&l->todo, mem_strdup(name));
    return w->held_bytes > HELD_BYTES_MAX ? -EOVERFLOW : 0;
}

/* Counts the entries of a directory and makes it the current level. Takes `fd` and `name`; on -errno the level is
 * unchanged. */
static int level_enter(struct tree_walk *w, int fd, char *name)
{
    struct stat st = {0};
    struct tree_level l = {.name = name};
    CLEANUP(dir) DIR *dir = dir_of(fd);
    int rc = !dir || fstat(fd, &st) < 0 ? -errno : 0;
    if (rc == 0) {
        l.dev = st.st_dev;
        l.ino = st.st_ino;
    }
    for (const char *entry; rc == 0;) {
        if (!(entry = dir_next(dir))) {
            rc = -errno;
            break;
        }
        if (fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW) < 0) {
            rc = errno == ENOENT ? 0 : -errno; /* it was removed meanwhile */
            continue;
        }
        rc = entry_count(w, &l, entry, &st);
        if (rc == 0 && w->visit)
            rc = w->visit(w->ctx, fd, entry);
    }
    vec_push(&w->way, l);
    w->held_bytes += 2 * sizeof l + name_bytes(name);
    if (rc == 0)
        walk_at(w, fd);
    else {
        close_fd_cleanup(&fd);
        level_drop(w);
    }
    return rc;
}

/* Returns to the last level after a subdirectory is done. If a directory on the path was moved meanwhile, the levels
 * from there on are dropped. */
static void climb(struct tree_walk *w)
{
    CLEANUP(close_fd) int up = openat(w->at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (is_level(up, &w->way.at[w->way.len - 1])) {
        walk_at(w, take_fd(&up));
        return;
    }
    walk_at(w, openat(w->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (size_t i = 1; i < w->way.len; i++) {
        CLEANUP(close_fd) int next = tree_open(w->at, w->way.at[i].name, O_RDONLY | O_DIRECTORY, 0);
        if (is_level(next, &w->way.at[i]))
            walk_at(w, take_fd(&next));
        else
            while (w->way.len > i)
                level_drop(w);
    }
}

static int walk_all(struct tree_walk *w)
{
    int first = openat(w->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = first < 0 ? -errno : level_enter(w, first, NULL);
    while (rc == 0 && w->way.len) {
        struct tree_level *l = &w->way.at[w->way.len - 1];
        if (l->todo.len == 0) {
            level_drop(w);
            if (w->way.len)
                climb(w);
            continue;
        }
        CLEANUP(mem) char *name = l->todo.at[--l->todo.len];
        w->held_bytes -= name_bytes(name);
        int fd = tree_open(w->at, name, O_RDONLY | O_DIRECTORY, 0);
        if (fd >= 0)
            rc = level_enter(w, fd, take_ptr(&name));
        else if (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP && !(fd == -EXDEV && w->visit))
            rc = fd; /* otherwise it was removed or replaced meanwhile */
    }
    if (rc == 0 && w->sum > w->bytes_max)
        rc = -EFBIG;
    return rc;
}

static int tree_walk(int folder, uint64_t bytes_max, uint64_t entries_max, uint64_t *ret_bytes)
{
    __attribute__((cleanup(walk_cleanup))) struct tree_walk w = {
        .top = folder, .at = -1, .bytes_max = bytes_max, .entries_max = entries_max};
    int rc = walk_all(&w);
    if (rc == 0)
        *ret_bytes = w.sum;
    return rc;
}

int tree_bytes(int folder, uint64_t *ret)
{
    return tree_walk(folder, UINT64_MAX, UINT64_MAX, ret);
}

int tree_fits(int folder, uint64_t bytes_max, uint64_t entries_max)
{
    uint64_t bytes = 0;
    return tree_walk(folder, bytes_max, entries_max, &bytes);
}

int tree_each(int folder, tree_visit *visit, void *ctx)
{
    __attribute__((cleanup(walk_cleanup))) struct tree_walk w = {
        .top = folder, .at = -1, .bytes_max = UINT64_MAX, .entries_max = UINT64_MAX, .visit = visit, .ctx = ctx};
    return walk_all(&w);
}

/* ---- whole files ------------------------------------------------------------------------------------------------ */

static int write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

int tree_write(int folder, const char *name, const void *text, size_t len, uid_t uid, gid_t gid, mode_t mode)
{
    char fresh[NAME_MAX + 1];
    int n = snprintf(fresh, sizeof fresh, ".%s.new", name);
    if (n < 0 || (size_t)n >= sizeof fresh)
        return -ENAMETOOLONG;
    if (unlinkat(folder, fresh, 0) < 0 && errno != ENOENT)
        return -errno;
    CLEANUP(close_fd) int fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int rc = write_all(fd, text, len);
    if (rc == 0 && (uid != geteuid() || gid != getegid()) && fchown(fd, uid, gid) < 0)
        rc = -errno;
    if (rc == 0 && fchmod(fd, mode) < 0)
        rc = -errno;
    if (rc == 0 && renameat(folder, fresh, folder, name) < 0)
        rc = -errno;
    if (rc < 0)
        (void)unlinkat(folder, fresh, 0);
    return rc;
}

int tree_read(int folder, const char *name, size_t max, char **ret, size_t *ret_len)
{
    CLEANUP(close_fd) int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    if (st.st_size < 0 || (uint64_t)st.st_size > max)
        return -EFBIG;
    size_t size = (size_t)st.st_size, len = 0;
    CLEANUP(mem) char *text = mem_alloc(size + 1);
    while (len < size) {
        ssize_t n = read(fd, text + len, size - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    text[len] = '\0';
    *ret = take_ptr(&text);
    if (ret_len)
        *ret_len = len;
    return 0;
}
