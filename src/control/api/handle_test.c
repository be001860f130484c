/* handle_test.c - rate limits of callers, and the order in which their requests run. */
#include "control/api/kit_test.h"

#include "control/control_parts.h"

#define ALICE "user:alice"
#define BOB "user:bob"

static int open_kit(void **state)
{
    struct kit *k = mem_zalloc(sizeof *k);
    kit_open(k);
    CALL(k, 201, ADMIN, "POST", "/v1/users", "{id: alice, role: user}");
    CALL(k, 201, ADMIN, "POST", "/v1/users", "{id: bob, role: user}");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 4, memory: 8Gi}}");
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

/* Returns the number of the first of `count` requests that is refused; 0: none. */
static int first_refused(struct kit *k, const char *who, const char *url, int count)
{
    for (int i = 1; i <= count; i++)
        if (kit_call(k, who, "GET", url, NULL) == 429)
            return i;
    return 0;
}

static void requests_of_a_user_are_limited_by_default(void **state)
{
    struct kit *k = *state;
    assert_int_equal(first_refused(k, ALICE, "/v1/whoami", 3000), 2001); /* the bucket holds ten seconds' worth */
    SAYS(k, "200 a second");
    assert_int_equal(first_refused(k, BOB, "/v1/whoami", 100), 0); /* users do not share a bucket */
    k->steady_ns += 1000000000;
    assert_int_equal(first_refused(k, ALICE, "/v1/whoami", 300), 201);
    assert_int_equal(first_refused(k, ADMIN, "/v1/whoami", 3000), 0);
    assert_int_equal(first_refused(k, "node:n1", "/v1/nodes/n1/config", 3000), 0);
    assert_int_equal(first_refused(k, "", "/v1/whoami", 3000), 501); /* unauthenticated requests of one address */
    assert_int_equal(first_refused(k, "", "/readyz", 3000), 0);      /* health probes are exempt */
    assert_int_equal(first_refused(k, "", "/healthz", 3000), 0);
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{requests_per_s: 0}");
    assert_int_equal(first_refused(k, ALICE, "/v1/whoami", 3000), 0);
}

/* ---- fair queue ------------------------------------------------------------------------------------------------- */

/* A running request; `place` is its position in the order of answers. */
struct sent_request {
    struct bench *bench;
    int status, place;
};

struct bench {
    struct kit *k;
    int places;
};

static void sent_request_answered(void *ctx, struct answer *answer)
{
    struct sent_request *a = ctx;
    a->status = answer->status;
    a->place = ++a->bench->places;
}

static const char *query_none(const void *from, const char *name)
{
    (void)from;
    (void)name;
    return NULL;
}

static void send_request(struct bench *b, struct sent_request *a, const char *who, const char *path)
{
    struct request_input request = {
        .method = "GET", .path = path, .peer = who, .remote = "192.0.2.1", .body = "", .query = query_none};
    *a = (struct sent_request){.bench = b};
    control_handle(b->k->control, &request, sent_request_answered, a);
}

/* A clock that advances by a millisecond with each reading, so time passes only while requests run. */
static int64_t ticking(void *ctx)
{
    return ((struct kit *)ctx)->steady_ns += 1000000;
}

static int serves_wanted;

static void serve_soon(void *ctx)
{
    (void)ctx;
    serves_wanted++;
}

static void user_waits_for_at_most_one_request_of_another_user(void **state)
{
    enum { LISTS = 40 };
    struct kit *k = *state;
    struct bench b = {.k = k};
    struct sent_request lists[LISTS], alice;
    k->control->env.steady_ns = ticking;
    k->control->env.serve_soon = serve_soon;
    for (int i = 0; i < LISTS; i++)
        send_request(&b, &lists[i], BOB, "/v1/jobs");
    send_request(&b, &alice, ALICE, "/v1/whoami");
    int refused = 0, served_before = 0, serves = 0;
    for (; fair_queue_waiting(k->control->requests); serves++) {
        assert_true(serves_wanted > serves); /* each slice requests the next one */
        control_serve(k->control);
    }
    assert_true(serves > 1);
    for (int i = 0; i < LISTS; i++) {
        refused += lists[i].status == 429;
        served_before += lists[i].status == 200 && lists[i].place < alice.place;
    }
    assert_int_equal(alice.status, 200);
    /* 16 at a time, plus requests that took the place of finished ones */
    assert_in_range(refused, LISTS - 24, LISTS - 16);
    assert_true(served_before <= 5);
    k->control->env.steady_ns = kit_steady;
}

/* A large list is made in steps, and other accounts have their turns in between. */
static void a_large_list_is_made_in_steps(void **state)
{
    enum { JOBS = 8, VALUE_BYTES = 3900, VALUES = 25 };
    struct kit *k = *state;
    struct bench b = {.k = k};
    struct sent_request list, alice;
    CLEANUP(str) struct str body = {0};
    str_add(&body, "{hold: true, env: {");
    for (int i = 0; i < VALUES; i++) {
        str_addf(&body, "%sV%d: ", i ? ", " : "", i);
        for (int j = 0; j < VALUE_BYTES; j++)
            str_add_char(&body, 'x');
    }
    str_add(&body, "}}");
    for (int i = 0; i < JOBS; i++)
        CALL(k, 201, BOB, "POST", "/v1/jobs", body.at);
    serves_wanted = 0;
    k->control->env.serve_soon = serve_soon;
    send_request(&b, &list, BOB, "/v1/jobs");
    assert_int_equal(list.status, 0); /* only its first step has run */
    send_request(&b, &alice, ALICE, "/v1/whoami");
    while (fair_queue_waiting(k->control->requests))
        control_serve(k->control);
    assert_int_equal(list.status, 200);
    assert_int_equal(alice.status, 200);
    assert_true(alice.place < list.place);
    k->control->env.serve_soon = NULL;
    CALL(k, 200, BOB, "GET", "/v1/jobs", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), JOBS);
}

static void waiting_requests_are_answered_on_shutdown(void **state)
{
    enum { LISTS = 12 };
    struct kit *k = *state;
    struct bench b = {.k = k};
    struct sent_request lists[LISTS];
    k->control->env.steady_ns = ticking;
    k->control->env.serve_soon = serve_soon;
    for (int i = 0; i < LISTS; i++)
        send_request(&b, &lists[i], BOB, "/v1/jobs");
    assert_true(fair_queue_waiting(k->control->requests) > 0);
    control_quiesce(k->control);
    assert_int_equal(b.places, LISTS);
    assert_int_equal(lists[LISTS - 1].status, 503);
    assert_int_equal(fair_queue_accounts(k->control->requests), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_of_a_user_are_limited_by_default),
        TEST(user_waits_for_at_most_one_request_of_another_user),
        TEST(a_large_list_is_made_in_steps),
        TEST(waiting_requests_are_answered_on_shutdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
