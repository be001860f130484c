#include "machine/cgroup/limit_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "machine/cgroup/limit_names.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define MIB (INT64_C(1) << 20)

/* Repeated samples of a resource with a limit of 100: '.' within, '-' slightly above, '+' 6 % above, '#' 21 % above.
 * Expected results: '.' nothing, 'r' report, 'k' kill; while the resource is over its limit 'R', ':' and 'K'. */
static void consecutive_samples_decide(void **state)
{
    (void)state;
    static const struct {
        const char *resource;
        bool enforced;
        const char *used, *want;
    } rows[] = {
        {"cpu",        true,  ".....",      "....."     },
        {"cpu",        true,  "-----",      "....."     }, /* 5 % are within the measuring tolerance */
        {"cpu",        true,  "++.++.",     "......"    },
        {"cpu",        true,  "+++++",      "..R::"     },
        {"cpu",        false, "+++..",      "..R::"     },
        {"cpu",        true,  "+++...",     "..R::r"    },
        {"cpu",        true,  "+++..-...",  "..R:::::r" }, /* slightly above is not within */
        {"cpu",        true,  "+++...+++",  "..R::r..R" },
        {"cpu",        false, "########",   "..R:::::"  }, /* only memory is killed: its use takes memory from others */
        {"memory",     true,  "########",   "..R:::::"  },
        {"memory",     false, "########",   "..R:KKKK"  },
        {"memory",     false, "####+####",  "..R::::::" },
        {"memory",     false, "+++++++",    "..R::::"   },
        {"memory",     false, "####.#####", "..R::::::K"},
        {"gpu-memory", false, "########",   "..R:KKKK"  },
        {"gpu-memory", true,  "########",   "..R:::::"  },
        {"storage",    false, "++++++",     "..R:KK"    },
        {"storage",    false, "------",     "......"    },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct limit_watch w = {0};
        char got[32] = "";
        for (size_t k = 0; rows[i].used[k]; k++) {
            static const char marks[] = ".-+#";
            static const int64_t amounts[] = {100, 105, 106, 121};
            struct limit_sample s = {rows[i].resource, amounts[strchr(marks, rows[i].used[k]) - marks], 100,
                                     rows[i].enforced};
            struct limit_verdict v;
            limit_watch_update(&w, &s, 1, &v);
            bool over = strcmp(v.over, rows[i].resource) == 0;
            assert_true(over || !*v.over);
            got[k] = v.act == LIMIT_KILL ? 'K' : v.act == LIMIT_REPORT ? (over ? 'R' : 'r') : over ? ':' : '.';
            assert_int_equal(*v.text != '\0', v.act == LIMIT_KILL);
        }
        if (strcmp(got, rows[i].want) != 0)
            fail_msg("%s %s: %s, not %s", rows[i].resource, rows[i].used, got, rows[i].want);
    }
}

static void exceeded_resources_are_sorted(void **state)
{
    (void)state;
    struct limit_watch w = {0};
    struct limit_verdict v;
    struct limit_sample samples[] = {
        {"pids",    20,  10, true },
        {"network", 200, 10, false},
        {"cpu",     200, 10, true },
        {"storage", 200, 0,  true }, /* no limit */
    };
    for (int i = 0; i < 3; i++)
        limit_watch_update(&w, samples, ROWS(samples), &v);
    assert_int_equal(v.act, LIMIT_REPORT);
    assert_string_equal(v.over, "cpu,network,pids");
    /* removing a limit clears its state */
    limit_watch_update(&w, samples, 2, &v);
    assert_int_equal(v.act, LIMIT_REPORT);
    assert_string_equal(v.over, "network,pids");
    limit_watch_update(&w, samples, 2, &v);
    assert_int_equal(v.act, LIMIT_FINE);
    limit_watch_update(&w, NULL, 0, &v);
    assert_int_equal(v.act, LIMIT_REPORT);
    assert_string_equal(v.over, "");
}

static void kill_text_names_usage_and_limit(void **state)
{
    (void)state;
    struct limit_watch w = {0};
    struct limit_verdict v;
    struct limit_sample s = {"memory", 130 * MIB + 17, 100 * MIB, false};
    for (int i = 0; i < 5; i++)
        limit_watch_update(&w, &s, 1, &v);
    assert_int_equal(v.act, LIMIT_KILL);
    assert_string_equal(v.over, "memory");
    assert_string_equal(v.text, "killed: used 130Mi of memory, its limit is 100Mi, and this machine's kernel does not "
                                "enforce it; use a higher limit");
    s.resource = "storage";
    for (int i = 0; i < 5; i++)
        limit_watch_update(&w, &s, 1, &v);
    assert_string_equal(v.text, "killed: used 130Mi of storage, its limit is 100Mi; use a higher limit, or write "
                                "less data");
}

static void lists_stay_sorted(void **state)
{
    char list[CGROUP_LIST_MAX] = "";
    (void)state;
    limit_names_put(list, "network-in");
    limit_names_put(list, "cpu");
    limit_names_put(list, "network");
    limit_names_put(list, "storage");
    limit_names_put(list, "network");
    assert_string_equal(list, "cpu,network,network-in,storage");
    assert_true(limit_names_has(list, "network") && limit_names_has(list, "storage") && limit_names_has(list, "cpu"));
    assert_false(limit_names_has(list, "net") || limit_names_has(list, "network-") || limit_names_has(NULL, "cpu"));
    limit_names_join(list, "zeal,io,cpu");
    assert_string_equal(list, "cpu,io,network,network-in,storage,zeal");
    static const char *const taken[] = {"zeal", "network", "cpu", "storage", "io", "network-in"};
    for (size_t i = 0; i < ROWS(taken); i++) {
        assert_true(limit_names_take(list, taken[i]));
        assert_false(limit_names_take(list, taken[i]));
    }
    assert_string_equal(list, "");
    char name[] = "resource-00";
    for (int i = 0; i < 40; i++) { /* more names than fit */
        (void)snprintf(name, sizeof name, "resource-%02d", i);
        limit_names_put(list, name);
    }
    assert_true(strlen(list) < CGROUP_LIST_MAX && limit_names_has(list, "resource-00"));
}

/* More resources than LIMIT_WATCH_MAX, and very large numbers. */
static void extreme_values_are_handled(void **state)
{
    (void)state;
    struct limit_watch w = {0};
    struct limit_verdict v;
    struct limit_sample samples[LIMIT_WATCH_MAX + 4];
    char names[ROWS(samples)][80];
    for (size_t i = 0; i < ROWS(samples); i++) {
        (void)snprintf(names[i], sizeof names[i], i == 3 ? "%070zu" : "resource-%zu", i);
        samples[i] = (struct limit_sample){names[i], INT64_MAX, i % 2 ? INT64_MAX : 1, true};
    }
    for (int i = 0; i < 4; i++)
        limit_watch_update(&w, samples, ROWS(samples), &v);
    assert_non_null(strstr(v.over, "resource-0"));
    assert_null(strstr(v.over, "resource-1,"));
    assert_int_equal(w.seen_len, LIMIT_WATCH_MAX);
}

static void samples_are_rates(void **state)
{
    (void)state;
    static const struct cgroup_limits limits = {
        .cpu_milli = 500, .memory_bytes = 64 * MIB, .pids = 9, .io_bytes = 1000};
    struct limit_watch w = {0};
    struct limit_sample got[LIMIT_SAMPLES_MAX];
    struct cgroup_usage u = {
        .cpu_ns = 1000000, .memory_bytes = 5, .pids = 3, .io_read_bytes = 100, .io_write_bytes = 0};
    assert_int_equal(limit_watch_samples(&w, &limits, "", &u, 1000000000, got), 2);
    assert_string_equal(got[0].resource, "memory");
    u.cpu_ns += 1200000000;
    u.io_read_bytes += 3000;
    u.io_write_bytes += 5000;
    assert_int_equal(limit_watch_samples(&w, &limits, "io,memory", &u, 3000000000, got), 4);
    static const struct limit_sample want[] = {
        {"cpu",    600,  500,      true },
        {"io",     2500, 1000,     false},
        {"memory", 5,    64 * MIB, false},
        {"pids",   3,    9,        true },
    };
    for (size_t i = 0; i < ROWS(want); i++) {
        assert_string_equal(got[i].resource, want[i].resource);
        assert_int_equal(got[i].used, want[i].used);
        assert_int_equal(got[i].limit, want[i].limit);
        assert_int_equal(got[i].enforced, want[i].enforced);
    }
    /* a recreated cgroup counts from zero */
    u.cpu_ns = 5;
    assert_int_equal(limit_watch_samples(&w, &limits, "", &u, 4000000000, got), 4);
    assert_int_equal(got[0].used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consecutive_samples_decide),      cmocka_unit_test(exceeded_resources_are_sorted),
        cmocka_unit_test(kill_text_names_usage_and_limit), cmocka_unit_test(lists_stay_sorted),
        cmocka_unit_test(extreme_values_are_handled),      cmocka_unit_test(samples_are_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
