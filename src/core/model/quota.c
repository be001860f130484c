/* quota.c - quotas and their books: what all workloads of a user, a group or a queue hold and request. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/plant.h"
#include "core/model/cluster.h"

static bool quota_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct berth_cluster *)ctx)->quotas.at[value].id == *(const sym *)key;
}

static uint32_t quota_find(const struct berth_cluster *c, sym id)
{
    uint32_t found = map_find(&c->quotas_by_id, hash_u64(id), quota_same, c, &id);
    return found == MAP_NONE ? NONE : found;
}

uint32_t cluster_quota_find(const struct berth_cluster *c, const char *id)
{
    sym s = id && *id ? intern_find(&c->names, id) : MAP_NONE;
    return s == MAP_NONE ? NONE : quota_find(c, s);
}

uint32_t cluster_quota_named(struct berth_cluster *c, const char *id)
{
    sym s = intern_put(&c->names, id);
    uint32_t found = quota_find(c, s);
    if (found != NONE)
        return found;
    map_add(&c->quotas_by_id, hash_u64(s), (uint32_t)c->quotas.len);
    vec_push(&c->quotas, ((struct quota){.id = s, .parent = NONE, .weight = 1}));
    return (uint32_t)c->quotas.len - 1;
}

/* ---- books of a quota ------------------------------------------------------------------------------------------- */

uint32_t quota_chains(const struct quota *quotas, const struct claim *t, uint32_t ret[static QUOTA_CHAIN_MAX])
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < t->quotas_len; i++)
        for (uint32_t q = t->quotas[i]; q != NONE; q = quotas[q].parent) {
            bool seen = false;
            for (uint32_t j = 0; j < len && !seen; j++)
                seen = ret[j] == q;
            if (seen)
                break; /* and so are its parents */
            assert(len < QUOTA_CHAIN_MAX);
            ret[len++] = q;
        }
    return len;
}

int64_t quota_need(const struct class *k, uint32_t resource)
{
    if (resource == QUOTA_GPU)
        return (int64_t)k->gpu.count * k->gpu.milli;
    return resource == QUOTA_JOBS ? 0 : class_need(k, resource);
}

static struct quota_book *book_of(struct quota *q, uint32_t resource)
{
    for (size_t i = 0; i < q->books.len; i++)
        if (q->books.at[i].resource == resource)
            return &q->books.at[i];
    vec_push(&q->books, (struct quota_book){.resource = resource});
    return &q->books.at[q->books.len - 1];
}

/* Returns how many instances of the workload have not ended; counts up to `most`. */
static uint32_t unended_instances(const struct berth_cluster *c, uint32_t workload, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t i = cluster_workload(c, workload)->first; i != NONE && n < most;
         i = cluster_instance(c, i)->next_of_workload)
        n += cluster_instance(c, i)->state != BERTH_ENDED;
    return n;
}

/* Returns the instance that `i` replaces, if it has not ended; else NULL. */
static const struct instance *replaced_instance(const struct berth_cluster *c, const struct instance *i)
{
    uint32_t slot = i->replaces ? cluster_instance_find(c, i->replaces) : NONE;
    const struct instance *old = slot == NONE ? NULL : cluster_instance(c, slot);
    return old && old->workload.v == i->workload.v && old->state != BERTH_ENDED ? old : NULL;
}

void quota_books_add(const struct berth_cluster *c, struct quota *quotas, const struct claim *t,
                     const struct instance *i, const struct instance *old, int sign)
{
    const struct class *k = cluster_class(c, i->class), *was = old ? cluster_class(c, old->class) : NULL;
    const struct class *now = old && state_active(old->state) ? was : NULL;
    const struct class *later = old && old->state != BERTH_STOPPING ? was : NULL;
    uint32_t chain[QUOTA_CHAIN_MAX], len = quota_chain(quotas, t, chain);
    bool counts = i->state != BERTH_ENDED && !(PLANTED(QUOTA_MOVED) && i->replaces);
    for (uint32_t n = 0; n < len && counts; n++)
        for (uint32_t r = 0; r < k->needs_len + (k->gpu.count > 0); r++) {
            uint32_t resource = r < k->needs_len ? k->needs[r].resource : QUOTA_GPU;
            struct quota_book *b = book_of(&quotas[chain[n]], resource);
            b->active += state_active(i->state) ? sign * quota_need_beyond(k, now, resource) : 0;
            b->later += i->state != BERTH_STOPPING ? sign * quota_need_beyond(k, later, resource) : 0;
        }
}

/* The same for an instance in the cluster whose workload has a claim. */
static void chain_add(const struct berth_cluster *c, struct quota *quotas, const struct instance *i,
                      const struct instance *old, int sign)
{
    const struct claim *t = cluster_claim(c, i->workload.v);
    if (i->state == BERTH_ASSIGNED && !i->replaces && t->quotas_len)
        book_of(&quotas[t->quotas[0]], QUOTA_ASSIGNED)->active += sign;
    quota_books_add(c, quotas, t, i, old, sign);
}

static bool replaces_id(const void *ctx, uint32_t value, const void *key)
{
    return cluster_instance(ctx, value)->replaces == *(const uint64_t *)key;
}

/* Updates the counts of an instance's replacements: they count only what exceeds the instance while it exists (sign 1),
 * else everything. */
static void replacements_recount(struct berth_cluster *c, const struct instance *i, int sign)
{
    if (map_find(&c->replacements_by_old, hash_u64(i->id), replaces_id, c, &i->id) == MAP_NONE)
        return;
    for (uint32_t at = cluster_workload(c, i->workload.v)->first; at != NONE;
         at = cluster_instance(c, at)->next_of_workload)
        if (cluster_instance(c, at)->replaces == i->id) {
            chain_add(c, c->quotas.at, cluster_instance(c, at), NULL, -sign);
            chain_add(c, c->quotas.at, cluster_instance(c, at), i, sign);
        }
}

void quota_books_add_job(struct quota *quotas, const struct claim *t, int sign)
{
    uint32_t chain[QUOTA_CHAIN_MAX], len = quota_chain(quotas, t, chain);
    for (uint32_t n = 0; n < len; n++) {
        struct quota_book *b = book_of(&quotas[chain[n]], QUOTA_JOBS);
        b->active += sign;
        b->later += sign;
    }
}

/* Called while the instance is in the chain of its workload. The first instance of a workload adds the job, the last
 * one removes it. */
void quota_count(struct berth_cluster *c, const struct instance *i, int sign)
{
    const struct claim *t = cluster_claim(c, i->workload.v);
    if (!t || t->quotas_len == 0 || i->state == BERTH_ENDED)
        return;
    chain_add(c, c->quotas.at, i, replaced_instance(c, i), sign);
    replacements_recount(c, i, sign);
    if (unended_instances(c, i->workload.v, 2) == 1)
        quota_books_add_job(c->quotas.at, t, sign);
}

void quota_count_booked(struct berth_cluster *c, uint32_t workload, int sign)
{
    const struct claim *t = cluster_claim(c, workload);
    if (!t || t->quotas_len == 0)
        return;
    for (uint32_t i = cluster_workload(c, workload)->first; i != NONE; i = cluster_instance(c, i)->next_of_workload)
        chain_add(c, c->quotas.at, cluster_instance(c, i), replaced_instance(c, cluster_instance(c, i)), sign);
    if (unended_instances(c, workload, 1))
        quota_books_add_job(c->quotas.at, t, sign);
}

/* Updates the admitted amounts: all pods of the workload that have not ended. */
static void chain_count_requests(struct quota *quotas, const struct claim *t, const struct workload *w,
                                 const struct class *k, int sign)
{
    uint32_t chain[QUOTA_CHAIN_MAX], len = quota_chain(quotas, t, chain);
    int64_t pods = w->gone || w->ended >= w->replicas ? 0 : (int64_t)sign * (w->replicas - w->ended);
    for (uint32_t n = 0; pods && n < len; n++) {
        struct quota *q = &quotas[chain[n]];
        for (uint32_t r = 0; r < k->needs_len; r++)
            book_of(q, k->needs[r].resource)->asked += pods * k->needs[r].amount;
        if (k->gpu.count)
            book_of(q, QUOTA_GPU)->asked += pods * quota_need(k, QUOTA_GPU);
        book_of(q, QUOTA_JOBS)->asked += sign;
    }
}

void quota_count_requests(struct berth_cluster *c, uint32_t workload, int sign)
{
    const struct claim *t = cluster_claim(c, workload);
    const struct workload *w = cluster_workload(c, workload);
    if (t && t->quotas_len)
        chain_count_requests(c->quotas.at, t, w, cluster_class(c, w->class), sign);
}

/* Recomputes all books of all quotas from the workloads and instances. */
static void recount(const struct berth_cluster *c, struct quota *into)
{
    for (uint32_t word = 0; word < c->accounted.len; word++)
        BITS_EACH (bit, c->accounted.at[word]) {
            uint32_t at = word * 64 + (uint32_t)bit;
            const struct workload *w = cluster_workload(c, at);
            const struct claim *t = cluster_claim(c, at);
            chain_count_requests(into, t, w, cluster_class(c, w->class), 1);
            for (uint32_t i = w->first; i != NONE; i = cluster_instance(c, i)->next_of_workload)
                chain_add(c, into, cluster_instance(c, i), replaced_instance(c, cluster_instance(c, i)), 1);
            if (unended_instances(c, at, 1))
                quota_books_add_job(into, t, 1);
        }
}

/* ---- putting and removing ---------------------------------------------------------------------------------------- */

static uint32_t resource_of(struct berth_cluster *c, const char *name)
{
    if (strcmp(name, "gpu") == 0)
        return QUOTA_GPU;
    return strcmp(name, "jobs") == 0 ? QUOTA_JOBS : cluster_resource_put(c, name);
}

static const struct quota_amount *amounts_fill(struct berth_cluster *c, struct quota_amount *to,
                                               const struct berth_amount *from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        to[i] = (struct quota_amount){resource_of(c, from[i].resource), from[i].amount};
    return to;
}

static struct quota_terms *quota_terms_new(struct berth_cluster *c, const struct berth_quota *from)
{
    size_t amounts = from->limits_len + from->guarantees_len + from->admitted_len;
    size_t head = sizeof(struct quota_terms), list = amounts * sizeof(struct quota_amount);
    if (amounts + from->totals_len == 0)
        return NULL;
    struct quota_terms *t = mem_zalloc(head + list + from->totals_len * sizeof(struct quota_total));
    struct quota_amount *at = (struct quota_amount *)(void *)((char *)t + head);
    struct quota_total *totals = (struct quota_total *)(void *)((char *)t + head + list);
    t->limits_len = (uint32_t)from->limits_len;
    t->guarantees_len = (uint32_t)from->guarantees_len;
    t->admitted_len = (uint32_t)from->admitted_len;
    t->totals_len = (uint32_t)from->totals_len;
    t->limits = amounts_fill(c, at, from->limits, from->limits_len);
    t->guarantees = amounts_fill(c, at + from->limits_len, from->guarantees, from->guarantees_len);
    t->admitted = amounts_fill(c, at + from->limits_len + from->guarantees_len, from->admitted, from->admitted_len);
    for (size_t i = 0; i < from->totals_len; i++) {
        const struct berth_total *x = &from->totals[i];
        totals[i] = (struct quota_total){resource_of(c, x->resource), x->limit, x->spent, x->since_ns, x->period_ns};
    }
    t->totals = totals;
    return t;
}

struct quota_terms *quota_terms_copy(const struct quota_terms *from)
{
    if (!from)
        return NULL;
    size_t amounts = from->limits_len + from->guarantees_len + from->admitted_len;
    size_t head = sizeof *from, list = amounts * sizeof(struct quota_amount);
    size_t size = head + list + from->totals_len * sizeof(struct quota_total);
    struct quota_terms *t = mem_alloc(size);
    memcpy(t, from, size);
    const struct quota_amount *at = (const struct quota_amount *)(const void *)((const char *)t + head);
    t->limits = at;
    t->guarantees = at + from->limits_len;
    t->admitted = at + from->limits_len + from->guarantees_len;
    t->totals = (const struct quota_total *)(const void *)((const char *)t + head + list);
    return t;
}

/* Checks that `parent` does not make the quota its own ancestor or the tree too deep. */
static int check_parent(const struct berth_cluster *c, const struct berth_quota *from, uint32_t *ret_depth,
                        struct berth_err *err)
{
    uint32_t depth = 1;
    for (uint32_t q = cluster_quota_find(c, from->parent); q != NONE; q = c->quotas.at[q].parent, depth++)
        if (strcmp(intern_text(&c->names, c->quotas.at[q].id), from->id) == 0)
            return err_set(err, ELOOP, "quota \"%s\": %s is a descendant and cannot be the parent", from->id,
                           from->parent);
    *ret_depth = depth;
    return 0;
}

/* Returns the height of the subtree below the quota. */
static uint32_t height(const struct berth_cluster *c, uint32_t slot)
{
    uint32_t most = 0;
    for (uint32_t q = 0; slot != NONE && q < c->quotas.len; q++) {
        uint32_t way = 0, at = q;
        while (at != NONE && at != slot) {
            at = c->quotas.at[at].parent;
            way++;
        }
        most = at == slot && way > most ? way : most;
    }
    return most;
}

static bool limits(const struct quota *q)
{
    return q->terms && q->terms->limits_len;
}

static bool guarantees(const struct quota *q)
{
    return q->weighted || (q->terms && q->terms->guarantees_len);
}

/* Recomputes all books after a quota got another parent. */
static void books_recompute(struct berth_cluster *c)
{
    c->quota_moves++;
    for (size_t i = 0; i < c->quotas.len; i++)
        c->quotas.at[i].books.len = 0;
    recount(c, c->quotas.at);
}

int berth_quota_put(struct berth_cluster *c, const struct berth_quota *from, struct berth_err *err)
{
    uint32_t depth = 0;
    int rc = describe_quota(c, from, err);
    if (rc == 0)
        rc = check_parent(c, from, &depth, err);
    if (rc == 0 && depth + height(c, cluster_quota_find(c, from->id)) > QUOTA_DEPTH_MAX)
        rc = err_set(err, EINVAL, "quota \"%s\": the tree would be deeper than %d", from->id, QUOTA_DEPTH_MAX);
    if (rc)
        return rc;
    uint32_t slot = cluster_quota_named(c, from->id);
    uint32_t parent = from->parent && *from->parent ? cluster_quota_named(c, from->parent) : NONE;
    struct quota *q = &c->quotas.at[slot];
    bool moved = q->parent != parent;
    c->guaranteed -= guarantees(q);
    c->limited -= limits(q);
    mem_free(q->terms);
    q->terms = quota_terms_new(c, from);
    q->parent = parent;
    q->weight = from->weight ? from->weight : 1;
    q->weighted = from->weighted;
    q->known = true;
    c->guaranteed += guarantees(q);
    c->limited += limits(q);
    if (moved)
        books_recompute(c);
    c->revision++;
    return 0;
}

int berth_quota_remove(struct berth_cluster *c, const char *id, struct berth_err *err)
{
    uint32_t slot = cluster_quota_find(c, id);
    if (slot == NONE || !c->quotas.at[slot].known)
        return err_set(err, ENOENT, "quota \"%s\" does not exist", id ? id : "");
    struct quota *q = &c->quotas.at[slot];
    bool moved = q->parent != NONE;
    c->guaranteed -= guarantees(q);
    c->limited -= limits(q);
    mem_free(q->terms);
    q->terms = NULL;
    q->parent = NONE;
    q->weight = 1;
    q->weighted = q->known = false;
    if (moved)
        books_recompute(c);
    c->revision++;
    return 0;
}

void quotas_done(struct berth_cluster *c)
{
    for (size_t i = 0; i < c->quotas.len; i++) {
        mem_free(c->quotas.at[i].terms);
        vec_done(&c->quotas.at[i].books);
    }
    vec_done(&c->quotas);
    vec_done(&c->budgets);
    map_done(&c->quotas_by_id);
    map_done(&c->words_by_labels);
    vec_done(&c->words);
    vec_done(&c->accounted);
    vec_done(&c->timed);
    vec_done(&c->claims_free);
    pages_done(&c->claims);
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

bool quota_books_differ(const struct quota *a, struct quota *b)
{
    for (size_t i = 0; i < a->books.len; i++) {
        const struct quota_book *x = &a->books.at[i];
        const struct quota_book *y = book_of(b, x->resource);
        /* vectors: book_of may grow b's vector; a and b are different quotas, so x stays valid */
        if (x->active != y->active || x->later != y->later || x->asked != y->asked)
            return true;
    }
    return false;
}

int quota_audit(const struct berth_cluster *c, struct berth_err *err)
{
    int rc = 0;
    struct quota *again = mem_zalloc((c->quotas.len + 1) * sizeof *again);
    for (size_t i = 0; i < c->quotas.len; i++)
        again[i].parent = c->quotas.at[i].parent;
    recount(c, again);
    for (size_t i = 0; i < c->quotas.len && rc == 0; i++) {
        struct quota kept = c->quotas.at[i];
        if (quota_books_differ(&kept, &again[i]) || quota_books_differ(&again[i], &c->quotas.at[i]))
            rc = err_set(err, EBADMSG, "audit: the booked amounts of quota \"%s\" are wrong",
                         intern_text(&c->names, kept.id));
    }
    for (size_t i = 0; i < c->quotas.len; i++)
        vec_done(&again[i].books);
    mem_free(again);
    return rc;
}

bool berth_quota_use(const struct berth_cluster *c, const char *quota, const char *resource,
                     struct berth_quota_use *ret)
{
    uint32_t slot = cluster_quota_find(c, quota), r = NONE;
    *ret = (struct berth_quota_use){0};
    if (slot == NONE)
        return false;
    if (strcmp(resource, "gpu") == 0)
        r = QUOTA_GPU;
    else if (strcmp(resource, "jobs") == 0)
        r = QUOTA_JOBS;
    sym name = intern_find(&c->names, resource);
    for (uint32_t i = 0; r == NONE && i < c->resources.len; i++)
        r = c->resources.at[i].name == name ? i : r;
    const struct quota *q = &c->quotas.at[slot];
    for (size_t i = 0; i < q->books.len; i++)
        if (q->books.at[i].resource == r)
            *ret = (struct berth_quota_use){q->books.at[i].active, q->books.at[i].asked};
    return true;
}
