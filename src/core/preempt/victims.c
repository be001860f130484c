/* victims.c - finds the victim groups. */
#include "core/preempt/victims.h"

#include "base/plant.h"
#include "base/sort.h"
#include "core/plan/spare_victims.h"
#include "core/preempt/disruption_budget.h"
#include "core/preempt/preempt_cost.h"
#include "core/queue/tier.h"

#define SECOND_NS ((int64_t)1000000000)

/* ---- one instance ----------------------------------------------------------------------------------------------- */

static bool is_up(const struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    return i->id && state_active(i->state) && i->state != BERTH_STOPPING && victim_stands(p, slot);
}

/* Returns whether the instance is about to take over from one that still exists. */
static bool is_extra(const struct berth_plan *p, const struct instance *i)
{
    uint32_t old = snapshot_replaced(p->s, i);
    return old != NONE && is_up(p, old);
}

/* Returns the time at which the instance has run for its minimum; always after the moment at which it was placed. */
static int64_t min_run_end_ns(const struct berth_plan *p, const struct instance *i)
{
    const struct claim *claim = snapshot_claim(p->s, i->workload.v);
    int64_t least = claim && claim->min_run_ns > p->policy.preemption.min_run_ns ? claim->min_run_ns
                                                                                 : p->policy.preemption.min_run_ns;
    int64_t at;
    if (least < 1)
        least = 1;
    return __builtin_add_overflow(i->since_ns, least, &at) ? BERTH_NEVER_NS : at;
}

static bool may_stop(const struct berth_plan *p, uint32_t workload)
{
    const struct workload *w = snapshot_workload(p->s, workload);
    const struct claim *claim = snapshot_claim(p->s, workload);
    bool may = w->kind == BERTH_JOB || p->policy.preemption.services;
    return may && !w->gone && !w->suspended && !(claim && claim->unpreemptible);
}

/* Returns the instance's largest share of a resource of its node, in thousandths. */
static int64_t share_of_node(const struct berth_plan *p, const struct instance *i)
{
    const struct class *k = snapshot_class(p->s, i->class);
    uint32_t at = snapshot_position(p->s, i), devices = p->c.l->device[at + 1] - p->c.l->device[at];
    int64_t most = devices ? (int64_t)k->gpu.count * k->gpu.milli / devices : 0;
    for (uint32_t n = 0; n < k->needs_len; n++) {
        int64_t has = snapshot_capacity(p->s, k->needs[n].resource, at);
        int64_t share = has > 0 ? (int64_t)((__int128)k->needs[n].amount * 1000 / has) : 0;
        most = share > most ? share : most;
    }
    return most < 1 ? 1 : most > 1000 ? 1000 : most;
}

/* Returns the work lost if the instance is stopped; 0 if it has not started. */
static int64_t lost_with(const struct berth_plan *p, const struct instance *i)
{
    int64_t seconds = (p->s->now_ns - i->since_ns) / SECOND_NS;
    bool runs = i->state == BERTH_RUNNING || i->state == BERTH_STARTING;
    return runs && seconds > 0 ? seconds * share_of_node(p, i) : 0;
}

/* Victim groups during construction. */
struct victims_builder {
    VEC(struct victim_group) victim_groups;
    VEC(uint32_t) members;
    uint64_t *moving;   /* bit set of instance slots that this plan wants to move */
    uint64_t *promoted; /* bit set of instance slots that this plan has promoted */
};

/* ---- victim groups ---------------------------------------------------------------------------------------------- */

static void victim_group_add(struct berth_plan *p, struct victims_builder *v, struct victim_group *victim_group,
                             uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    int64_t tier = tier_of_instance(p, slot) - PLANTED(VICTIM_OF_EQUALS);
    if (victim_group->len == 0) {
        *victim_group = (struct victim_group){
            .first = (uint32_t)v->members.len, .tier = tier, .workload = i->workload.v, .gang = victim_group->gang};
    }
    victim_group->tier = tier > victim_group->tier ? tier : victim_group->tier;
    victim_group->lost += lost_with(p, i);
    victim_group->id = i->id > victim_group->id ? i->id : victim_group->id;
    victim_group->len++;
    vec_push(&v->members, slot);
}

/* Sorts the members by id. */
static void members_sort(struct berth_plan *p, struct victims_builder *v, const struct victim_group *victim_group)
{
    struct arena_mark mark = arena_mark(&p->scratch);
    struct keyed *rows = arena_alloc(&p->scratch, 2 * (size_t)victim_group->len * sizeof *rows);
    for (uint32_t m = 0; m < victim_group->len; m++) {
        uint32_t slot = v->members.at[victim_group->first + m];
        rows[m] = (struct keyed){snapshot_instance(p->s, slot)->id, slot};
    }
    sort_keyed(rows, rows + victim_group->len, victim_group->len);
    for (uint32_t m = 0; m < victim_group->len; m++)
        v->members.at[victim_group->first + m] = rows[m].value;
    arena_rewind(&p->scratch, mark);
}

/* Returns whether a reserved instance may be dropped. A reservation that this plan has just promoted may not, nor one
 * with volumes, which could not be reserved again. */
static bool can_drop(const struct berth_plan *p, const struct victims_builder *v, uint32_t slot)
{
    return !bits_has(v->promoted, slot) && snapshot_class(p->s, snapshot_instance(p->s, slot)->class)->volumes_len == 0;
}

/* Adds a group of one pod and of the instances that are about to take over from it. There is no group if such an
 * instance may not be dropped, or was placed at this very moment. */
static void find_pod_group(struct berth_plan *p, struct victims_builder *v, uint32_t slot, int64_t tier)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct workload *w = snapshot_workload(p->s, i->workload.v);
    struct victim_group victim_group = {0};

    victim_group_add(p, v, &victim_group, slot);
    victim_group.available = w->kind != BERTH_JOB && i->ready && i->state == BERTH_RUNNING;
    bool keeps = false;
    for (uint32_t at = p->s->replacing ? w->first : NONE; at != NONE;
         at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *x = snapshot_instance(p->s, at);
        if (x->replaces != i->id || x->state == BERTH_ENDED || x->state == BERTH_STOPPING || !victim_stands(p, at))
            continue;
        bool fresh = x->state != BERTH_RESERVED && x->since_ns >= p->s->now_ns;
        keeps |= fresh || (x->state == BERTH_RESERVED && !can_drop(p, v, at));
        victim_group_add(p, v, &victim_group, at);
        if (fresh && victim_group.tier < tier && p->s->now_ns < BERTH_NEVER_NS)
            plan_recheck(p, p->s->now_ns + 1);
    }
    if (keeps) {
        v->members.len = victim_group.first;
        return;
    }
    vec_push(&v->victim_groups, victim_group);
}

/* Gathers all instances of a gang. Returns whether the gang may be preempted; *ret_ripe is the time from which all of
 * them have run for their minimum. */
static bool gather_gang(struct berth_plan *p, struct victims_builder *v, uint32_t gang,
                        struct victim_group *victim_group, int64_t *ret_ripe)
{
    bool may = true;
    *ret_ripe = 0;
    victim_group->gang = true;
    uint32_t w = ((const struct gang *)pages_at(&p->s->gangs, gang))->first;
    for (; w != NONE; w = snapshot_workload(p->s, w)->next_in_gang) {
        uint32_t at = snapshot_workload(p->s, w)->first;
        for (; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
            const struct instance *i = snapshot_instance(p->s, at);
            if (i->state == BERTH_ENDED || i->state == BERTH_STOPPING || !victim_stands(p, at))
                continue;
            bool available = i->ready && i->state == BERTH_RUNNING && snapshot_workload(p->s, w)->kind != BERTH_JOB;
            may &= may_stop(p, w) && !bits_has(v->moving, at) && !available; /* services keep their minimum */
            if (i->state == BERTH_RESERVED)
                may &= can_drop(p, v, at);
            if (min_run_end_ns(p, i) > *ret_ripe)
                *ret_ripe = min_run_end_ns(p, i);
            victim_group_add(p, v, victim_group, at);
        }
    }
    return may && victim_group->len > 0;
}

static void find_gang_group(struct berth_plan *p, struct victims_builder *v, uint32_t gang, int64_t tier)
{
    struct victim_group victim_group = {.gang = true};
    int64_t ripe;
    size_t from = v->members.len;
    bool may = gather_gang(p, v, gang, &victim_group, &ripe);
    if (may && ripe > p->s->now_ns && victim_group.tier < tier)
        plan_recheck(p, ripe);
    if (!may || ripe > p->s->now_ns) {
        v->members.len = from;
        return;
    }
    members_sort(p, v, &victim_group);
    vec_push(&v->victim_groups, victim_group);
}

static bool is_spare(int64_t tier)
{
    return tier >> 32 == BERTH_SPARE;
}

/* Returns the first moment after the workload's last growth: at the moment of growth it is not known which of its pods
 * are spare. */
static int64_t growth_end_ns(const struct berth_plan *p, uint32_t workload)
{
    int64_t last = 0;
    for (uint32_t at = snapshot_workload(p->s, workload)->first; at != NONE;
         at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(p->s, at);
        bool here = i->state != BERTH_ENDED && i->state != BERTH_STOPPING;
        if (here && i->since_ns > last && i->since_ns < BERTH_NEVER_NS)
            last = i->since_ns;
    }
    return last + 1;
}

static void find_groups_of(struct berth_plan *p, struct victims_builder *v, uint32_t slot, uint64_t *gangs,
                           int64_t tier)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct workload *w = snapshot_workload(p->s, i->workload.v);
    if (!is_up(p, slot) || is_extra(p, i) || bits_has(v->moving, slot) || !may_stop(p, i->workload.v))
        return;
    int64_t own = tier_of_instance(p, slot);
    if (w->gang != NONE && !bits_has(gangs, w->gang)) {
        bits_add(gangs, w->gang);
        find_gang_group(p, v, w->gang, tier);
    }
    if (w->gang != NONE && !is_spare(own))
        return;
    if (p->s->state[snapshot_position(p->s, i)] == BERTH_NODE_LOST)
        return;
    int64_t ripe = min_run_end_ns(p, i), grown = w->gang == NONE ? 0 : growth_end_ns(p, i->workload.v);
    ripe = grown > ripe ? grown : ripe;
    if (ripe > p->s->now_ns) {
        if (own < tier)
            plan_recheck(p, ripe);
        return;
    }
    find_pod_group(p, v, slot, tier);
}

/* ---- indices by node and by quota ------------------------------------------------------------------------------- */

/* Copies the data of groups and members that preempt_cost.c reads often. */
static void index_pods(struct berth_plan *p, struct victims *v, struct victim_group *victim_groups)
{
    struct victim_pod *pods = arena_alloc(&p->arena, ((size_t)v->members_len + 1) * sizeof *pods);
    for (uint32_t m = 0; m < v->members_len; m++) {
        const struct instance *i = snapshot_instance(p->s, v->members[m]);
        const struct class *k = snapshot_class(p->s, i->class);
        pods[m] = (struct victim_pod){.k = k, .gpus = i->gpus, .position = snapshot_position(p->s, i)};
        for (uint32_t r = 0; r < RESOURCES_BUILT_IN; r++)
            pods[m].has[r] = class_need(k, r);
    }
    for (uint32_t n = 0; n < v->victim_groups_len; n++) {
        victim_groups[n].of_gang = snapshot_workload(p->s, victim_groups[n].workload)->gang;
        victim_groups[n].root = preempt_root_quota(p, victim_groups[n].workload);
    }
    v->pods = pods;
    v->victim_groups = victim_groups;
}

/* Updates the lower bound on the cost of a preemption on the node, for any preemptor. */
static void note_min_cost(struct victims *v, uint32_t position, const struct victim_group *x)
{
    if (x->tier < v->lowest[position] || (x->tier == v->lowest[position] && x->lost < v->least_lost[position])) {
        v->lowest[position] = x->tier;
        v->least_lost[position] = x->lost;
    }
}

/* Compares by the lowest tier, then the least work lost, then the youngest. */
static int compare_groups(const void *ctx, uint32_t a, uint32_t b)
{
    const struct victims *v = ctx;
    const struct victim_group *x = &v->victim_groups[a], *y = &v->victim_groups[b];
    if (x->tier != y->tier)
        return x->tier < y->tier ? -1 : 1;
    if (x->lost != y->lost)
        return x->lost < y->lost ? -1 : 1;
    if (x->id != y->id)
        return x->id > y->id ? -1 : 1;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return (int)x->gang - (int)y->gang; /* a spare pod before the gang that consists of it alone */
}

static void sort_nodes(struct berth_plan *p, struct victims *v)
{
    struct arena_mark mark = arena_mark(&p->scratch);
    struct keyed *rows = arena_alloc(&p->scratch, (2 * (size_t)p->c.len + 1) * sizeof *rows);
    uint32_t len = 0;
    for (uint32_t n = 0; n < p->c.len; n++)
        if (v->lowest[n] < INT64_MAX)
            rows[len++] = (struct keyed){(uint64_t)v->least_lost[n] ^ (uint64_t)1 << 63, n};
    sort_keyed(rows, rows + p->c.len, len);
    for (uint32_t i = 0; i < len; i++)
        rows[i].key = (uint64_t)v->lowest[rows[i].value] ^ (uint64_t)1 << 63;
    sort_keyed(rows, rows + p->c.len, len);
    v->by_min_cost = arena_alloc(&p->arena, ((size_t)len + 1) * sizeof *v->by_min_cost);
    v->by_min_cost_len = len;
    for (uint32_t i = 0; i < len; i++)
        v->by_min_cost[i] = rows[i].value;
    arena_rewind(&p->scratch, mark);
}

static void index_nodes(struct berth_plan *p, struct victims *v)
{
    uint32_t *first = ARENA_ARRAY(&p->arena, uint32_t, p->c.len + 2), *at;
    v->lowest = arena_alloc(&p->arena, (p->c.len + 1) * sizeof *v->lowest);
    v->least_lost = ARENA_ARRAY(&p->arena, int64_t, p->c.len + 1);
    for (uint32_t n = 0; n <= p->c.len; n++)
        v->lowest[n] = INT64_MAX;
    for (size_t m = 0; m < v->members_len; m++)
        first[v->pods[m].position + 2]++;
    for (uint32_t n = 2; n < p->c.len + 2; n++)
        first[n] += first[n - 1];
    at = ARENA_ARRAY(&p->arena, uint32_t, v->members_len + 1);
    for (uint32_t n = 0; n < v->victim_groups_len; n++)
        for (uint32_t m = 0; m < v->victim_groups[n].len; m++) {
            uint32_t position = v->pods[v->victim_groups[n].first + m].position;
            at[first[position + 1]++] = n;
            note_min_cost(v, position, &v->victim_groups[n]);
        }
    struct arena_mark mark = arena_mark(&p->scratch);
    uint32_t *room = arena_alloc(&p->scratch, ((size_t)v->members_len + 1) * sizeof *room);
    for (uint32_t n = 0; n < p->c.len; n++)
        sort_indices(at + first[n], room, first[n + 1] - first[n], compare_groups, v);
    arena_rewind(&p->scratch, mark);
    sort_nodes(p, v);
    v->first = first;
    v->at = at;
}

static void index_quotas(struct berth_plan *p, struct victims *v)
{
    v->quota_lowest = arena_alloc(&p->arena, (p->s->quotas_len + 1) * sizeof *v->quota_lowest);
    for (uint32_t q = 0; q <= p->s->quotas_len; q++)
        v->quota_lowest[q] = INT64_MAX;
    for (uint32_t n = 0; n < v->victim_groups_len; n++)
        for (uint32_t m = 0; m < v->victim_groups[n].len; m++) {
            const struct instance *i = snapshot_instance(p->s, v->members[v->victim_groups[n].first + m]);
            const struct claim *claim = snapshot_claim(p->s, i->workload.v);
            uint32_t chain[QUOTA_CHAIN_MAX], len = claim ? quota_chain(p->s->quotas, claim, chain) : 0;
            for (uint32_t x = 0; x < len; x++)
                if (v->victim_groups[n].tier < v->quota_lowest[chain[x]])
                    v->quota_lowest[chain[x]] = v->victim_groups[n].tier;
        }
}

static void index_workloads(struct berth_plan *p, struct victims *v)
{
    v->present = ARENA_ARRAY(&p->arena, uint64_t, bits_words(p->s->workloads.len) + 1);
    for (uint32_t m = 0; m < v->members_len; m++)
        bits_add(v->present, snapshot_instance(p->s, v->members[m])->workload.v);
}

/* Counts the available pods of services beyond their minimum. */
static void count_spare(struct berth_plan *p, struct victims *v)
{
    v->spare = ARENA_ARRAY(&p->arena, int32_t, p->s->workloads.len + 1);
    for (uint32_t n = 0; n < v->victim_groups_len; n++) {
        uint32_t w = v->victim_groups[n].workload;
        const struct workload *of = snapshot_workload(p->s, w);
        if (of->kind == BERTH_JOB || v->spare[w])
            continue;
        int32_t available = 0;
        for (uint32_t at = of->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
            const struct instance *i = snapshot_instance(p->s, at);
            available += is_up(p, at) && i->ready && i->state == BERTH_RUNNING;
        }
        v->spare[w] = available - (int32_t)of->min_available;
    }
}

/* Counts the stops decided at this very moment by an earlier plan. They count towards the maximum number of stops of
 * one plan, so that the next plan of the same moment stops no more. */
static uint32_t count_stopped(const struct berth_plan *p)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < p->s->watched_len; w++)
        BITS_EACH (bit, p->s->leaving[w])
            n += snapshot_instance(p->s, w * 64 + (uint32_t)bit)->since_ns >= p->s->now_ns;
    return n;
}

/* Returns the groups of which a member is protected. */
static const uint64_t *protected_groups(struct berth_plan *p, const struct victims *v)
{
    if (!p->protection)
        return NULL;
    uint64_t *bits = ARENA_ARRAY(&p->arena, uint64_t, bits_words(v->victim_groups_len) + 1);
    for (uint32_t n = 0; n < v->victim_groups_len; n++)
        for (uint32_t m = 0; m < v->victim_groups[n].len; m++)
            if (bits_has(p->protection->instances, v->members[v->victim_groups[n].first + m]))
                bits_add(bits, n);
    return bits;
}

struct victims *victims_new(struct berth_plan *p, int64_t tier)
{
    const struct berth_snapshot *s = p->s;
    struct victims *v = ARENA_NEW(&p->arena, struct victims);
    uint64_t *gangs = ARENA_ARRAY(&p->arena, uint64_t, bits_words(s->gangs.len) + 1);

    struct victims_builder victims_found = {0};
    victims_found.moving = ARENA_ARRAY(&p->arena, uint64_t, bits_words(s->instances.len) + 1);
    victims_found.promoted = ARENA_ARRAY(&p->arena, uint64_t, bits_words(s->instances.len) + 1);
    for (size_t i = 0; i < p->demands.len; i++)
        if (p->demands.at[i].replaces != NONE)
            bits_add(victims_found.moving, p->demands.at[i].replaces);
    for (size_t i = 0; i < p->c.acts.len; i++)
        if (p->c.acts.at[i].op == BERTH_PROMOTE)
            bits_add(victims_found.promoted, p->c.acts.at[i].instance);
    for (uint32_t slot = 0; slot < s->instances.len; slot++)
        find_groups_of(p, &victims_found, slot, gangs, tier);
    v->victim_groups_len = (uint32_t)victims_found.victim_groups.len;
    v->members_len = (uint32_t)victims_found.members.len;
    struct victim_group *victim_groups = arena_dup(&p->arena, victims_found.victim_groups.at,
                                                   victims_found.victim_groups.len * sizeof *v->victim_groups);
    v->members = arena_dup(&p->arena, victims_found.members.at, victims_found.members.len * sizeof *v->members);
    vec_done(&victims_found.victim_groups);
    vec_done(&victims_found.members);
    index_pods(p, v, victim_groups);
    index_nodes(p, v);
    index_quotas(p, v);
    index_workloads(p, v);
    count_spare(p, v);
    v->least = INT64_MAX;
    for (uint32_t n = 0; n < p->c.len; n++)
        v->least = v->lowest[n] < v->least ? v->lowest[n] : v->least;
    v->stopped = count_stopped(p);
    v->acts = p->c.acts.len;
    v->budgets = budgets_new(p);
    v->back = ARENA_ARRAY(&p->arena, uint32_t, v->victim_groups_len + 1);
    v->gone = ARENA_ARRAY(&p->arena, uint32_t, v->victim_groups_len + 1);
    v->protected = protected_groups(p, v);
    v->failed_gang = ARENA_ARRAY(&p->arena, struct failed_gang, s->classes.len + 1);
    v->memos = ARENA_ARRAY(&p->arena, struct preempt_costs *, s->classes.len + 1);
    return v;
}

/* ---- during the plan -------------------------------------------------------------------------------------------- */

void victims_unprotect(struct berth_plan *p)
{
    struct victims *v = p->victims;
    v->protected = NULL;
    for (uint32_t k = 0; k < p->s->classes.len; k++)
        v->memos[k] = NULL;
    p->stop_set = ++p->stop_generation; /* attempts that failed may succeed now */
}

void victims_changed(struct berth_plan *p, uint32_t position)
{
    struct victims *v = p->victims;
    if (v->changed_len == v->changed_room) {
        uint32_t *more = ARENA_ARRAY(&p->arena, uint32_t, 2 * (size_t)v->changed_room + 64);
        for (uint32_t i = 0; i < v->changed_len; i++)
            more[i] = v->changed[i];
        v->changed = more;
        v->changed_room = 2 * v->changed_room + 64;
    }
    v->changed[v->changed_len++] = position;
}

static void placed_add(struct berth_plan *p, uint32_t position)
{
    struct victims *v = p->victims;
    if (v->placed.len == v->placed.room) {
        size_t room = 2 * v->placed.room + 64;
        uint32_t *more = ARENA_ARRAY(&p->arena, uint32_t, room);
        for (size_t i = 0; i < v->placed.len; i++)
            more[i] = v->placed.at[i];
        v->placed.at = more;
        v->placed.room = room;
    }
    v->placed.at[v->placed.len++] = position;
}

void victims_catch_up(struct berth_plan *p)
{
    struct victims *v = p->victims;
    for (; v->acts < p->c.acts.len; v->acts++) {
        const struct plan_act *a = &p->c.acts.at[v->acts];
        if (a->op == BERTH_STOP)
            victims_changed(p, a->position);
        else if (a->op == BERTH_PLACE || a->op == BERTH_RESERVE)
            placed_add(p, a->position);
    }
}

void victims_rewind(struct berth_plan *p, size_t acts)
{
    if (!p->victims)
        return;
    if (p->victims->acts > acts)
        p->victims->acts = acts;
    budgets_rewind(p, acts);
}

/* Returns whether this plan has placed an instance that takes over from it. */
static bool is_replaced(const struct berth_plan *p, uint32_t workload, uint32_t slot)
{
    for (uint32_t at = p->c.fresh[workload]; at != NONE; at = p->c.acts.at[at].next)
        if (p->c.acts.at[at].replaces == slot)
            return true;
    return false;
}

bool victim_group_stands(const struct berth_plan *p, const struct victim_group *victim_group)
{
    const struct victims *v = p->victims;
    uint32_t slot = v->members[victim_group->first];
    uint32_t gang = victim_group->of_gang, w;
    if (v->protected && bits_has(v->protected, (uint32_t)(victim_group - v->victim_groups)))
        return false;
    if (!victim_group->gang)
        return victim_stands(p, slot) && !is_replaced(p, victim_group->workload, slot) &&
               (gang == NONE || p->c.fresh[victim_group->workload] == NONE);
    for (w = ((const struct gang *)pages_at(&p->s->gangs, gang))->first; w != NONE;
         w = snapshot_workload(p->s, w)->next_in_gang)
        if (p->c.fresh[w] != NONE) /* the gang grows at this moment */
            return false;
    return victim_group_pods(p, victim_group) > 0;
}

uint32_t victim_group_pods(const struct berth_plan *p, const struct victim_group *victim_group)
{
    uint32_t n = 0;
    for (uint32_t m = 0; m < victim_group->len; m++)
        n += victim_stands(p, p->victims->members[victim_group->first + m]);
    return n;
}
