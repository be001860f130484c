/* image_user.c - finds the user and groups that an image runs as. */
#include "machine/image/image_user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/mount/mount_tree.h"

enum { FIELDS_MAX = 7, NAME_MAX_LEN = 256 };

/* ---- passwd and group files ------------------------------------------------------------------------------------- */

/* Reads a file of the image. Checks its type before opening it for reading, because opening a device or a FIFO may have
 * side effects. A missing file counts as empty. */
static int users_read(int root, const char *path, char **ret, struct berth_err *err)
{
    char again[32];
    struct stat st;
    CLEANUP(close_fd) int at = tree_open_in(root, path, O_PATH);
    if (at == -ENOENT || at == -ENOTDIR) {
        *ret = mem_strdup("");
        return 0;
    }
    if (at < 0 || fstat(at, &st) < 0)
        return err_set(err, EINVAL, "the image's %s cannot be opened: %s", path, strerror(at < 0 ? -at : errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, EINVAL, "the image's %s is not a regular file", path);
    if (st.st_size > IMAGE_USERS_BYTES_MAX)
        return err_set(err, EINVAL, "the image's %s is larger than %d bytes", path, IMAGE_USERS_BYTES_MAX);
    (void)snprintf(again, sizeof again, "/proc/self/fd/%d", at);
    CLEANUP(close_fd) int fd = open(again, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : fd_read(fd, ret, NULL);
    return rc < 0 ? err_set(err, EINVAL, "the image's %s cannot be read: %s", path, strerror(-rc)) : 0;
}

/* Splits the next line with at least `want` fields at its colons; false: there is none. */
static bool line_next(char **at, size_t want, char *fields[static FIELDS_MAX])
{
    char *line;
    while ((line = strsep(at, "\n"))) {
        size_t len = 0;
        for (char *field; len < FIELDS_MAX && (field = strsep(&line, ":"));)
            fields[len++] = field;
        if (len >= want)
            return true;
    }
    return false;
}

/* Parses an id; the largest one is invalid, as it means "unchanged". */
static bool id_read(const char *text, uint32_t *ret)
{
    int64_t id;
    if (!*text || strspn(text, "0123456789") != strlen(text) || !str_parse_i64(text, &id) || id >= UINT32_MAX)
        return false;
    *ret = (uint32_t)id;
    return true;
}

/* ---- lookup ----------------------------------------------------------------------------------------------------- */

struct user_request {
    char user[NAME_MAX_LEN], group[NAME_MAX_LEN]; /* "": not given */
    char name[NAME_MAX_LEN];                      /* user name of /etc/passwd; "": none */
};

static int user_request_parse(const char *text, struct user_request *ret, struct berth_err *err)
{
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    if (len >= sizeof ret->user || (colon && strlen(colon + 1) >= sizeof ret->group))
        return err_set(err, EINVAL, "the name of the image's user is too long");
    memcpy(ret->user, text, len);
    if (colon)
        memcpy(ret->group, colon + 1, strlen(colon + 1));
    if (!*ret->user)
        memcpy(ret->user, "0", 2);
    return 0;
}

/* name:password:uid:gid:... */
static int user_find(int root, struct user_request *w, struct image_user *ret, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    char *at, *fields[FIELDS_MAX];
    bool number = id_read(w->user, &ret->uid);
    int rc = users_read(root, "etc/passwd", &text, err);
    if (rc < 0)
        return rc;
    for (at = text; line_next(&at, 4, fields);) {
        uint32_t uid, gid;
        if (!id_read(fields[2], &uid) || !id_read(fields[3], &gid) || strlen(fields[0]) >= sizeof w->name ||
            (number ? uid != ret->uid : strcmp(fields[0], w->user) != 0))
            continue;
        memcpy(w->name, fields[0], strlen(fields[0]) + 1);
        ret->uid = uid;
        ret->gid = gid;
        return 0;
    }
    if (number || strcmp(w->user, "root") == 0)
        return 0; /* uid 0 or the given number, with group 0 */
    return err_set(err, EINVAL, "the image runs as user '%s', which is not in its /etc/passwd", w->user);
}

static bool is_member(char *members, const char *name)
{
    for (char *one; (one = strsep(&members, ","));)
        if (*name && strcmp(one, name) == 0)
            return true;
    return false;
}

/* name:password:gid:member,member */
static int groups_find(int root, const struct user_request *w, struct image_user *ret, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    char *at, *fields[FIELDS_MAX];
    if (*w->group && id_read(w->group, &ret->gid))
        return 0;
    int rc = users_read(root, "etc/group", &text, err);
    if (rc < 0)
        return rc;
    for (at = text; line_next(&at, 4, fields);) {
        uint32_t gid;
        if (!id_read(fields[2], &gid))
            continue;
        if (*w->group && strcmp(fields[0], w->group) == 0) {
            ret->gid = gid;
            return 0;
        }
        if (!*w->group && gid != ret->gid && ret->groups_len < IMAGE_GROUPS_MAX && is_member(fields[3], w->name))
            ret->groups[ret->groups_len++] = gid;
    }
    if (*w->group && strcmp(w->group, "root") != 0)
        return err_set(err, EINVAL, "the image runs as group '%s', which is not in its /etc/group", w->group);
    ret->gid = *w->group ? 0 : ret->gid;
    return 0;
}

int image_user_find(int root, const char *user, struct image_user *ret, struct berth_err *err)
{
    struct image_user found = {0};
    struct user_request w = {0};
    if (!user || !*user) {
        *ret = found;
        return 0;
    }
    int rc = user_request_parse(user, &w, err);
    rc = rc < 0 ? rc : user_find(root, &w, &found, err);
    rc = rc < 0 ? rc : groups_find(root, &w, &found, err);
    if (rc == 0)
        *ret = found;
    return rc;
}
