/* snapshot.c - freezes a cluster into a snapshot. */
#include "core/snapshot/snapshot.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "base/sort.h"

#define NAMED_NEW ((uint32_t)1 << 31) /* flag of a rank: an index into by_id_new */

/* ---- the order of workload ids ---------------------------------------------------------------------------------- */

struct named_slot_order {
    const struct berth_cluster *c;
    const struct named_slot *at;
};

static int compare_named(const void *ctx, uint32_t a, uint32_t b)
{
    const struct named_slot_order *by = ctx;
    return strcmp(intern_text(&by->c->names, by->at[a].id), intern_text(&by->c->names, by->at[b].id));
}

/* Returns where an id belongs among the first `len`. */
static size_t named_place(const struct berth_cluster *c, struct named_slot n, size_t len)
{
    const char *text = intern_text(&c->names, n.id);
    size_t low = 0, high = len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(intern_text(&c->names, c->by_id.at[mid].id), text) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Merges the new ids into the old ones, from the last on. Returns the first changed index. O(new log workloads); old
 * ids move in blocks. */
static size_t named_insert(struct berth_cluster *c, const uint32_t *order, size_t fresh_len)
{
    size_t end = c->by_id.len;

    vec_resize(&c->by_id, end + fresh_len);
    for (size_t i = fresh_len; i-- > 0;) {
        struct named_slot n = c->by_id_new.at[order[i]];
        size_t at = named_place(c, n, end);
        memmove(c->by_id.at + at + i + 1, c->by_id.at + at, (end - at) * sizeof *c->by_id.at);
        c->by_id.at[at + i] = n;
        end = at;
    }
    return end;
}

void cluster_name(struct berth_cluster *c, uint32_t slot, sym id)
{
    if (c->ranks.len <= slot)
        vec_resize(&c->ranks, slot + 1);
    c->ranks.at[slot] = NAMED_NEW | (uint32_t)c->by_id_new.len;
    vec_push(&c->by_id_new, ((struct named_slot){slot, id}));
}

void cluster_unname(struct berth_cluster *c, uint32_t slot)
{
    uint32_t rank = c->ranks.at[slot];
    if (rank & NAMED_NEW) {
        c->by_id_new.at[rank & ~NAMED_NEW].slot = NONE;
        return;
    }
    c->by_id.at[rank].slot = NONE;
    c->by_id_gone++;
}

/* Removes the entries of removed workloads; returns the new length. */
static size_t named_compact(struct named_slot *at, size_t len)
{
    size_t left = 0;
    for (size_t i = 0; i < len; i++)
        if (at[i].slot != NONE)
            at[left++] = at[i];
    return left;
}

/* Updates the ranks of workloads. Only their order matters, so a removed workload keeps its entry until many are
 * removed. */
static void ranks_update(struct berth_cluster *c)
{
    size_t changed = SIZE_MAX;
    if (c->by_id_gone > c->by_id.len / 4) {
        c->by_id.len = named_compact(c->by_id.at, c->by_id.len);
        c->by_id_gone = 0;
        changed = 0;
    }
    size_t fresh_len = c->by_id_new.len = named_compact(c->by_id_new.at, c->by_id_new.len);
    if (fresh_len) {
        uint32_t *order = mem_array(2 * fresh_len + 1, sizeof *order);
        for (size_t i = 0; i < fresh_len; i++)
            order[i] = (uint32_t)i;
        struct named_slot_order by = {c, c->by_id_new.at};
        sort_indices(order, order + fresh_len, fresh_len, compare_named, &by);
        size_t first = named_insert(c, order, fresh_len);
        changed = first < changed ? first : changed;
        mem_free(order);
        c->by_id_new.len = 0;
    }
    for (size_t i = changed; i < c->by_id.len; i++)
        if (c->by_id.at[i].slot != NONE)
            c->ranks.at[c->by_id.at[i].slot] = (uint32_t)i;
}

/* ---- columns ---------------------------------------------------------------------------------------------------- */

static void gather_states(const struct berth_cluster *c, struct berth_snapshot *s)
{
    const struct layout *l = s->layout;
    uint32_t idle = 0;

    s->state = arena_column(&s->arena, (size_t)l->blocks * BLOCK + 1, sizeof *s->state);
    s->since = arena_column(&s->arena, (size_t)l->blocks * BLOCK + 1, sizeof *s->since);
    for (uint32_t p = 0; p < l->len; p++) {
        const struct node *n = cluster_node(c, l->slot[p]);
        s->state[p] = (uint8_t)n->state;
        s->since[p] = n->since_ns;
        idle += n->state != BERTH_NODE_READY;
    }
    uint32_t *list = ARENA_ARRAY(&s->arena, uint32_t, idle + 1);
    for (uint32_t p = 0; p < l->len && idle; p++)
        if (s->state[p] != BERTH_NODE_READY)
            list[s->idle_len++] = p;
    s->idle = list;
}

static void gather_column(const struct berth_cluster *c, struct berth_snapshot *s, uint32_t r)
{
    const struct layout *l = s->layout;
    size_t padded = (size_t)l->blocks * BLOCK;
    const struct amount_book *books = c->books.at[r].at;
    size_t books_len = c->books.at[r].len;

    s->now[r] = arena_column(&s->arena, padded, sizeof **s->now);
    if (s->later)
        s->later[r] = arena_column(&s->arena, padded, sizeof **s->later);
    for (uint32_t p = 0; p < l->len; p++) {
        struct amount_book b = l->slot[p] < books_len ? books[l->slot[p]] : (struct amount_book){0};
        int64_t now = l->capacity[r][p] - b.active;
        s->now[r][p] = now;
        if (s->later)
            s->later[r][p] = now + b.stopping - b.reserved;
        if (now < 0 || now + b.stopping - b.reserved < 0)
            bits_add(s->over, p);
    }
}

/* Marks nodes that hold a resource of which they have no capacity at all: they are over capacity, too. */
static void mark_unknown_resources(const struct berth_cluster *c, struct berth_snapshot *s, uint32_t r)
{
    for (uint32_t slot = 0; slot < c->books.at[r].len; slot++) {
        const struct amount_book *b = &c->books.at[r].at[slot];
        if ((b->active || b->reserved) && slot < s->layout->slots && s->layout->position[slot] != NONE)
            bits_add(s->over, s->layout->position[slot]);
    }
}

static void gather_consumed(const struct berth_cluster *c, struct berth_snapshot *s)
{
    const struct layout *l = s->layout;
    for (uint32_t p = 0; c->consuming && p < l->len; p++) {
        const struct node_usage *use = cluster_node(c, l->slot[p])->use;
        for (uint32_t i = 0; use && i < use->consumed_len; i++) {
            uint32_t r = use->at[i].resource;
            const struct resource *of = &s->resources[r];
            if (of->kind != BERTH_CUMULATIVE || r >= l->resources || !s->now[r])
                continue;
            int64_t end = BERTH_NEVER_NS;
            if (of->period_ns && __builtin_add_overflow(use->at[i].since_ns, of->period_ns, &end))
                end = BERTH_NEVER_NS;
            if (end <= s->now_ns)
                continue; /* a new period has begun */
            s->recheck_ns = end < s->recheck_ns ? end : s->recheck_ns;
            s->now[r][p] -= use->at[i].amount;
            if (s->later)
                s->later[r][p] -= use->at[i].amount;
            if (s->now[r][p] < 0 || (s->later && s->later[r][p] < 0))
                bits_add(s->over, p);
        }
    }
}

static void gather_uses(const struct berth_cluster *c, struct berth_snapshot *s)
{
    const struct layout *l = s->layout;
    if (!c->said)
        return;
    for (uint32_t k = 0; k < USES; k++) {
        s->used[k] = arena_column(&s->arena, l->len + 1, sizeof **s->used);
        s->said[k] = arena_column(&s->arena, l->len + 1, sizeof **s->said);
        s->asked[k] = arena_column(&s->arena, l->len + 1, sizeof **s->asked);
    }
    for (uint32_t p = 0; p < l->len; p++) {
        const struct node_usage *use = cluster_node(c, l->slot[p])->use;
        struct node_use_sums sums =
            l->slot[p] < c->use_books.len ? c->use_books.at[l->slot[p]] : (struct node_use_sums){0};
        for (uint32_t k = 0; k < USES; k++) {
            s->used[k][p] = s->said[k][p] = sums.used[k];
            s->asked[k][p] = sums.asked[k];
        }
        for (uint32_t i = 0; use && i < use->used_len; i++) {
            const struct node_amount *a = &use->at[use->consumed_len + i];
            int64_t *used = &s->used[a->resource == RESOURCE_CPU ? USE_CPU : USE_MEMORY][p];
            *used = a->amount > *used ? a->amount : *used;
        }
    }
}

static void gather_devices(const struct berth_cluster *c, struct berth_snapshot *s)
{
    const struct layout *l = s->layout;
    s->devices = arena_column(&s->arena, l->device[l->len] + 1, sizeof *s->devices);
    for (uint32_t p = 0; p < l->len; p++) {
        const struct node *n = cluster_node(c, l->slot[p]);
        for (uint32_t d = 0; d < l->body[p]->devices_len; d++) {
            struct device_book b = n->devices[d];
            struct device_free *f = &s->devices[l->device[p] + d];
            f->now = BERTH_GPU_MILLI - b.active;
            f->later = f->now + b.stopping - b.reserved;
            f->mem_now = l->devices[l->device[p] + d].memory_bytes - b.mem_active;
            f->mem_later = f->mem_now + b.mem_stopping - b.mem_reserved;
            if (f->now < 0 || f->later < 0)
                bits_add(s->over, p);
        }
    }
}

static uint64_t *copy_words(struct arena *a, const uint64_t *from, size_t len)
{
    return arena_dup(a, from, len * sizeof *from);
}

static void share_tables(struct berth_cluster *c, struct berth_snapshot *s)
{
    pages_share(&c->nodes, &s->nodes);
    pages_share(&c->workloads, &s->workloads);
    pages_share(&c->instances, &s->instances);
    pages_share(&c->ports_and_volumes, &s->ports_and_volumes);
    pages_share(&c->holds, &s->holds);
    pages_share(&c->usages, &s->usages);
    pages_share(&c->waits, &s->waits);
    pages_share(&c->label_sets, &s->label_sets);
    pages_share(&c->facts, &s->facts);
    pages_share(&c->shapes.classes.items, &s->classes);
    pages_share(&c->shapes.constraints.items, &s->constraints);
    pages_share(&c->shapes.preference_sets.items, &s->preference_sets);
    pages_share(&c->shapes.topology_constraints.items, &s->topology_constraints);
    pages_share(&c->pairs, &s->pairs);
    pages_share(&c->postings, &s->postings);
    pages_share(&c->gangs, &s->gangs);
    pages_share(&c->claims, &s->claims);
    pages_share(&c->uses, &s->uses);
    pages_share(&c->topology_constraint_uses, &s->topology_constraint_uses);
    s->apart_unanchored = c->apart_unanchored;
    pages_share(&c->names.strings, &s->names.strings);
}

static struct quota_terms *copy_terms(struct arena *a, const struct quota_terms *from)
{
    struct quota_terms *t = arena_dup(a, from, sizeof *from);
    t->limits = arena_dup(a, from->limits, from->limits_len * sizeof *from->limits);
    t->guarantees = arena_dup(a, from->guarantees, from->guarantees_len * sizeof *from->guarantees);
    t->admitted = NULL; /* used only for admission */
    t->admitted_len = 0;
    t->totals = arena_dup(a, from->totals, from->totals_len * sizeof *from->totals);
    return t;
}

static void copy_quotas(const struct berth_cluster *c, struct berth_snapshot *s)
{
    struct quota *quotas = arena_dup(&s->arena, c->quotas.at, c->quotas.len * sizeof *c->quotas.at);
    for (size_t i = 0; i < c->quotas.len; i++) {
        struct quota *q = &quotas[i];
        q->books.at = arena_dup(&s->arena, q->books.at, q->books.len * sizeof *q->books.at);
        if (q->terms)
            q->terms = copy_terms(&s->arena, q->terms);
    }
    s->quotas = quotas;
    s->quotas_len = (uint32_t)c->quotas.len;
    s->budgets = arena_dup(&s->arena, c->budgets.at, c->budgets.len * sizeof *c->budgets.at);
    s->budgets_len = (uint32_t)c->budgets.len;
    s->guaranteed = c->guaranteed > 0;
    s->accounted = copy_words(&s->arena, c->accounted.at, c->accounted.len);
    s->timed = copy_words(&s->arena, c->timed.at, c->timed.len);
    s->accounted_len = (uint32_t)c->accounted.len;
}

struct berth_snapshot *berth_freeze(struct berth_cluster *c, int64_t now_ns, uint64_t seed)
{
    struct berth_snapshot *s = mem_zalloc(sizeof *s);
    arena_init(&s->arena);
    if (!c->layout)
        c->layout = layout_new(c);
    ranks_update(c);
    s->layout = layout_ref(c->layout);
    s->now_ns = now_ns;
    s->seed = seed;
    s->recheck_ns = BERTH_NEVER_NS;
    s->stopping = c->stopping;
    s->reserved = c->reserved;
    s->replacing = c->replacing;
    share_tables(c, s);
    s->resources_len = (uint32_t)c->resources.len;
    s->resources = arena_dup(&s->arena, c->resources.at, c->resources.len * sizeof *c->resources.at);
    s->ranks = arena_dup(&s->arena, c->ranks.at, c->ranks.len * sizeof *c->ranks.at);
    s->unsettled_len = (uint32_t)c->unsettled.len;
    s->unsettled = copy_words(&s->arena, c->unsettled.at, c->unsettled.len);
    s->watched_len = (uint32_t)c->watched.len;
    s->watched = copy_words(&s->arena, c->watched.at, c->watched.len);
    s->leaving = copy_words(&s->arena, c->leaving.at, c->leaving.len);
    s->revision = c->revision;
    copy_quotas(c, s);
    s->expires_ns = claim_expiry(c, now_ns);
    if (s->expires_ns > now_ns && s->expires_ns < s->recheck_ns)
        s->recheck_ns = s->expires_ns;

    uint32_t resources = s->layout->resources;
    s->over = ARENA_ARRAY(&s->arena, uint64_t, s->layout->blocks + 1);
    s->now = ARENA_ARRAY(&s->arena, int64_t *, resources);
    s->later = s->stopping || s->reserved ? ARENA_ARRAY(&s->arena, int64_t *, resources) : NULL;
    gather_states(c, s);
    for (uint32_t r = 0; r < resources; r++)
        if (s->layout->capacity[r])
            gather_column(c, s, r);
    for (uint32_t r = 0; r < c->books.len; r++)
        if ((r >= resources || !s->layout->capacity[r]) && !c->resources.at[r].optional)
            mark_unknown_resources(c, s, r);
    gather_consumed(c, s);
    gather_uses(c, s);
    gather_devices(c, s);
    return s;
}

uint32_t snapshot_replaced(const struct berth_snapshot *s, const struct instance *i)
{
    uint32_t at = i->replaces ? snapshot_workload(s, i->workload.v)->first : NONE;
    while (at != NONE && snapshot_instance(s, at)->id != i->replaces)
        at = snapshot_instance(s, at)->next_of_workload;
    return at == NONE || snapshot_instance(s, at)->state == BERTH_ENDED ? NONE : at;
}

enum { TABLES = 20 };

static void tables_list(struct berth_snapshot *s, struct pages *ret[static TABLES])
{
    struct pages *tables[TABLES] = {&s->nodes,
                                    &s->workloads,
                                    &s->instances,
                                    &s->ports_and_volumes,
                                    &s->holds,
                                    &s->usages,
                                    &s->waits,
                                    &s->facts,
                                    &s->classes,
                                    &s->constraints,
                                    &s->label_sets,
                                    &s->preference_sets,
                                    &s->topology_constraints,
                                    &s->pairs,
                                    &s->postings,
                                    &s->uses,
                                    &s->topology_constraint_uses,
                                    &s->gangs,
                                    &s->names.strings,
                                    &s->claims};
    memcpy(ret, tables, sizeof tables);
}

struct berth_snapshot *snapshot_share(const struct berth_snapshot *s)
{
    struct berth_snapshot *copy = mem_zalloc(sizeof *copy);
    struct pages *tables[TABLES];
    *copy = *s;
    arena_init(&copy->arena);
    copy->layout = layout_ref(s->layout);
    tables_list(copy, tables);
    for (size_t i = 0; i < TABLES; i++) {
        struct pages original = *tables[i];
        pages_share(&original, tables[i]);
    }
    return copy;
}

void berth_snapshot_free(struct berth_snapshot *s)
{
    struct pages *tables[TABLES];
    if (!s)
        return;
    tables_list(s, tables);
    for (size_t i = 0; i < TABLES; i++)
        pages_done(tables[i]);
    layout_unref(s->layout);
    arena_done(&s->arena);
    mem_free(s);
}
