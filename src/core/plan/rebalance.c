/* rebalance.c - evens out real use by a few migrations; the last placement pass of a plan.
 *
 * The load of a node is the use its instances report, plus the requests of instances that report none. Its share is the
 * larger of cpu and memory load relative to the node. A move is worth it if the larger share of the two nodes falls by
 * enough. So the sorted shares of all nodes only ever fall, and rebalancing terminates. Only the busiest and the idlest
 * few nodes are considered. A node that recently got a pod is no target, since the use of that pod is not known yet.
 */
#include <string.h>

#include "base/bits.h"
#include "core/plan/migration.h"

enum { CANDIDATE_NODES = 8, SHARE_ONE = 1000 };

static const uint32_t resource_of[USES] = {[USE_CPU] = RESOURCE_CPU, [USE_MEMORY] = RESOURCE_MEMORY};

struct node_load {
    int64_t of[USES];
};

struct node_share {
    uint32_t position;
    int64_t share;
};

struct rebalance_state {
    struct berth_plan *p;
    struct node_share busy[CANDIDATE_NODES],
        idle[CANDIDATE_NODES]; /* sorted from the busiest; sorted from the idlest */
    uint32_t busy_len, idle_len;
    uint64_t *came;        /* positions on which this plan places something */
    VEC(uint32_t) touched; /* positions of this plan's moves, which are not used again */
};

/* ---- loads ------------------------------------------------------------------------------------------------------ */

static struct node_load node_load(const struct berth_plan *p, uint32_t position)
{
    struct node_load load;
    for (uint32_t k = 0; k < USES; k++) {
        uint32_t r = resource_of[k];
        const struct berth_snapshot *s = p->s;
        const int64_t *now = p->c.later ? p->c.now[r] : p->c.free[r];
        int64_t asked = now ? snapshot_capacity(s, r, position) - now[position] : 0;
        load.of[k] = asked - s->asked[k][position] + s->said[k][position];
        if (load.of[k] < s->used[k][position])
            load.of[k] = s->used[k][position];
    }
    return load;
}

/* Fills in the instance's load; returns whether it has reported use of any counted resource. */
static bool instance_load(const struct berth_snapshot *s, const struct instance *i, struct node_load *ret)
{
    const struct usage *u;
    bool said = false;

    for (uint32_t k = 0; k < USES; k++)
        ret->of[k] = class_need(snapshot_class(s, i->class), resource_of[k]);
    for (uint32_t at = i->usage; at != NONE; at = u->more) {
        u = pages_at(&s->usages, at);
        for (uint32_t k = 0; k < USES; k++)
            if (u->resource == resource_of[k]) {
                ret->of[k] = u->used;
                said = true;
            }
    }
    return said;
}

/* Returns the share of a load in thousandths; the maximum for a node that has none of a used resource. */
static int64_t share_of_load(const struct berth_plan *p, uint32_t position, const struct node_load *load, int sign,
                             const struct node_load *other)
{
    int64_t most = 0;
    for (uint32_t k = 0; k < USES; k++) {
        int64_t has = p->s->layout->real[k][position];
        __int128 used = (__int128)load->of[k] + sign * (other ? other->of[k] : 0);
        __int128 share = used <= 0 ? 0 : has > 0 ? used * SHARE_ONE / has : INT32_MAX;
        if (share > INT32_MAX)
            share = INT32_MAX;
        most = (int64_t)share > most ? (int64_t)share : most;
    }
    return most;
}

/* ---- which nodes ------------------------------------------------------------------------------------------------ */

/* Among equals the lower position stays. */
static void side_add(struct node_share *at, uint32_t *len, struct node_share x, bool busiest)
{
    uint32_t i = *len;
    while (i > 0 && (busiest ? at[i - 1].share < x.share : at[i - 1].share > x.share))
        i--;
    if (i == CANDIDATE_NODES)
        return;
    *len += *len < CANDIDATE_NODES;
    memmove(at + i + 1, at + i, (*len - i - 1) * sizeof *at);
    at[i] = x;
}

static void find_sides(struct rebalance_state *b)
{
    const struct berth_plan *p = b->p;
    for (uint32_t at = 0; at < p->c.len; at++) {
        if (p->s->state[at] != BERTH_NODE_READY)
            continue;
        struct node_load load = node_load(p, at);
        struct node_share side = {at, share_of_load(p, at, &load, 0, NULL)};
        side_add(b->busy, &b->busy_len, side, true);
        side_add(b->idle, &b->idle_len, side, false);
    }
}

static bool touched(const struct rebalance_state *b, uint32_t position)
{
    for (size_t i = 0; i < b->touched.len; i++)
        if (b->touched.at[i] == position)
            return true;
    return false;
}

/* Returns when the instance will have been in its state for long enough. */
static int64_t old_enough_at_ns(const struct berth_plan *p, const struct instance *i)
{
    int64_t is_old_enough;
    return __builtin_add_overflow(i->since_ns, p->policy.rebalance.age_ns, &is_old_enough) ? BERTH_NEVER_NS
                                                                                           : is_old_enough;
}

/* Returns whether that moment has come; if not, the plan is rechecked then. */
static bool is_old_enough(struct berth_plan *p, int64_t at_ns)
{
    if (p->s->now_ns >= at_ns)
        return true;
    plan_recheck(p, at_ns);
    return false;
}

/* Returns whether nothing is being moved to or from the node and nothing came recently. */
static bool node_is_quiet(const struct rebalance_state *b, uint32_t position)
{
    struct berth_plan *p = b->p;
    const struct node *n = pages_at(&p->s->nodes, p->s->layout->slot[position]);
    int64_t last = INT64_MIN;
    if (bits_has(b->came, position))
        return false;
    for (uint32_t at = n->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_node) {
        const struct instance *i = snapshot_instance(p->s, at);
        if (bits_has(p->c.removed, at))
            continue;
        if (i->state != BERTH_RUNNING || bits_has(p->c.stopped, at))
            return false;
        last = old_enough_at_ns(p, i) > last ? old_enough_at_ns(p, i) : last;
    }
    return is_old_enough(p, last);
}

/* ---- which instance --------------------------------------------------------------------------------------------- */

/* Returns whether all pods of the workload are running and none is being placed. */
static bool workload_is_stable(const struct berth_plan *p, uint32_t workload)
{
    const struct workload *w = snapshot_workload(p->s, workload);
    uint32_t running = 0;

    if (w->kind != BERTH_SERVICE || w->gone || w->suspended || w->gang != NONE || w->on_drain == BERTH_DRAIN_WAIT ||
        p->c.fresh[workload] != NONE)
        return false;
    for (uint32_t at = w->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_workload) {
        const struct instance *i = snapshot_instance(p->s, at);
        if (i->state == BERTH_ENDED || bits_has(p->c.removed, at))
            continue;
        if (i->state != BERTH_RUNNING || bits_has(p->c.stopped, at))
            return false;
        running++;
    }
    return running == w->replicas;
}

static bool movable(struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    struct node_load load;

    return i->state == BERTH_RUNNING && i->ready && !i->outdated && instance_load(p->s, i, &load) &&
           !migration_is_active(p, i->id) && workload_is_stable(p, i->workload.v) &&
           is_old_enough(p, old_enough_at_ns(p, i));
}

struct move_candidates {
    uint32_t *slots;
    uint32_t len;
};

static struct move_candidates candidates_of(struct berth_plan *p, uint32_t position)
{
    const struct node *n = pages_at(&p->s->nodes, p->s->layout->slot[position]);
    struct move_candidates c = {ARENA_ARRAY(&p->scratch, uint32_t, n->instances), 0};
    for (uint32_t at = n->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_node)
        if (movable(p, at))
            c.slots[c.len++] = at;
    return c;
}

static int64_t gain_of(const struct berth_plan *p, uint32_t slot, struct node_share from, struct node_share to)
{
    struct node_load own, there = node_load(p, from.position), here = node_load(p, to.position);
    (void)instance_load(p->s, snapshot_instance(p->s, slot), &own);
    int64_t left = share_of_load(p, from.position, &there, -1, &own);
    int64_t came = share_of_load(p, to.position, &here, 1, &own);
    return from.share - (left > came ? left : came);
}

static bool try_move(struct berth_plan *p, uint32_t slot, uint32_t to)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    struct demand w = {.workload = i->workload.v,
                       .duration_ns = BERTH_NEVER_NS, /* services never end */
                       .class = snapshot_workload(p->s, i->workload.v)->class,
                       .first = i->ordinal,
                       .len = 1,
                       .replaces = slot,
                       .group = NONE,
                       .cause = BERTH_CAUSE_MOVED,
                       .bound = true,
                       .only = to};
    return place_move(p, &w);
}

static int64_t least_gain(const struct berth_plan *p)
{
    return (int64_t)p->policy.rebalance.gain_percent * SHARE_ONE / 100;
}

/* Moves the instance with the largest gain, among equals the lowest id. Instances that do not fit there are skipped. */
static bool move_between(struct berth_plan *p, struct move_candidates *c, struct node_share from, struct node_share to)
{
    for (uint32_t left = c->len; left > 0; left--) {
        uint32_t best = NONE;
        int64_t most = least_gain(p);
        for (uint32_t n = 0; n < left; n++) {
            int64_t gain = gain_of(p, c->slots[n], from, to);
            bool first = best != NONE && gain == most &&
                         snapshot_instance(p->s, c->slots[n])->id < snapshot_instance(p->s, c->slots[best])->id;
            if (gain > most || first) {
                best = n;
                most = gain;
            }
        }
        if (best == NONE)
            return false;
        if (try_move(p, c->slots[best], to.position))
            return true;
        uint32_t tried = c->slots[best]; /* to the end, so that it is tried on the next node */
        c->slots[best] = c->slots[left - 1];
        c->slots[left - 1] = tried;
    }
    return false;
}

static bool move_from(struct rebalance_state *b, struct node_share from)
{
    struct berth_plan *p = b->p;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct move_candidates c = {0};
    bool moved = false, asked = false;

    for (uint32_t i = 0; i < b->idle_len && !moved && from.share - b->idle[i].share > least_gain(p); i++) {
        struct node_share to = b->idle[i];
        if (touched(b, to.position) || !node_is_quiet(b, to.position))
            continue;
        if (!asked)
            c = candidates_of(p, from.position);
        asked = true;
        moved = move_between(p, &c, from, to);
        if (moved) {
            vec_push(&b->touched, from.position);
            vec_push(&b->touched, to.position);
        }
    }
    arena_rewind(&p->scratch, mark);
    return moved;
}

/* Returns whether the profile prefers nodes with much free. */
static bool profile_spreads(const struct profile *f)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < f->resources_len; i++)
        sum += f->linear[i];
    return sum > 0;
}

bool rebalance(struct berth_plan *p)
{
    struct rebalance_state b = {.p = p};
    uint32_t moves = p->policy.rebalance.moves;

    if (!moves || !p->s->used[USE_CPU] || p->alarm || !profile_spreads(&p->c.profile) || migrations_in_progress(p))
        return false;
    find_sides(&b);
    b.came = ARENA_ARRAY(&p->scratch, uint64_t, p->c.blocks + 1);
    for (size_t i = 0; i < p->c.acts.len; i++)
        if (p->c.acts.at[i].op == BERTH_PLACE || p->c.acts.at[i].op == BERTH_RESERVE)
            bits_add(b.came, p->c.acts.at[i].position);
    for (uint32_t i = 0; i < b.busy_len && moves; i++)
        if (!touched(&b, b.busy[i].position))
            moves -= move_from(&b, b.busy[i]);
    vec_done(&b.touched);
    return moves < p->policy.rebalance.moves;
}
