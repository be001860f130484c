/* cgroup_limit.c - writes limits to the kernel and reads them back: a limit that reads back differently is not
 * enforced.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/cgroup/cgroup_parts.h"

enum {
    PIDS_DEFAULT = 4096,
    REQUEST_DEFAULT = 100, /* thousandths */
    WEIGHT_MAX = 10000,
    PERIOD_US = 100000,
    PERIOD_US_MAX = 1000000,
    QUOTA_US_MIN = 1000, /* the kernel's minimum */
    SHARES_MIN = 2,      /* the kernel's minimum; 1024 shares equal a v2 weight of 100 */
};

enum { VALUE_MAX = 128 };

/* A cgroup in the hierarchy that has a resource's controller. */
struct cgroup_target {
    const struct cgroups *c;
    const struct cgroup_tree *t;
    const char *name;
    const struct cgroup_limits *limits;
    bool fresh; /* just created: kernel defaults need not be written */
};

static bool exists(const struct cgroup_target *g, const char *file)
{
    char path[GROUP_PATH_MAX];
    return cgfile_path(g->t, g->name, file, path) && access(path, F_OK) == 0;
}

static bool reads(const struct cgroup_target *g, const char *file, int64_t number)
{
    int64_t seen;
    return cgfile_number(g->t, g->name, file, &seen) == 0 && seen == number;
}

/* Writes a number, reads it back and compares. */
static bool put_number(const struct cgroup_target *g, const char *file, int64_t number)
{
    char text[VALUE_MAX];
    (void)snprintf(text, sizeof text, "%" PRId64, number);
    return cgfile_put(g->t, g->name, file, number == INT64_MAX ? "max" : text) == 0 && reads(g, file, number);
}

/* Writes a text, reads it back and compares, ignoring the end of line. */
static bool put_text(const struct cgroup_target *g, const char *file, const char *text)
{
    char seen[VALUE_MAX];
    if (cgfile_put(g->t, g->name, file, text) < 0 || cgfile_get(g->t, g->name, file, seen, sizeof seen) < 0)
        return false;
    seen[strcspn(seen, "\n")] = '\0';
    return strcmp(seen, text) == 0;
}

/* ---- cpu -------------------------------------------------------------------------------------------------------- */

static int64_t weight_of(const struct cgroup_limits *l)
{
    int64_t weight = l->cpu_weight ? l->cpu_weight : (l->cpu_request ? l->cpu_request : REQUEST_DEFAULT) / 10;
    return weight < 1 ? 1 : weight > WEIGHT_MAX ? WEIGHT_MAX : weight;
}

/* Sets the CPU quota. A quota below the kernel's minimum gets a longer period. */
static bool quota_set(const struct cgroup_target *g, int64_t milli)
{
    char text[VALUE_MAX];
    int64_t period = PERIOD_US, quota = milli * (PERIOD_US / 1000);
    if (milli > INT64_MAX / PERIOD_US_MAX)
        return false;
    if (milli && quota < QUOTA_US_MIN) {
        period = PERIOD_US_MAX;
        quota = milli * (PERIOD_US_MAX / 1000);
    }
    if (g->t->v2) {
        (void)snprintf(text, sizeof text, "%" PRId64 " %" PRId64, quota, period);
        if (!milli)
            (void)snprintf(text, sizeof text, "max %" PRId64, period);
        return put_text(g, "cpu.max", text);
    }
    if (reads(g, "cpu.cfs_period_us", period))
        return put_number(g, "cpu.cfs_quota_us", milli ? quota : -1);
    /* Removes the quota for a moment, because the new period with the old quota may be out of range. */
    return put_number(g, "cpu.cfs_quota_us", -1) && put_number(g, "cpu.cfs_period_us", period) &&
           (!milli || put_number(g, "cpu.cfs_quota_us", quota));
}

static bool cpu_set(const struct cgroup_target *g)
{
    int64_t weight = weight_of(g->limits), shares = weight * 1024 / 100;
    bool weighed = g->t->v2 ? put_number(g, "cpu.weight", weight)
                            : put_number(g, "cpu.shares", shares < SHARES_MIN ? SHARES_MIN : shares);
    bool bounded = (g->fresh && !g->limits->cpu_milli) || quota_set(g, g->limits->cpu_milli);
    return (weighed || !g->limits->cpu_weight) && (bounded || !g->limits->cpu_milli);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* The limits of memory and of memory with swap restrict each other, so their order depends on the direction of the
 * change: a write that fails at first is repeated after the other. */
static bool memory_set_v1(const struct cgroup_target *g, int64_t bytes)
{
    static const char plain[] = "memory.limit_in_bytes", swap[] = "memory.memsw.limit_in_bytes";
    char text[VALUE_MAX];
    (void)snprintf(text, sizeof text, "%" PRId64, bytes ? bytes : -1);
    bool has_swap = exists(g, swap);
    int rc = cgfile_put(g->t, g->name, plain, text);
    int swap_rc = has_swap ? cgfile_put(g->t, g->name, swap, text) : 0;
    if (rc < 0)
        rc = cgfile_put(g->t, g->name, plain, text);
    return rc == 0 && swap_rc == 0 && (!bytes || (reads(g, plain, bytes) && (!has_swap || reads(g, swap, bytes))));
}

/* A limit below the usage would invoke the OOM killer. Therefore, memory is reclaimed first; if that is not enough, the
 * old limit stays. */
static bool memory_set_v2(const struct cgroup_target *g, int64_t bytes)
{
    int64_t used = 0;
    char text[VALUE_MAX];
    if (bytes && cgfile_number(g->t, g->name, "memory.current", &used) == 0 && used > bytes) {
        (void)snprintf(text, sizeof text, "%" PRId64, used - bytes);
        (void)cgfile_put(g->t, g->name, "memory.reclaim", text);
        if (cgfile_number(g->t, g->name, "memory.current", &used) < 0 || used > bytes)
            return false;
    }
    (void)cgfile_put(g->t, g->name, "memory.oom.group", "1");
    bool kept = put_number(g, "memory.max", bytes ? bytes : INT64_MAX);
    if (exists(g, "memory.swap.max"))
        kept = put_number(g, "memory.swap.max", bytes ? 0 : INT64_MAX) && kept;
    return kept;
}

/* Sets the memory limit, rounded down to whole pages as the kernel does. */
static bool memory_set(const struct cgroup_target *g)
{
    int64_t page = sysconf(_SC_PAGESIZE), bytes = g->limits->memory_bytes;
    if (g->fresh && !bytes)
        return true;
    bytes = bytes && bytes < page ? page : bytes - bytes % page;
    return g->t->v2 ? memory_set_v2(g, bytes) : memory_set_v1(g, bytes);
}

/* ---- pids ------------------------------------------------------------------------------------------------------- */

static bool pids_set(const struct cgroup_target *g)
{
    return put_number(g, "pids.max", g->limits->pids ? g->limits->pids : PIDS_DEFAULT);
}

/* ---- io --------------------------------------------------------------------------------------------------------- */

/* Files that accept a weight, with their ranges. */
static const struct {
    const char *file;
    bool v2;
    int64_t least, most;
} weight_files[] = {
    {"io.weight",        true,  1,  WEIGHT_MAX},
    {"io.bfq.weight",    true,  1,  1000      },
    {"blkio.bfq.weight", false, 1,  1000      },
    {"blkio.weight",     false, 10, 1000      },
};

/* Sets the I/O weight. A weight outside a file's range is clamped and counts as not enforced, because the proportions
 * change. */
static bool io_weight_set(const struct cgroup_target *g, int64_t weight)
{
    bool kept = false;
    for (size_t i = 0; i < sizeof weight_files / sizeof *weight_files; i++) {
        const char *file = weight_files[i].file;
        char text[VALUE_MAX], seen[VALUE_MAX];
        if (weight_files[i].v2 != g->t->v2 || !exists(g, file))
            continue;
        int64_t least = weight_files[i].least, most = weight_files[i].most, back;
        int64_t number = weight < least ? least : weight > most ? most : weight;
        (void)snprintf(text, sizeof text, "%s%" PRId64, g->t->v2 ? "default " : "", number);
        if (cgfile_put(g->t, g->name, file, text) < 0 || cgfile_get(g->t, g->name, file, seen, sizeof seen) < 0)
            continue;
        seen[strcspn(seen, "\n")] = '\0';
        const char *value = strncmp(seen, "default ", 8) == 0 ? seen + 8 : seen;
        kept = kept || (str_parse_i64(value, &back) && back == weight);
    }
    return kept;
}

/* Tells whether the line of this disk contains this word. */
static bool line_has(const char *text, const char *disk, const char *word)
{
    size_t len = strlen(disk), want = strlen(word);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, disk, len) != 0 || line[len] != ' ')
            continue;
        size_t end = strcspn(line, "\n");
        for (const char *at = line + len; at < line + end;) {
            at += strspn(at, " ");
            size_t n = strcspn(at, " \n");
            if (n == want && strncmp(at, word, n) == 0)
                return true;
            at += n;
        }
        return false;
    }
    return false;
}

static bool io_line_put(const struct cgroup_target *g, const char *file, const char *disk, const char *value,
                        bool bounded)
{
    char text[VALUE_MAX], seen[4096], word[VALUE_MAX];
    (void)snprintf(text, sizeof text, "%s %s", disk, value);
    if (cgfile_put(g->t, g->name, file, text) < 0)
        return false;
    if (!bounded)
        return true;
    if (cgfile_get(g->t, g->name, file, seen, sizeof seen) < 0)
        return false;
    for (const char *at = value; *at;) { /* checks "rbps=1 wbps=1" word by word */
        size_t n = strcspn(at, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (!line_has(seen, disk, word))
            return false;
        at += n + strspn(at + n, " ");
    }
    return true;
}

static bool io_bytes_set(const struct cgroup_target *g, int64_t bytes)
{
    bool kept = g->c->disks.len > 0;
    for (size_t at = 0; at < g->c->disks.len; at += strlen(g->c->disks.at + at) + 1) {
        const char *disk = g->c->disks.at + at;
        char value[VALUE_MAX];
        if (g->t->v2) {
            (void)snprintf(value, sizeof value, "rbps=%" PRId64 " wbps=%" PRId64, bytes, bytes);
            kept = io_line_put(g, "io.max", disk, bytes ? value : "rbps=max wbps=max", bytes) && kept;
        } else {
            (void)snprintf(value, sizeof value, "%" PRId64, bytes);
            kept = io_line_put(g, "blkio.throttle.read_bps_device", disk, value, bytes) && kept;
            kept = io_line_put(g, "blkio.throttle.write_bps_device", disk, value, bytes) && kept;
        }
    }
    return kept;
}

/* Sets the limits of I/O. v1 throttles reads and direct writes; writeback from the page cache is not charged to the
 * cgroup. Therefore, a limit is set in v1 but reported as not enforced. */
static bool io_set(const struct cgroup_target *g)
{
    const struct cgroup_limits *l = g->limits;
    bool weighed =
        (g->fresh && !l->io_weight) || (io_weight_set(g, l->io_weight ? l->io_weight : 100) && g->c->weighs_io);
    bool bounded = (g->fresh && !l->io_bytes) || (io_bytes_set(g, l->io_bytes) && g->t->v2);
    return (weighed || !l->io_weight) && (bounded || !l->io_bytes);
}

/* ---- huge pages ------------------------------------------------------------------------------------------------- */

/* Formats a page size: "64K", "2M", "1G"; the kernel's file names append a B, resource names an i. */
static const char *pages_label(int64_t page_bytes, char buf[static VALUE_MAX])
{
    static const char units[] = "KMG";
    int64_t number = page_bytes >> 10;
    size_t unit = 0;
    for (; number >= 1024 && number % 1024 == 0 && units[unit + 1]; unit++)
        number >>= 10;
    (void)snprintf(buf, VALUE_MAX, "%" PRId64 "%c", number, units[unit]);
    return buf;
}

static bool pages_set(const struct cgroup_target *g, int64_t page_bytes, int64_t bytes)
{
    char file[2 * VALUE_MAX], reserved[2 * VALUE_MAX], label[VALUE_MAX];
    const char *end = g->t->v2 ? "max" : "limit_in_bytes";
    pages_label(page_bytes, label);
    (void)snprintf(file, sizeof file, "hugetlb.%sB.%s", label, end);
    (void)snprintf(reserved, sizeof reserved, "hugetlb.%sB.rsvd.%s", label, end);
    bytes -= bytes % page_bytes;
    if (exists(g, reserved))
        /* with this limit mmap fails; otherwise the first access would be killed */
        (void)put_number(g, reserved, bytes);
    return put_number(g, file, bytes);
}

/* ---- all limits ------------------------------------------------------------------------------------------------- */

static bool has_cpu_limit(const struct cgroup_limits *l)
{
    return l->cpu_milli || l->cpu_weight;
}

static bool has_io_limit(const struct cgroup_limits *l)
{
    return l->io_bytes || l->io_weight;
}

static bool has_memory_limit(const struct cgroup_limits *l)
{
    return l->memory_bytes;
}

static bool has_pids_limit(const struct cgroup_limits *l)
{
    return l->pids;
}

/* Sorted by name, as they are reported. */
static const struct {
    const char *resource;
    enum controller controller;
    bool (*given)(const struct cgroup_limits *l);
    bool (*set)(const struct cgroup_target *g);
} resources[] = {
    {"cpu",    CTL_CPU,    has_cpu_limit,    cpu_set   },
    {"io",     CTL_IO,     has_io_limit,     io_set    },
    {"memory", CTL_MEMORY, has_memory_limit, memory_set},
    {"pids",   CTL_PIDS,   has_pids_limit,   pids_set  },
};

/* Denies huge pages of sizes that were not requested, as they are reserved for other instances. */
static void pages_deny(const struct cgroup_target *g)
{
    for (size_t i = 0; i < CGROUP_PAGES_MAX && g->c->pages[i]; i++) {
        bool given = false;
        for (size_t k = 0; k < CGROUP_PAGES_MAX; k++)
            given = given || g->limits->hugepages[k].page_bytes == g->c->pages[i];
        if (!given)
            (void)pages_set(g, g->c->pages[i], 0);
    }
}

/* Sets the limits of huge pages; in the sorted list they come between `cpu` and `io`. */
static void pages_apply(const struct cgroups *c, const char *name, const struct cgroup_limits *limits, char *unenforced)
{
    struct cgroup_target g = {.c = c, .t = c->of[CTL_HUGETLB], .name = name, .limits = limits};
    if (g.t)
        pages_deny(&g);
    for (size_t i = 0; i < CGROUP_PAGES_MAX && limits->hugepages[i].page_bytes; i++) {
        char label[VALUE_MAX], resource[2 * VALUE_MAX];
        if (g.t && pages_set(&g, limits->hugepages[i].page_bytes, limits->hugepages[i].bytes))
            continue;
        (void)snprintf(resource, sizeof resource, "hugepages-%si", pages_label(limits->hugepages[i].page_bytes, label));
        cgroup_names_add(unenforced, resource);
    }
}

void cgroup_limits_apply(const struct cgroups *c, const char *name, const struct cgroup_limits *limits, bool fresh,
                         char ret_unenforced[static CGROUP_LIST_MAX])
{
    *ret_unenforced = '\0';
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        struct cgroup_target g = {
            .c = c, .t = c->of[resources[i].controller], .name = name, .limits = limits, .fresh = fresh};
        bool kept = g.t && resources[i].set(&g);
        if (!kept && resources[i].given(limits))
            cgroup_names_add(ret_unenforced, resources[i].resource);
        if (resources[i].controller == CTL_CPU)
            pages_apply(c, name, limits, ret_unenforced);
    }
}
