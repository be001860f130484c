/* drf.c - dominant resource fairness by progressive filling.
 *
 * All admitted work is allocated once more on paper, each account's work in the order creation, id. The key of a
 * workload is the dominant share that its account has received before it, over the account's weight. The workload with
 * the lowest share is next. Work without an account has the key 0. The shares are counted over all admitted work, so
 * the difference between running and waiting work changes nothing.
 */
#include "base/bits.h"
#include "core/queue/factor.h"

struct drf_shares {
    int64_t *at; /* [account * kinds + kind] */
    double *share;
    uint32_t kinds;
    uint32_t *kind_of; /* [resource]: NONE where there is none */
};

/* Returns zeroed shares; the kinds are the resources that the cluster has, and GPUs. */
static struct drf_shares drf_shares_new(struct ranks *r)
{
    const struct berth_snapshot *s = r->s;
    struct drf_shares g = {.kind_of = ARENA_ARRAY(&r->p->scratch, uint32_t, QUOTA_RESOURCES)};
    for (uint32_t i = 0; i < QUOTA_RESOURCES; i++)
        g.kind_of[i] = ranks_total(r, i) > 0 ? g.kinds++ : NONE;
    g.at = ARENA_ARRAY(&r->p->scratch, int64_t, (size_t)s->quotas_len * g.kinds + 1);
    g.share = ARENA_ARRAY(&r->p->scratch, double, s->quotas_len + 1);
    return g;
}

static void drf_add_usage(struct ranks *r, struct drf_shares *g, uint32_t account, uint32_t resource, int64_t pods,
                          int64_t need)
{
    uint32_t kind = g->kind_of[resource];
    if (kind == NONE || need == 0)
        return;
    int64_t *sum = &g->at[(size_t)account * g->kinds + kind];
    __int128 more = (__int128)pods * need + *sum;
    *sum = more < INT64_MAX / 2 ? (int64_t)more : INT64_MAX / 2;
    double share = ranks_share(r, resource, *sum);
    g->share[account] = share > g->share[account] ? share : g->share[account];
}

static void fill(struct ranks *r, struct drf_shares *g, uint32_t workload)
{
    const struct workload *w = snapshot_workload(r->s, workload);
    const struct class *k = snapshot_class(r->s, w->class);
    uint32_t account = snapshot_claim(r->s, workload)->quotas[0];
    int64_t pods = w->suspended || w->ended >= w->replicas ? 0 : w->replicas - w->ended;
    r->filled[workload] = g->share[account] / r->s->quotas[account].weight;
    for (uint32_t i = 0; pods && i < k->needs_len; i++)
        drf_add_usage(r, g, account, k->needs[i].resource, pods, k->needs[i].amount);
    if (pods && k->gpu.count)
        drf_add_usage(r, g, account, QUOTA_GPU, pods, quota_need(k, QUOTA_GPU));
}

void drf_make(struct ranks *r)
{
    const struct berth_snapshot *s = r->s;
    size_t len = bits_count(s->accounted, s->accounted_len), n = 0;
    struct arena_mark mark = arena_mark(&r->p->scratch);
    struct keyed *rows = arena_alloc(&r->p->scratch, (2 * len + 1) * sizeof *rows);

    r->filled = ARENA_ARRAY(&r->p->arena, double, s->workloads.len + 1);
    for (uint32_t word = 0; word < s->accounted_len; word++)
        BITS_EACH (bit, s->accounted[word]) {
            uint32_t at = word * 64 + (uint32_t)bit;
            rows[n++] = (struct keyed){s->ranks[at], at};
        }
    sort_keyed(rows, rows + len, len);
    for (size_t i = 0; i < len; i++)
        rows[i].key = (uint64_t)snapshot_workload(s, rows[i].value)->created_ns ^ (uint64_t)1 << 63;
    sort_keyed(rows, rows + len, len);
    struct drf_shares g = drf_shares_new(r);
    for (size_t i = 0; i < len; i++)
        fill(r, &g, rows[i].value);
    arena_rewind(&r->p->scratch, mark);
}
