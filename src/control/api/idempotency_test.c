#include "control/api/idempotency.h"

#include <errno.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "control/api/permit_kit_test.h"
#include "wire/text/document.h"

enum { SECOND = 1000000000 };
static const int64_t day_ns = (int64_t)REPLY_AGE_S_MAX * SECOND, start_ns = (int64_t)1000000 * SECOND;

/* One request: its route, its content, and the answer of its verb. */
struct ask {
    struct request_input input;
    struct route route;
    struct request call;
    const char *force; /* query parameter */
};

static const char *ask_query(const void *from, const char *name)
{
    return strcmp(name, "force") == 0 ? ((const struct ask *)from)->force : NULL;
}

static void ask_begin(struct ask *a, struct world *w, const char *user, const char *key, const char *body,
                      int64_t now_ns)
{
    *a = (struct ask){
        .input = {.method = "POST",
                  .path = "/v1/jobs",
                  .idempotency_key = key,
                  .body = body,
                  .body_len = body ? strlen(body) : 0},
        .route = {.method = "POST", .path = "/v1/jobs", .query = "limit,force,as"},
    };
    a->input.query = ask_query;
    a->input.query_from = a;
    a->call = (struct request){
        .state = w->state,
        .input = &a->input,
        .route = &a->route,
        .caller = {.user = user, .group = "", .node = "", .role = "user", .token = ""},
        .now_ns = now_ns
    };
    arena_init(&a->call.arena);
    change_init(&a->call.change, w->state, &a->call.arena);
}

static void ask_end(struct ask *a)
{
    json_decref(a->call.answer.body);
    change_done(&a->call.change);
    arena_done(&a->call.arena);
}

/* Applies every item of the change to the state, as handle.c and the store do. */
static void change_apply_to_state(struct world *w, const struct change *c)
{
    for (size_t i = 0; i < c->items.len; i++) {
        const struct change_item *item = &c->items.at[i];
        const struct object *o = state_find(w->state, item->kind, item->id);
        assert_int_equal(item->revision, o ? o->revision : 0); /* the guard of the item holds */
        if (!item->write)
            continue;
        if (!item->doc) {
            if (o)
                world_drop(w, item->kind, item->id);
            continue;
        }
        char *text = json_dumps(item->doc, JSON_COMPACT);
        world_put(w, item->kind, item->id, text);
        free(text);
    }
}

static void users_put(struct world *w)
{
    world_put(w, KIND_USER, "ann", "{\"v\":1,\"id\":\"ann\",\"role\":\"user\"}");
    world_put(w, KIND_USER, "bob", "{\"v\":1,\"id\":\"bob\",\"role\":\"user\"}");
    world_put(w, KIND_NODE, "ann", "{\"v\":1,\"id\":\"ann\"}");
}

static void answered(struct world *w, const char *user, const char *key, const char *body, int64_t now_ns)
{
    struct ask a;
    struct reply reply;
    ask_begin(&a, w, user, key, body, now_ns);
    assert_int_equal(reply_find(&a.call, &reply), 0);
    a.call.answer.status = 201;
    a.call.answer.body = json_pack("{s:s}", "id", "17");
    reply_put(&a.call);
    change_apply_to_state(w, &a.call.change);
    ask_end(&a);
}

static int found(struct world *w, const char *user, const char *key, const char *body, int64_t now_ns)
{
    struct ask a;
    struct reply reply = {0};
    ask_begin(&a, w, user, key, body, now_ns);
    int rc = reply_find(&a.call, &reply);
    assert_int_equal(rc < 0 ? -a.call.err.code : rc, rc);
    if (rc == 1) {
        assert_int_equal(reply.status, 201);
        assert_string_equal(json_string_value(json_object_get(reply.body, "id")), "17");
        assert_true(reply.revision > 0 && reply.revision <= w->revision);
    }
    json_decref(reply.body);
    ask_end(&a);
    return rc;
}

static void repeated_key_returns_first_answer(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    users_put(&w);
    answered(&w, "ann", "k 1", "{}", start_ns);
    assert_int_equal(found(&w, "ann", "k 1", "{}", start_ns + 1), 1);
    assert_int_equal(found(&w, "ann", "k 1", "{}", start_ns + day_ns - 1), 1);
    assert_int_equal(found(&w, "ann", "k 1", "{} ", start_ns + 1), -EEXIST);
    assert_int_equal(found(&w, "ann", "k 1", NULL, start_ns + 1), -EEXIST);
    assert_int_equal(found(&w, "ann", "k 2", "{}", start_ns + 1), 0);
    assert_int_equal(found(&w, "bob", "k 1", "{}", start_ns + 1), 0); /* each caller has its own keys */
    assert_int_equal(found(&w, "ann", NULL, "{}", start_ns + 1), 0);
    assert_int_equal(found(&w, "ann", "k 1", "{}", start_ns + day_ns), 0); /* expired after a day */
    answered(&w, "ann", "k 1", "{\"x\":1}", start_ns + day_ns);
    assert_int_equal(found(&w, "ann", "k 1", "{\"x\":1}", start_ns + day_ns), 1);
    world_done(&w);
}

static void same_key_with_different_request_is_rejected(void **state)
{
    (void)state;
    struct world w;
    struct ask a;
    struct reply reply = {0};
    world_open(&w);
    users_put(&w);
    answered(&w, "ann", "k", "{}", start_ns);
    ask_begin(&a, &w, "ann", "k", "{}", start_ns);
    a.input.path = "/v1/apps";
    assert_int_equal(reply_find(&a.call, &reply), -EEXIST);
    a.input.path = "/v1/jobs";
    a.input.method = "PUT";
    assert_int_equal(reply_find(&a.call, &reply), -EEXIST);
    a.input.method = "POST";
    a.force = "true";
    assert_int_equal(reply_find(&a.call, &reply), -EEXIST);
    a.route.query = NULL; /* a parameter that the route does not accept is ignored */
    assert_int_equal(reply_find(&a.call, &reply), 1);
    json_decref(reply.body);
    /* Different lists of parts have different hashes. */
    a.input.path = "/v1/jobs{}";
    a.input.body_len = 0;
    assert_int_equal(reply_find(&a.call, &reply), -EEXIST);
    ask_end(&a);
    world_done(&w);
}

static void invalid_keys_are_rejected(void **state)
{
    (void)state;
    struct world w;
    char longest[REPLY_KEY_MAX + 2];
    world_open(&w);
    users_put(&w);
    memset(longest, '~', sizeof longest);
    longest[REPLY_KEY_MAX + 1] = '\0';
    assert_int_equal(found(&w, "ann", longest, "", start_ns), -EINVAL);
    longest[REPLY_KEY_MAX] = '\0';
    answered(&w, "ann", longest, "", start_ns);
    assert_int_equal(found(&w, "ann", longest, "", start_ns), 1);
    assert_int_equal(found(&w, "ann", "", "", start_ns), -EINVAL);
    assert_int_equal(found(&w, "ann", "a\tb", "", start_ns), -EINVAL);
    assert_int_equal(found(&w, "ann", "a\x7f", "", start_ns), -EINVAL);
    assert_int_equal(found(&w, "ann", "\xc3\xa4", "", start_ns), -EINVAL);
    assert_int_equal(found(&w, "ann", "../../x", "", start_ns), 0); /* the id contains only the hash of the key */
    answered(&w, "ann", "../../x", "", start_ns);
    world_done(&w);
}

static void keys_are_separate_for_agents_and_recreated_users(void **state)
{
    (void)state;
    struct world w;
    struct ask a;
    struct reply reply;
    world_open(&w);
    users_put(&w);
    answered(&w, "ann", "k", "", start_ns);
    ask_begin(&a, &w, "", "k", "", start_ns); /* the node ann is not the user ann */
    a.call.caller.node = "ann";
    assert_int_equal(reply_find(&a.call, &reply), 0);
    reply_put(&a.call);
    change_apply_to_state(&w, &a.call.change);
    assert_int_equal(reply_find(&a.call, &reply), 1);
    assert_int_equal(reply.status, 200);
    assert_null(reply.body);
    ask_end(&a);

    world_drop(&w, KIND_USER, "ann");
    world_put(&w, KIND_USER, "ann", "{\"v\":1,\"id\":\"ann\",\"role\":\"user\"}");
    assert_int_equal(found(&w, "ann", "k", "", start_ns), 0); /* a new user of the same name */
    world_done(&w);
}

static void secrets_are_not_kept(void **state)
{
    (void)state;
    struct world w;
    struct ask a;
    world_open(&w);
    users_put(&w);
    ask_begin(&a, &w, "ann", "k", "", start_ns);
    a.call.answer.body = json_pack("{s:s}", "token", "berth_x_y");
    reply_put(&a.call);
    assert_true(change_empty(&a.call.change));
    ask_end(&a);
    world_done(&w);
}

static size_t sweep(struct world *w, int64_t now_ns)
{
    struct arena arena;
    struct change change;
    arena_init(&arena);
    change_init(&change, w->state, &arena);
    size_t n = reply_expire(&change, now_ns);
    assert_int_equal(n == 0, change_empty(&change));
    change_apply_to_state(w, &change);
    change_done(&change);
    arena_done(&arena);
    return n;
}

static size_t kept(const struct world *w)
{
    size_t len;
    (void)state_list(w->state, KIND_REPLY, &len);
    return len;
}

static void expired_replies_are_deleted(void **state)
{
    (void)state;
    struct world w;
    char key[32];
    enum { MANY = 2 * REPLY_SWEEP_MAX + 400 };
    world_open(&w);
    users_put(&w);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        answered(&w, i % 2 ? "ann" : "bob", key, "", i < MANY / 2 ? start_ns : start_ns + day_ns / 2);
    }
    assert_int_equal(sweep(&w, start_ns + day_ns - 1), 0);
    assert_int_equal(sweep(&w, start_ns + day_ns), REPLY_SWEEP_MAX); /* one sweep is bounded */
    assert_int_equal(sweep(&w, start_ns + day_ns), MANY / 2 - REPLY_SWEEP_MAX);
    assert_int_equal(sweep(&w, start_ns + day_ns), 0);
    assert_int_equal(kept(&w), MANY - MANY / 2);
    world_drop(&w, KIND_USER, "bob");
    assert_int_equal(sweep(&w, start_ns + day_ns), REPLY_SWEEP_MAX / 2); /* half of the oldest replies belong to bob */
    while (sweep(&w, start_ns + day_ns))
        ;
    for (int i = MANY / 2; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        assert_int_equal(found(&w, i % 2 ? "ann" : "bob", key, "", start_ns + day_ns), i % 2);
    }
    assert_in_range(kept(&w), MANY / 4, MANY / 2 - REPLY_SWEEP_MAX / 2);
    world_done(&w);
}

static void replies_per_user_are_bounded(void **state)
{
    (void)state;
    struct world w;
    char key[32];
    enum { MANY = REPLY_USER_MAX + 2000 };
    world_open(&w);
    users_put(&w);
    answered(&w, "bob", "mine", "", start_ns);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        answered(&w, "ann", key, "", start_ns);
        assert_true(kept(&w) <= REPLY_USER_MAX + 1 + 300);
    }
    assert_true(kept(&w) >= REPLY_USER_MAX);
    bool left = true; /* the oldest replies are deleted, and no others */
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        bool here = found(&w, "ann", key, "", start_ns) == 1;
        assert_true(here || left);
        left = left && !here;
        assert_true(here || i < MANY - REPLY_USER_MAX + 300);
    }
    assert_int_equal(found(&w, "bob", "mine", "", start_ns), 1);

    struct arena arena;
    struct change change;
    arena_init(&arena);
    change_init(&change, w.state, &arena);
    size_t before = kept(&w);
    assert_int_equal(reply_delete_user(&change, "ann", 10), 10);
    assert_int_equal(reply_delete_user(&change, "bob", 10), 1);
    change_apply_to_state(&w, &change);
    change_done(&change);
    arena_done(&arena);
    assert_int_equal(kept(&w), before - 11);
    assert_int_equal(found(&w, "bob", "mine", "", start_ns), 0);
    world_done(&w);
}

/* With too many replies, new keys are rejected and known keys are still answered. */
static void new_keys_are_rejected_above_bound(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    users_put(&w);
    answered(&w, "ann", "first", "", start_ns);
    for (int i = 1; i < 2 * REPLY_USER_MAX; i++) {
        char id[64];
        (void)snprintf(id, sizeof id, "ann/x%d", i);
        world_put(&w, KIND_REPLY, id, "{\"v\":1}");
    }
    assert_int_equal(found(&w, "ann", "one more", "", start_ns), -EDQUOT);
    assert_int_equal(found(&w, "ann", "first", "", start_ns), 1);
    assert_int_equal(found(&w, "bob", "one more", "", start_ns), 0);
    world_done(&w);
}

static int start(void **state)
{
    (void)state;
    return sodium_init() < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_key_returns_first_answer),
        cmocka_unit_test(same_key_with_different_request_is_rejected),
        cmocka_unit_test(invalid_keys_are_rejected),
        cmocka_unit_test(keys_are_separate_for_agents_and_recreated_users),
        cmocka_unit_test(secrets_are_not_kept),
        cmocka_unit_test(expired_replies_are_deleted),
        cmocka_unit_test(replies_per_user_are_bounded),
        cmocka_unit_test(new_keys_are_rejected_above_bound),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
