#include "kube/tenant/tenant_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/client/clock.h"
#include "kube/client/watch.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"
#include "wire/text/quantity.h"

#define SECOND_NS INT64_C(1000000000)
#define WRITE_NS (2 * SECOND_NS)
#define USAGE_NS (60 * SECOND_NS) /* interval of writing usage that only grows by running work */
enum { SUM_SHARE = 100 };         /* summing up running work takes at most 1/SUM_SHARE of the time */
#define LOOK_NS (10 * SECOND_NS)  /* interval of asking whether the API server has the resources by now */
enum { UNDER_WAY_MAX = 64 };      /* concurrent writes */

static const struct {
    enum kind kind;
    const char *path;
} resources[] = {
    {KIND_GROUP,  "/apis/berth.dev/v1/groups"  },
    {KIND_USER,   "/apis/berth.dev/v1/users"   },
    {KIND_POLICY, "/apis/berth.dev/v1/policies"},
    {KIND_DOMAIN, "/apis/berth.dev/v1/domains" },
    {KIND_QUEUE,  "/apis/berth.dev/v1/queues"  },
};
enum { SOURCES = sizeof resources / sizeof *resources };

/* An object and its status. */
struct feed_object {
    struct tenant_feed *f;
    size_t source;
    char *name;
    int64_t generation;
    uint64_t version;       /* resourceVersion last seen or written: usage is written only on top of it */
    json_t *status;         /* last seen or written, the latter without usage */
    int64_t usage_at_ns;    /* time of the last usage written, by us or another process */
    int64_t usage_ns;       /* when we last wrote usage, in the loop's clock */
    uint64_t usage_version; /* of the usage records, as written */
    struct kube_call *call; /* NULL: no write in progress */
};

struct feed_source {
    struct tenant_feed *f;
    struct kube_watch *watch;
    struct kube_call *call; /* asks whether the resource exists */
    bool known;             /* listed, or known to be absent or denied */
};

struct tenant_feed {
    struct tenant_feed_config c;
    struct feed_source sources[SOURCES];
    size_t known;
    VEC(struct feed_object *) feed_object; /* in no order */
    struct map by_name;
    size_t under_way;
    size_t next; /* index in `fed` where the last round stopped */
    struct loop_source *timer;
    int64_t look_ns; /* when to ask again for absent resources */
    int64_t sum_ns;  /* not before: next sum of running work */
    bool summed;     /* in this round */
};

/* ---- objects ---------------------------------------------------------------------------------------------------- */

struct feed_object_key {
    size_t source;
    const char *name;
};

static uint64_t name_hash(size_t source, const char *name)
{
    return hash_bytes(name, strlen(name), source + 1);
}

static bool same(const void *ctx, uint32_t value, const void *key)
{
    const struct feed_object *x = ((const struct tenant_feed *)ctx)->feed_object.at[value];
    const struct feed_object_key *k = key;
    return x->source == k->source && strcmp(x->name, k->name) == 0;
}

static uint32_t find(const struct tenant_feed *f, size_t source, const char *name)
{
    struct feed_object_key key = {source, name};
    return map_find(&f->by_name, name_hash(source, name), same, f, &key);
}

static void feed_object_free(struct feed_object *x)
{
    if (x->call) {
        kube_cancel(x->call);
        x->f->under_way--;
    }
    json_decref(x->status);
    mem_free(x->name);
    mem_free(x);
}

static void feed_object_drop(struct tenant_feed *f, uint32_t i)
{
    struct feed_object *x = f->feed_object.at[i], *last = f->feed_object.at[f->feed_object.len - 1];
    map_drop(&f->by_name, name_hash(x->source, x->name), i);
    if (last != x) {
        map_drop(&f->by_name, name_hash(last->source, last->name), (uint32_t)(f->feed_object.len - 1));
        map_add(&f->by_name, name_hash(last->source, last->name), i);
        f->feed_object.at[i] = last;
    }
    f->feed_object.len--;
    feed_object_free(x);
}

/* Takes over usage that an earlier or present leader wrote; usage that we wrote ourselves is not newer. */
static void usage_take_over(struct feed_object *x, const json_t *usage)
{
    int64_t at_ns = 0;
    const json_t *at = json_object_get(usage, "at");
    if (!at || timestamp_parse(at, &at_ns, NULL) < 0 || at_ns <= x->usage_at_ns)
        return;
    x->usage_at_ns = at_ns;
    tenants_usage_restore(x->f->c.tenants, resources[x->source].kind, x->name, usage);
}

static void on_put(void *ctx, const struct kube_object *o)
{
    struct feed_source *s = ctx;
    struct tenant_feed *f = s->f;
    size_t source = (size_t)(s - f->sources);
    uint32_t i = find(f, source, o->name);
    int64_t generation = json_integer_value(json_object_get(json_object_get(o->json, "metadata"), "generation"));
    bool is_first = i == MAP_NONE;
    bool is_new = is_first || f->feed_object.at[i]->generation != generation;
    if (is_first) {
        struct feed_object *made = mem_zalloc(sizeof *made);
        *made = (struct feed_object){.f = f, .source = source, .name = mem_strdup(o->name)};
        i = (uint32_t)f->feed_object.len;
        vec_push(&f->feed_object, made);
        map_add(&f->by_name, name_hash(source, o->name), i);
    }
    struct feed_object *x = f->feed_object.at[i];
    x->generation = generation;
    x->version = o->version > x->version ? o->version : x->version;
    if (!x->call) { /* else the status being written counts */
        json_decref(x->status);
        x->status = json_incref(json_object_get(o->json, "status"));
    }
    const json_t *before = json_object_get(x->status, "inForce");
    if (is_first && json_is_object(before))
        tenants_restore_in_force(f->c.tenants, resources[source].kind, o->name, before);
    if (is_new)
        (void)tenants_put(f->c.tenants, resources[source].kind, o->name, json_object_get(o->json, "spec"), NULL);
    usage_take_over(x, json_object_get(json_object_get(o->json, "status"), "usage"));
}

static void on_drop(void *ctx, const struct kube_object *o)
{
    struct feed_source *s = ctx;
    size_t source = (size_t)(s - s->f->sources);
    uint32_t i = find(s->f, source, o->name);
    tenants_drop(s->f->c.tenants, resources[source].kind, o->name);
    if (i != MAP_NONE)
        feed_object_drop(s->f, i);
}

/* ---- watches ---------------------------------------------------------------------------------------------------- */

static void feed_source_known(struct feed_source *s)
{
    struct tenant_feed *f = s->f;
    if (s->known)
        return;
    s->known = true;
    if (++f->known == SOURCES)
        f->c.synced(f->c.ctx);
}

static void on_synced(void *ctx)
{
    feed_source_known(ctx);
}

static void on_trouble(void *ctx, const char *text)
{
    const struct feed_source *s = ctx;
    CLEANUP(str) struct str all = {0};
    str_addf(&all, "%s: %s", resources[s - s->f->sources].path, text);
    s->f->c.trouble(s->f->c.ctx, str_text(&all));
}

static void on_looked(void *ctx, const struct kube_answer *answer)
{
    struct feed_source *s = ctx;
    const struct tenant_feed *f = s->f;
    s->call = NULL;
    if (answer->code == 0) {
        s->watch = kube_watch_new(&(struct kube_watch_config){.api = f->c.api,
                                                              .loop = f->c.loop,
                                                              .path = resources[s - f->sources].path,
                                                              .format = KUBE_JSON,
                                                              .put = on_put,
                                                              .drop = on_drop,
                                                              .synced = on_synced,
                                                              .trouble = on_trouble,
                                                              .ctx = s});
        return;
    }
    if (answer->code != -ENOENT && !s->known)
        on_trouble(s, answer->text);
    feed_source_known(s);
}

static void check_source(struct feed_source *s)
{
    CLEANUP(str) struct str path = {0};
    if (s->watch || s->call)
        return;
    str_addf(&path, "%s?limit=1", resources[s - s->f->sources].path);
    s->call = kube_start(
        s->f->c.api,
        &(struct kube_request){
            .method = "GET", .path = path.at, .rank = KUBE_URGENT, .harmless = true, .done = on_looked, .ctx = s});
}

/* ---- status ----------------------------------------------------------------------------------------------------- */

static const json_t *condition_of(const json_t *status)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(status, "conditions"), i, one)
    {
        const char *type = json_string_value(json_object_get(one, "type"));
        if (type && strcmp(type, "Accepted") == 0)
            return one;
    }
    return NULL;
}

/* Returns lastTransitionTime: kept while the status stays the same. */
static const char *since(const struct feed_object *x, const char *status, char buf[static TIMESTAMP_MAX])
{
    const json_t *was = condition_of(x->status);
    const char *before = json_string_value(json_object_get(was, "status"));
    const char *at = json_string_value(json_object_get(was, "lastTransitionTime"));
    if (before && at && strcmp(before, status) == 0)
        return at;
    int64_t now_ns = kube_wall_ns();
    return timestamp_text(now_ns - now_ns % SECOND_NS, buf);
}

static json_t *condition_make(const struct feed_object *x, const struct tenant_view *view)
{
    char buf[TIMESTAMP_MAX];
    CLEANUP(str) struct str message = {0};
    const char *status = view->accepted ? "True" : "False";
    if (view->accepted)
        str_add(&message, "The spec is in force.");
    else
        str_addf(&message, "%s%s", view->why,
                 view->in_force ? ". The last accepted spec stays in force." : ". The spec is not in force.");
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "type", "Accepted", "status", status, "reason",
                     view->accepted ? "Accepted" : "Refused", "message", message.at, "lastTransitionTime",
                     since(x, status, buf), "observedGeneration", (json_int_t)x->generation);
}

static void use_add(json_t *status, const struct tenant_use *use)
{
    char cpu[QUANTITY_TEXT_MAX], memory[QUANTITY_TEXT_MAX], gpu[QUANTITY_TEXT_MAX];
    (void)json_object_set_new(status, "pending", json_integer(use->pending));
    (void)json_object_set_new(status, "running", json_integer(use->running));
    (void)json_object_set_new(status, "used",
                              json_pack("{s:s, s:s, s:s}", "cpu", quantity_print("cpu", use->cpu, cpu), "memory",
                                        quantity_print("memory", use->memory, memory), "gpu",
                                        quantity_print("cpu", use->gpu_milli, gpu)));
}

/* Returns the present status; NULL: the object is unknown. */
static json_t *status_make(const struct feed_object *x)
{
    const struct tenant_feed *f = x->f;
    enum kind kind = resources[x->source].kind;
    struct tenant_view view;
    if (!tenants_view(f->c.tenants, kind, x->name, &view))
        return NULL;
    json_t *status = json_pack("{s:I, s:[o]}", "observedGeneration", (json_int_t)x->generation, "conditions",
                               condition_make(x, &view));
    if (kind == KIND_QUEUE || kind == KIND_GROUP || kind == KIND_USER) {
        struct tenant_use use = tenants_use(cache_last_cluster(f->c.cache), kind, x->name);
        use_add(status, &use);
    } else if (kind == KIND_DOMAIN) {
        (void)json_object_set_new(status, "nodes", json_integer((json_int_t)cache_domain_nodes(f->c.cache, x->name)));
    }
    /* For the next process: the accepted version. */
    if (!view.accepted && view.in_force)
        (void)json_object_set_new(status, "inForce", json_deep_copy(view.in_force));
    else if (json_is_object(json_object_get(x->status, "inForce")))
        (void)json_object_set_new(status, "inForce", json_null());
    return status;
}

/* Sums up running work as of now, truncated to seconds as in written times. False: too soon after the last sum. */
static bool sum_up(struct tenant_feed *f)
{
    int64_t begin_ns = kube_clock_ns(), now_ns = kube_wall_ns();
    if (f->summed)
        return true;
    if (loop_now_ns(f->c.loop) < f->sum_ns)
        return false;
    (void)cache_cluster(f->c.cache); /* updates the payers of running pods */
    tenants_usage_sum(f->c.tenants, now_ns - now_ns % SECOND_NS, cache_running_pods, f->c.cache);
    f->sum_ns = loop_now_ns(f->c.loop) + SUM_SHARE * (kube_clock_ns() - begin_ns);
    f->summed = true;
    return true;
}

static bool differs(const json_t *was, const json_t *is)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)is, key, value)
    {
        if (!json_equal(json_object_get(was, key), value))
            return true;
    }
    return false;
}

/* Usage is due when work has ended, together with any other change, and from time to time while work runs. */
static bool usage_due(const struct feed_object *x, const json_t *status, bool more)
{
    const json_t *running = json_object_get(status, "running");
    if (!running)
        return false;
    if (tenants_usage_version(x->f->c.tenants, resources[x->source].kind, x->name) != x->usage_version)
        return true;
    return json_integer_value(running) > 0 && (more || loop_now_ns(x->f->c.loop) - x->usage_ns >= USAGE_NS);
}

/* Adds the usage to the patch; false: not due. */
static bool usage_add(struct feed_object *x, const json_t *status, bool more, json_t *patch)
{
    char version[24];
    struct tenant_feed *f = x->f;
    enum kind kind = resources[x->source].kind;
    json_t *usage = usage_due(x, status, more) && sum_up(f) ? tenants_usage(f->c.tenants, kind, x->name) : NULL;
    if (!usage)
        return false;
    x->usage_version = tenants_usage_version(f->c.tenants, kind, x->name);
    x->usage_ns = loop_now_ns(f->c.loop);
    (void)timestamp_parse(json_object_get(usage, "at"), &x->usage_at_ns, NULL);
    (void)json_object_set_new(json_object_get(patch, "status"), "usage", usage);
    /* Two processes that both believe they lead must not overwrite each other's usage. */
    (void)json_object_set_new(patch, "metadata", json_pack("{s:s}", "resourceVersion", str_u64(x->version, version)));
    return true;
}

static void on_written(void *ctx, const struct kube_answer *answer)
{
    struct feed_object *x = ctx;
    x->call = NULL;
    x->f->under_way--;
    if (answer->code == 0)
        return;
    json_decref(x->status); /* its present content is unknown: written again */
    x->status = NULL;
    x->usage_version = UINT64_MAX;
    if (answer->code != -ENOENT && answer->code != -EBUSY) /* deleted, or changed by another process */
        on_trouble(&x->f->sources[x->source], answer->text);
}

static void status_write(struct feed_object *x)
{
    CLEANUP(json) json_t *status = status_make(x);
    bool more = status && differs(x->status, status);
    CLEANUP(json) json_t *patch = json_pack("{s:o}", "status", more ? json_copy(status) : json_object());
    if (!status || (!usage_add(x, status, more, patch) && !more))
        return;
    CLEANUP(str) struct str path = {0};
    char *body = json_dumps(patch, JSON_COMPACT);
    str_addf(&path, "%s/%s/status", resources[x->source].path, x->name);
    json_decref(x->status);
    x->status = json_incref(status);
    x->f->under_way++;
    x->call = kube_start(x->f->c.api, &(struct kube_request){.method = "PATCH",
                                                             .path = path.at,
                                                             .patch = KUBE_MERGE_PATCH,
                                                             .body = body,
                                                             .body_len = strlen(body),
                                                             .rank = KUBE_LATE,
                                                             .harmless = true,
                                                             .done = on_written,
                                                             .ctx = x});
    free(body);
}

/* Continues where the last round stopped, so that objects that change all the time do not starve the others. */
static void statuses_write(struct tenant_feed *f)
{
    for (size_t i = 0; i < f->feed_object.len && f->under_way < UNDER_WAY_MAX; i++) {
        struct feed_object *x = f->feed_object.at[f->next % f->feed_object.len];
        f->next = f->next % f->feed_object.len + 1;
        if (!x->call)
            status_write(x);
    }
}

static void on_time(void *ctx)
{
    struct tenant_feed *f = ctx;
    int64_t now_ns = loop_now_ns(f->c.loop);
    loop_timer_set(f->timer, now_ns + f->c.write_ns);
    if (now_ns >= f->look_ns) {
        f->look_ns = now_ns + LOOK_NS;
        for (size_t i = 0; i < SOURCES; i++)
            check_source(&f->sources[i]);
    }
    if (!f->c.leads(f->c.ctx))
        return;
    (void)tenants_take_changes(f->c.tenants);
    f->summed = false;
    statuses_write(f);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static int64_t clock_while_leading(void *ctx)
{
    const struct tenant_feed *f = ctx;
    return f->c.leads(f->c.ctx) ? kube_wall_ns() : 0;
}

struct tenant_feed *tenant_feed_new(const struct tenant_feed_config *config)
{
    struct tenant_feed *f = mem_zalloc(sizeof *f);
    f->c = *config;
    f->c.write_ns = config->write_ns ? config->write_ns : WRITE_NS;
    f->timer = loop_timer_new(config->loop, on_time, f);
    for (size_t i = 0; i < SOURCES; i++)
        f->sources[i].f = f;
    tenants_record_usage(f->c.tenants, clock_while_leading, f);
    on_time(f);
    return f;
}

void tenant_feed_free(struct tenant_feed *f)
{
    if (!f)
        return;
    tenants_record_usage(f->c.tenants, NULL, NULL);
    loop_source_free(f->timer);
    for (size_t i = 0; i < SOURCES; i++) {
        if (f->sources[i].call)
            kube_cancel(f->sources[i].call);
        kube_watch_free(f->sources[i].watch);
    }
    for (size_t i = 0; i < f->feed_object.len; i++)
        feed_object_free(f->feed_object.at[i]);
    vec_done(&f->feed_object);
    map_done(&f->by_name);
    mem_free(f);
}
