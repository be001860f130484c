/* quota_ledger.c - rows of committed instances, and the quota usage counted from them. */
#include "core/queue/quota_ledger.h"

#include <errno.h>

#include "base/hash.h"
#include "base/plant.h"

struct ledger_row {
    struct quota_row row;
    uint32_t work;       /* index */
    uint32_t next, prev; /* in the list of the workload */
};

/* A workload that has rows, with the quotas that its rows count against. */
struct ledger_work {
    sym id;
    uint32_t first, rows;
    uint32_t quotas[QUOTAS_MAX], quotas_len;
};

struct quota_ledger {
    VEC(struct ledger_row) rows;
    VEC(struct ledger_work) works;
    slot_list rows_free, works_free;
    struct map rows_by_id, rows_by_replaced, works_by_id;
    VEC(struct quota) quotas; /* parents and usage only, by the quota slots of the cluster */
    bool counted;             /* the usage is correct for the quota tree as of `moves` */
    uint64_t moves;
};

struct quota_ledger *quota_ledger_new(void)
{
    return mem_zalloc(sizeof(struct quota_ledger));
}

static void books_drop(struct quota_ledger *l)
{
    for (size_t i = 0; i < l->quotas.len; i++)
        vec_done(&l->quotas.at[i].books);
    l->quotas.len = 0;
}

void quota_ledger_free(struct quota_ledger *l)
{
    if (!l)
        return;
    books_drop(l);
    vec_done(&l->quotas);
    vec_done(&l->rows);
    vec_done(&l->works);
    vec_done(&l->rows_free);
    vec_done(&l->works_free);
    map_done(&l->rows_by_id);
    map_done(&l->rows_by_replaced);
    map_done(&l->works_by_id);
    mem_free(l);
}

/* ---- rows and workloads ----------------------------------------------------------------------------------------- */

static bool row_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct quota_ledger *)ctx)->rows.at[value].row.id == *(const uint64_t *)key;
}

static bool row_replaces(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct quota_ledger *)ctx)->rows.at[value].row.replaces == *(const uint64_t *)key;
}

static bool work_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct quota_ledger *)ctx)->works.at[value].id == *(const sym *)key;
}

static uint32_t row_find(const struct quota_ledger *l, uint64_t id)
{
    return map_find(&l->rows_by_id, hash_u64(id), row_same, l, &id);
}

static uint32_t work_find(const struct quota_ledger *l, sym id)
{
    return map_find(&l->works_by_id, hash_u64(id), work_same, l, &id);
}

/* Reads the quotas that the workload counts against now. */
static void quotas_read(const struct berth_cluster *c, struct ledger_work *w)
{
    uint32_t slot = cluster_workload_find(c, intern_text(&c->names, w->id));
    const struct claim *t = slot == NONE ? NULL : cluster_claim(c, slot);
    w->quotas_len = t ? t->quotas_len : 0;
    for (uint32_t i = 0; i < w->quotas_len; i++)
        w->quotas[i] = t->quotas[i];
}

static uint32_t work_named(struct quota_ledger *l, const struct berth_cluster *c, sym id)
{
    uint32_t at = work_find(l, id);
    struct ledger_work fresh = {.id = id, .first = NONE};
    if (at != MAP_NONE)
        return at;
    quotas_read(c, &fresh);
    if (l->works_free.len) {
        at = l->works_free.at[--l->works_free.len];
        l->works.at[at] = fresh;
    } else {
        at = (uint32_t)l->works.len;
        vec_push(&l->works, fresh);
    }
    map_add(&l->works_by_id, hash_u64(id), at);
    return at;
}

static uint32_t row_link(struct quota_ledger *l, const struct berth_cluster *c, const struct quota_row *row)
{
    struct ledger_row fresh = {.row = *row, .work = work_named(l, c, row->workload), .prev = NONE};
    struct ledger_work *w = &l->works.at[fresh.work];
    uint32_t at;
    fresh.next = w->first;
    if (l->rows_free.len) {
        at = l->rows_free.at[--l->rows_free.len];
        l->rows.at[at] = fresh;
    } else {
        at = (uint32_t)l->rows.len;
        vec_push(&l->rows, fresh);
    }
    if (w->first != NONE)
        l->rows.at[w->first].prev = at;
    w->first = at;
    w->rows++;
    map_add(&l->rows_by_id, hash_u64(row->id), at);
    if (row->replaces)
        map_add(&l->rows_by_replaced, hash_u64(row->replaces), at);
    return at;
}

static void row_unlink(struct quota_ledger *l, uint32_t at)
{
    struct ledger_row r = l->rows.at[at];
    struct ledger_work *w = &l->works.at[r.work];
    map_drop(&l->rows_by_id, hash_u64(r.row.id), at);
    if (r.row.replaces)
        map_drop(&l->rows_by_replaced, hash_u64(r.row.replaces), at);
    if (r.prev != NONE)
        l->rows.at[r.prev].next = r.next;
    else
        w->first = r.next;
    if (r.next != NONE)
        l->rows.at[r.next].prev = r.prev;
    vec_push(&l->rows_free, at);
    l->rows.at[at] = (struct ledger_row){0};
    if (--w->rows == 0) {
        map_drop(&l->works_by_id, hash_u64(w->id), r.work);
        vec_push(&l->works_free, r.work);
    }
}

/* ---- usage ------------------------------------------------------------------------------------------------------ */

static struct claim claim_of(const struct ledger_work *w)
{
    struct claim t = {.quotas_len = w->quotas_len};
    for (uint32_t i = 0; i < w->quotas_len; i++)
        t.quotas[i] = w->quotas[i];
    return t;
}

static struct instance instance_of(const struct ledger_row *r)
{
    return (struct instance){
        .id = r->row.id, .class = {r->row.class}, .state = r->row.state, .replaces = r->row.replaces};
}

/* Returns the row that this row takes over from, or NULL. */
static const struct ledger_row *old_of(const struct quota_ledger *l, const struct ledger_row *r)
{
    uint32_t at = r->row.replaces ? row_find(l, r->row.replaces) : MAP_NONE;
    return at != MAP_NONE && l->rows.at[at].work == r->work ? &l->rows.at[at] : NULL;
}

/* Counts what a row adds beside the row that it takes over from. */
static void pair_add(struct quota_ledger *l, const struct berth_cluster *c, const struct claim *t,
                     const struct ledger_row *r, const struct ledger_row *old, int sign)
{
    struct instance i = instance_of(r), o = old ? instance_of(old) : (struct instance){0};
    quota_books_add(c, l->quotas.at, t, &i, old ? &o : NULL, sign);
}

/* Adds the new quotas, which have no usage yet. A quota that gets a new parent changes the tree, and everything is
 * recounted. */
static void quotas_follow(struct quota_ledger *l, const struct berth_cluster *c)
{
    while (l->quotas.len < c->quotas.len) {
        struct quota q = {.parent = c->quotas.at[l->quotas.len].parent};
        vec_push(&l->quotas, q);
    }
}

/* Call while the row is linked. Rows that take over from this row count for less while it is linked. */
static void row_count(struct quota_ledger *l, const struct berth_cluster *c, uint32_t at, int sign)
{
    const struct ledger_row *r = &l->rows.at[at];
    const struct ledger_work *w = &l->works.at[r->work];
    struct claim t = claim_of(w);
    if (!l->counted || t.quotas_len == 0)
        return;
    quotas_follow(l, c);
    pair_add(l, c, &t, r, old_of(l, r), sign);
    if (map_find(&l->rows_by_replaced, hash_u64(r->row.id), row_replaces, l, &r->row.id) != MAP_NONE)
        for (uint32_t f = w->first; f != NONE; f = l->rows.at[f].next)
            if (l->rows.at[f].row.replaces == r->row.id) {
                pair_add(l, c, &t, &l->rows.at[f], NULL, -sign);
                pair_add(l, c, &t, &l->rows.at[f], r, sign);
            }
    if (w->rows == 1)
        quota_books_add_job(l->quotas.at, &t, sign);
}

/* Counts all rows of a workload. */
static void work_count(struct quota_ledger *l, const struct berth_cluster *c, const struct ledger_work *w, int sign)
{
    struct claim t = claim_of(w);
    if (t.quotas_len == 0)
        return;
    quotas_follow(l, c);
    for (uint32_t at = w->first; at != NONE; at = l->rows.at[at].next)
        pair_add(l, c, &t, &l->rows.at[at], old_of(l, &l->rows.at[at]), sign);
    quota_books_add_job(l->quotas.at, &t, sign);
}

static void recount(struct quota_ledger *l, const struct berth_cluster *c)
{
    books_drop(l);
    quotas_follow(l, c);
    for (size_t i = 0; i < l->works.len; i++)
        if (l->works.at[i].rows) {
            quotas_read(c, &l->works.at[i]);
            work_count(l, c, &l->works.at[i], 1);
        }
    l->counted = true;
    l->moves = c->quota_moves;
}

static void check_moves(struct quota_ledger *l, const struct berth_cluster *c)
{
    l->counted = l->counted && l->moves == c->quota_moves;
}

struct quota_row quota_ledger_put(struct quota_ledger *l, const struct berth_cluster *c, uint64_t id,
                                  const struct quota_row *now)
{
    uint32_t at = row_find(l, id);
    struct quota_row was = at == MAP_NONE ? (struct quota_row){0} : l->rows.at[at].row;
    check_moves(l, c);
    if (at != MAP_NONE) {
        row_count(l, c, at, -1);
        row_unlink(l, at);
    }
    if (now)
        row_count(l, c, row_link(l, c, now), 1);
    return was;
}

struct quota_row quota_ledger_row(const struct quota_ledger *l, uint64_t id)
{
    uint32_t at = row_find(l, id);
    return at == MAP_NONE ? (struct quota_row){0} : l->rows.at[at].row;
}

void quota_ledger_claim(struct quota_ledger *l, const struct berth_cluster *c, const char *workload)
{
    sym id = intern_find(&c->names, workload);
    uint32_t at = id == MAP_NONE ? MAP_NONE : work_find(l, id);
    check_moves(l, c);
    if (at == MAP_NONE || !l->counted)
        return;
    struct ledger_work now = l->works.at[at];
    quotas_read(c, &now);
    bool same = now.quotas_len == l->works.at[at].quotas_len;
    for (uint32_t i = 0; same && i < now.quotas_len; i++)
        same = now.quotas[i] == l->works.at[at].quotas[i];
    if (same)
        return;
    work_count(l, c, &l->works.at[at], -1);
    l->works.at[at] = now;
    work_count(l, c, &l->works.at[at], 1);
}

bool quota_ledger_has(const struct quota_ledger *l, const struct berth_cluster *c, const char *workload)
{
    sym id = intern_find(&c->names, workload);
    return id != MAP_NONE && work_find(l, id) != MAP_NONE;
}

bool quota_ledger_counts(const struct quota_ledger *l, const struct berth_cluster *c, uint32_t quota)
{
    for (size_t i = 0; i < l->works.len; i++) {
        struct ledger_work w = l->works.at[i];
        uint32_t chain[QUOTA_CHAIN_MAX], len = 0;
        if (w.rows)
            quotas_read(c, &w);
        struct claim t = claim_of(&w);
        if (w.rows)
            len = quota_chain(c->quotas.at, &t, chain);
        for (uint32_t n = 0; n < len; n++)
            if (chain[n] == quota)
                return true;
    }
    return false;
}

size_t quota_ledger_followers(const struct quota_ledger *l, uint64_t id)
{
    size_t n = 0;
    uint32_t at = row_find(l, id);
    if (at == MAP_NONE || map_find(&l->rows_by_replaced, hash_u64(id), row_replaces, l, &id) == MAP_NONE)
        return 0;
    for (uint32_t f = l->works.at[l->rows.at[at].work].first; f != NONE; f = l->rows.at[f].next)
        n += l->rows.at[f].row.replaces == id;
    return n;
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

/* Returns whether all rows of the workload were put by the commit that is being tried, so that the commit adds a
 * job. */
static bool makes_job(const struct quota_ledger *l, const struct ledger_row *r)
{
    for (uint32_t at = l->works.at[r->work].first; at != NONE; at = l->rows.at[at].next)
        if (!l->rows.at[at].row.fresh)
            return false;
    return true;
}

static const struct quota_book *book_find(const struct quota *q, uint32_t resource)
{
    for (size_t i = 0; i < q->books.len; i++)
        if (q->books.at[i].resource == resource)
            return &q->books.at[i];
    return NULL;
}

/* Returns whether the usage now or after all stops is above a limit that the row counts against. */
static bool exceeds(const struct quota_ledger *l, const struct berth_cluster *c, const struct ledger_row *r,
                    const struct quota_book *b, int64_t limit, int64_t *ret_held)
{
    const struct ledger_row *old = old_of(l, r);
    const struct class *k = cluster_class(c, (struct class_ix){r->row.class});
    const struct class *was = old ? cluster_class(c, (struct class_ix){old->row.class}) : NULL;
    bool jobs = b->resource == QUOTA_JOBS, first = jobs && b->active > limit && makes_job(l, r);
    int64_t now = quota_need_beyond(k, old && state_active(old->row.state) ? was : NULL, b->resource);
    int64_t later = quota_need_beyond(k, old && old->row.state != BERTH_STOPPING ? was : NULL, b->resource);
    bool now_over = b->active > limit && (first || (now && state_active(r->row.state)));
    bool later_over = b->later > limit && (first || (later && r->row.state != BERTH_STOPPING));
    *ret_held = now_over ? b->active : b->later;
    return now_over || later_over;
}

static const char *resource_name(const struct berth_cluster *c, uint32_t resource)
{
    return resource == QUOTA_GPU    ? "gpu"
           : resource == QUOTA_JOBS ? "jobs"
                                    : intern_text(&c->names, cluster_resource(c, resource)->name);
}

bool quota_ledger_exceeds(struct quota_ledger *l, const struct berth_cluster *c, uint64_t id, struct quota_excess *ret)
{
    uint32_t at = row_find(l, id), chain[QUOTA_CHAIN_MAX];
    bool unchecked = PLANTED(QUOTA_ONE_MORE); /* planted bugs of plans must reach the simulator's checks */
    unchecked |= PLANTED(QUOTA_STOPPING);
    if (at == MAP_NONE || c->limited == 0 || unchecked)
        return false;
    check_moves(l, c);
    if (!l->counted)
        recount(l, c);
    quotas_follow(l, c);
    const struct ledger_row *r = &l->rows.at[at];
    struct claim t = claim_of(&l->works.at[r->work]);
    uint32_t len = quota_chain(l->quotas.at, &t, chain);
    for (uint32_t n = 0; n < len; n++) {
        const struct quota_terms *terms = c->quotas.at[chain[n]].terms;
        for (uint32_t i = 0; terms && i < terms->limits_len; i++) {
            const struct quota_book *b = book_find(&l->quotas.at[chain[n]], terms->limits[i].resource);
            int64_t held = 0;
            if (!b || !exceeds(l, c, r, b, terms->limits[i].amount, &held))
                continue;
            *ret = (struct quota_excess){intern_text(&c->names, c->quotas.at[chain[n]].id),
                                         resource_name(c, b->resource), held, terms->limits[i].amount};
            return true;
        }
    }
    return false;
}

int quota_ledger_audit(struct quota_ledger *l, const struct berth_cluster *c, struct berth_err *err)
{
    struct quota_ledger again = *l;
    int rc = 0;
    check_moves(l, c);
    if (!l->counted)
        return 0;
    again.quotas.at = NULL;
    again.quotas.len = again.quotas.cap = 0;
    quotas_follow(l, c);
    quotas_follow(&again, c);
    for (size_t i = 0; i < l->works.len; i++) {
        struct ledger_work w = l->works.at[i];
        if (!w.rows)
            continue;
        quotas_read(c, &w);
        work_count(&again, c, &w, 1);
    }
    for (size_t i = 0; i < l->quotas.len && rc == 0; i++)
        if (quota_books_differ(&l->quotas.at[i], &again.quotas.at[i]) ||
            quota_books_differ(&again.quotas.at[i], &l->quotas.at[i]))
            rc = err_set(err, EBADMSG, "audit: the ledger of quota \"%s\" is wrong",
                         intern_text(&c->names, c->quotas.at[i].id));
    books_drop(&again);
    vec_done(&again.quotas);
    return rc;
}
