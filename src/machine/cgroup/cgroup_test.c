/* cgroup_test.c - real cgroups with real processes. */
#include "machine/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

#define ROOT "/sys/fs/cgroup"
#define MIB (INT64_C(1) << 20)
#define SECOND INT64_C(1000000000)
#define QUOTA_SECONDS_MAX 60
#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

/* ---- cgroup and its processes ----------------------------------------------------------------------------------- */

struct scene {
    struct cgroups *c;
    char unenforced[CGROUP_LIST_MAX];
};

static void brief(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Kills again before each attempt to remove the cgroup: a forked process may enter after the cgroup was found empty. */
static void scene_end(struct scene *s, const char *name)
{
    for (;; brief()) {
        if (cgroup_kill(s->c, name) == -EBUSY)
            continue;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (cgroup_remove(s->c, name) != -EBUSY)
            return;
    }
}

static void scene_cleanup(struct scene *s)
{
    if (!s->c)
        return;
    scene_end(s, "a");
    scene_end(s, "b");
    (void)cgroups_remove(s->c);
    cgroups_free(s->c);
}

static const char *own_name(void)
{
    static char name[64];
    (void)snprintf(name, sizeof name, "berth-test-%d", (int)getpid());
    return name;
}

static struct scene scene_new(const char *root)
{
    struct scene s = {0};
    struct berth_err err;
    if (cgroups_open(root, own_name(), &s.c, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static void make(struct scene *s, const char *name, struct cgroup_limits limits)
{
    struct berth_err err;
    if (cgroup_make(s->c, name, &limits, s->unenforced, &err) < 0)
        fail_msg("%s", err.text);
}

/* Tells whether the kernel has this controller, in any hierarchy. */
static bool is_there(const char *resource)
{
    static const char *const lists[] = {ROOT "/cgroup.controllers", ROOT "/unified/cgroup.controllers"};
    char path[128], word[32];
    (void)snprintf(path, sizeof path, ROOT "/%s/cgroup.procs", resource);
    bool found = access(path, W_OK) == 0;
    for (size_t i = 0; i < ROWS(lists); i++) {
        FILE *f = fopen(lists[i], "re");
        while (f && fscanf(f, "%31s", word) == 1)
            found = found || strcmp(word, resource) == 0;
        if (f)
            (void)fclose(f);
    }
    return found;
}

/* Skips the test if this kernel cannot limit the resource; if it can, the limit must be enforced. */
static void needs(struct scene *s, const char *resource)
{
    if (is_there(resource)) {
        assert_string_equal(s->unenforced, "");
        return;
    }
    print_message("skip: this kernel does not limit %s here (%s)\n", resource, cgroups_version(s->c));
    scene_cleanup(s);
    s->c = NULL;
    skip();
}

/* Starts a process in the cgroup that exits with the result of `run`. */
static pid_t spawn(struct scene *s, const char *name, int (*run)(void))
{
    char *paths[CGROUP_PATHS_MAX];
    size_t len = cgroup_procs_paths(s->c, name, paths);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (size_t i = 0; i < len; i++) {
            int fd = open(paths[i], O_WRONLY | O_CLOEXEC);
            if (fd < 0 || write(fd, "0", 1) != 1)
                _exit(99);
            (void)close(fd);
        }
        _exit(run());
    }
    for (size_t i = 0; i < len; i++)
        mem_free(paths[i]);
    return pid;
}

static int wait_for(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static struct cgroup_usage usage(struct scene *s, const char *name)
{
    struct cgroup_usage u;
    int rc = cgroup_usage(s->c, name, &u);
    if (rc < 0)
        fail_msg("usage of %s: %s", name, strerror(-rc));
    return u;
}

static int64_t now_ns(void)
{
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &t), 0);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- programs --------------------------------------------------------------------------------------------------- */

static int spin(void)
{
    for (volatile uint64_t i = 0;; i++)
        ;
    return 0;
}

static int wait_for_ever(void)
{
    for (;;)
        (void)pause();
    return 0;
}

/* Allocates 64 MiB and touches each page. */
static int hog(void)
{
    char *at = mmap(NULL, (size_t)(64 * MIB), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 98;
    for (size_t i = 0; i < (size_t)(64 * MIB); i += 4096)
        at[i] = 1;
    return 0;
}

static int hold_16_mib(void)
{
    char *at = mmap(NULL, (size_t)(16 * MIB), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return 98;
    for (size_t i = 0; i < (size_t)(16 * MIB); i += 4096)
        at[i] = 1;
    return wait_for_ever();
}

/* Opens the first real disk with O_DIRECT; -1: none. */
static int disk_open(void)
{
    static const char *const names[] = {"vda", "sda", "nvme0n1", "xvda"};
    char path[32];
    for (size_t i = 0; i < ROWS(names); i++) {
        (void)snprintf(path, sizeof path, "/dev/%s", names[i]);
        int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

static int read_5_mib(void)
{
    static _Alignas(4096) char chunk[256 << 10];
    int fd = disk_open();
    for (int i = 0; i < 20; i++)
        if (pread(fd, chunk, sizeof chunk, (off_t)i * (off_t)sizeof chunk) != (ssize_t)sizeof chunk)
            return 98;
    return 0;
}

/* Forks until it fails; returns the number of forks. */
static int bomb(void)
{
    for (int i = 0; i < 200; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return i;
        if (pid == 0)
            wait_for_ever();
    }
    return 200;
}

/* Each process forks successors and exits, so none lives long enough to be seen in a list. */
static int run_away(void)
{
    for (;;) {
        (void)setsid();
        (void)signal(SIGCHLD, SIG_IGN);
        pid_t first = fork(), second = first > 0 ? fork() : 0;
        if (second > 0)
            _exit(0);
    }
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void cpu_quota_is_enforced(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    make(&s, "a", (struct cgroup_limits){.cpu_milli = 200});
    needs(&s, "cpu");
    int64_t begin_ns = now_ns(), used_ns, passed_ns;
    (void)spawn(&s, "a", spin);
    (void)spawn(&s, "a", spin);
    /* A fifth of a core plus some time slices; without the quota the usage would grow without bound. After a pause of
     * the whole machine the running process is charged for it and gets less CPU time later. */
    do {
        brief();
        used_ns = usage(&s, "a").cpu_ns;
        passed_ns = now_ns() - begin_ns;
    } while (passed_ns < SECOND ||
             ((used_ns == 0 || used_ns > passed_ns * 3 / 10) && passed_ns < QUOTA_SECONDS_MAX * SECOND));
    assert_true(used_ns > 0);
    if (used_ns > passed_ns * 3 / 10)
        fail_msg("used %lld ms of cpu in %lld ms", (long long)(used_ns / 1000000), (long long)(passed_ns / 1000000));
}

static void memory_limit_kills_only_in_its_cgroup(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    make(&s, "a", (struct cgroup_limits){.memory_bytes = 16 * MIB});
    needs(&s, "memory");
    make(&s, "b", (struct cgroup_limits){.memory_bytes = 256 * MIB});
    int neighbour, status;
    pid_t other = spawn(&s, "b", wait_for_ever);
    status = wait_for(spawn(&s, "a", hog));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    struct cgroup_usage u = usage(&s, "a");
    assert_true(u.oom_kills >= 1);
    assert_true(u.memory_peak_bytes > 0 && u.memory_peak_bytes <= 16 * MIB);
    assert_int_equal(waitpid(other, &neighbour, WNOHANG), 0);
    assert_int_equal(usage(&s, "b").oom_kills, 0);
    /* the same program in a cgroup with enough memory */
    assert_int_equal(wait_for(spawn(&s, "b", hog)), 0);
}

static void pids_limit_stops_fork_bomb(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    make(&s, "a", (struct cgroup_limits){.pids = 16});
    needs(&s, "pids");
    int status = wait_for(spawn(&s, "a", bomb));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 15);
    assert_int_equal(usage(&s, "a").pids, 15); /* the first of the 16 has exited */
    assert_false(cgroup_empty(s.c, "a"));
    assert_int_equal(cgroup_remove(s.c, "a"), -EBUSY);
    assert_int_equal(cgroup_kill(s.c, "a"), 0);
    assert_true(cgroup_empty(s.c, "a"));
    assert_int_equal(cgroup_remove(s.c, "a"), 0);
    assert_int_equal(cgroup_remove(s.c, "a"), 0);
}

static void fast_forking_processes_are_killed(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    make(&s, "a", (struct cgroup_limits){.pids = 24, .cpu_milli = 500});
    if (!strcmp(cgroups_version(s.c), "none")) {
        print_message("skip: no control groups here\n");
        skip();
    }
    (void)wait_for(spawn(&s, "a", run_away));
    for (int i = 0; i < 20; i++)
        brief();
    assert_false(cgroup_empty(s.c, "a"));
    int rounds = 0;
    while (cgroup_kill(s.c, "a") == -EBUSY)
        assert_true(++rounds < 50);
    assert_true(cgroup_empty(s.c, "a"));
    for (int i = 0; i < 20; i++)
        brief();
    assert_true(cgroup_empty(s.c, "a"));
}

static void signal_reaches_every_process(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    make(&s, "a", (struct cgroup_limits){0});
    if (!strcmp(cgroups_version(s.c), "none")) {
        print_message("skip: no control groups here\n");
        skip();
    }
    assert_int_equal(cgroup_signal(s.c, "a", SIGTERM), -ESRCH);
    make(&s, "b", (struct cgroup_limits){0});
    pid_t one = spawn(&s, "a", wait_for_ever), two = spawn(&s, "a", wait_for_ever),
          three = spawn(&s, "b", wait_for_ever);
    while (usage(&s, "a").pids < 2 || usage(&s, "b").pids < 1)
        brief();
    struct berth_err err;
    char unenforced[CGROUP_LIST_MAX];
    assert_int_equal(cgroup_make(s.c, "a", &(struct cgroup_limits){0}, unenforced, &err), -EEXIST);
    assert_int_equal(cgroup_signal(s.c, "a", SIGTERM), 0);
    int status = wait_for(one);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    status = wait_for(two);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(waitpid(three, &status, WNOHANG), 0);
    assert_true(cgroup_empty(s.c, "a"));
}

/* Compares a file of the cgroup with the expected text of its hierarchy's version. */
static void reads(struct scene *s, const char *name, const char *v1, const char *v1_want, const char *v2,
                  const char *v2_want)
{
    char *paths[CGROUP_PATHS_MAX], text[256] = "", *found = NULL;
    const char *want = NULL;
    size_t len = cgroup_procs_paths(s->c, name, paths);
    for (size_t i = 0; i < len; i++) {
        struct statfs fs;
        char path[512];
        assert_int_equal(statfs(paths[i], &fs), 0);
        bool is_v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
        *strrchr(paths[i], '/') = '\0';
        (void)snprintf(path, sizeof path, "%s/%s", paths[i], is_v2 ? v2 : v1);
        FILE *f = fopen(path, "re");
        if (f) {
            text[fread(text, 1, sizeof text - 1, f)] = '\0';
            (void)fclose(f);
            found = text;
            want = is_v2 ? v2_want : v1_want;
        }
        mem_free(paths[i]);
    }
    assert_non_null(found);
    text[strcspn(text, "\n")] = '\0';
    assert_string_equal(found, want);
}

static void limits_are_written_and_changed(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    make(&s, "a", (struct cgroup_limits){.cpu_weight = 20, .cpu_milli = 500});
    needs(&s, "cpu");
    reads(&s, "a", "cpu.shares", "204", "cpu.weight", "20");
    reads(&s, "a", "cpu.cfs_quota_us", "50000", "cpu.max", "50000 100000");
    struct berth_err err;
    struct cgroup_limits more = {.cpu_weight = 40, .cpu_milli = 7};
    assert_int_equal(cgroup_set(s.c, "a", &more, s.unenforced, &err), 0);
    assert_string_equal(s.unenforced, "");
    reads(&s, "a", "cpu.shares", "409", "cpu.weight", "40");
    reads(&s, "a", "cpu.cfs_quota_us", "7000", "cpu.max", "7000 1000000");
    assert_int_equal(cgroup_set(s.c, "a", &(struct cgroup_limits){.cpu_request = 1000}, s.unenforced, &err), 0);
    reads(&s, "a", "cpu.shares", "1024", "cpu.weight", "100");
    reads(&s, "a", "cpu.cfs_quota_us", "-1", "cpu.max", "max 100000");
    assert_int_equal(cgroup_set(s.c, "b", &more, s.unenforced, &err), -ENOENT);
}

/* All limits in one cgroup: those without a controller are listed as unenforced, as is `io` in v1, which throttles only
 * direct writes. */
static void all_limits_in_one_cgroup(void **state)
{
    (void)state;
    static const struct {
        const char *resource, *controller;
    } rows[] = {
        {"cpu",           "cpu"    },
        {"hugepages-2Mi", "hugetlb"},
        {"io",            "io"     },
        {"memory",        "memory" },
        {"pids",          "pids"   },
    };
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    char want[CGROUP_LIST_MAX] = "";
    for (size_t i = 0; i < ROWS(rows); i++)
        if (!is_there(rows[i].controller))
            (void)snprintf(want + strlen(want), sizeof want - strlen(want), "%s%s", *want ? "," : "", rows[i].resource);
    make(&s, "a",
         (struct cgroup_limits){.cpu_milli = 1500,
                                .cpu_weight = 30,
                                .memory_bytes = 64 * MIB,
                                .pids = 50,
                                .io_bytes = 10 * MIB,
                                .hugepages = {{2 * MIB, 4 * MIB}}});
    assert_string_equal(s.unenforced, want);
    if (is_there("hugetlb"))
        reads(&s, "a", "hugetlb.2MB.limit_in_bytes", "4194304", "hugetlb.2MB.max", "4194304");
    assert_int_equal(wait_for(spawn(&s, "a", hog)) != 0, is_there("memory"));
}

static void io_limit_throttles_reads(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    int fd = disk_open();
    if (fd < 0) {
        print_message("skip: there is no disk that may be read\n");
        skip();
    }
    (void)close(fd);
    make(&s, "a", (struct cgroup_limits){.io_bytes = 2 * MIB});
    needs(&s, "io");
    int64_t begin = now_ns();
    assert_int_equal(wait_for(spawn(&s, "a", read_5_mib)), 0);
    /* 2.5 s without the initial burst; never less, even on an idle machine */
    assert_true(now_ns() - begin > 1500000000);
    assert_true(usage(&s, "a").io_read_bytes >= 5 * MIB);
}

static void memory_limit_is_raised_and_lowered(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    make(&s, "a", (struct cgroup_limits){.memory_bytes = 64 * MIB});
    needs(&s, "memory");
    static const struct {
        int64_t mib;
        const char *unenforced, *v1, *v2;
    } rows[] = {
        {128, "",       "134217728",           "134217728"},
        {32,  "",       "33554432",            "33554432" },
        {4,   "memory", "33554432",            "33554432" }, /* below the usage of 16 MiB */
        {0,   "",       "9223372036854771712", "max"      },
        {48,  "",       "50331648",            "50331648" },
    };
    (void)spawn(&s, "a", hold_16_mib);
    while (usage(&s, "a").memory_bytes < 16 * MIB)
        brief();
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct cgroup_limits limits = {.memory_bytes = rows[i].mib * MIB};
        assert_int_equal(cgroup_set(s.c, "a", &limits, s.unenforced, NULL), 0);
        assert_string_equal(s.unenforced, rows[i].unenforced);
        reads(&s, "a", "memory.limit_in_bytes", rows[i].v1, "memory.max", rows[i].v2);
    }
    assert_int_equal(usage(&s, "a").oom_kills, 0);
}

/* ---- after a restart -------------------------------------------------------------------------------------------- */

struct seen {
    char text[256];
};

static void see(void *ctx, const char *name)
{
    struct seen *seen = ctx;
    size_t len = strlen(seen->text);
    (void)snprintf(seen->text + len, sizeof seen->text - len, "%s ", name);
}

static void cgroups_of_earlier_agent_are_found(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    if (!strcmp(cgroups_version(s.c), "none")) {
        print_message("skip: no control groups here\n");
        skip();
    }
    make(&s, "b", (struct cgroup_limits){0});
    make(&s, "a", (struct cgroup_limits){0});
    (void)spawn(&s, "b", wait_for_ever);
    struct cgroups *again;
    struct seen seen = {0};
    assert_int_equal(cgroups_open(ROOT, own_name(), &again, NULL), 0);
    assert_int_equal(cgroups_each(again, see, &seen), 0);
    assert_string_equal(seen.text, "a b ");
    assert_int_equal(cgroups_remove(again), -EBUSY);
    make(&s, "a", (struct cgroup_limits){0}); /* an empty cgroup is reused */
    cgroups_free(again);
}

/* Cgroups that a container's runtime created below, or in an unused hierarchy, are removed, too. */
static void descendant_cgroups_are_removed(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(ROOT);
    char *paths[CGROUP_PATHS_MAX];
    make(&s, "a", (struct cgroup_limits){0});
    size_t len = cgroup_procs_paths(s.c, "a", paths);
    if (!len) {
        print_message("skip: no control groups here\n");
        skip();
    }
    for (size_t i = 0; i < len; i++) {
        char path[512];
        *strrchr(paths[i], '/') = '\0';
        (void)snprintf(path, sizeof path, "%s/deep", paths[i]);
        assert_int_equal(mkdir(path, 0755), 0);
        (void)snprintf(path, sizeof path, "%s/deep/er", paths[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    assert_int_equal(cgroup_remove(s.c, "a"), 0);
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(access(paths[i], F_OK), -1);
        mem_free(paths[i]);
    }
}

/* ---- v2 only ---------------------------------------------------------------------------------------------------- */

/* Returns the path of a v2 hierarchy; NULL: none. */
static const char *v2_root(void)
{
    static const char *const places[] = {ROOT, ROOT "/unified"};
    for (size_t i = 0; i < ROWS(places); i++) {
        struct statfs fs;
        if (statfs(places[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC && access(places[i], W_OK) == 0)
            return places[i];
    }
    print_message("skip: this machine has no cgroup v2 that can be written to\n");
    skip();
    return NULL;
}

static void v2_alone_counts_and_kills(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = scene_new(v2_root());
    assert_string_equal(cgroups_version(s.c), "v2");
    make(&s, "a", (struct cgroup_limits){0});
    (void)spawn(&s, "a", spin);
    (void)spawn(&s, "a", wait_for_ever);
    while (usage(&s, "a").cpu_ns == 0)
        brief();
    assert_false(cgroup_empty(s.c, "a"));
    int rc;
    while ((rc = cgroup_kill(s.c, "a")) == -EBUSY)
        ;
    assert_int_equal(rc, 0);
    assert_true(cgroup_empty(s.c, "a"));
}

/* If the agent's own cgroup must enable controllers for its children, as at the top of a container, the agent and its
 * neighbours move to a leaf. */
static void v2_agent_moves_to_leaf(void **state)
{
    (void)state;
    char top[256], path[512], text[512] = "";
    (void)snprintf(top, sizeof top, "%s/%s-top", v2_root(), own_name());
    (void)snprintf(path, sizeof path, "%s/cgroup.subtree_control", v2_root());
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    f = fopen(path, "we"); /* makes at least one controller available */
    if (f) {
        (void)fputs("+hugetlb", f);
        (void)fclose(f);
    }
    assert_int_equal(mkdir(top, 0755), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct cgroups *c;
        (void)snprintf(path, sizeof path, "%s/cgroup.procs", top);
        FILE *own = fopen(path, "we");
        if (!own || fputs("0", own) < 0 || fclose(own) != 0)
            _exit(1);
        (void)snprintf(path, sizeof path, "%s/cgroup.controllers", top);
        own = fopen(path, "re");
        size_t has = own ? fread(text, 1, sizeof text, own) : 0;
        if (has < 2)
            _exit(77);
        if (cgroups_open(top, "berth", &c, NULL) < 0)
            _exit(2);
        (void)snprintf(path, sizeof path, "%s/berth/agent/cgroup.procs", top);
        FILE *leaf = fopen(path, "re");
        if (!leaf || fgets(text, sizeof text, leaf) == NULL || atoi(text) != (int)getpid())
            _exit(3);
        (void)snprintf(path, sizeof path, "%s/berth/cgroup.subtree_control", top);
        leaf = fopen(path, "re");
        if (!leaf || fread(text, 1, sizeof text, leaf) < 2)
            _exit(4);
        _exit(0);
    }
    int status = wait_for(pid);
    static const char *const dirs[] = {"/berth/agent", "/berth", ""};
    for (size_t i = 0; i < ROWS(dirs); i++) {
        (void)snprintf(path, sizeof path, "%s%s", top, dirs[i]);
        (void)rmdir(path);
    }
    if (!strstr(text, "hugetlb")) {
        (void)snprintf(path, sizeof path, "%s/cgroup.subtree_control", v2_root());
        f = fopen(path, "we");
        if (f) {
            (void)fputs("-hugetlb", f);
            (void)fclose(f);
        }
    }
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("skip: this v2 hierarchy has no controllers\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_written_and_changed),
        cmocka_unit_test(cpu_quota_is_enforced),
        cmocka_unit_test(memory_limit_kills_only_in_its_cgroup),
        cmocka_unit_test(pids_limit_stops_fork_bomb),
        cmocka_unit_test(fast_forking_processes_are_killed),
        cmocka_unit_test(signal_reaches_every_process),
        cmocka_unit_test(all_limits_in_one_cgroup),
        cmocka_unit_test(io_limit_throttles_reads),
        cmocka_unit_test(memory_limit_is_raised_and_lowered),
        cmocka_unit_test(cgroups_of_earlier_agent_are_found),
        cmocka_unit_test(descendant_cgroups_are_removed),
        cmocka_unit_test(v2_alone_counts_and_kills),
        cmocka_unit_test(v2_agent_moves_to_leaf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
