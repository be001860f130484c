/* probe_test.c - machines imitated by files, and this machine. */
#include "machine/probe/probe.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include <cmocka.h>

#include "machine/launch/folder_test.h"
#include "machine/probe/probe_parts.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

#define SECOND INT64_C(1000000000)

struct file {
    const char *name, *text;
};

static void files_put(const struct folder *f, const struct file *files)
{
    for (; files->name; files++)
        folder_put(f, files->name, files->text);
}

static void use_cleanup(struct probe_use **p)
{
    probe_use_free(*p);
}

static void text_cleanup(char **text)
{
    free(*text);
}

static void same(const json_t *got, const char *want)
{
    CLEANUP(json) json_t *doc = json_loads(want, 0, NULL);
    CLEANUP(text) char *text = json_dumps(got, JSON_SORT_KEYS);
    assert_non_null(doc);
    if (!json_equal(got, doc))
        fail_msg("got %s", text);
}

/* ---- machines --------------------------------------------------------------------------------------------------- */

#define LAPTOP                                                                                                         \
    {"proc/meminfo", "MemTotal:       16384000 kB\nMemFree:        100 kB\nMemAvailable:    8192000 kB\n"},            \
        {"proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n"},                                \
        {"proc/sys/kernel/arch", "x86_64\n"}, {"proc/sys/kernel/osrelease", "6.1.0-9-amd64\n"},                        \
        {"proc/sys/kernel/hostname", "lap\n"}, {"proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"},   \
        {"sys/devices/system/cpu/online", "0-7\n"},                                                                    \
        {"etc/os-release", "NAME=\"Debian\"\nVERSION_ID=\"12\"\nID=debian\n"},                                         \
        {"sys/block/nvme0n1/size", "2000409264\n"}, {"sys/block/nvme0n1/queue/rotational", "0\n"},                     \
        {"sys/block/loop0/size", "1000\n"}, {"sys/block/zram0/size", "1000\n"}, {"sys/class/net/lo/type", "772\n"},    \
        {"sys/class/net/wlan0/type", "1\n"}, {"sys/class/net/wlan0/device/vendor", "x\n"},                             \
    {                                                                                                                  \
        "sys/class/net/docker0/type", "1\n"                                                                            \
    }

static const struct file laptop[] = {
    LAPTOP,
    {NULL, NULL}
};

#ifdef __x86_64__
#define VM ", \"vm\""
#else
#define VM ""
#endif

/* Two sockets with some CPUs offline, huge pages of two sizes; the agent is restricted to some CPUs. */
static const struct file server[] = {
    {"proc/meminfo",                                             "MemTotal:       67108864 kB\n"               },
    {"proc/self/status",                                         "Name:\tx\nCpus_allowed_list:\t0-1,4-5,8-11\n"},
    {"proc/sys/kernel/arch",                                     "x86_64\n"                                    },
    {"sys/devices/system/cpu/online",                            "0-9\n"                                       },
    {"usr/lib/os-release",                                       "ID='ubuntu'\nVERSION_ID=24.04\n"             },
    {"sys/devices/system/node/node0/cpulist",                    "0-4\n"                                       },
    {"sys/devices/system/node/node0/meminfo",                    "Node 0 MemTotal:       33554432 kB\n"        },
    {"sys/devices/system/node/node1/cpulist",                    "5-11\n"                                      },
    {"sys/devices/system/node/node1/meminfo",                    "Node 1 MemTotal:       33554432 kB\n"        },
    {"sys/devices/system/node/online",                           "0-1\n"                                       },
    {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",    "512\n"                                       },
    {"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",  "500\n"                                       },
    {"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "3\n"                                         },
    {"sys/kernel/mm/hugepages/hugepages-64kB/nr_hugepages",      "0\n"                                         },
    {"sys/block/sda/size",                                       "7814037168\n"                                },
    {"sys/block/sda/queue/rotational",                           "1\n"                                         },
    {"sys/block/sr0/size",                                       "100\n"                                       },
    {"sys/class/net/eth0/type",                                  "1\n"                                         },
    {"sys/class/net/eth0/device/vendor",                         "x\n"                                         },
    {"sys/class/net/eth0/speed",                                 "25000\n"                                     },
    {"sys/class/net/eth10/type",                                 "1\n"                                         },
    {"sys/class/net/eth10/device/vendor",                        "x\n"                                         },
    {"sys/class/net/eth10/speed",                                "-1\n"                                        },
    {"sys/class/net/eth2/type",                                  "1\n"                                         },
    {"sys/class/net/eth2/device/vendor",                         "x\n"                                         },
    {"usr/bin/crun",                                             ""                                            },
#ifdef __x86_64__
    {"usr/bin/qemu-system-x86_64",                               ""                                            },
#endif
    {NULL,                                                       NULL                                          },
};

/* A board with little memory, a device tree, and no file system for storage. */
static const struct file board[] = {
    {"proc/meminfo",                  "MemTotal:         200000 kB\n"},
    {"proc/sys/kernel/arch",          "aarch64\n"                    },
    {"proc/device-tree/model",        "Tiny Board Rev 2"             },
    {"sys/devices/system/cpu/online", "0\n"                          },
    {"sys/block/mmcblk0/size",        "62333952\n"                   },
    {NULL,                            NULL                           },
};

/* A container with limits of its own. */
static const struct file contained[] = {
    LAPTOP,
    {"sys/fs/cgroup/cpu.max",    "150000 100000\n"},
    {"sys/fs/cgroup/memory.max", "1073741824\n"   },
    {NULL,                       NULL             },
};
static const struct file contained_v1[] = {
    LAPTOP,
    {"sys/fs/cgroup/cpu/cpu.cfs_quota_us",         "250000\n"    },
    {"sys/fs/cgroup/cpu/cpu.cfs_period_us",        "100000\n"    },
    {"sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n"},
    {NULL,                                         NULL          },
};

static void machines_are_probed(void **state)
{
    (void)state;
    static const struct {
        const struct file *files;
        const char *want;
    } rows[] = {
        {laptop,
         "{\"allocatable\": {\"cpu\": \"7.9\", \"memory\": \"15744Mi\"}, \"arch\": \"amd64\", \"labels\": {\"arch\": \"amd64\", "
         "\"os\": \"debian\", \"os-version\": \"12\", \"kernel\": \"6.1.0-9-amd64\", \"hostname\": \"lap\"}, \"model\": \"Some "
         "CPU @ 2 GHz\", \"numa\": [], \"disks\": [{\"name\": \"nvme0n1\", \"size\": \"1024.2G\", \"rotational\": "
         "false}], \"networks\": [{\"name\": \"wlan0\"}], \"runtimes\": [\"process\"], \"devices\": {}, \"conditions\": []}"},
        {server,
         "{\"allocatable\": {\"cpu\": \"5.9\", \"memory\": \"59.75Gi\", \"hugepages-2Mi\": \"1Gi\", \"hugepages-1Gi\": \"3Gi\"}, "
         "\"arch\": \"amd64\", \"labels\": {\"arch\": \"amd64\", \"os\": \"ubuntu\", \"os-version\": \"24.04\"}, \"numa\": "
         "[{\"id\": 0, \"cpus\": \"0-4\", \"memory\": \"32Gi\"}, {\"id\": 1, \"cpus\": \"5-11\", \"memory\": \"32Gi\"}], "
         "\"disks\": [{\"name\": \"sda\", \"size\": \"4000.78G\", \"rotational\": true}], \"networks\": [{\"name\": "
         "\"eth0\", \"speed\": 25000}, {\"name\": \"eth2\"}, {\"name\": \"eth10\"}], \"runtimes\": [\"process\", \"oci\"" VM
         "], "
         "\"devices\": {}, \"conditions\": []}"                                                                             },
        {board,
         "{\"allocatable\": {\"cpu\": \"900m\", \"memory\": \"0\"}, \"arch\": \"arm64\", \"labels\": {\"arch\": \"arm64\"}, "
         "\"model\": \"Tiny Board Rev 2\", \"numa\": [], \"disks\": [{\"name\": \"mmcblk0\", \"size\": \"31.91G\", "
         "\"rotational\": false}], \"networks\": [], \"runtimes\": [\"process\"], \"devices\": {}, \"conditions\": []}"     },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        CLEANUP(json) json_t *got = NULL, *again = NULL;
        struct berth_err err;
        files_put(&f, rows[i].files);
        if (probe_machine(&(struct probe_config){.root = f.path}, &got, &err) < 0)
            fail_msg("%s", err.text);
        CLEANUP(json) json_t *want = json_loads(rows[i].want, 0, NULL);
        CLEANUP(text) char *got_text = json_dumps(got, JSON_SORT_KEYS | JSON_INDENT(1));
        assert_non_null(want);
        if (!json_equal(got, want))
            fail_msg("row %zu: %s", i, got_text);
        assert_int_equal(probe_machine(&(struct probe_config){.root = f.path}, &again, &err), 0);
        CLEANUP(text) char *first = json_dumps(got, 0), *second = json_dumps(again, 0);
        assert_string_equal(first, second);
    }
}

static void reserve_is_subtracted_and_checked(void **state)
{
    (void)state;
    static const struct {
        const struct file *files;
        const char *reserve, *cpu, *memory, *error;
    } rows[] = {
        {laptop,       "",                      "8",   "16000Mi", NULL                                                                  },
        {laptop,       "cpu=1",                 "7",   "16000Mi", NULL                                                                  },
        {laptop,       "cpu=1500m, memory=1Gi", "6.5", "14976Mi", NULL                                                                  },
        {laptop,       "cpu=8",                 "0",   "16000Mi", NULL                                                                  },
        {laptop,       "cpu=9",                 NULL,  NULL,      "reserve: cpu: 9 is not between 0 and the capacity of this machine, 8"},
        {laptop,       "cpu=-1",                NULL,  NULL,      "reserve: cpu: "                                                      },
        {laptop,       "cpu",                   NULL,  NULL,      "expected RESOURCE=AMOUNT"                                            },
        {laptop,       "memory=lots",           NULL,  NULL,      "reserve: memory: expected an amount"                                 },
        {laptop,       "gpus=1",                NULL,  NULL,      "reserve: this machine has no gpus"                                   },
        {contained,    "",                      "1.5", "1Gi",     NULL                                                                  },
        {contained_v1, "",                      "2.5", "2Gi",     NULL                                                                  },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        CLEANUP(json) json_t *got = NULL;
        struct berth_err err;
        files_put(&f, rows[i].files);
        int rc = probe_machine(&(struct probe_config){.root = f.path, .reserve = rows[i].reserve}, &got, &err);
        if (rows[i].error) {
            assert_int_equal(rc, -EINVAL);
            assert_null(got);
            if (!strstr(err.text, rows[i].error))
                fail_msg("%s: \"%s\"", rows[i].reserve, err.text);
            continue;
        }
        assert_int_equal(rc, 0);
        const json_t *amounts = json_object_get(got, "allocatable");
        assert_string_equal(json_string_value(json_object_get(amounts, "cpu")), rows[i].cpu);
        int64_t want, has;
        assert_int_equal(quantity_parse_text("memory", rows[i].memory, &want, NULL), 0);
        assert_int_equal(quantity_parse("memory", json_object_get(amounts, "memory"), &has, NULL), 0);
        assert_int_equal(has, want);
    }
}

static void missing_proc_is_an_error(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    json_t *got = NULL;
    struct berth_err err;
    assert_int_equal(probe_machine(&(struct probe_config){.root = f.path}, &got, &err), -ENOENT);
    assert_non_null(strstr(err.text, "mount /proc"));
}

/* The probe of this machine is a valid node document and agrees with system calls. */
static void probe_of_this_machine_is_valid(void **state)
{
    (void)state;
    CLEANUP(json) json_t *got = NULL;
    struct berth_err err;
    struct statvfs fs;
    if (probe_machine(&(struct probe_config){.disk = "/", .reserve = ""}, &got, &err) < 0)
        fail_msg("%s", err.text);
    const json_t *amounts = json_object_get(got, "allocatable");
    int64_t cpu, memory, storage;
    assert_int_equal(quantity_parse("cpu", json_object_get(amounts, "cpu"), &cpu, NULL), 0);
    assert_int_equal(quantity_parse("memory", json_object_get(amounts, "memory"), &memory, NULL), 0);
    assert_int_equal(quantity_parse("storage", json_object_get(amounts, "storage"), &storage, NULL), 0);
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_true(cpu > 0 && cpu <= CPU_COUNT(&set) * 1000);
    assert_true(memory > 0 && memory <= sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
    assert_int_equal(statvfs("/", &fs), 0);
    assert_true(storage > 0 && storage <= (int64_t)(fs.f_blocks * fs.f_frsize));
    assert_non_null(json_object_get(got, "arch"));
    assert_non_null(json_object_get(json_object_get(got, "labels"), "kernel"));
    assert_string_equal(json_string_value(json_array_get(json_object_get(got, "runtimes"), 0)), "process");
}

static void plugins_extend_the_probe(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(json) json_t *got = NULL;
    files_put(&f, laptop);
    folder_put(
        &f, "plugins/p",
        "#!/bin/sh\necho '{\"resources\": {\"v.example/x\": 4}, \"labels\": {\"v.example/l\": \"y\"}, \"devices\": "
        "[{\"resource\": \"v.example/d\", \"name\": \"d\"}], \"use\": {\"v.example/x\": 3}}'\n");
    folder_put(&f, "plugins/q", "#!/bin/sh\nexit 1\n");
    assert_int_equal(chmod(folder_at(&f, "plugins/p"), 0755), 0);
    assert_int_equal(chmod(folder_at(&f, "plugins/q"), 0755), 0);
    struct probe_config config = {.root = f.path, .plugins = folder_at(&f, "plugins")};
    assert_int_equal(probe_machine(&config, &got, NULL), 0);
    assert_string_equal(json_string_value(json_object_get(json_object_get(got, "allocatable"), "v.example/x")), "4");
    same(json_object_get(got, "conditions"), "[{\"type\": \"PluginFailed\", \"text\": \"q: ended with status 1\"}]");
    assert_non_null(json_object_get(json_object_get(got, "devices"), "v.example/d"));
    assert_non_null(json_object_get(json_object_get(got, "labels"), "v.example/l"));
    CLEANUP(use) struct probe_use *use = probe_use_new(&config);
    CLEANUP(json) json_t *look = probe_use_poll(use, 5 * SECOND);
    assert_string_equal(json_string_value(json_object_get(json_object_get(look, "usage"), "v.example/x")), "3");
    same(json_object_get(look, "conditions"), "[{\"type\": \"PluginFailed\", \"text\": \"q: ended with status 1\"}]");
    /* plugins are not run again at once */
    folder_put(&f, "plugins/p", "#!/bin/sh\necho '{}'\n");
    CLEANUP(json) json_t *soon = probe_use_poll(use, 15 * SECOND), *later = probe_use_poll(use, 66 * SECOND);
    assert_non_null(json_object_get(json_object_get(soon, "usage"), "v.example/x"));
    assert_null(json_object_get(json_object_get(later, "usage"), "v.example/x"));
}

/* ---- usage ------------------------------------------------------------------------------------------------------ */

static void amounts_are_rounded(void **state)
{
    (void)state;
    static const struct {
        int64_t shown, raw, step, want;
    } rows
        [] =
            {
                {-1,      0,         50,      0        },
                {-1,      24,        50,      0        },
                {-1,      25,        50,      50       },
                {-1,      1234,      50,      1200     },
                {-1,      12345,     50,      12000    },
                {-1,      680,       50,      700      },
                {700,     736,       50,      700      }, /* nearer to 750, but within three quarters of a step */
                {700,     737,       50,      750      },
                {700,     664,       50,      700      },
                {700,     660,       50,      650      },
                {-1,      123456789, 1000000, 120000000},
                {0,       400,       1000,    0        },
                {0,       900,       1000,    1000     },
                {1000000, 0,         1000000, 0        },
                {5000,    9,         1,       9        },
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        if (probe_round(rows[i].shown, rows[i].raw, rows[i].step) != rows[i].want)
            fail_msg("row %zu: %lld", i, (long long)probe_round(rows[i].shown, rows[i].raw, rows[i].step));
}

static const struct file busy[] = {
    {"proc/stat",                                               "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1\ncpu1 1\nintr 5\n"             },
    {"proc/meminfo",                                            "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\nHugetlb: 1000000 kB\n"},
    {"proc/loadavg",                                            "0.92 1.86 0.91 2/93 19850\n"                                          },
    {"proc/sys/kernel/pid_max",                                 "32768\n"                                                              },
    {"proc/sys/kernel/threads-max",                             "1000\n"                                                               },
    {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",   "10\n"                                                                 },
    {"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "7\n"                                                                  },
    {"sys/class/net/eth0/device/vendor",                        "x\n"                                                                  },
    {"sys/class/net/eth0/statistics/rx_bytes",                  "1000\n"                                                               },
    {"sys/class/net/eth0/statistics/tx_bytes",                  "0\n"                                                                  },
    {"sys/class/net/veth1/statistics/rx_bytes",                 "999999999\n"                                                          },
    {NULL,                                                      NULL                                                                   },
};

static void rates_need_two_polls(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    files_put(&f, busy);
    CLEANUP(use) struct probe_use *use = probe_use_new(&(struct probe_config){.root = f.path});
    CLEANUP(json) json_t *first = probe_use_poll(use, 10 * SECOND);
    same(first, "{\"usage\": {\"memory\": \"3.1G\", \"hugepages-2Mi\": \"6Mi\"}, \"conditions\": []}");
    /* a quarter of two CPUs; 2 MB in 10 s; noise is hidden */
    folder_put(&f, "proc/stat", "cpu  200 0 250 1550 0 0 0 0 0 0\ncpu0 1\ncpu1 1\nintr 5\n");
    folder_put(&f, "sys/class/net/eth0/statistics/rx_bytes", "2001000\n");
    folder_put(&f, "sys/class/net/eth0/statistics/tx_bytes", "300\n");
    folder_put(&f, "proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 3990000 kB\nHugetlb: 1000000 kB\n");
    CLEANUP(json) json_t *second = probe_use_poll(use, 20 * SECOND);
    same(second, "{\"usage\": {\"cpu\": \"500m\", \"memory\": \"3.1G\", \"hugepages-2Mi\": \"6Mi\", \"network-in\": "
                 "\"200000\", \"network-out\": \"0\"}, \"conditions\": []}");
    /* the same rates, with a counter that was reset */
    folder_put(&f, "sys/class/net/eth0/statistics/rx_bytes", "5\n");
    CLEANUP(json) json_t *third = probe_use_poll(use, 30 * SECOND);
    assert_string_equal(json_string_value(json_object_get(json_object_get(third, "usage"), "network-in")), "0");
}

static bool has_condition(const json_t *look, const char *type)
{
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(look, "conditions"), i, c)
    {
        assert_true(json_string_length(json_object_get(c, "text")) > 0);
        if (strcmp(json_string_value(json_object_get(c, "type")), type) == 0)
            return true;
    }
    return false;
}

/* Each condition begins at one threshold and ends at another. */
static void pressure_conditions_have_hysteresis(void **state)
{
    (void)state;
    static const struct {
        const char *file, *type;
        struct {
            const char *text;
            bool want;
        } looks[5];
    } rows[] = {
        {"proc/meminfo",
         "MemoryPressure", {{"MemTotal: 1000000 kB\nMemAvailable: 51000 kB\n", false},
          {"MemTotal: 1000000 kB\nMemAvailable: 49000 kB\n", true},
          {"MemTotal: 1000000 kB\nMemAvailable: 69000 kB\n", true},
          {"MemTotal: 1000000 kB\nMemAvailable: 71000 kB\n", false},
          {"MemTotal: 1000000 kB\nMemAvailable: 60000 kB\n", false}}},
        {"proc/loadavg",
         "PidPressure",    {{"0 0 0 2/890 1\n", false},
          {"0 0 0 2/910 1\n", true},
          {"0 0 0 2/860 1\n", true},
          {"0 0 0 2/840 1\n", false},
          {"0 0 0 2/2000 1\n", true}}                                  },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        files_put(&f, busy);
        CLEANUP(use) struct probe_use *use = probe_use_new(&(struct probe_config){.root = f.path});
        for (size_t k = 0; k < ROWS(rows[i].looks); k++) {
            folder_put(&f, rows[i].file, rows[i].looks[k].text);
            CLEANUP(json) json_t *look = probe_use_poll(use, (int64_t)(k + 1) * SECOND);
            if (has_condition(look, rows[i].type) != rows[i].looks[k].want)
                fail_msg("%s, look %zu", rows[i].type, k);
        }
    }
}

static void a_full_disk_is_a_condition(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    folder_make(&f, "disk");
    if (mount("none", folder_at(&f, "disk"), "tmpfs", 0, "size=4m") < 0) {
        print_message("skip: a file system cannot be mounted here: %s\n", strerror(errno));
        skip();
    }
    CLEANUP(use) struct probe_use *use = probe_use_new(&(struct probe_config){.disk = folder_at(&f, "disk")});
    CLEANUP(json) json_t *empty = probe_use_poll(use, SECOND);
    int fd = open(folder_at(&f, "disk/fill"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool filled = fd >= 0 && posix_fallocate(fd, 0, 4 * 1024 * 1024 - 64 * 1024) == 0;
    CLEANUP(json) json_t *full = probe_use_poll(use, 2 * SECOND);
    if (fd >= 0)
        (void)close(fd);
    assert_int_equal(umount(folder_at(&f, "disk")), 0);
    assert_true(filled);
    assert_false(has_condition(empty, "DiskPressure"));
    assert_true(has_condition(full, "DiskPressure"));
    assert_string_equal(json_string_value(json_object_get(json_object_get(full, "usage"), "storage")), "4M");
}

static void unsynchronised_clock_is_a_condition(void **state)
{
    (void)state;
    struct timex t = {.modes = 0};
    int rc = adjtimex(&t);
    bool off = rc == TIME_ERROR || t.status & STA_UNSYNC;
    CLEANUP(use) struct probe_use *use = probe_use_new(&(struct probe_config){0});
    CLEANUP(json) json_t *look = probe_use_poll(use, SECOND);
    assert_int_equal(has_condition(look, "ClockUnsynchronised"), off);
    assert_non_null(json_object_get(json_object_get(look, "usage"), "memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_are_probed),        cmocka_unit_test(reserve_is_subtracted_and_checked),
        cmocka_unit_test(missing_proc_is_an_error),   cmocka_unit_test(probe_of_this_machine_is_valid),
        cmocka_unit_test(plugins_extend_the_probe),   cmocka_unit_test(amounts_are_rounded),
        cmocka_unit_test(rates_need_two_polls),       cmocka_unit_test(pressure_conditions_have_hysteresis),
        cmocka_unit_test(a_full_disk_is_a_condition), cmocka_unit_test(unsynchronised_clock_is_a_condition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
