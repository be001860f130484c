/* disk_limit_test.c - counting the disk usage of instances. */
#include "machine/cgroup/disk_limit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "machine/launch/folder_test.h"
#include "machine/launch/quoted_test.h"
#include "machine/mount/mount_tree.h"

#define KIB INT64_C(1024)

static void limits_are_read(void **state)
{
    static const struct {
        const char *config;
        struct disk_limit want;
        bool fails;
    } rows[] = {
        {"{}",                                                                    {0, false, false},      false},
        {"{'requests': {'storage': '1Gi'}}",                                      {0, true, false},       false},
        {"{'limits': {'storage': {'amount': '4Ki'}}}",                            {4 * KIB, true, false}, false},
        {"{'image': 'x', 'limits': {'storage': {'amount': '4Ki'}}}",              {4 * KIB, true, true},  false},
        {"{'vm': {}, 'runtime': 'vm', 'limits': {'storage': {'amount': '4Ki'}}}", {4 * KIB, true, true},  false},
        {"{'limits': {'storage': {'amount': '4X'}}}",                             {0, false, false},      true },
        {"{'limits': {'storage': {'amount': -4}}}",                               {0, false, false},      true },
        {"{'limits': {'storage': {'weight': 4}}}",                                {0, false, false},      true },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct disk_limit got = {0};
        struct berth_err err;
        json_t *config = json_of(rows[i].config);
        if ((disk_limit_read(config, &got, &err) < 0) != rows[i].fails)
            fail_msg("%s", rows[i].config);
        assert_int_equal(got.bytes, rows[i].want.bytes);
        assert_int_equal(got.wanted, rows[i].want.wanted);
        assert_int_equal(got.whole, rows[i].want.whole);
        json_decref(config);
    }
}

static void fill(const struct folder *f, const char *path, size_t len)
{
    char *text = mem_alloc(len + 1);
    memset(text, 'x', len);
    text[len] = '\0';
    folder_put(f, path, text);
    mem_free(text);
}

/* Tolerates rounding to blocks and the size of directories. */
static bool about(int64_t got, int64_t want)
{
    return got >= want && got <= want + 64 * KIB;
}

static void written_bytes_are_counted(void **state)
{
    static const char config_text[] =
        "{'mounts': [{'path': '/a', 'volume': 'maps'}, {'path': '/b', 'volume': 'fixed', 'read_only': true}, "
        "{'path': '/c', 'volume': 'far', 'source': '/srv'}, {'path': '/d', 'tmpfs': 5}, "
        "{'path': '/e', 'volume': '../instances'}]}";
    CLEANUP(folder) struct folder f = folder_new();
    struct state_dir *p = NULL;
    struct berth_err err;
    int64_t got = -1;
    (void)state;
    assert_int_equal(state_dir_open(f.path, &p, &err), 0);
    assert_int_equal(instance_dir_create(p, 7, "{}", &err), 0);
    json_t *config = json_of(config_text), *none = json_of("{}");
    assert_int_equal(disk_bytes(p, 8, none, &got), -ENOENT);
    assert_int_equal(disk_bytes(p, 7, none, &got), 0);
    assert_int_equal(got, 0);
    assert_true(disk_bytes(p, 7, config, &got) < 0); /* a volume that does not exist */
    fill(&f, "volumes/maps/deep/er/x", 300000);
    fill(&f, "volumes/fixed/x", 5000000);
    fill(&f, "instances/7/bundle/upper/tmp/x", 200000);
    fill(&f, "instances/7/log", 4000000); /* a file of the agent */
    assert_int_equal(symlink("/", folder_at(&f, "volumes/maps/link")), 0);
    assert_int_equal(disk_bytes(p, 7, config, &got), 0);
    if (!about(got, 500000))
        fail_msg("%lld", (long long)got);
    json_decref(config);
    json_decref(none);
    state_dir_free(p);
}

/* Counts the instance's own files, without volumes. */
static int64_t counted(const struct folder *f, const char *config_text)
{
    struct state_dir *p = NULL;
    struct berth_err err;
    int64_t got = -1;
    json_t *config = json_of(config_text);
    assert_int_equal(state_dir_open(f->path, &p, &err), 0);
    int rc = disk_bytes(p, 7, config, &got);
    json_decref(config);
    state_dir_free(p);
    return rc < 0 ? rc : got;
}

static void begin(const struct folder *f)
{
    struct state_dir *p = NULL;
    struct berth_err err;
    assert_int_equal(state_dir_open(f->path, &p, &err), 0);
    assert_int_equal(instance_dir_create(p, 7, "{}", &err), 0);
    state_dir_free(p);
}

static void virtual_disk_is_counted(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    (void)state;
    begin(&f);
    fill(&f, "instances/7/bundle/disk.qcow2", 700000);
    int64_t got = counted(&f, "{'runtime': 'vm', 'vm': {}, 'image': '/srv/box'}");
    if (!about(got, 700000))
        fail_msg("%lld", (long long)got);
}

/* For a copied root only its growth counts, and never less than zero. */
static void growth_of_copied_root_is_counted(void **state)
{
    static const struct {
        const char *copied;
        int64_t want;
    } rows[] = {
        {"600000",  300000},
        {"2000000", 0     },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        begin(&f);
        fill(&f, "instances/7/bundle/rootfs/bin/image", 600000);
        fill(&f, "instances/7/bundle/rootfs/tmp/x", 300000);
        /* with an overlay, writes go to another directory */
        assert_int_equal(counted(&f, "{'rootfs': '/srv/root'}"), 0);
        folder_put(&f, "instances/7/bundle/copied", rows[i].copied);
        int64_t got = counted(&f, "{'rootfs': '/srv/root'}");
        if (!about(got, rows[i].want) || (rows[i].want == 0 && got != 0))
            fail_msg("%lld", (long long)got);
    }
}

/* Files below a path that is longer than PATH_MAX are counted. */
static void deep_tree_is_counted(void **state)
{
    enum { DEEP = 1500 };
    CLEANUP(folder) struct folder f = folder_new();
    (void)state;
    begin(&f);
    fill(&f, "instances/7/bundle/upper/beside/x", 100000);
    int at = open(folder_at(&f, "instances/7/bundle/upper"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(mkdirat(at, "deeper", 0700), 0);
        int next = openat(at, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        (void)close(at);
        at = next;
    }
    int fd = openat(at, "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    static char bytes[500000];
    assert_int_equal(write(fd, bytes, sizeof bytes), sizeof bytes);
    (void)close(fd);
    (void)close(at);
    int64_t got = counted(&f, "{'image': 'x'}");
    int top = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(tree_remove(top, "instances"), 0);
    (void)close(top);
    if (got < 600000 || got > 600000 + (DEEP + 16) * 4 * KIB)
        fail_msg("%lld", (long long)got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_read),         cmocka_unit_test(written_bytes_are_counted),
        cmocka_unit_test(virtual_disk_is_counted), cmocka_unit_test(growth_of_copied_root_is_counted),
        cmocka_unit_test(deep_tree_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
