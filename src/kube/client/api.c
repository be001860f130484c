/* api.c - a queue of requests by rank on top of net/client/async.h, with retries. */
#include "kube/client/api.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "kube/client/exec.h"
#include "kube/client/status.h"
#include "net/client/async.h"

enum { CONNECTIONS_MAX = 32, TRIES_MAX = 6, RETRY_AFTER_S_MAX = 30, STREAMS_KEPT = 16 };
#define PAUSE_NS INT64_C(50000000)
#define PAUSE_NS_MAX INT64_C(5000000000)
#define TOKEN_NS INT64_C(10000000000) /* maximum age of a token read from a file */
#define EARLY_NS INT64_C(60000000000) /* time before its credential expires that the exec plugin is run again */
#define AGAIN_NS INT64_C(5000000000)  /* minimum interval between runs of the exec plugin */
#define WAITS_FOR_PROGRAM (-2)        /* until the exec plugin has ended */

enum call_state { CALL_WAITS, CALL_UNDER_WAY, CALL_PAUSES };

struct kube_call {
    struct kube_api *api;
    struct kube_call *prev, *next; /* links in the queue of its rank, the requests in progress, or the pausing ones */
    struct call_list *list;
    enum call_state state;
    struct kube_request request; /* its texts are those below */
    struct str url, body;
    const char *body_type; /* a string constant */
    char *patch;
    char method[8];
    unsigned tries;
    bool renewed;  /* was retried with newer credentials */
    uint64_t era;  /* of the credentials it was sent with */
    bool got_data; /* of a stream: data was passed on */
    struct async_call *async;
    struct loop_source *timer; /* while it pauses */
};

struct call_list {
    struct kube_call *first, *last;
    size_t len;
};

/* State of the exec plugin. */
struct exec_plugin {
    struct worker *worker; /* NULL: no plugin */
    int stop_fd;           /* becomes readable to stop a run */
    bool runs;
    int64_t begun_ns;   /* start of the last run, in the loop's clock */
    int64_t expires_ns; /* expiry of the last credential, by the wall clock */
    uint64_t era;       /* number of credentials received */
    /* Used by the worker while the plugin runs. */
    int rc;
    struct kube_credential given;
    struct berth_err err;
};

struct kube_api {
    struct loop *loop;
    struct async *async;
    const struct kube_config *server;
    char *token, *url; /* `url` has no path */
    int64_t token_ns;  /* when the token was read, in the loop's clock */
    int64_t again_ns;
    size_t connections_max, under_way;
    struct call_list waiting[KUBE_RANKS], sent, pausing, refused; /* `refused` waits until the exec plugin has ended */
    struct exec_plugin program;
    struct kube_api_stats stats;
    uint64_t jitter_seed;
};

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static void list_add(struct call_list *l, struct kube_call *c)
{
    c->list = l;
    c->prev = l->last;
    c->next = NULL;
    *(l->last ? &l->last->next : &l->first) = c;
    l->last = c;
    l->len++;
}

static void list_drop(struct kube_call *c)
{
    struct call_list *l = c->list;
    *(c->prev ? &c->prev->next : &l->first) = c->next;
    *(c->next ? &c->next->prev : &l->last) = c->prev;
    l->len--;
    c->list = NULL;
}

static bool is_counted(const struct kube_call *c)
{
    return !c->request.piece && c->request.rank != KUBE_URGENT;
}

/* ---- credentials ------------------------------------------------------------------------------------------------ */

static void token_read(struct kube_api *api)
{
    char *token = NULL;
    api->token_ns = loop_now_ns(api->loop);
    if (kube_config_token(api->server, &token, NULL) < 0)
        return; /* the file is being written: keep the present token */
    mem_free(api->token);
    api->token = token;
}

static void exec_plugin_begin(struct kube_api *api);

/* Limits how often the plugin runs if its credentials are rejected. */
static bool exec_plugin_may_run(const struct kube_api *api)
{
    return api->program.runs || loop_now_ns(api->loop) - api->program.begun_ns >= api->again_ns;
}

static const char *token_now(struct kube_api *api)
{
    if (api->server->token_path && loop_now_ns(api->loop) - api->token_ns > TOKEN_NS)
        token_read(api);
    if (api->program.worker && kube_wall_ns() > api->program.expires_ns - EARLY_NS && exec_plugin_may_run(api))
        exec_plugin_begin(api);
    return api->token;
}

/* ---- one try ---------------------------------------------------------------------------------------------------- */

static void on_piece(void *ctx, const char *at, size_t len);
static void on_done(void *ctx, const struct async_answer *answer);

static const char *accept_header(const struct kube_request *q)
{
    if (q->format == KUBE_JSON)
        return "application/json";
    return q->piece ? "application/vnd.kubernetes.protobuf;stream=watch,application/vnd.kubernetes.protobuf"
                    : "application/vnd.kubernetes.protobuf";
}

static void begin(struct kube_call *c)
{
    struct kube_api *api = c->api;
    const struct kube_request *q = &c->request;
    struct async_request request = {
        .method = c->method,
        .url = c->url.at,
        .token = token_now(api),
        .content_type = c->patch ? c->patch : c->body_type,
        .accept = accept_header(q),
        .body = c->body.at,
        .body_len = c->body.len,
        .timeout_ns = q->timeout_ns,
        .piece = q->piece ? on_piece : NULL,
        .done = on_done,
        .ctx = c,
    };
    c->state = CALL_UNDER_WAY;
    api->under_way += is_counted(c);
    api->stats.sent++;
    api->stats.again += c->tries > 0;
    c->tries++;
    c->era = api->program.era;
    list_add(&api->sent, c);
    c->async = async_start(api->async, &request);
}

static void pump(struct kube_api *api)
{
    for (size_t rank = 0; rank < KUBE_RANKS; rank++)
        while (api->waiting[rank].first && (rank == KUBE_URGENT || api->under_way < api->connections_max)) {
            struct kube_call *c = api->waiting[rank].first;
            list_drop(c);
            begin(c);
        }
}

static void enqueue(struct kube_call *c)
{
    c->state = CALL_WAITS;
    list_add(&c->api->waiting[c->request.rank], c);
    pump(c->api);
}

static void call_free(struct kube_call *c)
{
    if (c->list)
        list_drop(c);
    loop_source_free(c->timer);
    str_done(&c->url);
    str_done(&c->body);
    mem_free(c->patch);
    mem_free(c);
}

/* ---- end of a try ----------------------------------------------------------------------------------------------- */

static void on_pause_over(void *ctx)
{
    struct kube_call *c = ctx;
    loop_source_free(c->timer);
    c->timer = NULL;
    list_drop(c);
    enqueue(c);
}

static void pause_for(struct kube_call *c, int64_t wait_ns)
{
    c->state = CALL_PAUSES;
    list_add(&c->api->pausing, c);
    c->timer = loop_timer_new(c->api->loop, on_pause_over, c);
    loop_timer_set(c->timer, loop_now_ns(c->api->loop) + wait_ns);
}

/* Adds random jitter of up to half, so that requests that failed together are not retried together. */
static int64_t with_jitter(struct kube_api *api, int64_t ns)
{
    return ns + (int64_t)(hash_u64(++api->jitter_seed) % (uint64_t)(ns / 2 + 1));
}

/* Returns the pause before the next try; negative: no retry, or WAITS_FOR_PROGRAM. */
static int64_t next_try_ns(struct kube_call *c, const struct async_answer *a)
{
    struct kube_api *api = c->api;
    if (a->status == 401 && api->program.worker && !c->renewed) {
        c->renewed = true;
        if (c->era != api->program.era)
            return 0;
        if (exec_plugin_may_run(api))
            return WAITS_FOR_PROGRAM;
    }
    if (a->status == 401 && api->server->token_path && !c->renewed) {
        c->renewed = true;
        token_read(api);
        return 0;
    }
    if (c->got_data || c->tries >= c->request.tries_max)
        return -1;
    bool untouched = a->status == 0 ? !a->sent : a->status == 429 || (a->status >= 500 && a->retry_after_s > 0);
    if (!untouched && !(c->request.harmless && (a->status == 0 || a->status >= 500)))
        return -1;
    if (a->retry_after_s > 0)
        return with_jitter(api, (a->retry_after_s < RETRY_AFTER_S_MAX ? a->retry_after_s : RETRY_AFTER_S_MAX) *
                                    INT64_C(1000000000));
    int64_t ns = PAUSE_NS << (c->tries < 8 ? c->tries - 1 : 7);
    return with_jitter(api, ns < PAUSE_NS_MAX ? ns : PAUSE_NS_MAX);
}

static int describe(const struct kube_call *c, const struct async_answer *a, struct berth_err *err)
{
    if (a->status == 0 && !a->sent)
        return err_set(err, ECONNREFUSED, "the API server %s cannot be reached: %s", c->api->server->server, a->text);
    if (a->status == 0)
        return err_set(err, EIO, "the API server %s did not answer: %s", c->api->server->server, a->text);
    return kube_status_code(a->status, a->body, a->len, err);
}

static void on_piece(void *ctx, const char *at, size_t len)
{
    struct kube_call *c = ctx;
    c->got_data = true;
    c->request.piece(c->request.ctx, at, len);
}

static void on_done(void *ctx, const struct async_answer *a)
{
    struct kube_call *c = ctx;
    struct kube_api *api = c->api;
    struct berth_err err = {0};
    c->async = NULL;
    list_drop(c);
    api->under_way -= is_counted(c);
    int64_t wait_ns = a->status >= 200 && a->status < 300 ? -1 : next_try_ns(c, a);
    pump(api);
    if (wait_ns == WAITS_FOR_PROGRAM) {
        c->state = CALL_PAUSES;
        list_add(&api->refused, c);
        exec_plugin_begin(api);
        return;
    }
    if (wait_ns >= 0) {
        pause_for(c, wait_ns);
        return;
    }
    struct kube_answer answer = {.status = a->status, .body = a->body, .len = a->len};
    answer.code = describe(c, a, &err);
    answer.text = err.text;
    api->stats.failed += answer.code != 0;
    c->request.done(c->request.ctx, &answer);
    call_free(c);
}

/* ---- exec plugin ------------------------------------------------------------------------------------------------ */

/* Installs a new credential; without a certificate in it, the kubeconfig's stays. */
static int credential_take(struct kube_api *api, struct kube_credential *given, struct berth_err *err)
{
    const struct async_config config = {.cert_pem = given->cert_pem, .key_pem = given->key_pem};
    int rc = given->cert_pem && api->async ? async_pems(api->async, &config, err) : 0;
    if (rc < 0)
        return rc;
    mem_free(api->token);
    api->token = take_ptr(&given->token);
    api->program.expires_ns = given->expires_ns;
    api->program.era++;
    return 0;
}

/* Runs on the worker. */
static void exec_plugin_run(void *ctx)
{
    struct kube_api *api = ctx;
    struct exec_plugin *p = &api->program;
    p->rc = kube_exec_run(api->server->exec, p->stop_fd, &p->given, &p->err);
}

static void on_exec_plugin_ended(void *ctx)
{
    struct kube_api *api = ctx;
    struct exec_plugin *p = &api->program;
    struct berth_err err = p->err; /* a callback may start another run */
    int rc = p->rc == 0 ? credential_take(api, &p->given, &err) : p->rc;
    kube_credential_done(&p->given);
    p->runs = false;
    for (size_t left = api->refused.len; left && api->refused.first; left--) {
        struct kube_call *c = api->refused.first;
        list_drop(c);
        if (rc == 0) {
            enqueue(c);
            continue;
        }
        api->stats.failed++;
        c->request.done(c->request.ctx,
                        &(struct kube_answer){.status = 401, .code = -EACCES, .text = err.text, .body = ""});
        call_free(c);
    }
}

static void exec_plugin_begin(struct kube_api *api)
{
    struct exec_plugin *p = &api->program;
    if (p->runs)
        return;
    p->runs = true;
    p->begun_ns = loop_now_ns(api->loop);
    worker_run(p->worker, exec_plugin_run, on_exec_plugin_ended, api);
}

/* Runs the plugin the first time and waits for it. */
static int exec_plugin_start(struct kube_api *api, struct kube_credential *ret, struct berth_err *err)
{
    struct exec_plugin *p = &api->program;
    int rc = kube_exec_run(api->server->exec, -1, ret, err);
    if (rc < 0)
        return rc;
    p->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (p->stop_fd < 0)
        return err_set(err, errno, "cannot create an event descriptor: %s", strerror(errno));
    p->worker = worker_new(api->loop);
    p->begun_ns = loop_now_ns(api->loop) - api->again_ns;
    return credential_take(api, ret, err);
}

static void exec_plugin_end(struct exec_plugin *p)
{
    if (!p->worker)
        return;
    (void)eventfd_write(p->stop_fd, 1);
    worker_free(p->worker);
    (void)close(p->stop_fd);
    kube_credential_done(&p->given);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

struct kube_call *kube_start(struct kube_api *api, const struct kube_request *request)
{
    struct kube_call *c = mem_zalloc(sizeof *c);
    assert(request->rank < KUBE_RANKS && strlen(request->method) < sizeof c->method);
    c->api = api;
    c->request = *request;
    c->request.tries_max = request->tries_max ? request->tries_max : TRIES_MAX;
    memcpy(c->method, request->method, strlen(request->method) + 1);
    str_add(&c->url, api->url);
    str_add(&c->url, request->path);
    if (request->body)
        str_add_bytes(&c->body, request->body, request->body_len);
    c->body_type = request->format == KUBE_PROTOBUF && !request->json_body ? "application/vnd.kubernetes.protobuf"
                                                                           : "application/json";
    c->patch = request->patch ? mem_strdup(request->patch) : NULL;
    enqueue(c);
    return c;
}

void kube_cancel(struct kube_call *call)
{
    struct kube_api *api = call->api;
    if (call->state == CALL_UNDER_WAY) {
        async_cancel(call->async);
        api->under_way -= is_counted(call);
    }
    call_free(call);
    pump(api);
}

struct kube_api_stats kube_api_stats(const struct kube_api *api)
{
    struct kube_api_stats s = api->stats;
    s.under_way = api->under_way;
    s.waiting = api->pausing.len + api->refused.len;
    for (size_t rank = 0; rank < KUBE_RANKS; rank++)
        s.waiting += api->waiting[rank].len;
    return s;
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

/* If the certificate has a name of its own, requests use that name and connect to the server's address. */
static void set_address(struct kube_api *api, struct str *connect_to)
{
    CLEANUP(str) struct str url = {0};
    const struct kube_config *s = api->server;
    const char *host = strstr(s->server, "://") + 3, *path = host + strcspn(host, "/");
    const char *port = memrchr(host, ':', (size_t)(path - host)), *bracket = memrchr(host, ']', (size_t)(path - host));
    if (port && bracket && port < bracket)
        port = NULL;
    if (!s->server_name) {
        api->url = mem_strdup(s->server);
        return;
    }
    str_add_bytes(connect_to, host, (size_t)(path - host));
    if (!port)
        str_add(connect_to, ":443");
    str_addf(&url, "https://%s%s", s->server_name, port ? port : path);
    api->url = str_take(&url);
}

int kube_api_new(struct loop *l, const struct kube_api_config *config, struct kube_api **ret, struct berth_err *err)
{
    CLEANUP(str) struct str connect_to = {0};
    const struct kube_config *s = config->server;
    struct kube_api *api = mem_zalloc(sizeof *api);
    api->loop = l;
    api->server = s;
    api->connections_max = config->connections_max ? config->connections_max : CONNECTIONS_MAX;
    api->again_ns = config->again_ns ? config->again_ns : AGAIN_NS;
    api->jitter_seed = (uint64_t)loop_now_ns(l);
    set_address(api, &connect_to);
    CLEANUP(kube_credential) struct kube_credential given = {0};
    int rc = s->exec ? exec_plugin_start(api, &given, err) : kube_config_token(s, &api->token, err);
    const struct async_config async = {
        .ca_pem = s->ca_pem,
        .cert_pem = given.cert_pem ? given.cert_pem : s->cert_pem,
        .key_pem = given.key_pem ? given.key_pem : s->key_pem,
        .connect_to = connect_to.at,
        .agent = config->agent,
        .connections_max = api->connections_max + STREAMS_KEPT,
        .lean = true,
    };
    api->token_ns = loop_now_ns(l);
    if (rc == 0)
        rc = async_new(l, &async, &api->async, err);
    if (rc < 0) {
        kube_api_free(api);
        return rc;
    }
    *ret = api;
    return 0;
}

void kube_api_free(struct kube_api *api)
{
    if (!api)
        return;
    async_free(api->async);
    exec_plugin_end(&api->program);
    while (api->refused.first)
        call_free(api->refused.first);
    while (api->sent.first)
        call_free(api->sent.first);
    while (api->pausing.first)
        call_free(api->pausing.first);
    for (size_t rank = 0; rank < KUBE_RANKS; rank++)
        while (api->waiting[rank].first)
            call_free(api->waiting[rank].first);
    mem_free(api->token);
    mem_free(api->url);
    mem_free(api);
}
