/* mount_table.c - lists and unmounts the mounts below a directory, by the kernel's mount table. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/mount/mount_tree.h"

struct mount_points {
    VEC(char *) at;
};

static void mount_points_cleanup(struct mount_points *m)
{
    for (size_t i = 0; i < m->at.len; i++)
        mem_free(m->at.at[i]);
    vec_done(&m->at);
}

static void file_cleanup(FILE **f)
{
    if (*f)
        (void)fclose(*f);
}

/* The table escapes blanks, tabs, newlines and backslashes as \ooo. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' && from[3] >= '0' &&
            from[3] <= '7') {
            *to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static bool is_below(const char *path, const char *top)
{
    size_t len = strlen(top);
    return strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Returns the mount point, the fifth word of a line. */
static char *line_point(char *line)
{
    char *save = NULL, *word = strtok_r(line, " \n", &save);
    for (int i = 0; word && i < 4; i++)
        word = strtok_r(NULL, " \n", &save);
    if (word)
        unescape(word);
    return word;
}

/* Lists mount points at or below `top` in the order of mounting. */
static int table_read(const char *top, struct mount_points *ret)
{
    CLEANUP(file) FILE *f = fopen("/proc/thread-self/mountinfo", "re");
    if (!f)
        return -errno;
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, f) > 0) {
        const char *point = line_point(line);
        if (point && is_below(point, top))
            vec_push(&ret->at, mem_strdup(point));
    }
    free(line);
    return ferror(f) ? -EIO : 0;
}

/* Resolves the path as the table writes it. -ENOENT: it does not exist. */
static int real_path(const char *path, char ret[static PATH_MAX])
{
    return realpath(path, ret) ? 0 : -errno;
}

int mounts_below_count(const char *path)
{
    char top[PATH_MAX];
    int rc = real_path(path, top);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    CLEANUP(mount_points) struct mount_points m = {0};
    rc = table_read(top, &m);
    return rc < 0 ? rc : (int)m.at.len;
}

int mounts_below_end(const char *path, struct berth_err *err)
{
    char top[PATH_MAX];
    int rc = real_path(path, top);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return err_set(err, -rc, "%s: %s", path, strerror(-rc));
    for (int round = 0; round < 3; round++) {
        CLEANUP(mount_points) struct mount_points m = {0};
        rc = table_read(top, &m);
        if (rc < 0)
            return err_set(err, -rc, "cannot read the table of mounts: %s", strerror(-rc));
        if (m.at.len == 0)
            return 0;
        for (size_t i = m.at.len; i-- > 0;)
            rc = umount2(m.at.at[i], MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT ? -errno
                                                                                                             : rc;
    }
    rc = rc < 0 ? rc : -EBUSY;
    return err_set(err, -rc, "cannot unmount the mounts below %s: %s", path, strerror(-rc));
}
