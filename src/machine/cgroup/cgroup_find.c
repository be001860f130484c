/* cgroup_find.c - finds the cgroup hierarchies and the agent's cgroup in each.
 *
 * The version of a hierarchy is known from its file system type; for other file systems (a test's directory), from the
 * names of its files.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/cgroup/cgroup_parts.h"
#include "machine/probe/probe_parts.h"

/* Names in v1 (directories) and in v2 (in cgroup.controllers). */
static const struct {
    const char *v1, *v2;
} names[CTL_LEN] = {
    [CTL_CPU] = {"cpu",     "cpu"    },
    [CTL_CPUACCT] = {"cpuacct", NULL     },
    [CTL_MEMORY] = {"memory",  "memory" },
    [CTL_PIDS] = {"pids",    "pids"   },
    [CTL_IO] = {"blkio",   "io"     },
    [CTL_FREEZER] = {"freezer", NULL     },
    [CTL_HUGETLB] = {"hugetlb", "hugetlb"},
};

/* ---- text ------------------------------------------------------------------------------------------------------- */

/* Tells whether the text contains the word, with words separated by these characters. */
static bool text_has_word(const char *text, const char *separators, const char *word)
{
    size_t len = strlen(word);
    while (*text) {
        size_t n = strcspn(text, separators);
        if (n == len && strncmp(text, word, n) == 0)
            return true;
        text += n;
        text += strspn(text, separators);
    }
    return false;
}

static unsigned controllers_v2(const char *text)
{
    unsigned bits = 0;
    for (size_t i = 0; i < CTL_LEN; i++)
        if (names[i].v2 && text_has_word(text, " \n", names[i].v2))
            bits |= 1U << i;
    return bits;
}

static unsigned controllers_v1(const char *text)
{
    unsigned bits = 0;
    for (size_t i = 0; i < CTL_LEN; i++)
        if (text_has_word(text, ",", names[i].v1))
            bits |= 1U << i;
    return bits;
}

static char *joined(const char *a, const char *b)
{
    struct str s = {0};
    str_addf(&s, "%s%s", a, b);
    return str_take(&s);
}

/* ---- hierarchies ------------------------------------------------------------------------------------------------ */

/* Returns the cgroup version of a mount point: 1 or 2; 0: none. */
static int version_of(const char *path)
{
    CLEANUP(mem) char *v2 = joined(path, "/cgroup.controllers"), *v1 = joined(path, "/cgroup.procs");
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return 0;
    if (fs.f_type == CGROUP2_SUPER_MAGIC)
        return 2;
    if (fs.f_type == CGROUP_SUPER_MAGIC)
        return 1;
    return access(v2, F_OK) == 0 ? 2 : access(v1, F_OK) == 0 ? 1 : 0;
}

static void tree_add(struct cgroups *c, const char *path, int version, unsigned controllers)
{
    if (c->trees_len == TREES_MAX)
        return;
    struct cgroup_tree *t = &c->trees[c->trees_len++];
    *t = (struct cgroup_tree){.v2 = version == 2, .controllers = controllers, .mount = mem_strdup(path)};
    t->path = joined(path, c->name);
}

static int entry_compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Links such as `cpu -> cpu,cpuacct` are skipped, because their targets are listed, too. */
static void trees_find(struct cgroups *c, const char *root)
{
    if (version_of(root) == 2) {
        tree_add(c, root, 2, 0);
        return;
    }
    struct dirent **entries;
    int len = scandir(root, &entries, NULL, entry_compare);
    for (int i = 0; i < len; i++) {
        CLEANUP(mem) char *slash = joined("/", entries[i]->d_name), *path = joined(root, slash);
        struct stat st;
        int version =
            entries[i]->d_name[0] == '.' || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) ? 0 : version_of(path);
        if (version)
            tree_add(c, path, version, version == 1 ? controllers_v1(entries[i]->d_name) : 0);
        free(entries[i]);
    }
    if (len >= 0)
        free(entries);
}

/* ---- the agent's cgroup in a hierarchy -------------------------------------------------------------------------- */

/* Returns the agent's own cgroup in this hierarchy, relative to the mount; "" at the top or if unknown. */
static void own_group(const struct cgroup_tree *t, char buf[static GROUP_PATH_MAX])
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[GROUP_PATH_MAX];
    *buf = '\0';
    while (f && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (t->v2 ? list[1] == '\0' : (controllers_v1(list + 1) & t->controllers) != 0)
            (void)snprintf(buf, GROUP_PATH_MAX, "%s", strcmp(path, "/") == 0 ? "" : path);
    }
    if (f)
        (void)fclose(f);
}

/* Creates every directory of `name` below `base`; tells whether cgroups can be created there. */
static bool group_ensure(const char *base, const char *name)
{
    CLEANUP(mem) char *path = joined(base, name);
    size_t at = strlen(base);
    while (path[at]) {
        at += 1 + strcspn(path + at + 1, "/");
        char kept = path[at];
        path[at] = '\0';
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        path[at] = kept;
        if (!made)
            return false;
    }
    return access(path, W_OK | X_OK) == 0;
}

/* Moves all processes of a cgroup to the agent's leaf, if the agent is one of them: then the cgroup is the top of the
 * agent's own container, or was delegated to it. */
static bool group_processes_move(const struct cgroup_tree *t, const char *dir)
{
    CLEANUP(mem)
    char *from = joined(dir, "/cgroup.procs"), *leaf = joined(t->path, "/" CGROUP_LEAF),
         *to = joined(leaf, "/cgroup.procs");
    enum { ROUNDS_MAX = 16 };
    for (int round = 0; round < ROUNDS_MAX; round++) {
        FILE *f = fopen(from, "re");
        char line[32];
        bool own = round > 0, any = false;
        while (f && fgets(line, sizeof line, f)) {
            any = true;
            own = own || strtol(line, NULL, 10) == (long)getpid();
        }
        if (f && own && any && (mkdir(leaf, 0755) == 0 || errno == EEXIST))
            for (rewind(f); fgets(line, sizeof line, f);)
                (void)sysfile_put(to, line); /* fails for ended processes and kernel threads */
        if (f)
            (void)fclose(f);
        if (!any || !own)
            return f && own;
    }
    return true; /* some processes may be left; the caller's next attempt shows whether that matters */
}

/* Enables the cgroup's own controllers for its children. */
static void controllers_enable_children(const struct cgroup_tree *t, const char *dir)
{
    CLEANUP(mem) char *here = joined(dir, "/cgroup.controllers"), *below = joined(dir, "/cgroup.subtree_control");
    char text[512];
    unsigned has = sysfile_get(here, text, sizeof text) < 0 ? 0 : controllers_v2(text);
    unsigned gives = sysfile_get(below, text, sizeof text) < 0 ? 0 : controllers_v2(text);
    struct str all = {0};
    for (size_t i = 0; i < CTL_LEN; i++)
        if ((has & ~gives) >> i & 1)
            str_addf(&all, "%s+%s", all.len ? " " : "", names[i].v2);
    int rc = all.len ? sysfile_put(below, all.at) : 0;
    if (rc == -EBUSY && group_processes_move(t, dir))
        rc = sysfile_put(below, all.at);
    for (size_t i = 0; rc < 0 && i < CTL_LEN; i++) {
        /* one by one: a controller that cannot be enabled does not block the others */
        char one[16];
        if ((has & ~gives) >> i & 1 && snprintf(one, sizeof one, "+%s", names[i].v2) > 0)
            (void)sysfile_put(below, one);
    }
    str_done(&all);
}

/* Enables the controllers on each level from the base to the agent's cgroup, and reads which are available there. */
static void controllers_enable(struct cgroup_tree *t, size_t base_len)
{
    CLEANUP(mem) char *dir = mem_strdup(t->path), *given = joined(t->path, "/cgroup.subtree_control");
    char text[512];
    for (size_t at = base_len;; at += 1 + strcspn(t->path + at + 1, "/")) {
        dir[at] = '\0';
        controllers_enable_children(t, dir);
        if (!t->path[at])
            break;
        dir[at] = t->path[at];
    }
    t->controllers = sysfile_get(given, text, sizeof text) < 0 ? 0 : controllers_v2(text);
}

/* Creates the agent's cgroup at the top or, if that is not writable (in a container only a part of the hierarchy is),
 * below the agent's own cgroup. */
static void agent_group_create(struct cgroups *c, struct cgroup_tree *t)
{
    char own[GROUP_PATH_MAX];
    own_group(t, own);
    CLEANUP(mem) char *inner = joined(t->mount, own);
    const char *base = group_ensure(t->mount, c->name)                                    ? t->mount
                       : *own && access(inner, W_OK) == 0 && group_ensure(inner, c->name) ? inner
                                                                                          : NULL;
    if (!base)
        return;
    mem_free(t->path);
    t->path = joined(base, c->name);
    t->ours = true;
    if (t->v2)
        controllers_enable(t, strlen(base));
    else if (t->controllers & 1U << CTL_MEMORY) {
        /* Before Linux 5.11 usage of descendants counts only with this setting; later kernels always count it. */
        CLEANUP(mem) char *hierarchy = joined(t->path, "/memory.use_hierarchy");
        (void)sysfile_put(hierarchy, "1");
    }
}

/* Assigns each controller to its hierarchy; a controller belongs to one at a time. v2 counts CPU time and freezes
 * without a controller. */
static void controllers_assign(struct cgroups *c)
{
    for (size_t i = 0; i < c->trees_len; i++)
        for (size_t k = 0; k < CTL_LEN; k++)
            if (c->trees[i].ours && c->trees[i].controllers >> k & 1 && !c->of[k])
                c->of[k] = &c->trees[i];
}

/* ---- disks ------------------------------------------------------------------------------------------------------ */

static bool file_contains(const char *path, const char *word)
{
    char text[4096];
    return sysfile_get(path, text, sizeof text) > 0 && strstr(text, word);
}

/* Lists whole, non-empty disks in /sys/block, found beside /sys/fs/cgroup. Disks backed by memory or files are left
 * out. */
static void disks_find(struct cgroups *c, const char *root)
{
    static const char *const not_disks[] = {"loop", "ram", "zram", "fd"};
    CLEANUP(mem) char *block = joined(root, "/../../block"), *cost = joined(root, "/io.cost.qos");
    struct dirent **entries;
    int len = scandir(block, &entries, NULL, entry_compare);
    for (int i = 0; i < len; i++) {
        CLEANUP(mem) char *slash = joined("/", entries[i]->d_name), *disk = joined(block, slash);
        CLEANUP(mem)
        char *size = joined(disk, "/size"), *dev = joined(disk, "/dev"), *queue = joined(disk, "/queue/scheduler");
        char number[32], sectors[32];
        bool poses = entries[i]->d_name[0] == '.';
        for (size_t k = 0; k < sizeof not_disks / sizeof *not_disks; k++)
            poses = poses || strncmp(entries[i]->d_name, not_disks[k], strlen(not_disks[k])) == 0;
        free(entries[i]);
        if (poses || sysfile_get(size, sectors, sizeof sectors) <= 0 || strtoll(sectors, NULL, 10) == 0 ||
            sysfile_get(dev, number, sizeof number) <= 0)
            continue;
        number[strcspn(number, "\n")] = '\0';
        str_add_bytes(&c->disks, number, strlen(number) + 1);
        c->weighs_io = c->weighs_io || file_contains(queue, "[bfq]");
    }
    if (len >= 0)
        free(entries);
    c->weighs_io = c->weighs_io || file_contains(cost, "enable=1");
}

/* ---- huge pages ------------------------------------------------------------------------------------------------- */

/* Finds directories such as "hugepages-2048kB" in /sys/kernel/mm/hugepages. */
static void pages_find(struct cgroups *c, const char *root)
{
    CLEANUP(mem) char *folder = joined(root, "/../../kernel/mm/hugepages");
    DIR *dir = opendir(folder);
    size_t len = 0;
    for (struct dirent *e; dir && len < CGROUP_PAGES_MAX && (e = readdir(dir));) {
        int64_t page_bytes = probe_page_bytes(e->d_name);
        if (page_bytes)
            c->pages[len++] = page_bytes;
    }
    if (dir)
        (void)closedir(dir);
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static bool agent_name_ok(const char *name)
{
    bool ok = *name && strlen(name) <= GROUP_NAME_MAX;
    for (const char *at = name; ok && at; at = strchr(at, '/'), at = at ? at + 1 : NULL)
        ok = *at && *at != '/' && *at != '.';
    return ok;
}

int cgroups_open(const char *root, const char *name, struct cgroups **ret, struct berth_err *err)
{
    if (!agent_name_ok(name))
        return err_set(
            err, EINVAL,
            "\"%.40s\" is not a valid control group name: use a path such as \"berth\", without a slash at either "
            "end and without parts that begin with a dot",
            name);
    struct cgroups *c = mem_zalloc(sizeof *c);
    c->name = joined("/", name);
    trees_find(c, root);
    size_t ours = 0;
    for (size_t i = 0; i < c->trees_len; i++) {
        struct cgroup_tree *t = &c->trees[i];
        if (ours < CGROUP_PATHS_MAX && (t->v2 || t->controllers))
            agent_group_create(c, t);
        ours += t->ours;
    }
    controllers_assign(c);
    disks_find(c, root);
    pages_find(c, root);
    *ret = c;
    return 0;
}

void cgroups_free(struct cgroups *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->trees_len; i++) {
        mem_free(c->trees[i].mount);
        mem_free(c->trees[i].path);
    }
    str_done(&c->disks);
    mem_free(c->name);
    mem_free(c);
}

const char *cgroups_version(const struct cgroups *c)
{
    bool v1 = false, v2 = false;
    for (size_t i = 0; i < c->trees_len; i++) {
        v1 = v1 || (c->trees[i].ours && !c->trees[i].v2);
        v2 = v2 || (c->trees[i].ours && c->trees[i].v2);
    }
    return v1 && v2 ? "mixed" : v1 ? "v1" : v2 ? "v2" : "none";
}
