/* lease_test.c - a fake server that keeps one Lease with versions, and two instances that compete for it. */
#include "kube/client/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "kube/client/server_kit_test.h"

#define PATH "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

struct keeper {
    struct fake f; /* first member: handlers get its address */
    json_t *lease;
    unsigned version, writes;
    bool deaf;                  /* never answers */
    unsigned hangs;             /* leaves this many further requests unanswered and without effect */
    bool nowhere;               /* the namespace does not exist */
    bool forgetful;             /* executes the next write and loses its answer */
    bool late;                  /* executes writes and keeps each answer for late_answer() */
    struct http_request *waits; /* its answer is kept */
    int64_t came_ns;            /* when that request came */
    json_t *written;            /* the last document written */
};

static void keeper_cleanup(struct keeper *k)
{
    fake_cleanup(&k->f);
    json_decref(k->lease);
    json_decref(k->written);
}

static void answer(struct http_request *x, int status, const json_t *doc)
{
    char *text = doc ? json_dumps(doc, JSON_COMPACT) : mem_strdup("{}");
    fake_answer(x, status, text);
    mem_free(text);
}

static const char *version_of(const json_t *doc)
{
    const char *text = json_string_value(json_object_get(json_object_get(doc, "metadata"), "resourceVersion"));
    return text ? text : "";
}

static int64_t clock_ns(void)
{
    struct timespec at;
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &at), 0);
    return (int64_t)at.tv_sec * 1000 * KIT_MS + at.tv_nsec;
}

static void handle(void *ctx, struct http_request *x)
{
    struct keeper *k = ctx;
    char version[24];
    size_t len;
    const char *body = http_body(x, &len);
    bool posts = strcmp(http_method(x), "POST") == 0;
    assert_string_equal(http_path(x), posts ? PATH : PATH "/berth");
    if (k->deaf)
        return;
    if (k->hangs > 0) {
        k->hangs--;
        return;
    }
    if (posts && k->nowhere) {
        k->writes++;
        fake_answer(x, 404, "{\"kind\":\"Status\",\"message\":\"no such namespace\"}");
        return;
    }
    if (strcmp(http_method(x), "GET") == 0) {
        answer(x, k->lease ? 200 : 404, k->lease);
        return;
    }
    json_t *doc = json_loadb(body, len, 0, NULL);
    assert_non_null(doc);
    bool fits = posts ? !k->lease : k->lease && strcmp(version_of(doc), version_of(k->lease)) == 0;
    if (!fits) {
        fake_answer(x, 409, posts ? "{\"reason\":\"AlreadyExists\"}" : "{\"reason\":\"Conflict\"}");
        json_decref(doc);
        return;
    }
    k->writes++;
    json_object_set_new(json_object_get(doc, "metadata"), "resourceVersion",
                        json_string(str_u64(++k->version, version)));
    json_decref(k->lease);
    k->lease = doc;
    if (k->late) {
        k->waits = x;
        k->came_ns = clock_ns();
    } else if (k->forgetful)
        fake_answer(x, 500, "{}");
    else
        answer(x, 200, doc);
    k->forgetful = false;
}

struct runner {
    struct keeper *k;
    struct kube_lease *lease;
    unsigned began, ended, released, troubles;
};

static void began(void *ctx)
{
    struct runner *r = ctx;
    r->began++;
}

static void ended(void *ctx)
{
    struct runner *r = ctx;
    assert_false(kube_lease_leads(r->lease));
    r->ended++;
}

static void troubled(void *ctx, const char *text)
{
    (void)text;
    ((struct runner *)ctx)->troubles++;
}

static void released(void *ctx)
{
    ((struct runner *)ctx)->released++;
}

static int64_t noon(void *ctx)
{
    (void)ctx;
    return INT64_C(1800000000250000000);
}

/* Starts an instance with these times. */
static void runner_start_with(struct runner *r, struct keeper *k, const char *identity, int64_t duration_s,
                              int64_t deadline_ns)
{
    r->k = k;
    const struct kube_lease_config config = {.api = k->f.api,
                                             .loop = k->f.kit.loop,
                                             .namespace = "kube-system",
                                             .name = "berth",
                                             .identity = identity,
                                             .duration_s = duration_s,
                                             .deadline_ns = deadline_ns,
                                             .retry_ns = 50 * KIT_MS,
                                             .wall_ns = noon,
                                             .began = began,
                                             .ended = ended,
                                             .trouble = troubled,
                                             .ctx = r};
    r->lease = kube_lease_new(&config);
}

static void runner_start(struct runner *r, struct keeper *k, const char *identity)
{
    runner_start_with(r, k, identity, 1, 700 * KIT_MS);
}

static void runner_cleanup(struct runner *r)
{
    kube_lease_free(r->lease);
}

static json_t *spec_of(const struct keeper *k)
{
    return json_object_get(k->lease, "spec");
}

/* ---- cases that are sensitive to delays of the machine ---------------------------------------------------------- */

enum { TRIES = 20 };
#define GAP_NS_MAX (300 * KIT_MS) /* less than half of the time that a leader has until it gives up */

/* The longest time between two rounds of the loop. */
struct pace {
    int64_t last_ns, gap_ns;
};

static void pace_round(struct pace *p, struct kit *k)
{
    kit_round(k);
    int64_t now_ns = clock_ns();
    if (p->last_ns && now_ns - p->last_ns > p->gap_ns)
        p->gap_ns = now_ns - p->last_ns;
    p->last_ns = now_ns;
}

/* False: the machine stalled for so long that a lease may have run out; what follows proves nothing. */
#define PACED_UNTIL(p, k, condition)                                                                                   \
    ({                                                                                                                 \
        do                                                                                                             \
            pace_round(p, k);                                                                                          \
        while (!(condition));                                                                                          \
        (p)->gap_ns <= GAP_NS_MAX;                                                                                     \
    })

static void in_pace(bool (*scene)(void))
{
    for (int i = 0; i < TRIES; i++)
        if (scene())
            return;
    fail_msg("the machine stood still in each of %d tries", TRIES);
}

static bool one_leads_scene(void)
{
    CLEANUP(keeper) struct keeper k = {0};
    struct pace p = {0};
    fake_start(&k.f, (struct http_config){.handle = handle});
    CLEANUP(runner) struct runner a = {0};
    CLEANUP(runner) struct runner b = {0};
    runner_start(&a, &k, "a");
    if (!PACED_UNTIL(&p, &k.f.kit, a.began == 1))
        return false;
    assert_true(kube_lease_leads(a.lease));
    assert_string_equal(json_string_value(json_object_get(spec_of(&k), "holderIdentity")), "a");
    assert_string_equal(json_string_value(json_object_get(spec_of(&k), "renewTime")), "2027-01-15T08:00:00.250000Z");
    assert_int_equal(json_integer_value(json_object_get(spec_of(&k), "leaseDurationSeconds")), 1);
    runner_start(&b, &k, "b");
    unsigned before = k.writes;
    if (!PACED_UNTIL(&p, &k.f.kit, k.writes >= before + 40)) /* two seconds, twice the lease duration */
        return false;
    assert_int_equal(b.began, 0);
    assert_string_equal(kube_lease_holder(b.lease), "a");
    assert_int_equal(a.began, 1);
    assert_int_equal(a.ended, 0);

    /* a stops cleanly: b leads after its next read. */
    kube_lease_release(a.lease, released, &a);
    assert_false(kube_lease_leads(a.lease));
    assert_int_equal(a.ended, 1);
    if (!PACED_UNTIL(&p, &k.f.kit, a.released == 1 && b.began == 1))
        return false;
    assert_int_equal(json_integer_value(json_object_get(spec_of(&k), "leaseTransitions")), 1);
    int rounds = 0;
    if (!PACED_UNTIL(&p, &k.f.kit, ++rounds == 50))
        return false;
    assert_false(kube_lease_leads(a.lease));
    assert_true(kube_lease_leads(b.lease));
    return true;
}

static void only_one_leads(void **state)
{
    (void)state;
    in_pace(one_leads_scene);
}

/* The leader dies: another follows, never while the first could still think that it leads. */
static void follower_takes_over_dead_lease(void **state)
{
    CLEANUP(keeper) struct keeper k = {0};
    (void)state;
    fake_start(&k.f, (struct http_config){.handle = handle});
    struct runner a = {0};
    CLEANUP(runner) struct runner b = {0};
    runner_start(&a, &k, "a");
    KIT_UNTIL(&k.f.kit, a.began == 1);
    runner_start(&b, &k, "b");
    KIT_UNTIL(&k.f.kit, kube_lease_holder(b.lease)[0] == 'a');
    kube_lease_free(a.lease);
    KIT_UNTIL(&k.f.kit, b.began == 1);
    assert_string_equal(json_string_value(json_object_get(spec_of(&k), "holderIdentity")), "b");
    assert_int_equal(json_integer_value(json_object_get(spec_of(&k), "leaseTransitions")), 1);
}

/* The server does not answer: the leader stops by its own clock, and leads again when the server answers. */
static void unanswered_renewals_end_the_lead(void **state)
{
    CLEANUP(keeper) struct keeper k = {0};
    (void)state;
    fake_start(&k.f, (struct http_config){.handle = handle});
    CLEANUP(runner) struct runner a = {0};
    runner_start(&a, &k, "a");
    KIT_UNTIL(&k.f.kit, a.began == 1);
    k.deaf = true;
    KIT_UNTIL(&k.f.kit, a.ended == 1);
    k.deaf = false;
    KIT_UNTIL(&k.f.kit, a.began == 2);
    assert_true(kube_lease_leads(a.lease));
}

/* Another holder has overwritten the lease: the next read ends the lead. */
static void overwritten_lease_ends_the_lead(void **state)
{
    CLEANUP(keeper) struct keeper k = {0};
    (void)state;
    fake_start(&k.f, (struct http_config){.handle = handle});
    CLEANUP(runner) struct runner a = {0};
    runner_start(&a, &k, "a");
    KIT_UNTIL(&k.f.kit, a.began == 1);
    json_object_set_new(spec_of(&k), "holderIdentity", json_string("x"));
    json_object_set_new(json_object_get(k.lease, "metadata"), "resourceVersion", json_string("999"));
    KIT_UNTIL(&k.f.kit, kube_lease_holder(a.lease)[0] == 'x');
    assert_int_equal(a.ended, 1);      /* at the latest by its own clock, if this machine stalled */
    KIT_UNTIL(&k.f.kit, a.began == 2); /* x does not renew */
}

/* A renewal was executed but its answer lost: the next one conflicts with our own write, and the lead continues. */
static bool a_lost_answer_scene(void)
{
    CLEANUP(keeper) struct keeper k = {.forgetful = true};
    struct pace p = {0};
    fake_start(&k.f, (struct http_config){.handle = handle});
    CLEANUP(runner) struct runner a = {0};
    runner_start(&a, &k, "a");
    if (!PACED_UNTIL(&p, &k.f.kit, a.began == 1))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        unsigned before = k.writes;
        k.forgetful = true;
        if (!PACED_UNTIL(&p, &k.f.kit, k.writes >= before + 3))
            return false;
        assert_int_equal(a.ended, 0);
        assert_true(kube_lease_leads(a.lease));
    }
    return true;
}

static void lost_answer_keeps_the_lead(void **state)
{
    (void)state;
    in_pace(a_lost_answer_scene);
}

/* Answers the kept write this long after it came. False: the machine stalled meanwhile. */
static bool late_answer(struct keeper *k, struct pace *p, int64_t late_ns)
{
    if (!PACED_UNTIL(p, &k->f.kit, k->waits != NULL) || !PACED_UNTIL(p, &k->f.kit, clock_ns() - k->came_ns >= late_ns))
        return false;
    struct http_request *x = k->waits;
    k->waits = NULL;
    answer(x, 200, k->lease);
    return true;
}

/* Each answer takes 1.2 s of a deadline of 3 s: the lead has no gap. It counts from when a renewal was sent: when no
 * more answers come, the lead ends 3 s after the last answered renewal reached the server. */
static bool late_answers_count_scene(void)
{
    CLEANUP(keeper) struct keeper k = {.late = true};
    struct pace p = {0};
    fake_start(&k.f, (struct http_config){.handle = handle});
    CLEANUP(runner) struct runner a = {0};
    runner_start_with(&a, &k, "a", 4, INT64_C(3000) * KIT_MS);
    for (int i = 0; i < 3; i++)
        if (!late_answer(&k, &p, 1200 * KIT_MS))
            return false;
    int64_t sent_ns = k.came_ns;
    if (!PACED_UNTIL(&p, &k.f.kit, k.waits != NULL))
        return false;
    assert_int_equal(a.began, 1);
    assert_int_equal(a.ended, 0);
    assert_int_equal(a.troubles, 0);
    assert_true(kube_lease_leads(a.lease));
    bool paced = PACED_UNTIL(&p, &k.f.kit, clock_ns() - sent_ns >= INT64_C(3000) * KIT_MS);
    assert_false(kube_lease_leads(a.lease));
    assert_int_equal(a.ended, 1);
    return paced;
}

static void late_answers_keep_the_lead(void **state)
{
    (void)state;
    in_pace(late_answers_count_scene);
}

/* One renewal hangs: the leader sends another in time. A second one that hangs ends the lead. */
static bool a_request_hangs_scene(void)
{
    CLEANUP(keeper) struct keeper k = {0};
    struct pace p = {0};
    fake_start(&k.f, (struct http_config){.handle = handle});
    CLEANUP(runner) struct runner a = {0};
    runner_start_with(&a, &k, "a", 4, INT64_C(3000) * KIT_MS);
    if (!PACED_UNTIL(&p, &k.f.kit, a.began == 1))
        return false;
    unsigned writes = k.writes;
    k.hangs = 1;
    if (!PACED_UNTIL(&p, &k.f.kit, k.hangs == 0 && k.writes > writes))
        return false;
    assert_int_equal(a.ended, 0);
    assert_true(kube_lease_leads(a.lease));
    k.hangs = 2;
    bool paced = PACED_UNTIL(&p, &k.f.kit, a.ended == 1);
    assert_int_equal(a.began, 1);
    return paced;
}

static void one_hanging_request_keeps_the_lead(void **state)
{
    (void)state;
    in_pace(a_request_hangs_scene);
}

static void follower_release_returns_at_once(void **state)
{
    CLEANUP(keeper) struct keeper k = {.deaf = true};
    (void)state;
    fake_start(&k.f, (struct http_config){.handle = handle});
    CLEANUP(runner) struct runner a = {0};
    runner_start(&a, &k, "a");
    kube_lease_release(a.lease, released, &a);
    KIT_UNTIL(&k.f.kit, a.released == 1);
    assert_int_equal(a.ended, 0);
}

/* A missing namespace is reported and retried; after it is created, the instance leads. */
static void missing_namespace_is_retried(void **state)
{
    CLEANUP(keeper) struct keeper k = {.nowhere = true};
    (void)state;
    fake_start(&k.f, (struct http_config){.handle = handle});
    CLEANUP(runner) struct runner a = {0};
    runner_start(&a, &k, "a");
    KIT_UNTIL(&k.f.kit, a.troubles == 3);
    assert_int_equal(k.writes, 3);
    k.nowhere = false;
    KIT_UNTIL(&k.f.kit, a.began == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_one_leads),
        cmocka_unit_test(follower_takes_over_dead_lease),
        cmocka_unit_test(unanswered_renewals_end_the_lead),
        cmocka_unit_test(overwritten_lease_ends_the_lead),
        cmocka_unit_test(lost_answer_keeps_the_lead),
        cmocka_unit_test(follower_release_returns_at_once),
        cmocka_unit_test(missing_namespace_is_retried),
        cmocka_unit_test(late_answers_keep_the_lead),
        cmocka_unit_test(one_hanging_request_keeps_the_lead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
