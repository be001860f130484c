/* reprieve.c - reprieves victims of an attempt that have room beside what the attempt reserved. */
#include "core/backfill/reservation.h"
#include "core/gpu/gpu.h"
#include "core/preempt/preempt_attempt.h"
#include "core/queue/plan_quota.h"

static bool is_more_valuable(const struct victim_group *a, const struct victim_group *b)
{
    if (a->tier != b->tier)
        return a->tier > b->tier;
    return a->lost != b->lost ? a->lost > b->lost : a->id < b->id;
}

uint32_t *preempt_attempt_groups(const struct preempt_attempt *e, uint32_t *ret_len)
{
    const struct victim_group *all = e->p->victims->victim_groups;
    uint32_t *list = ARENA_ARRAY(&e->p->scratch, uint32_t, e->stops.len + 1), len = 0;
    for (size_t i = 0; i < e->stops.len; i++) {
        uint32_t victim_group = e->stops.at[i].victim_group, at = len;
        if (i > 0 && e->stops.at[i - 1].victim_group == victim_group)
            continue;
        for (; at > 0 && is_more_valuable(&all[victim_group], &all[list[at - 1]]); at--)
            list[at] = list[at - 1];
        list[at] = victim_group;
        len++;
    }
    *ret_len = len;
    return list;
}

void reprieve_stay(struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    bits_drop(p->c.stopped, slot);
    reservations_node_changed(p, snapshot_position(p->s, i));
    plan_quota_undo_stop(p, slot);
    cycle_take(&p->c, snapshot_class(p->s, i->class), snapshot_position(p->s, i), i->gpus, true, 1);
}

void reprieve_undo(struct berth_plan *p, uint32_t slot)
{
    const struct instance *i = snapshot_instance(p->s, slot);
    bits_add(p->c.stopped, slot);
    reservations_node_changed(p, snapshot_position(p->s, i));
    plan_quota_stop(p, slot);
    cycle_stop(&p->c, i);
}

/* Returns whether this attempt reserves a place on the node. */
static bool is_reserved_by(const struct preempt_attempt *e, uint32_t position)
{
    for (size_t n = e->acts; n < e->p->c.acts.len; n++)
        if (e->p->c.acts.at[n].op == BERTH_RESERVE && e->p->c.acts.at[n].position == position)
            return true;
    return false;
}

bool reprieve_has_room(struct berth_plan *p, uint32_t slot, bool promised)
{
    const struct cycle *c = &p->c;
    const struct instance *i = snapshot_instance(p->s, slot);
    const struct class *k = snapshot_class(p->s, i->class);
    uint32_t at = snapshot_position(p->s, i);
    if (i->state == BERTH_RESERVED || k->max_per_node || k->ports_len || k->volumes_len)
        return false;
    for (uint32_t n = 0; n < k->needs_len; n++) {
        const int64_t *later = cycle_column(c, k->needs[n].resource, true);
        if (!later || later[at] < k->needs[n].amount)
            return false;
    }
    BITS_EACH (d, i->gpus) {
        const struct device_free *f = &c->devices[c->l->device[at] + d];
        if (f->later < (int32_t)k->gpu.milli || f->mem_later < gpu_memory_booked(&k->gpu))
            return false;
    }
    if (promised && !reservations_allow_stay(p, i))
        return false; /* the reservations on the node were made without counting the instance */
    return plan_quota_may_stay(p, slot);
}

/* Returns whether the victim has room beside everything that was placed. Topology constraints are not checked again: if
 * there are any, the victim stops. */
static bool may_stay(const struct preempt_attempt *e, const struct attempt_stop *s)
{
    const struct berth_plan *p = e->p;
    const struct instance *i = snapshot_instance(p->s, s->slot);
    if (s->over || snapshot_class(p->s, i->class)->topology_constraints_len)
        return false;
    for (uint32_t n = 0; n < e->len; n++)
        if (snapshot_class(p->s, e->w[n].class)->topology_constraints_len)
            return false;
    return reprieve_has_room(e->p, s->slot, is_reserved_by(e, snapshot_position(p->s, i)));
}

/* Returns whether the victim is a spare pod of a gang that stops as a whole; such a pod stops with the gang. */
static bool is_of_lost_gang(const struct preempt_attempt *e, uint32_t victim_group)
{
    const struct berth_plan *p = e->p;
    const struct victim_group *x = &p->victims->victim_groups[victim_group];
    uint32_t gang = snapshot_workload(p->s, x->workload)->gang;
    for (size_t n = 0; n < e->stops.len && gang != NONE && !x->gang; n++) {
        const struct victim_group *y = &p->victims->victim_groups[e->stops.at[n].victim_group];
        if (y->gang && snapshot_workload(p->s, y->workload)->gang == gang &&
            bits_has(p->c.stopped, e->stops.at[n].slot))
            return true;
    }
    return false;
}

/* Returns whether an instance on the node stops. */
static bool node_leaves(const struct berth_plan *p, uint32_t position)
{
    const struct node *n = pages_at(&p->s->nodes, p->c.l->slot[position]);
    for (uint32_t at = n->first; at != NONE; at = snapshot_instance(p->s, at)->next_of_node)
        if (snapshot_instance(p->s, at)->state == BERTH_STOPPING || bits_has(p->c.stopped, at))
            return true;
    return false;
}

/* Returns whether the quotas of the pod allow to place it now; `kept`: beside what is kept of them for reservations. */
static bool quota_is_free(struct berth_plan *p, const struct plan_act *a, bool kept)
{
    const struct class *k = snapshot_class(p->s, snapshot_workload(p->s, a->workload)->class);
    plan_quota_count(p, a->workload, a->replaces, k, true, -1);
    if (!kept)
        plan_quota_count_reservations(p, -1);
    bool is_free = plan_quota_room(p, a->workload, k, false, 1) > 0;
    if (!kept)
        plan_quota_count_reservations(p, 1);
    plan_quota_count(p, a->workload, a->replaces, k, true, 1);
    return is_free;
}

/* Returns whether a pod reserved on the node would be placed at once, since nothing stops there, and would use quota
 * that is kept for other reservations. */
static bool uses_reserved_quota(const struct preempt_attempt *e, uint32_t position)
{
    struct berth_plan *p = e->p;
    if (node_leaves(p, position))
        return false;
    for (size_t n = e->acts; n < p->c.acts.len; n++) {
        const struct plan_act *a = &p->c.acts.at[n];
        if (a->op == BERTH_RESERVE && a->position == position && quota_is_free(p, a, false) &&
            !quota_is_free(p, a, true))
            return true;
    }
    return false;
}

/* Reprieves all members of a victim group, or none. */
static bool reprieve_group(struct preempt_attempt *e, uint32_t victim_group)
{
    size_t n = 0;
    bool stays = !is_of_lost_gang(e, victim_group);
    for (; n < e->stops.len && stays; n++)
        if (e->stops.at[n].victim_group == victim_group) {
            stays = may_stay(e, &e->stops.at[n]);
            if (stays)
                reprieve_stay(e->p, e->stops.at[n].slot);
        }
    for (size_t i = 0; i < e->stops.len && stays; i++)
        if (e->stops.at[i].victim_group == victim_group)
            stays =
                !uses_reserved_quota(e, snapshot_position(e->p->s, snapshot_instance(e->p->s, e->stops.at[i].slot)));
    for (; n-- > 0 && !stays;)
        if (e->stops.at[n].victim_group == victim_group && !bits_has(e->p->c.stopped, e->stops.at[n].slot))
            reprieve_undo(e->p, e->stops.at[n].slot);
    return stays;
}

/* Turns a reservation into a placement, since nothing stops on its node after all; except where it waits for victims to
 * free its quotas. */
static void place_at_once(struct berth_plan *p, struct plan_act *a)
{
    const struct class *k = snapshot_class(p->s, snapshot_workload(p->s, a->workload)->class);
    if (!quota_is_free(p, a, false)) {
        place_record_waits(p, a);
        return;
    }
    plan_quota_count(p, a->workload, a->replaces, k, true, -1);
    plan_quota_count(p, a->workload, a->replaces, k, false, 1);
    a->op = BERTH_PLACE;
    a->aux = a->aux_len = 0;
    cycle_take(&p->c, k, a->position, a->gpus, false, 1);
    cycle_take(&p->c, k, a->position, a->gpus, true, -1);
}

/* Removes the stops of the reprieved from the actions, and moves the other stops to the front, because earlier
 * reservations may wait for one of them now. Returns the new index of each action. */
static const uint32_t *acts_without_reprieved(struct preempt_attempt *e)
{
    struct berth_plan *p = e->p;
    struct cycle *c = &p->c;
    size_t len = c->acts.len - e->acts, to = e->acts;
    struct plan_act *old = arena_dup(&p->scratch, c->acts.at + e->acts, len * sizeof *old);
    uint32_t *now_at = ARENA_ARRAY(&p->scratch, uint32_t, len + 1);
    for (size_t n = 0; n < len; n++) {
        if (old[n].op != BERTH_STOP)
            continue;
        if (bits_has(c->stopped, old[n].instance)) {
            now_at[n] = (uint32_t)to;
            c->acts.at[to++] = old[n];
            continue;
        }
        victims_changed(p, old[n].position);
        if (!node_leaves(p, old[n].position))
            bits_drop(c->leaving, old[n].position);
    }
    for (size_t n = 0; n < len; n++) {
        if (old[n].op == BERTH_STOP)
            continue;
        now_at[n] = (uint32_t)to;
        c->acts.at[to++] = old[n];
    }
    c->acts.len = to;
    return now_at;
}

/* Removes the stops of the reprieved; reservations wait only for the instances that still stop. */
static void remove_reprieved_stops(struct preempt_attempt *e)
{
    struct berth_plan *p = e->p;
    struct cycle *c = &p->c;
    const uint32_t *now_at = acts_without_reprieved(e);
    c->revocations++;
    victims_rewind(p, e->acts);
    c->waits.len = e->waits;
    for (size_t n = e->acts; n < c->acts.len; n++) {
        struct plan_act *a = &c->acts.at[n];
        if (a->op != BERTH_STOP && a->next != NONE && a->next >= e->acts)
            a->next = now_at[a->next - e->acts];
        if (a->op == BERTH_RESERVE && !node_leaves(p, a->position))
            place_at_once(p, a);
        else if (a->op == BERTH_RESERVE)
            place_record_waits(p, a);
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
    p->stop_set = ++p->stop_generation;
    e->stops.len = left;
}

/* Reprieves victims, the most valuable first. A gang that was stopped as a whole, or for another workload's quota, may
 * have freed more room than the pod needed that it was stopped for. */
void preempt_attempt_reprieve(struct preempt_attempt *e)
{
    struct arena_mark mark = arena_mark(&e->p->scratch);
    uint32_t len;
    bool any = false;
    const uint32_t *list = preempt_attempt_groups(e, &len);
    for (uint32_t n = 0; n < len && len > 1; n++)
        if (reprieve_group(e, list[n])) {
            const struct victim_group *x = &e->p->victims->victim_groups[list[n]];
            e->p->victims->spare[x->workload] += x->available;
            any = true;
        }
    if (any)
        remove_reprieved_stops(e);
    arena_rewind(&e->p->scratch, mark);
}
