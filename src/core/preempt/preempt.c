/* preempt.c - preemption attempts: they change the plan's own resource counts and are undone if they fail. */
#include "core/preempt/preempt.h"

#include <assert.h>

#include "core/backfill/reservation.h"
#include "core/filter/filters.h"
#include "core/preempt/preempt_attempt.h"
#include "core/preempt/preempt_blockers.h"
#include "core/preempt/preempt_cost.h"
#include "core/queue/plan_quota.h"

enum {
    TRIES = 16,     /* nodes tried for a pod, in case filters reject nodes with enough room */
    REPRIEVES = 32, /* maximum number of victim groups for which gang_reprieve tries whether each is needed */
};

/* ---- stops that can be undone ----------------------------------------------------------------------------------- */

static void stop_one(struct preempt_attempt *e, uint32_t slot, uint32_t victim_group)
{
    struct berth_plan *p = e->p;
    const struct instance *i = snapshot_instance(p->s, slot);
    uint32_t at = snapshot_position(p->s, i);
    struct attempt_stop s = {slot, victim_group, bits_has(p->c.leaving, at), bits_has(p->c.over, at), p->c.any_leaving};
    plan_stop(p, slot, BERTH_CAUSE_PREEMPTED);
    p->victims->stopped++;
    vec_push(&e->stops, s);
}

void preempt_attempt_stop(struct preempt_attempt *e, uint32_t victim_group)
{
    struct victims *v = e->p->victims;
    const struct victim_group *x = &v->victim_groups[victim_group];
    for (uint32_t m = 0; m < x->len; m++)
        if (victim_stands(e->p, v->members[x->first + m]))
            stop_one(e, v->members[x->first + m], victim_group);
    v->spare[x->workload] -= x->available;
}

/* Undoes the last stop, which is also the last action, and restores the resource counts. */
static void unstop_one(struct preempt_attempt *e)
{
    struct berth_plan *p = e->p;
    struct cycle *c = &p->c;
    assert(e->stops.len > 0);
    struct attempt_stop s = e->stops.at[--e->stops.len];
    const struct instance *i = snapshot_instance(p->s, s.slot);
    const struct victim_group *x = &p->victims->victim_groups[s.victim_group];
    uint32_t at = snapshot_position(p->s, i);

    assert(c->acts.at[c->acts.len - 1].instance == s.slot);
    c->acts.len--;
    c->revocations++;
    victims_rewind(p, c->acts.len);
    bits_drop(c->stopped, s.slot);
    bits_drop(c->removed, s.slot);
    plan_quota_undo_stop(p, s.slot);
    cycle_take(c, snapshot_class(p->s, i->class), at, i->gpus, true, 1);
    vec_push(&c->given, layout_segment(c->l, at)); /* searches that have looked at the segment meanwhile look again */
    victims_changed(p, at);
    if (!s.leaving)
        bits_drop(c->leaving, at);
    if (s.over)
        bits_add(c->over, at);
    c->any_leaving = s.any_leaving;
    p->stops--;
    p->stop_set = ++p->stop_generation;
    p->victims->stopped--;
    if (p->victims->members[x->first] == s.slot)
        p->victims->spare[x->workload] += x->available;
}

static struct demand *demand_of(struct preempt_attempt *e, const struct plan_act *a)
{
    for (uint32_t i = e->len; i-- > 0;)
        if (e->w[i].workload == a->workload && e->w[i].placed &&
            demand_ordinal(&e->w[i], e->w[i].placed - 1) == a->ordinal)
            return &e->w[i];
    return NULL;
}

void preempt_attempt_undo(struct preempt_attempt *e, size_t acts)
{
    struct cycle *c = &e->p->c;
    while (c->acts.len > acts) {
        const struct plan_act *a = &c->acts.at[c->acts.len - 1];
        if (a->op == BERTH_STOP) {
            unstop_one(e);
        } else {
            struct demand *w = demand_of(e, a);
            assert(w);
            victims_changed(e->p, a->position);
            place_revoke(e->p, w);
        }
    }
}

/* ---- a single pod ----------------------------------------------------------------------------------------------- */

/* Returns the nodes that would accept the pod if there was room: applies all filters except those for room and for
 * ports. */
static uint64_t *nodes_usable(struct berth_plan *p, const struct demand *w)
{
    struct cycle *c = &p->c;
    uint64_t *mask = ARENA_ARRAY(&p->scratch, uint64_t, c->blocks + 1);
    struct attempt t;
    attempt_begin(&t, c, demand_attempt_spec(w), true);
    const uint64_t *constraints = attempt_constraints_mask(c, &t);
    for (uint32_t b = 0; b < c->blocks; b++)
        mask[b] = constraints[b];
    for (size_t f = 0; f < filters_len; f++) {
        const struct filter *x = filter_rows[f];
        bool room = x == &filter_ports || x == &filter_resources || x == &filter_gpu;
        if (c->profile.filters >> f & 1 && !room && x->when != FILTER_STATIC && x->applies(&t))
            x->mask(&t, (struct block_range){0, c->blocks}, mask);
    }
    attempt_end(&t);
    return mask;
}

/* Returns whether the quotas of the workload stay full whatever is stopped. Sets a->quota if they are full until
 * victims stop. */
static bool quota_refuses(const struct berth_plan *p, struct preemptor *a)
{
    struct quota_shortage why;
    if (plan_quota_room(p, a->workload, a->k, true, 1) > 0)
        return false; /* there is quota now, or once instances that are stopping already have stopped */
    a->quota = true;
    return !plan_quota_blocking_limit(p, a->workload, a->k, &why) || why.total || why.resource == QUOTA_JOBS ||
           p->victims->quota_lowest[why.quota] >= a->tier;
}

/* Stops the victims on this node if the pod can then be reserved a place there. */
static bool try_node(struct preempt_attempt *e, struct demand *w, const struct preemptor *a, uint32_t position)
{
    struct berth_plan *p = e->p;
    const struct victims *v = p->victims;
    uint32_t len, before = w->placed;
    size_t acts = p->c.acts.len;
    uint32_t *go = ARENA_ARRAY(&p->scratch, uint32_t, v->first[position + 1] - v->first[position] + 1);
    uint64_t *only = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    struct preempt_cost h = preempt_cost_on_node(p, a, position, go, &len);

    if (!h.possible || v->stopped + h.pods > preempt_max_stops(p))
        return false;
    for (uint32_t n = 0; n < len; n++)
        preempt_attempt_stop(e, go[n]);
    bits_add(only, position);
    (void)place_later(p, w, before + 1, only);
    if (w->placed > before)
        return true;
    preempt_attempt_undo(e, acts);
    return false;
}

/* Clears a node for the pod without breaking a budget. */
static bool clear_within_budgets(struct preempt_attempt *e, struct demand *w, const struct preemptor *a)
{
    struct preemptor kind = *a;
    kind.keeps_budgets = true;
    return preempt_blockers_clear(e, w, &kind);
}

static bool preempt_one(struct preempt_attempt *e, struct demand *w)
{
    struct berth_plan *p = e->p;
    struct preemptor a = {
        .workload = w->workload, .k = snapshot_class(p->s, w->class), .class = w->class, .tier = e->tier};
    a.root = preempt_root_quota(p, w->workload);
    if (quota_refuses(p, &a))
        return false;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct preempt_costs *preempt_costs = preempt_costs_of(p, &a);
    uint64_t *mask = preempt_costs ? nodes_usable(p, w) : NULL;
    const struct berth_preemption *policy = &p->policy.preemption;
    /* no budget is broken as long as another way works */
    bool careful = policy->clears && policy->break_budgets && p->victims->budgets;
    bool done = false;
    for (unsigned n = 0; preempt_costs && n < TRIES && !done; n++) {
        uint32_t at = preempt_costs_cheapest(p, &a, preempt_costs, mask);
        if (at == NONE)
            break;
        if (careful && preempt_cost_on_node(p, &a, at, NULL, NULL).breaks) {
            careful = false;
            done = clear_within_budgets(e, w, &a);
        }
        done = done || try_node(e, w, &a, at);
        bits_drop(mask, at);
    }
    done = done || (careful && clear_within_budgets(e, w, &a));
    done = done || (policy->clears && preempt_blockers_clear(e, w, &a));
    arena_rewind(&p->scratch, mark);
    return done;
}

/* Returns whether the quotas of the demand are full until victims have stopped, without counting what is kept for
 * reservations. */
static bool waits_for_quota(struct berth_plan *p, const struct demand *w)
{
    plan_quota_count_reservations(p, -1);
    bool full = plan_quota_room(p, w->workload, snapshot_class(p->s, w->class), false, 1) == 0;
    plan_quota_count_reservations(p, 1);
    return full;
}

/* Reserves up to `upto` pods of the demand on what is stopping now, as far as its quotas allow. If the quotas are full
 * until victims have stopped, the demand waits in any case, so it takes existing room instead of more stops. */
static void reserve_stopping(struct berth_plan *p, struct demand *w, uint32_t upto)
{
    uint32_t room = plan_quota_room(p, w->workload, snapshot_class(p->s, w->class), true, upto - w->placed);
    if (room == 0)
        return;
    upto = w->placed + room;
    (void)place_later(p, w, upto, NULL);
    if (w->placed < upto && waits_for_quota(p, w))
        place_after_quota_stops(p, w, upto);
}

/* As promise, and stops more victims if needed. */
static bool preempt_many(struct preempt_attempt *e, struct demand *w, uint32_t upto)
{
    while (w->placed < upto) {
        reserve_stopping(e->p, w, upto);
        if (w->placed < upto && !preempt_one(e, w))
            return false;
    }
    return true;
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

/* The gang loses its minimum: its spare pods wait until the minimum is placed again. */
static void gang_loses_minimum(struct berth_plan *p, uint32_t gang)
{
    bool spare = false;
    for (uint32_t w = ((const struct gang *)pages_at(&p->s->gangs, gang))->first; w != NONE && !spare;
         w = snapshot_workload(p->s, w)->next_in_gang)
        spare = snapshot_workload(p->s, w)->gang_min < snapshot_workload(p->s, w)->replicas;
    for (size_t i = 0; spare && i < p->demands.len; i++)
        if (p->demands.at[i].spare_of == gang)
            p->demands.at[i].len = p->demands.at[i].placed;
    p->gang_stands[gang] = false;
}

static void note_stopped(struct preempt_attempt *e)
{
    struct victims *v = e->p->victims;
    for (size_t i = 0; i < e->stops.len; i++) {
        uint32_t victim_group = e->stops.at[i].victim_group;
        if (i > 0 && e->stops.at[i - 1].victim_group == victim_group)
            continue;
        v->back[v->back_len++] = victim_group;
        v->gone[v->gone_len++] = victim_group;
        if (v->victim_groups[victim_group].gang)
            gang_loses_minimum(e->p, snapshot_workload(e->p->s, v->victim_groups[victim_group].workload)->gang);
    }
}

static bool preempt_gang(struct preempt_attempt *e)
{
    for (uint32_t i = 0; i < e->len; i++)
        place_some(e->p, &e->w[i], e->w[i].needed);
    for (uint32_t i = 0; i < e->len; i++)
        if (!preempt_many(e, &e->w[i], e->w[i].needed))
            return false;
    return true;
}

/* As preempt_gang, with these victim groups alone, except number `but`, and with free choice of places. */
static bool preempt_gang_with(struct preempt_attempt *e, const uint32_t *victim_groups, uint32_t len, uint32_t but)
{
    bool all = true;
    preempt_attempt_undo(e, e->acts);
    for (uint32_t i = 0; i < e->len; i++)
        place_some(e->p, &e->w[i], e->w[i].needed);
    for (uint32_t n = 0; n < len; n++)
        if (n != but)
            preempt_attempt_stop(e, victim_groups[n]);
    for (uint32_t i = 0; i < e->len; i++) {
        reserve_stopping(e->p, &e->w[i], e->w[i].needed);
        all = all && e->w[i].placed == e->w[i].needed;
    }
    return all;
}

/* A gang that was stopped as a whole may have freed more room than needed for the pod that it was stopped for: if pods
 * of the preempting gang use that room, other groups need not stop. */
static void gang_reprieve(struct preempt_attempt *e)
{
    struct arena_mark mark = arena_mark(&e->p->scratch);
    uint32_t len, kept = 0;
    uint32_t *list = preempt_attempt_groups(e, &len);
    bool whole = false;
    for (uint32_t n = 0; n < len; n++)
        whole |= e->p->victims->victim_groups[list[n]].len > 1;
    for (uint32_t n = 0; whole && len > 1 && len <= REPRIEVES && n < len;) {
        if (!preempt_gang_with(e, list, len, n)) {
            n++;
            continue;
        }
        for (uint32_t i = n + 1; i < len; i++)
            list[i - 1] = list[i];
        len--;
        kept++;
    }
    if (whole && len + kept > 1 && len + kept <= REPRIEVES && !preempt_gang_with(e, list, len, NONE)) {
        preempt_attempt_undo(e, e->acts); /* restores the first solution */
        bool again = preempt_gang(e);
        assert(again);
        (void)again;
    }
    arena_rewind(&e->p->scratch, mark);
}

/* Returns whether only the class, the size and the duration of the gang decide whether there is room for it. */
static bool is_plain(const struct preempt_attempt *e)
{
    const struct class *k = snapshot_class(e->p->s, e->w->class);
    const struct claim *claim = snapshot_claim(e->p->s, e->w->workload);
    return e->len == 1 && !e->w->bound && !e->w->elsewhere &&
           k->topology_constraints_len + k->ports_len + k->volumes_len == 0 && !(claim && claim->quotas_len) &&
           !e->p->c.headroom;
}

/* Returns whether preemption failed for a gang that is no larger, no longer and of no lower tier, and nothing was
 * stopped since: then there is less room now than at that time. */
static bool has_failed_before(const struct preempt_attempt *e)
{
    const struct failed_gang *x = &e->p->victims->failed_gang[e->w->class.v];
    return x->stops == e->p->stop_set + 1 && x->round == reservations_round(e->p) && is_plain(e) &&
           e->w->needed >= x->needed && e->tier <= x->tier && e->w->duration_ns >= x->duration_ns;
}

static void note_failed_gang(const struct preempt_attempt *e)
{
    if (is_plain(e))
        e->p->victims->failed_gang[e->w->class.v] = (struct failed_gang){e->tier, e->w->duration_ns, e->w->needed,
                                                                         e->p->stop_set + 1, reservations_round(e->p)};
}

bool preempt(struct berth_plan *p, struct demand *w, uint32_t len)
{
    struct preempt_attempt e = {
        .p = p, .w = w, .len = len, .tier = w->tier, .acts = p->c.acts.len, .waits = p->c.waits.len};
    uint32_t needs = 0, state = p->stop_set;
    for (uint32_t i = 0; i < len; i++) {
        e.tier = w[i].tier < e.tier ? w[i].tier : e.tier;
        needs += w[i].group == NONE ? 0 : w[i].needed;
    }
    if (!p->victims)
        p->victims = victims_new(p, e.tier);
    if (p->victims->least >= e.tier || p->victims->stopped >= preempt_max_stops(p))
        return false;
    if (needs && has_failed_before(&e))
        return false;
    if (needs) {
        p->starting_gang = true; /* the placement budget was checked for the gang as a whole */
        if (preempt_gang(&e)) {
            gang_reprieve(&e);
        } else {
            preempt_attempt_undo(&e, e.acts);
            p->stop_set = state;
            note_failed_gang(&e);
        }
        p->starting_gang = false;
    } else {
        for (uint32_t i = 0; i < len; i++)
            (void)preempt_many(&e, &w[i], w[i].len);
    }
    bool any = p->c.acts.len > e.acts;
    if (!any)
        p->stop_set = state;
    preempt_attempt_reprieve(&e);
    note_stopped(&e);
    vec_done(&e.stops);
    return any;
}
