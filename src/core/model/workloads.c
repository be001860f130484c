/* workloads.c - adds, changes and removes workloads; their labels and counts. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "core/model/cluster.h"

#define FENCE_DEFAULT_NS (600 * (int64_t)1000000000)

static bool workload_same(const void *ctx, uint32_t value, const void *key)
{
    return cluster_workload(ctx, value)->id == *(const sym *)key;
}

uint32_t cluster_workload_find(const struct berth_cluster *c, const char *id)
{
    sym s = id ? intern_find(&c->names, id) : MAP_NONE;
    return s == MAP_NONE ? NONE : map_find(&c->workloads_by_id, hash_u64(s), workload_same, c, &s);
}

/* ---- label sets ------------------------------------------------------------------------------------------------- */

static bool label_set_same(const void *ctx, uint32_t value, const void *key)
{
    const struct label_set *set = pages_at(&((const struct berth_cluster *)ctx)->label_sets, value);
    const struct labels *k = key;
    return set->labels.len == k->len && memcmp(set->labels.at, k->at, k->len * sizeof *k->at) == 0;
}

static bool pair_same(const void *ctx, uint32_t value, const void *key)
{
    const struct label_pair *p = pages_at(&((const struct berth_cluster *)ctx)->pairs, value);
    const struct label *k = key;
    return p->label.key == k->key && p->label.value == k->value;
}

uint32_t cluster_pair_put(struct berth_cluster *c, struct label label)
{
    uint64_t hash = hash_pair(label.key, label.value);
    uint32_t found = map_find(&c->pairs_by_label, hash, pair_same, c, &label);
    if (found != MAP_NONE)
        return found;
    uint32_t ix = pages_push(&c->pairs);
    *(struct label_pair *)pages_edit(&c->pairs, ix) = (struct label_pair){label, NONE, NONE};
    map_add(&c->pairs_by_label, hash, ix);
    return ix;
}

uint32_t cluster_label_set_put(struct berth_cluster *c, const struct berth_label *labels, size_t len)
{
    struct arena_mark mark = arena_mark(&c->shapes.arena);
    struct label *sorted = ARENA_ARRAY(&c->shapes.arena, struct label, len);
    labels_fill(&c->names, labels, len, sorted);
    struct labels key = {sorted, (uint32_t)len};
    uint64_t hash = hash_bytes(sorted, len * sizeof *sorted, 0);
    uint32_t found = map_find(&c->label_sets_by_labels, hash, label_set_same, c, &key);
    if (found != MAP_NONE) {
        arena_rewind(&c->shapes.arena, mark);
        return found;
    }
    uint32_t ix = pages_push(&c->label_sets);
    uint32_t *pairs = ARENA_ARRAY(&c->shapes.arena, uint32_t, len);
    for (size_t i = 0; i < len; i++) {
        pairs[i] = cluster_pair_put(c, sorted[i]);
        struct label_pair *p = pages_edit(&c->pairs, pairs[i]);
        uint32_t posting = pages_push(&c->postings);
        *(struct label_posting *)pages_edit(&c->postings, posting) = (struct label_posting){ix, p->first};
        p->first = posting;
    }
    *(struct label_set *)pages_edit(&c->label_sets, ix) = (struct label_set){key, pairs, NONE};
    map_add(&c->label_sets_by_labels, hash, ix);
    return ix;
}

static void label_set_join(struct berth_cluster *c, uint32_t slot, uint32_t set)
{
    struct label_set *s = pages_edit(&c->label_sets, set);
    struct workload *w = pages_edit(&c->workloads, slot);
    w->label_set = set;
    w->next_labelled = s->first;
    w->prev_labelled = NONE;
    if (s->first != NONE)
        ((struct workload *)pages_edit(&c->workloads, s->first))->prev_labelled = slot;
    s->first = slot;
}

static void label_set_leave(struct berth_cluster *c, uint32_t slot)
{
    struct workload w = *cluster_workload(c, slot);
    if (w.prev_labelled != NONE)
        ((struct workload *)pages_edit(&c->workloads, w.prev_labelled))->next_labelled = w.next_labelled;
    else
        ((struct label_set *)pages_edit(&c->label_sets, w.label_set))->first = w.next_labelled;
    if (w.next_labelled != NONE)
        ((struct workload *)pages_edit(&c->workloads, w.next_labelled))->prev_labelled = w.prev_labelled;
}

/* ---- required `apart` constraints ------------------------------------------------------------------------------- */

static struct topology_constraint *topology_constraint_edit(struct berth_cluster *c, uint32_t topology_constraint)
{
    /* Constraints are pooled and immutable except for this chain, which only grows at its head. */
    const struct pool_entry *item = pages_at(&c->shapes.topology_constraints.items, topology_constraint);
    return (struct topology_constraint *)(uintptr_t)item->object;
}

void cluster_apart_add(struct berth_cluster *c, struct topology_constraint_ix ix)
{
    struct topology_constraint *topology_constraint = topology_constraint_edit(c, ix.v);
    while (c->topology_constraint_uses.len <= ix.v)
        *(uint32_t *)pages_edit(&c->topology_constraint_uses, pages_push(&c->topology_constraint_uses)) = NONE;
    if (topology_constraint->anchors_len == 1) {
        struct label_pair *p = pages_edit(&c->pairs, topology_constraint->anchors[0]);
        topology_constraint->next_apart = p->first_apart;
        p->first_apart = ix.v;
    } else {
        topology_constraint->next_apart = c->apart_unanchored;
        c->apart_unanchored = ix.v;
    }
}

static void uses_drop(struct berth_cluster *c, uint32_t slot)
{
    struct workload *w = pages_edit(&c->workloads, slot);
    for (uint32_t at = w->uses, more; at != NONE; at = more) {
        struct anti_affinity_use u = *(const struct anti_affinity_use *)pages_at(&c->uses, at);
        more = u.more;
        if (u.prev != NONE)
            ((struct anti_affinity_use *)pages_edit(&c->uses, u.prev))->next = u.next;
        else
            *(uint32_t *)pages_edit(&c->topology_constraint_uses, u.topology_constraint) = u.next;
        if (u.next != NONE)
            ((struct anti_affinity_use *)pages_edit(&c->uses, u.next))->prev = u.prev;
        vec_push(&c->uses_free, at);
    }
    w->uses = NONE;
}

static void uses_add(struct berth_cluster *c, uint32_t slot, const struct class *k)
{
    for (uint32_t i = 0; i < k->topology_constraints_len; i++) {
        const struct topology_constraint *topology_constraint =
            topology_constraint_edit(c, k->topology_constraints[i].v);
        if (topology_constraint->kind != TOPOLOGY_ANTI_AFFINITY || topology_constraint->weight)
            continue;
        uint32_t at = slot_take(&c->uses, &c->uses_free);
        uint32_t *first = pages_edit(&c->topology_constraint_uses, k->topology_constraints[i].v);
        struct workload *w = pages_edit(&c->workloads, slot);
        *(struct anti_affinity_use *)pages_edit(&c->uses, at) =
            (struct anti_affinity_use){k->topology_constraints[i].v, slot, *first, NONE, w->uses};
        if (*first != NONE)
            ((struct anti_affinity_use *)pages_edit(&c->uses, *first))->prev = at;
        *first = at;
        w->uses = at;
    }
}

/* ---- gangs ------------------------------------------------------------------------------------------------------ */

static bool gang_same(const void *ctx, uint32_t value, const void *key)
{
    const struct gang *g = pages_at(&((const struct berth_cluster *)ctx)->gangs, value);
    return g->id == *(const sym *)key;
}

static void gang_leave(struct berth_cluster *c, uint32_t slot)
{
    struct workload w = *cluster_workload(c, slot);
    if (w.gang == NONE)
        return;
    if (w.prev_in_gang != NONE)
        ((struct workload *)pages_edit(&c->workloads, w.prev_in_gang))->next_in_gang = w.next_in_gang;
    else
        ((struct gang *)pages_edit(&c->gangs, w.gang))->first = w.next_in_gang;
    if (w.next_in_gang != NONE)
        ((struct workload *)pages_edit(&c->workloads, w.next_in_gang))->prev_in_gang = w.prev_in_gang;
    ((struct workload *)pages_edit(&c->workloads, slot))->gang = NONE;
}

static void gang_join(struct berth_cluster *c, uint32_t slot, sym id)
{
    uint32_t ix = map_find(&c->gangs_by_id, hash_u64(id), gang_same, c, &id);
    if (ix == MAP_NONE) {
        ix = pages_push(&c->gangs);
        *(struct gang *)pages_edit(&c->gangs, ix) = (struct gang){id, NONE};
        map_add(&c->gangs_by_id, hash_u64(id), ix);
    }
    struct gang *g = pages_edit(&c->gangs, ix);
    struct workload *w = pages_edit(&c->workloads, slot);
    w->gang = ix;
    w->prev_in_gang = NONE;
    w->next_in_gang = g->first;
    if (g->first != NONE)
        ((struct workload *)pages_edit(&c->workloads, g->first))->prev_in_gang = slot;
    g->first = slot;
}

/* ---- slots ------------------------------------------------------------------------------------------------------ */

static uint32_t workload_new(struct berth_cluster *c, sym id)
{
    uint32_t slot = slot_take(&c->workloads, &c->workloads_free);
    *(struct workload *)pages_edit(&c->workloads, slot) =
        (struct workload){.id = id, .live = true, .first = NONE, .uses = NONE, .gang = NONE, .claim = NONE};
    label_set_join(c, slot, 0);
    map_add(&c->workloads_by_id, hash_u64(id), slot);
    cluster_name(c, slot, id);
    if (slot / 64 >= c->unsettled.len)
        vec_resize(&c->unsettled, slot / 64 + 1);
    return slot;
}

void workload_count(struct workload *w, const struct instance *i, int sign)
{
    bool done = workload_done(w, i);
    if (i->state == BERTH_ENDED)
        w->ended += (unsigned)sign * done;
    else if (i->state == BERTH_STOPPING || i->state == BERTH_RESERVED || i->replaces || i->outdated)
        w->other += (unsigned)sign;
    else
        w->plain += (unsigned)sign;
    if (done || i->state != BERTH_ENDED)
        w->ordinals += (uint64_t)sign * hash_u64((uint64_t)i->ordinal + 1);
}

/* The ordinals are compared too: two instances of one ordinal do not make up for a missing one. */
bool workload_settled(const struct workload *w)
{
    uint32_t want = w->gone || w->suspended ? 0 : w->replicas;
    return w->live && w->plain + w->ended == want && w->other == 0 && (want == 0 || w->ordinals == w->ordinals_want);
}

/* Turns a removed workload into a ghost. All ghosts are alike, whatever the workload was. */
static void workload_become_placeholder(struct berth_cluster *c, uint32_t slot)
{
    struct class_ix nothing = class_put(c, &(struct berth_shape){0});
    quota_count_requests(c, slot, -1);
    quota_count_booked(c, slot, -1); /* as if the workload had never been put, only its instances */
    claim_drop(c, slot);
    label_set_leave(c, slot);
    label_set_join(c, slot, 0);
    uses_drop(c, slot);
    gang_leave(c, slot);
    struct workload *w = pages_edit(&c->workloads, slot);
    *w = (struct workload){.id = w->id,
                           .live = true,
                           .gone = true,
                           .class = nothing,
                           .gang = NONE,
                           .claim = NONE,
                           .uses = NONE,
                           .on_lost = BERTH_LOST_REPLACE,
                           .on_drain = BERTH_DRAIN_MOVE,
                           .first = w->first,
                           .label_set = w->label_set,
                           .next_labelled = w->next_labelled,
                           .prev_labelled = w->prev_labelled};
    for (uint32_t i = w->first; i != NONE; i = cluster_instance(c, i)->next_of_workload)
        workload_count(w, cluster_instance(c, i), 1);
}

uint32_t workload_placeholder(struct berth_cluster *c, const char *id)
{
    uint32_t slot = workload_new(c, intern_put(&c->names, id));
    workload_become_placeholder(c, slot);
    return slot;
}

void workload_drop_if_empty(struct berth_cluster *c, uint32_t slot)
{
    const struct workload *w = cluster_workload(c, slot);
    if (!w->gone || w->first != NONE)
        return;
    uint64_t id_hash =
        hash_u64(w->id); /* the calls below copy the record's page; the old page may go with a snapshot */
    label_set_leave(c, slot);
    uses_drop(c, slot);
    gang_leave(c, slot);
    claim_drop(c, slot);
    map_drop(&c->workloads_by_id, id_hash, slot);
    cluster_unname(c, slot);
    *(struct workload *)pages_edit(&c->workloads, slot) =
        (struct workload){.first = NONE, .uses = NONE, .gang = NONE, .claim = NONE};
    bits_drop(c->unsettled.at, slot);
    vec_push(&c->workloads_free, slot);
}

void cluster_settle(struct berth_cluster *c, uint32_t slot)
{
    if (workload_settled(cluster_workload(c, slot)))
        bits_drop(c->unsettled.at, slot);
    else
        bits_add(c->unsettled.at, slot);
}

/* ---- put and remove --------------------------------------------------------------------------------------------- */

static void workload_fill(struct workload *w, const struct berth_workload *from)
{
    bool several = from->kind == BERTH_SERVICE && from->replicas > 1;

    w->gone = false;
    w->kind = from->kind;
    w->replicas = from->replicas;
    w->priority = from->priority;
    w->created_ns = from->created_ns;
    w->suspended = from->suspended;
    w->begin_ns = from->begin_ns;
    w->fence_ns = from->fence_ns ? from->fence_ns : FENCE_DEFAULT_NS;
    w->min_available = from->min_available ? from->min_available : from->replicas > 1 ? from->replicas - 1 : 1;
    w->on_lost = from->on_lost ? from->on_lost : several ? BERTH_LOST_REPLACE : BERTH_LOST_FENCE;
    w->on_drain = from->on_drain ? from->on_drain : from->kind == BERTH_SERVICE ? BERTH_DRAIN_MOVE : BERTH_DRAIN_WAIT;
    if (from->gang && *from->gang && w->on_drain == BERTH_DRAIN_MOVE)
        w->on_drain = BERTH_DRAIN_WAIT; /* gang members are not moved one by one */
    w->gang_min = from->gang_min ? from->gang_min : from->replicas;
}

/* Adds everything that the workload requests and holds to the books of its quotas. */
static void quota_all(struct berth_cluster *c, uint32_t slot, int sign)
{
    quota_count_requests(c, slot, sign);
    quota_count_booked(c, slot, sign);
}

int berth_workload_put(struct berth_cluster *c, const struct berth_workload *from, struct berth_err *err)
{
    int rc = describe_workload(c, from, err);
    if (rc)
        return rc;
    uint32_t slot = cluster_workload_find(c, from->id);
    if (slot == NONE)
        slot = workload_new(c, intern_put(&c->names, from->id));

    struct class_ix class = class_put(c, &from->shape);
    quota_all(c, slot, -1);
    uint32_t set = cluster_label_set_put(c, from->labels, from->labels_len);
    if (set != cluster_workload(c, slot)->label_set) {
        label_set_leave(c, slot);
        label_set_join(c, slot, set);
    }
    uses_drop(c, slot);
    uses_add(c, slot, cluster_class(c, class));
    struct workload *w = pages_edit(&c->workloads, slot);
    workload_fill(w, from);
    w->class = class;
    w->plain = w->ended = w->other = 0;
    w->ordinals = w->ordinals_want = 0;
    for (uint32_t i = w->first; i != NONE; i = cluster_instance(c, i)->next_of_workload)
        workload_count(w, cluster_instance(c, i), 1);
    for (uint32_t i = 0; i < w->replicas; i++)
        w->ordinals_want += hash_u64((uint64_t)i + 1);
    gang_leave(c, slot);
    if (from->gang && *from->gang)
        gang_join(c, slot, intern_put(&c->names, from->gang));
    claim_put(c, slot, from);
    quota_all(c, slot, 1);
    cluster_settle(c, slot);
    c->revision++;
    return 0;
}

int berth_workload_remove(struct berth_cluster *c, const char *id, struct berth_err *err)
{
    uint32_t slot = cluster_workload_find(c, id);
    if (slot == NONE || cluster_workload(c, slot)->gone)
        return err_set(err, ENOENT, "workload \"%s\" does not exist", id ? id : "");
    workload_become_placeholder(c, slot);
    cluster_settle(c, slot);
    workload_drop_if_empty(c, slot);
    c->revision++;
    return 0;
}
