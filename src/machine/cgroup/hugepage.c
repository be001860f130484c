#include "machine/cgroup/hugepage.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "machine/launch/state_file.h"
#include "machine/probe/probe_parts.h"
#include "wire/text/quantity.h"

static const char prefix[] = "hugepages-";

int64_t hugepage_bytes(const char *resource)
{
    int64_t bytes;
    if (strncmp(resource, prefix, sizeof prefix - 1) != 0 ||
        quantity_parse_text("memory", resource + sizeof prefix - 1, &bytes, NULL) < 0)
        return 0;
    return bytes > 0 ? bytes : 0;
}

static int resource_compare(const void *a, const void *b)
{
    return strcmp(((const struct hugepages *)a)->resource, ((const struct hugepages *)b)->resource);
}

static size_t add(struct hugepages *list, size_t len, const char *resource, const json_t *amount)
{
    int64_t page_bytes = hugepage_bytes(resource), bytes = 0;
    for (size_t i = 0; i < len; i++)
        if (list[i].page_bytes == page_bytes)
            return len;
    if (!page_bytes || len == HUGEPAGE_SIZES_MAX || quantity_parse(resource, amount, &bytes, NULL) < 0 || bytes < 0)
        return len;
    list[len] = (struct hugepages){resource, page_bytes, bytes - bytes % page_bytes};
    return len + 1;
}

size_t hugepages_read(const json_t *config, struct hugepages ret[static HUGEPAGE_SIZES_MAX])
{
    json_t *requests = json_object_get(config, "requests"), *value;
    const char *resource;
    size_t len = 0, kept = 0;
    json_object_foreach(requests, resource, value)
    {
        len = add(ret, len, resource, value);
    }
    for (size_t i = 0; i < len; i++)
        if (ret[i].bytes)
            ret[kept++] = ret[i];
    if (kept)
        qsort(ret, kept, sizeof *ret, resource_compare);
    return kept;
}

/* Builds the suffix of a variable name, with letters and digits in capitals: "2MI". */
static const char *variable(const struct hugepages *p, struct arena *arena)
{
    char *name = arena_strdup(arena, p->resource + sizeof prefix - 1);
    for (char *at = name; *at; at++)
        *at = isalnum((unsigned char)*at) ? (char)toupper((unsigned char)*at) : '_';
    return name;
}

void hugepages_mounts(const struct hugepages *pages, size_t len, const struct instance_user *user, struct arena *arena,
                      struct launch_mount *ret, const char **ret_env)
{
    for (size_t i = 0; i < len; i++) {
        const char *path = arena_fmt(arena, HUGEPAGES_FOLDER "/%s", pages[i].resource);
        ret[i] = (struct launch_mount){
            .source = "hugetlbfs",
            .type = "hugetlbfs",
            .target = path,
            .data = arena_fmt(arena, "pagesize=%" PRId64 ",size=%" PRId64 ",mode=0700,uid=%u,gid=%u",
                              pages[i].page_bytes, pages[i].bytes, user->uid, user->gid),
        };
        ret_env[i] = arena_fmt(arena, "BERTH_HUGEPAGES_%s=%s", variable(&pages[i], arena), path);
    }
}

int hugepages_set(const char *root, int64_t page_bytes, int64_t count, int64_t *ret_got, struct berth_err *err)
{
    char path[STATE_PATH_MAX], text[24], shown[QUANTITY_TEXT_MAX];
    const char *size = quantity_print("memory", page_bytes, shown);
    (void)snprintf(path, sizeof path, "%s/sys/kernel/mm/hugepages/hugepages-%" PRId64 "kB/nr_hugepages",
                   root ? root : "", page_bytes / 1024);
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return err_set(err, errno,
                       errno == ENOENT ? "this machine does not support huge pages of %s"
                                       : "cannot change the pool of %s huge pages: %m",
                       size);
    int len = snprintf(text, sizeof text, "%" PRId64 "\n", count);
    if (count < 0 || fd_write(fd, text, (size_t)len) < 0)
        return err_set(err, count < 0 ? EINVAL : errno, "the pool of %s huge pages cannot have %" PRId64 " pages", size,
                       count);
    *ret_got = probe_number(root ? root : "", 0, "sys/kernel/mm/hugepages/hugepages-%" PRId64 "kB/nr_hugepages",
                            page_bytes / 1024);
    return 0;
}
