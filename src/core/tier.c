/* tier.c - who is by right, and all wishes in the order in which they are granted. */
#include "core/tier.h"

#include <string.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/future.h"
#include "core/rank.h"

struct tiers {
    uint64_t *lent; /* instance slots that are borrowed; NULL: none */
};

/* ---- spare pods --------------------------------------------------------------------------------------------------- */

static bool is_elastic(const struct workload *w)
{
    return w->kind == BERTH_JOB && w->gang != NONE && w->gang_min < w->replicas;
}

static bool is_counted(const struct instance *i)
{
    return i->state != BERTH_ENDED && i->state != BERTH_STOPPING && i->replaces == 0;
}

/* How many of its pods come before this one, those that are done included. */
static uint32_t pods_before(const struct berth_plan *p, const struct workload *w, const struct instance *i)
{
    const struct berth_snapshot *s = p->s;
    uint32_t n = 0;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(s, at)->next_of_workload) {
        const struct instance *x = snapshot_instance(s, at);
        bool goes = bits_has(p->c.stopped, at) || bits_has(p->c.removed, at);
        n += ((is_counted(x) && !goes) || workload_done(w, x)) && x->ordinal < i->ordinal;
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
    return tier_of(is_spare(p, i) ? BERTH_SPARE : lent ? BERTH_BORROWED : BERTH_BY_RIGHT, priority);
}

/* ---- guarantees --------------------------------------------------------------------------------------------------- */

/* What is left of one guarantee as it is given out. */
struct grant {
    uint32_t resource;
    int64_t left;
};

struct grants {
    struct grant *at; /* NULL: everything is by right */
    uint32_t len;
};

/* What all nodes have of a resource of quotas. */
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

/* By its weight's share among those of the same parent. */
static int64_t weighted(const struct berth_plan *p, uint32_t q, int64_t of)
{
    const struct quota *quotas = p->s->quotas;
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->s->quotas_len; i++)
        sum += quotas[i].parent == quotas[q].parent && quotas[i].weighted ? quotas[i].weight : 0;
    return (int64_t)((__int128)of * quotas[q].weight / (sum ? sum : 1));
}

/* Parents come first: a share is of what the parent is guaranteed. */
static struct grants grants_of(struct berth_plan *p, struct grants *all, uint8_t *done, uint32_t q)
{
    const struct quota *quota = &p->s->quotas[q];
    const struct quota_terms *t = quota->terms;
    if (done[q])
        return all[q];
    done[q] = 1;
    if (t && t->guarantees_len) {
        all[q].at = ARENA_ARRAY(&p->scratch, struct grant, t->guarantees_len);
        all[q].len = t->guarantees_len;
        for (uint32_t i = 0; i < t->guarantees_len; i++)
            all[q].at[i] = (struct grant){t->guarantees[i].resource, t->guarantees[i].amount};
        return all[q];
    }
    if (!quota->weighted)
        return all[q];
    struct grants parent = {0};
    if (quota->parent != NONE)
        parent = grants_of(p, all, done, quota->parent);
    uint32_t resources = p->s->layout->resources, len = 0;
    struct grant *at = ARENA_ARRAY(&p->scratch, struct grant, (parent.at ? parent.len : resources) + 1);
    for (uint32_t i = 0; parent.at && i < parent.len; i++)
        at[len++] = (struct grant){parent.at[i].resource, weighted(p, q, parent.at[i].left)};
    for (uint32_t r = 0; !parent.at && r < resources; r++)
        if (p->s->layout->capacity[r] && !p->s->resources[r].optional)
            at[len++] = (struct grant){r, weighted(p, q, cluster_has(p, r))};
    if (!parent.at && cluster_has(p, QUOTA_GPU))
        at[len++] = (struct grant){QUOTA_GPU, weighted(p, q, cluster_has(p, QUOTA_GPU))};
    all[q] = (struct grants){at, len};
    return all[q];
}

static struct grants *grants_make(struct berth_plan *p)
{
    struct grants *all = ARENA_ARRAY(&p->scratch, struct grants, p->s->quotas_len + 1);
    uint8_t *done = ARENA_ARRAY(&p->scratch, uint8_t, p->s->quotas_len + 1);
    for (uint32_t q = 0; q < p->s->quotas_len; q++)
        (void)grants_of(p, all, done, q);
    return all;
}

/* How many of `pods` equal pods are by right, by what is left of every guarantee. */
static uint32_t grants_room(const struct berth_plan *p, const struct grants *all, const struct claim *claim,
                            const struct class *k, uint32_t pods)
{
    uint32_t chain[QUOTA_CHAIN_MAX], len = quota_chain(p->s->quotas, claim, chain);
    for (uint32_t n = 0; n < len; n++)
        for (uint32_t i = 0; i < all[chain[n]].len; i++) {
            const struct grant *g = &all[chain[n]].at[i];
            int64_t need = quota_need(k, g->resource);
            if (need > 0 && g->left / need < pods)
                pods = (uint32_t)(g->left / need);
        }
    return pods;
}

/* Below 0 pods: given back. */
static void grants_take(const struct berth_plan *p, struct grants *all, const struct claim *claim,
                        const struct class *k, int64_t pods)
{
    uint32_t chain[QUOTA_CHAIN_MAX], len = quota_chain(p->s->quotas, claim, chain);
    for (uint32_t n = 0; n < len; n++)
        for (uint32_t i = 0; i < all[chain[n]].len; i++)
            all[chain[n]].at[i].left -= quota_need(k, all[chain[n]].at[i].resource) * pods;
}

/* ---- what has a place ---------------------------------------------------------------------------------------------- */

/* Is it stopping, and its pod still wanted, once it has stopped? Then it stands for that: else others would take what is its
 * right, only until it is wished for again. */
static bool comes_back(const struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct workload *w = snapshot_workload(p->s, i->workload.v);
    bool stopping = i->state == BERTH_STOPPING || (state_active(i->state) && bits_has(p->c.stopped, slot));
    if (!stopping || i->replaces || bits_has(p->c.removed, slot) || w->gone || w->suspended ||
        i->ordinal >= w->replicas || w->on_lost == BERTH_LOST_REPLACE)
        return false; /* one that may run twice is wished for at once */
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *x = snapshot_instance(p->s, at);
        if (at != slot && x->ordinal == i->ordinal && (x->id > i->id || workload_done(w, x)))
            return false;
    }
    return true;
}

/* Its instances that stand for its pods, in order of their ordinals. */
static struct keyed *placed_make(struct berth_plan *p, uint32_t workload, uint32_t *ret_len)
{
    const struct berth_snapshot *s = p->s;
    const struct workload *w = snapshot_workload(s, workload);
    uint32_t len = 0;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(s, at)->next_of_workload)
        len++;
    struct keyed *rows = arena_alloc(&p->scratch, (2 * (size_t)len + 1) * sizeof *rows);
    len = 0;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(s, at);
        bool stands = is_counted(i) && !bits_has(p->c.removed, at) && !bits_has(p->c.stopped, at);
        if (stands || comes_back(p, at))
            rows[len++] = (struct keyed){i->ordinal, at};
    }
    sort_keyed(rows, rows + len, len);
    *ret_len = len;
    return rows;
}

/* Pods that a workload of a gang needs at least and has not had yet. */
static uint32_t gang_needs(const struct workload *w)
{
    return !w->suspended && w->gang_min > w->ended ? w->gang_min - w->ended : 0;
}

/* Those of all its workloads are by right together, or borrowed. */
static bool gang_by_right(struct berth_plan *p, struct grants *all, uint32_t gang)
{
    const struct berth_snapshot *s = p->s;
    uint32_t first = ((const struct gang *)pages_at(&s->gangs, gang))->first;
    bool fits = true;
    for (int turn = 0; turn < 2 && (turn == 0 || !fits); turn++) /* taken; and given back if it is too much */
        for (uint32_t w = first; w != NONE; w = snapshot_workload(s, w)->next_in_gang) {
            const struct workload *x = snapshot_workload(s, w);
            const struct claim *claim = snapshot_claim(s, w);
            const struct class *k = snapshot_class(s, x->class);
            uint32_t pods = gang_needs(x);
            if (!claim || pods == 0)
                continue;
            if (turn == 0)
                fits &= grants_room(p, all, claim, k, pods) == pods;
            grants_take(p, all, claim, k, turn == 0 ? (int64_t)pods : -(int64_t)pods);
        }
    return fits;
}

enum { GANG_UNKNOWN, GANG_BY_RIGHT, GANG_BORROWED };

static bool gang_looked(struct berth_plan *p, struct grants *all, uint8_t *gangs, uint32_t gang)
{
    if (gangs[gang] == GANG_UNKNOWN)
        gangs[gang] = gang_by_right(p, all, gang) ? GANG_BY_RIGHT : GANG_BORROWED;
    return gangs[gang] == GANG_BY_RIGHT;
}

/* ---- wishes --------------------------------------------------------------------------------------------------------- */

static uint32_t group_end(const struct berth_plan *p, uint32_t from)
{
    uint32_t to = from + 1;
    while (p->wishes.at[from].group != NONE && to < p->wishes.len && p->wishes.at[to].group == p->wishes.at[from].group)
        to++;
    return to;
}

/* The first `pods` of a wish stay in it, the others become one of their own; returns that. */
static struct wish wish_split(struct wish *w, uint32_t pods)
{
    struct wish rest = *w;
    rest.len = w->len - pods;
    rest.first = w->first + pods;
    rest.ordinals = w->ordinals ? w->ordinals + pods : NULL;
    rest.needed = 0;
    w->len = pods;
    return rest;
}

/* Parts that were split off, each with the wish it comes after; in that order. */
typedef VEC(struct part) part_list;
struct part {
    uint32_t after;
    struct wish wish;
};

/* Puts parts where they belong: behind the group of the wish that they were part of. */
static void parts_insert(struct berth_plan *p, part_list *parts)
{
    size_t len = p->wishes.len, to = 0, next = 0;
    if (parts->len) {
        struct arena_mark mark = arena_mark(&p->scratch);
        struct wish *old = arena_dup(&p->scratch, p->wishes.at, len * sizeof *old);
        vec_resize(&p->wishes, len + parts->len);
        for (size_t i = 0; i < len; i++) {
            p->wishes.at[to++] = old[i];
            bool more = i + 1 < len && old[i].group != NONE && old[i + 1].group == old[i].group;
            while (!more && next < parts->len && parts->at[next].after <= i)
                p->wishes.at[to++] = parts->at[next++].wish;
        }
        arena_rewind(&p->scratch, mark);
    }
    vec_done(parts);
}

/* Pods of an elastic gang beyond its minimum. They wait for the minimum, if that is not there yet. */
static void split_spare(struct berth_plan *p, uint32_t i, part_list *parts)
{
    struct wish *w = &p->wishes.at[i];
    const struct workload *of = snapshot_workload(p->s, w->workload);
    if (w->group == NONE || w->replaces != NONE || !is_elastic(of) || w->needed >= w->len)
        return;
    struct wish rest = wish_split(w, w->needed);
    rest.group = NONE;
    rest.spare_of = w->group;
    rest.tier = tier_of(BERTH_SPARE, of->priority);
    vec_push(parts, ((struct part){i, rest}));
}

/* How many pods of the wish, from this one on, come before the ordinal. */
static uint32_t pods_below(const struct wish *w, uint32_t from, uint32_t ordinal)
{
    uint32_t n = from;
    if (!w->ordinals && ordinal >= w->first + w->len)
        return w->len - from;
    while (n < w->len && wish_ordinal(w, n) < ordinal)
        n++;
    return n - from;
}

/* The first pods of a workload are by right, in the order of their ordinals, whether they have a place or not; returns how
 * many of its wish are. */
static uint32_t look_pods(struct berth_plan *p, struct grants *all, uint32_t workload, const struct wish *w)
{
    const struct claim *claim = snapshot_claim(p->s, workload);
    uint32_t len, at = 0, right = 0;
    const struct keyed *placed = placed_make(p, workload, &len);
    bool open = true;
    for (uint32_t n = 0; n <= len; n++) {
        uint32_t pods = w ? pods_below(w, at, n < len ? (uint32_t)placed[n].key : UINT32_MAX) : 0;
        uint32_t granted = pods && open ? grants_room(p, all, claim, snapshot_class(p->s, w->class), pods) : 0;
        if (granted)
            grants_take(p, all, claim, snapshot_class(p->s, w->class), granted);
        right += granted;
        at += pods;
        open &= granted == pods;
        if (n == len)
            break;
        const struct class *k = snapshot_class(p->s, snapshot_instance(p->s, placed[n].value)->class);
        open = open && grants_room(p, all, claim, k, 1) == 1;
        if (open)
            grants_take(p, all, claim, k, 1);
        else
            bits_add(p->tiers->lent, placed[n].value);
    }
    return right;
}

/* Pods of a gang are by right all, or none. */
static bool look_gang(struct berth_plan *p, struct grants *all, uint8_t *gangs, uint32_t workload, bool waits)
{
    uint32_t len, gang = snapshot_workload(p->s, workload)->gang;
    const struct keyed *placed = placed_make(p, workload, &len);
    bool right = true;
    for (uint32_t n = 0; n < len; n++) {
        if (is_spare(p, snapshot_instance(p->s, placed[n].value)))
            continue;
        right = gang_looked(p, all, gangs, gang);
        if (!right)
            bits_add(p->tiers->lent, placed[n].value);
    }
    return waits ? gang_looked(p, all, gangs, gang) : right;
}

/* `right`: of wishes that are so in part, how many of its pods. */
static void look_workload(struct berth_plan *p, struct grants *all, uint8_t *gangs, uint32_t workload, uint32_t wish,
                          uint32_t *right)
{
    const struct workload *of = snapshot_workload(p->s, workload);
    struct wish *w = wish == NONE ? NULL : &p->wishes.at[wish];
    struct arena_mark mark = arena_mark(&p->scratch);
    if (of->gang != NONE && of->kind == BERTH_JOB) {
        if (!look_gang(p, all, gangs, workload, w && w->group != NONE) && w)
            w->tier = tier_of(BERTH_BORROWED, of->priority);
        arena_rewind(&p->scratch, mark);
        return;
    }
    uint32_t pods = look_pods(p, all, workload, w);
    arena_rewind(&p->scratch, mark);
    if (!w || pods == w->len)
        return;
    if (pods == 0 || w->group != NONE) {
        w->tier = tier_of(BERTH_BORROWED, of->priority);
        return;
    }
    right[wish] = pods;
}

static void entitle(struct berth_plan *p)
{
    uint32_t wishes = (uint32_t)p->wishes.len;
    struct grants *all = grants_make(p);
    uint8_t *gangs = ARENA_ARRAY(&p->scratch, uint8_t, p->s->gangs.len + 1);
    uint32_t *wish_of = arena_alloc(&p->scratch, (p->s->workloads.len + 1) * sizeof *wish_of);
    uint32_t *right = ARENA_ARRAY(&p->scratch, uint32_t, wishes + 1);
    part_list parts = {0};
    p->tiers->lent = ARENA_ARRAY(&p->arena, uint64_t, bits_words(p->s->instances.len) + 1);
    memset(wish_of, 0xff, (p->s->workloads.len + 1) * sizeof *wish_of);
    for (uint32_t i = 0; i < wishes; i++)
        if (p->wishes.at[i].replaces == NONE && p->wishes.at[i].spare_of == NONE)
            wish_of[p->wishes.at[i].workload] = i;
    /* In an order that knows nothing of places, so that none that is given or taken changes who is by right. */
    for (uint32_t i = 0; i < p->by_age_len; i++)
        look_workload(p, all, gangs, p->by_age[i], wish_of[p->by_age[i]], right);
    for (uint32_t i = 0; i < wishes; i++) {
        if (right[i] == 0)
            continue;
        struct wish rest = wish_split(&p->wishes.at[i], right[i]);
        rest.tier = tier_of(BERTH_BORROWED, snapshot_workload(p->s, rest.workload)->priority);
        vec_push(&parts, ((struct part){i, rest}));
    }
    parts_insert(p, &parts);
}

/* ---- the order ------------------------------------------------------------------------------------------------------ */

static uint64_t flip64(int64_t v)
{
    return ~((uint64_t)v ^ (uint64_t)1 << 63); /* highest first */
}

/* Groups by a key of their first wish, stable. `by`: 0 key, 1 queue, 2 whether it has waited for too long, 3 priority,
 * 4 tier, 5 id, 6 creation. */
static uint64_t sort_key(const struct berth_plan *p, const struct wish *w, unsigned by)
{
    switch (by) {
    case 0: return w->waited ? 0 : flip64(w->key);
    case 1: return w->waited ? 0 : flip64(w->queue_priority);
    case 2: return !w->waited;
    case 3: return flip64(snapshot_workload(p->s, w->workload)->priority);
    case 5: return p->s->ranks[w->workload];
    case 6: return (uint64_t)snapshot_workload(p->s, w->workload)->created_ns ^ (uint64_t)1 << 63;
    default: return flip64(w->tier);
    }
}

static void sort_wishes(struct berth_plan *p, unsigned from, unsigned to)
{
    size_t len = p->wishes.len, n = 0;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct keyed *rows = arena_alloc(&p->scratch, (2 * len + 1) * sizeof *rows);
    bool moved = false;
    for (uint32_t i = 0; i < len; i = group_end(p, i))
        rows[n++].value = i;
    for (unsigned by = from; by <= to; by++) {
        bool same = true;
        for (size_t i = 0; i < n; i++) {
            rows[i].key = sort_key(p, &p->wishes.at[rows[i].value], by);
            same &= rows[i].key == rows[0].key;
        }
        if (!same)
            sort_keyed(rows, rows + n, n);
        moved |= !same;
    }
    if (moved) {
        struct wish *old = arena_dup(&p->scratch, p->wishes.at, len * sizeof *old);
        size_t to_at = 0;
        for (size_t i = 0; i < n; i++) {
            uint32_t at = rows[i].value, group = old[at].group;
            do
                p->wishes.at[to_at++] = old[at++];
            while (group != NONE && at < len && old[at].group == group);
        }
    }
    arena_rewind(&p->scratch, mark);
}

/* Keys of all that waits, of each workload once. */
static int rank(struct berth_plan *p, struct berth_err *err)
{
    uint32_t len = (uint32_t)p->wishes.len, n = 0;
    struct arena_mark mark = arena_mark(&p->scratch);
    uint32_t *workloads = ARENA_ARRAY(&p->scratch, uint32_t, len + 1);
    int64_t *keys = ARENA_ARRAY(&p->scratch, int64_t, len + 1);
    for (uint32_t i = 0; i < len; i++)
        if (n == 0 || workloads[n - 1] != p->wishes.at[i].workload)
            workloads[n++] = p->wishes.at[i].workload;
    int rc = rank_keys(p, workloads, n, keys, err);
    for (uint32_t i = 0, k = 0; rc == 0 && i < len; i++) {
        struct wish *w = &p->wishes.at[i];
        k += workloads[k] != w->workload;
        w->key = keys[k];
    }
    arena_rewind(&p->scratch, mark);
    return rc;
}

static void describe_wish(struct berth_plan *p, struct wish *w)
{
    const struct workload *of = snapshot_workload(p->s, w->workload);
    const struct claim *claim = snapshot_claim(p->s, w->workload);
    int64_t bound;
    w->claim = claim;
    w->duration_ns = future_duration(p, w->workload);
    w->spare_of = w->more = NONE;
    w->created_ns = of->created_ns;
    w->queue = claim ? rank_queue(p, claim) : NONE;
    w->queue_priority = w->queue == NONE ? 0 : p->policy.order.queues[w->queue].priority;
    w->tier = tier_of(BERTH_BY_RIGHT, of->priority);
    if (p->policy.order.max_wait_ns == 0 || of->kind != BERTH_JOB ||
        __builtin_add_overflow(of->created_ns, p->policy.order.max_wait_ns, &bound))
        return;
    w->waited = bound <= p->s->now_ns;
    plan_recheck(p, bound);
}

/* Later parts of a workload's wish are found from the first. */
static void chain_parts(struct berth_plan *p)
{
    uint32_t *last = NULL;
    for (uint32_t i = 0; i < p->wishes.len; i++) {
        struct wish *w = &p->wishes.at[i];
        if (!last) {
            last = arena_alloc(&p->scratch, (p->s->workloads.len + 1) * sizeof *last);
            memset(last, 0xff, (p->s->workloads.len + 1) * sizeof *last);
        }
        if (w->replaces != NONE)
            continue;
        if (last[w->workload] != NONE) {
            p->wishes.at[last[w->workload]].more = i;
            w->is_part = true;
        }
        last[w->workload] = i;
    }
}

void tiers_again(struct berth_plan *p, size_t from)
{
    for (size_t i = from; i < p->wishes.len; i++) {
        struct wish *w = &p->wishes.at[i];
        struct berth_err err;
        if (rank_keys(p, &w->workload, 1, &w->key, &err))
            w->key = 0; /* a formula that fails for it alone: the last of its tier */
    }
    for (size_t i = 0; i < p->wishes.len; i++) {
        p->wishes.at[i].more = NONE;
        p->wishes.at[i].is_part = false;
    }
    struct arena_mark mark = arena_mark(&p->scratch);
    sort_wishes(p, 5, 6);
    sort_wishes(p, 0, 4);
    chain_parts(p);
    arena_rewind(&p->scratch, mark);
}

int tiers_make(struct berth_plan *p, struct berth_err *err)
{
    p->tiers = ARENA_ARRAY(&p->arena, struct tiers, 1);
    rank_begin(p);
    for (size_t i = 0; i < p->wishes.len; i++)
        describe_wish(p, &p->wishes.at[i]);
    int rc = p->wishes.len ? rank(p, err) : 0;
    if (rc)
        return rc;
    struct arena_mark mark = arena_mark(&p->scratch);
    size_t whole = p->wishes.len;
    sort_wishes(p, 0, 3);
    part_list spare = {0};
    for (uint32_t i = 0; i < whole; i++)
        split_spare(p, i, &spare);
    parts_insert(p, &spare);
    if (p->s->guaranteed)
        entitle(p);
    sort_wishes(p, 4, 4);
    if (p->wishes.len != whole)
        chain_parts(p);
    arena_rewind(&p->scratch, mark);
    if (p->wishes.len)
        rank_recheck(p);
    return 0;
}
