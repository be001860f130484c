#include "kube/run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "berth.h"
#include "kube/client/clock.h"
#include "kube/client/lease.h"
#include "kube/monitor.h"
#include "kube/sched/scheduler.h"
#include "kube/tenant/tenant_feed.h"
#include "kube/webhook/webhook.h"

/* Tenants and jobs count as one each. */
enum { SOURCES = CACHE_POD_GROUP + 1, SOURCES_KNOWN = SOURCES + 2 };
#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (24 * 3600 * SECOND_NS)
enum { EVENTS_MAX = 65536 }; /* length of the event queue: a burst of pods has one event each */

struct watch_source {
    struct kube_process *process;
    enum cache_kind kind;
    struct kube_watch *watch;
};

struct kube_process {
    const struct kube_options *options;
    const struct log *log;
    FILE *out;
    struct loop *loop;
    struct kube_config server;
    struct kube_api *api;
    struct kube_events *events;
    struct tenants *tenants;
    struct tenant_feed *feed;
    struct cache *cache;
    struct kube_jobs *jobs;
    struct kube_journal *journal; /* NULL: no journal */
    struct watch_source sources[SOURCES];
    size_t synced;
    struct kube_lease *lease; /* NULL with --no-lease, and until everything is known */
    struct kube_scheduler *scheduler;
    struct kube_monitor *monitor;
    struct kube_webhook *webhook; /* NULL: not configured */
    char *identity;
    bool stopping;
};

static void log_event(struct kube_process *p, enum log_level level, const char *event, const char *text)
{
    log_write(p->log, kube_wall_ns(), level, event, LOG_TEXT("text", text));
}

/* Prints a word on a line of standard output, for the parent process. */
static void announce(struct kube_process *p, const char *word)
{
    (void)fprintf(p->out, "%s\n", word);
    (void)fflush(p->out);
}

/* ---- leadership ------------------------------------------------------------------------------------------------- */

static bool leads(void *ctx)
{
    const struct kube_process *p = ctx;
    if (p->stopping || p->synced < SOURCES_KNOWN)
        return false;
    return p->options->no_lease || (p->lease && kube_lease_leads(p->lease));
}

static void on_began(void *ctx)
{
    struct kube_process *p = ctx;
    log_event(p, LEVEL_INFO, "lease.began", p->identity);
    announce(p, "leads");
    kube_scheduler_wake(p->scheduler);
}

static void on_ended(void *ctx)
{
    struct kube_process *p = ctx;
    log_event(p, p->stopping ? LEVEL_INFO : LEVEL_WARN, "lease.ended", kube_lease_holder(p->lease));
    if (p->journal)
        kube_journal_close(p->journal); /* the new leader may use the same folder */
}

static void on_lease_trouble(void *ctx, const char *text)
{
    log_event(ctx, LEVEL_WARN, "lease.trouble", text);
}

static void lease_begin(struct kube_process *p)
{
    const char *slash = strchr(p->options->lease, '/');
    CLEANUP(str) struct str namespace = {0};
    str_add_bytes(&namespace, p->options->lease, (size_t)(slash - p->options->lease));
    p->lease = kube_lease_new(&(struct kube_lease_config){.api = p->api,
                                                          .loop = p->loop,
                                                          .namespace = namespace.at,
                                                          .name = slash + 1,
                                                          .identity = p->identity,
                                                          .duration_s = p->options->lease_duration_ns / SECOND_NS,
                                                          .deadline_ns = p->options->renew_deadline_ns,
                                                          .retry_ns = p->options->retry_period_ns,
                                                          .began = on_began,
                                                          .ended = on_ended,
                                                          .trouble = on_lease_trouble,
                                                          .ctx = p});
}

/* ---- watches ---------------------------------------------------------------------------------------------------- */

static void on_put(void *ctx, const struct kube_object *o)
{
    struct watch_source *s = ctx;
    cache_object_put(s->process->cache, s->kind, o);
}

static void on_drop(void *ctx, const struct kube_object *o)
{
    struct watch_source *s = ctx;
    cache_object_drop(s->process->cache, s->kind, o);
}

/* Counts one more source as known, or as known to be absent. */
static void source_done(struct kube_process *p)
{
    if (++p->synced < SOURCES_KNOWN)
        return;
    announce(p, "ready");
    if (p->options->no_lease) {
        announce(p, "leads");
        kube_scheduler_wake(p->scheduler);
    } else {
        lease_begin(p);
    }
}

static void on_synced(void *ctx)
{
    const struct watch_source *s = ctx;
    source_done(s->process);
}

static void on_watch_trouble(void *ctx, const char *text)
{
    const struct watch_source *s = ctx;
    log_write(s->process->log, kube_wall_ns(), LEVEL_WARN, "watch.trouble",
              LOG_TEXT("what", cache_sources[s->kind].name), LOG_TEXT("text", text));
}

/* Optional resources, which an older role may not allow, and the consequence: they count as empty. All others are
 * required. */
static const char *const consequence_without[SOURCES] = {
    [CACHE_ATTACHMENT] = "attached volumes count on their node only while a pod uses them",
    [CACHE_CSI_DRIVER] = "volumes are provisioned without regard to free storage",
    [CACHE_STORAGE_CAPACITY] = "drivers that report storage capacity provision no volumes",
    [CACHE_LIMIT_RANGE] = "jobs are checked without the default requests of their pods",
    [CACHE_RUNTIME_CLASS] = "jobs are checked without the overhead of their pods",
    [CACHE_POD_GROUP] = "pods of a group wait until it appears",
};

/* Reports a denied resource once; the watch retries each minute. Pod groups are absent from most API servers and are
 * not reported. */
static void on_watch_refused(void *ctx, int status, const char *text)
{
    const struct watch_source *s = ctx;
    const struct cache_source *of = &cache_sources[s->kind];
    CLEANUP(str) struct str said = {0};
    if (s->kind == CACHE_POD_GROUP && status == 404)
        return;
    str_addf(
        &said,
        "berth-kube may not list and watch %s (%s): it continues as if there were none, and %s. Apply the role of this "
        "version (kubectl apply -f packaging/kubernetes/rbac.yaml); berth-kube retries every minute. %s",
        of->name, strrchr(of->path, '/') + 1, consequence_without[s->kind], text);
    log_write(s->process->log, kube_wall_ns(), LEVEL_WARN, "watch.refused", LOG_TEXT("what", of->name),
              LOG_TEXT("text", said.at));
}

static void watch_begin(struct watch_source *s)
{
    const struct kube_process *p = s->process;
    s->watch =
        kube_watch_new(&(struct kube_watch_config){.api = p->api,
                                                   .loop = p->loop,
                                                   .path = cache_sources[s->kind].path,
                                                   .format = KUBE_PROTOBUF,
                                                   .put = on_put,
                                                   .drop = on_drop,
                                                   .synced = on_synced,
                                                   .trouble = on_watch_trouble,
                                                   .refused = consequence_without[s->kind] ? on_watch_refused : NULL,
                                                   .ctx = s});
}

static void watches_begin(struct kube_process *p)
{
    for (size_t i = 0; i < SOURCES; i++) {
        p->sources[i] = (struct watch_source){.process = p, .kind = (enum cache_kind)i};
        watch_begin(&p->sources[i]);
    }
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static void on_changed(void *ctx)
{
    struct kube_process *p = ctx;
    if (p->scheduler)
        kube_scheduler_wake(p->scheduler);
}

static void on_tenants_synced(void *ctx)
{
    source_done(ctx);
}

static void on_jobs_synced(void *ctx)
{
    source_done(ctx);
}

static const char *on_claim(void *ctx, const char *role, struct arena *arena, struct berth_workload *w)
{
    struct kube_process *p = ctx;
    return kube_jobs_claim(p->jobs, role, arena, w);
}

static void on_task(void *ctx, const struct cache_task_view *task)
{
    struct kube_process *p = ctx;
    kube_jobs_task(p->jobs, task);
}

static void on_input(void *ctx, const struct cache_change *in)
{
    struct kube_process *p = ctx;
    if (p->journal)
        kube_journal_input(p->journal, in);
}

static void on_claimed(void *ctx, const char *role, const struct job_claim *claim)
{
    struct kube_process *p = ctx;
    if (p->journal)
        kube_journal_claim(p->journal, role, claim);
}

static void journal_start(struct kube_process *p)
{
    const struct kube_options *o = p->options;
    if (o->journal)
        p->journal = kube_journal_new(&(struct kube_journal_config){.loop = p->loop,
                                                                    .log = p->log,
                                                                    .dir = o->journal,
                                                                    .export_dir = o->journal_export,
                                                                    .keep_ns = (int64_t)o->journal_days * DAY_NS,
                                                                    .keep_bytes = o->journal_size << 20,
                                                                    .cache = p->cache,
                                                                    .tenants = p->tenants,
                                                                    .profile = o->profile,
                                                                    .schedulers = o->profiles.names,
                                                                    .schedulers_len = o->profiles.len,
                                                                    .profiles = o->profiles.profiles,
                                                                    .identity = p->identity});
}

static void on_object_trouble(void *ctx, const char *text)
{
    log_event(ctx, LEVEL_WARN, "object.trouble", text);
}

static void on_released(void *ctx)
{
    struct kube_process *p = ctx;
    loop_stop(p->loop);
}

static void on_stop(void *ctx)
{
    struct kube_process *p = ctx;
    if (p->stopping)
        return;
    p->stopping = true;
    if (p->lease)
        kube_lease_release(p->lease, on_released, p);
    else
        loop_stop(p->loop);
}

static void on_hang_up(void *ctx)
{
    (void)ctx;
}

static char *identity_make(const char *given)
{
    CLEANUP(str) struct str text = {0};
    char host[256] = "";
    uint32_t salt = 0;
    if (given)
        return mem_strdup(given);
    (void)gethostname(host, sizeof host - 1);
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
        salt = (uint32_t)getpid(); /* only for a distinct name: two processes on a host still differ */
    str_addf(&text, "%s_%08x", host, salt);
    return str_take(&text);
}

static int process_begin(struct kube_process *p, struct berth_err *err)
{
    const struct kube_options *o = p->options;
    const struct kube_profiles *profiles = &o->profiles;
    p->identity = identity_make(o->identity);
    int rc =
        kube_config_load(&(struct kube_config_where){.path = o->kubeconfig, .context = o->context}, &p->server, err);
    if (rc == 0)
        rc = loop_new(&p->loop, err);
    if (rc == 0)
        rc = loop_service_signals(p->loop, on_stop, on_hang_up, p, err);
    if (rc == 0)
        rc = kube_api_new(
            p->loop,
            &(struct kube_api_config){.server = &p->server, .agent = "berth-kube", .connections_max = o->connections},
            &p->api, err);
    if (rc < 0)
        return rc;
    if (o->events)
        p->events = kube_events_new(&(struct kube_events_config){.api = p->api,
                                                                 .loop = p->loop,
                                                                 .controller = profiles->names[0],
                                                                 .instance = p->identity,
                                                                 .queue_max = EVENTS_MAX});
    p->tenants = tenants_new(on_changed, p);
    p->cache = cache_new(&(struct cache_config){.tenants = p->tenants,
                                                .schedulers = profiles->names,
                                                .schedulers_len = profiles->len,
                                                .profiles = profiles->profiles,
                                                .changed = on_changed,
                                                .trouble = on_object_trouble,
                                                .ctx = p,
                                                .claim = on_claim,
                                                .task = on_task,
                                                .input = on_input});
    journal_start(p);
    p->jobs = kube_jobs_new(&(struct kube_jobs_config){.api = p->api,
                                                       .loop = p->loop,
                                                       .cache = p->cache,
                                                       .tenants = p->tenants,
                                                       .events = p->events,
                                                       .log = p->log,
                                                       .schedulers = profiles->names,
                                                       .schedulers_len = profiles->len,
                                                       .leads = leads,
                                                       .synced = on_jobs_synced,
                                                       .changed = on_changed,
                                                       .claimed = on_claimed,
                                                       .ctx = p});
    p->scheduler = kube_scheduler_new(&(struct kube_scheduler_config){.loop = p->loop,
                                                                      .api = p->api,
                                                                      .cache = p->cache,
                                                                      .tenants = p->tenants,
                                                                      .jobs = p->jobs,
                                                                      .events = p->events,
                                                                      .journal = p->journal,
                                                                      .log = p->log,
                                                                      .profiles = profiles,
                                                                      .leads = leads,
                                                                      .ctx = p});
    log_write(p->log, kube_wall_ns(), LEVEL_INFO, "start", LOG_TEXT("server", p->server.server),
              LOG_TEXT("as", p->server.origin), LOG_TEXT("identity", p->identity));
    watches_begin(p);
    p->feed = tenant_feed_new(&(struct tenant_feed_config){.api = p->api,
                                                           .loop = p->loop,
                                                           .tenants = p->tenants,
                                                           .cache = p->cache,
                                                           .leads = leads,
                                                           .synced = on_tenants_synced,
                                                           .trouble = on_object_trouble,
                                                           .ctx = p});
    return 0;
}

static void process_end(struct kube_process *p)
{
    kube_webhook_free(p->webhook);
    kube_monitor_free(p->monitor);
    kube_lease_free(p->lease);
    kube_scheduler_free(p->scheduler);
    p->scheduler = NULL;
    kube_journal_free(p->journal);
    p->journal = NULL;
    kube_jobs_free(p->jobs);
    for (size_t i = 0; i < SOURCES; i++)
        kube_watch_free(p->sources[i].watch);
    tenant_feed_free(p->feed);
    kube_events_free(p->events);
    cache_free(p->cache);
    tenants_free(p->tenants);
    kube_api_free(p->api);
    loop_free(p->loop);
    kube_config_done(&p->server);
    mem_free(p->identity);
}

static bool is_ready(void *ctx)
{
    const struct kube_process *p = ctx;
    return p->synced == SOURCES_KNOWN;
}

/* Collects the numbers of /metrics. */
static void metrics(void *ctx, struct kube_numbers *ret)
{
    const struct kube_process *p = ctx;
    ret->scheduler = kube_scheduler_stats(p->scheduler);
    ret->api = kube_api_stats(p->api);
    ret->events = p->events ? kube_events_stats(p->events) : (struct kube_events_stats){0};
    ret->jobs = kube_jobs_stats(p->jobs);
    ret->has_journal = p->journal != NULL;
    if (p->journal)
        ret->journal = kube_journal_stats(p->journal);
    ret->has_webhook = p->webhook != NULL;
    if (p->webhook)
        ret->webhook = kube_webhook_stats(p->webhook);
    ret->leads = leads(ctx);
    ret->profiles = &p->options->profiles;
    ret->of = p->scheduler;
    for (size_t i = 0; i < CACHE_KINDS; i++) {
        ret->watches[i] = kube_watch_stats(p->sources[i].watch);
        ret->objects[i] = kube_watch_len(p->sources[i].watch);
    }
}

static int webhook_begin(struct kube_process *p, struct berth_err *err)
{
    const struct kube_options *o = p->options;
    return kube_webhook_new(
        &(struct kube_webhook_config){
            .loop = p->loop,
            .listen = o->webhook,
            .cert_path = o->webhook_cert,
            .key_path = o->webhook_key,
            .admission = {.cache = p->cache,
                          .tenants = p->tenants,
                          .ready = is_ready,
                          .ctx = p,
                          .deny_unchecked = o->deny_unchecked},
            .api = p->api,
            .log = p->log
    },
        &p->webhook, err);
}

int kube_run(const struct kube_options *options, FILE *out, const struct log *log, struct berth_err *err)
{
    struct kube_process p = {.options = options, .out = out, .log = log};
    int rc = process_begin(&p, err);
    if (rc == 0 && options->listen)
        rc = kube_monitor_new(p.loop, options->listen, is_ready, metrics, &p, &p.monitor, err);
    if (rc == 0 && options->webhook)
        rc = webhook_begin(&p, err);
    if (rc == 0)
        rc = loop_run(p.loop, err);
    process_end(&p);
    return rc;
}
