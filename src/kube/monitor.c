#include "kube/monitor.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/http/http.h"
#include "net/listen.h"

enum { PORT_DEFAULT = 10259 };

struct kube_monitor {
    struct http_server *http;
    bool (*ready)(void *ctx);
    void (*numbers)(void *ctx, struct kube_numbers *ret);
    void *ctx;
};

static void add(struct str *to, const char *name, const char *kind, const char *help, double value)
{
    str_addf(to, "# HELP berth_kube_%s %s\n# TYPE berth_kube_%s %s\nberth_kube_%s %.17g\n", name, help, name, kind,
             name, value);
}

static void add_watches(struct str *to, const struct kube_numbers *n)
{
    str_add(to, "# HELP berth_kube_objects Objects in the cache.\n# TYPE berth_kube_objects gauge\n");
    for (size_t i = 0; i < CACHE_KINDS; i++)
        str_addf(to, "berth_kube_objects{what=\"%s\"} %zu\n", cache_sources[i].name, n->objects[i]);
    str_add(to, "# HELP berth_kube_relists_total Full relists of a resource.\n"
                "# TYPE berth_kube_relists_total counter\n");
    for (size_t i = 0; i < CACHE_KINDS; i++)
        str_addf(to, "berth_kube_relists_total{what=\"%s\"} %llu\n", cache_sources[i].name,
                 (unsigned long long)n->watches[i].relists);
}

static void add_names(struct str *to, const struct kube_numbers *n)
{
    static const struct {
        const char *name, *help;
        size_t at;
    } rows[] = {
        {"pods_placed",       "Pods placed by plans, by schedulerName.", offsetof(struct kube_name_stats, placed)   },
        {"pods_bound",        "Pods bound, by schedulerName.",           offsetof(struct kube_name_stats, bound)    },
        {"pod_bind_failures", "Failed bindings, by schedulerName.",      offsetof(struct kube_name_stats, failed)   },
        {"pods_preempted",    "Pods preempted, by schedulerName.",       offsetof(struct kube_name_stats, preempted)},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        str_addf(to, "# HELP berth_kube_%s_total %s\n# TYPE berth_kube_%s_total counter\n", rows[r].name, rows[r].help,
                 rows[r].name);
        for (size_t i = 0; i < n->profiles->len; i++) {
            const struct kube_name_stats stats = kube_scheduler_name_stats(n->of, i);
            const char *profile = n->profiles->profiles[i];
            str_addf(to, "berth_kube_%s_total{scheduler=\"%s\",profile=\"%s\"} %llu\n", rows[r].name,
                     n->profiles->names[i], *profile ? profile : n->profiles->own->name,
                     (unsigned long long)*(const uint64_t *)((const char *)&stats + rows[r].at));
        }
    }
}

static void add_journal(struct str *to, const struct kube_journal_stats *j)
{
    add(to, "journal_on", "gauge", "Whether decisions are being recorded.", j->on);
    add(to, "journal_records_total", "counter", "Records written to the journal.", (double)j->records);
    add(to, "journal_bytes_total", "counter", "Bytes written to the journal.", (double)j->bytes);
    add(to, "journal_plans_total", "counter", "Plans recorded.", (double)j->plans);
    add(to, "journal_bases_total", "counter", "Bases (full snapshots) written to the journal.", (double)j->bases);
    add(to, "journal_gaps_total", "counter", "Interruptions of the journal by failures.", (double)j->gaps);
    add(to, "journal_segments_total", "counter", "Segments sealed.", (double)j->segments);
}

static void add_webhook(struct str *to, const struct kube_webhook_stats *w)
{
    add(to, "webhook_on", "gauge", "Whether the webhook has a certificate and listens.", w->listens);
    str_add(to, "# HELP berth_kube_webhook_reviews_total Objects reviewed by the webhook.\n"
                "# TYPE berth_kube_webhook_reviews_total counter\n");
    str_addf(to, "berth_kube_webhook_reviews_total{verdict=\"allowed\"} %llu\n", (unsigned long long)w->allowed);
    str_addf(to, "berth_kube_webhook_reviews_total{verdict=\"denied\"} %llu\n", (unsigned long long)w->denied);
    add(to, "webhook_held_total", "counter", "Reviews delayed for a queue that did not exist yet.", (double)w->held);
    add(to, "webhook_bad_requests_total", "counter", "Requests to the webhook that were not reviews.", (double)w->bad);
}

static void metrics_write(const struct kube_numbers *n, struct str *to)
{
    const struct kube_scheduler_stats *s = &n->scheduler;
    add(to, "leads", "gauge", "Whether this process is the leader.", n->leads);
    add(to, "plans_total", "counter", "Plans made.", (double)s->plans);
    add(to, "plan_seconds_total", "counter", "Time spent in plans.", s->seconds);
    add(to, "placed_total", "counter", "Pods placed by plans.", (double)s->placed);
    add(to, "bound_total", "counter", "Successful bindings.", (double)s->bound);
    add(to, "bind_failures_total", "counter", "Failed bindings.", (double)s->failed);
    add(to, "preempted_total", "counter", "Pods preempted.", (double)s->preempted);
    add(to, "pending", "gauge", "Pods that the last plan could not place.", (double)s->pending);
    add(to, "binding", "gauge", "Bindings in progress.", (double)s->assumed);
    add(to, "requests_total", "counter", "Requests sent to the API server.", (double)n->api.sent);
    add(to, "requests_again_total", "counter", "Requests to the API server that were retried.", (double)n->api.again);
    add(to, "events_written_total", "counter", "Events written.", (double)n->events.written);
    add(to, "events_dropped_total", "counter", "Events dropped because of the rate limit.", (double)n->events.dropped);
    add(to, "jobs", "gauge", "Jobs in the cluster.", (double)n->jobs.jobs);
    add(to, "job_pods_made_total", "counter", "Pods created for jobs.", (double)n->jobs.made);
    add(to, "job_pod_failures_total", "counter", "Failed creations of pods of jobs.", (double)n->jobs.failed);
    add(to, "job_pods_deleted_total", "counter", "Pods of jobs deleted.", (double)n->jobs.deleted);
    add_names(to, n);
    if (n->has_journal)
        add_journal(to, &n->journal);
    if (n->has_webhook)
        add_webhook(to, &n->webhook);
    add_watches(to, n);
}

static int64_t admit(void *ctx, struct http_request *x)
{
    (void)ctx;
    (void)x;
    return 0;
}

static void answer(struct http_request *x, int status, const char *text)
{
    http_answer(x, status, NULL, "text/plain; charset=utf-8", text, strlen(text));
}

/* A failing journal does not affect readiness, but its error is shown. */
static void ready_answer(const struct kube_monitor *m, struct http_request *x)
{
    CLEANUP(str) struct str text = {0};
    struct kube_numbers n = {0};
    bool ready = m->ready(m->ctx);
    str_add(&text, ready ? "ok\n" : "the cluster has not been loaded yet\n");
    if (ready) {
        m->numbers(m->ctx, &n);
        if (n.has_journal && *n.journal.trouble)
            str_addf(&text, "the journal is not being written: %s\n", n.journal.trouble);
    }
    answer(x, ready ? 200 : 503, text.at);
}

static void handle(void *ctx, struct http_request *x)
{
    struct kube_monitor *m = ctx;
    const char *path = http_path(x);
    if (strcmp(http_method(x), "GET") != 0) {
        answer(x, 405, "method not allowed; use GET\n");
    } else if (strcmp(path, "/healthz") == 0 || strcmp(path, "/livez") == 0) {
        answer(x, 200, "ok\n");
    } else if (strcmp(path, "/readyz") == 0) {
        ready_answer(m, x);
    } else if (strcmp(path, "/metrics") == 0) {
        CLEANUP(str) struct str text = {0};
        struct kube_numbers n = {0};
        m->numbers(m->ctx, &n);
        metrics_write(&n, &text);
        http_answer(x, 200, NULL, "text/plain; version=0.0.4", text.at, text.len);
    } else {
        answer(x, 404, "not found; the paths are /healthz, /readyz and /metrics\n");
    }
}

int kube_monitor_new(struct loop *l, const char *listen, bool (*ready)(void *ctx),
                     void (*numbers)(void *ctx, struct kube_numbers *ret), void *ctx, struct kube_monitor **ret,
                     struct berth_err *err)
{
    char host[LISTEN_HOST_MAX];
    uint16_t port;
    int rc = listen_parse(listen, PORT_DEFAULT, host, &port, err);
    if (rc < 0)
        return err_prefix(err, "--listen");
    struct kube_monitor *m = mem_zalloc(sizeof *m);
    *m = (struct kube_monitor){.ready = ready, .numbers = numbers, .ctx = ctx};
    rc = http_server_new(
        l,
        &(struct http_config){
            .address = host, .port = port, .connections_max = 64, .admit = admit, .handle = handle, .ctx = m},
        &m->http, err);
    if (rc < 0) {
        mem_free(m);
        return rc;
    }
    *ret = m;
    return 0;
}

void kube_monitor_free(struct kube_monitor *m)
{
    if (!m)
        return;
    http_server_free(m->http);
    mem_free(m);
}
