/* cluster_copy.c - copies a cluster, for plans that are made ahead of time. */
#include "core/model/cluster.h"
#include "core/snapshot/layout.h"

static void copy_names(const struct berth_cluster *from, struct berth_cluster *to)
{
    arena_init(&to->names.arena);
    map_copy(&from->names.map, &to->names.map);
    pages_share(&from->names.strings, &to->names.strings);
}

static void copy_pool(const struct pool *from, struct pool *to)
{
    map_copy(&from->map, &to->map);
    pages_share(&from->items, &to->items);
}

static void copy_shapes(const struct cluster_shapes *from, struct cluster_shapes *to)
{
    arena_init(&to->arena);
    copy_pool(&from->classes, &to->classes);
    copy_pool(&from->constraints, &to->constraints);
    copy_pool(&from->preference_sets, &to->preference_sets);
    copy_pool(&from->topology_constraints, &to->topology_constraints);
}

static void copy_tables(const struct berth_cluster *from, struct berth_cluster *to)
{
    pages_share(&from->nodes, &to->nodes);
    pages_share(&from->workloads, &to->workloads);
    pages_share(&from->instances, &to->instances);
    pages_share(&from->ports_and_volumes, &to->ports_and_volumes);
    pages_share(&from->holds, &to->holds);
    pages_share(&from->usages, &to->usages);
    pages_share(&from->waits, &to->waits);
    pages_share(&from->label_sets, &to->label_sets);
    pages_share(&from->facts, &to->facts);
    pages_share(&from->gangs, &to->gangs);
    pages_share(&from->claims, &to->claims);
    pages_share(&from->pairs, &to->pairs);
    pages_share(&from->postings, &to->postings);
    pages_share(&from->uses, &to->uses);
    pages_share(&from->topology_constraint_uses, &to->topology_constraint_uses);
}

static void copy_maps(const struct berth_cluster *from, struct berth_cluster *to)
{
    map_copy(&from->quotas_by_id, &to->quotas_by_id);
    map_copy(&from->words_by_labels, &to->words_by_labels);
    map_copy(&from->nodes_by_id, &to->nodes_by_id);
    map_copy(&from->workloads_by_id, &to->workloads_by_id);
    map_copy(&from->instances_by_id, &to->instances_by_id);
    map_copy(&from->ports_and_volumes_by_name, &to->ports_and_volumes_by_name);
    map_copy(&from->label_sets_by_labels, &to->label_sets_by_labels);
    map_copy(&from->facts_by_subject, &to->facts_by_subject);
    map_copy(&from->replacements_by_old, &to->replacements_by_old);
    map_copy(&from->pairs_by_label, &to->pairs_by_label);
    map_copy(&from->gangs_by_id, &to->gangs_by_id);
}

static void copy_lists(const struct berth_cluster *from, struct berth_cluster *to)
{
    vec_copy(&to->resources, &from->resources);
    vec_copy(&to->use_books, &from->use_books);
    vec_copy(&to->words, &from->words);
    vec_copy(&to->budgets, &from->budgets);
    vec_copy(&to->gpu_counts, &from->gpu_counts);
    vec_copy(&to->accounted, &from->accounted);
    vec_copy(&to->timed, &from->timed);
    vec_copy(&to->nodes_free, &from->nodes_free);
    vec_copy(&to->workloads_free, &from->workloads_free);
    vec_copy(&to->instances_free, &from->instances_free);
    vec_copy(&to->holds_free, &from->holds_free);
    vec_copy(&to->usages_free, &from->usages_free);
    vec_copy(&to->waits_free, &from->waits_free);
    vec_copy(&to->facts_free, &from->facts_free);
    vec_copy(&to->uses_free, &from->uses_free);
    vec_copy(&to->claims_free, &from->claims_free);
    vec_copy(&to->unsettled, &from->unsettled);
    vec_copy(&to->watched, &from->watched);
    vec_copy(&to->leaving, &from->leaving);
    vec_copy(&to->by_id, &from->by_id);
    vec_copy(&to->by_id_new, &from->by_id_new);
    vec_copy(&to->ranks, &from->ranks);
    vec_copy(&to->books, &from->books);
    for (size_t r = 0; r < from->books.len; r++)
        vec_copy(&to->books.at[r], &from->books.at[r]);
    vec_copy(&to->quotas, &from->quotas);
    for (size_t q = 0; q < from->quotas.len; q++) {
        to->quotas.at[q].terms = quota_terms_copy(from->quotas.at[q].terms);
        vec_copy(&to->quotas.at[q].books, &from->quotas.at[q].books);
    }
}

static void *copy_block(const void *from, size_t size)
{
    if (!from || size == 0)
        return NULL;
    void *to = mem_alloc(size);
    memcpy(to, from, size);
    return to;
}

/* Copies what node records point to. Bodies are shared; the other parts change with what instances hold. */
static void copy_nodes(const struct berth_cluster *from, struct berth_cluster *to)
{
    for (uint32_t i = 0; i < from->nodes.len; i++) {
        const struct node n = *cluster_node(from, i);
        if (!n.body)
            continue;
        struct node *own = pages_edit(&to->nodes, i);
        size_t used = n.use ? n.use->consumed_len + n.use->used_len : 0;
        atomic_fetch_add_explicit(&n.body->refs, 1, memory_order_relaxed);
        own->devices = copy_block(n.devices, n.body->devices_len * sizeof *n.devices);
        own->use = copy_block(n.use, sizeof *n.use + used * sizeof *n.use->at);
    }
}

struct berth_cluster *cluster_copy(const struct berth_cluster *from)
{
    struct berth_cluster *c = mem_alloc(sizeof *c);
    *c = *from; /* copies the scalars; everything that owns memory is replaced below */
    copy_names(from, c);
    copy_shapes(&from->shapes, &c->shapes);
    copy_tables(from, c);
    copy_maps(from, c);
    copy_lists(from, c);
    copy_nodes(from, c);
    c->layout = from->layout ? layout_ref(from->layout) : NULL;
    return c;
}
