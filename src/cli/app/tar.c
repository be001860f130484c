/* tar.c - writes a file or folder as a tar archive. */
#include "cli/app/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/app/tar_block.h"

enum { DEPTH_MAX = 200, READ_BYTES = 64 * 1024 };

struct tar_writer {
    tar_sink *sink;
    void *sink_ctx;
    const struct tar_callbacks *callbacks;
    struct berth_err *err;
    size_t done, total;
    bool measures; /* only counts bytes */
};

static int emit(struct tar_writer *w, const void *at, size_t len)
{
    return w->sink(w->sink_ctx, at, len) ? 0 : err_set(w->err, ECANCELED, "the archive was not accepted");
}

static int emit_padding(struct tar_writer *w, uint64_t size)
{
    static const char zeros[TAR_BLOCK];
    size_t left = (size_t)(size % TAR_BLOCK);
    return left ? emit(w, zeros, TAR_BLOCK - left) : 0;
}

static void skip(const struct tar_writer *w, const char *path, const char *why)
{
    if (w->callbacks->skipped && !w->measures)
        w->callbacks->skipped(w->callbacks->ctx, path, why);
}

/* ---- headers ---------------------------------------------------------------------------------------------------- */

/* Writes octal digits, or GNU's binary form if the field is too small. */
static void number_put(char *field, size_t size, uint64_t value)
{
    if (size * 3 - 3 >= 64 || value < (uint64_t)1 << ((size - 1) * 3)) {
        (void)snprintf(field, size, "%0*llo", (int)size - 1, (unsigned long long)value);
        return;
    }
    for (size_t i = size; i-- > 1; value >>= 8)
        field[i] = (char)(value & 0xff);
    field[0] = (char)0x80;
}

static int header_emit(struct tar_writer *w, const char *name, const char *target, char type, const struct stat *st,
                       uint64_t size)
{
    union tar_header h = {0};
    unsigned sum = 0;

    memcpy(h.name, name, strnlen(name, sizeof h.name));
    if (target)
        memcpy(h.target, target, strnlen(target, sizeof h.target));
    number_put(h.mode, sizeof h.mode, st ? st->st_mode & 0777 : 0644);
    number_put(h.uid, sizeof h.uid, 0);
    number_put(h.gid, sizeof h.gid, 0);
    number_put(h.size, sizeof h.size, size);
    number_put(h.mtime, sizeof h.mtime, st && st->st_mtime > 0 ? (uint64_t)st->st_mtime : 0);
    h.type = type;
    memcpy(h.magic, "ustar", 6);
    memcpy(h.version, "00", 2);
    memset(h.sum, ' ', sizeof h.sum);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)h.block[i];
    (void)snprintf(h.sum, sizeof h.sum, "%06o", sum);
    return emit(w, h.block, TAR_BLOCK);
}

/* Writes a name that is too long for the header as an extra entry before it. */
static int long_emit(struct tar_writer *w, char type, const char *text)
{
    size_t len = strlen(text) + 1;

    if (len <= sizeof((union tar_header *)0)->name)
        return 0;
    int rc = header_emit(w, "././@LongLink", NULL, type, NULL, len);
    if (rc == 0)
        rc = emit(w, text, len);
    return rc == 0 ? emit_padding(w, len) : rc;
}

static int entry_emit(struct tar_writer *w, const char *name, const char *target, char type, const struct stat *st,
                      uint64_t size)
{
    int rc = long_emit(w, 'L', name);
    if (rc == 0 && target)
        rc = long_emit(w, 'K', target);
    return rc == 0 ? header_emit(w, name, target, type, st, size) : rc;
}

/* ---- files and folders ------------------------------------------------------------------------------------------ */

/* Writes exactly the size in the header: a file that shrinks meanwhile is padded with zeros, a file that grows is
 * truncated. */
static int content_emit(struct tar_writer *w, int fd, const char *path, uint64_t size)
{
    CLEANUP(mem) char *buf = mem_alloc(READ_BYTES);
    int rc = 0;

    for (uint64_t left = size; left > 0 && rc == 0;) {
        size_t want = left < READ_BYTES ? (size_t)left : READ_BYTES;
        ssize_t n = read(fd, buf, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(w->err, errno, "cannot read %s: %s", path, strerror(errno));
        if (n == 0) {
            memset(buf, 0, want);
            n = (ssize_t)want;
        }
        rc = emit(w, buf, (size_t)n);
        left -= (uint64_t)n;
        w->done += (size_t)n;
        if (w->callbacks->moved)
            w->callbacks->moved(w->callbacks->ctx, w->done, w->total);
    }
    return rc == 0 ? emit_padding(w, size) : rc;
}

static int file_emit(struct tar_writer *w, int dir_fd, const char *base, const char *path, const char *name)
{
    struct stat st;
    int fd = openat(dir_fd, base, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), rc;

    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        rc = err_set(w->err, fd < 0 ? errno : EINVAL, "cannot read %s: %s", path,
                     fd < 0 ? strerror(errno) : "it is no longer a file");
    } else if (w->measures) {
        w->total += (size_t)st.st_size;
        rc = 0;
    } else {
        rc = entry_emit(w, name, NULL, '0', &st, (uint64_t)st.st_size);
        if (rc == 0)
            rc = content_emit(w, fd, path, (uint64_t)st.st_size);
    }
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

static int link_emit(struct tar_writer *w, int dir_fd, const char *base, const char *path, const char *name,
                     const struct stat *st)
{
    char target[4096];
    ssize_t len = readlinkat(dir_fd, base, target, sizeof target - 1);

    if (len < 0)
        return err_set(w->err, errno, "cannot read %s: %s", path, strerror(errno));
    target[len] = '\0';
    return w->measures ? 0 : entry_emit(w, name, target, '2', st, 0);
}

static int any_emit(struct tar_writer *w, int dir_fd, const char *base, struct str *path, struct str *name,
                    size_t depth);

static int no_dots(const struct dirent *d)
{
    return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static int folder_emit(struct tar_writer *w, int dir_fd, const char *base, struct str *path, struct str *name,
                       const struct stat *st, size_t depth)
{
    struct dirent **list = NULL;
    size_t path_len = path->len, name_len = name->len;
    int rc = 0;

    if (depth > DEPTH_MAX)
        return err_set(w->err, ELOOP, "%s: folders are nested deeper than %d", path->at, DEPTH_MAX);
    str_add_char(name, '/');
    if (!w->measures)
        rc = entry_emit(w, name->at, NULL, '5', st, 0);
    int fd = openat(dir_fd, base, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int len = fd >= 0 ? scandirat(fd, ".", &list, no_dots, alphasort) : -1;
    if (rc == 0 && len < 0)
        rc = err_set(w->err, errno, "cannot read %s: %s", path->at, strerror(errno));
    str_add_char(path, '/');
    for (int i = 0; i < len; i++) {
        size_t path_here = path->len, name_here = name->len;
        str_add(path, list[i]->d_name);
        str_add(name, list[i]->d_name);
        if (rc == 0)
            rc = any_emit(w, fd, list[i]->d_name, path, name, depth + 1);
        path->at[path->len = path_here] = '\0';
        name->at[name->len = name_here] = '\0';
        free(list[i]);
    }
    free(list);
    if (fd >= 0)
        (void)close(fd);
    path->at[path->len = path_len] = '\0';
    name->at[name->len = name_len] = '\0';
    return rc;
}

static int any_emit(struct tar_writer *w, int dir_fd, const char *base, struct str *path, struct str *name,
                    size_t depth)
{
    struct stat st;

    if (fstatat(dir_fd, base, &st, depth ? AT_SYMLINK_NOFOLLOW : 0) != 0)
        return err_set(w->err, errno, "cannot read %s: %s", path->at, strerror(errno));
    if (S_ISREG(st.st_mode))
        return file_emit(w, dir_fd, base, path->at, name->at);
    if (S_ISDIR(st.st_mode))
        return folder_emit(w, dir_fd, base, path, name, &st, depth);
    if (S_ISLNK(st.st_mode))
        return link_emit(w, dir_fd, base, path->at, name->at, &st);
    skip(w, path->at, "it is not a file, folder or link");
    return 0;
}

int tar_write(const char *path, const char *name, tar_sink *sink, void *sink_ctx, const struct tar_callbacks *callbacks,
              struct berth_err *err)
{
    static const char zeros[2 * TAR_BLOCK];
    /* A symbolic link named on the command line is followed; links below it are not. */
    CLEANUP(mem) char *real = realpath(path, NULL);
    CLEANUP(str) struct str at = {0}, as = {0};
    struct tar_writer w = {.sink = sink, .sink_ctx = sink_ctx, .callbacks = callbacks, .err = err, .measures = true};

    if (!real)
        return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    str_add(&at, real);
    str_add(&as, name);
    int rc = any_emit(&w, AT_FDCWD, real, &at, &as, 0);
    w.measures = false;
    if (rc == 0)
        rc = any_emit(&w, AT_FDCWD, real, &at, &as, 0);
    return rc == 0 ? emit(&w, zeros, sizeof zeros) : rc;
}
