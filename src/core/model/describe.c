/* describe.c - validation of descriptions; errors name the object.
 *
 * Every description is checked here before anything changes, so the rest of the core may assert what is checked here.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "core/model/cluster.h"

/* The object that errors name, such as workload "web". */
struct error_subject {
    const char *kind, *id;
    struct berth_err *err;
};

#define REJECT(s, fmt, ...) err_set((s)->err, EINVAL, "%s \"%.100s\": " fmt, (s)->kind, (s)->id, __VA_ARGS__)
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_)                                                                                                       \
            return rc_;                                                                                                \
    } while (0)

static const char *text_of(const char *s)
{
    return s ? s : "";
}

/* Checks a name: no control characters, valid UTF-8, bounded length. */
static int check_text(const struct error_subject *s, const char *what, const char *text, bool required)
{
    text = text_of(text);
    size_t len = strlen(text);
    if (len == 0)
        return required ? REJECT(s, "%s is missing", what) : 0;
    if (len > BERTH_NAME_MAX)
        return REJECT(s, "%s \"%.40s...\" has %zu bytes; at most %d are allowed", what, text, len, BERTH_NAME_MAX);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return REJECT(s, "%s has a control character at byte %zu", what, i + 1);
    return str_utf8_valid(text, len) ? 0 : REJECT(s, "%s is not valid UTF-8", what);
}

static int check_id(const struct error_subject *s)
{
    struct error_subject unnamed = {s->kind, "", s->err};
    TRY(check_text(&unnamed, "id", s->id, true));
    for (const char *p = s->id; *p; p++)
        if (*p == ' ' || *p == '/')
            return REJECT(s, "an id may not contain '%c'", *p);
    return 0;
}

static int check_len(const struct error_subject *s, const char *what, size_t len)
{
    return len <= BERTH_LIST_MAX ? 0 : REJECT(s, "%zu %s; at most %d are allowed", len, what, BERTH_LIST_MAX);
}

static int check_amount(const struct error_subject *s, const char *what, const char *of, int64_t amount)
{
    if (amount < 0)
        return REJECT(s, "%s of %s is negative (%lld)", what, of, (long long)amount);
    if (amount > BERTH_AMOUNT_MAX)
        return REJECT(s, "%s of %s is too large (%lld)", what, of, (long long)amount);
    return 0;
}

int64_t describe_page_size(const char *resource)
{
    static const char prefix[] = "hugepages-";
    int64_t size = 0;

    if (strncmp(resource, prefix, sizeof prefix - 1) != 0)
        return 0;
    const char *at = resource + sizeof prefix - 1;
    for (; *at >= '0' && *at <= '9' && size < 1 << 20; at++)
        size = size * 10 + (*at - '0');
    int shift = strcmp(at, "Ki") == 0 ? 10 : strcmp(at, "Mi") == 0 ? 20 : strcmp(at, "Gi") == 0 ? 30 : -1;
    return shift < 0 || size <= 0 || size >= 1 << 20 ? -1 : size << shift;
}

static int check_resource_name(const struct error_subject *s, const char *name)
{
    TRY(check_text(s, "a resource name", name, true));
    return describe_page_size(name) < 0 ? REJECT(s, "resource %s has no page size; use a name like hugepages-2Mi", name)
                                        : 0;
}

/* Volume attachments cannot be requested; mounting volumes takes them. */
static int check_requested_name(const struct error_subject *s, const char *name)
{
    TRY(check_resource_name(s, name));
    return strncmp(name, "attach-", 7) == 0 ? REJECT(s, "%s cannot be requested; list volumes instead", name) : 0;
}

static int check_amounts(const struct error_subject *s, const char *what, const struct berth_amount *at, size_t len)
{
    TRY(check_len(s, what, len));
    for (size_t i = 0; i < len; i++) {
        TRY(check_resource_name(s, at[i].resource));
        TRY(check_amount(s, what, at[i].resource, at[i].amount));
        int64_t page = describe_page_size(at[i].resource);
        if (page && at[i].amount % page)
            return REJECT(s, "%s of %s is not a whole number of pages (%lld bytes)", what, at[i].resource,
                          (long long)at[i].amount);
        for (size_t j = 0; j < i; j++)
            if (strcmp(at[i].resource, at[j].resource) == 0)
                return REJECT(s, "%s lists %s twice", what, at[i].resource);
    }
    return 0;
}

/* Checks that the resource names of a description that are new to the cluster still fit. */
struct new_resource_names {
    const struct berth_cluster *c;
    const char *at[BERTH_RESOURCES_MAX + 1];
    size_t len;
};

static int fresh_name(const struct error_subject *s, struct new_resource_names *f, const char *name)
{
    if (cluster_resource_known(f->c, name))
        return 0;
    for (size_t i = 0; i < f->len; i++)
        if (strcmp(f->at[i], name) == 0)
            return 0;
    if (f->c->resources.len + f->len >= BERTH_RESOURCES_MAX)
        return REJECT(s, "more than %d distinct resources, with %s", BERTH_RESOURCES_MAX, name);
    f->at[f->len++] = name;
    return 0;
}

static int check_texts(const struct error_subject *s, const char *what, const char *const *at, size_t len)
{
    TRY(check_len(s, what, len));
    for (size_t i = 0; i < len; i++) {
        TRY(check_text(s, what, at[i], true));
        for (size_t j = 0; j < i; j++)
            if (strcmp(at[i], at[j]) == 0)
                return REJECT(s, "%s lists %s twice", what, at[i]);
    }
    return 0;
}

static int check_labels(const struct error_subject *s, const struct berth_label *at, size_t len)
{
    TRY(check_len(s, "labels", len));
    for (size_t i = 0; i < len; i++) {
        TRY(check_text(s, "a label key", at[i].key, true));
        TRY(check_text(s, "the value of a label", at[i].value, false));
        for (size_t j = 0; j < i; j++)
            if (strcmp(at[i].key, at[j].key) == 0)
                return REJECT(s, "label %s is listed twice", at[i].key);
    }
    return 0;
}

static bool same_address(const struct berth_port *a, const struct berth_port *b)
{
    return port_everywhere(a) ? port_everywhere(b) : strcmp(a->address, text_of(b->address)) == 0;
}

/* A port at one address may be requested together with the same port at all addresses. */
static int check_ports(const struct error_subject *s, const struct berth_port *at, size_t len)
{
    TRY(check_len(s, "ports", len));
    for (size_t i = 0; i < len; i++) {
        TRY(check_text(s, "the address of a port", at[i].address, false));
        unsigned count = at[i].count ? at[i].count : 1;
        if (at[i].protocol > BERTH_SCTP)
            return REJECT(s, "protocol %d of port %u is unknown", (int)at[i].protocol, at[i].port);
        if (at[i].port == 0 || at[i].port + count > 65536)
            return REJECT(s, "ports %u to %u are not between 1 and 65535", at[i].port, at[i].port + count - 1);
        for (size_t j = 0; j < i; j++) {
            unsigned other = at[j].count ? at[j].count : 1;
            if (at[i].protocol == at[j].protocol && at[i].port < at[j].port + other &&
                at[j].port < at[i].port + count && same_address(&at[i], &at[j]))
                return REJECT(s, "port %u is listed twice", at[i].port > at[j].port ? at[i].port : at[j].port);
        }
    }
    return 0;
}

static int check_term(const struct error_subject *s, const struct berth_term *t)
{
    TRY(check_len(s, "conditions", t->exprs_len));
    for (size_t i = 0; i < t->exprs_len; i++) {
        const struct berth_expr *e = &t->exprs[i];
        int64_t number;
        TRY(check_text(s, "a label key", e->key, true));
        TRY(check_len(s, "values", e->values_len));
        for (size_t v = 0; v < e->values_len; v++)
            TRY(check_text(s, "a label value", e->values[v], false));
        switch (e->match) {
        case BERTH_IN:
        case BERTH_NOT_IN:
            if (e->values_len == 0)
                return REJECT(s, "the condition on %s has no values", e->key);
            break;
        case BERTH_EXISTS:
        case BERTH_NOT_EXISTS:
            if (e->values_len)
                return REJECT(s, "the condition on %s takes no values", e->key);
            break;
        case BERTH_GT:
        case BERTH_LT:
            if (e->values_len != 1 || !str_parse_i64(text_of(e->values[0]), &number))
                return REJECT(s, "the condition on %s takes one whole number", e->key);
            break;
        default: return REJECT(s, "the condition on %s has an unknown operator (%d)", e->key, (int)e->match);
        }
    }
    return 0;
}

static int check_weight(const struct error_subject *s, int32_t weight, int32_t from)
{
    if (weight < from || weight > BERTH_WEIGHT_MAX || (from < 0 && weight == 0))
        return REJECT(s, "weight %d of a preference is not between %d and %d", weight, from < 0 ? from : 1,
                      BERTH_WEIGHT_MAX);
    return 0;
}

static int check_terms(const struct error_subject *s, const struct berth_term *at, size_t len, bool preferences)
{
    TRY(check_len(s, "terms", len));
    for (size_t i = 0; i < len; i++) {
        TRY(check_term(s, &at[i]));
        if (preferences)
            TRY(check_weight(s, at[i].weight, -BERTH_WEIGHT_MAX));
        else if (at[i].weight)
            return REJECT(s, "a requirement has no weight (%d)", at[i].weight);
    }
    return 0;
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

int describe_resource(const struct berth_cluster *c, const struct berth_resource *r, struct berth_err *err)
{
    struct error_subject s = {"resource", text_of(r->name), err};
    struct new_resource_names fresh = {.c = c};
    TRY(check_resource_name(&s, r->name));
    TRY(fresh_name(&s, &fresh, r->name));
    if (r->kind > BERTH_CUMULATIVE)
        return REJECT(&s, "kind %d is unknown", (int)r->kind);
    return r->period_ns < 0 ? REJECT(&s, "period %lld is negative", (long long)r->period_ns) : 0;
}

static int check_overcommit(const struct error_subject *s, const struct berth_node *n)
{
    TRY(check_len(s, "over-commit ratios", n->overcommit_len));
    for (size_t i = 0; i < n->overcommit_len; i++) {
        const struct berth_amount *o = &n->overcommit[i];
        TRY(check_resource_name(s, o->resource));
        if (o->amount < 1 || o->amount > 100 * BERTH_RATIO_ONE)
            return REJECT(s, "over-commit of %s is %lld thousandths; expected 1 to 100000", o->resource,
                          (long long)o->amount);
        if (describe_page_size(o->resource) && o->amount != BERTH_RATIO_ONE)
            return REJECT(s, "%s cannot be over-committed", o->resource);
        for (size_t j = 0; j < i; j++)
            if (strcmp(n->overcommit[j].resource, o->resource) == 0)
                return REJECT(s, "over-commit lists %s twice", o->resource);
        for (size_t j = 0; j < n->allocatable_len; j++)
            if (strcmp(n->allocatable[j].resource, o->resource) == 0 &&
                (__int128)n->allocatable[j].amount * o->amount > (__int128)BERTH_AMOUNT_MAX * BERTH_RATIO_ONE)
                return REJECT(s, "over-committed %s is too large", o->resource);
    }
    return 0;
}

/* Checks that the node has the resources it reports as consumed. */
static int check_consumed(const struct error_subject *s, const struct berth_node *n)
{
    for (size_t i = 0; i < n->consumed_len; i++) {
        bool there = false;
        for (size_t j = 0; j < n->allocatable_len; j++)
            there |= strcmp(n->allocatable[j].resource, n->consumed[i].resource) == 0;
        if (!there)
            return REJECT(s, "consumed %s, which the node does not have", n->consumed[i].resource);
    }
    return 0;
}

static int check_pools(const struct error_subject *s, const struct berth_node *n)
{
    if (n->page_size_bytes < 0)
        return REJECT(s, "page size %lld is negative", (long long)n->page_size_bytes);
    for (size_t i = 0; n->page_size_bytes && i < n->allocatable_len; i++) {
        int64_t page = describe_page_size(n->allocatable[i].resource);
        if (page && page != n->page_size_bytes && n->allocatable[i].amount)
            return REJECT(s, "uses another page size than %s", n->allocatable[i].resource);
    }
    return 0;
}

int describe_node(const struct berth_cluster *c, const struct berth_node *n, struct berth_err *err)
{
    struct error_subject s = {"node", text_of(n->id), err};
    TRY(check_id(&s));
    if (n->state > BERTH_NODE_LOST)
        return REJECT(&s, "state %d is unknown", (int)n->state);
    TRY(check_text(&s, "zone", n->zone, false));
    TRY(check_text(&s, "rack", n->rack, false));
    TRY(check_text(&s, "domain", n->domain, false));
    TRY(check_text(&s, "architecture", n->arch, false));
    TRY(check_amounts(&s, "allocatable", n->allocatable, n->allocatable_len));
    TRY(check_amounts(&s, "consumed", n->consumed, n->consumed_len));
    TRY(check_consumed(&s, n));
    TRY(check_amounts(&s, "used", n->used, n->used_len));
    TRY(check_overcommit(&s, n));
    TRY(check_pools(&s, n));
    TRY(check_labels(&s, n->labels, n->labels_len));
    TRY(check_len(&s, "taints", n->taints_len));
    for (size_t i = 0; i < n->taints_len; i++) {
        TRY(check_text(&s, "the key of a taint", n->taints[i].key, true));
        TRY(check_text(&s, "the value of a taint", n->taints[i].value, false));
        if (n->taints[i].effect < BERTH_NO_SCHEDULE || n->taints[i].effect > BERTH_NO_EXECUTE)
            return REJECT(&s, "effect %d of taint %s is unknown", (int)n->taints[i].effect, n->taints[i].key);
    }
    if (n->gpus_len > BERTH_NODE_GPUS_MAX)
        return REJECT(&s, "%zu GPUs; at most %d are allowed", n->gpus_len, BERTH_NODE_GPUS_MAX);
    for (size_t i = 0; i < n->gpus_len; i++) {
        TRY(check_text(&s, "the model of a GPU", n->gpus[i].model, false));
        TRY(check_amount(&s, "memory", "a GPU", n->gpus[i].memory_bytes));
    }
    TRY(check_texts(&s, "runtimes", n->runtimes, n->runtimes_len));
    TRY(check_len(&s, "images", n->images_len));
    for (size_t i = 0; i < n->images_len; i++) {
        TRY(check_text(&s, "the name of an image", n->images[i].name, true));
        TRY(check_amount(&s, "size", "an image", n->images[i].size_bytes));
    }
    TRY(check_ports(&s, n->ports, n->ports_len));
    struct new_resource_names fresh = {.c = c};
    for (size_t i = 0; i < n->allocatable_len; i++)
        TRY(fresh_name(&s, &fresh, n->allocatable[i].resource));
    return 0;
}

int describe_volume(const struct berth_cluster *c, const struct berth_volume *v, struct berth_err *err)
{
    struct error_subject s = {"volume", text_of(v->id), err};
    TRY(check_id(&s));
    TRY(check_text(&s, "zone", v->zone, false));
    TRY(check_text(&s, "node", v->node, false));
    TRY(check_text(&s, "driver", v->driver, false));
    if (v->driver && strlen(v->driver) + strlen("attach-") > BERTH_NAME_MAX)
        return REJECT(&s, "driver %.20s... is too long", v->driver);
    char attach[BERTH_NAME_MAX + 1] = "attach-";
    struct new_resource_names fresh = {.c = c};
    if (!*text_of(v->driver))
        return 0;
    memcpy(attach + strlen(attach), v->driver, strlen(v->driver) + 1);
    return fresh_name(&s, &fresh, attach);
}

static int check_gpu(const struct error_subject *s, const struct berth_gpu_need *g)
{
    if (g->count > BERTH_NODE_GPUS_MAX)
        return REJECT(s, "%u GPUs on one node; at most %d are possible", g->count, BERTH_NODE_GPUS_MAX);
    if (g->milli > BERTH_GPU_MILLI)
        return REJECT(s, "%u thousandths of a GPU are more than one; request a count of GPUs", g->milli);
    if (g->count != 1 && g->milli && g->milli != BERTH_GPU_MILLI)
        return REJECT(s, "a GPU share applies to one GPU, not to %u", g->count);
    TRY(check_amount(s, "memory", "a GPU", g->memory_bytes));
    return check_texts(s, "GPU models", g->models, g->models_len);
}

static int check_limits(const struct error_subject *s, const struct berth_shape *shape)
{
    TRY(check_len(s, "limits", shape->limits_len));
    for (size_t i = 0; i < shape->limits_len; i++) {
        const struct berth_limit *l = &shape->limits[i];
        TRY(check_requested_name(s, l->resource));
        TRY(check_amount(s, "limit", l->resource, l->amount));
        TRY(check_amount(s, "limit", l->resource, l->max));
        if (l->kind > BERTH_WEIGHTED)
            return REJECT(s, "limit of %s: kind %d is unknown", l->resource, (int)l->kind);
        if (l->amount == 0)
            return REJECT(s, "limit of %s is zero", l->resource);
        if (l->max && l->max < l->amount)
            return REJECT(s, "limit of %s: the maximum is below the limit", l->resource);
        for (size_t j = 0; j < i; j++)
            if (strcmp(shape->limits[j].resource, l->resource) == 0)
                return REJECT(s, "limits list %s twice", l->resource);
        for (size_t j = 0; l->kind == BERTH_ABSOLUTE && j < shape->requests_len; j++)
            if (strcmp(shape->requests[j].resource, l->resource) == 0 && shape->requests[j].amount > l->amount)
                return REJECT(s, "limit of %s is below the request", l->resource);
    }
    return 0;
}

static int check_topology_constraints(const struct error_subject *s, const struct berth_shape *shape)
{
    TRY(check_len(s, "spread constraints", shape->spread_len));
    for (size_t i = 0; i < shape->spread_len; i++) {
        TRY(check_text(s, "the topology of a spread", shape->spread[i].topology, true));
        TRY(check_term(s, &shape->spread[i].select));
        if (shape->spread[i].max_skew < 1 || shape->spread[i].max_skew > BERTH_REPLICAS_MAX)
            return REJECT(s, "a spread allows a skew of %u; at least 1 is needed", shape->spread[i].max_skew);
        if (shape->spread[i].min_domains > BERTH_REPLICAS_MAX)
            return REJECT(s, "a spread needs %u domains; at most %d are possible", shape->spread[i].min_domains,
                          BERTH_REPLICAS_MAX);
        if (shape->spread[i].nodes > BERTH_SPREAD_BOTH)
            return REJECT(s, "a spread counts an unknown set of nodes (%d)", (int)shape->spread[i].nodes);
        if (shape->spread[i].select.weight)
            return REJECT(s, "a spread has no weight (%d)", shape->spread[i].select.weight);
    }
    TRY(check_len(s, "near and apart constraints", shape->near_len));
    for (size_t i = 0; i < shape->near_len; i++) {
        TRY(check_text(s, "the topology of an affinity", shape->near[i].topology, true));
        TRY(check_term(s, &shape->near[i].select));
        TRY(check_weight(s, shape->near[i].select.weight, 0));
    }
    return 0;
}

static int check_shape(const struct error_subject *s, const struct berth_cluster *c, const struct berth_shape *shape)
{
    TRY(check_amounts(s, "request", shape->requests, shape->requests_len));
    for (size_t i = 0; i < shape->requests_len; i++)
        TRY(check_requested_name(s, shape->requests[i].resource));
    TRY(check_gpu(s, &shape->gpu));
    TRY(check_limits(s, shape));
    TRY(check_text(s, "node", shape->node, false));
    TRY(check_text(s, "architecture", shape->arch, false));
    TRY(check_text(s, "runtime", shape->runtime, false));
    TRY(check_text(s, "zone", shape->near_zone, false));
    TRY(check_text(s, "profile", shape->profile, false));
    TRY(check_texts(s, "domains", shape->domains, shape->domains_len));
    TRY(check_terms(s, shape->require, shape->require_len, false));
    TRY(check_terms(s, shape->prefer, shape->prefer_len, true));
    TRY(check_len(s, "tolerations", shape->tolerations_len));
    for (size_t i = 0; i < shape->tolerations_len; i++) {
        const struct berth_toleration *t = &shape->tolerations[i];
        TRY(check_text(s, "the key of a toleration", t->key, !t->exists));
        TRY(check_text(s, "the value of a toleration", t->value, false));
        if (t->effect > BERTH_NO_EXECUTE)
            return REJECT(s, "effect %d of a toleration is unknown", (int)t->effect);
        if (t->exists && *text_of(t->value))
            return REJECT(s, "a toleration with operator Exists has the value %s", t->value);
    }
    TRY(check_ports(s, shape->ports, shape->ports_len));
    TRY(check_texts(s, "volumes", shape->volumes, shape->volumes_len));
    for (size_t i = 0; i < shape->volumes_len; i++)
        if (cluster_volume_find(c, shape->volumes[i]) == NONE)
            return REJECT(s, "volume \"%s\" is unknown", shape->volumes[i]);
    TRY(check_texts(s, "images", shape->images, shape->images_len));
    TRY(check_topology_constraints(s, shape));
    if (shape->max_per_node > BERTH_REPLICAS_MAX)
        return REJECT(s, "%u pods per node; at most %d are allowed", shape->max_per_node, BERTH_REPLICAS_MAX);
    struct new_resource_names fresh = {.c = c};
    for (size_t i = 0; i < shape->requests_len; i++)
        TRY(fresh_name(s, &fresh, shape->requests[i].resource));
    for (size_t i = 0; i < shape->limits_len; i++)
        TRY(fresh_name(s, &fresh, shape->limits[i].resource));
    return 0;
}

static int check_traits(const struct error_subject *s, const struct berth_traits *t)
{
    enum { LEVEL_MAX = 100, URGENCY_MAX = 1000, MILLION = 1000000 };
    if (t->user_level < 0 || t->user_level > LEVEL_MAX || t->group_level < 0 || t->group_level > LEVEL_MAX)
        return REJECT(s, "a level is 0 to %d", LEVEL_MAX);
    if (t->urgency < -URGENCY_MAX || t->urgency > URGENCY_MAX)
        return REJECT(s, "urgency %d: expected -%d to %d", t->urgency, URGENCY_MAX, URGENCY_MAX);
    if (t->interference < 0 || t->interference > MILLION)
        return REJECT(s, "interference %d: expected 0 to %d", t->interference, MILLION);
    if (t->parameters < 0 || t->attained_ns < 0)
        return REJECT(s, "%s", "a trait is negative");
    return check_labels(s, t->words, t->words_len);
}

static int check_claim(const struct error_subject *s, const struct berth_workload *w)
{
    if (w->quotas_len > QUOTAS_MAX)
        return REJECT(s, "%zu quotas; at most %d are allowed", w->quotas_len, QUOTAS_MAX);
    for (size_t i = 0; i < w->quotas_len; i++)
        TRY(check_text(s, "quota", w->quotas[i], true));
    TRY(check_text(s, "queue", w->queue, false));
    if (w->estimate_ns < 0 || w->limit_ns < 0 || w->deadline_ns < 0 || w->min_run_ns < 0)
        return REJECT(s, "%s", "a time is negative");
    return check_traits(s, &w->traits);
}

int describe_workload(const struct berth_cluster *c, const struct berth_workload *w, struct berth_err *err)
{
    struct error_subject s = {"workload", text_of(w->id), err};
    TRY(check_id(&s));
    if (w->kind > BERTH_VM)
        return REJECT(&s, "kind %d is unknown", (int)w->kind);
    if (w->replicas > BERTH_REPLICAS_MAX)
        return REJECT(&s, "%u replicas; at most %d are allowed", w->replicas, BERTH_REPLICAS_MAX);
    if (w->on_lost > BERTH_LOST_WAIT)
        return REJECT(&s, "on_lost %d is unknown", (int)w->on_lost);
    if (w->on_drain > BERTH_DRAIN_STOP)
        return REJECT(&s, "on_drain %d is unknown", (int)w->on_drain);
    if (w->fence_ns < 0)
        return REJECT(&s, "fence time %lld is negative", (long long)w->fence_ns);
    if (w->gang_min > w->replicas)
        return REJECT(&s, "the gang needs %u of %u tasks", w->gang_min, w->replicas);
    if (w->gang_min && !*text_of(w->gang))
        return REJECT(&s, "a gang minimum of %u without a gang", w->gang_min);
    TRY(check_text(&s, "gang", w->gang, false));
    TRY(check_claim(&s, w));
    TRY(check_labels(&s, w->labels, w->labels_len));
    return check_shape(&s, c, &w->shape);
}

static int check_devices(const struct error_subject *s, const struct berth_cluster *c, const struct berth_instance *i,
                         uint32_t node, uint32_t count)
{
    const struct node_body *body = cluster_node(c, node)->body;
    if (i->gpus && (body->devices_len == 0 || i->gpus >> (body->devices_len - 1) >> 1))
        return REJECT(s, "uses a GPU that node %s does not have", i->node);
    if ((uint32_t)__builtin_popcountll(i->gpus) != count)
        return REJECT(s, "uses %d GPUs; its shape requests %u", __builtin_popcountll(i->gpus), count);
    return 0;
}

int describe_instance(const struct berth_cluster *c, const struct berth_instance *i, struct berth_err *err)
{
    char id[24];
    struct error_subject s = {"instance", str_u64(i->id, id), err};
    if (i->id == 0)
        return REJECT(&s, "an id is above %d", 0);
    if (i->state > BERTH_ENDED)
        return REJECT(&s, "state %d is unknown", (int)i->state);
    struct error_subject workload = {"workload", text_of(i->workload), err};
    int rc = check_id(&workload);
    if (rc) {
        (void)err_prefix(err, "instance %s", id);
        return rc;
    }
    uint32_t node = cluster_node_find(c, text_of(i->node));
    TRY(check_text(&s, "node", i->node, true));
    if (node == NONE && i->state != BERTH_ENDED)
        return REJECT(&s, "node \"%.100s\" is unknown", text_of(i->node));
    if (i->ordinal >= BERTH_REPLICAS_MAX)
        return REJECT(&s, "ordinal %u is too large", i->ordinal);
    if (i->replaces == i->id)
        return REJECT(&s, "%s", "replaces itself");
    TRY(check_len(&s, "waits", i->waits_len));
    if (i->waits_len && i->state != BERTH_RESERVED)
        return REJECT(&s, "%s", "waits for other instances but is not reserved");
    for (size_t w = 0; w < i->waits_len; w++)
        if (i->waits[w] == i->id)
            return REJECT(&s, "%s", "waits for itself");
    TRY(check_len(&s, "usages", i->usage_len));
    struct new_resource_names fresh = {.c = c};
    for (size_t u = 0; u < i->usage_len; u++) {
        TRY(check_requested_name(&s, i->usage[u].resource));
        TRY(fresh_name(&s, &fresh, i->usage[u].resource));
        TRY(check_amount(&s, "use", i->usage[u].resource, i->usage[u].used));
        TRY(check_amount(&s, "limit", i->usage[u].resource, i->usage[u].limit));
        for (size_t j = 0; j < u; j++)
            if (strcmp(i->usage[j].resource, i->usage[u].resource) == 0)
                return REJECT(&s, "usage lists %s twice", i->usage[u].resource);
    }
    uint32_t count = 0;
    uint32_t slot = cluster_workload_find(c, i->workload);
    if (i->shape) {
        TRY(check_shape(&s, c, i->shape));
        count = i->shape->gpu.count;
    } else if (slot != NONE) {
        count = cluster_class(c, instance_class(c, cluster_instance_find(c, i->id), slot))->gpu.count;
    }
    return i->state == BERTH_ENDED ? 0 : check_devices(&s, c, i, node, count);
}

static int check_shares(const struct error_subject *s, struct new_resource_names *fresh, const char *what,
                        const struct berth_amount *at, size_t len)
{
    TRY(check_len(s, what, len));
    for (size_t i = 0; i < len; i++) {
        const char *name = text_of(at[i].resource);
        TRY(check_text(s, "resource", name, true));
        if (at[i].amount < 0)
            return REJECT(s, "%s of %s is negative", what, name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(text_of(at[j].resource), name) == 0)
                return REJECT(s, "%s list %s twice", what, name);
        if (strcmp(name, "gpu") != 0 && strcmp(name, "jobs") != 0)
            TRY(fresh_name(s, fresh, name));
    }
    return 0;
}

int describe_budget(const struct berth_budget *b, struct berth_err *err)
{
    struct error_subject s = {"budget", text_of(b->id), err};
    TRY(check_text(&s, "id", b->id, true));
    TRY(check_term(&s, &b->select));
    if (b->select.weight)
        return REJECT(&s, "a budget has no weight (%d)", b->select.weight);
    return b->allowed > BERTH_REPLICAS_MAX ? REJECT(&s, "%u allowed; at most %d are", b->allowed, BERTH_REPLICAS_MAX)
                                           : 0;
}

int describe_quota(const struct berth_cluster *c, const struct berth_quota *q, struct berth_err *err)
{
    struct error_subject s = {"quota", text_of(q->id), err};
    struct new_resource_names fresh = {.c = c};
    TRY(check_text(&s, "id", q->id, true));
    TRY(check_text(&s, "parent", q->parent, false));
    TRY(check_shares(&s, &fresh, "limits", q->limits, q->limits_len));
    TRY(check_shares(&s, &fresh, "guarantees", q->guarantees, q->guarantees_len));
    TRY(check_shares(&s, &fresh, "admitted", q->admitted, q->admitted_len));
    TRY(check_len(&s, "totals", q->totals_len));
    for (size_t i = 0; i < q->totals_len; i++) {
        const struct berth_total *t = &q->totals[i];
        struct berth_amount as = {t->resource, t->limit};
        TRY(check_shares(&s, &fresh, "totals", &as, 1));
        if (t->spent < 0 || t->period_ns < 0)
            return REJECT(&s, "a total of %s is negative", t->resource);
    }
    return 0;
}
