/* cgroup_file.c - reads and writes small kernel files as a whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/cgroup/cgroup_parts.h"

bool cgroup_name_ok(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && len <= GROUP_NAME_MAX && name[0] != '.' && !strchr(name, '/') && strcmp(name, CGROUP_LEAF) != 0;
}

const char *cgfile_path(const struct cgroup_tree *t, const char *name, const char *file,
                        char buf[static GROUP_PATH_MAX])
{
    int len = snprintf(buf, GROUP_PATH_MAX, "%s/%s%s%s", t->path, name, file ? "/" : "", file ? file : "");
    return len < GROUP_PATH_MAX ? buf : NULL;
}

int sysfile_put(const char *path, const char *text)
{
    size_t len = strlen(text);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, text, len);
    int rc = n < 0 ? -errno : (size_t)n < len ? -EIO : 0;
    (void)close(fd);
    return rc;
}

ssize_t sysfile_get(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    size_t len = 0;
    ssize_t n = 1;
    while (len + 1 < size && (n = read(fd, buf + len, size - 1 - len)) > 0) {
        len += (size_t)n;
        if (buf[len - 1] == '\n')
            break;
    }
    int rc = n < 0 ? -errno : 0;
    (void)close(fd);
    buf[len] = '\0';
    return rc < 0 ? rc : (ssize_t)len;
}

int cgfile_put(const struct cgroup_tree *t, const char *name, const char *file, const char *text)
{
    char buf[GROUP_PATH_MAX];
    const char *path = cgfile_path(t, name, file, buf);
    return path ? sysfile_put(path, text) : -ENAMETOOLONG;
}

ssize_t cgfile_get(const struct cgroup_tree *t, const char *name, const char *file, char *buf, size_t size)
{
    char path[GROUP_PATH_MAX];
    return cgfile_path(t, name, file, path) ? sysfile_get(path, buf, size) : -ENAMETOOLONG;
}

int cgfile_number(const struct cgroup_tree *t, const char *name, const char *file, int64_t *ret)
{
    char text[64];
    ssize_t len = cgfile_get(t, name, file, text, sizeof text);
    if (len < 0)
        return (int)len;
    text[strcspn(text, " \n")] = '\0';
    if (strcmp(text, "max") == 0) {
        *ret = INT64_MAX;
        return 0;
    }
    return str_parse_i64(text, ret) ? 0 : -EINVAL;
}

int64_t sysfile_line(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, word, len) != 0 || line[len] != ' ')
            continue;
        char digits[24] = "";
        size_t n = strcspn(line + len + 1, "\n");
        int64_t number;
        if (n < sizeof digits)
            memcpy(digits, line + len + 1, n);
        return str_parse_i64(digits, &number) ? number : -1;
    }
    return -1;
}

void cgroup_names_add(char list[static CGROUP_LIST_MAX], const char *name)
{
    static const char more[] = ",...";
    size_t len = strlen(list), add = strlen(name) + (len ? 1 : 0);
    if (len >= sizeof more - 1 && strcmp(list + len - (sizeof more - 1), more) == 0)
        return;
    if (len + add + sizeof more > CGROUP_LIST_MAX)
        (void)snprintf(list + len, CGROUP_LIST_MAX - len, "%s", len ? more : more + 1);
    else
        (void)snprintf(list + len, CGROUP_LIST_MAX - len, "%s%s", len ? "," : "", name);
}
