/* claim.c - claims of workloads: quotas, queue, times, traits. */
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "core/model/cluster.h"

static bool words_same(const void *ctx, uint32_t value, const void *key)
{
    const struct labels *a = &((const struct berth_cluster *)ctx)->words.at[value], *b = key;
    return a->len == b->len && memcmp(a->at, b->at, a->len * sizeof *a->at) == 0;
}

/* Returns the pooled copy of the labels, which lives as long as the cluster. */
static struct labels words_put(struct berth_cluster *c, const struct berth_label *from, size_t len)
{
    if (len == 0)
        return (struct labels){0};
    struct arena_mark mark = arena_mark(&c->shapes.arena);
    struct label *sorted = ARENA_ARRAY(&c->shapes.arena, struct label, len);
    labels_fill(&c->names, from, len, sorted);
    struct labels key = {sorted, (uint32_t)len};
    uint64_t hash = hash_bytes(sorted, len * sizeof *sorted, 0);
    uint32_t found = map_find(&c->words_by_labels, hash, words_same, c, &key);
    if (found != MAP_NONE) {
        arena_rewind(&c->shapes.arena, mark);
        return c->words.at[found];
    }
    map_add(&c->words_by_labels, hash, (uint32_t)c->words.len);
    vec_push(&c->words, key);
    return key;
}

static bool claim_is_empty(const struct berth_workload *w)
{
    const struct berth_traits *t = &w->traits;
    return w->quotas_len == 0 && (!w->queue || !*w->queue) && w->estimate_ns == 0 && w->limit_ns == 0 &&
           w->deadline_ns == 0 && w->min_run_ns == 0 && !w->unpreemptible && !w->never_preempts && t->user_level == 0 &&
           t->group_level == 0 && t->urgency == 0 && t->parameters == 0 && t->attained_ns == 0 &&
           t->interference == 0 && t->words_len == 0;
}

void claim_drop(struct berth_cluster *c, uint32_t workload)
{
    struct workload *w = pages_edit(&c->workloads, workload);
    if (w->claim == NONE)
        return;
    for (uint32_t i = w->first; i != NONE; i = cluster_instance(c, i)->next_of_workload)
        claim_forget_expiry(c, cluster_instance(c, i));
    vec_push(&c->claims_free, w->claim);
    w->claim = NONE;
    if (workload / 64 < c->accounted.len) {
        bits_drop(c->accounted.at, workload);
        bits_drop(c->timed.at, workload);
    }
}

/* Marks a workload whose pods have a time limit, and tracks its running pods. */
static void mark_timed(struct berth_cluster *c, uint32_t workload, const struct claim *claim)
{
    if (!claim->limit_ns) {
        bits_drop(c->timed.at, workload);
        return;
    }
    bits_add(c->timed.at, workload);
    for (uint32_t i = cluster_workload(c, workload)->first; i != NONE; i = cluster_instance(c, i)->next_of_workload)
        claim_note_expiry(c, cluster_instance(c, i));
}

static int64_t expiry_of(const struct berth_cluster *c, const struct instance *i)
{
    const struct claim *claim = i->state == BERTH_RUNNING ? cluster_claim(c, i->workload.v) : NULL;
    return claim ? instance_expiry(claim, i) : BERTH_NEVER_NS;
}

void claim_note_expiry(struct berth_cluster *c, const struct instance *i)
{
    int64_t at = expiry_of(c, i);
    c->expires_ns = at < c->expires_ns ? at : c->expires_ns;
}

void claim_forget_expiry(struct berth_cluster *c, const struct instance *i)
{
    int64_t at = expiry_of(c, i);
    if (at != BERTH_NEVER_NS && at == c->expires_ns)
        c->expires_ns = INT64_MIN; /* must be recomputed */
}

int64_t claim_expiry(struct berth_cluster *c, int64_t now_ns)
{
    if (c->expires_ns > now_ns)
        return c->expires_ns;
    c->expires_ns = BERTH_NEVER_NS;
    for (uint32_t word = 0; word < c->timed.len; word++)
        BITS_EACH (bit, c->timed.at[word])
            for (uint32_t i = cluster_workload(c, word * 64 + (uint32_t)bit)->first; i != NONE;
                 i = cluster_instance(c, i)->next_of_workload)
                claim_note_expiry(c, cluster_instance(c, i));
    return c->expires_ns;
}

void claim_put(struct berth_cluster *c, uint32_t workload, const struct berth_workload *from)
{
    if (claim_is_empty(from)) {
        claim_drop(c, workload);
        return;
    }
    struct claim t = {.queue = intern_put(&c->names, from->queue),
                      .estimate_ns = from->estimate_ns,
                      .limit_ns = from->limit_ns,
                      .deadline_ns = from->deadline_ns,
                      .min_run_ns = from->min_run_ns,
                      .unpreemptible = from->unpreemptible,
                      .predicted = from->predicted,
                      .never_preempts = from->never_preempts,
                      .user_level = from->traits.user_level,
                      .group_level = from->traits.group_level,
                      .urgency = from->traits.urgency,
                      .interference = from->traits.interference,
                      .parameters = from->traits.parameters,
                      .attained_ns = from->traits.attained_ns,
                      .words = words_put(c, from->traits.words, from->traits.words_len)};
    for (size_t i = 0; i < from->quotas_len; i++)
        t.quotas[t.quotas_len++] = cluster_quota_named(c, from->quotas[i]);
    for (uint32_t i = cluster_workload(c, workload)->first; i != NONE; i = cluster_instance(c, i)->next_of_workload)
        claim_forget_expiry(c, cluster_instance(c, i));
    uint32_t ix = cluster_workload(c, workload)->claim;
    if (ix == NONE)
        ix = slot_take(&c->claims, &c->claims_free);
    *(struct claim *)pages_edit(&c->claims, ix) = t;
    ((struct workload *)pages_edit(&c->workloads, workload))->claim = ix;
    if (workload / 64 >= c->accounted.len) {
        vec_resize(&c->accounted, workload / 64 + 1);
        vec_resize(&c->timed, workload / 64 + 1);
    }
    mark_timed(c, workload, &t);
    if (t.quotas_len)
        bits_add(c->accounted.at, workload);
    else
        bits_drop(c->accounted.at, workload);
}
