/* preempt_cost.c - chooses the victims on one node. */
#include "core/preempt/preempt_cost.h"

#include <string.h>

#include "core/gpu/gpu.h"
#include "core/preempt/disruption_budget.h"
#include "core/queue/plan_quota.h"

struct victim_trial {
    struct berth_plan *p;
    const struct preemptor *a;
    uint32_t position;
    uint32_t gang; /* gang of the preemptor, or NONE */
    int64_t *left; /* [need]: free after all stops, with what the chosen groups free */
    int32_t milli[BERTH_NODE_GPUS_MAX];
    int64_t mem[BERTH_NODE_GPUS_MAX];
    uint32_t devices;
    uint64_t suits; /* devices that suit the class, a bit each */
    uint32_t *chosen, len;
};

/* Sets what is free without victims; returns false if no node has one of the resources. */
static bool fill(struct victim_trial *t)
{
    const struct cycle *c = &t->p->c;
    const struct class *k = t->a->k;
    for (uint32_t n = 0; n < k->needs_len; n++) {
        const int64_t *column = cycle_column(c, k->needs[n].resource, true);
        if (!column)
            return false;
        t->left[n] = column[t->position];
    }
    for (uint32_t d = 0; d < t->devices; d++) {
        uint32_t at = c->l->device[t->position] + d;
        t->milli[d] = c->devices[at].later;
        t->mem[d] = c->devices[at].mem_later;
    }
    return true;
}

static bool trial_begin(struct victim_trial *t)
{
    const struct cycle *c = &t->p->c;
    const struct class *k = t->a->k;
    t->left = ARENA_ARRAY(&t->p->scratch, int64_t, k->needs_len + 1);
    t->devices = k->gpu.count ? c->l->device[t->position + 1] - c->l->device[t->position] : 0;
    t->suits = 0;
    for (uint32_t d = 0; d < t->devices; d++)
        t->suits |= (uint64_t)gpu_device_suits(c->l, &k->gpu, c->l->device[t->position] + d) << d;
    return fill(t);
}

/* Returns the amount of the resource that the victim frees. `at`: index of the preemptor's need of that resource. */
static int64_t victim_frees(const struct victim_pod *pod, uint32_t resource, uint32_t at)
{
    return resource < RESOURCES_BUILT_IN ? pod->has[resource] : class_need_at(pod->k, at, resource);
}

/* Returns false if the pod surely does not fit after the group is added (sign 1) or removed (sign -1). Only checks
 * resources, and only for groups of a single pod. */
static bool could_fit(const struct victim_trial *t, uint32_t victim_group, int sign)
{
    const struct victim_group *x = &t->p->victims->victim_groups[victim_group];
    const struct victim_pod *pod = &t->p->victims->pods[x->first];
    const struct class *k = t->a->k;
    uint32_t len = x->len == 1 && x->of_gang == NONE ? k->needs_len : 0;
    for (uint32_t n = 0; n < len; n++)
        if (t->left[n] + sign * victim_frees(pod, k->needs[n].resource, n) < k->needs[n].amount)
            return false;
    return true;
}

/* Adds (sign 1) or removes (sign -1) what a victim frees. */
static inline void count_member(struct victim_trial *t, uint32_t member, int sign)
{
    const struct victim_pod *i = &t->p->victims->pods[member];
    const struct resource_need *needs = t->a->k->needs;
    uint32_t len = t->a->k->needs_len;
    if (t->a->quota && sign > 0)
        plan_quota_stop(t->p, t->p->victims->members[member]);
    else if (t->a->quota)
        plan_quota_undo_stop(t->p, t->p->victims->members[member]);
    if (i->position != t->position)
        return;
    for (uint32_t n = 0; n < len; n++)
        t->left[n] += sign * victim_frees(i, needs[n].resource, n);
    BITS_EACH (d, t->devices ? i->gpus : 0)
        if (d < t->devices) {
            t->milli[d] += sign * (int32_t)i->k->gpu.milli;
            t->mem[d] += sign * gpu_memory_booked(&i->k->gpu);
        }
}

/* Returns whether the instance is in a chosen group other than `but`. */
static bool is_chosen(const struct victim_trial *t, uint32_t slot, uint32_t but)
{
    const struct victims *v = t->p->victims;
    for (uint32_t n = 0; n < t->len; n++) {
        const struct victim_group *x = &v->victim_groups[t->chosen[n]];
        for (uint32_t m = 0; m < x->len && t->chosen[n] != but; m++)
            if (v->members[x->first + m] == slot)
                return true;
    }
    return false;
}

/* Adds or removes a group. A spare pod of a gang is in two groups and counts once. */
static void count_group(struct victim_trial *t, uint32_t victim_group, int sign)
{
    const struct victims *v = t->p->victims;
    const struct victim_group *x = &v->victim_groups[victim_group];
    bool twice = x->of_gang != NONE;
    if (x->len == 1 && !twice) { /* its member stands: other groups are not gathered */
        count_member(t, x->first, sign);
        return;
    }
    for (uint32_t m = 0; m < x->len; m++) {
        uint32_t slot = v->members[x->first + m];
        if (victim_stands(t->p, slot) && !(twice && is_chosen(t, slot, victim_group)))
            count_member(t, x->first + m, sign);
    }
}

static bool gpus_fit(const struct victim_trial *t)
{
    const struct gpu_need *need = &t->a->k->gpu;
    uint32_t found = 0;
    BITS_EACH (d, t->suits)
        found +=
            t->milli[d] >= (int32_t)need->milli && (need->milli == BERTH_GPU_MILLI || t->mem[d] >= need->memory_bytes);
    return found >= need->count;
}

/* Returns whether only victims hold the port. */
static bool port_fits(const struct victim_trial *t, uint32_t port_or_volume)
{
    const struct cycle *c = &t->p->c;
    const struct port_or_volume_hold *h;
    for (uint32_t at = snapshot_port_or_volume(c->s, port_or_volume)->first; at != NONE; at = h->next) {
        h = pages_at(&c->s->holds, at);
        if (h->node != c->l->slot[t->position])
            continue;
        bool goes = h->instance != NONE && (snapshot_instance(c->s, h->instance)->state == BERTH_STOPPING ||
                                            !victim_stands(t->p, h->instance) || is_chosen(t, h->instance, NONE));
        if (!goes)
            return false;
    }
    for (const struct planned_hold *f = c->planned_holds ? c->planned_holds[port_or_volume] : NULL; f; f = f->next)
        if (f->position == t->position)
            return false;
    return true;
}

static bool ports_fit(const struct victim_trial *t)
{
    for (uint32_t n = 0; n < t->a->k->ports_len; n++)
        PORT_RIVALS_EACH (port_or_volume, &t->p->c.s->ports_and_volumes, t->a->k->ports[n])
            if (!port_fits(t, port_or_volume))
                return false;
    return true;
}

static bool fits(const struct victim_trial *t)
{
    const struct class *k = t->a->k;
    for (uint32_t n = 0; n < k->needs_len; n++)
        if (t->left[n] < k->needs[n].amount)
            return false;
    return (k->gpu.count == 0 || gpus_fit(t)) && ports_fit(t) &&
           (!t->a->quota || plan_quota_room(t->p, t->a->workload, k, true, 1) > 0);
}

/* Returns whether the group is of the preemptor's own workload or gang: its pods are never preempted for one
 * another. */
static bool is_own(const struct victim_trial *t, const struct victim_group *x)
{
    return x->workload == t->a->workload || (x->of_gang != NONE && x->of_gang == t->gang);
}

/* Drops groups so that each service keeps its minimum of available pods. */
static uint32_t keep_available(const struct victims *v, uint32_t *list, uint32_t len)
{
    uint32_t left = 0;
    for (uint32_t n = 0; n < len; n++) {
        const struct victim_group *x = &v->victim_groups[list[n]];
        int32_t before = 0;
        for (uint32_t i = 0; x->available && i < left; i++)
            before += v->victim_groups[list[i]].available && v->victim_groups[list[i]].workload == x->workload;
        if (!x->available || before < v->spare[x->workload])
            list[left++] = list[n];
    }
    return left;
}

uint32_t preempt_root_quota(const struct berth_plan *p, uint32_t workload)
{
    const struct claim *claim = p->s->guaranteed ? snapshot_claim(p->s, workload) : NULL;
    uint32_t at = claim && claim->quotas_len ? claim->quotas[0] : NONE;
    while (at != NONE && p->s->quotas[at].parent != NONE)
        at = p->s->quotas[at].parent;
    return at;
}

/* Returns whether the group is of the same root quota and not of a lower priority. Guarantees are reclaimed from other
 * root quotas; within one, pods are preempted only for a higher priority. */
static bool is_same_root_quota(const struct victim_trial *t, const struct victim_group *x)
{
    return t->a->root != NONE && (uint32_t)x->tier >= (uint32_t)t->a->tier && x->tier >> 32 != BERTH_SPARE &&
           x->root == t->a->root;
}

/* Returns the victim groups on the node that may be stopped, in order. */
static uint32_t *gather_groups(const struct victim_trial *t, uint32_t *ret_len)
{
    const struct victims *v = t->p->victims;
    uint32_t from = v->first[t->position], to = v->first[t->position + 1], len = 0;
    uint32_t *list = ARENA_ARRAY(&t->p->scratch, uint32_t, (size_t)(to - from) + 1);
    for (uint32_t i = from; i < to; i++) /* nodes are examined in no memory order, and each has groups of its own */
        __builtin_prefetch(&v->victim_groups[v->at[i]]);
    for (uint32_t i = from; i < to; i++) {
        const struct victim_group *x = &v->victim_groups[v->at[i]];
        bool again = len > 0 && list[len - 1] == v->at[i];
        if (x->tier >= t->a->tier)
            break; /* so are all groups after it */
        __builtin_prefetch(&v->pods[x->first]);
        if (!again && !is_own(t, x) && !is_same_root_quota(t, x) && victim_group_stands(t->p, x))
            list[len++] = v->at[i];
    }
    bool may_break = t->p->policy.preemption.break_budgets && !t->a->keeps_budgets;
    *ret_len = budgets_order(t->p, list, keep_available(v, list, len), may_break);
    return list;
}

/* Reprieves groups that are not needed, the most valuable first. */
static void reprieve(struct victim_trial *t)
{
    for (uint32_t n = t->len; n-- > 0;) {
        uint32_t victim_group = t->chosen[n];
        if (!could_fit(t, victim_group, -1))
            continue;
        count_group(t, victim_group, -1);
        memmove(&t->chosen[n], &t->chosen[n + 1], (t->len - n - 1) * sizeof *t->chosen);
        t->len--;
        if (fits(t))
            continue;
        memmove(&t->chosen[n + 1], &t->chosen[n], (t->len - n) * sizeof *t->chosen);
        t->chosen[n] = victim_group;
        t->len++;
        count_group(t, victim_group, 1);
    }
}

int preempt_cost_compare(const struct preempt_cost *a, const struct preempt_cost *b)
{
    if (a->breaks != b->breaks)
        return a->breaks < b->breaks ? -1 : 1;
    if (a->tier != b->tier)
        return a->tier < b->tier ? -1 : 1;
    if (a->lost != b->lost)
        return a->lost < b->lost ? -1 : 1;
    if (a->pods != b->pods)
        return a->pods < b->pods ? -1 : 1;
    return a->id == b->id ? 0 : a->id > b->id ? -1 : 1;
}

static struct preempt_cost cost_of_chosen(const struct victim_trial *t)
{
    const struct victims *v = t->p->victims;
    struct preempt_cost h = {.possible = true, .tier = INT64_MIN, .breaks = budgets_broken_by(t->p, t->chosen, t->len)};
    for (uint32_t n = 0; n < t->len; n++) {
        const struct victim_group *x = &v->victim_groups[t->chosen[n]];
        h.tier = x->tier > h.tier ? x->tier : h.tier;
        h.lost += x->lost;
        h.pods += victim_group_pods(t->p, x);
        h.id = x->id > h.id ? x->id : h.id;
    }
    return h;
}

/* Chooses groups in order until the pod fits, then reprieves those not needed. */
static struct preempt_cost choose_groups(struct victim_trial *t, const uint32_t *list, uint32_t len)
{
    bool enough = fits(t);
    while (t->len < len && !enough) {
        count_group(t, list[t->len], 1);
        t->chosen[t->len] = list[t->len];
        t->len++;
        enough = fits(t);
    }
    if (!enough)
        return (struct preempt_cost){0};
    reprieve(t);
    return cost_of_chosen(t);
}

/* Removes all chosen groups. Only the quota usage belongs to the plan, and is reverted group by group; the rest belongs
 * to the trial and is set anew. */
static void unchoose_all(struct victim_trial *t)
{
    while (t->a->quota && t->len)
        count_group(t, t->chosen[--t->len], -1);
    t->len = 0;
    (void)fill(t);
}

/* Returns whether the group alone costs more, whatever else is chosen. Then each group after it costs more, too. */
static bool is_worse(const struct victim_group *x, const struct preempt_cost *than)
{
    if (than->breaks)
        return false; /* the group may break no budget */
    return x->tier > than->tier || (x->tier == than->tier && x->lost > than->lost);
}

/* Replaces several chosen groups by a single one, the first that is large enough, if that costs less. */
static struct preempt_cost choose_single_group(struct victim_trial *t, const uint32_t *list, uint32_t len,
                                               struct preempt_cost several)
{
    const struct victims *v = t->p->victims;
    uint32_t *chosen = t->chosen, before = t->len, alone = 0;
    unchoose_all(t);
    t->chosen = &alone;
    for (uint32_t n = 0; n < len && !is_worse(&v->victim_groups[list[n]], &several); n++) {
        if (!could_fit(t, list[n], 1))
            continue;
        struct preempt_cost h = choose_groups(t, &list[n], 1);
        if (h.possible && preempt_cost_compare(&h, &several) < 0) {
            t->chosen = chosen;
            chosen[0] = alone;
            return h;
        }
        unchoose_all(t);
        if (h.possible)
            break;
    }
    t->chosen = chosen;
    for (; t->len < before; t->len++)
        if (t->a->quota)
            count_group(t, chosen[t->len], 1);
    return several;
}

uint32_t *preempt_node_groups(struct berth_plan *p, const struct preemptor *a, uint32_t position, uint32_t *ret_len)
{
    const struct victim_trial t = {
        .p = p, .a = a, .position = position, .gang = snapshot_workload(p->s, a->workload)->gang};
    return gather_groups(&t, ret_len);
}

struct preempt_cost preempt_cost_on_node(struct berth_plan *p, const struct preemptor *a, uint32_t position,
                                         uint32_t *ret, uint32_t *ret_len)
{
    const struct victims *v = p->victims;
    struct preempt_cost h = {0};
    if (v->lowest[position] >= a->tier)
        return h;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct victim_trial t;
    t.p = p;
    t.a = a;
    t.position = position;
    t.gang = snapshot_workload(p->s, a->workload)->gang;
    t.len = 0;
    uint32_t len = 0;
    bool begun = trial_begin(&t);
    h.has_room = begun && fits(&t); /* something other than room is missing */
    if (begun && !h.has_room) {
        const uint32_t *list = gather_groups(&t, &len);
        t.chosen = ARENA_ARRAY(&p->scratch, uint32_t, len + 1);
        h = choose_groups(&t, list, len);
        if (h.possible && t.len > 1)
            h = choose_single_group(&t, list, len, h);
        for (len = 0; ret && h.possible && len < t.len; len++)
            ret[len] = t.chosen[len];
        if (a->quota)
            unchoose_all(&t);
    }
    if (ret_len)
        *ret_len = h.possible ? len : 0;
    arena_rewind(&p->scratch, mark);
    return h;
}
