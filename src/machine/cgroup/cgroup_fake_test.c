/* cgroup_fake_test.c - the bytes written to kernel files, in a directory that imitates /sys/fs/cgroup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine/cgroup/cgroup.h"
#include "machine/launch/folder_test.h"

#define MIB (INT64_C(1) << 20)

static void cgroups_cleanup(struct cgroups **c)
{
    cgroups_free(*c);
}

/* ---- reading limits --------------------------------------------------------------------------------------------- */

static void limits_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        struct cgroup_limits want;
        const char *other, *error; /* error: part of the message; NULL: none */
    } rows[] = {
        {"{}",                                                                                            {0},                                 "",   NULL                                                          },
        {"{'requests': {'cpu': '250m', 'memory': '1Gi'}}",                                                {.cpu_request = 250},                "",   NULL                                                          },
        {"{'limits': {'cpu': {'amount': '1500m'}, 'memory': {'amount': '2Gi'}, 'pids': {'amount': 64}}}",
         {.cpu_milli = 1500, .memory_bytes = 2048 * MIB, .pids = 64},
         "",                                                                                                                                         NULL                                                          },
        {"{'limits': {'cpu': {'weight': 20}, 'io': {'weight': 10}}}",                                     {.cpu_weight = 20, .io_weight = 10}, "",   NULL                                                          },
        {"{'limits': {'io': {'amount': '30M'}}}",                                                         {.io_bytes = 30000000},              "",   NULL                                                          },
        {"{'requests': {'hugepages-2Mi': '6Mi'}}",                                                        {.hugepages = {{2 * MIB, 6 * MIB}}}, "",   NULL                                                          },
        {"{'requests': {'hugepages-2Mi': '6Mi'}, 'limits': {'hugepages-2Mi': {'amount': '8Mi'}}}",
         {.hugepages = {{2 * MIB, 6 * MIB}}},
         "",                                                                                                                                         NULL                                                          },
        {"{'limits': {'hugepages-2Mi': {'amount': '4Mi'}}}",                                              {0},                                 "",   NULL                                                          },
        {"{'limits': {'traffic': {'amount': '1G'}, 'network': {'weight': 5}, 'memory': {'weight': 5}}}",
         {0},
         "memory,network,traffic",                                                                                                                   NULL                                                          },
        {"{'limits': {'cpu': {'weight': 0}}}",
         {0},
         NULL,                                                                                                                                       "limits: cpu: weight: expected a whole number from 1 to 10000"},
        {"{'limits': {'cpu': {'weight': 10001}}}",                                                        {0},                                 NULL, "1 to 10000"                                                  },
        {"{'limits': {'memory': {'amount': 'much'}}}",                                                    {0},                                 NULL, "limits: memory: expected an amount"                          },
        {"{'limits': {'memory': {'amount': -1}}}",                                                        {0},                                 NULL, "below 0"                                                     },
        {"{'limits': {'memory': {'amount': 0}}}",                                                         {0},                                 NULL, "must be above 0"                                             },
        {"{'limits': {'memory': {}}}",                                                                    {0},                                 NULL, "either an amount or a weight"                                },
        {"{'limits': {'cpu': {'amount': 1, 'weight': 1}}}",                                               {0},                                 NULL, "either an amount or a weight"                                },
        {"{'limits': []}",                                                                                {0},                                 NULL, "limits: expected an object"                                  },
        {"{'requests': {'cpu': 'x'}}",                                                                    {0},                                 NULL, "requests: cpu"                                               },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[512], other[CGROUP_LIST_MAX];
        struct cgroup_limits got;
        struct berth_err err;
        (void)snprintf(text, sizeof text, "%s", rows[i].config);
        for (char *at = text; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        json_t *config = json_loads(text, 0, NULL);
        assert_non_null(config);
        int rc = cgroup_limits_read(config, &got, other, &err);
        json_decref(config);
        if (rows[i].error) {
            assert_int_equal(rc, -EINVAL);
            if (!strstr(err.text, rows[i].error))
                fail_msg("%s: \"%s\"", rows[i].config, err.text);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_string_equal(other, rows[i].other);
        if (memcmp(&got, &rows[i].want, sizeof got) != 0)
            fail_msg("%s", rows[i].config);
    }
}

static void long_list_is_cut_with_dots(void **state)
{
    (void)state;
    json_t *limits = json_object();
    for (int i = 0; i < 40; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "resource-%02d", i);
        assert_int_equal(json_object_set_new(limits, name, json_pack("{s:i}", "amount", 1)), 0);
    }
    json_t *config = json_pack("{s:o}", "limits", limits);
    struct cgroup_limits got;
    char other[CGROUP_LIST_MAX];
    assert_int_equal(cgroup_limits_read(config, &got, other, NULL), 0);
    json_decref(config);
    assert_ptr_equal(strstr(other, "resource-00,resource-01,"), other);
    assert_string_equal(other + strlen(other) - 4, ",...");
}

/* ---- v2 --------------------------------------------------------------------------------------------------------- */

static void put_all(const struct folder *f, const char *dir, const char *const *files, const char *text)
{
    for (; *files; files++) {
        char path[256];
        (void)snprintf(path, sizeof path, "%s/%s", dir, *files);
        folder_put(f, path, text);
    }
}

static void disk_put(const struct folder *f, const char *scheduler)
{
    folder_put(f, "block/sda/size", "1000\n");
    folder_put(f, "block/sda/dev", "8:0\n");
    folder_put(f, "block/sda/queue/scheduler", scheduler);
    folder_put(f, "block/loop0/size", "1000\n");
    folder_put(f, "block/loop0/dev", "7:0\n");
    folder_put(f, "block/sr0/size", "0\n");
    folder_put(f, "block/sr0/dev", "11:0\n");
}

static void v2_put(const struct folder *f, const char *scheduler)
{
    static const char *const files[] = {"cgroup.procs",    "cpu.max",          "cpu.weight",  "memory.max",
                                        "memory.swap.max", "memory.oom.group", "pids.max",    "io.max",
                                        "io.weight",       "hugetlb.2MB.max",  "cgroup.kill", NULL};
    folder_put(f, "fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma\n");
    folder_put(f, "fs/cgroup/cgroup.subtree_control", "");
    folder_put(f, "fs/cgroup/berth/cgroup.controllers", "cpu io memory hugetlb pids\n");
    folder_put(f, "fs/cgroup/berth/cgroup.subtree_control", "cpu io memory hugetlb pids\n");
    put_all(f, "fs/cgroup/berth/7", files, "");
    folder_put(f, "fs/cgroup/berth/7/memory.current", "4096\n");
    disk_put(f, scheduler);
}

static void v2_files_hold_the_limits(void **state)
{
    (void)state;
    static const struct {
        struct cgroup_limits limits;
        const char *file, *want;
    } rows[] = {
        {{.cpu_milli = 1500},                 "cpu.max",          "150000 100000"                  },
        {{.cpu_milli = 5},                    "cpu.max",          "5000 1000000"                   },
        {{0},                                 "cpu.max",          "max 100000"                     },
        {{.cpu_weight = 20},                  "cpu.weight",       "20"                             },
        {{.cpu_request = 2500},               "cpu.weight",       "250"                            },
        {{.cpu_request = 5},                  "cpu.weight",       "1"                              },
        {{.cpu_request = 512000},             "cpu.weight",       "10000"                          },
        {{0},                                 "cpu.weight",       "10"                             },
        {{.memory_bytes = 64 * MIB},          "memory.max",       "67108864"                       },
        {{.memory_bytes = 64 * MIB + 17},     "memory.max",       "67108864"                       },
        {{.memory_bytes = 64 * MIB},          "memory.swap.max",  "0"                              },
        {{.memory_bytes = 64 * MIB},          "memory.oom.group", "1"                              },
        {{0},                                 "memory.max",       "max"                            },
        {{.pids = 9},                         "pids.max",         "9"                              },
        {{0},                                 "pids.max",         "4096"                           },
        {{.io_bytes = 30 * MIB},              "io.max",           "8:0 rbps=31457280 wbps=31457280"},
        {{0},                                 "io.max",           "8:0 rbps=max wbps=max"          },
        {{.io_weight = 20},                   "io.weight",        "default 20"                     },
        {{.hugepages = {{2 * MIB, 5 * MIB}}}, "hugetlb.2MB.max",  "4194304"                        },
        {{0},                                 "hugetlb.2MB.max",  "0"                              }, /* default */
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        CLEANUP(cgroups) struct cgroups *c = NULL;
        char unenforced[CGROUP_LIST_MAX] = "?", file[128];
        struct berth_err err;
        v2_put(&f, "none [bfq]\n");
        folder_put(&f, "kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
        assert_int_equal(cgroups_open(folder_at(&f, "fs/cgroup"), "berth", &c, &err), 0);
        assert_string_equal(cgroups_version(c), "v2");
        if (cgroup_make(c, "7", &rows[i].limits, unenforced, &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(unenforced, "");
        (void)snprintf(file, sizeof file, "fs/cgroup/berth/7/%s", rows[i].file);
        assert_string_equal(folder_get(&f, file), rows[i].want);
        /* known controllers are enabled for children; unused ones (cpuset, rdma) are not */
        assert_string_equal(folder_get(&f, "fs/cgroup/cgroup.subtree_control"), "+cpu +memory +pids +io +hugetlb");
    }
}

#define ALL                                                                                                            \
    {                                                                                                                  \
        .cpu_milli = 1000, .memory_bytes = 64 * MIB, .pids = 9, .io_bytes = MIB, .hugepages = {                        \
            {2 * MIB, 4 * MIB}                                                                                         \
        }                                                                                                              \
    }

static void missing_controllers_are_reported(void **state)
{
    (void)state;
    static const struct {
        const char *controllers, *lost; /* controllers: enabled for children; lost: a removed file */
        struct cgroup_limits limits;
        const char *want;
    } rows[] = {
        {"cpu io memory pids hugetlb\n", NULL,              ALL,                  ""                                },
        {"cpu io memory pids\n",         NULL,              ALL,                  "hugepages-2Mi"                   },
        {"cpu memory\n",                 NULL,              ALL,                  "hugepages-2Mi,io,pids"           },
        {"\n",                           NULL,              ALL,                  "cpu,hugepages-2Mi,io,memory,pids"},
        {"\n",                           NULL,              {.cpu_request = 100}, ""                                },
        {"cpu io memory pids hugetlb\n", "memory.max",      ALL,                  "memory"                          },
        {"cpu io memory pids hugetlb\n", "cpu.max",         ALL,                  "cpu"                             },
        {"cpu io memory pids hugetlb\n", "cpu.weight",      ALL,                  ""                                },
        {"cpu io memory pids hugetlb\n", "cpu.weight",      {.cpu_weight = 3},    "cpu"                             },
        {"cpu io memory pids hugetlb\n", "io.max",          ALL,                  "io"                              },
        {"cpu io memory pids hugetlb\n", "memory.swap.max", ALL,                  ""                                },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        CLEANUP(cgroups) struct cgroups *c = NULL;
        char unenforced[CGROUP_LIST_MAX], file[128];
        v2_put(&f, "[none]\n");
        folder_put(&f, "fs/cgroup/berth/cgroup.controllers", "\n");
        folder_put(&f, "fs/cgroup/berth/cgroup.subtree_control", rows[i].controllers);
        if (rows[i].lost) {
            (void)snprintf(file, sizeof file, "fs/cgroup/berth/7/%s", rows[i].lost);
            assert_int_equal(unlink(folder_at(&f, file)), 0);
        }
        assert_int_equal(cgroups_open(folder_at(&f, "fs/cgroup"), "berth", &c, NULL), 0);
        assert_int_equal(cgroup_make(c, "7", &rows[i].limits, unenforced, NULL), 0);
        assert_string_equal(unenforced, rows[i].want);
    }
}

/* A weight has no effect unless a disk's scheduler supports weights. */
static void io_weight_needs_a_scheduler_with_weights(void **state)
{
    (void)state;
    static const struct {
        const char *scheduler, *cost, *want;
    } rows[] = {
        {"[none] bfq\n", NULL,                       "io"},
        {"none [bfq]\n", NULL,                       ""  },
        {"[none]\n",     "8:0 enable=1 ctrl=auto\n", ""  },
        {"[none]\n",     "8:0 enable=0 ctrl=auto\n", "io"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        CLEANUP(cgroups) struct cgroups *c = NULL;
        char unenforced[CGROUP_LIST_MAX];
        v2_put(&f, rows[i].scheduler);
        if (rows[i].cost)
            folder_put(&f, "fs/cgroup/io.cost.qos", rows[i].cost);
        assert_int_equal(cgroups_open(folder_at(&f, "fs/cgroup"), "berth", &c, NULL), 0);
        assert_int_equal(cgroup_make(c, "7", &(struct cgroup_limits){.io_weight = 50}, unenforced, NULL), 0);
        assert_string_equal(unenforced, rows[i].want);
    }
}

/* A limit below the usage is not applied, because the kernel would kill. */
static void memory_limit_below_usage_is_not_applied(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(cgroups) struct cgroups *c = NULL;
    char unenforced[CGROUP_LIST_MAX];
    v2_put(&f, "[none]\n");
    folder_put(&f, "fs/cgroup/berth/7/memory.current", "33554432\n");
    folder_put(&f, "fs/cgroup/berth/7/memory.reclaim", "");
    folder_put(&f, "fs/cgroup/berth/7/memory.max", "67108864\n");
    assert_int_equal(cgroups_open(folder_at(&f, "fs/cgroup"), "berth", &c, NULL), 0);
    assert_int_equal(cgroup_set(c, "7", &(struct cgroup_limits){.memory_bytes = 16 * MIB}, unenforced, NULL), 0);
    assert_string_equal(unenforced, "memory");
    assert_string_equal(folder_get(&f, "fs/cgroup/berth/7/memory.max"), "67108864\n");
    assert_string_equal(folder_get(&f, "fs/cgroup/berth/7/memory.reclaim"), "16777216");
    assert_int_equal(cgroup_set(c, "7", &(struct cgroup_limits){.memory_bytes = 32 * MIB}, unenforced, NULL), 0);
    assert_string_equal(unenforced, "");
    assert_string_equal(folder_get(&f, "fs/cgroup/berth/7/memory.max"), "33554432");
}

static void v2_usage_is_read(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(cgroups) struct cgroups *c = NULL;
    struct cgroup_usage u;
    v2_put(&f, "[none]\n");
    assert_int_equal(cgroups_open(folder_at(&f, "fs/cgroup"), "berth", &c, NULL), 0);
    assert_int_equal(cgroup_usage(c, "8", &u), -ENOENT);
    folder_put(&f, "fs/cgroup/berth/7/cpu.stat", "usage_usec 1234\nuser_usec 1000\n");
    folder_put(&f, "fs/cgroup/berth/7/memory.current", "1000000\n");
    folder_put(&f, "fs/cgroup/berth/7/memory.peak", "2000000\n");
    folder_put(&f, "fs/cgroup/berth/7/memory.stat", "anon 1\ninactive_file 400000\nactive_file 5\n");
    folder_put(&f, "fs/cgroup/berth/7/memory.events", "low 0\noom 4\noom_kill 3\n");
    folder_put(&f, "fs/cgroup/berth/7/pids.current", "5\n");
    folder_put(&f, "fs/cgroup/berth/7/io.stat", "8:0 rbytes=10 wbytes=20 rios=1\n8:16 rbytes=1 wbytes=2 rios=1\n");
    assert_int_equal(cgroup_usage(c, "7", &u), 0);
    static const struct cgroup_usage want = {1234000, 600000, 2000000, 5, 11, 22, 3};
    assert_memory_equal(&u, &want, sizeof u);
}

/* ---- v1 --------------------------------------------------------------------------------------------------------- */

static void v1_put(const struct folder *f)
{
    static const char *const procs[] = {"fs/cgroup/cpu,cpuacct", "fs/cgroup/memory", "fs/cgroup/pids",
                                        "fs/cgroup/blkio", "fs/cgroup/devices"};
    for (size_t i = 0; i < ROWS(procs); i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/cgroup.procs", procs[i]);
        folder_put(f, path, "1\n");
    }
    assert_int_equal(symlink("cpu,cpuacct", folder_at(f, "fs/cgroup/cpu")), 0);
    folder_put(f, "fs/cgroup/cpu,cpuacct/a/b/7/cpu.shares", "");
    folder_put(f, "fs/cgroup/cpu,cpuacct/a/b/7/cpu.cfs_quota_us", "");
    folder_put(f, "fs/cgroup/cpu,cpuacct/a/b/7/cpu.cfs_period_us", "");
    folder_put(f, "fs/cgroup/cpu,cpuacct/a/b/7/cpuacct.usage", "77\n");
    folder_put(f, "fs/cgroup/memory/a/b/7/memory.limit_in_bytes", "");
    folder_put(f, "fs/cgroup/memory/a/b/7/memory.memsw.limit_in_bytes", "");
    folder_put(f, "fs/cgroup/pids/a/b/7/pids.max", "");
    folder_put(f, "fs/cgroup/blkio/a/b/7/blkio.throttle.read_bps_device", "");
    folder_put(f, "fs/cgroup/blkio/a/b/7/blkio.throttle.write_bps_device", "");
    folder_put(f, "fs/cgroup/blkio/a/b/7/blkio.bfq.weight", "");
    disk_put(f, "[bfq]\n");
}

static void v1_files_hold_the_limits(void **state)
{
    (void)state;
    static const struct {
        struct cgroup_limits limits;
        const char *file, *want, *unenforced;
    } rows[] = {
        {{.cpu_milli = 1500},        "cpu,cpuacct/a/b/7/cpu.cfs_quota_us",          "150000",      ""  },
        {{.cpu_milli = 1},           "cpu,cpuacct/a/b/7/cpu.cfs_period_us",         "1000000",     ""  },
        {{0},                        "cpu,cpuacct/a/b/7/cpu.cfs_quota_us",          "-1",          ""  },
        {{.cpu_weight = 100},        "cpu,cpuacct/a/b/7/cpu.shares",                "1024",        ""  },
        {{.cpu_request = 10},        "cpu,cpuacct/a/b/7/cpu.shares",                "10",          ""  },
        {{.memory_bytes = 64 * MIB}, "memory/a/b/7/memory.limit_in_bytes",          "67108864",    ""  },
        {{.memory_bytes = 64 * MIB}, "memory/a/b/7/memory.memsw.limit_in_bytes",    "67108864",    ""  },
        {{0},                        "memory/a/b/7/memory.limit_in_bytes",          "-1",          ""  },
        {{.pids = 9},                "pids/a/b/7/pids.max",                         "9",           ""  },
        {{.io_weight = 500},         "blkio/a/b/7/blkio.bfq.weight",                "500",         ""  },
        {{.io_weight = 5000},        "blkio/a/b/7/blkio.bfq.weight",                "1000",        "io"},
        {{.io_bytes = MIB},          "blkio/a/b/7/blkio.throttle.read_bps_device",  "8:0 1048576", "io"},
        {{.io_bytes = MIB},          "blkio/a/b/7/blkio.throttle.write_bps_device", "8:0 1048576", "io"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        CLEANUP(cgroups) struct cgroups *c = NULL;
        char unenforced[CGROUP_LIST_MAX], file[128], path[64];
        char *procs_paths[CGROUP_PATHS_MAX];
        v1_put(&f);
        assert_int_equal(cgroups_open(folder_at(&f, "fs/cgroup"), "a/b", &c, NULL), 0);
        assert_string_equal(cgroups_version(c), "v1");
        assert_int_equal(cgroup_make(c, "7", &rows[i].limits, unenforced, NULL), 0);
        assert_string_equal(unenforced, rows[i].unenforced);
        (void)snprintf(file, sizeof file, "fs/cgroup/%s", rows[i].file);
        assert_string_equal(folder_get(&f, file), rows[i].want);
        assert_string_equal(cgroup_path(c, "7", path, sizeof path), "/a/b/7");
        size_t len = cgroup_procs_paths(c, "7", procs_paths); /* without `devices`, whose controller is not used */
        assert_int_equal(len, 4);
        assert_string_equal(procs_paths[0], folder_at(&f, "fs/cgroup/blkio/a/b/7/cgroup.procs"));
        for (size_t k = 0; k < len; k++)
            mem_free(procs_paths[k]);
    }
}

static void without_hierarchies_nothing_is_enforced(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(cgroups) struct cgroups *c = NULL;
    struct cgroup_usage u;
    char unenforced[CGROUP_LIST_MAX];
    char *procs_paths[CGROUP_PATHS_MAX];
    assert_int_equal(cgroups_open(f.path, "berth", &c, NULL), 0);
    assert_string_equal(cgroups_version(c), "none");
    assert_int_equal(cgroup_make(c, "7", &(struct cgroup_limits){.cpu_milli = 1, .pids = 1}, unenforced, NULL), 0);
    assert_string_equal(unenforced, "cpu,pids");
    assert_int_equal(cgroup_procs_paths(c, "7", procs_paths), 0);
    assert_int_equal(cgroup_usage(c, "7", &u), -ENODEV);
    assert_int_equal(cgroup_kill(c, "7"), 0);
    assert_true(cgroup_empty(c, "7"));
    assert_int_equal(cgroup_remove(c, "7"), 0);
}

static void invalid_names_are_rejected(void **state)
{
    (void)state;
    static const char *const agents[] = {"", "/berth", "berth/", "a//b", "..", "a/../b", ".", "a/./b"};
    static const char *const groups[] = {"", "a/b", "..", ".", ".x", "/", "agent"};
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(cgroups) struct cgroups *c = NULL;
    struct berth_err err;
    char unenforced[CGROUP_LIST_MAX];
    v2_put(&f, "[none]\n");
    for (size_t i = 0; i < ROWS(agents); i++)
        assert_int_equal(cgroups_open(folder_at(&f, "fs/cgroup"), agents[i], &c, &err), -EINVAL);
    assert_int_equal(cgroups_open(folder_at(&f, "fs/cgroup"), "berth", &c, &err), 0);
    for (size_t i = 0; i < ROWS(groups); i++) {
        assert_int_equal(cgroup_make(c, groups[i], &(struct cgroup_limits){0}, unenforced, &err), -EINVAL);
        assert_int_equal(cgroup_kill(c, groups[i]), -EINVAL);
        assert_int_equal(cgroup_remove(c, groups[i]), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_read),
        cmocka_unit_test(long_list_is_cut_with_dots),
        cmocka_unit_test(v2_files_hold_the_limits),
        cmocka_unit_test(missing_controllers_are_reported),
        cmocka_unit_test(io_weight_needs_a_scheduler_with_weights),
        cmocka_unit_test(memory_limit_below_usage_is_not_applied),
        cmocka_unit_test(v2_usage_is_read),
        cmocka_unit_test(v1_files_hold_the_limits),
        cmocka_unit_test(without_hierarchies_nothing_is_enforced),
        cmocka_unit_test(invalid_names_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
