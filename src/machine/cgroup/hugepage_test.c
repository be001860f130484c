/* hugepage_test.c - requests for huge pages, and setting pools, in a directory that imitates /sys.
 * tests/agent/limits_test.py tests the real kernel.
 */
#include "machine/cgroup/hugepage.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "machine/launch/folder_test.h"
#include "machine/launch/quoted_test.h"
#include "machine/probe/probe.h"

#define MIB (INT64_C(1) << 20)

static void requests_are_rounded_to_whole_pages(void **state)
{
    static const struct {
        const char *config;
        size_t len;
        struct hugepages want[2];
    } rows[] = {
        {"{}",                                                                                     0, {{0}}                                                                           },
        {"{'requests': {'cpu': 1, 'hugepages-2X': 5, 'hugepages-': 5, 'hugepages-../x': 4}}",      0, {{0}}                                                                           },
        {"{'requests': {'hugepages-2Mi': '4Mi'}}",                                                 1, {{"hugepages-2Mi", 2 * MIB, 4 * MIB}}                                           },
        {"{'requests': {'hugepages-2Mi': '5Mi'}}",                                                 1, {{"hugepages-2Mi", 2 * MIB, 4 * MIB}}                                           },
        {"{'requests': {'hugepages-2Mi': '1Mi'}}",                                                 0, {{0}}                                                                           },
        {"{'requests': {'hugepages-2Mi': '4Mi'}, 'limits': {'hugepages-2Mi': {'amount': '8Mi'}}}",
         1,                                                                                           {{"hugepages-2Mi", 2 * MIB, 4 * MIB}}                                           },
        {"{'limits': {'hugepages-2Mi': {'amount': '8Mi'}}}",                                       0, {{0}}                                                                           },
        {"{'requests': {'hugepages-2Mi': '4Mi', 'hugepages-1Gi': '2Gi'}}",
         2,                                                                                           {{"hugepages-1Gi", 1024 * MIB, 2048 * MIB}, {"hugepages-2Mi", 2 * MIB, 4 * MIB}}},
        {"{'requests': {'hugepages-2Mi': '4Mi', 'hugepages-2048Ki': '6Mi'}}",                      1, {{"hugepages-2Mi", 2 * MIB, 4 * MIB}}                                           },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct hugepages got[HUGEPAGE_SIZES_MAX];
        json_t *config = json_of(rows[i].config);
        size_t len = hugepages_read(config, got);
        if (len != rows[i].len)
            fail_msg("%s: %zu", rows[i].config, len);
        for (size_t k = 0; k < len; k++) {
            assert_string_equal(got[k].resource, rows[i].want[k].resource);
            assert_int_equal(got[k].page_bytes, rows[i].want[k].page_bytes);
            assert_int_equal(got[k].bytes, rows[i].want[k].bytes);
        }
        json_decref(config);
    }
}

static void each_size_has_a_mount(void **state)
{
    static const struct instance_user user = {.uid = 7, .gid = 8};
    struct launch_mount mounts[2];
    const char *env[2];
    struct hugepages pages[HUGEPAGE_SIZES_MAX];
    struct arena arena;
    json_t *config = json_of("{'requests': {'hugepages-2Mi': '4Mi', 'hugepages-1Gi': '2Gi'}}");
    (void)state;
    arena_init(&arena);
    assert_int_equal(hugepages_read(config, pages), 2);
    hugepages_mounts(pages, 2, &user, &arena, mounts, env);
    assert_string_equal(mounts[1].target, "/mnt/hugepages-2Mi");
    assert_string_equal(mounts[1].type, "hugetlbfs");
    assert_string_equal(mounts[1].data, "pagesize=2097152,size=4194304,mode=0700,uid=7,gid=8");
    assert_string_equal(mounts[0].data, "pagesize=1073741824,size=2147483648,mode=0700,uid=7,gid=8");
    assert_string_equal(env[0], "BERTH_HUGEPAGES_1GI=/mnt/hugepages-1Gi");
    assert_string_equal(env[1], "BERTH_HUGEPAGES_2MI=/mnt/hugepages-2Mi");
    arena_done(&arena);
    json_decref(config);
}

static void pools_are_set_and_probed(void **state)
{
    CLEANUP(folder) struct folder f = folder_new();
    struct probe_config config = {.root = f.path};
    struct berth_err err = {0};
    int64_t got = -1;
    (void)state;
    folder_put(&f, "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3\n");
    uint64_t mark = probe_pools(&config);
    assert_int_equal(probe_pools(&config), mark);
    assert_int_equal(hugepages_set(f.path, 2 * MIB, 12, &got, &err), 0);
    assert_int_equal(got, 12);
    assert_string_equal(folder_get(&f, "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"), "12\n");
    assert_true(probe_pools(&config) != mark);
    assert_int_equal(hugepages_set(f.path, 1024 * MIB, 1, &got, &err), -ENOENT);
    assert_non_null(strstr(err.text, "does not support huge pages of 1Gi"));
    assert_int_equal(hugepages_set(f.path, 2 * MIB, -1, &got, &err), -EINVAL);
    assert_int_equal(got, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_rounded_to_whole_pages),
        cmocka_unit_test(each_size_has_a_mount),
        cmocka_unit_test(pools_are_set_and_probed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
