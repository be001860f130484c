/* preempt.c - stopping others for a wish: tried with the books of the plan itself, and taken back if it is not enough. */
#include "core/preempt.h"

#include <assert.h>

#include "core/allot.h"
#include "core/filter/filters.h"
#include "core/future.h"
#include "core/harm.h"

enum {
    TRIES = 16,       /* nodes that are tried for a pod, should filters refuse what there would be room for */
    MOST_USUAL = 200, /* pods that one plan stops */
    REPRIEVES = 32,   /* parties of which it is tried whether each is needed */
};

/* ---- stops that can be taken back ---------------------------------------------------------------------------------- */

struct stop {
    uint32_t slot, party;
    bool leaving, over, any_leaving; /* as it was before */
};

struct effort {
    struct berth_plan *p;
    struct wish *w; /* of the group */
    uint32_t len;
    int64_t tier;
    VEC(struct stop) stops;
    size_t acts, waits; /* that were there before */
};

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

static void party_stop(struct effort *e, uint32_t party)
{
    struct victims *v = e->p->victims;
    const struct party *x = &v->parties[party];
    for (uint32_t m = 0; m < x->len; m++)
        if (member_stands(e->p, v->members[x->first + m]))
            stop_one(e, v->members[x->first + m], party);
    v->spare[x->workload] -= x->available;
}

/* The last action is the last stop: both are undone, and the books are as they were. */
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
    bits_drop(c->stopped, s.slot);
    bits_drop(c->removed, s.slot);
    allot_stay(p, i);
    cycle_take(c, snapshot_class(p->s, i->class), at, i->gpus, true, 1);
    vec_push(&c->given, layout_segment(c->l, at)); /* who looked at it meanwhile looks again */
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

/* Takes back all that was done since. */
static void undo(struct effort *e, size_t acts)
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

/* ---- one pod --------------------------------------------------------------------------------------------------------- */

/* Nodes that would take the pod if there was room: all filters but those that look at room, and at ports. */
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

/* Are the quotas of the workload full for good, whatever stops? Sets whether they are full until others stop. */
static bool quota_refuses(const struct berth_plan *p, struct harm_asker *a)
{
    struct allot_short why;
    if (allot_room(p, a->workload, a->k, false, 1) > 0)
        return false;
    if (allot_room(p, a->workload, a->k, true, 1) > 0)
        return true; /* others of it are stopping already */
    a->quota = true;
    return !allot_why(p, a->workload, a->k, &why) || why.total || why.resource == QUOTA_JOBS ||
           p->victims->quota_least[why.quota] >= a->tier;
}

static uint32_t most(const struct berth_plan *p)
{
    return p->policy.preemption.most ? p->policy.preemption.most : MOST_USUAL;
}

/* Stops who is in the way on this node, if the pod can then be promised a place there. */
static bool try_node(struct effort *e, struct wish *w, const struct harm_asker *a, uint32_t position)
{
    struct berth_plan *p = e->p;
    const struct victims *v = p->victims;
    uint32_t len, before = w->placed;
    size_t acts = p->c.acts.len;
    uint32_t *go = ARENA_ARRAY(&p->scratch, uint32_t, v->first[position + 1] - v->first[position] + 1);
    uint64_t *only = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    struct harm h = harm_at(p, a, position, go, &len);

    if (!h.possible || v->stopped + h.pods > most(p))
        return false;
    for (uint32_t n = 0; n < len; n++)
        party_stop(e, go[n]);
    bits_add(only, position);
    (void)place_later(p, w, before + 1, only);
    if (w->placed > before)
        return true;
    undo(e, acts);
    return false;
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
    bool done = false;
    if (harms) {
        uint64_t *mask = usable(p, w);
        for (unsigned n = 0; n < TRIES && !done; n++) {
            uint32_t at = harms_best(p, &a, harms, mask);
            if (at == NONE)
                break;
            done = try_node(e, w, &a, at);
            bits_drop(mask, at);
        }
    }
    arena_rewind(&p->scratch, mark);
    return done;
}

/* Up to `upto` pods of the wish: on what is stopping by now, as far as its quotas go, and by stopping more. */
static bool many(struct effort *e, struct wish *w, uint32_t upto)
{
    bool first = true;
    while (w->placed < upto) {
        const struct class *k = snapshot_class(e->p->s, w->class);
        uint32_t room = first ? 0 : allot_room(e->p, w->workload, k, true, upto - w->placed);
        if (room)
            (void)place_later(e->p, w, w->placed + room, NULL);
        if (w->placed < upto && !one(e, w))
            return false;
        first = false;
    }
    return true;
}

/* ---- groups ---------------------------------------------------------------------------------------------------------- */

/* Pods of the gang beyond its minimum wait until it stands again. */
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

/* The same with these parties alone, whoever finds room where. */
static bool gang_by(struct effort *e, const uint32_t *parties, uint32_t len, uint32_t but)
{
    bool all = true;
    undo(e, e->acts);
    for (uint32_t i = 0; i < e->len; i++)
        place_some(e->p, &e->w[i], e->w[i].needed);
    for (uint32_t n = 0; n < len; n++)
        if (n != but)
            party_stop(e, parties[n]);
    for (uint32_t i = 0; i < e->len; i++) {
        struct wish *w = &e->w[i];
        const struct class *k = snapshot_class(e->p->s, w->class);
        uint32_t room = allot_room(e->p, w->workload, k, true, w->needed - w->placed);
        if (room)
            (void)place_later(e->p, w, w->placed + room, NULL);
        all = all && w->placed == w->needed;
    }
    return all;
}

static bool is_worth_more(const struct party *a, const struct party *b)
{
    if (a->tier != b->tier)
        return a->tier > b->tier;
    return a->lost != b->lost ? a->lost > b->lost : a->id < b->id;
}

/* The parties that were stopped, the most valuable first. */
static uint32_t *parties_by_worth(const struct effort *e, uint32_t *ret_len)
{
    const struct party *all = e->p->victims->parties;
    uint32_t *list = ARENA_ARRAY(&e->p->scratch, uint32_t, e->stops.len + 1), len = 0;
    for (size_t i = 0; i < e->stops.len; i++) {
        uint32_t party = e->stops.at[i].party, at = len;
        if (i > 0 && e->stops.at[i - 1].party == party)
            continue;
        for (; at > 0 && is_worth_more(&all[party], &all[list[at - 1]]); at--)
            list[at] = list[at - 1];
        list[at] = party;
        len++;
    }
    *ret_len = len;
    return list;
}

/* A gang that went whole may have made room for more than the pod it went for: others need not go if pods of the gang that
 * asks go there. */
static void gang_reprieve(struct effort *e)
{
    struct arena_mark mark = arena_mark(&e->p->scratch);
    uint32_t len, kept = 0;
    uint32_t *list = parties_by_worth(e, &len);
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
        undo(e, e->acts); /* as it was found first */
        bool again = gang_go(e);
        assert(again);
        (void)again;
    }
    arena_rewind(&e->p->scratch, mark);
}

/* ---- who need not go after all ---------------------------------------------------------------------------------------- */

/* In the books alone: it stays, or goes again. */
static void book_stay(struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    bits_drop(p->c.stopped, slot);
    allot_stay(p, i);
    cycle_take(&p->c, snapshot_class(p->s, i->class), snapshot_position(p->s, i), i->gpus, true, 1);
}

static void book_go(struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    bits_add(p->c.stopped, slot);
    allot_leave(p, i);
    cycle_leave(&p->c, i);
}

/* Did this effort promise a place on the node? */
static bool is_promised(const struct effort *e, uint32_t position)
{
    for (size_t n = e->acts; n < e->p->c.acts.len; n++)
        if (e->p->c.acts.at[n].op == BERTH_RESERVE && e->p->c.acts.at[n].position == position)
            return true;
    return false;
}

/* Is there room for it beside all that was placed? Ports, volumes and ties are not looked at again: then it goes. */
static bool may_stay(const struct effort *e, const struct stop *s)
{
    const struct berth_plan *p = e->p;
    const struct cycle *c = &p->c;
    const struct instance *i = snapshot_instance(p->s, s->slot);
    const struct class *k = snapshot_class(p->s, i->class);
    uint32_t at = snapshot_position(p->s, i);
    if (i->state == BERTH_RESERVED || s->over || k->ties_len || k->max_per_node || k->ports_len || k->volumes_len)
        return false;
    for (uint32_t n = 0; n < e->len; n++)
        if (snapshot_class(p->s, e->w[n].class)->ties_len)
            return false;
    for (uint32_t n = 0; n < k->needs_len; n++) {
        const int64_t *later = cycle_column(c, k->needs[n].resource, true);
        if (!later || later[at] < k->needs[n].amount)
            return false;
    }
    BITS_EACH (d, i->gpus) {
        const struct device_free *f = &c->devices[c->l->device[at] + d];
        if (f->later < (int32_t)k->gpu.milli || f->mem_later < gpu_memory_held(&k->gpu))
            return false;
    }
    if (future_keeps(p, at) && is_promised(e, at))
        return false; /* what is kept there in time was looked at without it */
    return (i->replaces || allot_room(p, i->workload.v, k, true, 1) > 0);
}

/* A spare pod of a gang that goes as a whole goes with it. */
static bool is_of_lost_gang(const struct effort *e, uint32_t party)
{
    const struct berth_plan *p = e->p;
    const struct party *x = &p->victims->parties[party];
    uint32_t gang = snapshot_workload(p->s, x->workload)->gang;
    for (size_t n = 0; n < e->stops.len && gang != NONE && !x->gang; n++) {
        const struct party *y = &p->victims->parties[e->stops.at[n].party];
        if (y->gang && snapshot_workload(p->s, y->workload)->gang == gang &&
            bits_has(p->c.stopped, e->stops.at[n].slot))
            return true;
    }
    return false;
}

/* Does anything on the node stop? */
static bool node_leaves(const struct berth_plan *p, uint32_t position)
{
    const struct node *n = pages_at(&p->s->nodes, p->c.l->slot[position]);
    for (uint32_t at = n->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_node)
        if (snapshot_instance(p->s, at)->state == BERTH_STOPPING || bits_has(p->c.stopped, at))
            return true;
    return false;
}

/* All of a party stay, or none. */
static bool party_stays(struct effort *e, uint32_t party)
{
    size_t n = 0;
    bool stays = !is_of_lost_gang(e, party);
    for (; n < e->stops.len && stays; n++)
        if (e->stops.at[n].party == party) {
            stays = may_stay(e, &e->stops.at[n]);
            if (stays)
                book_stay(e->p, e->stops.at[n].slot);
        }
    for (; n-- > 0 && !stays;)
        if (e->stops.at[n].party == party && !bits_has(e->p->c.stopped, e->stops.at[n].slot))
            book_go(e->p, e->stops.at[n].slot);
    return stays;
}

/* Nothing stops on its node after all: what was promised is placed, unless it waits for others of its quotas to stop. */
static void place_at_once(struct berth_plan *p, struct act *a)
{
    const struct class *k = snapshot_class(p->s, snapshot_workload(p->s, a->workload)->class);
    allot_take(p, a->workload, k, true, -1);
    bool now = allot_room(p, a->workload, k, false, 1) > 0;
    allot_take(p, a->workload, k, !now, 1);
    if (!now) {
        place_note_waits(p, a);
        return;
    }
    a->op = BERTH_PLACE;
    a->aux = a->aux_len = 0;
    cycle_take(&p->c, k, a->position, a->gpus, false, 1);
    cycle_take(&p->c, k, a->position, a->gpus, true, -1);
}

/* Forgets the stops of those who stay; what was placed waits only for those who go. */
static void forget_stays(struct effort *e)
{
    struct berth_plan *p = e->p;
    struct cycle *c = &p->c;
    uint32_t *now_at = ARENA_ARRAY(&p->scratch, uint32_t, c->acts.len - e->acts + 1);
    size_t to = e->acts;
    for (size_t n = e->acts; n < c->acts.len; n++) {
        const struct act *a = &c->acts.at[n];
        if (a->op == BERTH_STOP && !bits_has(c->stopped, a->instance)) {
            victims_changed(p, a->position);
            if (!node_leaves(p, a->position))
                bits_drop(c->leaving, a->position);
            continue;
        }
        now_at[n - e->acts] = (uint32_t)to;
        c->acts.at[to++] = *a;
    }
    c->acts.len = to;
    c->waits.len = e->waits;
    for (size_t n = e->acts; n < to; n++) {
        struct act *a = &c->acts.at[n];
        if (a->op != BERTH_STOP && a->next != NONE && a->next >= e->acts)
            a->next = now_at[a->next - e->acts];
        if (a->op == BERTH_RESERVE && !node_leaves(p, a->position))
            place_at_once(p, a);
        else if (a->op == BERTH_RESERVE)
            place_note_waits(p, a);
    }
    for (uint32_t n = 0; n < e->len; n++)
        if (c->fresh[e->w[n].workload] != NONE && c->fresh[e->w[n].workload] >= e->acts)
            c->fresh[e->w[n].workload] = now_at[c->fresh[e->w[n].workload] - e->acts];
    size_t left = 0;
    for (size_t n = 0; n < e->stops.len; n++)
        if (bits_has(c->stopped, e->stops.at[n].slot))
            e->stops.at[left++] = e->stops.at[n];
    p->stops -= (uint32_t)(e->stops.len - left);
    p->victims->stopped -= (uint32_t)(e->stops.len - left);
    p->stop_state = ++p->stop_turns;
    e->stops.len = left;
}

/* A gang that went whole, or one that went for another's quota, may have made room for more than the pod it went for: then
 * others need not go, the most valuable first. */
static void reprieve(struct effort *e)
{
    struct arena_mark mark = arena_mark(&e->p->scratch);
    uint32_t len;
    bool any = false;
    const uint32_t *list = parties_by_worth(e, &len);
    allot_reserves_count(e->p, -1); /* what is promised in time was promised beside them */
    for (uint32_t n = 0; n < len && len > 1; n++)
        if (party_stays(e, list[n])) {
            const struct party *x = &e->p->victims->parties[list[n]];
            e->p->victims->spare[x->workload] += x->available;
            any = true;
        }
    if (any)
        forget_stays(e);
    allot_reserves_count(e->p, 1);
    arena_rewind(&e->p->scratch, mark);
}

/* Does nothing but its class, its size and its time decide whether there is room for the gang? */
static bool is_plain(const struct effort *e)
{
    const struct class *k = snapshot_class(e->p->s, e->w->class);
    const struct claim *claim = snapshot_claim(e->p->s, e->w->workload);
    return e->len == 1 && !e->w->bound && !e->w->elsewhere && k->ties_len + k->ports_len + k->volumes_len == 0 &&
           !(claim && claim->quotas_len) && !e->p->c.headroom;
}

/* Was it tried for one that is no larger, no longer and of no lower tier, and has nothing been stopped since? Then there is
 * less room now than there was. */
static bool is_in_vain(const struct effort *e)
{
    const struct in_vain *x = &e->p->victims->in_vain[e->w->class.v];
    return x->stops == e->p->stop_state + 1 && is_plain(e) && e->w->needed >= x->needed && e->tier <= x->tier &&
           e->w->duration_ns >= x->duration_ns;
}

static void note_in_vain(const struct effort *e)
{
    if (is_plain(e))
        e->p->victims->in_vain[e->w->class.v] =
            (struct in_vain){e->tier, e->w->duration_ns, e->w->needed, e->p->stop_state + 1};
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
    if (p->victims->least >= e.tier || p->victims->stopped >= most(p))
        return false;
    if (needs && is_in_vain(&e))
        return false;
    if (needs) {
        if (gang_go(&e)) {
            gang_reprieve(&e);
        } else {
            undo(&e, e.acts);
            p->stop_state = state;
            note_in_vain(&e);
        }
    } else {
        for (uint32_t i = 0; i < len; i++)
            (void)many(&e, &w[i], w[i].len);
    }
    bool any = p->c.acts.len > e.acts;
    if (!any)
        p->stop_state = state;
    reprieve(&e);
    note_stopped(&e);
    vec_done(&e.stops);
    return any;
}
