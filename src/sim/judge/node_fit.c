/* node_fit.c - checks whether a pod may be on a node: simple rules that use only the documents.
 *
 * Each rule looks at all instances. Topology spread and affinity are not checked: whether they held at the time of the
 * decision cannot be derived from the state at the commit. The core's property tests check them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/cluster/world.h"

/* A pod and the node to be checked. */
struct fit_check {
    const struct mirror *m;
    const struct berth_node *node;
    const char *workload;
    const struct berth_shape *shape;
    /* the instance, if it is already there, so that it counts once; NULL: it is not */
    const struct berth_instance *self;
    char *buf;
    size_t size;
};

static bool same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool is_in(const char *text, const char *const *list, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (same(text, list[i]))
            return true;
    return false;
}

/* Returns whether the other instance blocks the pod: it is on the node, and is not stopping for the pod. */
static bool counts(const struct fit_check *d, const struct mirror_doc *s)
{
    const struct berth_instance *i = &s->instance.instance;
    if (i->state == BERTH_ENDED || (d->self && d->self->id == i->id))
        return false;
    for (size_t w = 0; d->self && w < d->self->waits_len; w++)
        if (d->self->waits[w] == i->id)
            return false;
    return true;
}

static const struct berth_shape *shape_of(const struct fit_check *d, const struct mirror_doc *s)
{
    const struct mirror_doc *from = mirror_placed_from(d->m, s);
    return from ? &from->work.workload.shape : NULL;
}

#define EACH_ON_NODE(d, s)                                                                                             \
    for (size_t at_ = 0; at_ < (d)->m->of[KIND_INSTANCE].len; at_++)                                                   \
        for (const struct mirror_doc *s = (d)->m->of[KIND_INSTANCE].at[at_];                                           \
             s && same(s->instance.instance.node, (d)->node->id) && counts((d), s); s = NULL)

/* ---- node properties -------------------------------------------------------------------------------------------- */

static const char *state_rule(const struct fit_check *d)
{
    return d->node->state == BERTH_NODE_READY ? NULL : "the node is not ready";
}

static const char *name_rule(const struct fit_check *d)
{
    const struct berth_shape *s = d->shape;
    const struct berth_node *n = d->node;
    if (s->node && *s->node && !same(s->node, n->id))
        return "another node was asked for";
    if (s->arch && *s->arch && !same(s->arch, n->arch))
        return "another architecture was asked for";
    if (s->domains_len && !is_in(n->domain, s->domains, s->domains_len))
        return "another domain was asked for";
    if (s->runtime && *s->runtime && n->runtimes_len && !is_in(s->runtime, n->runtimes, n->runtimes_len))
        return "the node lacks the runtime";
    return NULL;
}

static bool expr_holds(const struct berth_expr *e, const struct berth_node *n)
{
    const struct berth_label *label = NULL;
    for (size_t i = 0; i < n->labels_len; i++)
        if (same(n->labels[i].key, e->key))
            label = &n->labels[i];
    switch (e->match) {
    case BERTH_IN: return label && is_in(label->value, e->values, e->values_len);
    case BERTH_NOT_IN: return !label || !is_in(label->value, e->values, e->values_len);
    case BERTH_EXISTS: return label != NULL;
    case BERTH_NOT_EXISTS: return label == NULL;
    default: return true; /* numeric operators are not used here */
    }
}

static const char *labels_rule(const struct fit_check *d)
{
    for (size_t i = 0; i < d->shape->require_len; i++) {
        const struct berth_term *t = &d->shape->require[i];
        bool holds = t->exprs_len > 0;
        for (size_t e = 0; e < t->exprs_len; e++)
            holds = holds && expr_holds(&t->exprs[e], d->node);
        if (holds)
            return NULL;
    }
    return d->shape->require_len ? "the node lacks the labels" : NULL;
}

static bool tolerates(const struct berth_toleration *t, const struct berth_taint *taint)
{
    if (t->effect != BERTH_EFFECT_ANY && t->effect != taint->effect)
        return false;
    if (!t->key || !*t->key)
        return t->exists;
    return same(t->key, taint->key) && (t->exists || same(t->value, taint->value));
}

static const char *taints_rule(const struct fit_check *d)
{
    for (size_t i = 0; i < d->node->taints_len; i++) {
        bool fine = d->node->taints[i].effect == BERTH_PREFER_NO_SCHEDULE;
        for (size_t t = 0; t < d->shape->tolerations_len; t++)
            fine = fine || tolerates(&d->shape->tolerations[t], &d->node->taints[i]);
        if (!fine)
            return "the node has a taint that is not tolerated";
    }
    return NULL;
}

/* ---- resources of other instances ------------------------------------------------------------------------------- */

static int64_t amount_in(const struct berth_amount *list, size_t len, const char *resource, int64_t fallback)
{
    for (size_t i = 0; i < len; i++)
        if (same(list[i].resource, resource))
            return list[i].amount;
    return fallback;
}

/* Every pod requests one unit of `pods` unless it specifies otherwise. */
int64_t fit_request(const struct berth_shape *shape, const char *resource)
{
    return shape ? amount_in(shape->requests, shape->requests_len, resource, same(resource, "pods")) : 0;
}

/* Returns whether the instance is only reserved: stopping instances may still be there. */
static bool is_reservation(const struct fit_check *d)
{
    return d->self && d->self->state == BERTH_RESERVED;
}

struct held {
    int64_t active, promised, capacity;
};

/* Sums up the use of a resource on the node by other instances. */
static struct held resource_use_of(const struct fit_check *d, const char *resource)
{
    const struct berth_node *n = d->node;
    int64_t whole = amount_in(n->allocatable, n->allocatable_len, resource, same(resource, "pods") ? INT32_MAX : 0);
    struct held h = {.capacity = whole * amount_in(n->overcommit, n->overcommit_len, resource, BERTH_RATIO_ONE) /
                                 BERTH_RATIO_ONE};
    EACH_ON_NODE(d, s)
    {
        int64_t amount = fit_request(shape_of(d, s), resource);
        h.active += s->instance.instance.state != BERTH_RESERVED ? amount : 0;
        h.promised += s->instance.instance.state != BERTH_STOPPING ? amount : 0;
    }
    return h;
}

static const char *capacity_rule(const struct fit_check *d, const char *resource)
{
    int64_t own = fit_request(d->shape, resource);
    struct held h = resource_use_of(d, resource);
    if (own <= 0 || ((is_reservation(d) || h.active + own <= h.capacity) && h.promised + own <= h.capacity))
        return NULL;
    (void)snprintf(d->buf, d->size, "%s of %s: %" PRId64 " held and %" PRId64 " promised of %" PRId64, resource,
                   d->node->id, h.active + own, h.promised + own, h.capacity);
    return d->buf;
}

/* A node whose capacity has shrunk below its use accepts no new pod. */
static const char *over_rule(const struct fit_check *d)
{
    EACH_ON_NODE(d, s)
    {
        const struct berth_shape *shape = shape_of(d, s);
        for (size_t i = 0; shape && i < shape->requests_len; i++) {
            struct held h = resource_use_of(d, shape->requests[i].resource);
            if (h.active > h.capacity || h.promised > h.capacity)
                return "the node holds more than it has";
        }
    }
    struct held pods = resource_use_of(d, "pods");
    return pods.active > pods.capacity || pods.promised > pods.capacity ? "the node holds more pods than it may" : NULL;
}

static const char *resources_rule(const struct fit_check *d)
{
    const char *against = capacity_rule(d, "pods");
    for (size_t i = 0; i < d->shape->requests_len && !against; i++)
        against = capacity_rule(d, d->shape->requests[i].resource);
    return against;
}

static bool overlap(const struct berth_port *a, const struct berth_port *b)
{
    uint32_t a_end = a->port + (a->count ? a->count : 1u), b_end = b->port + (b->count ? b->count : 1u);
    const char *x = a->address ? a->address : "", *y = b->address ? b->address : "";
    bool apart = *x && *y && strcmp(x, "0.0.0.0") != 0 && strcmp(y, "0.0.0.0") != 0 && strcmp(x, y) != 0;
    return a->protocol == b->protocol && a->port < b_end && b->port < a_end && !apart;
}

static const struct berth_port *clash(const struct berth_shape *shape, const struct berth_port *ports, size_t len)
{
    for (size_t i = 0; i < shape->ports_len; i++)
        for (size_t k = 0; k < len; k++)
            if (overlap(&shape->ports[i], &ports[k]))
                return &shape->ports[i];
    return NULL;
}

static const char *ports_rule(const struct fit_check *d)
{
    const struct berth_port *at = clash(d->shape, d->node->ports, d->node->ports_len);
    uint64_t by = 0;
    EACH_ON_NODE(d, s)
    {
        const struct berth_shape *shape = shape_of(d, s);
        const struct berth_port *port = shape && !at ? clash(d->shape, shape->ports, shape->ports_len) : NULL;
        if (port) {
            at = port;
            by = s->instance.instance.id;
        }
    }
    if (!at)
        return NULL;
    (void)snprintf(d->buf, d->size, "port %u of %s is held by %" PRIu64, at->port, d->node->id, by);
    return d->buf;
}

static int64_t milli_of(const struct berth_shape *shape)
{
    if (!shape || !shape->gpu.count)
        return 0;
    return shape->gpu.milli ? shape->gpu.milli : BERTH_GPU_MILLI;
}

/* Returns whether a device has the right kind and enough capacity left for the pod. */
static bool device_fits(const struct fit_check *d, size_t device)
{
    const struct berth_gpu *gpu = &d->node->gpus[device];
    const struct berth_gpu_need *need = &d->shape->gpu;
    int64_t active = milli_of(d->shape), promised = active, bytes = need->memory_bytes;
    if ((need->models_len && !is_in(gpu->model, need->models, need->models_len)) || bytes > gpu->memory_bytes)
        return false;
    EACH_ON_NODE(d, s)
    {
        const struct berth_shape *shape = shape_of(d, s);
        if (!(s->instance.instance.gpus >> device & 1))
            continue;
        active += s->instance.instance.state != BERTH_RESERVED ? milli_of(shape) : 0;
        promised += s->instance.instance.state != BERTH_STOPPING ? milli_of(shape) : 0;
        bytes += shape && s->instance.instance.state != BERTH_STOPPING ? shape->gpu.memory_bytes : 0;
    }
    return (is_reservation(d) || active <= BERTH_GPU_MILLI) && promised <= BERTH_GPU_MILLI &&
           (milli_of(d->shape) == BERTH_GPU_MILLI || bytes <= gpu->memory_bytes);
}

static const char *gpus_rule(const struct fit_check *d)
{
    uint32_t len = 0;
    if (!d->shape->gpu.count)
        return d->self && d->self->gpus ? "it holds GPUs that it did not ask for" : NULL;
    for (size_t i = 0; i < BERTH_NODE_GPUS_MAX; i++) {
        bool holds = d->self ? d->self->gpus >> i & 1 : i < d->node->gpus_len;
        if (!holds)
            continue;
        if (i >= d->node->gpus_len)
            return "it holds a GPU that the node does not have";
        bool will_do = device_fits(d, i);
        len += will_do;
        if (d->self && !will_do) {
            (void)snprintf(d->buf, d->size, "GPU %zu of %s will not do, or is held by others", i, d->node->id);
            return d->buf;
        }
    }
    return (d->self ? len == d->shape->gpu.count : len >= d->shape->gpu.count) ? NULL : "too few GPUs";
}

static const char *member_of(const struct mirror_doc *s, const char *key)
{
    const char *text = json_string_value(json_object_get(s->doc, key));
    return text ? text : "";
}

static bool mounts(const struct fit_check *d, const struct mirror_doc *s, const char *volume)
{
    const struct berth_shape *shape = shape_of(d, s);
    return shape && is_in(volume, shape->volumes, shape->volumes_len);
}

/* The volume must be reachable from the node and, unless it is shared, not be mounted on another node. */
static const char *volumes_rule(const struct fit_check *d)
{
    for (size_t v = 0; v < d->shape->volumes_len; v++) {
        const struct mirror_doc *volume = mirror_find(d->m, KIND_VOLUME, d->shape->volumes[v]);
        if (!volume)
            continue; /* deleted since the request */
        if ((*member_of(volume, "zone") && !same(member_of(volume, "zone"), d->node->zone)) ||
            (*member_of(volume, "node") && !same(member_of(volume, "node"), d->node->id)))
            return "a volume cannot be reached from the node";
        if (json_is_true(json_object_get(volume->doc, "shared")))
            continue;
        for (size_t i = 0; i < d->m->of[KIND_INSTANCE].len; i++) {
            const struct mirror_doc *s = d->m->of[KIND_INSTANCE].at[i];
            if (counts(d, s) && !same(s->instance.instance.node, d->node->id) && mounts(d, s, volume->id))
                return "a volume is mounted on another node";
        }
    }
    return NULL;
}

/* Uses the larger limit of the placed and the current document: an instance keeps its place when the limit changes. */
static const char *count_rule(const struct fit_check *d)
{
    const struct mirror_doc *work = mirror_work(d->m, d->workload);
    uint32_t len = 1, now = work ? work->work.workload.shape.max_per_node : d->shape->max_per_node;
    uint32_t most = now > d->shape->max_per_node ? now : d->shape->max_per_node;
    if (!now || !d->shape->max_per_node)
        return NULL;
    EACH_ON_NODE(d, s)
    len += same(s->instance.instance.workload, d->workload);
    return len > most ? "too many of one workload on the node" : NULL;
}

static const char *against(const struct fit_check *d, int *ret_invariant)
{
    static const struct {
        const char *(*rule)(const struct fit_check *d);
        int invariant;
    } rules[] = {
        {state_rule,     12},
        {name_rule,      12},
        {labels_rule,    12},
        {taints_rule,    12},
        {over_rule,      1 },
        {resources_rule, 1 },
        {ports_rule,     2 },
        {gpus_rule,      3 },
        {volumes_rule,   12},
        {count_rule,     12},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *text = rules[i].rule(d);
        if (text) {
            *ret_invariant = rules[i].invariant;
            return text;
        }
    }
    return NULL;
}

const char *fit_refusal(const struct mirror *m, const struct mirror_doc *instance, int *ret_invariant, char *buf,
                        size_t size)
{
    const struct berth_instance *i = &instance->instance.instance;
    const struct mirror_doc *node = mirror_find(m, KIND_NODE, i->node), *from = mirror_placed_from(m, instance);
    *ret_invariant = 12;
    if (!node)
        return "its node is not there";
    if (!from)
        return "what it was placed from is not known";
    struct fit_check d = {m, &node->node.node, i->workload, &from->work.workload.shape, i, buf, size};
    return against(&d, ret_invariant);
}

bool fit_has_room(const struct mirror *m, const struct mirror_doc *node, const struct mirror_doc *work)
{
    char buf[200];
    int invariant;
    struct fit_check d = {m, &node->node.node, work->id, &work->work.workload.shape, NULL, buf, sizeof buf};
    return !against(&d, &invariant);
}
