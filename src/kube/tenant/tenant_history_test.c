/* tenant_history_test.c - past usage of users, groups and queues: ended work is booked, a status shows it with running
 * work, and a new leader takes it from there; fair shares and totals use it, and every plan can be replayed.
 */
#include "kube/journal/journal_kit_test.h"

#include "wire/text/document.h"

#define SECOND_NS INT64_C(1000000000)
#define HOUR INT64_C(3600)

/* ---- a cluster with a controlled clock -------------------------------------------------------------------------- */

struct story {
    struct scene s;
    int64_t now_s; /* 0: another process leads */
};

static int64_t story_clock(void *ctx)
{
    return ((const struct story *)ctx)->now_s * SECOND_NS;
}

static void story_begin(struct story *y)
{
    scene_begin(&y->s);
    tenants_record_usage(y->s.tenants, story_clock, y);
    scene_node(&y->s, "n1", "a", "");
    scene_node(&y->s, "n2", "a", "");
}

static void story_cleanup(struct story *y)
{
    scene_cleanup(&y->s);
}

static void tenant(struct scene *s, enum kind kind, const char *name, const char *spec)
{
    struct berth_err err = {0};
    json_t *root = kit_parse(spec);
    if (tenants_put(s->tenants, kind, name, root, &err) < 0)
        fail_msg("%s %s: %s", kinds[kind].name, name, err.text);
    json_decref(root);
}

/* Puts a pod of ours in queue q, created at this second; with a node, bound there since bound_s. */
static void pod(struct scene *s, const char *name, const char *labels, int64_t made_s, const char *node,
                int64_t bound_s, const char *cpu)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: %s, namespace: default, uid: uid-%s, creationTimestamp: %lld, labels: {berth.dev/queue: q%s%s}}, "
        "spec: {schedulerName: berth, nodeName: \"%s\", containers: [{resources: {requests: {%s}}}]}, "
        "status: {conditions: [{type: PodScheduled, status: \"%s\", lastTransitionTime: %lld}]}}",
        name, name, (long long)made_s, *labels ? ", " : "", labels, node, cpu, *node ? "True" : "False",
        (long long)bound_s);
    scene_put(s, CACHE_POD, yaml.at);
}

static void gone(struct scene *s, const char *name)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(&yaml, "{metadata: {name: %s, namespace: default}}", name);
    scene_drop(s, CACHE_POD, yaml.at);
}

static json_t *usage_at(struct scene *s, int64_t at_s, enum kind kind, const char *name)
{
    (void)cache_cluster(s->p);
    tenants_usage_sum(s->tenants, at_s * SECOND_NS, cache_running_pods, s->p);
    return tenants_usage(s->tenants, kind, name);
}

static int64_t own_at(struct scene *s, int64_t at_s, enum kind kind, const char *name)
{
    CLEANUP(json) json_t *usage = usage_at(s, at_s, kind, name);
    assert_non_null(usage);
    return json_integer_value(json_object_get(usage, "own"));
}

static int64_t spent_at(struct scene *s, int64_t at_s, enum kind kind, const char *name, const char *resource)
{
    CLEANUP(json) json_t *usage = usage_at(s, at_s, kind, name);
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(usage, "totals"), i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "resource")), resource) == 0)
            return json_integer_value(json_object_get(one, "spent"));
    }
    return 0; /* an unspent total is not shown */
}

static const struct {
    enum kind kind;
    const char *name;
} all[] = {
    {KIND_GROUP, "team"},
    {KIND_USER,  "ann" },
    {KIND_USER,  "bob" },
    {KIND_QUEUE, "q"   },
};

static void two_users(struct scene *s)
{
    tenant(s, KIND_GROUP, "team", "{}");
    tenant(s, KIND_USER, "ann", "{group: team}");
    tenant(s, KIND_USER, "bob", "{group: team}");
    tenant(s, KIND_QUEUE, "q", "{policy: fair-share}");
}

/* Starts the next leader with the statuses as of this second. */
static void follow(struct story *from, int64_t at_s, struct story *to)
{
    for (size_t i = 0; i < ROWS(all); i++) {
        CLEANUP(json) json_t *usage = usage_at(&from->s, at_s, all[i].kind, all[i].name);
        tenants_usage_restore(to->s.tenants, all[i].kind, all[i].name, usage);
    }
}

/* ---- fair shares ------------------------------------------------------------------------------------------------ */

/* A user who used much is placed later, though first in the queue; also after a change of leader. Plans are made at
 * second 1000. */
static void past_usage_lowers_rank(void **state)
{
    CLEANUP(story) struct story y = {0}, z = {0};
    (void)state;
    story_begin(&y);
    two_users(&y.s);
    pod(&y.s, "old", "berth.dev/user: ann", 100, "n1", 100, "cpu: 4");
    pod(&y.s, "rest", "", 100, "n2", 100, "cpu: 4");
    pod(&y.s, "a", "berth.dev/user: ann", 200, "", 0, "cpu: 4");
    pod(&y.s, "b", "berth.dev/user: bob", 300, "", 0, "cpu: 4");
    assert_string_equal(scene_says(&y.s), "?a ?b");
    y.now_s = 900;
    gone(&y.s, "old");
    assert_string_equal(scene_says(&y.s), "?a b->n1");

    story_begin(&z);
    two_users(&z.s);
    pod(&z.s, "rest", "", 100, "n2", 100, "cpu: 4");
    pod(&z.s, "a", "berth.dev/user: ann", 200, "", 0, "cpu: 4");
    pod(&z.s, "b", "berth.dev/user: bob", 300, "", 0, "cpu: 4");
    assert_string_equal(scene_says(&z.s), "?b a->n1");
    follow(&y, 950, &z);
    assert_string_equal(scene_says(&z.s), "?a b->n1");
}

/* The usage shown does not depend on the leader, whatever still runs and whatever ended unseen. */
static void usage_is_independent_of_leader(void **state)
{
    static const struct {
        const char *label;
        bool still; /* the long pod still runs for the next leader */
        int64_t longer_s;
    } rows[] = {
        {"it runs on",                true,  2000},
        {"it ended while nobody led", false, 0   },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(story) struct story y = {0}, z = {0};
        story_begin(&y);
        two_users(&y.s);
        pod(&y.s, "over", "berth.dev/user: ann", 100, "n1", 100, "cpu: 1");
        pod(&y.s, "long", "berth.dev/user: ann", 100, "n1", 500, "cpu: 2");
        y.now_s = 1100;
        gone(&y.s, "over");
        int64_t told = own_at(&y.s, 2000, KIND_USER, "ann");
        /* 1 core for 1000 s and 2 cores for 1500 s, with a half-life of a week */
        assert_in_range(told, 3980000, 4000000);
        story_begin(&z);
        two_users(&z.s);
        if (rows[i].still)
            pod(&z.s, "long", "berth.dev/user: ann", 100, "n1", 500, "cpu: 2");
        follow(&y, 2000, &z);
        int64_t again = own_at(&z.s, 2000, KIND_USER, "ann");
        if (again < told - 2 || again > told + 2)
            fail_msg("%s: told %lld, then %lld", rows[i].label, (long long)told, (long long)again);
        z.now_s = 4000;
        if (rows[i].still)
            gone(&z.s, "long");
        int64_t later = own_at(&z.s, 4000, KIND_USER, "ann");
        assert_in_range(later, told + rows[i].longer_s * 2000 - 20000, told + rows[i].longer_s * 2000 + 2);
    }
}

/* Work that ends without a leader is in the status written last, and in no usage record of an earlier leader. */
static void work_ended_without_leader_counts(void **state)
{
    CLEANUP(story) struct story y = {.now_s = 2000};
    (void)state;
    story_begin(&y);
    two_users(&y.s);
    pod(&y.s, "long", "berth.dev/user: ann", 100, "n1", 500, "cpu: 2");
    int64_t told = own_at(&y.s, 2000, KIND_USER, "ann");
    assert_in_range(told, 2990000, 3000000);
    y.now_s = 0;
    gone(&y.s, "long");
    y.now_s = 2500;
    assert_in_range(own_at(&y.s, 2500, KIND_USER, "ann"), told - 10000, told);
}

/* Allows for the decay of some minutes at a half-life of a week. */
static void near(int64_t is, int64_t want)
{
    if (is > want || is < want - want / 1000)
        fail_msg("%lld is not %lld", (long long)is, (long long)want);
}

/* Usage counts from the binding, for the user, group or queue charged; only the leader records usage. */
static void usage_is_charged_to_account(void **state)
{
    static const struct {
        const char *labels;
        bool leads;
        int64_t ann, team, q, all_q; /* thousandths of core-seconds */
    } rows[] = {
        {"berth.dev/user: ann",   true,  100000, 0,      0, 100000},
        {"berth.dev/user: ann",   false, 0,      0,      0, 0     },
        {"",                      true,  0,      100000, 0, 100000},
        {"berth.dev/user: nobod", true,  0,      0,      0, 100000},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(story) struct story y = {0};
        story_begin(&y);
        two_users(&y.s);
        tenant(&y.s, KIND_GROUP, "team", "{namespaces: [default]}");
        pod(&y.s, "x", rows[i].labels, 100, "", 0, "cpu: 1");
        (void)cache_cluster(y.s.p);
        assert_true(cache_assume_pod(y.s.p, "default:x", "n1", 0, NULL, 0) != 0);
        pod(&y.s, "x", rows[i].labels, 100, "n1", 800, "cpu: 1");
        y.now_s = rows[i].leads ? 900 : 0;
        gone(&y.s, "x");
        CLEANUP(json) json_t *q = usage_at(&y.s, 900, KIND_QUEUE, "q");
        near(own_at(&y.s, 900, KIND_USER, "ann"), rows[i].ann);
        near(own_at(&y.s, 900, KIND_GROUP, "team"), rows[i].team);
        near(own_at(&y.s, 900, KIND_QUEUE, "q"), rows[i].q);
        near(json_integer_value(json_object_get(q, "all")), rows[i].all_q);
    }
}

/* A pod bound by us counts while it runs, and a GPU of any vendor costs ten cores. */
static void running_work_counts(void **state)
{
    CLEANUP(story) struct story y = {0};
    (void)state;
    story_begin(&y);
    two_users(&y.s);
    pod(&y.s, "x", "berth.dev/user: ann", 100, "", 0, "cpu: 4");
    pod(&y.s, "rest", "", 100, "n2", 100, "cpu: 4");
    (void)cache_cluster(y.s.p);
    assert_true(cache_assume_pod(y.s.p, "default:x", "n1", 0, NULL, 0) != 0);
    pod(&y.s, "x", "berth.dev/user: ann", 100, "n1", 800, "cpu: 4");
    pod(&y.s, "more", "", 100, "", 0, "cpu: 1");
    scene_put(&y.s, CACHE_NODE,
              "{metadata: {name: n3}, status: {allocatable: {cpu: 1, memory: 8Gi, pods: 10, nvidia.com/gpu: 1}}}");
    gone(&y.s, "more");
    pod(&y.s, "a", "berth.dev/user: ann", 200, "", 0, "cpu: 1");
    pod(&y.s, "b", "berth.dev/user: bob", 300, "", 0, "cpu: 1");
    assert_string_equal(scene_says(&y.s), "?a b->n3");
    pod(&y.s, "gpu", "berth.dev/user: bob", 700, "n3", 700, "nvidia.com/gpu: 1");
    assert_in_range(own_at(&y.s, 800, KIND_USER, "bob"), 999000, 1000000);
}

/* Resources requested with amount 0 do not count against the limit of resources. */
static void zero_amounts_take_no_slots(void **state)
{
    CLEANUP(story) struct story y = {0};
    CLEANUP(str) struct str asks = {0};
    (void)state;
    story_begin(&y);
    two_users(&y.s);
    for (int i = 0; i < 40; i++)
        str_addf(&asks, "a.x/%02d: 0, ", i);
    str_add(&asks, "nvidia.com/gpu: 1");
    pod(&y.s, "x", "berth.dev/user: ann", 100, "n1", 800, str_text(&asks));
    near(own_at(&y.s, 900, KIND_USER, "ann"), 1000000);
    y.now_s = 900;
    gone(&y.s, "x");
    near(own_at(&y.s, 900, KIND_USER, "ann"), 1000000);
}

/* Past usage is removed with its user. */
static void usage_is_removed_with_user(void **state)
{
    CLEANUP(story) struct story y = {.now_s = 900};
    (void)state;
    story_begin(&y);
    two_users(&y.s);
    pod(&y.s, "x", "berth.dev/user: ann", 100, "n1", 100, "cpu: 4");
    gone(&y.s, "x");
    assert_true(own_at(&y.s, 900, KIND_USER, "ann") > 0);
    tenants_drop(y.s.tenants, KIND_USER, "ann");
    (void)cache_cluster(y.s.p);
    tenant(&y.s, KIND_USER, "ann", "{group: team}");
    assert_int_equal(own_at(&y.s, 900, KIND_USER, "ann"), 0);
    pod(&y.s, "rest", "", 100, "n2", 100, "cpu: 4");
    pod(&y.s, "a", "berth.dev/user: ann", 200, "", 0, "cpu: 4");
    pod(&y.s, "b", "berth.dev/user: bob", 300, "", 0, "cpu: 4");
    assert_string_equal(scene_says(&y.s), "?b a->n1");
}

/* ---- totals ----------------------------------------------------------------------------------------------------- */

/* The spent part of a total stays spent until its period is over, for users, groups and queues. */
static void spent_totals_persist(void **state)
{
    static const struct {
        const char *user, *group, *queue; /* specs with quotas */
        enum kind kind;
        const char *name, *resource;
        int64_t spent, later; /* at 7200 s; at 90000 s */
        const char *says;
    } rows[] = {
        {"totals: [{resource: cpu, hours: 2}]",             "",                                    "",                                    KIND_USER,  "ann",  "cpu",            2 * HOUR * 1000, 2 * HOUR * 1000,
         "?next"                                                                                                                                                                                                         },
        {"totals: [{resource: cpu, hours: 2, period: 1d}]", "",                                    "",                                    KIND_USER,  "ann",  "cpu",            2 * HOUR * 1000, 0,
         "?next"                                                                                                                                                                                                         },
        {"totals: [{resource: cpu, hours: 4}]",             "",                                    "",                                    KIND_USER,  "ann",  "cpu",            2 * HOUR * 1000, 2 * HOUR * 1000,
         "next->n1"                                                                                                                                                                                                      },
        {"totals: [{resource: gpu, hours: 1}]",             "",                                    "",                                    KIND_USER,  "ann",  "nvidia.com/gpu", HOUR,            HOUR,            "?next"},
        {"",                                                "totals: [{resource: cpu, hours: 2}]", "",                                    KIND_GROUP, "team", "cpu",            2 * HOUR * 1000, 2 * HOUR * 1000,
         "?next"                                                                                                                                                                                                         },
        {"",                                                "",                                    "totals: [{resource: cpu, hours: 2}]", KIND_QUEUE, "q",    "cpu",            2 * HOUR * 1000, 2 * HOUR * 1000,
         "?next"                                                                                                                                                                                                         },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(story) struct story y = {.now_s = HOUR}, z = {.now_s = HOUR};
        struct story *both[] = {&y, &z};
        for (size_t k = 0; k < 2; k++) {
            CLEANUP(str) struct str user = {0}, group = {0}, queue = {0};
            str_addf(&user, "{group: team, quota: {%s}}", rows[i].user);
            str_addf(&group, "{quota: {%s}}", rows[i].group);
            str_addf(&queue, "{quota: {%s}}", rows[i].queue);
            story_begin(both[k]);
            tenant(&both[k]->s, KIND_GROUP, "team", group.at);
            tenant(&both[k]->s, KIND_USER, "bob", "{}");
            tenant(&both[k]->s, KIND_USER, "ann", user.at);
            tenant(&both[k]->s, KIND_QUEUE, "q", queue.at);
            scene_put(
                &both[k]->s, CACHE_NODE,
                "{metadata: {name: n1}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10, nvidia.com/gpu: 4}}}");
        }
        pod(&y.s, "x", "berth.dev/user: ann", 0, "n1", 1, "cpu: 2, nvidia.com/gpu: 1");
        y.now_s = HOUR + 1;
        gone(&y.s, "x");
        assert_int_equal(spent_at(&y.s, 2 * HOUR, rows[i].kind, rows[i].name, rows[i].resource), rows[i].spent);
        follow(&y, 2 * HOUR, &z);
        assert_int_equal(spent_at(&z.s, 2 * HOUR, rows[i].kind, rows[i].name, rows[i].resource), rows[i].spent);
        assert_int_equal(spent_at(&z.s, 25 * HOUR, rows[i].kind, rows[i].name, rows[i].resource), rows[i].later);
        for (size_t k = 0; k < 2; k++) {
            pod(&both[k]->s, "next", "berth.dev/user: ann", 200, "", 0, "cpu: 1, nvidia.com/gpu: 1");
            if (strcmp(scene_says(&both[k]->s), rows[i].says) != 0)
                fail_msg("row %zu, %zu: %s", i, k, str_text(&both[k]->s.text));
        }
    }
}

/* The status of an object that is not accepted yet is kept, and none is written for it meanwhile. */
static void usage_waits_until_in_force(void **state)
{
    CLEANUP(story) struct story y = {.now_s = 900};
    CLEANUP(json) json_t *spec = kit_parse("{group: later}");
    CLEANUP(json) json_t *said = kit_parse("{at: '1970-01-01T00:10:00Z', own: 5000, all: 5000, totals: []}");
    (void)state;
    story_begin(&y);
    assert_true(tenants_put(y.s.tenants, KIND_USER, "ann", spec, NULL) < 0);
    tenants_usage_restore(y.s.tenants, KIND_USER, "ann", said);
    assert_null(usage_at(&y.s, 600, KIND_USER, "ann"));
    tenant(&y.s, KIND_GROUP, "later", "{}");
    assert_int_equal(own_at(&y.s, 600, KIND_USER, "ann"), 5000);
}

/* ---- jobs, and the journal -------------------------------------------------------------------------------------- */

static int64_t room_clock(void *ctx)
{
    return ((const struct room *)ctx)->now_ns;
}

static void task(struct room *r, unsigned ordinal)
{
    CLEANUP(str) struct str yaml = {0};
    str_addf(
        &yaml,
        "{metadata: {name: w-%u, namespace: default, uid: t%u, creationTimestamp: 1700000000, labels: {berth.dev/job: train, "
        "berth.dev/role: w, berth.dev/index: \"%u\", berth.dev/attempt: \"1\"}, ownerReferences: [{kind: Job, apiVersion: "
        "berth.dev/v1, uid: job-1, controller: true}]}, spec: {schedulerName: berth, nodeName: n1, " CPU("1") "}}",
        ordinal, ordinal, ordinal);
    scene_put(&r->s, CACHE_POD, yaml.at);
}

/* Tasks are charged to the queue of their job, before its role is known and after it is gone; the resulting usage is in
 * the journal. */
static void job_tasks_are_charged_and_replayed(void **state)
{
    struct room *r = *state;
    CLEANUP(json) json_t *said = kit_parse("{at: '2023-11-14T22:14:00Z', own: 90000, all: 90000, totals: []}");
    struct room_difference found = {0};
    int64_t now_s = r->now_ns / SECOND_NS;
    tenants_record_usage(r->s.tenants, room_clock, r);
    scene_node(&r->s, "n1", "a", "");
    room_queue(r, "gpu", "{policy: fair-share}");
    task(r, 0);
    task(r, 1);
    tenants_usage_restore(r->s.tenants, KIND_QUEUE, "gpu", said); /* it includes 40 s of both */
    (void)room_plan(r);
    assert_in_range(own_at(&r->s, now_s + 40, KIND_QUEUE, "gpu"), 89990, 90000);
    room_role(r, "w", CPU("1"));
    (void)room_plan(r);
    r->now_ns += 100 * SECOND_NS;
    gone(&r->s, "w-0");
    (void)room_plan(r);
    room_settle(r); /* a base begins here */
    r->tasks = 0;   /* its job was deleted */
    cache_role_drop(r->s.p, "default:train:w");
    r->now_ns += 100 * SECOND_NS;
    gone(&r->s, "w-1");
    (void)room_plan(r);
    /* 10 from before, and both runs: 102 and 203 seconds */
    assert_in_range(own_at(&r->s, r->now_ns / SECOND_NS, KIND_QUEUE, "gpu"), 10000 + 300000, 10000 + 310000);
    scene_pod(&r->s, "p", "berth.dev/queue: gpu", "", CPU("1"));
    assert_true(room_plan(r) > 0);
    struct kube_replay_result result = room_replay(r, &found);
    room_same(&result, &found, 0);
    assert_int_equal(result.bases, 2);
    assert_int_equal(result.skipped + result.gaps, 0);
    tenants_record_usage(r->s.tenants, NULL, NULL);
}

/* The order of two users depends on past usage only: a replay without it would differ. */
static void replay_includes_past_usage(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    static const char *const users[] = {"ann", "bob"};
    tenants_record_usage(r->s.tenants, room_clock, r);
    room_queue(r, "q", "{policy: fair-share}");
    for (unsigned round = 0; round < 6; round++) {
        char name[16], labels[64];
        scene_node(&r->s, "n1", "a", "");
        for (unsigned u = 0; u < 2 && round == 0; u++)
            tenant(&r->s, KIND_USER, users[u], "{}");
        for (unsigned u = 0; u < 2; u++) {
            (void)snprintf(name, sizeof name, "%s%u", users[u], round);
            (void)snprintf(labels, sizeof labels, "berth.dev/user: %s", users[u]);
            pod(&r->s, name, labels, r->now_ns / SECOND_NS + u, "", 0, "cpu: 4");
        }
        assert_int_equal(room_plan(r), 1);
        for (unsigned u = 0; u < 2; u++) {
            struct cache_pod_view seen;
            char id[32];
            (void)snprintf(name, sizeof name, "%s%u", users[u], round);
            (void)snprintf(id, sizeof id, "default:%s", name);
            (void)snprintf(labels, sizeof labels, "berth.dev/user: %s", users[u]);
            assert_true(cache_pod_find(r->s.p, id, &seen));
            /* they alternate: the user that ran is later the next time */
            assert_int_equal(seen.instance != 0, u == round % 2);
            if (seen.instance)
                pod(&r->s, name, labels, r->now_ns / SECOND_NS, "n1", r->now_ns / SECOND_NS, "cpu: 4");
        }
        r->now_ns += (100 + 10 * round) * SECOND_NS;
        for (unsigned u = 0; u < 2; u++) {
            (void)snprintf(name, sizeof name, "%s%u", users[u], round);
            gone(&r->s, name);
        }
        if (round == 2)
            room_settle(r);
    }
    struct kube_replay_result result = room_replay(r, &found);
    room_same(&result, &found, 0);
    assert_int_equal(result.bases, 2);
    tenants_record_usage(r->s.tenants, NULL, NULL);
}

/* A pod that waited long has used nothing before it was bound; with a base before and one after. */
static void usage_starts_at_binding(void **state)
{
    struct room *r = *state;
    struct room_difference found = {0};
    int64_t now_s = r->now_ns / SECOND_NS;
    struct cache_pod_view seen;
    tenant(&r->s, KIND_USER, "ann", "{}");
    tenant(&r->s, KIND_USER, "bob", "{}");
    room_queue(r, "q", "{policy: fair-share}");
    scene_node(&r->s, "n1", "a", "");
    pod(&r->s, "bobs", "berth.dev/user: bob", now_s - 50, "n1", now_s - 50, "cpu: 2");
    pod(&r->s, "anns", "berth.dev/user: ann", now_s - 1000, "", 0, "cpu: 2");
    assert_int_equal(room_plan(r), 1);
    pod(&r->s, "anns", "berth.dev/user: ann", now_s - 1000, "n1", now_s - 5, "cpu: 2");
    for (unsigned i = 0; i < 2; i++) {
        pod(&r->s, i ? "a1" : "a0", "berth.dev/user: ann", now_s + i, "", 0, "cpu: 3");
        pod(&r->s, i ? "b1" : "b0", "berth.dev/user: bob", now_s - 1 + i, "", 0, "cpu: 3");
        scene_node(&r->s, i ? "n3" : "n2", "a", "");
        assert_int_equal(room_plan(r), 1);
        assert_true(cache_pod_find(r->s.p, i ? "default:a1" : "default:a0", &seen) && seen.instance);
        room_settle(r);
    }
    struct kube_replay_result result = room_replay(r, &found);
    room_same(&result, &found, 0);
    assert_int_equal(result.bases, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(past_usage_lowers_rank),
        cmocka_unit_test(usage_is_independent_of_leader),
        cmocka_unit_test(work_ended_without_leader_counts),
        cmocka_unit_test(usage_is_charged_to_account),
        cmocka_unit_test(running_work_counts),
        cmocka_unit_test(zero_amounts_take_no_slots),
        cmocka_unit_test(usage_is_removed_with_user),
        cmocka_unit_test(spent_totals_persist),
        cmocka_unit_test(usage_waits_until_in_force),
        cmocka_unit_test_setup_teardown(job_tasks_are_charged_and_replayed, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(replay_includes_past_usage, room_setup, room_teardown),
        cmocka_unit_test_setup_teardown(usage_starts_at_binding, room_setup, room_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
