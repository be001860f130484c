/* server_kit_test.h - a fake API server on the loop of the test, and a kube_api connected to it.
 *
 * Include <cmocka.h> and what it needs before this. Requests are queued in `asked` until the test answers them, in
 * order of arrival.
 */
#pragma once

#include "base/vec.h"
#include "kube/client/api.h"
#include "kube/client/proto.h"
#include "net/kit_test.h"

struct fake {
    struct kit kit; /* first member: handlers get its address */
    struct kube_config config;
    struct kube_api *api;
    VEC(struct http_request *) asked;
    size_t connections_max;
    int64_t again_ns;
    unsigned ended; /* number of streams that the client has closed */
};

static inline void fake_keep(void *ctx, struct http_request *x)
{
    struct fake *f = ctx;
    f->kit.handled++;
    vec_push(&f->asked, x);
}

static inline void fake_start(struct fake *f, struct http_config config)
{
    CLEANUP(str) struct str url = {0};
    struct berth_err err;
    f->kit.body_max = 1 << 20;
    config.handle = config.handle ? config.handle : fake_keep;
    kit_start(&f->kit, config);
    str_addf(&url, "http://127.0.0.1:%u", http_server_port(f->kit.server));
    f->config.server = str_take(&url);
    struct kube_api_config api = {
        .server = &f->config, .agent = "test/1", .connections_max = f->connections_max, .again_ns = f->again_ns};
    if (kube_api_new(f->kit.loop, &api, &f->api, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void fake_cleanup(struct fake *f)
{
    kube_api_free(f->api);
    kube_config_done(&f->config);
    kit_cleanup(&f->kit);
    vec_done(&f->asked);
}

/* Returns the next unanswered request. */
static inline struct http_request *fake_next(struct fake *f)
{
    KIT_UNTIL(&f->kit, f->asked.len > 0);
    struct http_request *x = f->asked.at[0];
    f->asked.len--;
    memmove(f->asked.at, f->asked.at + 1, f->asked.len * sizeof *f->asked.at);
    return x;
}

static inline void fake_answer(struct http_request *x, int status, const char *body)
{
    http_answer(x, status, NULL, "application/json", body, strlen(body));
}

static inline void fake_ended(void *ctx)
{
    ((struct fake *)ctx)->ended++;
}

static inline void fake_stream(struct fake *f, struct http_request *x)
{
    http_stream(x, 200, NULL, "application/json", fake_ended, f);
}
