/* cgroup.c - creates cgroups of instances, reads their usage, removes them. */
#include "machine/cgroup/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/cgroup/cgroup_parts.h"

/* ---- creation --------------------------------------------------------------------------------------------------- */

static int name_check(const char *name, struct berth_err *err)
{
    if (cgroup_name_ok(name))
        return 0;
    return err_set(err, EINVAL,
                   "\"%.40s\" cannot name a control group: no slash, no dot before it, not \"" CGROUP_LEAF "\"", name);
}

static void undo(struct cgroups *c, const char *name, uint32_t made)
{
    for (size_t i = 0; i < c->trees_len; i++) {
        char path[GROUP_PATH_MAX];
        if (made >> i & 1 && cgfile_path(&c->trees[i], name, NULL, path))
            (void)rmdir(path);
    }
}

int cgroup_make(struct cgroups *c, const char *name, const struct cgroup_limits *limits,
                char ret_unenforced[static CGROUP_LIST_MAX], struct berth_err *err)
{
    uint32_t made = 0, ours = 0;
    _Static_assert(TREES_MAX <= 32, "a bit for each tree");
    int rc = name_check(name, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < c->trees_len; i++) {
        char path[GROUP_PATH_MAX];
        if (!c->trees[i].ours)
            continue;
        ours |= UINT32_C(1) << i;
        if (!cgfile_path(&c->trees[i], name, NULL, path))
            rc = -ENAMETOOLONG;
        else if (mkdir(path, 0755) == 0)
            made |= UINT32_C(1) << i;
        else if (errno != EEXIST)
            rc = -errno;
        else if (!cgroup_empty(c, name))
            rc = -EEXIST;
        if (rc < 0) {
            err_set(err, -rc, "cannot create control group %s/%s: %s", c->trees[i].path, name,
                    rc == -EEXIST ? "it still has processes" : strerror(-rc));
            undo(c, name, made);
            return rc;
        }
    }
    cgroup_limits_apply(c, name, limits, made == ours, ret_unenforced);
    return 0;
}

int cgroup_set(struct cgroups *c, const char *name, const struct cgroup_limits *limits,
               char ret_unenforced[static CGROUP_LIST_MAX], struct berth_err *err)
{
    int rc = name_check(name, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < c->trees_len; i++) {
        char path[GROUP_PATH_MAX];
        if (c->trees[i].ours && (!cgfile_path(&c->trees[i], name, NULL, path) || access(path, F_OK) < 0))
            return err_set(err, ENOENT, "control group %s/%s does not exist", c->trees[i].path, name);
    }
    cgroup_limits_apply(c, name, limits, false, ret_unenforced);
    return 0;
}

size_t cgroup_procs_paths(const struct cgroups *c, const char *name, char *ret_paths[static CGROUP_PATHS_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < c->trees_len && len < CGROUP_PATHS_MAX; i++) {
        char path[GROUP_PATH_MAX];
        if (c->trees[i].ours && cgfile_path(&c->trees[i], name, "cgroup.procs", path))
            ret_paths[len++] = mem_strdup(path);
    }
    return len;
}

const char *cgroup_unified(const struct cgroups *c, const char *name, char *buf, size_t size)
{
    for (size_t i = 0; i < c->trees_len; i++) {
        const struct cgroup_tree *t = &c->trees[i];
        if (t->ours && t->v2 && cgroup_name_ok(name) &&
            snprintf(buf, size, "%s/%s", t->path, name) < (int)(size < INT_MAX ? size : INT_MAX))
            return buf;
    }
    return NULL;
}

const char *cgroup_path(const struct cgroups *c, const char *name, char *buf, size_t size)
{
    static const enum controller order[] = {CTL_MEMORY, CTL_CPU, CTL_PIDS};
    const struct cgroup_tree *t = NULL;
    for (size_t i = 0; !t && i < sizeof order / sizeof *order; i++)
        t = c->of[order[i]];
    (void)snprintf(buf, size, "%s/%s", t ? t->path + strlen(t->mount) : c->name, name);
    return buf;
}

/* ---- usage ------------------------------------------------------------------------------------------------------ */

enum { STAT_MAX = 8192 };

/* cpu.stat exists in v2 even without the cpu controller. */
static int cpu_usage_read(const struct cgroups *c, const char *name, int64_t *ret_ns)
{
    char text[STAT_MAX];
    if (c->of[CTL_CPUACCT])
        return cgfile_number(c->of[CTL_CPUACCT], name, "cpuacct.usage", ret_ns);
    for (size_t i = 0; i < c->trees_len; i++) {
        if (!c->trees[i].ours || !c->trees[i].v2)
            continue;
        ssize_t len = cgfile_get(&c->trees[i], name, "cpu.stat", text, sizeof text);
        int64_t us = len < 0 ? -1 : sysfile_line(text, "usage_usec");
        if (us >= 0)
            *ret_ns = us * 1000;
        return len < 0 ? (int)len : 0;
    }
    return -ENODEV;
}

static void memory_usage_read(const struct cgroup_tree *t, const char *name, struct cgroup_usage *u)
{
    char text[STAT_MAX];
    if (cgfile_number(t, name, t->v2 ? "memory.current" : "memory.usage_in_bytes", &u->memory_bytes) < 0)
        return;
    if (cgfile_number(t, name, t->v2 ? "memory.peak" : "memory.max_usage_in_bytes", &u->memory_peak_bytes) < 0)
        u->memory_peak_bytes = u->memory_bytes; /* not available in v2 before Linux 5.19 */
    if (cgfile_get(t, name, "memory.stat", text, sizeof text) > 0) {
        int64_t idle = sysfile_line(text, t->v2 ? "inactive_file" : "total_inactive_file");
        u->memory_bytes -= idle < 0 ? 0 : idle < u->memory_bytes ? idle : u->memory_bytes;
    }
    if (cgfile_get(t, name, t->v2 ? "memory.events" : "memory.oom_control", text, sizeof text) > 0) {
        int64_t kills = sysfile_line(text, "oom_kill");
        u->oom_kills = kills < 0 ? 0 : kills;
    }
}

/* Adds up the numbers behind all occurrences of a word: "254:0 Read 4096", "254:0 rbytes=4096". */
static int64_t words_sum(const char *text, const char *word)
{
    int64_t sum = 0;
    size_t len = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + len, word))
        sum += strtoll(at + len, NULL, 10);
    return sum;
}

static void io_usage_read(const struct cgroup_tree *t, const char *name, struct cgroup_usage *u)
{
    char text[STAT_MAX];
    if (cgfile_get(t, name, t->v2 ? "io.stat" : "blkio.throttle.io_service_bytes_recursive", text, sizeof text) < 0)
        return;
    u->io_read_bytes = words_sum(text, t->v2 ? " rbytes=" : " Read ");
    u->io_write_bytes = words_sum(text, t->v2 ? " wbytes=" : " Write ");
}

int cgroup_usage(const struct cgroups *c, const char *name, struct cgroup_usage *ret)
{
    struct cgroup_usage u = {.io_read_bytes = -1, .io_write_bytes = -1};
    if (!cgroup_name_ok(name))
        return -EINVAL;
    int rc = cpu_usage_read(c, name, &u.cpu_ns);
    if (rc < 0 && rc != -ENODEV)
        return rc;
    if (rc == -ENODEV && !c->of[CTL_MEMORY] && !c->of[CTL_PIDS])
        return rc;
    if (c->of[CTL_MEMORY])
        memory_usage_read(c->of[CTL_MEMORY], name, &u);
    if (c->of[CTL_PIDS])
        (void)cgfile_number(c->of[CTL_PIDS], name, "pids.current", &u.pids);
    if (c->of[CTL_IO])
        io_usage_read(c->of[CTL_IO], name, &u);
    *ret = u;
    return 0;
}

/* ---- removal and listing ---------------------------------------------------------------------------------------- */

/* Removes a cgroup and its descendants; returns the first failure. Usually there are no descendants. */
static int dir_remove(const char *path, int depth)
{
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0;
    if (errno != EBUSY && errno != ENOTEMPTY)
        return -errno;
    DIR *dir = depth < GROUP_DEPTH_MAX ? opendir(path) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char below[GROUP_PATH_MAX];
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        int len = snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (len < GROUP_PATH_MAX)
            (void)dir_remove(below, depth + 1);
    }
    if (dir)
        (void)closedir(dir);
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0;
    return errno == ENOTEMPTY ? -EBUSY : -errno;
}

/* rmdir fails for a cgroup with processes, so no check is needed before. */
int cgroup_remove(struct cgroups *c, const char *name)
{
    int rc = 0;
    if (!cgroup_name_ok(name))
        return -EINVAL;
    for (size_t i = 0; i < c->trees_len; i++) {
        char path[GROUP_PATH_MAX];
        int one = cgfile_path(&c->trees[i], name, NULL, path) ? dir_remove(path, 0) : 0;
        rc = rc ? rc : one;
    }
    return rc;
}

int cgroups_remove(struct cgroups *c)
{
    int rc = 0;
    for (size_t i = 0; i < c->trees_len; i++)
        if (rmdir(c->trees[i].path) < 0 && errno != ENOENT && c->trees[i].ours)
            rc = errno == ENOTEMPTY ? -EBUSY : -errno;
    return rc;
}

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int cgroups_each(const struct cgroups *c, void (*each)(void *ctx, const char *name), void *ctx)
{
    VEC(char *) names = {0};
    int rc = 0;
    for (size_t i = 0; i < c->trees_len; i++) {
        DIR *dir = opendir(c->trees[i].path);
        if (!dir && errno != ENOENT)
            rc = -errno;
        for (struct dirent *e; dir && (e = readdir(dir));)
            if (e->d_type == DT_DIR && cgroup_name_ok(e->d_name))
                vec_push(&names, mem_strdup(e->d_name));
        if (dir)
            (void)closedir(dir);
    }
    if (names.len)
        qsort(names.at, names.len, sizeof *names.at, text_compare);
    for (size_t i = 0; i < names.len; i++)
        if (i == 0 || strcmp(names.at[i - 1], names.at[i]) != 0)
            each(ctx, names.at[i]);
    for (size_t i = 0; i < names.len; i++)
        mem_free(names.at[i]);
    vec_done(&names);
    return rc;
}
