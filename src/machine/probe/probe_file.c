/* probe_file.c - reads small kernel files and parses names in them. */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/probe/probe_parts.h"
#include "wire/text/quantity.h"

enum { FILE_MAX = 1 << 20, PATH_BYTES_MAX = 4096 };

static bool path_make(char buf[static PATH_BYTES_MAX], const char *root, const char *path, va_list args)
{
    int head = snprintf(buf, PATH_BYTES_MAX, "%s/", root ? root : "");
    if (head < 0 || head >= PATH_BYTES_MAX)
        return false;
    int tail = vsnprintf(buf + head, (size_t)(PATH_BYTES_MAX - head), path, args);
    return tail >= 0 && tail < PATH_BYTES_MAX - head;
}

static bool file_read(const char *path, struct str *ret)
{
    char buf[4096];
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    str_clear(ret);
    while (ret->len < FILE_MAX && (n = read(fd, buf, sizeof buf)) > 0)
        str_add_bytes(ret, buf, (size_t)n);
    (void)close(fd);
    return n >= 0; /* for example, the speed of an interface that is down cannot be read */
}

bool probe_file(const char *root, struct str *ret, const char *path, ...)
{
    char buf[PATH_BYTES_MAX];
    va_list args;
    va_start(args, path);
    bool ok = path_make(buf, root, path, args);
    va_end(args);
    return ok && file_read(buf, ret);
}

/* Reads the first line, up to a NUL, which terminates values of a device tree. */
static const char *line_read(const char *path, char buf[static PROBE_TEXT_MAX])
{
    CLEANUP(str) struct str s = {0};
    *buf = '\0';
    if (file_read(path, &s))
        (void)snprintf(buf, PROBE_TEXT_MAX, "%s", str_text(&s));
    buf[strcspn(buf, "\n")] = '\0';
    return buf;
}

const char *probe_line(const char *root, char buf[static PROBE_TEXT_MAX], const char *path, ...)
{
    char full[PATH_BYTES_MAX];
    va_list args;
    va_start(args, path);
    bool ok = path_make(full, root, path, args);
    va_end(args);
    *buf = '\0';
    return ok ? line_read(full, buf) : buf;
}

int64_t probe_number(const char *root, int64_t otherwise, const char *path, ...)
{
    char full[PATH_BYTES_MAX], line[PROBE_TEXT_MAX];
    int64_t number;
    va_list args;
    va_start(args, path);
    bool ok = path_make(full, root, path, args);
    va_end(args);
    return ok && str_parse_i64(line_read(full, line), &number) ? number : otherwise;
}

bool probe_exists(const char *root, const char *path, ...)
{
    char full[PATH_BYTES_MAX];
    va_list args;
    va_start(args, path);
    bool ok = path_make(full, root, path, args);
    va_end(args);
    return ok && access(full, F_OK) == 0;
}

static int entry_compare(const struct dirent **a, const struct dirent **b)
{
    return strverscmp((*a)->d_name, (*b)->d_name);
}

void probe_each(const char *root, const char *path, void (*each)(void *ctx, const char *name), void *ctx)
{
    CLEANUP(str) struct str full = {0};
    struct dirent **entries;
    str_addf(&full, "%s/%s", root ? root : "", path);
    int len = scandir(full.at, &entries, NULL, entry_compare);
    for (int i = 0; i < len; i++) {
        if (entries[i]->d_name[0] != '.')
            each(ctx, entries[i]->d_name);
        free(entries[i]);
    }
    if (len >= 0)
        free(entries);
}

int64_t probe_meminfo(const char *text, const char *key)
{
    size_t len = strlen(key);
    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
        if (at[len] != ':' || (at > text && at[-1] != '\n' && at[-1] != ' '))
            continue;
        long long kib = strtoll(at + len + 1, NULL, 10);
        return kib >= 0 && kib <= INT64_MAX / 1024 ? (int64_t)kib * 1024 : -1;
    }
    return -1;
}

bool probe_is_disk(const char *root, const char *name)
{
    static const char *const not_disks[] = {"loop", "ram", "zram", "fd", "sr", "nbd"};
    for (size_t i = 0; i < sizeof not_disks / sizeof *not_disks; i++)
        if (strncmp(name, not_disks[i], strlen(not_disks[i])) == 0)
            return false;
    return probe_number(root, 0, "sys/block/%s/size", name) > 0;
}

int64_t probe_page_bytes(const char *folder)
{
    static const char prefix[] = "hugepages-";
    char *end;
    if (strncmp(folder, prefix, sizeof prefix - 1) != 0)
        return 0;
    long long kib = strtoll(folder + sizeof prefix - 1, &end, 10);
    return strcmp(end, "kB") == 0 && kib > 0 && kib < INT64_MAX / 1024 ? (int64_t)kib * 1024 : 0;
}

const char *probe_pages_name(int64_t page_bytes, char buf[static PROBE_TEXT_MAX])
{
    char size[QUANTITY_TEXT_MAX];
    (void)snprintf(buf, PROBE_TEXT_MAX, "hugepages-%s", quantity_print("memory", page_bytes, size));
    return buf;
}

json_t *probe_amount(const char *resource, int64_t amount)
{
    char text[QUANTITY_TEXT_MAX];
    return json_string(quantity_print(resource, amount, text));
}

int64_t probe_round(int64_t shown, int64_t raw, int64_t step_min)
{
    int64_t step = 1;
    for (int64_t rest = raw; rest >= 100; rest /= 10)
        step *= 10;
    step = step < step_min ? step_min : step;
    int64_t off = raw > shown ? raw - shown : shown - raw;
    if (shown >= 0 && off <= step / 4 * 3)
        return shown;
    return (raw + step / 2) / step * step;
}
