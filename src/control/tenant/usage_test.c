/* usage_test.c - every end is recorded once, and the books follow from the records, whatever crashes. */
#include "control/api/kit_test.h"

#include "control/control_parts.h"
#include "control/job/predict.h"
#include "control/tenant/usage.h"

#define ALICE "user:alice"
#define BOB "user:bob"
#define CAROL "user:carol"
#define N1 "node:n1"
#define SECOND INT64_C(1000000000)

struct scene {
    struct kit k;
    int seq;
};

static int open_scene(void **state)
{
    struct scene *s = mem_zalloc(sizeof *s);
    kit_open(&s->k);
    kit_add_users(&s->k);
    CALL(&s->k, 201, ADMIN, "POST", "/v1/nodes",
         "{id: n1, allocatable: {cpu: 64, memory: 64Gi}, gpus: [{model: a, memory: 80Gi}, {model: a, memory: 80Gi}]}");
    *state = s;
    return 0;
}

static int close_scene(void **state)
{
    kit_done(&((struct scene *)*state)->k);
    mem_free(*state);
    return 0;
}

/* Reports instances as the agent: "{id: 1, state: running}". */
static void says(struct scene *s, const char *items)
{
    char body[1024];
    (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d, instances: [%s]}", ++s->seq, items);
    CALL(&s->k, 200, N1, "POST", "/v1/nodes/n1/report", body);
}

static void time_passes(struct scene *s, int64_t seconds)
{
    s->k.now_ns += seconds * SECOND;
    s->k.steady_ns += SECOND;
    for (int i = 0; i < 3; i++)
        control_pump(s->k.control);
}

/* Submits a job and has it placed; returns its instance. */
static int64_t placed(struct scene *s, const char *who, const char *job)
{
    CALL(&s->k, 201, who, "POST", "/v1/jobs", job);
    kit_plan(&s->k);
    size_t len;
    (void)state_list(control_state(s->k.control), KIND_INSTANCE, &len);
    return (int64_t)state_last_number(control_state(s->k.control), KIND_INSTANCE);
}

static void item(struct scene *s, int64_t instance, const char *rest)
{
    char text[256];
    (void)snprintf(text, sizeof text, "{id: %lld, %s}", (long long)instance, rest);
    says(s, text);
}

/* Runs a task for some seconds, from submission to end. */
static void runs(struct scene *s, const char *who, const char *job, int64_t seconds, const char *end)
{
    int64_t instance = placed(s, who, job);
    item(s, instance, "state: running");
    time_passes(s, seconds);
    item(s, instance, end);
    time_passes(s, 1);
}

static size_t records(struct scene *s)
{
    CALL(&s->k, 200, ADMIN, "GET", "/v1/usage_records", NULL);
    return json_array_size(kit_at(&s->k, "items"));
}

static double real_at(const struct kit *k, const char *path)
{
    return json_real_value(kit_at(k, path));
}

static int64_t use_of(struct scene *s, const char *user)
{
    char id[64];
    (void)snprintf(id, sizeof id, "usage/user/%s", user);
    const struct object *o = state_find(control_state(s->k.control), KIND_FACT, id);
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    return json_integer_value(json_object_get(doc, "value"));
}

#define ABOUT(want, got)                                                                                               \
    do {                                                                                                               \
        double want_ = (want), got_ = (got);                                                                           \
        if (got_ < want_ * 0.999 || got_ > want_ * 1.001)                                                              \
            fail_msg("%g instead of %g: %s", got_, want_, s->k.text);                                                  \
    } while (0)

/* ---- records ---------------------------------------------------------------------------------------------------- */

static void each_end_is_recorded_once(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *before, *end, *outcome; /* "": no record */
    } rows[] = {
        {"state: running",  "state: ended, exit: 0",               "ended"  },
        {"state: running",  "state: failed, exit: 3, error: no",   "failed" },
        {"state: running",  "state: stopped",                      "stopped"},
        {"state: starting", "state: ended, exit: 0",               "ended"  }, /* ended before its start was reported */
        {"state: starting", "state: failed, error: no such image", ""       }, /* never ran */
        {"state: starting", "state: stopped",                      ""       },
    };
    size_t want = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t instance =
            placed(s, ALICE, "{name: a, requests: {cpu: 2, memory: 4Gi}, gpu: 1, restart_policy: never}");
        item(s, instance, rows[i].before);
        time_passes(s, 100);
        item(s, instance, rows[i].end);
        item(s, instance, rows[i].end); /* reported again */
        want += *rows[i].outcome != 0;
        if (records(s) != want)
            fail_msg("row %zu: %s", i, s->k.text);
        if (!*rows[i].outcome)
            continue;
        CALL(&s->k, 200, ADMIN, "GET", "/v1/usage_records", NULL);
        char path[32];
        (void)snprintf(path, sizeof path, "items/%zu/outcome", want - 1);
        assert_string_equal(kit_text(&s->k, path), rows[i].outcome);
        (void)snprintf(path, sizeof path, "items/%zu/seconds", want - 1);
        ABOUT(100, real_at(&s->k, path));
    }
    CALL(&s->k, 200, ADMIN, "GET", "/v1/usage_records?limit=1", NULL);
    assert_string_equal(kit_text(&s->k, "items/0/owner"), "alice");
    assert_string_equal(kit_text(&s->k, "items/0/group"), "red");
    assert_string_equal(kit_text(&s->k, "items/0/node"), "n1");
    assert_string_equal(kit_text(&s->k, "items/0/resources/cpu"), "2");
    assert_string_equal(kit_text(&s->k, "items/0/resources/memory"), "4Gi");
    assert_string_equal(kit_text(&s->k, "items/0/resources/gpu"), "1");
    assert_int_equal(kit_number(&s->k, "items/0/gpus/0"), 0);
    assert_string_equal(kit_text(&s->k, "items/0/queue"), "default");
    assert_true(json_is_true(kit_at(&s->k, "more")));
}

static void lost_instance_counts_until_last_report(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 201, ALICE, "POST", "/v1/apps", "{name: web, on_lost: fence, fence: 20s, requests: {cpu: 1}}");
    kit_plan(&s->k);
    says(s, "{id: 1, state: running}");
    /* Other nodes keep reporting; otherwise too many would be lost at once. */
    for (int n = 2; n < 6; n++) {
        char body[64];
        (void)snprintf(body, sizeof body, "{id: n%d, allocatable: {cpu: 8, memory: 8Gi}}", n);
        CALL(&s->k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    for (int i = 0; i < 120; i++) {
        for (int n = 2; n < 6; n++) {
            char url[64], body[64], who[16];
            (void)snprintf(url, sizeof url, "/v1/nodes/n%d/report", n);
            (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d}", i + 1);
            (void)snprintf(who, sizeof who, "node:n%d", n);
            CALL(&s->k, 200, who, "POST", url, body);
        }
        kit_sleep(&s->k, 1);
    }
    assert_int_equal(records(s), 1);
    assert_string_equal(kit_text(&s->k, "items/0/outcome"), "lost");
    assert_true(real_at(&s->k, "items/0/seconds") < 60); /* until the end of the lease, not of the fence */
    assert_string_equal(kit_text(&s->k, "items/0/kind"), "app");
}

static void removed_node_ends_its_instances(void **state)
{
    struct scene *s = *state;
    int64_t instance = placed(s, ALICE, "{name: a, requests: {cpu: 1}}");
    item(s, instance, "state: running");
    time_passes(s, 10);
    CALL(&s->k, 204, ADMIN, "DELETE", "/v1/nodes/n1?force=true", NULL);
    assert_int_equal(records(s), 1);
    assert_string_equal(kit_text(&s->k, "items/0/outcome"), "removed");
    ABOUT(10, real_at(&s->k, "items/0/seconds"));
}

static void long_run_has_partial_records(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{usage_cut_s: 60, lease_s: 86400}");
    int64_t instance = placed(s, ALICE, "{name: a, requests: {cpu: 1}}");
    item(s, instance, "state: running");
    kit_sleep(&s->k, 130);
    size_t pieces = records(s);
    assert_true(pieces >= 1);
    assert_int_equal(use_of(s, "alice"), 0); /* running instances are no past use */
    assert_string_equal(kit_text(&s->k, "items/0/outcome"), "running");
    item(s, instance, "state: ended, exit: 0");
    time_passes(s, 1);
    assert_int_equal(records(s), pieces + 1);
    CALL(&s->k, 200, ADMIN, "GET", "/v1/usage", NULL);
    ABOUT(130.04 / 3600, real_at(&s->k, "total/core_hours"));
    assert_int_equal(kit_number(&s->k, "total/ended"), 1);
    int64_t p50, p90;
    uint64_t version;
    assert_true(predict_time(control_state(s->k.control), "alice", "a", &p50, &p90, &version));
    ABOUT(130.04, (double)p50 / 1e9); /* the whole run, not the last partial record */
    ABOUT(130.04 * 1000, (double)use_of(s, "alice"));
}

/* ---- visibility ------------------------------------------------------------------------------------------------- */

static void users_see_their_own_records(void **state)
{
    struct scene *s = *state;
    runs(s, ALICE, "{name: a, requests: {cpu: 4}}", 3600, "state: ended, exit: 0");
    runs(s, BOB, "{name: b, requests: {cpu: 1}, gpu: 2}", 1800, "state: failed, exit: 1");
    static const struct {
        const char *who, *query;
        size_t records;
        double cores, gpus;
    } rows[] = {
        {ADMIN, "",             2, 4.5, 1},
        {ALICE, "",             1, 4,   0},
        {CAROL, "",             1, 4,   0}, /* manager of group red */
        {BOB,   "",             1, 0.5, 1},
        {BOB,   "?user=alice",  0, 0,   0},
        {ADMIN, "?group=blue",  1, 0.5, 1},
        {ADMIN, "?user=nobody", 0, 0,   0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char url[128];
        (void)snprintf(url, sizeof url, "/v1/usage_records%s", rows[i].query);
        CALL(&s->k, 200, rows[i].who, "GET", url, NULL);
        assert_int_equal(json_array_size(kit_at(&s->k, "items")), rows[i].records);
        assert_int_equal(kit_number(&s->k, "after"), 2); /* where to continue, also past records that are not visible */
        (void)snprintf(url, sizeof url, "/v1/usage%s", rows[i].query);
        CALL(&s->k, 200, rows[i].who, "GET", url, NULL);
        ABOUT(rows[i].cores, real_at(&s->k, "total/core_hours"));
        ABOUT(rows[i].gpus, real_at(&s->k, "total/gpu_hours"));
        assert_int_equal(json_array_size(kit_at(&s->k, "items")), rows[i].records);
    }
    CALL(&s->k, 200, ADMIN, "GET", "/v1/usage?by=queue", NULL);
    assert_int_equal(json_array_size(kit_at(&s->k, "items")), 1);
    assert_string_equal(kit_text(&s->k, "items/0/queue"), "default");
    assert_null(kit_at(&s->k, "items/0/user"));
    CALL(&s->k, 400, ADMIN, "GET", "/v1/usage?by=hat", NULL);
    SAYS(&s->k, "by: expected user, group, queue, name or outcome");
    CALL(&s->k, 400, ADMIN, "GET", "/v1/usage?from=yesterday", NULL);
    CALL(&s->k, 400, ADMIN, "GET", "/v1/usage_records?limit=0", NULL);
}

static void last_records_are_returned(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *who, *query, *want; /* want: names, in order */
    } rows[] = {
        {ADMIN, "tail=2",            "c d "    },
        {ADMIN, "tail=9",            "a b c d "},
        {ADMIN, "tail=2&user=alice", "a c "    },
        {ALICE, "tail=1",            "c "      },
        {BOB,   "tail=1&user=alice", ""        },
    };
    runs(s, ALICE, "{name: a, requests: {cpu: 1}}", 60, "state: ended, exit: 0");
    runs(s, BOB, "{name: b, requests: {cpu: 1}}", 60, "state: ended, exit: 0");
    runs(s, ALICE, "{name: c, requests: {cpu: 1}}", 60, "state: ended, exit: 0");
    runs(s, BOB, "{name: d, requests: {cpu: 1}}", 60, "state: ended, exit: 0");
    for (size_t i = 0; i < COUNT(rows); i++) {
        char url[128], got[64] = "";
        size_t at;
        const json_t *record;
        (void)snprintf(url, sizeof url, "/v1/usage_records?%s", rows[i].query);
        CALL(&s->k, 200, rows[i].who, "GET", url, NULL);
        json_array_foreach(kit_at(&s->k, "items"), at, record)(void) snprintf(
            got + strlen(got), sizeof got - strlen(got), "%s ", json_string_value(json_object_get(record, "name")));
        assert_string_equal(got, rows[i].want);
        assert_false(json_is_true(kit_at(&s->k, "more")));
    }
    CALL(&s->k, 400, ADMIN, "GET", "/v1/usage_records?tail=0", NULL);
}

/* Alice has used four times as much as bob: bob comes first. Visibility is that of users. */
static void shares_are_returned(void **state)
{
    struct scene *s = *state;
    runs(s, ALICE, "{name: a, requests: {cpu: 4}}", 3600, "state: ended, exit: 0");
    runs(s, BOB, "{name: b, requests: {cpu: 1}}", 3600, "state: failed, exit: 1");
    time_passes(s, 1);
    CALL(&s->k, 200, ADMIN, "GET", "/v1/shares", NULL);
    assert_int_equal(json_array_size(kit_at(&s->k, "items")), 2);
    bool first = strcmp(kit_text(&s->k, "items/0/user"), "alice") == 0;
    const char *alice = first ? "items/0/fair_share" : "items/1/fair_share";
    const char *bob = first ? "items/1/fair_share" : "items/0/fair_share";
    assert_true(real_at(&s->k, alice) < real_at(&s->k, bob));
    assert_int_equal(kit_number(&s->k, "half_life_s"), 604800);
    CALL(&s->k, 200, ALICE, "GET", "/v1/shares", NULL);
    assert_int_equal(json_array_size(kit_at(&s->k, "items")), 1);
    assert_string_equal(kit_text(&s->k, "items/0/user"), "alice");
    assert_string_equal(kit_text(&s->k, "items/0/group"), "red");
    double used = real_at(&s->k, "items/0/used_hours");
    assert_true(used > 3.9 && used <= 4.01);

    CALL(&s->k, 200, ADMIN, "GET", "/v1/usage?by=outcome", NULL);
    assert_int_equal(json_array_size(kit_at(&s->k, "items")), 2);
    assert_string_equal(kit_text(&s->k, "items/0/outcome"), "ended");
    assert_string_equal(kit_text(&s->k, "items/1/outcome"), "failed");
    ABOUT(1, real_at(&s->k, "items/1/core_hours"));
}

static void prices_are_returned(void **state)
{
    struct scene *s = *state;
    static const struct {
        const char *prices, *says;
    } bad[] = {
        {"[",                                                           "prices"                        },
        {"prices: {cpu: 1}",                                            "prices: currency: missing"     },
        {"currency: EUR",                                               "prices: prices: expected {name"},
        {"{\"currency\": \"EUR\", \"prices\": {\"cpu\": \"much\"}}",    "cpu: expected a number"        },
        {"{\"currency\": \"EUR\", \"prices\": {\"cpu\": -1}}",          "cpu: expected a number"        },
        {"{\"currency\": \"EUR\", \"prices\": {}, \"free\": \"lost\"}", "free: expected a list"         },
    };
    CALL(&s->k, 200, ALICE, "GET", "/v1/prices", NULL);
    assert_int_equal(json_object_size(s->k.body), 0);
    for (size_t i = 0; i < COUNT(bad); i++) {
        char body[160];
        (void)snprintf(body, sizeof body, "{prices: '%s'}", bad[i].prices);
        CALL(&s->k, 400, ADMIN, "PATCH", "/v1/system/settings", body);
        SAYS(&s->k, bad[i].says);
    }
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings",
         "prices: |\n  currency: EUR\n  prices:\n    cpu: 0.02  # a core\n    gpu: 1.5\n  queues: {spot: 0.5}\n"
         "  free: [lost]\n  budgets: [{group: red, amount: 5}]\n");
    CALL(&s->k, 200, ALICE, "GET", "/v1/prices", NULL);
    assert_string_equal(kit_text(&s->k, "currency"), "EUR");
    ABOUT(1.5, real_at(&s->k, "prices/gpu"));
    ABOUT(0.5, real_at(&s->k, "queues/spot"));
    assert_string_equal(kit_text(&s->k, "free/0"), "lost");
    assert_null(kit_at(&s->k, "budgets"));
}

static void only_the_requested_time_is_summed(void **state)
{
    struct scene *s = *state;
    runs(s, ALICE, "{name: a, requests: {cpu: 1}}", 7200, "state: ended, exit: 0"); /* from 12:00 on */
    static const struct {
        const char *from, *to;
        double hours;
        int64_t ends;
    } rows[] = {
        {"2026-03-01T12:00:00Z", "2026-03-01T15:00:00Z", 2,   1},
        {"2026-03-01T13:00:00Z", "2026-03-01T15:00:00Z", 1,   1},
        {"2026-03-01T12:30:00Z", "2026-03-01T13:00:00Z", 0.5, 0},
        {"2026-03-01T15:00:00Z", "2026-03-01T16:00:00Z", 0,   0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char url[128];
        (void)snprintf(url, sizeof url, "/v1/usage?from=%s&to=%s", rows[i].from, rows[i].to);
        CALL(&s->k, 200, ALICE, "GET", url, NULL);
        ABOUT(rows[i].hours, real_at(&s->k, "total/core_hours"));
        assert_int_equal(kit_number(&s->k, "total/ended"), rows[i].ends);
    }
    CALL(&s->k, 400, ALICE, "GET", "/v1/usage?from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", NULL);
}

/* ---- the books -------------------------------------------------------------------------------------------------- */

static void use_is_booked_once_despite_crashes(void **state)
{
    struct scene *s = *state;
    int64_t instance = placed(s, ALICE, "{name: a, requests: {cpu: 2}}");
    item(s, instance, "state: running");
    time_passes(s, 1000);
    item(s, instance, "state: ended, exit: 0");
    assert_int_equal(use_of(s, "alice"), 0); /* not booked yet */
    assert_int_equal(usage_booked(control_state(s->k.control)), 0);
    kit_restart(&s->k);
    time_passes(s, 1);
    int64_t once = use_of(s, "alice");
    assert_true(once > 0);
    assert_int_equal(usage_booked(control_state(s->k.control)), 1);
    for (int i = 0; i < 3; i++) {
        kit_restart(&s->k);
        time_passes(s, 1);
        assert_int_equal(use_of(s, "alice"), once);
    }
    runs(s, ALICE, "{name: a, requests: {cpu: 2}}", 1000, "state: ended, exit: 0");
    ABOUT((double)once * 2, (double)use_of(s, "alice"));
    assert_int_equal(use_of(s, "bob"), 0);
}

static void unwritable_books_are_retried(void **state)
{
    struct scene *s = *state;
    struct control *c = s->k.control;
    int64_t instance = placed(s, ALICE, "{name: a, requests: {cpu: 2}}");
    item(s, instance, "state: running");
    time_passes(s, 1000);
    item(s, instance, "state: ended, exit: 0");
    kit_queue_fill(&s->k);
    int64_t now_ns = s->k.steady_ns, next_ns = usage_books_step(c->books, now_ns);
    assert_true(next_ns >= now_ns + SECOND && next_ns < INT64_MAX);
    (void)snprintf(c->broken, sizeof c->broken, "for tests");
    assert_int_equal(usage_books_step(c->books, next_ns), INT64_MAX);
    *c->broken = 0;
    time_passes(s, 1);
    assert_int_equal(usage_booked(control_state(c)), 1);
}

static void totals_restart_with_each_period(void **state)
{
    struct scene *s = *state;
    int64_t spent = 0, since = 0;
    struct state *st = control_state(s->k.control);
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/groups/red",
         "{quota: {totals: [{resource: gpu, hours: 10, period: 1d}, {resource: cpu, hours: 1000}]}}");
    runs(s, ALICE, "{name: a, requests: {cpu: 2}, gpu: 1}", 3600, "state: ended, exit: 0");
    runs(s, BOB, "{name: a, requests: {cpu: 2}, gpu: 1}", 3600, "state: ended, exit: 0");
    assert_true(usage_spent(st, "group/red", "gpu", &spent, &since));
    ABOUT(1000 * 3600, (double)spent);
    assert_int_equal(since % (86400 * SECOND), 0);
    assert_true(usage_spent(st, "group/red", "cpu", &spent, &since));
    ABOUT(2000 * 3600, (double)spent);
    assert_int_equal(since, 0);
    assert_false(usage_spent(st, "user/alice", "gpu", &spent, &since)); /* no total limits this resource */
    assert_false(usage_spent(st, "group/blue", "gpu", &spent, &since));
    runs(s, ALICE, "{name: a, requests: {cpu: 2}, gpu: 1}", 3600, "state: ended, exit: 0");
    assert_true(usage_spent(st, "group/red", "gpu", &spent, &since));
    ABOUT(2000 * 3600, (double)spent);
    int64_t before = since;
    /* Over midnight: only use after it counts for the new day. The time is now after 15:00. */
    int64_t instance = placed(s, ALICE, "{name: a, requests: {cpu: 2}, gpu: 1}");
    item(s, instance, "state: running");
    int64_t left = 86400 - (s->k.now_ns / SECOND) % 86400;
    time_passes(s, left + 600);
    item(s, instance, "state: ended, exit: 0");
    time_passes(s, 1);
    assert_true(usage_spent(st, "group/red", "gpu", &spent, &since));
    assert_int_equal(since, before + 86400 * SECOND);
    assert_true(spent >= 1000 * 599 && spent <= 1000 * 602);
    assert_true(usage_spent(st, "group/red", "cpu", &spent, &since));
    ABOUT(2000.0 * (7200 + (double)left + 600), (double)spent);
}

static void neighbours_of_a_class_are_recorded(void **state)
{
    struct scene *s = *state;
    int64_t one = placed(s, ALICE, "{name: a, class: llm, requests: {cpu: 1}}");
    item(s, one, "state: running");
    time_passes(s, 10);
    int64_t two = placed(s, BOB, "{name: b, class: vision, requests: {cpu: 1}}");
    item(s, two, "state: running");
    time_passes(s, 100);
    int64_t late = placed(s, BOB, "{name: c, class: tiny, requests: {cpu: 1}}");
    item(s, late, "state: running");
    item(s, one, "state: ended, exit: 0");
    item(s, two, "state: ended, exit: 0");
    item(s, late, "state: ended, exit: 0");
    assert_int_equal(records(s), 3);
    assert_int_equal(json_array_size(kit_at(&s->k, "items/0/beside")), 1); /* without the instance that started late */
    assert_string_equal(kit_text(&s->k, "items/0/beside/0"), "vision");
    assert_int_equal(json_array_size(kit_at(&s->k, "items/1/beside")), 0); /* without instances that ended before */
    assert_true(json_is_array(kit_at(&s->k, "items/2/beside")));
    CALL(&s->k, 200, ALICE, "GET", "/v1/usage_records", NULL);
    assert_string_equal(kit_text(&s->k, "items/0/class"), "llm");
    if (strstr(s->k.text, "\"vision\"")) /* classes of other users' jobs are not shown */
        fail_msg("%s", s->k.text);
}

/* Names and classes may be any text; none disturbs the books. */
static void any_names_are_booked(void **state)
{
    struct scene *s = *state;
    for (int i = 0; i < 6; i++)
        runs(s, ALICE, "{name: 'a b/c \xc3\xbc', class: 'x y/../z', requests: {cpu: 1}}", 10, "state: ended, exit: 0");
    assert_int_equal(usage_booked(control_state(s->k.control)), 6);
    int64_t p50, p90;
    uint64_t version;
    assert_true(predict_time(control_state(s->k.control), "alice", "a b/c \xc3\xbc", &p50, &p90, &version));
}

static void jobs_show_predictions(void **state)
{
    struct scene *s = *state;
    runs(s, ALICE, "{name: train-1, requests: {cpu: 1}}", 100, "state: ended, exit: 0");
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: train-2, requests: {cpu: 1000}}");
    CALL(&s->k, 200, ALICE, "GET", "/v1/jobs/2", NULL);
    ABOUT(100, real_at(&s->k, "status/predicted/seconds_p50"));
    assert_string_equal(kit_text(&s->k, "status/predicted/of"), "alice/train");
    assert_int_equal(kit_number(&s->k, "status/predicted/version"), 1);
    CALL(&s->k, 201, BOB, "POST", "/v1/jobs", "{name: train-2, requests: {cpu: 1000}}");
    CALL(&s->k, 200, BOB, "GET", "/v1/jobs/3", NULL);
    assert_null(kit_at(&s->k, "status/predicted"));
    struct berth_err err = {0};
    if (state_audit(control_state(s->k.control), &err) < 0) /* equal to a cluster rebuilt from the documents */
        fail_msg("%s", err.text);
}

static size_t runs_known(struct scene *s, const char *id)
{
    const struct object *o = state_find(control_state(s->k.control), KIND_PREDICTION, id);
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    return json_array_size(json_object_get(doc, "past"));
}

/* Runs that succeeded or reached their limit predict the next run by the share of the limit; failed and cancelled runs
 * do not. */
static void time_limits_are_learned_from(void **state)
{
    struct scene *s = *state;
    runs(s, ALICE, "{name: train, requests: {cpu: 1}, time_limit: 1000s}", 200, "state: ended, exit: 0");
    CALL(&s->k, 200, ADMIN, "GET", "/v1/usage_records", NULL);
    ABOUT(1000, real_at(&s->k, "items/0/limit"));
    assert_null(kit_at(&s->k, "items/0/tasks"));
    CALL(&s->k, 201, ALICE, "POST", "/v1/jobs", "{name: train, requests: {cpu: 1000}, time_limit: 2000s}");
    CALL(&s->k, 200, ALICE, "GET", "/v1/jobs/2", NULL);
    ABOUT(600, real_at(&s->k, "status/predicted/seconds"));
    runs(s, ALICE, "{name: slow, requests: {cpu: 1}, time_limit: 60s}", 61, "state: stopped");
    assert_int_equal(runs_known(s, "alice/slow"), 1);
    runs(s, ALICE, "{name: odd, requests: {cpu: 1}, time_limit: 60s}", 10, "state: stopped");
    runs(s, ALICE, "{name: bad, requests: {cpu: 1}, retries: 0}", 10, "state: failed, exit: 1");
    assert_int_equal(runs_known(s, "alice/odd") + runs_known(s, "alice/bad"), 0);
    assert_int_equal(runs_known(s, PREDICT_ALL), 2);
    int64_t last = placed(s, ALICE, "{name: gang, replicas: 2, gang: true, requests: {cpu: 1}}");
    for (int64_t i = last - 1; i <= last; i++)
        item(s, i, "state: running");
    time_passes(s, 100);
    for (int64_t i = last - 1; i <= last; i++)
        item(s, i, "state: ended, exit: 0");
    time_passes(s, 1);
    time_passes(s, 1);
    assert_int_equal(runs_known(s, "alice/gang"), 1);
    CALL(&s->k, 200, ADMIN, "GET", "/v1/usage_records", NULL);
    assert_int_equal(kit_number(&s->k, "items/4/tasks"), 2);
    struct berth_err err = {0};
    if (state_audit(control_state(s->k.control), &err) < 0)
        fail_msg("%s", err.text);
}

static void numbers_go_on_after_old_records_are_deleted(void **state)
{
    struct scene *s = *state;
    CALL(&s->k, 200, ADMIN, "PATCH", "/v1/system/settings", "{usage_keep_s: 3600, lease_s: 86400}");
    for (int i = 0; i < 3; i++)
        runs(s, ALICE, "{name: a, requests: {cpu: 1}}", 10, "state: ended, exit: 0");
    assert_int_equal(records(s), 3);
    s->k.now_ns += 7200 * SECOND;
    kit_sleep(&s->k, 61);
    assert_int_equal(records(s), 0);
    kit_restart(&s->k);
    runs(s, ALICE, "{name: a, requests: {cpu: 1}}", 10, "state: ended, exit: 0");
    assert_int_equal(records(s), 1);
    assert_int_equal(kit_number(&s->k, "items/0/id"), 4);
    assert_int_equal(kit_number(&s->k, "first"), 4);
}

static void peak_use_is_kept(void **state)
{
    struct scene *s = *state;
    int64_t instance = placed(s, ALICE, "{name: a, requests: {cpu: 2, memory: 4Gi}}");
    item(s, instance, "state: running, usage: {memory: 1Gi, cpu: 1}");
    item(s, instance, "state: running, usage: {memory: 3Gi, cpu: 500m}");
    item(s, instance, "state: running, usage: {memory: 2Gi}");
    time_passes(s, 10);
    item(s, instance, "state: ended, exit: 0");
    assert_int_equal(records(s), 1);
    assert_string_equal(kit_text(&s->k, "items/0/used/memory"), "3Gi");
    assert_string_equal(kit_text(&s->k, "items/0/used/cpu"), "1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_end_is_recorded_once),
        TEST(lost_instance_counts_until_last_report),
        TEST(removed_node_ends_its_instances),
        TEST(long_run_has_partial_records),
        TEST(users_see_their_own_records),
        TEST(last_records_are_returned),
        TEST(shares_are_returned),
        TEST(prices_are_returned),
        TEST(only_the_requested_time_is_summed),
        TEST(use_is_booked_once_despite_crashes),
        TEST(unwritable_books_are_retried),
        TEST(totals_restart_with_each_period),
        TEST(neighbours_of_a_class_are_recorded),
        TEST(any_names_are_booked),
        TEST(jobs_show_predictions),
        TEST(time_limits_are_learned_from),
        TEST(numbers_go_on_after_old_records_are_deleted),
        TEST(peak_use_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
