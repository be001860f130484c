/* untar.c - unpacks a tar archive into one file or folder, and writes nothing outside it. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/app/tar.h"
#include "cli/app/tar_block.h"

enum { TEXT_BYTES_MAX = 1024 * 1024, DEPTH_MAX = 256 };

struct untar {
    int dir_fd;
    char *top, *as;
    const struct tar_callbacks *callbacks;
    union tar_header header;
    size_t header_len;
    bool ended; /* both zero blocks at the end were read */
    size_t empty;

    /* The current entry. */
    uint64_t left;  /* content bytes not yet read */
    size_t padding; /* padding bytes to the next block */
    int fd;         /* file being written; -1: content is discarded */
    bool text;      /* content is collected in `said` */
    char type;
    struct str said;
    int64_t mtime;

    /* Attributes from preceding extension entries; "": none. */
    struct str long_name, long_target;
    bool has_size;
    uint64_t long_size;

    size_t entries, done, total;
};

struct untar *untar_new(int dir_fd, const char *top, const char *as, const struct tar_callbacks *callbacks)
{
    struct untar *u = mem_zalloc(sizeof *u);

    u->dir_fd = dir_fd;
    u->top = top ? mem_strdup(top) : NULL;
    u->as = mem_strdup(as);
    u->callbacks = callbacks;
    u->fd = -1;
    return u;
}

void untar_free(struct untar *u)
{
    if (!u)
        return;
    if (u->fd >= 0)
        (void)close(u->fd);
    str_done(&u->said);
    str_done(&u->long_name);
    str_done(&u->long_target);
    mem_free(u->top);
    mem_free(u->as);
    mem_free(u);
}

static void skip(const struct untar *u, const char *path, const char *why)
{
    if (u->callbacks->skipped)
        u->callbacks->skipped(u->callbacks->ctx, path, why);
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static int refuse(struct berth_err *err, const char *name)
{
    char quoted[160];
    size_t len = 0;
    for (; name[len] && len + 1 < sizeof quoted; len++) /* the name may hold any byte and is printed on a terminal */
        quoted[len] = (unsigned char)name[len] < ' ' || name[len] == 0x7f ? '?' : name[len];
    quoted[len] = '\0';
    return err_set(err, EINVAL, "the archive contains the entry '%s', which lies outside the target", quoted);
}

/* Converts the entry's name to a path below the target folder: without "." and "..", with `top` replaced by `as`. */
static int target_path(const struct untar *u, const char *name, struct str *ret, struct berth_err *err)
{
    size_t parts = 0;

    if (*name == '/')
        return refuse(err, name);
    str_clear(ret);
    if (!u->top)
        str_add(ret, u->as);
    for (const char *at = name; *at;) {
        size_t len = strcspn(at, "/");
        bool dot = len == 1 && at[0] == '.';
        if (len == 2 && at[0] == '.' && at[1] == '.')
            return refuse(err, name);
        if (len > 0 && !dot) {
            bool first = parts == 0 && u->top;
            if (first && (strlen(u->top) != len || strncmp(at, u->top, len) != 0))
                return refuse(err, name);
            if (!first)
                str_add_char(ret, '/');
            str_add_bytes(ret, first ? u->as : at, first ? strlen(u->as) : len);
            if (++parts > DEPTH_MAX)
                return refuse(err, name);
        }
        at += len + (at[len] == '/');
    }
    return u->top && parts == 0 ? refuse(err, name) : 0;
}

/* Returns whether a link at this path leads to something below the topmost folder, whatever other links the archive
 * has. ".." is allowed only at the beginning of the target: there it leaves real folders, because no link was followed
 * to reach them. After a name, which may itself be a link, ".." could lead anywhere. A link in place of the whole copy
 * would lead outside it. */
static bool link_stays_inside(const char *path, const char *target)
{
    size_t depth = 0;
    bool named = false;

    if (*target == '/' || !*target)
        return false;
    for (const char *p = path; (p = strchr(p, '/')); p++)
        depth++;
    if (depth == 0)
        return false;
    for (const char *at = target; *at;) {
        size_t len = strcspn(at, "/");
        if (len == 2 && at[0] == '.' && at[1] == '.') {
            if (named || depth <= 1)
                return false;
            depth--;
        } else if (len > 0 && !(len == 1 && at[0] == '.')) {
            named = true;
        }
        at += len + (at[len] == '/');
    }
    return true;
}

/* Opens the folder of a path and creates missing folders; *ret_base is the path's last component. Follows no symbolic
 * link. */
static int parent_open(const struct untar *u, const char *path, const char **ret_base, struct berth_err *err)
{
    int fd = fcntl(u->dir_fd, F_DUPFD_CLOEXEC, 0);

    for (const char *at = path; fd >= 0;) {
        size_t len = strcspn(at, "/");
        if (!at[len]) {
            *ret_base = at;
            return fd;
        }
        char part[256];
        if (len >= sizeof part) {
            (void)close(fd);
            return err_set(err, ENAMETOOLONG, "%s: a component of the name is too long", path);
        }
        memcpy(part, at, len);
        part[len] = '\0';
        if (mkdirat(fd, part, 0777) != 0 && errno != EEXIST) {
            int failed = errno;
            (void)close(fd);
            return err_set(err, failed, "cannot create the folder %s of %s: %s", part, path, strerror(failed));
        }
        int next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), failed = errno;
        (void)close(fd);
        errno = failed;
        fd = next;
        at += len + 1;
    }
    int failed = errno;
    return err_set(err, failed, "cannot write %s: %s", path,
                   failed == ELOOP || failed == ENOTDIR ? "a link or a file is in the way" : strerror(failed));
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static int file_begin(struct untar *u, int parent, const char *base, const char *path, mode_t mode,
                      struct berth_err *err)
{
    u->fd = openat(parent, base, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
    struct stat st;
    if (u->fd < 0)
        return err_set(err, errno, "cannot write %s: %s", path,
                       errno == ELOOP ? "a symbolic link is in the way; remove it first" : strerror(errno));
    if (fstat(u->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(err, EINVAL, "cannot write %s: it exists and is not a file", path);
    u->total += (size_t)u->left;
    return 0;
}

static int folder_make(int parent, const char *base, const char *path, mode_t mode, struct berth_err *err)
{
    struct stat st;
    if (mkdirat(parent, base, mode | 0700) == 0)
        return 0;
    if (errno == EEXIST && fstatat(parent, base, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return err_set(err, errno, "cannot create the folder %s: %s", path, strerror(errno));
}

static int link_make(struct untar *u, int parent, const char *base, const char *path, const char *target,
                     struct berth_err *err)
{
    if (!link_stays_inside(path, target)) {
        skip(u, path, "it is a link that leads out of the target");
        return 0;
    }
    if (symlinkat(target, parent, base) == 0)
        return 0;
    if (errno == EEXIST && unlinkat(parent, base, 0) == 0 && symlinkat(target, parent, base) == 0)
        return 0;
    return err_set(err, errno, "cannot create the link %s: %s", path, strerror(errno));
}

/* Creates a hard link to an earlier file of the archive. */
static int hard_link_make(struct untar *u, int parent, const char *base, const char *path, const char *target,
                          struct berth_err *err)
{
    CLEANUP(str) struct str from = {0};
    const char *from_base = "";
    struct stat st;

    int rc = target_path(u, target, &from, err);
    int from_parent = rc == 0 ? parent_open(u, str_text(&from), &from_base, err) : rc;
    if (from_parent < 0)
        return from_parent;
    bool file = fstatat(from_parent, from_base, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    if (file && linkat(from_parent, from_base, parent, base, 0) != 0) {
        if (errno == EEXIST)
            (void)unlinkat(parent, base, 0);
        file = linkat(from_parent, from_base, parent, base, 0) == 0;
    }
    (void)close(from_parent);
    if (!file)
        skip(u, path, "it is a hard link to a file that does not exist");
    return 0;
}

static int entry_make(struct untar *u, const char *name, const char *target, mode_t mode, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    const char *base = "";

    int rc = target_path(u, name, &path, err);
    const char *at = str_text(&path);
    int parent = rc == 0 ? parent_open(u, at, &base, err) : rc;
    if (parent < 0)
        return parent;
    u->entries++;
    switch (u->type) {
    case '\0':
    case '0':
    case '7': rc = file_begin(u, parent, base, at, mode, err); break;
    case '1': rc = hard_link_make(u, parent, base, at, target, err); break;
    case '2': rc = link_make(u, parent, base, at, target, err); break;
    case '5': rc = folder_make(parent, base, at, mode, err); break;
    default: skip(u, at, "it is not a file, folder or link"); break;
    }
    (void)close(parent);
    return rc;
}

/* ---- headers ---------------------------------------------------------------------------------------------------- */

/* Parses octal digits up to a space or NUL, or GNU's binary form. */
static bool number_get(const char *field, size_t size, uint64_t *ret)
{
    uint64_t value = 0;
    size_t i = 0;

    if ((unsigned char)field[0] & 0x80) {
        for (i = 1; i < size; i++) {
            if (value >> 55)
                return false;
            value = value << 8 | (unsigned char)field[i];
        }
        *ret = value;
        return true;
    }
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
        if (value >> 60)
            return false;
        value = value << 3 | (uint64_t)(field[i] - '0');
    }
    *ret = value;
    return i == size || field[i] == '\0' || field[i] == ' ';
}

static bool checksum_matches(const union tar_header *h)
{
    uint64_t said = 0, sum = 0;

    for (size_t i = 0; i < TAR_BLOCK; i++) {
        bool own = i >= offsetof(union tar_header, sum) && i < offsetof(union tar_header, sum) + sizeof h->sum;
        sum += own ? ' ' : (unsigned char)h->block[i];
    }
    return number_get(h->sum, sizeof h->sum, &said) && said == sum;
}

static void field_add(struct str *to, const char *field, size_t size)
{
    str_add_bytes(to, field, strnlen(field, size));
}

static int header_take(struct untar *u, struct berth_err *err)
{
    static const char none[TAR_BLOCK];
    const union tar_header *h = &u->header;
    uint64_t size = 0, mode = 0, mtime = 0;
    CLEANUP(str) struct str name = {0}, target = {0};

    if (memcmp(h->block, none, sizeof none) == 0) {
        u->ended = ++u->empty >= 2;
        return 0;
    }
    u->empty = 0;
    if (!checksum_matches(h) || !number_get(h->size, sizeof h->size, &size) ||
        !number_get(h->mode, sizeof h->mode, &mode))
        return err_set(err, EINVAL, "the received data is not a tar archive, or it is damaged");
    (void)number_get(h->mtime, sizeof h->mtime, &mtime);
    u->type = h->type;
    u->mtime = (int64_t)mtime;
    u->text = u->type == 'L' || u->type == 'K' || u->type == 'x' || u->type == 'g';
    if (!u->text && u->has_size)
        size = u->long_size;
    bool empty = u->type == '1' || u->type == '2' || u->type == '5';
    u->left = empty ? 0 : size;
    u->padding = (TAR_BLOCK - (size_t)(u->left % TAR_BLOCK)) % TAR_BLOCK;
    if (u->left > (uint64_t)1 << 60 || (u->text && u->left > TEXT_BYTES_MAX))
        return err_set(err, EINVAL, "the archive contains an entry that is too large");
    str_clear(&u->said);
    if (u->text)
        return 0;
    bool ustar = memcmp(h->magic, "ustar", 6) == 0;
    if (!u->long_name.len && ustar && h->prefix[0]) {
        field_add(&name, h->prefix, sizeof h->prefix);
        str_add_char(&name, '/');
    }
    field_add(&name, u->long_name.len ? u->long_name.at : h->name,
              u->long_name.len ? u->long_name.len : sizeof h->name);
    field_add(&target, u->long_target.len ? u->long_target.at : h->target,
              u->long_target.len ? u->long_target.len : sizeof h->target);
    str_clear(&u->long_name);
    str_clear(&u->long_target);
    u->has_size = false;
    return entry_make(u, str_text(&name), str_text(&target), (mode_t)(mode & 0777), err);
}

/* Parses pax records, "LENGTH KEY=VALUE\n" each. */
static int pax_take(struct untar *u, struct berth_err *err)
{
    const char *at = str_text(&u->said), *end = at + u->said.len;

    while (at < end) {
        size_t len = 0, digits = 0;
        for (; at + digits < end && at[digits] >= '0' && at[digits] <= '9' && len <= TEXT_BYTES_MAX; digits++)
            len = len * 10 + (size_t)(at[digits] - '0');
        const char *key = at + digits + 1, *stop = at + len - 1;
        if (digits == 0 || len > (size_t)(end - at) || key >= stop || at[digits] != ' ' || *stop != '\n')
            return err_set(err, EINVAL, "the archive contains an invalid header");
        const char *equals = memchr(key, '=', (size_t)(stop - key));
        size_t key_len = equals ? (size_t)(equals - key) : 0, value_len = equals ? (size_t)(stop - equals - 1) : 0;
        struct str *to = key_len == 4 && memcmp(key, "path", 4) == 0       ? &u->long_name
                         : key_len == 8 && memcmp(key, "linkpath", 8) == 0 ? &u->long_target
                                                                           : NULL;
        if (to) {
            str_clear(to);
            str_add_bytes(to, equals + 1, value_len);
        } else if (key_len == 4 && memcmp(key, "size", 4) == 0) {
            char number[24] = "";
            int64_t size = -1;
            if (value_len < sizeof number)
                memcpy(number, equals + 1, value_len);
            if (!str_parse_i64(number, &size) || size < 0)
                return err_set(err, EINVAL, "the archive contains an invalid header");
            u->has_size = true;
            u->long_size = (uint64_t)size;
        }
        at += len;
    }
    return 0;
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

static int content_take(struct untar *u, const char *at, size_t len, struct berth_err *err)
{
    if (u->text) {
        str_add_bytes(&u->said, at, len);
        return 0;
    }
    if (u->fd < 0)
        return 0;
    u->done += len;
    while (len > 0) {
        ssize_t n = write(u->fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, errno, "cannot write: %s", strerror(errno));
        at += n;
        len -= (size_t)n;
    }
    if (u->callbacks->moved)
        u->callbacks->moved(u->callbacks->ctx, u->done, u->total);
    return 0;
}

static int content_end(struct untar *u, struct berth_err *err)
{
    if (u->text) {
        char type = u->type;
        u->text = false;
        if (type == 'x')
            return pax_take(u, err);
        struct str *to = type == 'L' ? &u->long_name : type == 'K' ? &u->long_target : NULL;
        if (to) {
            str_clear(to);
            str_add_bytes(to, str_text(&u->said), strnlen(str_text(&u->said), u->said.len));
        }
        return 0;
    }
    if (u->fd < 0)
        return 0;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)u->mtime}};
    (void)futimens(u->fd, times); /* a wrong modification time is harmless */
    int failed = close(u->fd) != 0 ? errno : 0;
    u->fd = -1;
    return failed ? err_set(err, failed, "cannot write: %s", strerror(failed)) : 0;
}

int untar_feed(struct untar *u, const char *at, size_t len, struct berth_err *err)
{
    int rc = 0;

    while (len > 0 && rc == 0 && !u->ended) {
        size_t n;
        if (u->left > 0) {
            n = u->left < len ? (size_t)u->left : len;
            rc = content_take(u, at, n, err);
            u->left -= n;
            if (u->left == 0 && rc == 0)
                rc = content_end(u, err);
        } else if (u->padding > 0) {
            n = u->padding < len ? u->padding : len;
            u->padding -= n;
        } else {
            n = TAR_BLOCK - u->header_len < len ? TAR_BLOCK - u->header_len : len;
            memcpy(u->header.block + u->header_len, at, n);
            u->header_len += n;
            if (u->header_len == TAR_BLOCK) {
                u->header_len = 0;
                rc = header_take(u, err);
                if (rc == 0 && u->left == 0)
                    rc = content_end(u, err);
            }
        }
        at += n;
        len -= n;
    }
    return rc;
}

int untar_end(struct untar *u, struct berth_err *err)
{
    bool whole = u->left == 0 && u->padding == 0 && u->header_len == 0;
    if (u->entries == 0)
        return err_set(err, ENOENT, "received no data");
    if (!whole || (!u->ended && u->empty == 0))
        return err_set(err, EPIPE, "the archive is truncated; the extracted files were kept");
    return 0;
}
