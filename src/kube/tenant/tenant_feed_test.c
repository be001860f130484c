/* tenant_feed_test.c - which status is written when many are due, against a fake API server. */
#include "kube/tenant/tenant_feed.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/client/server_kit_test.h"

enum { USERS = 150 }; /* more than are written at a time */

struct stage {
    struct fake f; /* first member: handlers get its address */
    struct tenants *tenants;
    struct cache *cache;
    struct tenant_feed *feed;
    unsigned written[USERS], writes;
};

static void users_tell(struct http_request *x)
{
    CLEANUP(str) struct str bytes = {0};
    http_stream(x, 200, NULL, "application/json", NULL, NULL);
    for (unsigned i = 0; i < USERS; i++)
        str_addf(&bytes,
                 "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"u%u\",\"uid\":\"uid-%u\",\"generation\":1,"
                 "\"resourceVersion\":\"%u\"},\"spec\":{}}}\n",
                 i, i, i + 1);
    str_addf(&bytes,
             "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%u\","
             "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
             USERS);
    assert_true(http_stream_send(x, bytes.at, bytes.len));
}

/* Serves users and no other kind of ours; rejects every write, so that it remains due. */
static void play(void *ctx, struct http_request *x)
{
    struct stage *s = ctx;
    unsigned user;
    if (sscanf(http_path(x), "/apis/berth.dev/v1/users/u%u/status", &user) == 1 && user < USERS) {
        s->written[user]++;
        s->writes++;
        fake_answer(x, 404, "{}");
    } else if (http_query(x, "watch")) {
        users_tell(x);
    } else if (strcmp(http_path(x), "/apis/berth.dev/v1/users") == 0) {
        fake_answer(x, 200, "{\"items\":[]}");
    } else {
        fake_answer(x, 404, "{}");
    }
}

static bool leads(void *ctx)
{
    (void)ctx;
    return true;
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static void trouble(void *ctx, const char *text)
{
    (void)ctx;
    fail_msg("%s", text);
}

static void stage_start(struct stage *s)
{
    static const char *const names[] = {"berth"};
    fake_start(&s->f, (struct http_config){.handle = play});
    s->tenants = tenants_new(nothing, s);
    s->cache = cache_new(&(struct cache_config){.tenants = s->tenants, .schedulers = names, .schedulers_len = 1});
    s->feed = tenant_feed_new(&(struct tenant_feed_config){.api = s->f.api,
                                                           .loop = s->f.kit.loop,
                                                           .tenants = s->tenants,
                                                           .cache = s->cache,
                                                           .leads = leads,
                                                           .synced = nothing,
                                                           .trouble = trouble,
                                                           .ctx = s,
                                                           .write_ns = KIT_MS});
}

static void stage_cleanup(struct stage *s)
{
    tenant_feed_free(s->feed);
    cache_free(s->cache);
    tenants_free(s->tenants);
    fake_cleanup(&s->f);
}

/* Objects at the front that always need a write do not starve the others. */
static void status_writes_are_fair(void **state)
{
    CLEANUP(stage) struct stage s = {0};
    unsigned least = UINT32_MAX, most = 0;
    (void)state;
    stage_start(&s);
    KIT_UNTIL(&s.f.kit, s.writes >= 4 * USERS);
    for (size_t i = 0; i < USERS; i++) {
        least = s.written[i] < least ? s.written[i] : least;
        most = s.written[i] > most ? s.written[i] : most;
    }
    assert_true(least >= 2);
    assert_true(most <= least + 3); /* equal but for the writes in progress */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(status_writes_are_fair)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
