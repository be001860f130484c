/* admission.c - checks whether a workload is within its quotas before it is put.
 *
 * Counts what is already admitted: all pods that have not ended of all existing workloads, placed or not.
 */
#include <string.h>

#include "base/bits.h"
#include "core/model/cluster.h"

#define SECOND_NS ((int64_t)1000000000)
#define UNKNOWN_NS (3600 * SECOND_NS) /* run time assumed for workloads without estimate or limit */

struct admission_check {
    const struct berth_cluster *c;
    const struct berth_workload *draft;
    uint32_t known; /* slot of the existing workload with that id, or NONE */
    int64_t now_ns;
};

static int64_t clamp(__int128 amount)
{
    return amount > INT64_MAX ? INT64_MAX : (int64_t)amount;
}

/* ---- requests of the draft -------------------------------------------------------------------------------------- */

static int64_t pods_of(const struct workload *w)
{
    return w->gone || w->ended >= w->replicas ? 0 : w->replicas - w->ended;
}

/* Returns the number of pods of the draft that have not ended. */
static int64_t pods_left(const struct admission_check *j)
{
    uint32_t ended = j->known == NONE ? 0 : cluster_workload(j->c, j->known)->ended;
    return ended >= j->draft->replicas ? 0 : j->draft->replicas - ended;
}

/* Returns what one pod of the draft takes. Its shape need not be known to the cluster. */
static int64_t need_of(const struct admission_check *j, uint32_t resource)
{
    const struct berth_shape *s = &j->draft->shape;
    if (resource == QUOTA_GPU)
        return (int64_t)s->gpu.count * (s->gpu.milli ? s->gpu.milli : BERTH_GPU_MILLI);
    if (resource == QUOTA_JOBS)
        return 0;
    const char *name = intern_text(&j->c->names, j->c->resources.at[resource].name);
    for (size_t i = 0; i < s->requests_len; i++)
        if (strcmp(s->requests[i].resource, name) == 0)
            return s->requests[i].amount;
    return resource == RESOURCE_PODS ? 1 : 0;
}

static int64_t requested_amount(const struct admission_check *j, uint32_t resource, int64_t pods)
{
    if (resource == QUOTA_JOBS)
        return pods > 0;
    return clamp((__int128)pods * need_of(j, resource));
}

static int64_t seconds_of(int64_t estimate_ns, int64_t limit_ns)
{
    int64_t ns = estimate_ns > 0 ? estimate_ns : limit_ns > 0 ? limit_ns : UNKNOWN_NS;
    return ns / SECOND_NS + (ns % SECOND_NS > 0);
}

static bool counts_against(const struct berth_cluster *c, const struct claim *t, uint32_t quota)
{
    uint32_t chain[QUOTA_CHAIN_MAX], len = t ? quota_chain(c->quotas.at, t, chain) : 0;
    for (uint32_t i = 0; i < len; i++)
        if (chain[i] == quota)
            return true;
    return false;
}

/* ---- requests of admitted workloads ----------------------------------------------------------------------------- */

static int64_t workload_requests(const struct workload *w, const struct class *k, uint32_t resource)
{
    int64_t pods = pods_of(w);
    return resource == QUOTA_JOBS ? pods > 0 : clamp((__int128)pods * quota_need(k, resource));
}

/* Returns what all other workloads request. */
static int64_t admitted_by_others(const struct admission_check *j, uint32_t quota, uint32_t resource)
{
    const struct quota *q = &j->c->quotas.at[quota];
    int64_t asked = 0;
    for (size_t i = 0; i < q->books.len; i++)
        if (q->books.at[i].resource == resource)
            asked = q->books.at[i].asked;
    if (j->known == NONE || !counts_against(j->c, cluster_claim(j->c, j->known), quota))
        return asked;
    const struct workload *w = cluster_workload(j->c, j->known);
    return asked - workload_requests(w, cluster_class(j->c, w->class), resource);
}

/* Returns what was spent in the present period plus what all other workloads will spend until they are done. */
static int64_t committed(const struct admission_check *j, uint32_t quota, const struct quota_total *t)
{
    int64_t end;
    bool over = t->period_ns > 0 && !__builtin_add_overflow(t->since_ns, t->period_ns, &end) && j->now_ns >= end;
    __int128 sum = over ? 0 : t->spent;
    for (uint32_t word = 0; word < j->c->accounted.len; word++)
        BITS_EACH (bit, j->c->accounted.at[word]) {
            uint32_t at = word * 64 + (uint32_t)bit;
            const struct workload *w = cluster_workload(j->c, at);
            const struct claim *of = cluster_claim(j->c, at);
            if (at == j->known || !counts_against(j->c, of, quota))
                continue;
            sum += (__int128)workload_requests(w, cluster_class(j->c, w->class), t->resource) *
                   seconds_of(of->estimate_ns, of->limit_ns);
        }
    return clamp(sum);
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static struct berth_admission_result refusal(const struct admission_check *j, uint32_t quota, uint32_t resource,
                                             const char *kind)
{
    const char *name = resource == QUOTA_GPU ? "gpu" : "jobs";
    if (resource < QUOTA_GPU)
        name = intern_text(&j->c->names, j->c->resources.at[resource].name);
    return (struct berth_admission_result){
        .quota = intern_text(&j->c->names, j->c->quotas.at[quota].id), .resource = name, .kind = kind};
}

static bool within(struct berth_admission_result *v, int64_t limit, int64_t used, int64_t asked)
{
    v->limit = limit;
    v->used = used;
    v->asked = asked;
    v->accepted = limit > used ? limit - used : 0;
    return asked <= v->accepted;
}

/* Rejects a draft whose smallest unit of placement exceeds a limit. */
static bool within_limits(const struct admission_check *j, uint32_t quota, struct berth_admission_result *ret)
{
    const struct quota_terms *t = j->c->quotas.at[quota].terms;
    const struct berth_workload *d = j->draft;
    int64_t at_once = d->gang && *d->gang ? (d->gang_min ? d->gang_min : d->replicas) : 1;
    int64_t left = pods_left(j);
    for (uint32_t i = 0; i < t->limits_len; i++) {
        const struct quota_amount *l = &t->limits[i];
        *ret = refusal(j, quota, l->resource, "limit");
        if (!within(ret, l->amount, 0, requested_amount(j, l->resource, at_once < left ? at_once : left)))
            return false;
    }
    return true;
}

static bool within_admitted(const struct admission_check *j, uint32_t quota, struct berth_admission_result *ret)
{
    const struct quota_terms *t = j->c->quotas.at[quota].terms;
    for (uint32_t i = 0; i < t->admitted_len; i++) {
        const struct quota_amount *a = &t->admitted[i];
        *ret = refusal(j, quota, a->resource, "admitted");
        if (!within(ret, a->amount, admitted_by_others(j, quota, a->resource),
                    requested_amount(j, a->resource, pods_left(j))))
            return false;
    }
    return true;
}

static bool within_totals(const struct admission_check *j, uint32_t quota, struct berth_admission_result *ret)
{
    const struct quota_terms *t = j->c->quotas.at[quota].terms;
    int64_t seconds = seconds_of(j->draft->estimate_ns, j->draft->limit_ns);
    for (uint32_t i = 0; i < t->totals_len; i++) {
        const struct quota_total *x = &t->totals[i];
        int64_t asked = clamp((__int128)requested_amount(j, x->resource, pods_left(j)) * seconds);
        *ret = refusal(j, quota, x->resource, "total");
        if (asked && !within(ret, x->limit, committed(j, quota, x), asked))
            return false;
    }
    return true;
}

struct berth_admission_result berth_admission_check(const struct berth_cluster *c, const struct berth_workload *draft,
                                                    int64_t now_ns)
{
    struct admission_check j = {c, draft, cluster_workload_find(c, draft->id), now_ns};
    struct claim t = {0};
    uint32_t chain[QUOTA_CHAIN_MAX];
    for (size_t i = 0; i < draft->quotas_len && t.quotas_len < QUOTAS_MAX; i++) {
        uint32_t quota = cluster_quota_find(c, draft->quotas[i]);
        if (quota != NONE)
            t.quotas[t.quotas_len++] = quota;
    }
    uint32_t len = quota_chain(c->quotas.at, &t, chain);
    for (uint32_t i = 0; i < len; i++) {
        struct berth_admission_result v;
        if (!c->quotas.at[chain[i]].terms)
            continue;
        if (!within_limits(&j, chain[i], &v) || !within_admitted(&j, chain[i], &v) || !within_totals(&j, chain[i], &v))
            return v;
    }
    return (struct berth_admission_result){.ok = true, .quota = "", .resource = "", .kind = ""};
}
