#include "kube/webhook/webhook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "net/http/http.h"
#include "net/listen.h"
#include "net/tls/tls.h"
#include "wire/text/document.h"

#define SECOND_NS INT64_C(1000000000)
#define FILES_NS (10 * SECOND_NS)   /* interval of checking the certificate files */
#define QUEUE_WAIT_NS SECOND_NS     /* maximum wait for a missing queue */
#define RECHECK_NS (SECOND_NS / 10) /* interval of checking for it */
/* Time for the API server's answer about the queue, and for the watch to show it. The API server waits at most 5 s for
 * the webhook. */
#define QUEUE_LOOKUP_NS (2 * SECOND_NS)
#define PATH "/judge"
/* An object and its previous version, each at most as large as a request to the API server. */
enum { PORT_DEFAULT = 9443, BODY_MAX = 8 << 20, CONNECTIONS_MAX = 256 };

/* State of a file when it was read. */
struct file_stamp {
    struct timespec changed;
    off_t size;
    ino_t inode;
};

/* A review waiting for its queue. */
struct pending_review {
    struct kube_webhook *w;
    struct http_request *x; /* NULL: answered */
    json_t *review;
    int64_t until_ns; /* when the API server is asked; after that, when the wait ends */
    struct kube_call *call;
    bool asked, none; /* none: the queue does not exist */
    struct pending_review *next, **at;
};

struct kube_webhook {
    struct kube_webhook_config c;
    char host[LISTEN_HOST_MAX];
    uint16_t port;
    struct file_stamp cert, key;
    struct http_server *http,
        *draining_http; /* leaving: server with the previous certificate, finishing its requests */
    struct loop_source *files, *again;
    struct pending_review *held;
    struct kube_webhook_stats stats;
};

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void answer_text(struct http_request *x, int status, const char *text)
{
    http_answer(x, status, NULL, "text/plain; charset=utf-8", text, strlen(text));
}

static void answer_bad(struct kube_webhook *w, struct http_request *x, const char *text)
{
    w->stats.bad++;
    answer_text(x, 400, text);
}

static void answer_json(struct kube_webhook *w, struct http_request *x, const json_t *answer)
{
    bool allowed = json_is_true(json_object_get(json_object_get(answer, "response"), "allowed"));
    char *text = json_dumps(answer, JSON_COMPACT);
    w->stats.allowed += allowed;
    w->stats.denied += !allowed;
    http_answer(x, 200, NULL, "application/json", text, strlen(text));
    free(text);
}

/* False: the review must be checked again later. */
static bool review_and_answer(struct kube_webhook *w, struct http_request *x, const json_t *review)
{
    struct berth_err err = {0};
    CLEANUP(json) json_t *answer = NULL;
    int rc = admission_review(&w->c.admission, review, kube_wall_ns(), MISSING_QUEUE_WAIT, &answer, &err);
    if (rc == -EAGAIN)
        return false;
    if (rc < 0)
        answer_bad(w, x, err.text);
    else
        answer_json(w, x, answer);
    return true;
}

static void pending_review_finish(struct pending_review *h)
{
    *h->at = h->next;
    if (h->next)
        h->next->at = h->at;
    h->x = NULL;
    if (h->call)
        kube_cancel(h->call);
    h->call = NULL;
}

static void pending_review_drop(void *data)
{
    struct pending_review *h = data;
    if (h->x)
        pending_review_finish(h);
    json_decref(h->review);
    mem_free(h);
}

static void hold_review(struct kube_webhook *w, struct http_request *x, const json_t *review)
{
    struct pending_review *h = mem_zalloc(sizeof *h);
    *h = (struct pending_review){
        .w = w, .x = x, .review = json_incref((json_t *)review), .next = w->held, .at = &w->held};
    h->until_ns = loop_now_ns(w->c.loop) + QUEUE_WAIT_NS;
    if (w->held)
        w->held->at = &h->next;
    else
        loop_timer_set(w->again, loop_now_ns(w->c.loop) + RECHECK_NS);
    w->held = h;
    w->stats.held++;
    http_set_data(x, h, pending_review_drop);
}

/* Reports whether the text is a valid object name, so that it cannot change the path. */
static bool is_name(const char *text)
{
    return *text && *text != '.' && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(text);
}

static void on_queue_answer(void *ctx, const struct kube_answer *answer)
{
    struct pending_review *h = ctx;
    h->call = NULL;
    h->none = answer->code == -ENOENT;
}

/* Asks the API server whether the queue exists, as the watch has not shown it. */
static void queue_check_exists(struct pending_review *h)
{
    const json_t *object = json_object_get(json_object_get(h->review, "request"), "object");
    const char *name = json_string_value(json_object_get(json_object_get(object, "spec"), "queue"));
    CLEANUP(str) struct str path = {0};
    h->asked = true;
    h->until_ns = loop_now_ns(h->w->c.loop) + QUEUE_LOOKUP_NS;
    h->none = !h->w->c.api || !name || !is_name(name);
    if (h->none)
        return;
    str_addf(&path, "/apis/berth.dev/v1/queues/%s", name);
    h->call = kube_start(h->w->c.api, &(struct kube_request){.method = "GET",
                                                             .path = path.at,
                                                             .rank = KUBE_URGENT,
                                                             .harmless = true,
                                                             .tries_max = 1,
                                                             .timeout_ns = QUEUE_LOOKUP_NS,
                                                             .done = on_queue_answer,
                                                             .ctx = h});
}

static enum missing_queue missing_of(struct pending_review *h)
{
    bool late = loop_now_ns(h->w->c.loop) >= h->until_ns;
    if (late && !h->asked)
        queue_check_exists(h);
    if (h->none)
        return MISSING_QUEUE_DENY;
    return late && h->asked && !h->call ? MISSING_QUEUE_UNSURE : MISSING_QUEUE_WAIT;
}

static void on_again(void *ctx)
{
    struct kube_webhook *w = ctx;
    int64_t now_ns = loop_now_ns(w->c.loop);
    for (struct pending_review *h = w->held, *next; h; h = next) {
        struct http_request *x = h->x;
        CLEANUP(json) json_t *review = json_incref(h->review); /* answering may free the exchange and `h` */
        struct berth_err err = {0};
        CLEANUP(json) json_t *answer = NULL;
        next = h->next;
        if (admission_review(&w->c.admission, review, kube_wall_ns(), missing_of(h), &answer, &err) == -EAGAIN)
            continue;
        pending_review_finish(h);
        answer_json(w, x, answer);
    }
    if (w->held)
        loop_timer_set(w->again, now_ns + RECHECK_NS);
}

static int64_t admit(void *ctx, struct http_request *x)
{
    (void)ctx;
    if (strcmp(http_path(x), PATH) != 0)
        answer_text(x, 404, "not found; the path is " PATH "\n");
    else if (strcmp(http_method(x), "POST") != 0)
        answer_text(x, 405, "method not allowed; use POST\n");
    else
        return BODY_MAX;
    return -1;
}

static void handle(void *ctx, struct http_request *x)
{
    struct kube_webhook *w = ctx;
    size_t len;
    const char *body = http_body(x, &len);
    json_error_t error;
    CLEANUP(json) json_t *review = json_loadb(body, len, 0, &error);
    if (!json_is_object(review))
        answer_bad(w, x, "expected an AdmissionReview as JSON\n");
    else if (!review_and_answer(w, x, review))
        hold_review(w, x, review);
}

/* ---- the certificate -------------------------------------------------------------------------------------------- */

static bool stamp_read(const char *path, struct file_stamp *ret)
{
    struct stat st;
    *ret = (struct file_stamp){0};
    if (stat(path, &st) < 0)
        return false;
    *ret = (struct file_stamp){st.st_mtim, st.st_size, st.st_ino};
    return true;
}

static bool stamp_same(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec && a->size == b->size &&
           a->inode == b->inode;
}

static int serve(struct kube_webhook *w, const struct tls_identity *id, struct http_server **ret, struct berth_err *err)
{
    return http_server_new(w->c.loop,
                           &(struct http_config){.address = w->host,
                                                 .port = w->port,
                                                 .cert_pem = id->cert_pem,
                                                 .key_pem = id->key_pem,
                                                 .connections_max = CONNECTIONS_MAX,
                                                 .admit = admit,
                                                 .handle = handle,
                                                 .ctx = w},
                           ret, err);
}

static int begin(struct kube_webhook *w, struct berth_err *err)
{
    struct tls_identity id = {0};
    (void)stamp_read(w->c.cert_path, &w->cert);
    (void)stamp_read(w->c.key_path, &w->key);
    int rc = tls_identity_read(w->c.cert_path, w->c.key_path, &id, err);
    if (rc < 0)
        return rc;
    if (w->http)
        http_server_quiesce(w->http); /* frees the port */
    struct http_server *server = NULL;
    rc = serve(w, &id, &server, err);
    tls_identity_done(&id);
    if (rc < 0)
        return rc;
    http_server_free(w->draining_http);
    w->draining_http = w->http;
    w->http = server;
    w->port = http_server_port(server);
    return 0;
}

bool kube_webhook_renew(struct kube_webhook *w)
{
    struct file_stamp cert, key;
    struct berth_err err = {0};
    bool there = stamp_read(w->c.cert_path, &cert) && stamp_read(w->c.key_path, &key);
    if (!there || (stamp_same(&cert, &w->cert) && stamp_same(&key, &w->key)))
        return false;
    if (begin(w, &err) < 0) {
        w->cert = w->key = (struct file_stamp){0}; /* the files may be half written: read again later */
        log_write(w->c.log, kube_wall_ns(), LEVEL_WARN, "webhook.trouble", LOG_TEXT("text", err.text));
        return false;
    }
    log_write(w->c.log, kube_wall_ns(), LEVEL_INFO, "webhook.renewed", LOG_TEXT("certificate", w->c.cert_path));
    return true;
}

static void on_files(void *ctx)
{
    struct kube_webhook *w = ctx;
    loop_timer_set(w->files, loop_now_ns(w->c.loop) + FILES_NS);
    if (w->draining_http && http_server_busy(w->draining_http) == 0) {
        http_server_free(w->draining_http);
        w->draining_http = NULL;
    }
    (void)kube_webhook_renew(w);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

int kube_webhook_new(const struct kube_webhook_config *config, struct kube_webhook **ret, struct berth_err *err)
{
    struct kube_webhook *w = mem_zalloc(sizeof *w);
    w->c = *config;
    w->c.admission.recent = recent_jobs_new();
    int rc = listen_parse(config->listen, PORT_DEFAULT, w->host, &w->port, err);
    if (rc < 0)
        (void)err_prefix(err, "--webhook");
    else
        rc = begin(w, err);
    if (rc == -ENOENT) { /* the certificate may not have been created yet */
        log_write(w->c.log, kube_wall_ns(), LEVEL_WARN, "webhook.trouble", LOG_TEXT("text", err->text));
        rc = 0;
    }
    if (rc < 0) {
        recent_jobs_free(w->c.admission.recent);
        mem_free(w);
        return rc;
    }
    w->files = loop_timer_new(config->loop, on_files, w);
    w->again = loop_timer_new(config->loop, on_again, w);
    loop_timer_set(w->files, loop_now_ns(config->loop) + FILES_NS);
    *ret = w;
    return 0;
}

void kube_webhook_free(struct kube_webhook *w)
{
    if (!w)
        return;
    http_server_free(w->draining_http);
    http_server_free(w->http);
    loop_source_free(w->files);
    loop_source_free(w->again);
    recent_jobs_free(w->c.admission.recent);
    mem_free(w);
}

struct kube_webhook_stats kube_webhook_stats(const struct kube_webhook *w)
{
    struct kube_webhook_stats stats = w->stats;
    stats.listens = w->http != NULL;
    return stats;
}

uint16_t kube_webhook_port(const struct kube_webhook *w)
{
    return w->port;
}
