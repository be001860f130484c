/* cache_shape.c - a pod as a workload of one task.
 *
 * Every restriction of the pod goes into its shape: constraints on nodes, other pods, ports and volumes. For a pod with
 * a node the shape has only what the pod holds and what keeps other pods away, so that many bound pods share one shape.
 */
#include "kube/cache/cache_internal.h"
#include "kube/object/gpu.h"

struct shape_lists {
    struct kube_amounts requests;
    struct kube_terms require;
    KUBE_LIST(struct berth_port) ports;
    KUBE_LIST(struct berth_spread) spread;
    KUBE_LIST(struct berth_affinity) near;
};

struct pod_shaper {
    struct cache *p;
    uint32_t pod;
    const struct kube_pod *from;
    struct shape_lists lists;
    const char *why;
};

/* ---- other pods ------------------------------------------------------------------------------------------------- */

static struct berth_expr one_of(const char *key, const char *const *values, size_t len)
{
    return (struct berth_expr){key, BERTH_IN, values, len};
}

/* A term that matches no pod, because every pod has a namespace. */
static struct berth_term match_nothing(struct arena *arena)
{
    struct berth_expr *e = ARENA_NEW(arena, struct berth_expr);
    *e = (struct berth_expr){NAMESPACE_LABEL, BERTH_NOT_EXISTS, NULL, 0};
    return (struct berth_term){e, 1, 0};
}

/* Node labels whose names clash with built-in topologies have a copy under another name. */
static const char *topology_of(struct pod_shaper *s, const char *key)
{
    bool built_in = strcmp(key, "node") == 0 || strcmp(key, "zone") == 0 || strcmp(key, "rack") == 0;
    return built_in ? arena_fmt(&s->p->arena, "@%s", key) : key;
}

static struct berth_expr in_namespace(struct pod_shaper *s)
{
    const char **value = arena_alloc(&s->p->arena, sizeof *value);
    value[0] = s->from->meta.namespace;
    return one_of(NAMESPACE_LABEL, value, 1);
}

static bool listed(const struct kube_texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->len; i++)
        if (strcmp(texts->at[i], text) == 0)
            return true;
    return false;
}

/* The namespaces of an affinity term: those it names and those its selector matches now; by default the pod's own. */
static struct berth_expr namespaces_of(struct pod_shaper *s, const struct kube_affinity_term *near)
{
    const struct object_store *shelf = &s->p->shelves[CACHE_NAMESPACE];
    struct kube_texts names = {0};
    if (!near->namespace_select.present && near->namespaces.len == 0)
        return in_namespace(s);
    if (near->namespace_select.present && !near->namespace_select.never && near->namespace_select.exprs.len == 0)
        return (struct berth_expr){NAMESPACE_LABEL, BERTH_EXISTS, NULL, 0};
    for (size_t i = 0; i < near->namespaces.len; i++)
        if (!listed(&names, near->namespaces.at[i]))
            kube_push(&s->p->arena, &names, near->namespaces.at[i]);
    if (near->namespace_select.present)
        topic_follow(s->p, s->pod, "namespaces");
    for (uint32_t i = 0; near->namespace_select.present && i < shelf->at.len; i++) {
        const struct cache_object *k = &shelf->at.at[i];
        struct kube_decoder in = {.arena = &s->p->arena};
        struct proto_reader r = proto_reader(k->bytes, k->len);
        struct proto_field f;
        while (k->key && proto_next(&r, &f)) {
            struct kube_meta meta = f.number == 1 ? kube_meta_read(&in, &f) : (struct kube_meta)KUBE_META_NONE;
            if (f.number == 1 && kube_selector_matches(&near->namespace_select, &meta.labels) &&
                !listed(&names, meta.name))
                kube_push(&s->p->arena, &names, meta.name);
        }
    }
    if (names.len == 0) /* an empty list matches no pod */
        return (struct berth_expr){NAMESPACE_LABEL, BERTH_NOT_EXISTS, NULL, 0};
    return one_of(NAMESPACE_LABEL, names.at, names.len);
}

static struct berth_term select_of(struct pod_shaper *s, const struct kube_selector *select, struct berth_expr where)
{
    struct kube_exprs all = {0};
    if (!select->present || select->never)
        return match_nothing(&s->p->arena);
    for (size_t i = 0; i < select->exprs.len; i++)
        kube_push(&s->p->arena, &all, select->exprs.at[i]);
    kube_push(&s->p->arena, &all, where); /* last, because the other conditions match fewer pods */
    return (struct berth_term){all.at, all.len, 0};
}

/* Pod affinity requires a pod that matches all terms together, so each term gets the conditions of all. */
static void pod_affinity_add(struct pod_shaper *s)
{
    struct arena *arena = &s->p->arena;
    struct kube_exprs all = {0};
    for (size_t i = 0; i < s->from->near.len; i++) {
        const struct kube_affinity_term *near = &s->from->near.at[i];
        if (near->apart || near->weight)
            continue;
        struct berth_term one = select_of(s, &near->select, namespaces_of(s, near));
        for (size_t e = 0; e < one.exprs_len; e++)
            kube_push(arena, &all, one.exprs[e]);
    }
    for (size_t i = 0; i < s->from->near.len; i++) {
        const struct kube_affinity_term *near = &s->from->near.at[i];
        if (near->apart || near->weight)
            continue;
        kube_push(arena, &s->lists.near,
                  ((struct berth_affinity){
                      topology_of(s, near->topology), {all.at, all.len, 0},
                        false
        }));
    }
}

static void pod_anti_affinity_add(struct pod_shaper *s, bool settled)
{
    struct arena *arena = &s->p->arena;
    for (size_t i = 0; i < s->from->near.len; i++) {
        const struct kube_affinity_term *near = &s->from->near.at[i];
        bool selects = near->select.present && !near->select.never;
        if (!selects || (near->weight ? settled : !near->apart))
            continue;
        struct berth_term term = select_of(s, &near->select, namespaces_of(s, near));
        term.weight = near->weight;
        kube_push(arena, &s->lists.near, ((struct berth_affinity){topology_of(s, near->topology), term, near->apart}));
    }
}

static void spread_add(struct pod_shaper *s)
{
    for (size_t i = 0; i < s->from->spread.len; i++) {
        const struct kube_spread *from = &s->from->spread.at[i];
        struct kube_selector select = from->select;
        for (size_t k = 0; select.present && k < from->keys.len; k++) {
            const char *value = kube_labels_find(&s->from->meta.labels, from->keys.at[k]);
            if (value)
                kube_selector_add(&s->p->arena, &select, from->keys.at[k], value);
        }
        /* kube-scheduler counts no pods for an empty selector, so neither does Berth. */
        bool counts = select.exprs.len > 0;
        struct berth_spread to = {
            .topology = topology_of(s, from->topology),
            .select = counts ? select_of(s, &select, in_namespace(s)) : match_nothing(&s->p->arena),
            .max_skew = from->max_skew,
            .soft = from->soft,
            .min_domains = from->soft ? 0 : from->min_domains,
            .nodes = from->any_affinity ? (from->honor_taints ? BERTH_SPREAD_TOLERATED : BERTH_SPREAD_ALL)
                                        : (from->honor_taints ? BERTH_SPREAD_BOTH : BERTH_SPREAD_REQUIRED),
        };
        kube_push(&s->p->arena, &s->lists.spread, to);
    }
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static void require_add(struct pod_shaper *s, const struct kube_terms *terms)
{
    struct kube_terms both;
    if (kube_terms_both(&s->p->arena, &s->lists.require, terms, &both))
        s->lists.require = both;
    else
        s->why = "too many combinations of node affinity terms and volume topology terms; use fewer terms";
}

static void affinity_add(struct pod_shaper *s)
{
    struct kube_exprs exprs = {0};
    struct kube_terms selector = {0};
    for (size_t i = 0; i < s->from->node_selector.len; i++) {
        const struct berth_label *l = &s->from->node_selector.at[i];
        const char **value = arena_alloc(&s->p->arena, sizeof *value);
        value[0] = l->value;
        kube_push(&s->p->arena, &exprs, one_of(l->key, value, 1));
    }
    if (exprs.len)
        kube_push(&s->p->arena, &selector, ((struct berth_term){exprs.at, exprs.len, 0}));
    require_add(s, &selector);
    if (s->from->has_affinity)
        require_add(s, &s->from->affinity);
    struct kube_terms gpus;
    const char *why = kube_gpu_terms(&s->p->arena, &s->from->meta.notes, &gpus);
    require_add(s, &gpus);
    s->why = s->why ? s->why : why;
}

/* ---- held resources --------------------------------------------------------------------------------------------- */

static void requests_add(struct pod_shaper *s)
{
    for (size_t i = 0; i < s->from->requests.len; i++)
        if (s->from->requests.at[i].amount > 0)
            kube_push(&s->p->arena, &s->lists.requests, s->from->requests.at[i]);
    kube_push(&s->p->arena, &s->lists.requests, ((struct berth_amount){"pods", 1}));
}

static void ports_add(struct pod_shaper *s)
{
    for (size_t i = 0; i < s->from->ports.len; i++) {
        const struct kube_port *port = &s->from->ports.at[i];
        kube_push(&s->p->arena, &s->lists.ports,
                  ((struct berth_port){.protocol = port->protocol, .port = port->port, .address = port->address}));
    }
}

/* ReadWriteOncePod claims: anti-affinity keeps other users of the claim off the node, and its volume is on one node. */
static void rwop_claims_add(struct pod_shaper *s, const struct kube_texts *claims, struct kube_labels *labels)
{
    static const char *const yes[] = {"true"};
    for (size_t i = 0; i < claims->len; i++) {
        const char *key = cache_key(s->p, "@alone", claims->at[i], NULL);
        struct berth_expr *e = ARENA_ARRAY(&s->p->arena, struct berth_expr, 2);
        e[0] = one_of(key, yes, 1);
        e[1] = in_namespace(s);
        kube_push(&s->p->arena, labels, ((struct berth_label){key, yes[0]}));
        kube_push(&s->p->arena, &s->lists.near,
                  ((struct berth_affinity){
                      "node", {e, 2, 0},
                       true
        }));
    }
}

/* In-tree disks named by the pod: a pod that writes to a disk shares it with no other pod on the node. */
static void disks_add(struct pod_shaper *s, struct kube_labels *labels)
{
    static const char *const writes[] = {"writes"};
    for (size_t i = 0; i < s->from->disks.len; i++) {
        const struct kube_disk *disk = &s->from->disks.at[i];
        const char *key = cache_key(s->p, "@disk", disk->id, NULL);
        struct berth_expr *e = ARENA_NEW(&s->p->arena, struct berth_expr);
        *e = disk->reads ? one_of(key, writes, 1) : (struct berth_expr){key, BERTH_EXISTS, NULL, 0};
        kube_push(&s->p->arena, labels, ((struct berth_label){key, disk->reads ? "reads" : writes[0]}));
        kube_push(&s->p->arena, &s->lists.near,
                  ((struct berth_affinity){
                      "node", {e, 1, 0},
                       true
        }));
    }
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

/* Charges a pod of ours that names a queue or a user, and queues it there. Time limits apply to jobs only, so a queue's
 * limit becomes the estimate of a plain pod. */
static void queue_claim_add(struct pod_shaper *s, bool settled, struct berth_workload *w)
{
    const struct kube_labels *labels = &s->from->meta.labels;
    const char *queue = kube_labels_find(labels, TENANT_QUEUE_LABEL);
    const char *user = kube_labels_find(labels, TENANT_USER_LABEL);
    if (!s->p->config.tenants || !s->p->pods.at[s->pod].scheduler || (!queue && !user))
        return;
    topic_follow(s->p, s->pod, TENANTS_TOPIC);
    const char *why = tenants_claim(s->p->config.tenants,
                                    &(struct tenant_claim){.namespace = s->from->meta.namespace,
                                                           .user = user,
                                                           .queue = queue,
                                                           .never_preempts = s->from->never_preempts},
                                    &s->p->arena, w);
    w->estimate_ns = w->estimate_ns ? w->estimate_ns : w->limit_ns;
    w->limit_ns = 0;
    if (settled)
        w->shape.domains_len = 0;
    else if (!s->why)
        s->why = why;
}

/* ---- the workload ----------------------------------------------------------------------------------------------- */

/* Returns the profile configured for the pod's scheduler name. */
static const char *profile_of(const struct cache *p, const struct pod_entry *e)
{
    for (size_t i = 0; p->config.profiles && i < p->config.schedulers_len; i++)
        if (e->scheduler == p->config.schedulers[i])
            return p->config.profiles[i];
    return "";
}

static struct berth_shape shape_of(struct pod_shaper *s, const struct volumes_shape *volumes, bool settled)
{
    struct shape_lists *l = &s->lists;
    const struct kube_pod *from = s->from;
    struct berth_shape shape = {
        .requests = l->requests.at,
        .requests_len = l->requests.len,
        .ports = l->ports.at,
        .ports_len = l->ports.len,
        .volumes = volumes->ids.at,
        .volumes_len = volumes->ids.len,
        .near = l->near.at,
        .near_len = l->near.len,
    };
    if (settled)
        return shape;
    shape.require = l->require.at;
    shape.require_len = l->require.len;
    shape.prefer = from->prefer.at;
    shape.prefer_len = from->prefer.len;
    shape.tolerations = from->tolerations.at;
    shape.tolerations_len = from->tolerations.len;
    shape.images = from->images.at;
    shape.images_len = from->images.len;
    shape.spread = l->spread.at;
    shape.spread_len = l->spread.len;
    shape.profile = profile_of(s->p, &s->p->pods.at[s->pod]);
    return shape;
}

struct shaped_pod shape_pod(struct cache *p, uint32_t pod, const struct kube_pod *from, bool settled)
{
    static const struct berth_term nowhere = {0};
    struct pod_shaper s = {.p = p, .pod = pod, .from = from};
    struct volumes_shape volumes = {0};
    struct kube_labels labels = {0};
    const struct pod_entry *e = &p->pods.at[pod];
    for (size_t i = 0; i < from->meta.labels.len; i++)
        kube_push(&p->arena, &labels, from->meta.labels.at[i]);
    kube_push(&p->arena, &labels, ((struct berth_label){NAMESPACE_LABEL, from->meta.namespace}));
    requests_add(&s);
    ports_add(&s);
    shape_volumes(p, pod, from, settled, &volumes);
    if (!settled) {
        affinity_add(&s);
        require_add(&s, &volumes.require);
        pod_affinity_add(&s);
        spread_add(&s);
        s.why = s.why ? s.why : volumes.why;
        if (from->devices)
            s.why = "resource claims are not supported; use another scheduler for this pod";
        s.why = s.why ? s.why : gang_why(p, pod);
    }
    pod_anti_affinity_add(&s, settled);
    rwop_claims_add(&s, &volumes.alone, &labels);
    disks_add(&s, &labels);
    struct shaped_pod ret = {
        .workload = {.id = e->id,
                     .kind = BERTH_JOB,
                     .replicas = e->stopping ? 0 : 1,
                     .priority = from->priority,
                     .created_ns = from->meta.created_ns,
                     .never_preempts = from->never_preempts,
                     .begin_ns = e->wait ? e->wait->begin_ns : 0,
                     .labels = labels.at,
                     .labels_len = labels.len,
                     .shape = shape_of(&s, &volumes, settled)},
    };
    if (!settled && e->role == ROLE_TOGETHER && e->gang != NONE)
        ret.workload.gang = p->gangs.at[e->gang].key;
    queue_claim_add(&s, settled, &ret.workload);
    ret.why = s.why;
    if (ret.why) { /* the pod keeps its place in the queue but fits no node */
        ret.workload.shape.require = &nowhere;
        ret.workload.shape.require_len = 1;
    }
    return ret;
}

/* ---- budgets ---------------------------------------------------------------------------------------------------- */

/* A budget is identified by its shelf key. */
static void budget_put(struct cache *p, const char *key)
{
    const struct object_store *shelf = &p->shelves[CACHE_BUDGET];
    const char *id = cache_key(p, "budget", key, NULL);
    uint32_t at = object_store_find(shelf, key);
    struct kube_budget from;
    struct berth_err err = {0};
    if (at == NONE || !kube_budget_read(&p->arena, object_store_bytes(shelf, at), &from) || !from.select.present) {
        (void)berth_budget_remove(p->cluster, id, NULL);
        return;
    }
    struct kube_pod anybody = {.meta = {.namespace = from.meta.namespace}};
    struct pod_shaper s = {.p = p, .from = &anybody};
    struct berth_budget to = {.id = id,
                              .select = select_of(&s, &from.select, in_namespace(&s)),
                              .allowed = from.allowed > 0 ? (uint32_t)from.allowed : 0};
    if (berth_budget_put(p->cluster, &to, &err) < 0)
        cache_trouble(p, "disruption budget %s has no effect: %s", key, err.text);
}

void budget_changed(struct cache *p, const char *namespace, const char *name)
{
    budget_put(p, arena_fmt(&p->arena, "%s:%s", namespace, name));
    cache_notify(p);
}

void budgets_refill(struct cache *p)
{
    for (size_t i = 0; i < p->shelves[CACHE_BUDGET].at.len; i++)
        if (p->shelves[CACHE_BUDGET].at.at[i].key)
            budget_put(p, p->shelves[CACHE_BUDGET].at.at[i].key);
}
