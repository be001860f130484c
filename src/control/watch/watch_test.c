#include "control/watch/watch.h"

#include <stdlib.h>

#include "control/watch/watch_kit_test.h"

#include "control/control_parts.h"

static int setup(void **state)
{
    struct kit *k = mem_zalloc(sizeof *k);
    const struct control_options options = {0};

    kit_open(k, &options);
    *state = k;
    return 0;
}

static int teardown(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static void changes_come_in_order(void **state)
{
    struct kit *k = *state;
    struct reader_end e;
    uint64_t start = store_revision(k->store);

    (void)kit_job(k, 1, "admin", "", "");
    kit_watch(k, k->admin, "/v1/jobs", start, &e);
    assert_string_equal(e.type, "application/x-ndjson");
    end_expect(&e, "put", "id", "1"); /* a change before the watch */
    (void)kit_job(k, 2, "admin", "", ",\"name\":\"x\"");
    (void)kit_put(k, "settings/other", "{\"v\":1}"); /* a change of another kind */
    (void)kit_put(k, "jobs/1", NULL);
    CLEANUP(json) json_t *line = end_next(&e);
    CLEANUP(json)
    json_t *want = json_pack("{s:s, s:I, s:{s:i, s:s, s:s, s:s, s:b, s:i, s:s, s:I}}", "type", "put", "revision",
                             (json_int_t)start + 2, "object", "v", 1, "id", "2", "owner", "admin", "group", "", "hold",
                             1, "generation", 1, "name", "x", "revision", (json_int_t)start + 2);
    assert_true(json_equal(line, want));
    CLEANUP(json) json_t *gone = end_next(&e);
    CLEANUP(json)
    json_t *want_gone = json_pack("{s:s, s:I, s:s}", "type", "gone", "revision", (json_int_t)start + 4, "id", "1");
    assert_true(json_equal(gone, want_gone));
    end_expect_nothing(&e);
    end_done(&e);
    assert_int_equal(watch_hub_len(control_hub(k->control)), 0);
}

static void watch_streams_server_sent_events(void **state)
{
    struct kit *k = *state;
    struct reader_end e;
    char from[24], want[128];
    uint64_t start = store_revision(k->store);

    kit_get(k, k->admin, "/v1/jobs", str_u64(start, from), "text/html, text/event-stream", &e);
    assert_string_equal(e.type, "text/event-stream");
    end_start(&e);
    (void)kit_job(k, 1, "admin", "", "");
    (void)snprintf(want, sizeof want, "id: %llu\ndata: {\"type\":\"put\",\"revision\":%llu,",
                   (unsigned long long)start + 1, (unsigned long long)start + 1);
    assert_int_equal(strncmp(e.text.at, want, strlen(want)), 0);
    assert_string_equal(e.text.at + e.text.len - 2, "\n\n");
    str_clear(&e.text);
    watch_hub_tick(control_hub(k->control), k->now_ns, k->steady_ns + INT64_C(15) * 1000000000);
    assert_string_equal(e.text.at, ":\n\n");
    str_clear(&e.text);
    watch_hub_stop(control_hub(k->control));
    assert_string_equal(e.text.at, "data: {\"type\":\"end\",\"code\":\"stopping\"}\n\n");
    assert_true(e.ended);
    end_done(&e);
}

static void unwatchable_revisions_end_the_watch(void **state)
{
    struct kit *k = *state;
    struct reader_end e;
    struct berth_err err;
    char text[24];

    for (unsigned i = 1; i < 10; i++)
        (void)kit_job(k, i, "admin", "", "");
    assert_int_equal(store_compact(k->store, store_revision(k->store) - 3, &err), 0);
    kit_get(k, k->admin, "/v1/jobs", str_u64(store_revision(k->store) - 4, text), NULL, &e);
    assert_int_equal(e.status, 410);
    end_done(&e);
    kit_get(k, k->admin, "/v1/jobs", str_u64(store_revision(k->store) + 1, text), NULL, &e);
    assert_int_equal(e.status, 400);
    end_done(&e);
    kit_get(k, k->admin, "/v1/jobs", "-1", NULL, &e);
    assert_int_equal(e.status, 400);
    end_done(&e);
    kit_get(k, k->admin, "/v1/jobs", str_u64(store_revision(k->store) - 3, text), NULL, &e);
    assert_int_equal(e.status, 200);
    end_done(&e); /* a stream that is never started must be stopped */
    assert_int_equal(watch_hub_len(control_hub(k->control)), 0);
}

static void number_of_watches_is_bounded(void **state)
{
    (void)state;
    struct kit k;
    struct reader_end a, b, c;
    const struct control_options options = {.watchers_max = 2};

    kit_open(&k, &options);
    kit_watch(&k, k.admin, "/v1/jobs", 1, &a);
    kit_watch(&k, k.admin, "/v1/nodes", 1, &b);
    kit_get(&k, k.admin, "/v1/jobs", "1", NULL, &c);
    assert_int_equal(c.status, 429);
    end_done(&c);
    end_done(&b);
    kit_watch(&k, k.admin, "/v1/jobs", 1, &c);
    end_done(&a);
    end_done(&c);
    kit_done(&k);
}

/* ---- visibility ------------------------------------------------------------------------------------------------- */

static void watch_shows_own_objects_only(void **state)
{
    struct kit *k = *state;
    char alice[TOKEN_TEXT_MAX], carol[TOKEN_TEXT_MAX];
    struct reader_end own, group, all;

    kit_user(k, "alice", "lab", "user", BERTH_NEVER_NS, alice, NULL);
    kit_user(k, "carol", "lab", "viewer", BERTH_NEVER_NS, carol, NULL);
    uint64_t start = store_revision(k->store);
    kit_watch(k, alice, "/v1/jobs", start, &own);
    kit_watch(k, carol, "/v1/jobs", start, &group);
    kit_watch(k, k->admin, "/v1/jobs", start, &all);
    (void)kit_job(k, 1, "alice", "lab", "");
    (void)kit_job(k, 2, "bob", "lab", "");
    (void)kit_job(k, 3, "eve", "other", "");
    (void)kit_put(k, "jobs/1", NULL);
    (void)kit_put(k, "jobs/2", NULL);
    (void)kit_put(k, "jobs/3", NULL);
    end_expect(&own, "put", "id", "1");
    end_expect(&own, "gone", "id", "1");
    end_expect_nothing(&own);
    end_expect(&group, "put", "id", "1");
    end_expect(&group, "put", "id", "2");
    end_expect(&group, "gone", "id", "1");
    end_expect(&group, "gone", "id", "2");
    end_expect_nothing(&group);
    for (unsigned i = 0; i < 6; i++) {
        char id[2] = {(char)('1' + i % 3), 0};
        end_expect(&all, i < 3 ? "put" : "gone", "id", id);
    }
    end_done(&own);
    end_done(&group);
    end_done(&all);
}

/* The same from the store's history, by a daemon that started after the changes. */
static void history_shows_own_objects_only(void **state)
{
    struct kit *k = *state;
    const struct control_options options = {0};
    char alice[TOKEN_TEXT_MAX];
    struct reader_end own, all, late;

    kit_user(k, "alice", "lab", "viewer", BERTH_NEVER_NS, alice, NULL);
    (void)kit_job(k, 7, "alice", "lab", "");
    (void)kit_job(k, 8, "eve", "other", "");
    uint64_t start = store_revision(k->store);
    (void)kit_job(k, 1, "alice", "lab", "");
    (void)kit_job(k, 2, "eve", "other", "");
    (void)kit_job(k, 1, "alice", "other", ""); /* leaves the group */
    (void)kit_put(k, "jobs/2", NULL);
    (void)kit_put(k, "jobs/7", NULL); /* created before the watch */
    (void)kit_put(k, "jobs/8", NULL);
    uint64_t end = kit_job(k, 9, "alice", "lab", "");
    control_free(k->control);
    kit_start(k, &options);

    kit_watch(k, alice, "/v1/jobs", start, &own);
    end_expect(&own, "put", "id", "1");
    end_expect(&own, "put", "id", "1"); /* still visible to its owner */
    end_expect(&own, "gone", "id", "7");
    end_expect(&own, "put", "id", "9");
    end_expect_nothing(&own);
    kit_watch(k, k->admin, "/v1/jobs", start, &all);
    static const char *const want[][2] = {
        {"put",  "1"},
        {"put",  "2"},
        {"put",  "1"},
        {"gone", "2"},
        {"gone", "7"},
        {"gone", "8"},
        {"put",  "9"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        end_expect(&all, want[i][0], "id", want[i][1]);
    end_expect_nothing(&all);
    kit_watch(k, alice, "/v1/jobs", end, &late);
    (void)kit_put(k, "jobs/9", NULL);
    end_expect(&late, "gone", "id", "9");
    end_expect(&own, "gone", "id", "9");
    end_done(&own);
    end_done(&all);
    end_done(&late);
}

static void object_that_leaves_group_is_gone_for_group(void **state)
{
    struct kit *k = *state;
    char carol[TOKEN_TEXT_MAX];
    struct reader_end live, past;

    kit_user(k, "carol", "lab", "viewer", BERTH_NEVER_NS, carol, NULL);
    (void)kit_job(k, 1, "bob", "lab", "");
    (void)kit_job(k, 2, "bob", "other", "");
    uint64_t start = store_revision(k->store);
    kit_watch(k, carol, "/v1/jobs", start, &live);
    (void)kit_job(k, 1, "bob", "other", "");
    (void)kit_job(k, 2, "bob", "lab", "");
    end_expect(&live, "gone", "id", "1");
    end_expect(&live, "put", "id", "2");
    end_expect_nothing(&live);
    const struct control_options options = {0};
    end_done(&live);
    control_free(k->control);
    kit_start(k, &options);
    kit_watch(k, carol, "/v1/jobs", start, &past);
    end_expect(&past, "gone", "id", "1");
    end_expect(&past, "put", "id", "2");
    end_expect_nothing(&past);
    end_done(&past);
}

static void instances_are_visible_with_their_workload(void **state)
{
    struct kit *k = *state;
    char alice[TOKEN_TEXT_MAX], eve[TOKEN_TEXT_MAX];
    struct reader_end own, other;

    kit_user(k, "alice", "", "user", BERTH_NEVER_NS, alice, NULL);
    kit_user(k, "eve", "", "user", BERTH_NEVER_NS, eve, NULL);
    (void)kit_put(k, "nodes/n1", "{\"v\":1,\"id\":\"n1\",\"allocatable\":{\"cpu\":4}}");
    (void)kit_job(k, 1, "alice", "", "");
    uint64_t start = store_revision(k->store);
    kit_watch(k, alice, "/v1/instances", start, &own);
    kit_watch(k, eve, "/v1/instances", start, &other);
    (void)kit_put(k, "instances/5",
                  "{\"v\":1,\"id\":5,\"workload\":\"1\",\"ordinal\":0,\"node\":\"n1\",\"state\":\"running\",\"of\":1}");
    (void)kit_put(k, "instances/5", NULL);
    end_expect(&own, "put", "id", "5");
    end_expect(&own, "gone", "id", "5");
    end_expect_nothing(&other);
    end_done(&own);
    end_done(&other);
}

static void secrets_are_not_streamed(void **state)
{
    struct kit *k = *state;
    char alice[TOKEN_TEXT_MAX], carol[TOKEN_TEXT_MAX];
    struct reader_end tokens, own, seen;

    kit_user(k, "alice", "lab", "user", BERTH_NEVER_NS, alice, NULL);
    kit_user(k, "carol", "lab", "viewer", BERTH_NEVER_NS, carol, NULL);
    kit_watch(k, k->admin, "/v1/tokens", 0, &tokens); /* from history */
    char again[TOKEN_TEXT_MAX];
    kit_user(k, "dave", "lab", "user", BERTH_NEVER_NS, again, NULL); /* and from the live stream */
    assert_non_null(strstr(tokens.text.at, "\"user\":\"dave\""));
    assert_non_null(strstr(tokens.text.at, "\"user\":\"alice\""));
    assert_null(strstr(tokens.text.at, "hash"));

    uint64_t start = store_revision(k->store);
    kit_watch(k, alice, "/v1/apps", start, &own);
    kit_watch(k, carol, "/v1/apps", start, &seen);
    (void)kit_put(
        k, "apps/web.alice",
        "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"group\":\"lab\",\"stopped\":true,"
        "\"generation\":1,\"install\":{\"key\":\"s3cret\"}}");
    assert_non_null(strstr(own.text.at, "s3cret"));
    assert_non_null(strstr(seen.text.at, "web.alice"));
    assert_null(strstr(seen.text.at, "s3cret"));
    end_done(&tokens);
    end_done(&own);
    end_done(&seen);
}

/* ---- changes of the caller -------------------------------------------------------------------------------------- */

static void streams_end_with_their_token(void **state)
{
    struct kit *k = *state;
    static const char disabled[] = "{\"v\":1,\"id\":\"alice\",\"group\":\"lab\",\"role\":\"user\",\"disabled\":true}";
    static const char promoted[] = "{\"v\":1,\"id\":\"alice\",\"group\":\"lab\",\"role\":\"viewer\"}";
    static const char moved[] = "{\"v\":1,\"id\":\"alice\",\"group\":\"other\",\"role\":\"user\"}";
    static const char same[] = "{\"v\":1,\"id\":\"alice\",\"group\":\"lab\",\"role\":\"user\",\"display\":\"A\"}";
    static const struct {
        const char *user, *code; /* user NULL: the token is deleted; code NULL: the stream continues */
    } rows[] = {
        {NULL,     "unauthenticated"},
        {disabled, "unauthenticated"},
        {promoted, "compacted"      },
        {moved,    "compacted"      },
        {same,     NULL             },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char alice[TOKEN_TEXT_MAX], token[96];
        struct reader_end e, other;
        kit_user(k, "alice", "lab", "user", BERTH_NEVER_NS, alice, token);
        kit_watch(k, alice, "/v1/jobs", store_revision(k->store), &e);
        kit_watch(k, k->admin, "/v1/jobs", store_revision(k->store), &other);
        (void)kit_put(k, rows[i].user ? "users/alice" : token, rows[i].user);
        if (rows[i].code)
            end_expect_end(&e, rows[i].code);
        else
            end_expect_nothing(&e);
        assert_false(other.ended);
        end_done(&e);
        end_done(&other);
    }
}

static void streams_end_when_the_token_expires(void **state)
{
    struct kit *k = *state;
    char alice[TOKEN_TEXT_MAX];
    struct reader_end e;

    kit_user(k, "alice", "", "user", k->now_ns + 1000, alice, NULL);
    kit_watch(k, alice, "/v1/jobs", store_revision(k->store), &e);
    watch_hub_tick(control_hub(k->control), k->now_ns + 999, k->steady_ns);
    assert_false(e.ended);
    watch_hub_tick(control_hub(k->control), k->now_ns + 1000, k->steady_ns);
    end_expect_end(&e, "unauthenticated");
    end_done(&e);
}

/* The stream ends while the answer is being sent. */
static void end_before_start_is_reported(void **state)
{
    struct kit *k = *state;
    struct reader_end e;

    kit_get(k, k->admin, "/v1/jobs", "1", NULL, &e);
    watch_hub_stop(control_hub(k->control));
    assert_int_equal(e.text.len, 0);
    end_start(&e);
    end_expect_end(&e, "stopping");
    end_done(&e);
    kit_get(k, k->admin, "/v1/jobs", "1", NULL, &e);
    assert_int_not_equal(e.status, 200);
    end_done(&e);
}

/* ---- slow readers ----------------------------------------------------------------------------------------------- */

static void stalled_reader_is_disconnected(void **state)
{
    struct kit *k = *state;
    struct reader_end e;

    kit_watch(k, k->admin, "/v1/jobs", store_revision(k->store), &e);
    e.refuses = true;
    (void)kit_job(k, 1, "admin", "", "");
    assert_true(e.ended);
    assert_int_equal(e.text.len, 0);
    end_done(&e);
    assert_int_equal(watch_hub_len(control_hub(k->control)), 0);
}

static void heartbeats(void **state)
{
    struct kit *k = *state;
    struct watch_hub *h = control_hub(k->control);
    struct reader_end e;
    const int64_t second = 1000000000;

    kit_watch(k, k->admin, "/v1/jobs", store_revision(k->store), &e);
    watch_hub_tick(h, k->now_ns, k->steady_ns + 14 * second);
    assert_int_equal(e.text.len, 0);
    k->steady_ns += 15 * second;
    watch_hub_tick(h, k->now_ns, k->steady_ns);
    assert_string_equal(e.text.at, "\n");
    watch_hub_tick(h, k->now_ns, k->steady_ns + 14 * second); /* not before 15 s have passed */
    assert_string_equal(e.text.at, "\n");
    e.refuses = true; /* the heartbeat detects a dead peer */
    watch_hub_tick(h, k->now_ns, k->steady_ns + 15 * second);
    assert_true(e.ended);
    end_done(&e);
}

/* A stream with many waiting bytes adds no lines, and misses no change afterwards. */
static void slow_reader_misses_no_change(void **state)
{
    struct kit *k = *state;
    struct reader_end e;
    const unsigned jobs = 20000; /* more than the ring can hold */
    char from[24], id[24];

    kit_get(k, k->admin, "/v1/jobs", str_u64(store_revision(k->store), from), NULL, &e);
    e.paced = true;
    end_start(&e);
    for (unsigned i = 1; i <= jobs; i += 50) {
        char keys[50][32], texts[50][128];
        const char *pairs[50][2];
        for (unsigned j = 0; j < 50; j++) {
            (void)snprintf(keys[j], sizeof keys[j], "jobs/%u", i + j);
            (void)snprintf(texts[j], sizeof texts[j], "{\"v\":1,\"id\":\"%u\",\"owner\":\"admin\",\"hold\":true}",
                           i + j);
            pairs[j][0] = keys[j];
            pairs[j][1] = texts[j];
        }
        (void)kit_txn(k, (const char *const(*)[2])pairs, 50);
        watch_hub_flush(control_hub(k->control));
    }
    assert_true(e.text.len < 400 * 1024);
    for (unsigned i = 1; i <= jobs;) {
        CLEANUP(json) json_t *line = end_next(&e);
        if (!line) {
            assert_false(e.ended);
            e.backlog = 0;
            stream_drained(e.stream);
            watch_hub_flush(control_hub(k->control)); /* other accounts have their turn after a step of history */
            assert_true(e.read < e.text.len);
            continue;
        }
        const json_t *found = json_object_get(json_object_get(line, "object"), "id");
        assert_string_equal(json_string_value(found), str_u64(i, id));
        i++;
    }
    end_expect_nothing(&e);
    end_done(&e);
}

static void reader_without_progress_is_disconnected(void **state)
{
    struct kit *k = *state;
    struct reader_end e;
    char from[24];

    kit_get(k, k->admin, "/v1/jobs", str_u64(store_revision(k->store), from), NULL, &e);
    e.paced = true;
    end_start(&e);
    e.backlog = 1 << 20;
    (void)kit_job(k, 1, "admin", "", "");
    assert_int_equal(e.text.len, 0);
    k->steady_ns += INT64_C(60) * 1000000000;
    watch_hub_tick(control_hub(k->control), k->now_ns, k->steady_ns);
    assert_false(e.ended);
    watch_hub_tick(control_hub(k->control), k->now_ns, k->steady_ns + 1);
    end_expect_end(&e, "slow");
    end_done(&e);
}

static void compacted_reader_gets_error(void **state)
{
    struct kit *k = *state;
    struct reader_end e;
    char from[24];

    kit_get(k, k->admin, "/v1/jobs", str_u64(store_revision(k->store), from), NULL, &e);
    e.paced = true;
    end_start(&e);
    e.backlog = 1 << 20;
    for (unsigned i = 1; i <= 17000; i++) { /* more than the ring can hold */
        char key[32], text[64];
        (void)snprintf(key, sizeof key, "jobs/%u", 1 + i % 7);
        (void)snprintf(text, sizeof text, "{\"v\":1,\"id\":\"%u\",\"hold\":true}", 1 + i % 7);
        (void)kit_txn(k, &(const char *const[2]){key, text}, 1);
    }
    watch_hub_flush(control_hub(k->control));
    assert_int_equal(store_compact(k->store, store_revision(k->store) - 10, NULL), 0);
    e.backlog = 0;
    stream_drained(e.stream);
    end_expect_end(&e, "compacted");
    end_done(&e);
}

/* ---- turns of reading history ----------------------------------------------------------------------------------- */

static void no_loop(void *ctx)
{
    (void)ctx;
}

static void turns_on(struct kit *k)
{
    k->control->env.serve_soon = no_loop;
}

/* Runs slices until no entry waits. */
static void turns_run(struct kit *k)
{
    while (fair_queue_waiting(k->control->requests))
        control_serve(k->control);
}

/* A clock that advances with each reading. */
static int64_t ticking(void *ctx)
{
    return ((struct kit *)ctx)->steady_ns += FAIR_QUANTUM_NS;
}

static void history_readers_do_not_delay_another_user(void **state)
{
    enum { JOBS = 3000, READERS = 40 };
    struct kit *k = *state;
    const struct control_options options = {0};
    char alice[TOKEN_TEXT_MAX], bob[TOKEN_TEXT_MAX], id[24];
    struct reader_end ends[READERS], asked;

    kit_user(k, "alice", "lab", "user", BERTH_NEVER_NS, alice, NULL);
    kit_user(k, "bob", "lab", "user", BERTH_NEVER_NS, bob, NULL);
    uint64_t start = store_revision(k->store);
    for (unsigned i = 1; i <= JOBS; i++)
        (void)kit_job(k, i, i == JOBS ? "bob" : "alice", "lab", "");
    control_free(k->control);
    kit_start(k, &options); /* starts with an empty ring: all changes are history */
    turns_on(k);
    for (unsigned i = 0; i < READERS; i++)
        kit_get(k, bob, "/v1/jobs", str_u64(start, id), NULL, &ends[i]);
    k->control->env.steady_ns = ticking;
    for (unsigned i = 0; i < READERS; i++)
        end_start(&ends[i]);
    assert_int_equal(fair_queue_waiting(k->control->requests), READERS);
    struct request_input r = {.method = "GET", .path = "/v1/whoami", .token = alice, .remote = "test", .body = ""};
    asked = (struct reader_end){0};
    control_handle(k->control, &r, end_answered, &asked);
    unsigned slices = 0;
    for (; !asked.status && slices < 10; slices++)
        control_serve(k->control);
    assert_int_equal(asked.status, 200);
    assert_in_range(slices, 0, 2);
    assert_int_equal(fair_queue_waiting(k->control->requests), READERS); /* no reader is finished */
    end_done(&ends[0]);                                                  /* disconnects while it waits */
    assert_int_equal(fair_queue_waiting(k->control->requests), READERS - 1);
    turns_run(k);
    for (unsigned i = 1; i < READERS; i++) {
        end_expect(&ends[i], "put", "id", str_u64(JOBS, id));
        end_expect_nothing(&ends[i]);
        end_done(&ends[i]);
    }
    end_done(&asked);
    k->control->env.steady_ns = kit_steady;
}

/* ---- random changes and readers --------------------------------------------------------------------------------- */

enum { ROUNDS = 600, READERS = 12, OWNERS = 3, JOBS = 40, CHANGES = 8 };

struct change_seen {
    uint64_t revision;
    unsigned id, owner; /* owner: present or last owner */
    bool gone;
};

static unsigned dice(unsigned *seed, unsigned sides)
{
    *seed = *seed * 1103515245 + 12345;
    return (*seed >> 16) % sides;
}

struct readers {
    struct kit *k;
    char tokens[OWNERS][TOKEN_TEXT_MAX];
    struct {
        struct reader_end end;
        unsigned who; /* owner of the token; OWNERS: the administrator */
        uint64_t from;
    } at[READERS];
    VEC(struct change_seen) change_seen;
    bool turns;              /* history is read in turns */
    unsigned owner_of[JOBS]; /* OWNERS: the job does not exist */
    unsigned seed;
};

/* Creates, changes and deletes some jobs in one transaction. */
static uint64_t jobs_change(struct readers *r)
{
    char keys[CHANGES][32], texts[CHANGES][128];
    const char *pairs[CHANGES][2];
    size_t len = 0, told_first = r->change_seen.len;
    unsigned begin = dice(&r->seed, JOBS - CHANGES), n = 1 + dice(&r->seed, CHANGES);
    for (unsigned j = begin; j < begin + n; j++, len++) {
        bool gone = r->owner_of[j] < OWNERS && dice(&r->seed, 3) == 0;
        unsigned owner = r->owner_of[j] < OWNERS ? r->owner_of[j] : dice(&r->seed, OWNERS);
        (void)snprintf(keys[len], sizeof keys[len], "jobs/%u", j + 1);
        (void)snprintf(texts[len], sizeof texts[len], "{\"v\":1,\"id\":\"%u\",\"owner\":\"u%u\",\"hold\":true}", j + 1,
                       owner);
        pairs[len][0] = keys[len];
        pairs[len][1] = gone ? NULL : texts[len];
        r->owner_of[j] = gone ? OWNERS : owner;
        struct change_seen t = {.id = j + 1, .owner = owner, .gone = gone};
        vec_push(&r->change_seen, t);
    }
    uint64_t revision = kit_txn(r->k, (const char *const(*)[2])pairs, len);
    for (size_t i = told_first; i < r->change_seen.len; i++)
        r->change_seen.at[i].revision = revision;
    return revision;
}

/* Restarts the daemon, which ends all streams. */
static void daemon_restart(struct readers *r)
{
    const struct control_options options = {0};
    for (unsigned i = 0; i < READERS; i++)
        if (!r->at[i].end.ended) {
            end_done(&r->at[i].end);
            r->at[i].end = (struct reader_end){.ended = true};
        }
    control_free(r->k->control);
    kit_start(r->k, &options);
    if (r->turns)
        turns_on(r->k);
}

/* Starts a reader at a random revision, pauses it, or lets it continue. */
static void reader_turn(struct readers *r, uint64_t first, uint64_t last)
{
    unsigned which = dice(&r->seed, READERS);
    struct reader_end *e = &r->at[which].end;
    if (dice(&r->seed, 2))
        turns_run(r->k);
    if (e->ended) {
        char from[24];
        turns_run(r->k);
        unsigned who = r->at[which].who = dice(&r->seed, OWNERS + 1);
        r->at[which].from = first + dice(&r->seed, (unsigned)(last - first) + 1);
        kit_get(r->k, who < OWNERS ? r->tokens[who] : r->k->admin, "/v1/jobs", str_u64(r->at[which].from, from), NULL,
                e);
        assert_int_equal(e->status, 200);
        e->paced = true;
        end_start(e);
    } else if (dice(&r->seed, 2)) {
        e->backlog = 1 << 20;
    } else {
        e->backlog = 0;
        stream_drained(e->stream);
    }
}

/* Checks that the reader got exactly the visible changes since its start, in order. */
static void check_reader(struct readers *r, unsigned which)
{
    struct reader_end *e = &r->at[which].end;
    unsigned who = r->at[which].who;
    e->paced = false;
    for (int turn = 0; turn < 50; turn++) {
        e->backlog = 0;
        stream_drained(e->stream);
        turns_run(r->k);
    }
    for (size_t i = 0; i < r->change_seen.len; i++) {
        const struct change_seen *t = &r->change_seen.at[i];
        char id[24];
        if (t->revision <= r->at[which].from || (who < OWNERS && who != t->owner))
            continue;
        CLEANUP(json) json_t *line = end_next(e);
        assert_non_null(line);
        assert_int_equal(json_integer_value(json_object_get(line, "revision")), t->revision);
        assert_string_equal(json_string_value(json_object_get(line, "type")), t->gone ? "gone" : "put");
        const json_t *object = t->gone ? line : json_object_get(line, "object");
        assert_string_equal(json_string_value(json_object_get(object, "id")), str_u64(t->id, id));
    }
    end_expect_nothing(e);
    end_done(e);
}

/* A reader that starts at any revision, with any permissions and at any speed, gets the changes that it may see, in
 * order, without gap or repeat. */
static void check_random_readers(struct kit *k, unsigned seed, bool turns)
{
    struct readers r = {.k = k, .seed = seed, .turns = turns};
    unsigned judged = 0;
    print_message("seed %u\n", r.seed);
    for (unsigned i = 0; i < OWNERS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "u%u", i);
        kit_user(r.k, name, "", "user", BERTH_NEVER_NS, r.tokens[i], NULL);
    }
    for (unsigned i = 0; i < JOBS; i++)
        r.owner_of[i] = OWNERS;
    for (unsigned i = 0; i < READERS; i++)
        r.at[i].end = (struct reader_end){.ended = true};
    if (turns)
        turns_on(k);
    uint64_t first = store_revision(r.k->store);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t last = jobs_change(&r);
        if (dice(&r.seed, 2))
            watch_hub_flush(control_hub(r.k->control));
        if (dice(&r.seed, 100) == 0)
            daemon_restart(&r);
        reader_turn(&r, first, last);
    }
    for (unsigned i = 0; i < READERS; i++)
        if (!r.at[i].end.ended) {
            check_reader(&r, i);
            judged++;
        }
    assert_true(judged > 0);
    vec_done(&r.change_seen);
}

static void random_readers_get_visible_changes(void **state)
{
    check_random_readers(*state, 20260301, false);
}

static void random_readers_get_visible_changes_with_fair_queue(void **state)
{
    check_random_readers(*state, 20260302, true);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(changes_come_in_order),
        CASE(watch_streams_server_sent_events),
        CASE(unwatchable_revisions_end_the_watch),
        CASE(number_of_watches_is_bounded),
        CASE(watch_shows_own_objects_only),
        CASE(history_shows_own_objects_only),
        CASE(object_that_leaves_group_is_gone_for_group),
        CASE(instances_are_visible_with_their_workload),
        CASE(secrets_are_not_streamed),
        CASE(streams_end_with_their_token),
        CASE(streams_end_when_the_token_expires),
        CASE(end_before_start_is_reported),
        CASE(stalled_reader_is_disconnected),
        CASE(heartbeats),
        CASE(slow_reader_misses_no_change),
        CASE(reader_without_progress_is_disconnected),
        CASE(compacted_reader_gets_error),
        CASE(history_readers_do_not_delay_another_user),
        CASE(random_readers_get_visible_changes),
        CASE(random_readers_get_visible_changes_with_fair_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
