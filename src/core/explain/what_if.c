/* what_if.c - makes copies of snapshots with one change. */
#include "core/explain/what_if.h"

#include <string.h>

/* A class under construction, with the parts that a change may replace. */
struct class_draft {
    struct berth_snapshot *s;
    struct class class;
    struct constraints constraints;
    struct preferences preferences;
};

static uint32_t pooled_add(struct pages *items, const void *object)
{
    uint32_t ix = pages_push(items);
    *(struct pool_entry *)pages_edit(items, ix) = (struct pool_entry){.object = object};
    return ix;
}

static void request_set(struct class_draft *d, uint32_t resource, int64_t amount)
{
    struct resource_need *needs = arena_dup(&d->s->arena, d->class.needs, d->class.needs_len * sizeof *needs);
    for (uint32_t i = 0; i < d->class.needs_len; i++)
        if (needs[i].resource == resource)
            needs[i].amount = amount;
    d->class.needs = needs;
}

static void toleration_add(struct class_draft *d, sym key)
{
    const struct tolerations *old = &d->constraints.tolerations;
    struct toleration *at = ARENA_ARRAY(&d->s->arena, struct toleration, old->len + 1);
    if (old->len)
        memcpy(at, old->at, old->len * sizeof *at);
    at[old->len] = (struct toleration){.key = key, .exists = true, .effect = BERTH_EFFECT_ANY};
    d->constraints.tolerations = d->preferences.tolerations = (struct tolerations){at, old->len + 1};
}

/* Removes the required topology constraints of one kind. */
static void constraints_drop(struct class_draft *d, enum topology_constraint_kind kind)
{
    struct topology_constraint_ix *topology_constraints =
        ARENA_ARRAY(&d->s->arena, struct topology_constraint_ix, d->class.topology_constraints_len + 1);
    uint32_t len = 0;
    for (uint32_t i = 0; i < d->class.topology_constraints_len; i++) {
        const struct topology_constraint *topology_constraint =
            snapshot_topology_constraint(d->s, d->class.topology_constraints[i]);
        if (topology_constraint->kind != kind || topology_constraint->weight)
            topology_constraints[len++] = d->class.topology_constraints[i];
    }
    d->class.topology_constraints = topology_constraints;
    d->class.topology_constraints_len = len;
}

/* Removes the workload's anti-affinity from the list of those that keep other pods away. */
static void anti_affinity_uses_drop(struct berth_snapshot *s, uint32_t workload)
{
    for (uint32_t at = snapshot_workload(s, workload)->uses, more; at != NONE; at = more) {
        struct anti_affinity_use u = *(const struct anti_affinity_use *)pages_at(&s->uses, at);
        more = u.more;
        if (u.prev != NONE)
            ((struct anti_affinity_use *)pages_edit(&s->uses, u.prev))->next = u.next;
        else
            *(uint32_t *)pages_edit(&s->topology_constraint_uses, u.topology_constraint) = u.next;
        if (u.next != NONE)
            ((struct anti_affinity_use *)pages_edit(&s->uses, u.next))->prev = u.prev;
    }
    ((struct workload *)pages_edit(&s->workloads, workload))->uses = NONE;
}

static void class_change(struct class_draft *d, const struct what_if *what)
{
    struct gpu_need *gpu = &d->constraints.gpu;
    switch (what->change) {
    case BERTH_CHANGE_REQUEST: request_set(d, what->resource, what->amount); break;
    case BERTH_CHANGE_GPUS: gpu->count = (uint32_t)what->amount; break;
    case BERTH_CHANGE_TOLERATION: toleration_add(d, what->taint); break;
    case BERTH_CHANGE_NODE: d->constraints.node = 0; break;
    case BERTH_CHANGE_LABELS: d->constraints.require = (struct terms){0}; break;
    case BERTH_CHANGE_DOMAIN: d->constraints.domains = (struct syms){0}; break;
    case BERTH_CHANGE_RUNTIME: d->constraints.runtime = 0; break;
    case BERTH_CHANGE_ARCH: d->constraints.arch = 0; break;
    case BERTH_CHANGE_GPU_KIND: *gpu = (struct gpu_need){.count = gpu->count, .milli = gpu->milli}; break;
    case BERTH_CHANGE_PORTS: d->class.ports_len = 0; break;
    case BERTH_CHANGE_VOLUMES: d->class.volumes_len = 0; break;
    case BERTH_CHANGE_SPREAD: constraints_drop(d, TOPOLOGY_SPREAD); break;
    case BERTH_CHANGE_AFFINITY: constraints_drop(d, TOPOLOGY_AFFINITY); break;
    case BERTH_CHANGE_ANTI_AFFINITY:
        constraints_drop(d, TOPOLOGY_ANTI_AFFINITY);
        anti_affinity_uses_drop(d->s, what->workload);
        break;
    case BERTH_CHANGE_PER_NODE: d->class.max_per_node = 0; break;
    case BERTH_CHANGE_GANG:
    case BERTH_CHANGE_UNCORDON: break; /* not a change of the class */
    }
}

/* Every change gets a class, constraints and preferences of its own: no decision of a plan depends on their number. */
static void workload_change(struct berth_snapshot *s, const struct what_if *what)
{
    struct workload *w = pages_edit(&s->workloads, what->workload);
    if (what->change == BERTH_CHANGE_GANG) {
        w->gang_min = (uint32_t)what->amount;
        return;
    }
    struct class_draft d = {.s = s, .class = *snapshot_class(s, w->class)};
    d.constraints = *snapshot_constraints(s, d.class.constraints);
    d.preferences = *snapshot_preferences(s, d.class.preferences);
    class_change(&d, what);
    d.class.gpu = d.constraints.gpu;
    d.class.constraints.v = pooled_add(&s->constraints, arena_dup(&s->arena, &d.constraints, sizeof d.constraints));
    d.class.preferences.v = pooled_add(&s->preference_sets, arena_dup(&s->arena, &d.preferences, sizeof d.preferences));
    uint32_t class = pooled_add(&s->classes, arena_dup(&s->arena, &d.class, sizeof d.class));
    ((struct workload *)pages_edit(&s->workloads, what->workload))->class.v = class;
}

static void node_uncordon(struct berth_snapshot *s, uint32_t position)
{
    size_t padded = (size_t)s->layout->blocks * BLOCK + 1;
    uint32_t *idle = ARENA_ARRAY(&s->arena, uint32_t, s->idle_len + 1), len = 0;
    uint8_t *state = arena_column(&s->arena, padded, sizeof *state);
    memcpy(state, s->state, s->layout->len * sizeof *state);
    state[position] = BERTH_NODE_READY;
    for (uint32_t i = 0; i < s->idle_len; i++)
        if (s->idle[i] != position)
            idle[len++] = s->idle[i];
    s->state = state;
    s->idle = idle;
    s->idle_len = len;
}

struct berth_snapshot *what_if_new(const struct berth_snapshot *s, const struct what_if *what)
{
    struct berth_snapshot *copy = snapshot_share(s);
    if (what->change == BERTH_CHANGE_UNCORDON)
        node_uncordon(copy, what->position);
    else
        workload_change(copy, what);
    return copy;
}
