/* placement.c - places demands: the best node for each pod, gangs as a whole, and reserving actions on resources that
 * stopping instances will free.
 *
 * One pass in order (tier.c) tries for each demand: free resources, resources of stopping instances, resources freed by
 * preempting lower demands (preempt.c), and last a reservation in the future (reservation.c), which later demands may
 * not delay. A demand that fits nowhere leaves everything as it was. Passes are repeated while a change could help the
 * demands left over: a pod that another must be near was placed, a spread evened out, or a stop was decided because a
 * replacement found no place. So nothing is left that the next plan would do at the same moment.
 */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/plant.h"
#include "base/sort.h"
#include "core/backfill/reservation.h"
#include "core/plan/demand_order.h"
#include "core/plan/migration.h"
#include "core/plan/spare_victims.h"
#include "core/preempt/preempt.h"
#include "core/preempt/victims.h"
#include "core/queue/placement_budget.h"
#include "core/queue/plan_quota.h"
#include "core/queue/tier.h"
#include "core/score/scores.h"
#include "core/search/holders.h"
#include "core/search/search.h"

enum { PROGRESS_EVERY = 1024 };

/* ---- one pod ---------------------------------------------------------------------------------------------------- */

/* Records the ids of stopping instances on the node, ascending. A promotion also needs free resources, so of very many
 * ids the first BERTH_LIST_MAX are enough. */
void place_record_waits(struct berth_plan *p, struct plan_act *a)
{
    struct cycle *c = &p->c;
    const struct node *n = pages_at(&p->s->nodes, p->s->layout->slot[a->position]);
    struct arena_mark mark = arena_mark(&p->scratch);
    struct keyed *rows = arena_alloc(&p->scratch, 2 * (size_t)n->instances * sizeof *rows);
    size_t len = 0;

    for (uint32_t at = n->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_node) {
        const struct instance *i = snapshot_instance(p->s, at);
        if ((i->state == BERTH_STOPPING || bits_has(c->stopped, at)) && !bits_has(c->removed, at))
            rows[len++].key = i->id;
    }
    sort_keyed(rows, rows + n->instances, len);
    a->aux = (uint32_t)c->waits.len;
    a->aux_len = (uint32_t)(len < BERTH_LIST_MAX ? len : BERTH_LIST_MAX);
    for (uint32_t i = 0; i < a->aux_len; i++)
        vec_push(&c->waits, rows[i].key);
    arena_rewind(&p->scratch, mark);
}

static void place_pod(struct berth_plan *p, struct attempt *t, struct demand *w, uint32_t position)
{
    struct cycle *c = &p->c;
    struct plan_act a = {.op = t->later ? BERTH_RESERVE : BERTH_PLACE,
                         .cause = w->cause,
                         .workload = w->workload,
                         .ordinal = demand_ordinal(w, w->placed),
                         .position = position,
                         .instance = NONE,
                         .replaces = w->replaces,
                         .next = c->fresh[w->workload],
                         .score = t->score,
                         .rival = t->rival,
                         .gpus = attempt_pick_gpus(t, position)};
    if (t->later)
        place_record_waits(p, &a);
    plan_quota_count(p, w->workload, w->replaces, t->k, t->later, 1);
    cycle_take(c, t->k, position, a.gpus, t->later, 1);
    holds_take(c, t->k, position);
    if (!t->later)
        placement_budget_count(p, w, 1);
    if (a.gpus)
        gpu_request_counts_update(c, &t->k->gpu, position, 1);
    if (w->replaces != NONE)
        migration_note(p, snapshot_instance(p->s, w->replaces)->id, BERTH_MIGRATION_STARTING,
                       (enum berth_cause)w->cause);
    c->fresh[w->workload] = (uint32_t)c->acts.len;
    vec_push(&c->acts, a);
    w->placed++;
    reservations_note_placed(p, w, position, a.gpus, 1);
    attempt_placed(t, position);
}

/* Revokes the last action, which is a placement of this demand. */
void place_revoke(struct berth_plan *p, struct demand *w)
{
    struct cycle *c = &p->c;
    struct plan_act a = c->acts.at[--c->acts.len];
    c->revocations++;
    const struct class *k = snapshot_class(p->s, w->class);

    assert(a.workload == w->workload && w->placed > 0);
    victims_rewind(p, c->acts.len);
    if (a.op == BERTH_RESERVE)
        c->waits.len = a.aux;
    if (a.op == BERTH_PLACE)
        placement_budget_count(p, w, -1);
    holds_undo(c, k, a.position);
    cycle_take(c, k, a.position, a.gpus, a.op == BERTH_RESERVE, -1);
    if (a.gpus)
        gpu_request_counts_update(c, &k->gpu, a.position, -1);
    c->fresh[w->workload] = a.next;
    plan_quota_count(p, w->workload, w->replaces, k, a.op == BERTH_RESERVE, -1);
    reservations_note_placed(p, w, a.position, a.gpus, -1);
    w->placed--;
}

/* ---- one demand ------------------------------------------------------------------------------------------------- */

/* Returns how many pods of the demand, at most `upto`, its quotas and its placement budget allow. */
static uint32_t quota_limit(struct berth_plan *p, struct demand *w, uint32_t upto, bool later)
{
    uint32_t room = plan_quota_room_of_demand(p, w, later, upto - w->placed);
    w->short_of_quota |= w->placed + room < upto;
    if (p->starting) {
        uint32_t may = placement_budget_room(p, w, room);
        w->over_budget |= may < room;
        room = may;
    }
    return w->placed + room;
}

/* What limited a placement besides free room on single nodes: reserved time, or other conditions. */
enum placement_limit { LIMITED_BY_ROOM, LIMITED_BY_TIME, LIMITED_BY_OTHERS };

static enum placement_limit place_now(struct berth_plan *p, struct demand *w, uint32_t upto)
{
    struct attempt t;
    struct search s;
    uint32_t position;

    attempt_begin(&t, &p->c, demand_attempt_spec(w), false);
    search_begin(&s, &t);
    while (w->placed < upto && search_next(&s, &position)) {
        place_pod(p, &t, w, position);
        if (w->placed < upto)
            search_placed(&s, position);
    }
    bool plain = !t.confined && t.topology_constraints_len == 0 && t.k->ports_len == 0 && t.k->volumes_len == 0;
    attempt_end(&t);
    if (!plain)
        return LIMITED_BY_OTHERS;
    return reservations_refused_node(p) ? LIMITED_BY_TIME : LIMITED_BY_ROOM;
}

bool place_later(struct berth_plan *p, struct demand *w, uint32_t upto, const uint64_t *only)
{
    struct attempt t;
    uint32_t position;

    attempt_begin(&t, &p->c, demand_attempt_spec(w), true);
    if (only) /* the mask may be shared by all pods with the same constraints */
        t.mask = arena_dup(&p->scratch, t.mask, (p->c.blocks + 1) * sizeof *t.mask);
    for (uint32_t b = 0; only && b < p->c.blocks; b++)
        t.mask[b] &= only[b];
    while (w->placed < upto && search_later(&t, &position))
        place_pod(p, &t, w, position);
    bool plain = !t.confined && t.topology_constraints_len == 0;
    attempt_end(&t);
    return plain;
}

void place_after_quota_stops(struct berth_plan *p, struct demand *w, uint32_t upto)
{
    struct attempt t;
    uint32_t position;

    attempt_begin(&t, &p->c, demand_attempt_spec(w), true);
    t.anywhere = true;
    while (w->placed < upto && search_later(&t, &position))
        place_pod(p, &t, w, position);
    attempt_end(&t);
}

bool place_move(struct berth_plan *p, struct demand *w)
{
    (void)place_now(p, w, w->len);
    return w->placed == w->len;
}

/* Placements of a gang may be revoked. With several workloads in a gang, placements of one may block another. */
enum placement_result { FINAL_PLACEMENT, GANG_OF_ONE, GANG_OF_MANY };

/* ---- failed attempts that are not repeated ---------------------------------------------------------------------- */

enum { FAILED_ATTEMPTS_MAX = 4 };

/* A failed attempt: this many pods of a class at once, for this long, found no room, neither free nor on what was
 * stopping, beside the reservations of that round. */
struct failed_attempt {
    uint32_t pods, stops, round;
    int64_t duration_ns;
    bool in_time; /* there was room, but not for long enough */
};

/* Returns whether only the class, number and duration of its pods decide where the demand fits. */
static bool is_simple(const struct berth_plan *p, const struct demand *w, enum placement_result trial)
{
    const struct class *k = snapshot_class(p->s, w->class);
    return k->topology_constraints_len == 0 && k->max_per_node == 0 && k->ports_len == 0 && k->volumes_len == 0 &&
           w->replaces == NONE && !p->c.headroom && p->policy.windows_len == 0 && !w->dated && trial != GANG_OF_MANY;
}

/* Returns whether an equal or smaller attempt failed before. Valid because placing demands frees nothing: a revoked
 * gang only returns what it took, and stops change the key. */
static bool has_failed_before(const struct berth_plan *p, struct demand *w, uint32_t pods)
{
    int64_t duration_ns = w->duration_ns;
    const struct failed_attempt *at = p->failed_attempt + (size_t)w->class.v * FAILED_ATTEMPTS_MAX;
    for (uint32_t i = 0; i < FAILED_ATTEMPTS_MAX; i++)
        if (at[i].pods && at[i].stops == p->stop_set && at[i].round == reservations_round(p) && pods >= at[i].pods &&
            duration_ns >= at[i].duration_ns) {
            w->refused_in_time |= at[i].in_time;
            return true;
        }
    return false;
}

/* Records a failed attempt in place of one that it covers, else of any. */
static void note_failed_attempt(struct berth_plan *p, const struct demand *w, uint32_t pods)
{
    struct failed_attempt v = {pods, p->stop_set, reservations_round(p), w->duration_ns, w->refused_in_time};
    struct failed_attempt *at = p->failed_attempt + (size_t)w->class.v * FAILED_ATTEMPTS_MAX, *to = at;
    for (uint32_t i = 0; i < FAILED_ATTEMPTS_MAX; i++)
        if (at[i].pods == 0 || at[i].stops != v.stops || at[i].round != v.round ||
            (v.pods <= at[i].pods && v.duration_ns <= at[i].duration_ns)) {
            to = &at[i];
            break;
        }
    *to = v;
}

/* Places up to `upto` pods of a demand. If a class finds no place, other demands of the class are not tried either. */
static void place_demand(struct berth_plan *p, struct demand *w, uint32_t upto, enum placement_result trial)
{
    uint8_t *dead = &p->c.dead[w->class.v];

    if (w->placed >= upto)
        return;
    w->short_of_quota = w->over_budget = false;
    uint32_t now = quota_limit(p, w, upto, false);
    uint32_t later = p->c.any_leaving && now < upto ? quota_limit(p, w, upto, true) : now; /* never less than `now` */
    uint32_t at_once = trial == FINAL_PLACEMENT ? 1 : upto - w->placed;
    bool simple = is_simple(p, w, trial);
    if (later == w->placed || (trial != FINAL_PLACEMENT && later < upto) ||
        (simple && has_failed_before(p, w, at_once)))
        return;
    bool hopeless = !*dead && w->placed < now && is_placement_known_to_fail(p, w, at_once);
    w->refused_in_time = hopeless;
    if (!*dead && w->placed < now && !hopeless) {
        enum placement_limit by = place_now(p, w, now);
        /* pods of other workloads may keep this one away and no other pod of its class */
        simple = simple && by != LIMITED_BY_OTHERS;
        *dead = by == LIMITED_BY_ROOM && trial == FINAL_PLACEMENT && w->placed < now;
        w->refused_in_time = w->placed < now && reservations_refused_node(p);
        if (by == LIMITED_BY_TIME && trial != GANG_OF_MANY && w->placed < now)
            placement_note_failure(p, w, at_once);
    }
    if (w->placed < later && p->c.any_leaving)
        simple = place_later(p, w, later, NULL) && simple;
    if (simple && w->placed < later)
        note_failed_attempt(p, w, at_once);
}

void place_some(struct berth_plan *p, struct demand *w, uint32_t upto)
{
    uint32_t now = quota_limit(p, w, upto, false);
    if (w->placed < now && !p->c.dead[w->class.v])
        (void)place_now(p, w, now);
    uint32_t later = quota_limit(p, w, upto, true);
    if (w->placed < later && p->c.any_leaving)
        (void)place_later(p, w, later, NULL);
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

static void gang_fail(struct berth_plan *p, struct demand *w, uint32_t len, uint32_t needs)
{
    uint32_t fits = 0;
    for (uint32_t i = 0; i < len; i++)
        fits += w[i].placed;
    for (uint32_t i = len; i-- > 0;) {
        while (w[i].placed)
            place_revoke(p, &w[i]);
        w[i].gang_failed = true;
    }
    for (uint32_t i = 0; i < len; i++) { /* keep the best result of all rounds */
        w[i].gang_fits = fits > w[i].gang_fits ? fits : w[i].gang_fits;
        w[i].gang_needs = needs;
    }
}

/* Places the minimum of every workload of the gang, or nothing; then as many of the rest as fit. */
static void place_gang(struct berth_plan *p, struct demand *w, uint32_t len)
{
    uint32_t needs = 0, started = 0;
    for (uint32_t i = 0; i < len; i++) {
        needs += w[i].needed;
        started += w[i].placed;
    }
    bool over = needs && started == 0 && !placement_budget_gang_fits(p, w, needs);
    for (uint32_t i = 0; i < len; i++)
        w[i].over_budget = over;
    if (w[0].blocked || over) {
        gang_fail(p, w, len, needs);
        return;
    }
    p->starting_gang = true;
    for (uint32_t i = 0; needs && started == 0 && i < len; i++) {
        place_demand(p, &w[i], w[i].needed, len == 1 ? GANG_OF_ONE : GANG_OF_MANY);
        if (w[i].placed < w[i].needed && !PLANTED(GANG_PART)) {
            p->starting_gang = false;
            gang_fail(p, w, len, needs);
            return;
        }
    }
    p->starting_gang = false;
    for (uint32_t i = 0; i < len; i++) {
        w[i].gang_failed = false;
        place_demand(p, &w[i], w[i].len, FINAL_PLACEMENT);
    }
}

/* ---- rounds ----------------------------------------------------------------------------------------------------- */

bool class_gains_from_placements(const struct berth_plan *p, struct class_ix class)
{
    const struct class *k = snapshot_class(p->s, class);
    for (uint32_t i = 0; i < k->topology_constraints_len; i++) {
        const struct topology_constraint *topology_constraint =
            snapshot_topology_constraint(p->s, k->topology_constraints[i]);
        if (topology_constraint->weight == 0 && topology_constraint->kind != TOPOLOGY_ANTI_AFFINITY)
            return true;
    }
    return false;
}

/* Returns whether a group should be tried in a repeated round. A gang that failed may succeed once others have taken
 * the nodes that its first members would have chosen; then its pods beyond the minimum may follow. */
static bool may_gain_from_round(const struct berth_plan *p, const struct demand *w, uint32_t len, bool all)
{
    bool left = false, rise = all || w->group != NONE || w->spare_of != NONE;
    for (uint32_t i = 0; i < len; i++) {
        left |= w[i].placed < w[i].len;
        rise = rise || class_gains_from_placements(p, w[i].class);
    }
    return left && rise;
}

static bool has_pods_left(const struct demand *w, uint32_t len)
{
    /* instances it needs may still be stopping, and are then in no demand */
    bool left = w->group != NONE && w->blocked;
    for (uint32_t i = 0; i < len; i++)
        left |= w[i].placed < (w[i].group == NONE ? w[i].len : w[i].needed);
    return left;
}

bool workload_is_stopping(const struct berth_plan *p, uint32_t workload)
{
    uint32_t at = snapshot_workload(p->s, workload)->first;
    for (; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload)
        if ((snapshot_instance(p->s, at)->state == BERTH_STOPPING || bits_has(p->c.stopped, at)) &&
            !bits_has(p->c.removed, at))
            return true;
    return false;
}

/* Returns whether an elastic gang may grow beyond its minimum: only once that stands and none of its pods is stopping.
 * Otherwise pods stopped for others would be placed again at once, under other ordinals. */
static bool gang_may_grow(const struct berth_plan *p, const struct demand *w)
{
    return p->gang_stands[w->spare_of] && !workload_is_stopping(p, w->workload);
}

/* Places as much as possible of a demand, or of the demands of one gang. */
static void place_group(struct berth_plan *p, struct demand *w, uint32_t len)
{
    if (w->group != NONE)
        place_gang(p, w, len);
    else if (w->spare_of == NONE || gang_may_grow(p, w))
        place_demand(p, w, w->len, FINAL_PLACEMENT);
}

/* Returns whether quotas keep back everything: each single pod, or a gang's minimum. */
static bool is_blocked_by_quota(const struct berth_plan *p, const struct demand *w, uint32_t len)
{
    bool back = false;
    if (w->group == NONE)
        return plan_quota_room_of_demand(p, w, false, 1) == 0;
    for (uint32_t i = 0; i < len; i++)
        back |= w[i].short_of_quota;
    return back;
}

/* Returns whether the demand may preempt. A gang may not if any of its workloads never preempts, even one without
 * missing pods. */
static bool may_preempt(const struct berth_plan *p, const struct demand *w)
{
    bool may = p->policy.preemption.on && !w->never_preempts;
    uint32_t gang = snapshot_workload(p->s, w->workload)->gang;
    uint32_t at = gang == NONE || !may ? NONE : ((const struct gang *)pages_at(&p->s->gangs, gang))->first;
    for (; at != NONE && may; at = snapshot_workload(p->s, at)->next_in_gang) {
        const struct claim *claim = snapshot_claim(p->s, at);
        may = !(claim && claim->never_preempts);
    }
    return may;
}

/* Preempts for a demand that found no place, or reserves it a place in the future. Migrations wait, as do demands kept
 * back by a quota. */
static void preempt_or_reserve(struct berth_plan *p, struct demand *w, uint32_t len)
{
    bool blocked = (w->group != NONE && w->blocked) || w->over_budget;
    if (blocked || w->replaces != NONE || w->spare_of != NONE)
        return;
    if (may_preempt(p, w) && preempt(p, w, len)) {
        for (uint32_t i = 0; i < len; i++)
            w[i].gang_failed = false;
        if (!has_pods_left(w, len))
            return;
    }
    bool strict = p->policy.backfill.strict;
    if (!(strict || reservation_allowed(p, w)) || is_blocked_by_quota(p, w, len))
        return;
    bool reserved = reservation_make(p, w, len);
    for (uint32_t i = 0; reserved && i < len; i++)
        plan_quota_reserve(p, w[i].workload, snapshot_class(p->s, w[i].class), w->group == NONE ? 1 : w[i].needed);
    p->queue_blocked |= strict && snapshot_workload(p->s, w->workload)->kind == BERTH_JOB;
}

/* Visits one group: places it, else preempts or reserves. `all`: tries it even if other placements cannot have helped
 * it. */
static void visit_group(struct berth_plan *p, const struct visited_group *at, bool all)
{
    struct demand *w = &p->demands.at[at->demand];
    bool behind = p->queue_blocked && snapshot_workload(p->s, w->workload)->kind == BERTH_JOB;
    for (uint32_t n = 0; n < at->len; n++)
        w[n].behind = behind;
    if (!behind && may_gain_from_round(p, w, at->len, all || at->late))
        place_group(p, w, at->len);
    if (!behind && has_pods_left(w, at->len))
        preempt_or_reserve(p, w, at->len);
    if (w->group != NONE)
        p->gang_stands[w->group] = !has_pods_left(w, at->len);
}

/* Makes one pass over the remaining demands. Preempted pods are added as demands in the same pass: otherwise
 * reservations made for later demands would be revoked in the next pass. */
static void place_round(struct berth_plan *p, bool all)
{
    reservations_restart(p);
    placement_budget_update(p);
    plan_quota_unreserve_all(p);
    p->queue_blocked = false;
    struct demand_visit v = visit_begin(p);
    for (struct visited_group at; visit_next(p, &v, &at);) {
        size_t i = at.demand, demands = p->demands.len;
        if (p->policy.progress && i % PROGRESS_EVERY == 0)
            p->policy.progress(p->policy.ctx, i, demands);
        visit_group(p, &at, all);
        if (p->victims && p->victims->back_len)
            preempt_requeue_victims(p);
        if (p->demands.len > demands)
            visit_add(p, &v, demands);
    }
    if (p->demands.len > v.end)
        tiers_sort(p);
    visit_done(&v);
}

/* Returns whether enough other instances of the workload are available, without those that this plan has preempted. */
static bool enough_others_available(const struct berth_plan *p, const struct demand *w, const struct workload *of)
{
    const struct victims *v = p->victims;
    bool known = v && of->kind != BERTH_JOB && bits_has(v->present, w->workload);
    return w->movable > of->min_available && (!known || v->spare[w->workload] > 0);
}

/* Handles replacements that found no place: where enough other instances are available, the old one stops without a
 * replacement and its pod is placed like any missing pod. */
static bool stop_without_replacement(struct berth_plan *p)
{
    bool any = false;
    for (size_t i = 0; i < p->demands.len; i++) {
        struct demand *w = &p->demands.at[i];
        if (w->replaces == NONE || w->placed || w->cause == BERTH_CAUSE_MANUAL)
            continue;
        const struct workload *of = snapshot_workload(p->s, w->workload);
        const struct instance *old = snapshot_instance(p->s, w->replaces);
        bool counts = old->ready && old->state == BERTH_RUNNING;
        if (counts && !enough_others_available(p, w, of))
            continue;
        if (counts && p->victims)
            p->victims->spare[w->workload]--;
        plan_stop(p, w->replaces, (enum berth_cause)w->cause);
        for (size_t j = i; counts && j < p->demands.len && p->demands.at[j].workload == w->workload; j++)
            p->demands.at[j].movable -= p->demands.at[j].replaces != NONE;
        w->replaces = NONE;
        any = true;
        if (of->on_lost != BERTH_LOST_REPLACE)
            w->len = 0; /* it must not run twice, so it waits for the stop */
    }
    return any;
}

/* Lifts the protection of victims once everything else is placed, so that nothing is left that the next plan would do
 * at the same moment. Returns whether that may change anything. */
static bool unprotect(struct berth_plan *p)
{
    if (!p->protection)
        return false;
    p->policy.preemption.break_budgets = p->protection->break_budgets;
    p->protection = NULL;
    if (p->victims)
        victims_unprotect(p);
    return p->victims;
}

void place(struct berth_plan *p)
{
    bool all = true;
    p->failed_attempt = ARENA_ARRAY(&p->arena, struct failed_attempt, (p->s->classes.len + 1) * FAILED_ATTEMPTS_MAX);
    placement_budget_begin(p);
    p->gang_stands = ARENA_ARRAY(&p->arena, uint8_t, p->s->gangs.len + 1);
    for (;;) {
        size_t before = p->c.acts.len;
        uint32_t stops = p->stop_set;
        place_round(p, all);
        all = stop_without_replacement(p) || p->stop_set != stops || reservations_moved(p);
        if (p->stop_set != stops) /* what reservations kept away may have room again */
            memset(p->c.dead, 0, p->s->classes.len);
        if (all || p->c.acts.len != before)
            continue;
        if (!unprotect(p))
            return;
        all = true;
    }
}
