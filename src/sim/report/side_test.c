/* side_test.c - tests a trace with several policies: numbers calculated by hand, and reports. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/report/report.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define S SIM_SECOND_NS

struct scene {
    struct sim_trace trace;
    struct sim_fleet fleet;
    struct sim_side sides[2];
    struct sim_report report;
};

/* Two processors. The first job uses one for 100 s; the second needs both; the third needs one for 10 s. */
static int setup(void **state)
{
    struct scene *s = mem_zalloc(sizeof *s);
    struct berth_err err;
    sim_trace_init(&s->trace);
    sim_fleet_init(&s->fleet);
    sim_fleet_machine(&s->fleet, 2);
    static const struct {
        int64_t submit, run, procs;
        const char *user;
    } jobs[] = {
        {0,  100, 1, "ann"  },
        {10, 50,  2, "bob"  },
        {20, 10,  1, "<eve>"},
    };
    for (size_t i = 0; i < ROWS(jobs); i++) {
        struct sim_job job = {
            .id = (int64_t)i + 1,
            .submit_ns = jobs[i].submit * S,
            .run_ns = jobs[i].run * S,
            .request_ns = jobs[i].run * S,
            .user = intern_put(&s->trace.words, jobs[i].user),
            .tasks = 1,
            .cpu_milli = jobs[i].procs * 1000,
        };
        sim_trace_add(&s->trace, &job);
    }
    sim_trace_sort(&s->trace);
    struct sim_side_options p = {.trace = &s->trace, .fleet = &s->fleet, .seed = 1};
    static const char *const policies[] = {"fcfs/none", "fcfs/easy"};
    for (size_t i = 0; i < 2; i++)
        if (sim_side_init(&s->sides[i], policies[i], &s->fleet, &err) || sim_side_run(&s->sides[i], &p, &err))
            fail_msg("%s", err.text);
    s->report = (struct sim_report){"A & B", "three <jobs>", "one node", &s->trace, &s->fleet, s->sides, 2};
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;
    sim_side_done(&s->sides[0]);
    sim_side_done(&s->sides[1]);
    sim_fleet_done(&s->fleet);
    sim_trace_done(&s->trace);
    mem_free(s);
    return 0;
}

static double number(const struct sim_side *s, const char *key)
{
    struct sim_number n;
    for (size_t i = 0; (n = sim_side_number(s, i)).key; i++)
        if (strcmp(n.key, key) == 0)
            return n.value;
    fail_msg("there is no number %s", key);
    return 0;
}

static void numbers_match_manual_calculation(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *key;
        double none, easy;
    } rows[] = {
        {"jobs",                     3,                            3                          },
        {"unrun",                    0,                            0                          },
        {"average_bounded_slowdown", (1 + 2.8 + 14) / 3,           (1 + 2.8 + 1) / 3          },
        {"max_bounded_slowdown",     14,                           2.8                        },
        {"mean_wait",                220.0 / 3,                    30                         },
        {"median_wait",              90,                           0                          },
        {"p95_wait",                 130,                          90                         },
        {"max_wait",                 130,                          90                         },
        {"mean_completion",          (100.0 + 140 + 140) / 3,      (100.0 + 140 + 10) / 3     },
        {"makespan",                 160,                          150                        },
        {"utilisation",              210.0 / 320,                  210.0 / 300                },
        {"fairness",                 17.8 * 17.8 / (3 * 204.84),   4.8 * 4.8 / (3 * 9.84)     },
 /* One task in three needs two processors, and does not fit with one idle. */
        {"fragmentation",            (100.0 / 3 + 10.0 / 3) / 160, (20.0 / 3 + 70.0 / 3) / 150},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        for (size_t k = 0; k < 2; k++) {
            double want = k ? rows[i].easy : rows[i].none, got = number(&s->sides[k], rows[i].key);
            if (got < want - 1e-9 || got > want + 1e-9)
                fail_msg("%s, %s: %.12g, not %.12g", s->sides[k].label, rows[i].key, got, want);
        }
}

static void unknown_policies_are_rejected(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"lifo",                       "policy \"lifo\": there is no order \"lifo\"; there are fcfs"},
        {"fcfs/never",                 "there is no way of backfilling \"never\""                   },
        {"fcfs/easy/oracle",           "\"oracle\""                                                 },
        {"fcfs/easy/request/tidy",     "there is no profile \"tidy\""                               },
        {"fcfs/easy/request/pack/now", "expected ORDER/BACKFILL/PREDICT/PROFILE"                    },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct sim_side side;
        struct berth_err err = {0};
        if (sim_side_init(&side, rows[i].text, &s->fleet, &err) != -EINVAL || !strstr(err.text, rows[i].want))
            fail_msg("%s: \"%s\"", rows[i].text, err.text);
    }
}

static void oversized_jobs_are_rejected(void **state)
{
    struct scene *s = *state;
    struct sim_side_options p = {.trace = &s->trace, .fleet = &s->fleet};
    struct berth_err err = {0};
    s->trace.jobs[1].cpu_milli = 3000;
    assert_int_equal(sim_side_run(&s->sides[0], &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "job 2 requests 3 processors; the cluster has 2"));
    s->trace.jobs[1].gpus = 1;
    assert_int_equal(sim_side_run(&s->sides[0], &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "job 2 requests 1 GPUs"));
}

/* Two nodes with two GPUs: the places of the first two jobs decide whether the third must wait. Only a score of the
 * planner differs. */
static void planner_decides_placement(void **state)
{
    (void)state;
    static const struct {
        const char *score;
        double max_wait;
    } rows[] = {
        {"most_allocated",  0  },
        {"least_allocated", 980},
    };
    CLEANUP(sim_trace) struct sim_trace t;
    CLEANUP(sim_fleet) struct sim_fleet fleet;
    struct berth_err err = {0};
    sim_trace_init(&t);
    sim_fleet_init(&fleet);
    assert_int_equal(sim_fleet_add(&fleet, "2xgpu2", &err), 0);
    for (int64_t i = 0; i < 3; i++) {
        struct sim_job job = {.id = i, .submit_ns = i * 10 * S, .run_ns = 1000 * S, .tasks = 1, .cpu_milli = 1000};
        job.gpus = i == 2 ? 2 : 1;
        sim_trace_add(&t, &job);
    }
    struct sim_side_options p = {.trace = &t, .fleet = &fleet, .seed = 1};
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct sim_side side;
        struct berth_weight weight = {rows[i].score, 1};
        struct berth_profile profile = {.name = "of one score", .scores = &weight, .scores_len = 1};
        assert_int_equal(sim_side_init(&side, "fcfs", &fleet, &err), 0);
        side.policy.profile = &profile;
        if (sim_side_run(&side, &p, &err))
            fail_msg("%s", err.text);
        if (number(&side, "max_wait") != rows[i].max_wait)
            fail_msg("%s: %g", rows[i].score, number(&side, "max_wait"));
        sim_side_done(&side);
    }
}

static char *written(const struct sim_report *r, void (*write)(const struct sim_report *, FILE *))
{
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    write(r, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static void csv_and_json_have_a_row_per_side(void **state)
{
    struct scene *s = *state;
    char *csv = written(&s->report, sim_report_csv), *jobs = written(&s->report, sim_report_jobs);
    char *json = written(&s->report, sim_report_json);
    assert_true(strncmp(csv, "policy,jobs,unrun,average_bounded_slowdown,", 43) == 0);
    assert_int_equal(count(csv, "\n"), 3);
    assert_non_null(strstr(csv, "\nfcfs/easy,3,0,1.6,"));
    assert_int_equal(count(jobs, "\n"), 7);
    assert_non_null(strstr(jobs, "\nfcfs/none,3,20,150,160,130,14\n"));
    assert_non_null(strstr(jobs, "\nfcfs/easy,3,20,20,30,0,1\n"));
    assert_non_null(
        strstr(json, "{\"trace\":\"three <jobs>\",\"cluster\":\"one node\",\"policies\":[{\"policy\":\"fcfs/none\","));
    assert_non_null(strstr(json, "\"max_wait\":130,"));
    free(csv);
    free(jobs);
    free(json);
}

static void page_has_no_external_resources(void **state)
{
    struct scene *s = *state;
    char *page = written(&s->report, sim_report_html);
    assert_int_equal(count(page, "<svg "), 6);
    assert_int_equal(count(page, "</svg>"), 6);
    assert_int_equal(count(page, "http"), 7); /* identifiers of XHTML and SVG, which are never fetched */
    assert_int_equal(count(page, "<script"), 0);
    assert_int_equal(count(page, "url("), 0);
    assert_int_equal(count(page, "<path class=\"line s1\""), 4);
    assert_int_equal(count(page, "nan"), 0);
    assert_non_null(strstr(page, "three &lt;jobs&gt;"));
    assert_non_null(strstr(page, "&lt;eve&gt;"));
    assert_null(strstr(page, "<eve>"));
    assert_non_null(strstr(page, "<td class=\"best\">1.60</td>"));
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_match_manual_calculation, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_policies_are_rejected, setup, teardown),
        cmocka_unit_test_setup_teardown(oversized_jobs_are_rejected, setup, teardown),
        cmocka_unit_test(planner_decides_placement),
        cmocka_unit_test_setup_teardown(csv_and_json_have_a_row_per_side, setup, teardown),
        cmocka_unit_test_setup_teardown(page_has_no_external_resources, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
