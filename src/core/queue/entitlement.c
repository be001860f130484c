/* entitlement.c - which pods are guaranteed: guarantees are distributed in an order that does not depend on placements.
 */
#include "core/queue/entitlement.h"

#include <string.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/queue/tier.h"

enum { PREFETCH = 8 }; /* workloads in this order are scattered in memory */

/* ---- spare pods ------------------------------------------------------------------------------------------------- */

bool is_elastic(const struct workload *w)
{
    return w->kind == BERTH_JOB && w->gang != NONE && w->gang_min < w->replicas;
}

/* Returns whether the instance exists and stays. */
static bool instance_stays(const struct berth_plan *p, uint32_t slot)
{
    enum berth_state state = snapshot_instance(p->s, slot)->state;
    return state != BERTH_ENDED && state != BERTH_STOPPING && !bits_has(p->c.stopped, slot) &&
           !bits_has(p->c.removed, slot);
}

/* Returns whether the instance waits to take over from one that is still counted as the pod. */
static bool is_extra(const struct berth_plan *p, const struct instance *i)
{
    uint32_t old = snapshot_replaced(p->s, i);
    return old != NONE && instance_stays(p, old);
}

static bool is_counted(const struct berth_plan *p, uint32_t slot)
{
    return instance_stays(p, slot) && !is_extra(p, snapshot_instance(p->s, slot));
}

/* Returns how many pods of the workload come before this one, finished ones included. */
static uint32_t pods_before(const struct berth_plan *p, const struct workload *w, const struct instance *i)
{
    const struct berth_snapshot *s = p->s;
    uint32_t n = 0;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(s, at)->next_of_workload) {
        const struct instance *x = snapshot_instance(s, at);
        n += (is_counted(p, at) || workload_done(w, x)) && x->ordinal < i->ordinal;
    }
    return n;
}

static bool is_spare(const struct berth_plan *p, const struct instance *i)
{
    const struct workload *w = snapshot_workload(p->s, i->workload.v);
    return is_elastic(w) && pods_before(p, w, i) >= w->gang_min;
}

int64_t tier_of_instance(const struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    int32_t priority = snapshot_workload(p->s, i->workload.v)->priority;
    bool lent = p->tiers && p->tiers->lent && bits_has(p->tiers->lent, slot);
    return tier_of(is_spare(p, i) ? BERTH_SPARE : lent ? BERTH_BORROWED : BERTH_GUARANTEED, priority);
}

/* ---- guarantees ------------------------------------------------------------------------------------------------- */

/* The rest of one guarantee during the distribution. */
struct guarantee_rest {
    uint32_t resource;
    int64_t left;
};

struct guarantee_rests {
    struct guarantee_rest *at; /* NULL: no guarantee applies, all pods are guaranteed */
    uint32_t len;
};

/* Returns the capacity of all nodes of a quota resource. */
static int64_t cluster_has(const struct berth_plan *p, uint32_t resource)
{
    const struct layout *l = p->s->layout;
    int64_t sum = 0;
    if (resource == QUOTA_GPU)
        return (int64_t)l->device[l->len] * BERTH_GPU_MILLI;
    for (uint32_t at = 0; resource < l->resources && l->capacity[resource] && at < l->len; at++)
        sum += snapshot_capacity(p->s, resource, at);
    return sum;
}

/* Returns the part of `of` that the quota gets by its weight among the weighted quotas of the same parent. */
static int64_t weighted(const struct berth_plan *p, uint32_t q, int64_t of)
{
    const struct quota *quotas = p->s->quotas;
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->s->quotas_len; i++)
        sum += quotas[i].parent == quotas[q].parent && quotas[i].weighted ? quotas[i].weight : 0;
    return (int64_t)((__int128)of * quotas[q].weight / (sum ? sum : 1));
}

/* Computes the guarantees of a quota, those of its parent first: a share is a share of the parent's guarantee. */
static struct guarantee_rests guarantees_of(struct berth_plan *p, struct guarantee_rests *all, uint8_t *done,
                                            uint32_t q)
{
    const struct quota *quota = &p->s->quotas[q];
    const struct quota_terms *t = quota->terms;
    if (done[q])
        return all[q];
    done[q] = 1;
    if (t && t->guarantees_len) {
        all[q].at = ARENA_ARRAY(&p->scratch, struct guarantee_rest, t->guarantees_len);
        all[q].len = t->guarantees_len;
        for (uint32_t i = 0; i < t->guarantees_len; i++)
            all[q].at[i] = (struct guarantee_rest){t->guarantees[i].resource, t->guarantees[i].amount};
        return all[q];
    }
    if (!quota->weighted)
        return all[q];
    struct guarantee_rests parent = {0};
    if (quota->parent != NONE)
        parent = guarantees_of(p, all, done, quota->parent);
    uint32_t resources = p->s->layout->resources, len = 0;
    struct guarantee_rest *at =
        ARENA_ARRAY(&p->scratch, struct guarantee_rest, (parent.at ? parent.len : resources) + 1);
    for (uint32_t i = 0; parent.at && i < parent.len; i++)
        at[len++] = (struct guarantee_rest){parent.at[i].resource, weighted(p, q, parent.at[i].left)};
    for (uint32_t r = 0; !parent.at && r < resources; r++)
        if (p->s->layout->capacity[r] && !p->s->resources[r].optional)
            at[len++] = (struct guarantee_rest){r, weighted(p, q, cluster_has(p, r))};
    if (!parent.at && cluster_has(p, QUOTA_GPU))
        at[len++] = (struct guarantee_rest){QUOTA_GPU, weighted(p, q, cluster_has(p, QUOTA_GPU))};
    all[q] = (struct guarantee_rests){at, len};
    return all[q];
}

static struct guarantee_rests *guarantees_make(struct berth_plan *p)
{
    struct guarantee_rests *all = ARENA_ARRAY(&p->scratch, struct guarantee_rests, p->s->quotas_len + 1);
    uint8_t *done = ARENA_ARRAY(&p->scratch, uint8_t, p->s->quotas_len + 1);
    for (uint32_t q = 0; q < p->s->quotas_len; q++)
        (void)guarantees_of(p, all, done, q);
    return all;
}

/* The quotas that a workload counts against. */
struct quota_chain {
    uint32_t at[QUOTA_CHAIN_MAX], len;
};

/* Returns how many of `pods` equal pods fit into the rest of every guarantee. */
static uint32_t guarantees_room(const struct guarantee_rests *all, const struct quota_chain *path,
                                const struct class *k, uint32_t pods)
{
    for (uint32_t n = 0; n < path->len; n++)
        for (uint32_t i = 0; i < all[path->at[n]].len; i++) {
            const struct guarantee_rest *g = &all[path->at[n]].at[i];
            int64_t need = quota_need(k, g->resource);
            if (need > 0 && (__int128)need * pods > g->left)
                pods = (uint32_t)(g->left / need);
        }
    return pods;
}

/* Subtracts the pods from every guarantee; a negative number adds them back. */
static void guarantees_take(struct guarantee_rests *all, const struct quota_chain *path, const struct class *k,
                            int64_t pods)
{
    for (uint32_t n = 0; n < path->len; n++)
        for (uint32_t i = 0; i < all[path->at[n]].len; i++)
            all[path->at[n]].at[i].left -= quota_need(k, all[path->at[n]].at[i].resource) * pods;
}

/* ---- placed pods ------------------------------------------------------------------------------------------------ */

/* Returns whether the instance is stopping and its pod is still wanted afterwards. Such an instance counts as its pod:
 * otherwise other pods would take its part of the guarantee until the pod is demanded again. */
static bool is_wanted_again(const struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct workload *w = snapshot_workload(p->s, i->workload.v);
    bool stopping = i->state == BERTH_STOPPING || (state_active(i->state) && bits_has(p->c.stopped, slot));
    if (!stopping || is_extra(p, i) || bits_has(p->c.removed, slot) || w->gone || w->suspended ||
        i->ordinal >= w->replicas || w->on_lost == BERTH_LOST_REPLACE)
        return false; /* a pod that may run twice is demanded at once */
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *x = snapshot_instance(p->s, at);
        if (at != slot && x->ordinal == i->ordinal && (x->id > i->id || workload_done(w, x)))
            return false;
    }
    return true;
}

/* Returns the instances that count as the workload's pods, by ordinal, then by id. Two instances of one ordinal may
 * differ in shape, and the order of the chain depends on the order in which the cluster was told of them. */
static struct keyed *placed_make(struct berth_plan *p, uint32_t workload, uint32_t *ret_len)
{
    const struct berth_snapshot *s = p->s;
    const struct workload *w = snapshot_workload(s, workload);
    uint32_t len = 0;
    *ret_len = 0;
    if (w->first == NONE)
        return NULL;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(s, at)->next_of_workload)
        len++;
    struct keyed *rows = arena_alloc(&p->scratch, (2 * (size_t)len + 1) * sizeof *rows);
    len = 0;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(s, at);
        if (is_counted(p, at) || is_wanted_again(p, at))
            rows[len++] = (struct keyed){i->id, at};
    }
    sort_keyed(rows, rows + len, len);
    for (uint32_t n = 0; n < len; n++)
        rows[n].key = snapshot_instance(s, rows[n].value)->ordinal;
    sort_keyed(rows, rows + len, len);
    *ret_len = len;
    return rows;
}

/* Returns how many pods of the workload's gang minimum have not ended. */
static uint32_t gang_needs(const struct workload *w)
{
    return !w->suspended && w->gang_min > w->ended ? w->gang_min - w->ended : 0;
}

/* Returns whether the minimum of all the gang's workloads together fits into the guarantees; if so, subtracts it. */
static bool gang_fits_guarantees(struct berth_plan *p, struct guarantee_rests *all, uint32_t gang)
{
    const struct berth_snapshot *s = p->s;
    uint32_t first = ((const struct gang *)pages_at(&s->gangs, gang))->first;
    bool fits = true;
    /* pass 0 subtracts; pass 1 adds back if the gang does not fit */
    for (int turn = 0; turn < 2 && (turn == 0 || !fits); turn++)
        for (uint32_t w = first; w != NONE; w = snapshot_workload(s, w)->next_in_gang) {
            const struct workload *x = snapshot_workload(s, w);
            const struct claim *claim = snapshot_claim(s, w);
            const struct class *k = snapshot_class(s, x->class);
            uint32_t pods = gang_needs(x);
            if (!claim || pods == 0)
                continue;
            struct quota_chain path;
            path.len = quota_chain(s->quotas, claim, path.at);
            if (turn == 0)
                fits &= guarantees_room(all, &path, k, pods) == pods;
            guarantees_take(all, &path, k, turn == 0 ? (int64_t)pods : -(int64_t)pods);
        }
    return fits;
}

enum { GANG_UNKNOWN, GANG_GUARANTEED, GANG_BORROWED };

static bool gang_is_guaranteed(struct berth_plan *p, struct guarantee_rests *all, uint8_t *gangs, uint32_t gang)
{
    if (gangs[gang] == GANG_UNKNOWN)
        gangs[gang] = gang_fits_guarantees(p, all, gang) ? GANG_GUARANTEED : GANG_BORROWED;
    return gangs[gang] == GANG_GUARANTEED;
}

/* ---- workloads -------------------------------------------------------------------------------------------------- */

/* Returns how many pods of the demand, from index `from` on, have a lower ordinal. */
static uint32_t pods_below(const struct demand *w, uint32_t from, uint32_t ordinal)
{
    uint32_t n = from;
    if (!w->ordinals && ordinal >= w->first + w->len)
        return w->len - from;
    while (n < w->len && demand_ordinal(w, n) < ordinal)
        n++;
    return n - from;
}

/* Marks the first pods of a workload as guaranteed, by ordinal, whether placed or not; returns how many pods of its
 * demand are guaranteed. */
static uint32_t entitle_pods(struct berth_plan *p, struct guarantee_rests *all, uint32_t workload,
                             const struct demand *w)
{
    uint32_t len, at = 0, right = 0;
    const struct keyed *placed = placed_make(p, workload, &len);
    const struct class *wished = w ? snapshot_class(p->s, w->class) : NULL;
    struct quota_chain path;
    path.len = quota_chain(p->s->quotas, snapshot_claim(p->s, workload), path.at);
    bool open = true;
    for (uint32_t n = 0; n <= len; n++) {
        uint32_t pods = w ? pods_below(w, at, n < len ? (uint32_t)placed[n].key : UINT32_MAX) : 0;
        uint32_t granted = pods && open ? guarantees_room(all, &path, wished, pods) : 0;
        if (granted)
            guarantees_take(all, &path, wished, granted);
        right += granted;
        at += pods;
        open &= granted == pods;
        if (n == len)
            break;
        const struct class *k = snapshot_class(p->s, snapshot_instance(p->s, placed[n].value)->class);
        open = open && guarantees_room(all, &path, k, 1) == 1;
        if (open)
            guarantees_take(all, &path, k, 1);
        else
            bits_add(p->tiers->lent, placed[n].value);
    }
    return right;
}

/* Marks either all pods of a gang as guaranteed or none. */
static bool entitle_gang(struct berth_plan *p, struct guarantee_rests *all, uint8_t *gangs, uint32_t workload,
                         bool waits)
{
    uint32_t len, gang = snapshot_workload(p->s, workload)->gang;
    const struct keyed *placed = placed_make(p, workload, &len);
    bool right = true;
    for (uint32_t n = 0; n < len; n++) {
        if (is_spare(p, snapshot_instance(p->s, placed[n].value)))
            continue;
        right = gang_is_guaranteed(p, all, gangs, gang);
        if (!right)
            bits_add(p->tiers->lent, placed[n].value);
    }
    return waits ? gang_is_guaranteed(p, all, gangs, gang) : right;
}

/* Sets the tier of the workload's demand, or in right[] how many pods of a partly guaranteed demand are guaranteed. */
static void entitle_workload(struct berth_plan *p, struct guarantee_rests *all, uint8_t *gangs, uint32_t workload,
                             uint32_t demand, uint32_t *right)
{
    const struct workload *of = snapshot_workload(p->s, workload);
    struct demand *w = demand == NONE ? NULL : &p->demands.at[demand];
    struct arena_mark mark = arena_mark(&p->scratch);
    if (of->gang != NONE && of->kind == BERTH_JOB) {
        if (!entitle_gang(p, all, gangs, workload, w && w->group != NONE) && w)
            w->tier = tier_of(BERTH_BORROWED, of->priority);
        arena_rewind(&p->scratch, mark);
        return;
    }
    uint32_t pods = entitle_pods(p, all, workload, w);
    arena_rewind(&p->scratch, mark);
    if (!w || pods == w->len)
        return;
    if (pods == 0 || w->group != NONE) {
        w->tier = tier_of(BERTH_BORROWED, of->priority);
        return;
    }
    right[demand] = pods;
}

/* Prefetches workloads that come soon, then what they refer to. Always inlined: the compiler removes calls of a
 * function that only prefetches as calls without effect. */
static inline __attribute__((always_inline)) void prefetch_workloads(const struct berth_plan *p, uint32_t i,
                                                                     const uint32_t *demand_of)
{
    const struct berth_snapshot *s = p->s;
    if (i + 2 * PREFETCH < p->accounted_order_len) {
        __builtin_prefetch(snapshot_workload(s, p->accounted_order[i + 2 * PREFETCH]));
        __builtin_prefetch(&demand_of[p->accounted_order[i + 2 * PREFETCH]]);
    }
    if (i + PREFETCH >= p->accounted_order_len)
        return;
    const struct workload *w = snapshot_workload(s, p->accounted_order[i + PREFETCH]);
    uint32_t demand = demand_of[p->accounted_order[i + PREFETCH]];
    if (w->claim != NONE)
        __builtin_prefetch(pages_at(&s->claims, w->claim));
    if (w->first != NONE)
        __builtin_prefetch(snapshot_instance(s, w->first));
    if (demand != NONE)
        __builtin_prefetch(&p->demands.at[demand], 1);
}

void entitlements_compute(struct berth_plan *p)
{
    uint32_t demands = (uint32_t)p->demands.len;
    struct guarantee_rests *all = guarantees_make(p);
    uint8_t *gangs = ARENA_ARRAY(&p->scratch, uint8_t, p->s->gangs.len + 1);
    uint32_t *demand_of = arena_alloc(&p->scratch, (p->s->workloads.len + 1) * sizeof *demand_of);
    uint32_t *right = ARENA_ARRAY(&p->scratch, uint32_t, demands + 1);
    demand_part_list parts = {0};
    p->tiers->lent = ARENA_ARRAY(&p->arena, uint64_t, bits_words(p->s->instances.len) + 1);
    memset(demand_of, 0xff, (p->s->workloads.len + 1) * sizeof *demand_of);
    for (uint32_t i = 0; i < demands; i++)
        if (p->demands.at[i].replaces == NONE && p->demands.at[i].spare_of == NONE)
            demand_of[p->demands.at[i].workload] = i;
    /* The order does not depend on placements, so placing or stopping pods does not change which pods are
     * guaranteed. */
    for (uint32_t i = 0; i < p->accounted_order_len; i++) {
        prefetch_workloads(p, i, demand_of);
        entitle_workload(p, all, gangs, p->accounted_order[i], demand_of[p->accounted_order[i]], right);
    }
    for (uint32_t i = 0; i < demands; i++) {
        if (right[i] == 0)
            continue;
        struct demand rest = demand_split(&p->demands.at[i], right[i]);
        rest.tier = tier_of(BERTH_BORROWED, snapshot_workload(p->s, rest.workload)->priority);
        vec_push(&parts, ((struct demand_part){i, rest}));
    }
    demand_parts_insert(p, &parts);
}
