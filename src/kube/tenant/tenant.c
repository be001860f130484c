#include "kube/tenant/tenant.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "control/job/job.h"
#include "control/state/sync.h"
#include "control/system/settings_table.h"
#include "control/tenant/admission.h"
#include "kube/tenant/tenant_internal.h"
#include "wire/text/document.h"

/* The policy in force for queues that name none; without it, first come first served. */
#define POLICY_DEFAULT "default"
/* Charges of resources for fair shares: the daemon's, plus the GPU resource names of Kubernetes (tenant_gpu_at). */
#define CHARGES "cpu=1,gpu=10,memory=0.25,nvidia.com/gpu=10,amd.com/gpu=10,gpu.intel.com/i915=10,gpu.intel.com/xe=10"

/* ---- objects ---------------------------------------------------------------------------------------------------- */

struct tenant_key {
    enum kind kind;
    const char *name;
};

static uint64_t key_hash(enum kind kind, const char *name)
{
    return hash_bytes(name, strlen(name), kind + 1u);
}

static bool same(const void *ctx, uint32_t value, const void *key)
{
    const struct tenant *e = &((const struct tenants *)ctx)->at.at[value];
    const struct tenant_key *k = key;
    return e->kind == k->kind && strcmp(e->name, k->name) == 0;
}

uint32_t tenant_find(const struct tenants *t, enum kind kind, const char *name)
{
    struct tenant_key key = {kind, name};
    return map_find(&t->by_name, key_hash(kind, name), same, t, &key);
}

static uint32_t find_or_add(struct tenants *t, enum kind kind, const char *name)
{
    uint32_t i = tenant_find(t, kind, name);
    if (i != MAP_NONE)
        return i;
    if (t->free.len) {
        i = t->free.at[--t->free.len];
    } else {
        i = (uint32_t)t->at.len;
        vec_push(&t->at, (struct tenant){0});
    }
    t->at.at[i] = (struct tenant){.kind = kind, .name = mem_strdup(name)};
    map_add(&t->by_name, key_hash(kind, name), i);
    return i;
}

static void tenant_clear(struct tenant *e)
{
    mem_free(e->name);
    mem_free(e->why);
    json_decref(e->spec);
    json_decref(e->in_force);
    json_decref(e->recalled);
    tenant_past_clear(e);
    *e = (struct tenant){0};
}

/* ---- the state -------------------------------------------------------------------------------------------------- */

int tenant_state(struct tenants *t, enum kind kind, const char *name, const json_t *doc, struct berth_err *err)
{
    char key[OBJECT_KEY_MAX];
    char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
    t->revision++;
    struct store_event event = {
        .key = object_key(kind, name, key),
        .value = {text, text ? strlen(text) : 0},
        .gone = !doc,
        .created = t->revision,
        .revision = t->revision,
    };
    int rc = state_apply(t->state, &event, err);
    free(text);
    return rc;
}

static void note(struct tenants *t, enum kind kind, const char *name)
{
    vec_push(&t->unapplied, ((struct unapplied_object){kind, mem_strdup(name)}));
    t->unsettled = true;
    t->group_namespaces_old = t->group_namespaces_old || kind == KIND_GROUP;
    if (t->changed)
        t->changed(t->ctx);
}

static int enforce(struct tenants *t, struct tenant *e, json_t *spec, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = tenant_doc(e->kind, e->name, spec);
    int rc = tenant_check(t->state, e->kind, e->name, doc, err);
    if (rc == 0)
        rc = tenant_state(t, e->kind, e->name, doc, err);
    if (rc < 0)
        return rc;
    json_decref(e->in_force);
    e->in_force = json_incref(spec);
    note(t, e->kind, e->name);
    return 0;
}

/* Puts the object's spec in force, or records why not. */
static int accept_or_reject(struct tenants *t, uint32_t i, struct berth_err *err)
{
    struct tenant *e = &t->at.at[i];
    int rc = enforce(t, e, e->spec, err);
    mem_free(e->why);
    e->why = rc < 0 ? mem_strdup(err->text) : NULL;
    struct berth_err own = {0};
    if (rc < 0 && !e->in_force && e->recalled)
        (void)enforce(t, e, e->recalled, &own);
    return rc;
}

/* Checks an object in force again: something it names may be gone. */
static void recheck_in_force(struct tenants *t, uint32_t i)
{
    struct tenant *e = &t->at.at[i];
    struct berth_err err = {0};
    CLEANUP(json) json_t *doc = tenant_doc(e->kind, e->name, e->spec);
    if (tenant_check(t->state, e->kind, e->name, doc, &err) < 0)
        e->why = mem_strdup(err.text);
}

/* Checks rejected objects until no further one is accepted: each may be what another waits for. */
static void recheck_rejected(struct tenants *t)
{
    if (t->lost)
        for (uint32_t i = 0; i < t->at.len; i++)
            if (t->at.at[i].name && !t->at.at[i].why)
                recheck_in_force(t, i);
    t->lost = false;
    while (t->unsettled) {
        t->unsettled = false;
        for (uint32_t i = 0; i < t->at.len; i++) {
            struct berth_err err = {0};
            if (t->at.at[i].name && t->at.at[i].why)
                (void)accept_or_reject(t, i, &err);
        }
    }
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

static int empty_visit(void *ctx, const char *prefix, store_visit *visit, void *visit_ctx, struct berth_err *err)
{
    (void)ctx;
    (void)prefix;
    (void)visit;
    (void)visit_ctx;
    (void)err;
    return 0;
}

struct tenants *tenants_new(void (*changed)(void *ctx), void *ctx)
{
    struct tenants *t = mem_zalloc(sizeof *t);
    struct berth_err err = {0};
    t->changed = changed;
    t->ctx = ctx;
    CLEANUP(json) json_t *settings = json_pack("{s:s, s:s}", "policy", POLICY_DEFAULT, "charges", CHARGES);
    (void)json_object_set_new(settings, "v", json_integer(SCHEMA_VERSION));
    int rc = state_load_from(empty_visit, NULL, 0, &t->state, &err);
    if (rc == 0)
        rc = tenant_state(t, KIND_SETTING, SETTINGS_ID, settings, &err);
    assert(rc == 0); /* the store is empty */
    (void)rc;
    tenant_past_init(t);
    return t;
}

static void unapplied_clear(struct tenants *t)
{
    for (size_t i = 0; i < t->unapplied.len; i++)
        mem_free(t->unapplied.at[i].name);
    t->unapplied.len = 0;
}

void tenants_free(struct tenants *t)
{
    if (!t)
        return;
    tenant_past_done(t);
    for (size_t i = 0; i < t->at.len; i++)
        tenant_clear(&t->at.at[i]);
    unapplied_clear(t);
    vec_done(&t->unapplied);
    vec_done(&t->group_namespaces);
    vec_done(&t->at);
    vec_done(&t->free);
    map_done(&t->by_name);
    state_free(t->state);
    mem_free(t);
}

void tenant_report_input(struct tenants *t, enum tenant_op op, enum kind kind, const char *name, const json_t *spec)
{
    if (t->listener)
        t->listener(t->listener_ctx, &(struct tenant_input){op, kind, name, spec});
}

int tenants_put(struct tenants *t, enum kind kind, const char *name, const json_t *spec, struct berth_err *err)
{
    uint32_t i = find_or_add(t, kind, name);
    struct berth_err own = {0};
    if (!t->at.at[i].spec || !json_equal(t->at.at[i].spec, spec))
        tenant_report_input(t, TENANT_PUT, kind, name, spec);
    json_decref(t->at.at[i].spec);
    t->at.at[i].spec = json_is_object(spec) ? json_deep_copy(spec) : json_object();
    return accept_or_reject(t, i, err ? err : &own);
}

int tenants_check(struct tenants *t, enum kind kind, const char *name, const json_t *spec, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = tenant_doc(kind, name, spec);
    struct berth_err own = {0};
    return tenant_check(t->state, kind, name, doc, err ? err : &own);
}

void tenants_restore_in_force(struct tenants *t, enum kind kind, const char *name, const json_t *spec)
{
    uint32_t i = find_or_add(t, kind, name);
    struct tenant *e = &t->at.at[i];
    if (!e->recalled || !json_equal(e->recalled, spec))
        tenant_report_input(t, TENANT_RECALL, kind, name, spec);
    json_decref(e->recalled);
    e->recalled = json_deep_copy(spec);
}

void tenant_force(struct tenants *t, enum kind kind, const char *name, const json_t *spec)
{
    uint32_t i = find_or_add(t, kind, name);
    struct tenant *e = &t->at.at[i];
    CLEANUP(json) json_t *doc = tenant_doc(kind, name, spec);
    struct berth_err err = {0};
    if (tenant_state(t, kind, name, doc, &err) < 0)
        return;
    json_decref(e->in_force);
    e->in_force = json_deep_copy(spec);
    note(t, kind, name);
}

void tenants_drop(struct tenants *t, enum kind kind, const char *name)
{
    uint32_t i = tenant_find(t, kind, name);
    struct berth_err err = {0};
    if (i == MAP_NONE)
        return;
    tenant_report_input(t, TENANT_DROP, kind, name, NULL);
    if (t->at.at[i].in_force) {
        (void)tenant_state(t, kind, name, NULL, &err);
        t->lost = true;
        note(t, kind, name);
    }
    tenant_past_drop(t, &t->at.at[i]);
    map_drop(&t->by_name, key_hash(kind, name), i);
    tenant_clear(&t->at.at[i]);
    vec_push(&t->free, i);
}

bool tenants_view(const struct tenants *t, enum kind kind, const char *name, struct tenant_view *ret)
{
    uint32_t i = tenant_find(t, kind, name);
    if (i == MAP_NONE)
        return false;
    const struct tenant *e = &t->at.at[i];
    *ret = (struct tenant_view){.accepted = !e->why, .in_force = e->in_force, .why = e->why ? e->why : ""};
    return true;
}

bool tenants_in_use(const struct tenants *t)
{
    for (size_t i = 0; i < t->at.len && !t->claimed; i++)
        if (t->at.at[i].in_force)
            return true;
    return t->claimed;
}

/* ---- quotas and domains in the cluster -------------------------------------------------------------------------- */

struct tenant_changes tenants_take_changes(struct tenants *t)
{
    if (t->lost || t->unsettled)
        tenant_report_input(t, TENANT_RECHECK, KIND_QUEUE, "", NULL);
    recheck_rejected(t);
    struct tenant_changes news = {0};
    for (size_t i = 0; i < t->unapplied.len; i++) {
        enum kind kind = t->unapplied.at[i].kind;
        news.domains = news.domains || kind == KIND_DOMAIN;
        news.quotas = news.quotas || kind != KIND_POLICY;
        news.claims = news.quotas;
    }
    return news;
}

static void quota_forget(struct berth_cluster *cluster, enum kind kind, const char *name)
{
    char id[OBJECT_KEY_MAX];
    (void)snprintf(id, sizeof id, "%s/%s", kinds[kind].name, name);
    (void)berth_fact_put(cluster, &(struct berth_fact){.kind = BERTH_FACT_USAGE, .key = id, .over = true}, NULL);
    (void)sync_quota_remove(cluster, kinds[kind].name, name, NULL);
}

static void quota_put(struct tenants *t, struct berth_cluster *cluster, enum kind kind, const char *name)
{
    const struct object *o = state_find(t->state, kind, name);
    if (o)
        (void)object_sync(t->state, cluster, o, NULL); /* cannot fail: the state's own cluster accepted it */
    else
        quota_forget(cluster, kind, name);
}

static void quotas_put(struct tenants *t, struct berth_cluster *cluster, enum kind kind)
{
    size_t len;
    const struct object *const *all = state_list(t->state, kind, &len);
    for (size_t i = 0; i < len; i++)
        quota_put(t, cluster, kind, all[i]->id);
}

void tenants_put_quotas(struct tenants *t, struct berth_cluster *cluster, bool all)
{
    static const enum kind with_quota[] = {KIND_GROUP, KIND_USER, KIND_QUEUE};
    bool queues = false;
    for (size_t i = 0; i < t->unapplied.len; i++) {
        const struct unapplied_object *u = &t->unapplied.at[i];
        queues = queues || u->kind == KIND_QUEUE;
        if (!all && (u->kind == KIND_GROUP || u->kind == KIND_USER || u->kind == KIND_QUEUE))
            quota_put(t, cluster, u->kind, u->name);
    }
    for (size_t k = 0; all && k < sizeof with_quota / sizeof *with_quota; k++)
        quotas_put(t, cluster, with_quota[k]);
    if (all)
        tenant_past_apply_all(t, cluster);
    if (queues && !all) /* the tree may have changed: a queue is rejected while another is still above it */
        quotas_put(t, cluster, KIND_QUEUE);
    unapplied_clear(t);
}

const char *tenants_domain(const struct tenants *t, const char *id, const struct berth_node *node)
{
    return node_domain(t->state, id, node);
}

/* ---- claims ----------------------------------------------------------------------------------------------------- */

static int place_compare(const void *a, const void *b)
{
    const struct group_namespace *x = a, *y = b;
    int order = strcmp(x->namespace, y->namespace);
    return order ? order : strcmp(x->group, y->group);
}

static void places_read(struct tenants *t)
{
    t->group_namespaces.len = 0;
    for (size_t i = 0; i < t->at.len; i++) {
        const struct tenant *e = &t->at.at[i];
        size_t k;
        json_t *one;
        if (e->kind != KIND_GROUP || !e->in_force)
            continue;
        json_array_foreach(json_object_get(e->in_force, "namespaces"), k, one)
        {
            if (json_is_string(one))
                vec_push(&t->group_namespaces, ((struct group_namespace){json_string_value(one), e->name}));
        }
    }
    if (t->group_namespaces.len)
        qsort(t->group_namespaces.at, t->group_namespaces.len, sizeof *t->group_namespaces.at, place_compare);
    t->group_namespaces_old = false;
}

/* Returns the first group by name, of those in force, that lists the namespace; "": none. */
static const char *group_of_namespace(struct tenants *t, const char *namespace)
{
    if (t->group_namespaces_old)
        places_read(t);
    size_t low = 0, high = t->group_namespaces.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(t->group_namespaces.at[mid].namespace, namespace) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->group_namespaces.len && strcmp(t->group_namespaces.at[low].namespace, namespace) == 0
               ? t->group_namespaces.at[low].group
               : "";
}

static const char *rejection_reason(struct tenants *t, const struct tenant_claim *claim, const char *queue,
                                    const char *group, struct arena *arena)
{
    const struct queue_terms terms = queue_terms(t->state, queue);
    if (!state_find(t->state, KIND_QUEUE, queue))
        return strcmp(queue, QUEUE_DEFAULT) == 0
                   ? NULL
                   : arena_fmt(arena, "queue %.80s does not exist; choose another queue", queue);
    if (!queue_open(t->state, queue, claim->user, group))
        return arena_fmt(arena, "queue %s does not accept jobs of %s%s; choose another queue or ask an administrator",
                         queue,
                         claim->user && *claim->user ? "user "
                         : *group                    ? "group "
                                                     : "this namespace",
                         claim->user && *claim->user ? claim->user : group);
    if (terms.max_time_ns && claim->limit_ns > terms.max_time_ns)
        return arena_fmt(arena, "queue %s allows at most %s; lower the time limit or choose another queue", queue,
                         duration_text(terms.max_time_ns, arena));
    return NULL;
}

/* Charges the namespace's group for work without a user, or of a user without a group. */
static void group_add(const struct tenants *t, const char *group, struct arena *arena, struct berth_workload *w)
{
    const struct object *o = state_find(t->state, KIND_GROUP, group);
    const char **quotas = ARENA_ARRAY(arena, const char *, w->quotas_len + 1);
    size_t len = 0;
    for (size_t i = 0; i < w->quotas_len; i++) /* after the user, whose account is charged first */
        if (strncmp(w->quotas[i], "user/", 5) == 0)
            quotas[len++] = w->quotas[i];
    quotas[len++] = arena_fmt(arena, "group/%s", group);
    for (size_t i = 0; i < w->quotas_len; i++)
        if (strncmp(w->quotas[i], "user/", 5) != 0)
            quotas[len++] = w->quotas[i];
    w->quotas = quotas;
    w->quotas_len = len;
    w->traits.group_level = o ? o->group_doc->level : 0;
}

const char *tenants_claim_check(struct tenants *t, const struct tenant_claim *claim, struct arena *arena,
                                struct berth_workload *w)
{
    const char *queue = claim->queue && *claim->queue ? claim->queue : QUEUE_DEFAULT;
    const char *user = claim->user ? claim->user : "";
    const struct object *u = *user ? state_find(t->state, KIND_USER, user) : NULL;
    bool in_group = u && *u->user->group;
    const char *group = in_group ? u->user->group : claim->namespace ? group_of_namespace(t, claim->namespace) : "";
    const struct object o = {.kind = KIND_JOB, .id = w->id, .owner = user, .group = group};
    const struct work_doc d = {
        .workload = *w,
        .name = claim->name,
        .owner = user,
        .group = group,
        .job = {.queue = arena_strdup(arena, queue),
                .type = claim->type,
                .class_name = claim->class_name,
                .network = claim->network,
                .attributes = claim->attributes,
                .attributes_len = claim->attributes_len,
                .parameters = claim->parameters,
                .estimate_ns = claim->estimate_ns,
                .time_limit_ns = claim->limit_ns,
                .deadline_ns = claim->deadline_ns,
                .min_run_ns = claim->min_run_ns,
                .preemptible = !claim->unpreemptible,
                .preempts = !claim->never_preempts},
    };
    sync_scheduling(t->state, &o, &d, arena, w);
    if (!in_group && *group)
        group_add(t, group, arena, w);
    return rejection_reason(t, claim, queue, group, arena);
}

const char *tenants_claim(struct tenants *t, const struct tenant_claim *claim, struct arena *arena,
                          struct berth_workload *w)
{
    t->claimed = true;
    return tenants_claim_check(t, claim, arena, w);
}

/* ---- the policy ------------------------------------------------------------------------------------------------- */

/* Adds the default queue if no object defines it. */
static void default_add(const struct tenants *t, struct plan_policy *p)
{
    struct berth_order *o = &p->policy.order;
    if (state_find(t->state, KIND_QUEUE, QUEUE_DEFAULT) || o->queues_len >= BERTH_LIST_MAX)
        return;
    struct berth_queue *queues = ARENA_ARRAY(&p->arena, struct berth_queue, o->queues_len + 1);
    if (o->queues_len)
        memcpy(queues, o->queues, o->queues_len * sizeof *queues);
    queues[o->queues_len] = (struct berth_queue){.id = QUEUE_DEFAULT, .ranking = o->ranking};
    o->queues = queues;
    o->queues_len++;
}

void tenants_policy(const struct tenants *t, struct plan_policy *ret)
{
    const struct berth_policy none = {0};
    plan_policy_read(t->state, ret);
    default_add(t, ret);
    ret->policy.backfill.queued = true;   /* pods in no queue are placed as they fit, as in kube-scheduler */
    ret->policy.pressure = none.pressure; /* bound pods must not be moved */
    ret->policy.shed = false;
    ret->policy.rebalance = none.rebalance;
}

/* ---- usage ------------------------------------------------------------------------------------------------------ */

static int64_t quota_used(const struct berth_cluster *cluster, const char *quota, const char *resource)
{
    struct berth_quota_use use;
    return berth_quota_use(cluster, quota, resource, &use) ? use.held : 0;
}

struct tenant_use tenants_use(const struct berth_cluster *cluster, enum kind kind, const char *name)
{
    char quota[OBJECT_KEY_MAX];
    struct berth_quota_use pods;
    (void)snprintf(quota, sizeof quota, "%s/%s", kinds[kind].name, name);
    (void)berth_quota_use(cluster, quota, "pods", &pods);
    struct tenant_use use = {.pending = pods.asked > pods.held ? pods.asked - pods.held : 0,
                             .running = pods.held,
                             .cpu = quota_used(cluster, quota, "cpu"),
                             .memory = quota_used(cluster, quota, "memory"),
                             .gpu_milli = quota_used(cluster, quota, "gpu")};
    for (size_t i = 0; tenant_gpu_at(i); i++)
        use.gpu_milli += 1000 * quota_used(cluster, quota, tenant_gpu_at(i));
    return use;
}
