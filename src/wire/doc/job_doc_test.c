/* job_doc_test.c - keys of jobs only: every key, short forms, and rejected values. */
#include "wire/doc/doc_kit_test.h"

#define SECOND INT64_C(1000000000)

static void every_key_has_its_field(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g = given(
        "{id: 9, queue: gold, time_limit: 1h, estimate: 30m, deadline: '2026-03-01T12:00:00Z', urgency: -7, "
        "preemptible: false, preempts: false, min_run: 2m, preempt: cancel, requeue: false, checkpoint: {signal: SIGUSR2, grace: 5s}, "
        "after: [{job: 3, when: failed}, 4], singleton: true, min: 2, max: 5, role: driver, type: train, class: llm, "
        "network: transformer, parameters: 7.0e9, data: [a, b], attributes: {k: v}, notify: [{to: a@b.org, on: "
        "[started, preempted]}, 'https://b.org/x'], interactive: true, log: {keep: 2d}, cron: n.o, attempt: 2, "
        "attained: 90s, held_by: operator, started: 5, finished: 6}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    const struct job_terms *t = &d.job;
    assert_string_equal(t->queue, "gold");
    assert_int_equal(t->time_limit_ns, 3600 * SECOND);
    assert_int_equal(t->estimate_ns, 1800 * SECOND);
    assert_int_equal(t->deadline_ns, 1772366400 * SECOND);
    assert_int_equal(t->urgency, -7);
    assert_false(t->preemptible || t->preempts || t->requeue);
    assert_int_equal(t->min_run_ns, 120 * SECOND);
    assert_int_equal(t->preempt, PREEMPT_CANCEL);
    assert_string_equal(t->checkpoint.signal, "USR2");
    assert_int_equal(t->checkpoint.grace_ns, 5 * SECOND);
    assert_int_equal(t->after_len, 2);
    assert_true(t->after[0].job == 3 && t->after[0].when == AFTER_FAILED);
    assert_true(t->after[1].job == 4 && t->after[1].when == AFTER_OK);
    assert_true(t->singleton && t->waits && d.workload.suspended);
    assert_int_equal(d.workload.replicas, 5);
    assert_int_equal(d.workload.gang_min, 2);
    assert_string_equal(d.workload.gang, "9");
    assert_string_equal(t->role, "driver");
    assert_string_equal(t->type, "train");
    assert_string_equal(t->class_name, "llm");
    assert_string_equal(t->network, "transformer");
    assert_int_equal(t->parameters, 7000000000);
    assert_int_equal(t->data_len, 2);
    assert_string_equal(t->attributes[0].value, "v");
    assert_int_equal(t->notify[0].on, NOTIFY_STARTED | NOTIFY_PREEMPTED);
    assert_int_equal(t->notify[1].on, NOTIFY_ENDED | NOTIFY_FAILED);
    assert_true(t->interactive);
    assert_int_equal(d.run.log.keep_ns, 2 * 86400 * SECOND);
    assert_string_equal(t->cron, "n.o");
    assert_int_equal(t->attempt, 2);
    assert_int_equal(t->attained_ns, 90 * SECOND);
    assert_string_equal(t->held_by, "operator");
    assert_true(t->started_ns == 5 * SECOND && t->finished_ns == 6 * SECOND);
}

static void defaults_match_the_reference(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: 9}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_true(d.job.preemptible && d.job.preempts && d.job.requeue && d.job.preempt == PREEMPT_REQUEUE);
    assert_true(!d.job.checkpoint.signal && !d.job.waits && !d.workload.suspended && d.job.array.count == 0);
}

static void met_dependencies_clear_suspended(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: 9, after: 3, met: true}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_true(d.job.after_len == 1 && !d.job.waits && !d.workload.suspended);
}

static void jobs_of_a_set_form_a_gang(void **state)
{
    (void)state;
    CLEANUP(given) struct given g = given("{id: 9, owner: alice, of: 8}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_string_equal(d.workload.gang, "set:8");
}

static void arrays_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *doc;
        uint32_t from, step, parallel, count;
    } rows[] = {
        {"{id: 1, array: {to: 9}}",                            0,          1, 0, 10    },
        {"{id: 1, array: {from: 1, to: 10, step: 4}}",         1,          4, 0, 3     },
        {"{id: 1, array: {from: 3, to: 3, parallel: 5}}",      3,          1, 5, 1     },
        {"{id: 1, array: 0-99}",                               0,          1, 0, 100   },
        {"{id: 1, array: '0-99:2%4'}",                         0,          2, 4, 50    },
        {"{id: 1, array: 5-14%3, replicas: 10}",               5,          1, 3, 10    },
        {"{id: 1, array: 0-99999}",                            0,          1, 0, 100000},
        {"{id: 1, array: {from: 4294967290, to: 4294967295}}", 4294967290, 1, 0, 6     },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct work_doc d = {0};
        READ(&g, work_doc_read, &d);
        const struct job_array *a = &d.job.array;
        if (a->from != rows[i].from || a->step != rows[i].step || a->parallel != rows[i].parallel ||
            a->count != rows[i].count || d.workload.replicas != rows[i].count)
            fail_msg("%s: from %u step %u parallel %u count %u replicas %u", rows[i].doc, a->from, a->step, a->parallel,
                     a->count, d.workload.replicas);
    }
}

static void errors_name_the_key(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"{id: a, time_limit: 0}",                        "time_limit: expected a duration from 1s"           },
        {"{id: a, time_limit: 4000d}",                    "time_limit: expected a duration from 1s"           },
        {"{id: a, estimate: soon}",                       "estimate:"                                         },
        {"{id: a, deadline: 0}",                          "deadline: expected a time after 1970"              },
        {"{id: a, urgency: 1001}",                        "urgency: expected a whole number from -1000"       },
        {"{id: a, preempt: kill}",                        "preempt: expected"                                 },
        {"{id: a, checkpoint: {signal: NOW}}",            "checkpoint: signal: expected the name of a"        },
        {"{id: a, checkpoint: {grace: 25h}}",             "checkpoint: grace: at most 24h"                    },
        {"{id: a, array: {from: 5}}",                     "array: to: missing"                                },
        {"{id: a, array: {from: 5, to: 4}}",              "array: to: 4 is before from, 5"                    },
        {"{id: a, array: {to: 4, step: 0}}",              "array: step: must be at least 1"                   },
        {"{id: a, array: 0-100000}",                      "array: 100001 tasks; at most 100000"               },
        {"{id: a, array: 1-}",                            "array: expected indexes like"                      },
        {"{id: a, array: '1-2:'}",                        "array: expected indexes like"                      },
        {"{id: a, array: 1-2%3x}",                        "array: expected indexes like"                      },
        {"{id: a, array: 1-99999999999}",                 "array: expected indexes like"                      },
        {"{id: a, array: 0-9, replicas: 4}",              "replicas: 4 does not match the array, which has 10"},
        {"{id: a, array: 0-9, min: 4}",                   "min: not allowed with an array"                    },
        {"{id: a, after: [x]}",                           "after[0]: expected the number of a job"            },
        {"{id: a, after: [{when: ok}]}",                  "after[0]: job: missing"                            },
        {"{id: a, after: [{job: 1, when: maybe}]}",       "after[0]: when: expected"                          },
        {"{id: a, min: 3, replicas: 2}",                  "min: 3 exceeds the number of tasks, 2"             },
        {"{id: a, max: 3, replicas: 2}",                  "max: is an alias of replicas"                      },
        {"{id: a, min: 3, gang_min: 2, replicas: 4}",     "min: is an alias of gang_min"                      },
        {"{id: a, of: 3, gang: g}",                       "gang: the jobs of a set always form a gang"        },
        {"{id: a, parameters: many}",                     "parameters: expected a number"                     },
        {"{id: a, notify: [somebody]}",                   "notify[0]: to: expected an address"                },
        {"{id: a, notify: [{to: a@b.org, on: [later]}]}", "notify[0]: on[0]: expected"                        },
        {"{id: a, notify: [{on: ended}]}",                "notify[0]: to: missing"                            },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct work_doc d = {0};
        REFUSED(&rows[i], &g, work_doc_read(g.doc, &g.arena, &d, &g.err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_its_field),
        cmocka_unit_test(defaults_match_the_reference),
        cmocka_unit_test(met_dependencies_clear_suspended),
        cmocka_unit_test(jobs_of_a_set_form_a_gang),
        cmocka_unit_test(arrays_are_counted),
        cmocka_unit_test(errors_name_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
