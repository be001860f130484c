#include "kube/kubectl/plugin_load.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/client/clock.h"
#include "kube/job/job_controller.h"
#include "kube/tenant/tenant_feed.h"

#define PATIENCE_NS (INT64_C(60) * 1000000000) /* for the whole listing */
enum { TRIES = 3, SOURCES = CACHE_POD_GROUP + 1 };

/* ---- single requests -------------------------------------------------------------------------------------------- */

int plugin_link_open(const char *kubeconfig, const char *context, struct plugin_link *ret, struct berth_err *err)
{
    struct plugin_link link = {0};
    int rc = kube_config_load(&(struct kube_config_where){.path = kubeconfig, .context = context}, &link.server, err);
    if (rc < 0)
        return rc;
    *ret = link; /* the configuration must not move from here on: kube_api keeps a pointer to it */
    rc = loop_new(&ret->loop, err);
    if (rc == 0)
        rc = kube_api_new(ret->loop, &(struct kube_api_config){.server = &ret->server, .agent = "kubectl-berth"},
                          &ret->api, err);
    if (rc < 0)
        plugin_link_close(ret);
    return rc;
}

void plugin_link_close(struct plugin_link *link)
{
    kube_api_free(link->api);
    loop_free(link->loop);
    kube_config_done(&link->server);
    *link = (struct plugin_link){0};
}

struct plugin_answer {
    bool done;
    int code;
    json_t *json;
    struct berth_err *err;
};

static void on_answer(void *ctx, const struct kube_answer *from)
{
    struct plugin_answer *a = ctx;
    a->done = true;
    a->code = from->code;
    if (from->code < 0) {
        (void)err_set(a->err, -from->code, "%s", from->text);
        return;
    }
    a->json = json_loadb(from->body, from->len, 0, NULL);
    if (!a->json)
        a->code = err_set(a->err, EPROTO, "the API server's answer is not JSON");
}

int plugin_get(struct plugin_link *link, const char *path, json_t **ret, struct berth_err *err)
{
    struct plugin_answer a = {.err = err};
    int rc = 0;
    (void)kube_start(link->api, &(struct kube_request){.method = "GET",
                                                       .path = path,
                                                       .rank = KUBE_URGENT,
                                                       .harmless = true,
                                                       .tries_max = TRIES,
                                                       .done = on_answer,
                                                       .ctx = &a});
    while (!a.done && rc == 0)
        rc = loop_once(link->loop, -1, err);
    if (rc < 0)
        return rc;
    if (a.code == 0)
        *ret = a.json;
    return a.code;
}

/* ---- the listing ------------------------------------------------------------------------------------------------ */

struct kind_source {
    struct plugin_loaded *l;
    enum cache_kind kind;
    struct kube_watch *watch;
};

struct plugin_loaded {
    struct plugin_link *link;
    struct tenants *tenants;
    struct tenant_feed *feed;
    struct cache *cache;
    struct kube_jobs *jobs; /* NULL: not requested */
    struct kind_source sources[SOURCES];
    size_t left;        /* number of listings to come; tenants and jobs count one each */
    struct str missing; /* resources that may not be listed: "nodes, pods" */
    struct str trouble; /* last error */
    int code;           /* error code of a listing that failed otherwise */
};

static void on_put(void *ctx, const struct kube_object *o)
{
    struct kind_source *s = ctx;
    cache_object_put(s->l->cache, s->kind, o);
}

static void on_drop(void *ctx, const struct kube_object *o)
{
    struct kind_source *s = ctx;
    cache_object_drop(s->l->cache, s->kind, o);
}

static void on_synced(void *ctx)
{
    struct kind_source *s = ctx;
    s->l->left--;
}

static void on_trouble(void *ctx, const char *text)
{
    struct kind_source *s = ctx;
    str_clear(&s->l->trouble);
    str_addf(&s->l->trouble, "%s: %s", cache_sources[s->kind].name, text);
}

static void on_looked(void *ctx, const struct kube_answer *answer)
{
    struct kind_source *s = ctx;
    struct plugin_loaded *l = s->l;
    if (answer->code == 0) {
        s->watch = kube_watch_new(&(struct kube_watch_config){.api = l->link->api,
                                                              .loop = l->link->loop,
                                                              .path = cache_sources[s->kind].path,
                                                              .format = KUBE_PROTOBUF,
                                                              .put = on_put,
                                                              .drop = on_drop,
                                                              .synced = on_synced,
                                                              .trouble = on_trouble,
                                                              .ctx = s});
        return;
    }
    l->left--;
    if (s->kind == CACHE_POD_GROUP)
        return; /* optional: not every API server has them */
    if (answer->code == -EACCES) {
        str_addf(&l->missing, "%s%s", l->missing.len ? ", " : "", cache_sources[s->kind].name);
        return;
    }
    on_trouble(s, answer->text);
    l->code = answer->code;
}

static void start_lookup(struct kind_source *s)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s?limit=1", cache_sources[s->kind].path);
    (void)kube_start(s->l->link->api, &(struct kube_request){.method = "GET",
                                                             .path = path.at,
                                                             .rank = KUBE_URGENT,
                                                             .harmless = true,
                                                             .tries_max = TRIES,
                                                             .done = on_looked,
                                                             .ctx = s});
}

static const char *on_claim(void *ctx, const char *role, struct arena *arena, struct berth_workload *w)
{
    const struct plugin_loaded *l = ctx;
    return kube_jobs_claim(l->jobs, role, arena, w);
}

static void on_task(void *ctx, const struct cache_task_view *task)
{
    const struct plugin_loaded *l = ctx;
    kube_jobs_task(l->jobs, task);
}

/* Called for tenants, and for jobs. */
static void on_known(void *ctx)
{
    struct plugin_loaded *l = ctx;
    l->left--;
}

static void on_update(void *ctx)
{
    (void)ctx;
}

/* A malformed object, or custom resources that may not be read: the explanation goes on without them. */
static void on_object(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static struct plugin_loaded *begin(struct plugin_link *link, const struct kube_profiles *profiles, bool jobs)
{
    static const struct log silent = {.level = LEVEL_ERROR};
    struct plugin_loaded *l = mem_zalloc(sizeof *l);
    l->link = link;
    l->left = SOURCES + 1 + jobs;
    l->tenants = tenants_new(on_update, l);
    l->cache = cache_new(&(struct cache_config){.tenants = l->tenants,
                                                .schedulers = profiles->names,
                                                .schedulers_len = profiles->len,
                                                .profiles = profiles->profiles,
                                                .changed = on_update,
                                                .trouble = on_object,
                                                .ctx = l,
                                                .claim = jobs ? on_claim : NULL,
                                                .task = jobs ? on_task : NULL});
    if (jobs)
        l->jobs = kube_jobs_new(&(struct kube_jobs_config){.api = link->api,
                                                           .loop = link->loop,
                                                           .cache = l->cache,
                                                           .tenants = l->tenants,
                                                           .log = &silent,
                                                           .schedulers = profiles->names,
                                                           .schedulers_len = profiles->len,
                                                           .synced = on_known,
                                                           .changed = on_update,
                                                           .ctx = l});
    for (size_t i = 0; i < SOURCES; i++) {
        l->sources[i] = (struct kind_source){.l = l, .kind = (enum cache_kind)i};
        if (cache_sources[i].admission_only)
            l->left--;
        else
            start_lookup(&l->sources[i]);
    }
    l->feed = tenant_feed_new(&(struct tenant_feed_config){.api = link->api,
                                                           .loop = link->loop,
                                                           .tenants = l->tenants,
                                                           .cache = l->cache,
                                                           .leads = never,
                                                           .synced = on_known,
                                                           .trouble = on_object,
                                                           .ctx = l});
    return l;
}

static int outcome(const struct plugin_loaded *l, struct berth_err *err)
{
    if (l->missing.len)
        return err_set(err, EACCES, "your user may not list %s; ask an administrator for the role berth-viewer",
                       l->missing.at);
    if (l->code)
        return err_set(err, -l->code, "%s", l->trouble.at);
    if (l->left)
        return err_set(err, ETIMEDOUT, "reading the objects from the API server took longer than a minute%s%s",
                       l->trouble.len ? "; " : "", str_text(&l->trouble));
    return 0;
}

int plugin_load(struct plugin_link *link, const struct kube_profiles *profiles, bool jobs, struct plugin_loaded **ret,
                struct berth_err *err)
{
    struct plugin_loaded *l = begin(link, profiles, jobs);
    int64_t until_ns = kube_clock_ns() + PATIENCE_NS;
    int rc = 0;
    while (rc == 0 && l->left && kube_clock_ns() < until_ns)
        rc = loop_once(link->loop, until_ns - kube_clock_ns(), err);
    if (rc == 0)
        rc = outcome(l, err);
    if (rc < 0) {
        plugin_loaded_free(l);
        return rc;
    }
    if (jobs)
        kube_jobs_recompute(l->jobs);
    *ret = l;
    return 0;
}

void plugin_loaded_free(struct plugin_loaded *l)
{
    if (!l)
        return;
    kube_jobs_free(l->jobs);
    for (size_t i = 0; i < SOURCES; i++)
        kube_watch_free(l->sources[i].watch);
    tenant_feed_free(l->feed);
    cache_free(l->cache);
    tenants_free(l->tenants);
    str_done(&l->missing);
    str_done(&l->trouble);
    mem_free(l);
}

struct cache *plugin_loaded_cache(struct plugin_loaded *l)
{
    return l->cache;
}

size_t plugin_loaded_refused(const struct plugin_loaded *l)
{
    return l->jobs ? kube_jobs_stats(l->jobs).refused : 0;
}

struct tenants *plugin_loaded_tenants(struct plugin_loaded *l)
{
    return l->tenants;
}
