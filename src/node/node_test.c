/* node_test.c - the agent's logic with a fake machine and a fake daemon that record the calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "node/node.h"

#define SECOND INT64_C(1000000000)

struct kit {
    struct node_agent *node;
    int64_t now_ns, wake_ns, heard_ns;
    struct str done; /* "start 1, stop 2 now, ..." */
    uint64_t seq;    /* sequence number of the report in flight; 0: none */
    json_t *report;
    unsigned reports, rereads;
    bool superseded;
    struct log log;
};

/* ---- fake machine ----------------------------------------------------------------------------------------------- */

static void did(struct kit *k, const char *what, uint64_t id, const char *how)
{
    str_addf(&k->done, "%s%s %llu%s", k->done.len ? ", " : "", what, (unsigned long long)id, how);
}

static void start(void *ctx, uint64_t id, const json_t *config)
{
    (void)config;
    did(ctx, "start", id, "");
}

static void change(void *ctx, uint64_t id, const json_t *config)
{
    (void)config;
    did(ctx, "change", id, "");
}

static void stop(void *ctx, uint64_t id, bool now)
{
    did(ctx, "stop", id, now ? " now" : "");
}

static void forget(void *ctx, uint64_t id)
{
    did(ctx, "forget", id, "");
}

static const struct node_machine machine = {start, change, stop, forget};

/* ---- fake environment ------------------------------------------------------------------------------------------- */

static int64_t steady(void *ctx)
{
    return ((struct kit *)ctx)->now_ns;
}

static void report(void *ctx, uint64_t seq, char *text)
{
    struct kit *k = ctx;
    assert_int_equal(k->seq, 0); /* only one report is in flight */
    json_decref(k->report);
    k->report = json_loads(text, 0, NULL);
    assert_non_null(k->report);
    free(text);
    k->seq = seq;
    k->reports++;
}

static void heard(void *ctx, int64_t sent_ns)
{
    ((struct kit *)ctx)->heard_ns = sent_ns;
}

static void reread(void *ctx)
{
    ((struct kit *)ctx)->rereads++;
}

static void superseded(void *ctx, const char *text)
{
    assert_non_null(text);
    ((struct kit *)ctx)->superseded = true;
}

static void wake_at(void *ctx, int64_t at_ns)
{
    struct kit *k = ctx;
    if (at_ns < k->wake_ns)
        k->wake_ns = at_ns;
}

static void kit_new(struct kit *k, int64_t heard_ns)
{
    const struct node_env env = {k, steady, report, heard, reread, superseded, wake_at, &k->log, steady};
    const struct node_options options = {.id = "n1", .epoch = 7, .heard_ns = heard_ns};
    struct berth_err err;
    if (k->now_ns == 0)
        k->now_ns = 1000 * SECOND;
    k->wake_ns = INT64_MAX;
    assert_int_equal(node_new(&env, &machine, k, &options, &k->node, &err), 0);
}

static void kit_free(struct kit *k)
{
    node_free(k->node);
    json_decref(k->report);
    str_done(&k->done);
    *k = (struct kit){0};
}

static void answer(struct kit *k, int status, const char *text)
{
    uint64_t seq = k->seq;
    json_t *doc = json_loads(text, 0, NULL);
    assert_true(seq > 0);
    k->seq = 0;
    node_reported(k->node, seq, status, doc);
    json_decref(doc);
}

/* Accepts reports until none is pending. */
static void answer_all(struct kit *k)
{
    for (int i = 0; k->seq && i < 20; i++)
        answer(k, 200, "{\"config\": \"h\", \"unknown\": [], \"lease_ns\": 30000000000}");
}

static void configure(struct kit *k, uint64_t revision, const char *instances)
{
    CLEANUP(str) struct str text = {0};
    struct berth_err err;
    str_addf(&text, "{\"node\": \"n1\", \"instances\": [%s]}", instances);
    json_t *doc = json_loads(text.at, 0, NULL);
    assert_non_null(doc);
    assert_int_equal(node_configure(k->node, revision, "h", doc, &err), 0);
    json_decref(doc);
}

static void pass(struct kit *k, int64_t ns)
{
    for (int64_t end_ns = k->now_ns + ns; k->now_ns < end_ns;) {
        k->now_ns = k->wake_ns > k->now_ns && k->wake_ns < end_ns ? k->wake_ns : end_ns;
        k->wake_ns = INT64_MAX;
        node_tick(k->node);
    }
}

static void expect(struct kit *k, const char *done)
{
    assert_string_equal(str_text(&k->done), done);
    str_clear(&k->done);
}

/* Returns what the last report says of an instance, like "running ready" with its unenforced limits; "": nothing. */
static const char *said(struct kit *k, uint64_t id, char buf[static 128])
{
    const json_t *items = json_object_get(k->report, "instances");
    buf[0] = '\0';
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        const char *unenforced = json_string_value(json_array_get(json_object_get(item, "unenforced"), 0));
        if ((uint64_t)json_integer_value(json_object_get(item, "id")) == id)
            (void)snprintf(buf, 128, "%s%s%s%s", json_string_value(json_object_get(item, "state")),
                           json_is_true(json_object_get(item, "ready")) ? " ready" : "", unenforced ? " without " : "",
                           unenforced ? unenforced : "");
    }
    return buf;
}

#define RUN(id) "{\"id\": " #id ", \"state\": \"run\", \"workload\": \"w\"}"
#define FENCED(id) "{\"id\": " #id ", \"state\": \"run\", \"workload\": \"w\", \"fence_ns\": 600000000000}"
#define STOP(id) "{\"id\": " #id ", \"state\": \"stop\"}"
#define CHECKED(id) "{\"id\": " #id ", \"state\": \"run\", \"health\": {\"tcp\": {\"endpoint\": \"web\"}}}"

#define AWAITED(id)                                                                                                    \
    "{\"id\": " #id ", \"state\": \"run\", \"ports\": [{\"endpoint\": \"a\", \"start\": 10000}, "                      \
    "{\"endpoint\": \"b\", \"start\": 10001, \"await\": true}]}"

static const struct node_outcome ended = {NODE_ENDED, 0, NULL}, failed = {NODE_FAILED, 3, "exit code 3"};

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void instance_starts_stops_and_is_forgotten(void **state)
{
    struct kit k = {0};
    char buf[128];
    struct node_port port = {"web", 10016};
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    assert_int_equal(k.reports, 1);
    answer_all(&k);
    configure(&k, 1, RUN(1));
    expect(&k, "start 1");
    assert_string_equal(said(&k, 1, buf), "starting");
    answer_all(&k);
    node_started(k.node, 1, &(struct node_start){&port, 1, .unenforced = "io"});
    /* part of the first report with the state running */
    assert_string_equal(said(&k, 1, buf), "running ready without io");
    answer_all(&k);
    configure(&k, 2, RUN(1)); /* unchanged value */
    expect(&k, "");
    node_instance_ended(k.node, 1, &ended);
    assert_string_equal(said(&k, 1, buf), "ended without io");
    configure(&k, 3, ""); /* not listed any more, but the daemon has not acknowledged the end */
    expect(&k, "");
    answer_all(&k);
    expect(&k, "forget 1");
    kit_free(&k);
}

static void nothing_starts_before_first_accepted_report(void **state)
{
    struct kit k = {0};
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    configure(&k, 1, RUN(1));
    expect(&k, "");
    answer(&k, 0, "{}");
    expect(&k, "");
    pass(&k, 2 * SECOND);
    answer_all(&k);
    expect(&k, "start 1");
    kit_free(&k);
}

static void instance_never_starts_twice(void **state)
{
    struct kit k = {0};
    char buf[128];
    (void)state;
    kit_new(&k, 0);
    node_adopt_ended(k.node, 1, &failed);
    json_t *config = json_loads(RUN(2), 0, NULL);
    node_adopt(k.node, 2, config, &(struct node_start){0});
    json_decref(config);
    node_begin(k.node);
    assert_string_equal(said(&k, 1, buf), "failed");
    assert_string_equal(said(&k, 2, buf), "running ready");
    configure(&k, 1, RUN(1) "," RUN(2));
    answer_all(&k);
    configure(&k, 2, RUN(1) "," RUN(2));
    expect(&k, "");
    node_instance_ended(k.node, 2, &failed);
    answer_all(&k);
    configure(&k, 3, RUN(1) "," RUN(2) "," RUN(3)); /* the daemon has not handled the report yet */
    expect(&k, "start 3");
    configure(&k, 2, RUN(4)); /* an older revision */
    expect(&k, "");
    kit_free(&k);
}

static void unlisted_instances_are_stopped(void **state)
{
    struct kit k = {0};
    char buf[128];
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, RUN(1) "," RUN(2) "," RUN(3));
    answer_all(&k);
    node_started(k.node, 1, &(struct node_start){0});
    node_started(k.node, 2, &(struct node_start){0});
    answer_all(&k);
    expect(&k, "start 1, start 2, start 3");
    configure(&k, 2, STOP(1) "," RUN(3) "," STOP(9)); /* 3 is still starting; 9 never ran here */
    expect(&k, "stop 1, stop 2");
    answer_all(&k);
    assert_string_equal(said(&k, 9, buf), "stopped");
    node_instance_ended(k.node, 1, &ended);
    assert_string_equal(said(&k, 1, buf), "stopped"); /* stopped on request, whatever its exit code */
    answer_all(&k);
    node_instance_ended(k.node, 2, &failed);
    answer_all(&k);
    expect(&k, "forget 2");
    configure(&k, 3, RUN(1)); /* wrong on purpose: it was here */
    expect(&k, "stop 3, forget 9");
    kit_free(&k);
}

static void unknown_instances_are_stopped(void **state)
{
    struct kit k = {0};
    (void)state;
    kit_new(&k, 0);
    json_t *config = json_loads(RUN(5), 0, NULL);
    node_adopt(k.node, 5, config, &(struct node_start){0});
    json_decref(config);
    node_adopt_ended(k.node, 6, &ended);
    node_begin(k.node);
    answer(&k, 200, "{\"config\": \"other\", \"unknown\": [5, 6]}");
    expect(&k, "stop 5");
    assert_int_equal(k.rereads, 1);
    configure(&k, 1, "");
    expect(&k, "forget 6");
    kit_free(&k);
}

/* An instance that an earlier agent was starting is not started again and is reported like any other. */
static void starting_instance_is_adopted(void **state)
{
    struct kit k = {0};
    (void)state;
    kit_new(&k, 0);
    json_t *config = json_loads(RUN(5), 0, NULL);
    node_adopt_starting(k.node, 5, config);
    json_decref(config);
    node_begin(k.node);
    struct node_instance_view seen;
    assert_true(node_find(k.node, 5, &seen));
    assert_int_equal(seen.state, NODE_STARTING);
    answer_all(&k);
    configure(&k, 1, RUN(5));
    expect(&k, "");
    node_started(k.node, 5, &(struct node_start){0});
    assert_true(node_find(k.node, 5, &seen));
    assert_int_equal(seen.state, NODE_RUNNING);
    assert_true(seen.ready);
    answer_all(&k);
    configure(&k, 2, "");
    expect(&k, "stop 5");
    kit_free(&k);
}

static void silent_daemon_fences_instances(void **state)
{
    struct kit k = {0};
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, FENCED(1) "," RUN(2));
    answer_all(&k);
    node_started(k.node, 1, &(struct node_start){0});
    node_started(k.node, 2, &(struct node_start){0});
    answer_all(&k);
    expect(&k, "start 1, start 2");
    int64_t heard_ns = k.heard_ns;
    for (int i = 0; i < 599; i++) {
        pass(&k, SECOND);
        if (k.seq)
            answer(&k, 0, "{}");
    }
    expect(&k, "");
    assert_int_equal(k.heard_ns, heard_ns);
    pass(&k, SECOND);
    expect(&k, "stop 1 now"); /* 2 has no fence: a service that was replaced elsewhere may run twice */
    kit_free(&k);
}

/* The heartbeat of 10 s would be too long for an instance with a fence time of 6 s. */
static void short_fence_shortens_heartbeat(void **state)
{
    struct kit k = {0};
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, "{\"id\": 1, \"state\": \"run\", \"workload\": \"w\", \"fence_ns\": 6000000000}");
    node_started(k.node, 1, &(struct node_start){0});
    answer_all(&k);
    for (int i = 0; i < 10; i++) {
        pass(&k, 3 * SECOND);
        answer_all(&k);
    }
    expect(&k, "start 1");
    kit_free(&k);
}

static void restart_keeps_fence_deadline(void **state)
{
    struct kit k = {.now_ns = 1000 * SECOND};
    (void)state;
    kit_new(&k, 450 * SECOND);
    json_t *config = json_loads(FENCED(1), 0, NULL);
    node_adopt(k.node, 1, config, &(struct node_start){0});
    json_decref(config);
    node_begin(k.node);
    pass(&k, 49 * SECOND);
    expect(&k, "");
    pass(&k, 2 * SECOND);
    expect(&k, "stop 1 now");
    kit_free(&k);
}

static void agent_with_later_epoch_supersedes(void **state)
{
    struct kit k = {0};
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, RUN(1));
    answer_all(&k);
    node_started(k.node, 1, &(struct node_start){0});
    expect(&k, "start 1");
    answer(&k, 409, "{\"error\": {\"code\": \"superseded\", \"message\": \"epoch 8 is known\"}}");
    expect(&k, "stop 1 now");
    assert_true(k.superseded);
    configure(&k, 2, RUN(2));
    pass(&k, 60 * SECOND);
    expect(&k, "");
    assert_int_equal(k.seq, 0); /* no more reports */
    kit_free(&k);
}

static void reports_are_repeated_until_accepted(void **state)
{
    struct kit k = {0};
    char buf[128];
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, RUN(1));
    assert_string_equal(said(&k, 1, buf), "starting");
    answer(&k, 503, "{}");
    node_started(k.node, 1, &(struct node_start){0});
    assert_int_equal(k.seq, 0); /* after the retry delay */
    pass(&k, SECOND);
    assert_string_equal(said(&k, 1, buf), "running ready");
    node_instance_ended(k.node, 1, &failed); /* while a report is in flight */
    answer(&k, 200, "{\"config\": \"h\", \"unknown\": []}");
    assert_string_equal(said(&k, 1, buf), "failed");
    answer_all(&k);
    unsigned reports = k.reports;
    pass(&k, 9 * SECOND);
    assert_int_equal(k.reports, reports);
    pass(&k, 2 * SECOND); /* heartbeat: a third of 30 s, without changes */
    assert_int_equal(k.reports, reports + 1);
    assert_string_equal(said(&k, 1, buf), "");
    kit_free(&k);
}

static void health_decides_readiness(void **state)
{
    struct kit k = {0};
    char buf[128];
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, CHECKED(1));
    answer_all(&k);
    node_started(k.node, 1, &(struct node_start){0});
    assert_string_equal(said(&k, 1, buf), "running");
    answer_all(&k);
    node_health(k.node, 1, true, NULL);
    assert_string_equal(said(&k, 1, buf), "running ready");
    answer_all(&k);
    unsigned reports = k.reports;
    node_health(k.node, 1, true, NULL);
    assert_int_equal(k.reports, reports);
    node_health(k.node, 1, false, "connection refused");
    assert_string_equal(said(&k, 1, buf), "running");
    kit_free(&k);
}

static void awaited_ports_decide_readiness(void **state)
{
    struct kit k = {0};
    char buf[128];
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, AWAITED(1));
    answer_all(&k);
    node_started(k.node, 1, &(struct node_start){0});
    assert_string_equal(said(&k, 1, buf), "running");
    answer_all(&k);
    node_health(k.node, 1, true, NULL);
    assert_string_equal(said(&k, 1, buf), "running ready");
    kit_free(&k);
}

static void small_usage_changes_are_not_reported(void **state)
{
    struct kit k = {0};
    char buf[128];
    struct berth_amount use = {.resource = "cpu", .amount = 1000};
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, RUN(1));
    answer_all(&k);
    node_started(k.node, 1, &(struct node_start){0});
    answer_all(&k);
    node_usage(k.node, 1, &use, 1);
    assert_int_equal(k.seq, 0); /* does not trigger a report */
    pass(&k, 11 * SECOND);
    assert_string_equal(said(&k, 1, buf), "running ready");
    answer_all(&k);
    use.amount = 1090;
    node_usage(k.node, 1, &use, 1);
    pass(&k, 11 * SECOND);
    assert_string_equal(said(&k, 1, buf), "");
    answer_all(&k);
    use.amount = 1200;
    node_usage(k.node, 1, &use, 1);
    pass(&k, 11 * SECOND);
    assert_string_equal(said(&k, 1, buf), "running ready");
    kit_free(&k);
}

static void self_say(struct kit *k, int probed, int use)
{
    json_t *self = json_object();
    if (probed)
        (void)json_object_set_new(self, "probed", json_integer(probed));
    if (use)
        (void)json_object_set_new(self, "usage", json_integer(use));
    if (probed || use)
        node_machine_state(k->node, take_ptr(&self));
    json_decref(self);
}

/* The inventory is probed seldom, usage often. */
static void inventory_is_sent_until_accepted(void **state)
{
    static const struct {
        const char *label;
        struct {
            int probed, use; /* 0: absent */
        } before[2], sent, during, after;
        int status;
    } rows[] = {
        {"said once",                        {{1, 1}},         {1, 1}, {0, 0}, {0, 0}, 200},
        {"a plain look before the report",   {{1, 1}, {0, 2}}, {1, 2}, {0, 0}, {0, 0}, 200},
        {"a full look before the report",    {{1, 1}, {2, 2}}, {2, 2}, {0, 0}, {0, 0}, 200},
        {"nobody answers",                   {{1, 1}},         {1, 1}, {0, 0}, {1, 1}, 0  },
        {"not now",                          {{1, 1}},         {1, 1}, {0, 0}, {1, 1}, 503},
        {"not now, and a plain look since",  {{1, 1}},         {1, 1}, {0, 2}, {1, 2}, 503},
        {"not now, and a full look since",   {{1, 1}},         {1, 1}, {2, 2}, {2, 2}, 503},
        {"what cannot be read is said once", {{1, 1}},         {1, 1}, {0, 0}, {0, 0}, 400},
        {"what is too large is said once",   {{1, 1}},         {1, 1}, {0, 2}, {0, 2}, 413},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kit k = {0};
        kit_new(&k, 0);
        node_begin(k.node);
        answer_all(&k);
        for (size_t b = 0; b < 2; b++)
            self_say(&k, rows[i].before[b].probed, rows[i].before[b].use);
        pass(&k, 11 * SECOND);
        const json_t *self = json_object_get(k.report, "node");
        bool sent = json_integer_value(json_object_get(self, "probed")) == rows[i].sent.probed &&
                    json_integer_value(json_object_get(self, "usage")) == rows[i].sent.use;
        self_say(&k, rows[i].during.probed, rows[i].during.use);
        answer(&k, rows[i].status, "{\"config\": \"h\", \"unknown\": []}");
        pass(&k, 11 * SECOND);
        self = json_object_get(k.report, "node");
        if (!sent || json_integer_value(json_object_get(self, "probed")) != rows[i].after.probed ||
            json_integer_value(json_object_get(self, "usage")) != rows[i].after.use)
            fail_msg("%s", rows[i].label);
        kit_free(&k);
    }
}

static void total_traffic_is_in_final_report(void **state)
{
    struct kit k = {0};
    struct berth_amount use = {.resource = "cpu", .amount = 1000};
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, RUN(1));
    answer_all(&k);
    node_started(k.node, 1, &(struct node_start){0});
    answer_all(&k);
    node_usage(k.node, 1, &use, 1);
    node_total_usage(k.node, 1, "traffic", 5000000);
    node_total_usage(k.node, 1, "traffic", 7000000);
    node_total_usage(k.node, 2, "traffic", 7000000); /* unknown instance */
    node_instance_ended(k.node, 1, &(struct node_outcome){NODE_ENDED, 0, NULL});
    const json_t *item = json_array_get(json_object_get(k.report, "instances"), 0),
                 *told = json_object_get(item, "usage");
    assert_string_equal(json_string_value(json_object_get(item, "state")), "ended");
    assert_int_equal(json_object_size(told), 1);
    assert_string_equal(json_string_value(json_object_get(told, "traffic")), "7M");
    kit_free(&k);
}

static void traffic_of_adopted_ended_instance_is_reported(void **state)
{
    struct kit k = {0};
    (void)state;
    kit_new(&k, 0);
    node_adopt_ended(k.node, 1, &(struct node_outcome){NODE_ENDED, 0, NULL});
    node_total_usage(k.node, 1, "traffic", 7000000);
    node_begin(k.node);
    const json_t *item = json_array_get(json_object_get(k.report, "instances"), 0);
    assert_string_equal(json_string_value(json_object_get(item, "state")), "ended");
    assert_string_equal(json_string_value(json_object_get(json_object_get(item, "usage"), "traffic")), "7M");
    kit_free(&k);
}

static void invalid_configurations_change_nothing(void **state)
{
    static const char *const rows[] = {
        "{}",
        "{\"node\": \"n2\", \"instances\": []}",
        "{\"node\": \"n1\"}",
        "{\"node\": \"n1\", \"instances\": [{\"id\": 0, \"state\": \"run\"}]}",
        "{\"node\": \"n1\", \"instances\": [{\"id\": 1, \"state\": \"fly\"}]}",
        "{\"node\": \"n1\", \"instances\": [{\"id\": 1, \"state\": \"run\"}, 7]}",
    };
    struct kit k = {0};
    (void)state;
    kit_new(&k, 0);
    node_begin(k.node);
    answer_all(&k);
    configure(&k, 1, RUN(4));
    expect(&k, "start 4");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct berth_err err = {0};
        json_t *doc = json_loads(rows[i], 0, NULL);
        assert_true(node_configure(k.node, 2 + i, "x", doc, &err) < 0);
        assert_true(err.text[0]);
        json_decref(doc);
    }
    expect(&k, "");
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instance_starts_stops_and_is_forgotten),
        cmocka_unit_test(nothing_starts_before_first_accepted_report),
        cmocka_unit_test(instance_never_starts_twice),
        cmocka_unit_test(unlisted_instances_are_stopped),
        cmocka_unit_test(unknown_instances_are_stopped),
        cmocka_unit_test(starting_instance_is_adopted),
        cmocka_unit_test(silent_daemon_fences_instances),
        cmocka_unit_test(restart_keeps_fence_deadline),
        cmocka_unit_test(short_fence_shortens_heartbeat),
        cmocka_unit_test(agent_with_later_epoch_supersedes),
        cmocka_unit_test(reports_are_repeated_until_accepted),
        cmocka_unit_test(health_decides_readiness),
        cmocka_unit_test(awaited_ports_decide_readiness),
        cmocka_unit_test(small_usage_changes_are_not_reported),
        cmocka_unit_test(inventory_is_sent_until_accepted),
        cmocka_unit_test(total_traffic_is_in_final_report),
        cmocka_unit_test(traffic_of_adopted_ended_instance_is_reported),
        cmocka_unit_test(invalid_configurations_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
