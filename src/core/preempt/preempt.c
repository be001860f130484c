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

static void stop_one(struct effort *e, uint32_t slot, uint32_t party)
{
    struct berth_plan *p = e->p;
    const struct instance *i = snapshot_instance(p->s, slot);
    uint32_t at = snapshot_position(p->s, i);
    struct stop s = {slot, party, bits_has(p->c.leaving, at), bits_has(p->c.over, at), p->c.any_leaving};
    plan_stop(p, slot, BERTH_CAUSE_PREEMPTED);
    p->victims->stopped++;
    vec_push(&e->stops, s);
}

void effort_stop(struct effort *e, uint32_t party)
{
    struct victims *v = e->p->victims;
    const struct party *x = &v->parties[party];
    for (uint32_t m = 0; m < x->len; m++)
        if (member_stands(e->p, v->members[x->first + m]))
            stop_one(e, v->members[x->first + m], party);
    v->spare[x->workload] -= x->available;
}

/* Undoes the last stop, which is also the last action, and restores the resource counts. */
static void unstop_one(struct effort *e)
{
    struct berth_plan *p = e->p;
    struct cycle *c = &p->c;
    assert(e->stops.len > 0);
    struct stop s = e->stops.at[--e->stops.len];
    const struct instance *i = snapshot_instance(p->s, s.slot);
    const struct party *x = &p->victims->parties[s.party];
    uint32_t at = snapshot_position(p->s, i);

    assert(c->acts.at[c->acts.len - 1].instance == s.slot);
    c->acts.len--;
    c->takebacks++;
    victims_rewind(p, c->acts.len);
    bits_drop(c->stopped, s.slot);
    bits_drop(c->removed, s.slot);
    allot_stay(p, s.slot);
    cycle_take(c, snapshot_class(p->s, i->class), at, i->gpus, true, 1);
    vec_push(&c->given, layout_segment(c->l, at)); /* searches that have looked at the segment meanwhile look again */
    victims_changed(p, at);
    if (!s.leaving)
        bits_drop(c->leaving, at);
    if (s.over)
        bits_add(c->over, at);
    c->any_leaving = s.any_leaving;
    p->stops--;
    p->stop_state = ++p->stop_turns;
    p->victims->stopped--;
    if (p->victims->members[x->first] == s.slot)
        p->victims->spare[x->workload] += x->available;
}

static struct wish *wish_of(struct effort *e, const struct act *a)
{
    for (uint32_t i = e->len; i-- > 0;)
        if (e->w[i].workload == a->workload && e->w[i].placed &&
            wish_ordinal(&e->w[i], e->w[i].placed - 1) == a->ordinal)
            return &e->w[i];
    return NULL;
}

void effort_undo(struct effort *e, size_t acts)
{
    struct cycle *c = &e->p->c;
    while (c->acts.len > acts) {
        const struct act *a = &c->acts.at[c->acts.len - 1];
        if (a->op == BERTH_STOP) {
            unstop_one(e);
        } else {
            struct wish *w = wish_of(e, a);
            assert(w);
            victims_changed(e->p, a->position);
            place_revoke(e->p, w);
        }
    }
}

/* ---- a single pod ----------------------------------------------------------------------------------------------- */

/* Returns the nodes that would accept the pod if there was room: applies all filters except those for room and for
 * ports. */
static uint64_t *usable(struct berth_plan *p, const struct wish *w)
{
    struct cycle *c = &p->c;
    uint64_t *mask = ARENA_ARRAY(&p->scratch, uint64_t, c->blocks + 1);
    struct turn t;
    turn_begin(&t, c, wish_asker(w), true);
    const uint64_t *rules = turn_rules_mask(c, &t);
    for (uint32_t b = 0; b < c->blocks; b++)
        mask[b] = rules[b];
    for (size_t f = 0; f < filters_len; f++) {
        const struct filter *x = filter_rows[f];
        bool room = x == &filter_ports || x == &filter_resources || x == &filter_gpu;
        if (c->profile.filters >> f & 1 && !room && x->when != FILTER_STATIC && x->applies(&t))
            x->mask(&t, (struct range){0, c->blocks}, mask);
    }
    turn_end(&t);
    return mask;
}

/* Returns whether the quotas of the workload stay full whatever is stopped. Sets a->quota if they are full until
 * victims stop. */
static bool quota_refuses(const struct berth_plan *p, struct harm_asker *a)
{
    struct allot_short why;
    if (allot_room(p, a->workload, a->k, true, 1) > 0)
        return false; /* there is quota now, or once instances that are stopping already have stopped */
    a->quota = true;
    return !allot_why(p, a->workload, a->k, &why) || why.total || why.resource == QUOTA_JOBS ||
           p->victims->quota_least[why.quota] >= a->tier;
}

/* Stops the victims on this node if the pod can then be reserved a place there. */
static bool try_node(struct effort *e, struct wish *w, const struct harm_asker *a, uint32_t position)
{
    struct berth_plan *p = e->p;
    const struct victims *v = p->victims;
    uint32_t len, before = w->placed;
    size_t acts = p->c.acts.len;
    uint32_t *go = ARENA_ARRAY(&p->scratch, uint32_t, v->first[position + 1] - v->first[position] + 1);
    uint64_t *only = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    struct harm h = harm_at(p, a, position, go, &len);

    if (!h.possible || v->stopped + h.pods > effort_most(p))
        return false;
    for (uint32_t n = 0; n < len; n++)
        effort_stop(e, go[n]);
    bits_add(only, position);
    (void)place_later(p, w, before + 1, only);
    if (w->placed > before)
        return true;
    effort_undo(e, acts);
    return false;
}

/* Clears a node for the pod without breaking a budget. */
static bool clear_kindly(struct effort *e, struct wish *w, const struct harm_asker *a)
{
    struct harm_asker kind = *a;
    kind.keeps_budgets = true;
    return clear_for(e, w, &kind);
}

static bool one(struct effort *e, struct wish *w)
{
    struct berth_plan *p = e->p;
    struct harm_asker a = {
        .workload = w->workload, .k = snapshot_class(p->s, w->class), .class = w->class, .tier = e->tier};
    a.root = harm_root(p, w->workload);
    if (quota_refuses(p, &a))
        return false;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct harms *harms = harms_of(p, &a);
    uint64_t *mask = harms ? usable(p, w) : NULL;
    const struct berth_preemption *policy = &p->policy.preemption;
    /* no budget is broken as long as another way works */
    bool careful = policy->clears && policy->break_budgets && p->victims->budgets;
    bool done = false;
    for (unsigned n = 0; harms && n < TRIES && !done; n++) {
        uint32_t at = harms_best(p, &a, harms, mask);
        if (at == NONE)
            break;
        if (careful && harm_at(p, &a, at, NULL, NULL).breaks) {
            careful = false;
            done = clear_kindly(e, w, &a);
        }
        done = done || try_node(e, w, &a, at);
        bits_drop(mask, at);
    }
    done = done || (careful && clear_kindly(e, w, &a));
    done = done || (policy->clears && clear_for(e, w, &a));
    arena_rewind(&p->scratch, mark);
    return done;
}

/* Returns whether the quotas of the demand are full until victims have stopped, without counting what is kept for
 * reservations. */
static bool waits_for_quota(struct berth_plan *p, const struct wish *w)
{
    allot_reserves_count(p, -1);
    bool full = allot_room(p, w->workload, snapshot_class(p->s, w->class), false, 1) == 0;
    allot_reserves_count(p, 1);
    return full;
}

/* Reserves up to `upto` pods of the demand on what is stopping now, as far as its quotas allow. If the quotas are full
 * until victims have stopped, the demand waits in any case, so it takes existing room instead of more stops. */
static void promise(struct berth_plan *p, struct wish *w, uint32_t upto)
{
    uint32_t room = allot_room(p, w->workload, snapshot_class(p->s, w->class), true, upto - w->placed);
    if (room == 0)
        return;
    upto = w->placed + room;
    (void)place_later(p, w, upto, NULL);
    if (w->placed < upto && waits_for_quota(p, w))
        place_allotted(p, w, upto);
}

/* As promise, and stops more victims if needed. */
static bool many(struct effort *e, struct wish *w, uint32_t upto)
{
    while (w->placed < upto) {
        promise(e->p, w, upto);
        if (w->placed < upto && !one(e, w))
            return false;
    }
    return true;
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

/* The gang loses its minimum: its spare pods wait until the minimum is placed again. */
static void gang_falls(struct berth_plan *p, uint32_t gang)
{
    bool spare = false;
    for (uint32_t w = ((const struct gang *)pages_at(&p->s->gangs, gang))->first; w != NONE && !spare;
         w = snapshot_workload(p->s, w)->next_in_gang)
        spare = snapshot_workload(p->s, w)->gang_min < snapshot_workload(p->s, w)->replicas;
    for (size_t i = 0; spare && i < p->wishes.len; i++)
        if (p->wishes.at[i].spare_of == gang)
            p->wishes.at[i].len = p->wishes.at[i].placed;
    p->gang_stands[gang] = false;
}

static void note_stopped(struct effort *e)
{
    struct victims *v = e->p->victims;
    for (size_t i = 0; i < e->stops.len; i++) {
        uint32_t party = e->stops.at[i].party;
        if (i > 0 && e->stops.at[i - 1].party == party)
            continue;
        v->back[v->back_len++] = party;
        v->gone[v->gone_len++] = party;
        if (v->parties[party].gang)
            gang_falls(e->p, snapshot_workload(e->p->s, v->parties[party].workload)->gang);
    }
}

static bool gang_go(struct effort *e)
{
    for (uint32_t i = 0; i < e->len; i++)
        place_some(e->p, &e->w[i], e->w[i].needed);
    for (uint32_t i = 0; i < e->len; i++)
        if (!many(e, &e->w[i], e->w[i].needed))
            return false;
    return true;
}

/* As gang_go, with these victim groups alone, except number `but`, and with free choice of places. */
static bool gang_by(struct effort *e, const uint32_t *parties, uint32_t len, uint32_t but)
{
    bool all = true;
    effort_undo(e, e->acts);
    for (uint32_t i = 0; i < e->len; i++)
        place_some(e->p, &e->w[i], e->w[i].needed);
    for (uint32_t n = 0; n < len; n++)
        if (n != but)
            effort_stop(e, parties[n]);
    for (uint32_t i = 0; i < e->len; i++) {
        promise(e->p, &e->w[i], e->w[i].needed);
        all = all && e->w[i].placed == e->w[i].needed;
    }
    return all;
}

/* A gang that was stopped as a whole may have freed more room than needed for the pod that it was stopped for: if pods
 * of the preempting gang use that room, other groups need not stop. */
static void gang_reprieve(struct effort *e)
{
    struct arena_mark mark = arena_mark(&e->p->scratch);
    uint32_t len, kept = 0;
    uint32_t *list = effort_parties(e, &len);
    bool whole = false;
    for (uint32_t n = 0; n < len; n++)
        whole |= e->p->victims->parties[list[n]].len > 1;
    for (uint32_t n = 0; whole && len > 1 && len <= REPRIEVES && n < len;) {
        if (!gang_by(e, list, len, n)) {
            n++;
            continue;
        }
        for (uint32_t i = n + 1; i < len; i++)
            list[i - 1] = list[i];
        len--;
        kept++;
    }
    if (whole && len + kept > 1 && len + kept <= REPRIEVES && !gang_by(e, list, len, NONE)) {
        effort_undo(e, e->acts); /* restores the first solution */
        bool again = gang_go(e);
        assert(again);
        (void)again;
    }
    arena_rewind(&e->p->scratch, mark);
}

/* Returns whether only the class, the size and the duration of the gang decide whether there is room for it. */
static bool is_plain(const struct effort *e)
{
    const struct class *k = snapshot_class(e->p->s, e->w->class);
    const struct claim *claim = snapshot_claim(e->p->s, e->w->workload);
    return e->len == 1 && !e->w->bound && !e->w->elsewhere && k->ties_len + k->ports_len + k->volumes_len == 0 &&
           !(claim && claim->quotas_len) && !e->p->c.headroom;
}

/* Returns whether preemption failed for a gang that is no larger, no longer and of no lower tier, and nothing was
 * stopped since: then there is less room now than at that time. */
static bool is_in_vain(const struct effort *e)
{
    const struct in_vain *x = &e->p->victims->in_vain[e->w->class.v];
    return x->stops == e->p->stop_state + 1 && x->round == future_round(e->p) && is_plain(e) &&
           e->w->needed >= x->needed && e->tier <= x->tier && e->w->duration_ns >= x->duration_ns;
}

static void note_in_vain(const struct effort *e)
{
    if (is_plain(e))
        e->p->victims->in_vain[e->w->class.v] =
            (struct in_vain){e->tier, e->w->duration_ns, e->w->needed, e->p->stop_state + 1, future_round(e->p)};
}

bool preempt(struct berth_plan *p, struct wish *w, uint32_t len)
{
    struct effort e = {.p = p, .w = w, .len = len, .tier = w->tier, .acts = p->c.acts.len, .waits = p->c.waits.len};
    uint32_t needs = 0, state = p->stop_state;
    for (uint32_t i = 0; i < len; i++) {
        e.tier = w[i].tier < e.tier ? w[i].tier : e.tier;
        needs += w[i].group == NONE ? 0 : w[i].needed;
    }
    if (!p->victims)
        p->victims = victims_new(p, e.tier);
    if (p->victims->least >= e.tier || p->victims->stopped >= effort_most(p))
        return false;
    if (needs && is_in_vain(&e))
        return false;
    if (needs) {
        p->starting_gang = true; /* the placement budget was checked for the gang as a whole */
        if (gang_go(&e)) {
            gang_reprieve(&e);
        } else {
            effort_undo(&e, e.acts);
            p->stop_state = state;
            note_in_vain(&e);
        }
        p->starting_gang = false;
    } else {
        for (uint32_t i = 0; i < len; i++)
            (void)many(&e, &w[i], w[i].len);
    }
    bool any = p->c.acts.len > e.acts;
    if (!any)
        p->stop_state = state;
    effort_reprieve(&e);
    note_stopped(&e);
    vec_done(&e.stops);
    return any;
}
