/* webhook_test.c - the webhook over HTTPS: answers, waiting for queues, and certificate changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/mem.h"
#include "kube/webhook/webhook.h"
#include "net/client/client.h"
#include "net/http/http.h"
#include "wire/text/document.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define SECOND_NS INT64_C(1000000000)
#define REVIEW(queue)                                                                                                                      \
    "{\"apiVersion\": \"admission.k8s.io/v1\", \"kind\": \"AdmissionReview\", \"request\": {\"uid\": \"u\", \"operation\": \"CREATE\", "   \
    "\"resource\": {\"group\": \"berth.dev\", \"version\": \"v1\", \"resource\": \"jobs\"}, \"object\": {\"metadata\": {\"name\": \"a\", " \
    "\"namespace\": \"default\"}, \"spec\": {\"queue\": \"" queue                                                                          \
    "\", \"roles\": [{\"template\": {\"spec\": {\"containers\": [{\"name\": \"c\", "                                                       \
    "\"resources\": {\"requests\": {\"cpu\": 1}}}]}}}]}}}}"

struct stage {
    char dir[64], other[64]; /* with certificates of two authorities */
    char ca[96], other_ca[96], cert[96], key[96];
    struct loop *loop;
    struct tenants *tenants;
    struct cache *cache;
    struct kube_webhook *webhook;
    struct kube_config config;
    struct kube_api *api;
    struct http_server *server; /* fake API server */
    struct loop_source *timer;
    struct log log;
    pthread_t thread;
    sem_t done;
    bool renewed;
};

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void *stage_main(void *ctx)
{
    (void)loop_run(((struct stage *)ctx)->loop, NULL);
    return NULL;
}

/* Creates certificates; the command prints the authority's certificate. */
static void certificates(const char *dir)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    char *const argv[] = {"webhook-cert", "--dir", (char *)dir, "--service", "berth-kube.berth-system"};
    CLEANUP(str) struct str pem = {0};
    assert_int_equal(kube_webhook_cert(ROWS(argv), argv, out), 0);
    (void)fclose(out);
    assert_true(len > 1 && text[len - 1] == '\n');
    assert_true(str_add_base64_bytes(&pem, text, len - 1));
    assert_int_equal(strncmp(str_text(&pem), "-----BEGIN CERTIFICATE-----", 27), 0);
    free(text);
}

static void folder_make(char dir[static 64])
{
    (void)snprintf(dir, 64, "/tmp/berth-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    certificates(dir);
}

static int64_t server_admit(void *ctx, struct http_request *x)
{
    (void)ctx, (void)x;
    return 0;
}

static void queue_put(struct stage *s, const char *name)
{
    CLEANUP(json) json_t *spec = json_object();
    assert_int_equal(tenants_put(s->tenants, KIND_QUEUE, name, spec, NULL), 0);
}

/* Serves two queues: "late", which the watch shows after the request, and "unseen", which it never shows. */
static void server_handle(void *ctx, struct http_request *x)
{
    const char *name = strrchr(http_path(x), '/') + 1;
    bool there = strcmp(name, "late") == 0 || strcmp(name, "unseen") == 0;
    assert_int_equal(strncmp(http_path(x), "/apis/berth.dev/v1/queues/", 26), 0);
    if (strcmp(name, "late") == 0)
        queue_put(ctx, name);
    http_answer(x, there ? 200 : 404, NULL, "application/json", "{}", 2);
}

static void server_begin(struct stage *s)
{
    CLEANUP(str) struct str url = {0};
    struct berth_err err = {0};
    if (http_server_new(
            s->loop,
            &(struct http_config){.address = "127.0.0.1", .admit = server_admit, .handle = server_handle, .ctx = s},
            &s->server, &err) < 0)
        fail_msg("%s", err.text);
    str_addf(&url, "http://127.0.0.1:%u", http_server_port(s->server));
    s->config.server = str_take(&url);
    if (kube_api_new(s->loop, &(struct kube_api_config){.server = &s->config, .agent = "test"}, &s->api, &err) < 0)
        fail_msg("%s", err.text);
}

static void stage_begin(struct stage *s)
{
    static const char *const names[] = {"berth"};
    struct berth_err err = {0};
    *s = (struct stage){.tenants = tenants_new(NULL, NULL)};
    s->log = (struct log){.out = stderr, .level = LEVEL_ERROR};
    (void)signal(SIGPIPE, SIG_IGN);
    folder_make(s->dir);
    folder_make(s->other);
    (void)snprintf(s->ca, sizeof s->ca, "%s/ca-cert.pem", s->dir);
    (void)snprintf(s->other_ca, sizeof s->other_ca, "%s/ca-cert.pem", s->other);
    (void)snprintf(s->cert, sizeof s->cert, "%s/webhook-cert.pem", s->dir);
    (void)snprintf(s->key, sizeof s->key, "%s/webhook-key.pem", s->dir);
    s->cache =
        cache_new(&(struct cache_config){.schedulers = names, .schedulers_len = 1, .tenants = s->tenants, .ctx = s});
    assert_int_equal(sem_init(&s->done, 0, 0), 0);
    assert_int_equal(loop_new(&s->loop, NULL), 0);
    server_begin(s);
    if (kube_webhook_new(
            &(struct kube_webhook_config){
                .loop = s->loop,
                .listen = "127.0.0.1:0",
                .cert_path = s->cert,
                .key_path = s->key,
                .admission = {.cache = s->cache, .tenants = s->tenants, .ready = always},
                .api = s->api,
                .log = &s->log
    },
            &s->webhook, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(pthread_create(&s->thread, NULL, stage_main, s), 0);
}

static int unlink_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static void stage_cleanup(struct stage *s)
{
    loop_stop(s->loop);
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    loop_source_free(s->timer);
    kube_webhook_free(s->webhook);
    kube_api_free(s->api);
    kube_config_done(&s->config);
    http_server_free(s->server);
    cache_free(s->cache);
    tenants_free(s->tenants);
    loop_free(s->loop);
    (void)sem_destroy(&s->done);
    (void)nftw(s->dir, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
    (void)nftw(s->other, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Sends a request on a new connection. Returns the status; negative: no answer. */
static int ask(const struct stage *s, const char *ca, const char *method, const char *path, const char *body,
               size_t len, struct str *ret)
{
    char url[64];
    struct client *c = NULL;
    struct client_answer a = {0};
    struct berth_err err = {0};
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u", kube_webhook_port(s->webhook));
    if (client_new(&(struct client_config){.url = url, .ca_path = ca, .agent = "test"}, &c, &err) < 0)
        fail_msg("%s", err.text);
    int rc =
        client_do(c, &(struct client_request){.method = method, .path = path, .body = body, .body_len = len}, &a, &err);
    if (ret && rc == 0)
        str_add_bytes(ret, str_text(&a.body), a.body.len);
    rc = rc < 0 ? rc : a.status;
    client_answer_done(&a);
    client_free(c);
    return rc;
}

static int job_review(const struct stage *s, const char *ca, const char *review, struct str *ret)
{
    return ask(s, ca, "POST", "/judge?timeout=10s", review, strlen(review), ret);
}

/* Checks the counters, which are updated before the answer is sent. */
static void counted(const struct stage *s, struct kube_webhook_stats want)
{
    const struct kube_webhook_stats got = kube_webhook_stats(s->webhook);
    assert_true(got.listens == want.listens);
    assert_int_equal(got.allowed, want.allowed);
    assert_int_equal(got.denied, want.denied);
    assert_int_equal(got.bad, want.bad);
    assert_int_equal(got.held, want.held);
}

static void requests(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *text;
    } rows[] = {
        {"POST", "/judge", REVIEW("default"),                 200, "\"allowed\":true"           },
        {"POST", "/judge", "{",                               400, "expected an AdmissionReview"},
        {"POST", "/judge", "",                                400, "expected an AdmissionReview"},
        {"POST", "/judge", "[]",                              400, "expected an AdmissionReview"},
        {"POST", "/judge", "{\"kind\": \"AdmissionReview\"}", 400, "expected an AdmissionReview"},
        {"GET",  "/judge", NULL,                              405, "use POST"                   },
        {"POST", "/",      REVIEW("default"),                 404, "the path is /judge"         },
        {"GET",  "/other", NULL,                              404, "the path is /judge"         },
    };
    __attribute__((cleanup(stage_cleanup))) struct stage s;
    stage_begin(&s);
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str text = {0};
        int status =
            ask(&s, s.ca, rows[i].method, rows[i].path, rows[i].body, rows[i].body ? strlen(rows[i].body) : 0, &text);
        if (status != rows[i].status || !strstr(str_text(&text), rows[i].text))
            fail_msg("%s %s %s: %d %s", rows[i].method, rows[i].path, rows[i].body, status, str_text(&text));
    }
    counted(&s, (struct kube_webhook_stats){.listens = true, .allowed = 1, .bad = 4});
}

static void body_size_is_limited(void **state)
{
    (void)state;
    enum { FITS = 6 << 20, TOO_MUCH = 9 << 20 };
    __attribute__((cleanup(stage_cleanup))) struct stage s;
    stage_begin(&s);
    CLEANUP(mem) char *body = mem_zalloc(TOO_MUCH);
    (void)memset(body, ' ', TOO_MUCH);
    (void)memcpy(body, REVIEW("default"), sizeof REVIEW("default") - 1);
    assert_int_equal(ask(&s, s.ca, "POST", "/judge", body, FITS, NULL), 200);
    assert_int_equal(ask(&s, s.ca, "POST", "/judge", body, TOO_MUCH, NULL), 413);
    assert_int_equal(ask(&s, s.ca, "POST", "/judge", body, FITS, NULL), 200);
}

/* Puts the queue as soon as a review waits for it. */
static void queue_comes(void *ctx)
{
    struct stage *s = ctx;
    if (kube_webhook_stats(s->webhook).held == 2)
        queue_put(s, "soon");
    else
        loop_timer_set(s->timer, loop_now_ns(s->loop) + SECOND_NS / 200);
}

static void queue_timer(void *ctx)
{
    struct stage *s = ctx;
    s->timer = loop_timer_new(s->loop, queue_comes, s);
    queue_comes(s);
}

static void review_waits_for_unseen_queue(void **state)
{
    (void)state;
    __attribute__((cleanup(stage_cleanup))) struct stage s;
    CLEANUP(str) struct str never = {0}, soon = {0};
    stage_begin(&s);
    assert_int_equal(job_review(&s, s.ca, REVIEW("never"), &never), 200);
    assert_non_null(strstr(str_text(&never), "queue never does not exist"));
    assert_non_null(strstr(str_text(&never), "\"allowed\":false"));
    loop_post(s.loop, queue_timer, &s);
    assert_int_equal(job_review(&s, s.ca, REVIEW("soon"), &soon), 200);
    assert_non_null(strstr(str_text(&soon), "\"allowed\":true"));
    counted(&s, (struct kube_webhook_stats){.listens = true, .allowed = 1, .denied = 1, .held = 2});
}

/* A queue that exists but is not shown by the watch does not cause a denial. */
static void unseen_queue_causes_no_denial(void **state)
{
    (void)state;
    static const struct {
        const char *review, *text, *more;
    } rows[] = {
        {REVIEW("late"),   "\"allowed\":true",  ""                                                      },
        {REVIEW("unseen"), "\"allowed\":true",  "Not checked: the scheduler has not seen its queue yet."},
        {REVIEW("none"),   "\"allowed\":false", "queue none does not exist"                             },
        {REVIEW("../x"),   "\"allowed\":false", ""                                                      },
    };
    __attribute__((cleanup(stage_cleanup))) struct stage s;
    stage_begin(&s);
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(str) struct str text = {0};
        assert_int_equal(job_review(&s, s.ca, rows[i].review, &text), 200);
        if (!strstr(str_text(&text), rows[i].text) || !strstr(str_text(&text), rows[i].more))
            fail_msg("%s: %s", rows[i].review, str_text(&text));
    }
}

static void renew(void *ctx)
{
    struct stage *s = ctx;
    s->renewed = kube_webhook_renew(s->webhook);
    (void)sem_post(&s->done);
}

static bool renews(struct stage *s)
{
    loop_post(s->loop, renew, s);
    while (sem_wait(&s->done) < 0)
        ;
    return s->renewed;
}

static void take(const struct stage *s, const char *file)
{
    char from[128], to[128];
    (void)snprintf(from, sizeof from, "%s/%s", s->other, file);
    (void)snprintf(to, sizeof to, "%s/%s", s->dir, file);
    assert_int_equal(rename(from, to), 0);
}

static void renewed_certificate_is_used(void **state)
{
    (void)state;
    __attribute__((cleanup(stage_cleanup))) struct stage s;
    stage_begin(&s);
    assert_int_equal(job_review(&s, s.ca, REVIEW("default"), NULL), 200);
    assert_true(job_review(&s, s.other_ca, REVIEW("default"), NULL) < 0);
    assert_false(renews(&s)); /* the files are unchanged */
    take(&s, "webhook-cert.pem");
    assert_false(renews(&s)); /* the key does not match the new certificate yet */
    assert_int_equal(job_review(&s, s.ca, REVIEW("default"), NULL), 200);
    take(&s, "webhook-key.pem");
    assert_true(renews(&s));
    assert_int_equal(job_review(&s, s.other_ca, REVIEW("default"), NULL), 200);
    assert_true(job_review(&s, s.ca, REVIEW("default"), NULL) < 0);
    assert_false(renews(&s));
}

/* Errors in the command line of webhook-cert; its messages go to standard error. */
static void command_line_errors(void **state)
{
    (void)state;
    char *const rows[][5] = {
        {"webhook-cert", "--dir",      "/tmp", NULL,        NULL   },
        {"webhook-cert", "--dir",      "/tmp", "--service", "berth"},
        {"webhook-cert", "--dir",      "/tmp", "--service", "a.b.c"},
        {"webhook-cert", "--dir",      "/tmp", "--service", ".b"   },
        {"webhook-cert", "--nonsense", NULL,   NULL,        NULL   },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int argc = 0;
        while (argc < 5 && rows[i][argc])
            argc++;
        assert_int_equal(kube_webhook_cert(argc, rows[i], stdout), 2);
    }
    char *const nowhere[] = {"webhook-cert", "--dir", "/nonexistent/folder", "--service", "a.b"};
    assert_int_equal(kube_webhook_cert(5, nowhere, stdout), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(body_size_is_limited),
        cmocka_unit_test(review_waits_for_unseen_queue),
        cmocka_unit_test(unseen_queue_causes_no_denial),
        cmocka_unit_test(renewed_certificate_is_used),
        cmocka_unit_test(command_line_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
