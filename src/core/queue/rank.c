/* rank.c - rank keys of waiting workloads: applies to each queue its ranking. */
#include "core/queue/rank.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/math.h"
#include "core/queue/factor.h"
#include "core/queue/ranking.h"

/* ---- setup, once per plan --------------------------------------------------------------------------------------- */

static struct berth_ranking copy_ranking(struct arena *a, struct berth_ranking from)
{
    struct berth_weight *weights = arena_dup(a, from.weights, from.weights_len * sizeof *weights);
    for (size_t i = 0; i < from.weights_len; i++)
        weights[i].score = arena_strdup(a, from.weights[i].score);
    from.name = arena_strdup(a, from.name && *from.name ? from.name : "fifo");
    from.weights = weights;
    return from;
}

/* Copies the caller's order, for as long as the plan may be queried. */
static struct berth_order copy_order(struct arena *a, struct berth_order from)
{
    struct berth_queue *queues = arena_dup(a, from.queues, from.queues_len * sizeof *queues);
    struct berth_amount *charges = arena_dup(a, from.charges, from.charges_len * sizeof *charges);
    for (size_t i = 0; i < from.queues_len; i++) {
        queues[i].id = arena_strdup(a, from.queues[i].id);
        queues[i].ranking = copy_ranking(a, from.queues[i].ranking);
    }
    for (size_t i = 0; i < from.charges_len; i++)
        charges[i].resource = arena_strdup(a, from.charges[i].resource);
    from.queues = queues;
    from.charges = charges;
    from.ranking = copy_ranking(a, from.ranking);
    return from;
}

static int64_t step_before(int64_t now_ns)
{
    int64_t over = now_ns % RANK_STEP_NS;
    return now_ns - (over < 0 ? over + RANK_STEP_NS : over);
}

static struct ranks *ranks_of(struct berth_plan *p)
{
    if (p->ranks)
        return p->ranks;
    const struct berth_snapshot *s = p->s;
    struct ranks *r = ARENA_NEW(&p->arena, struct ranks);
    r->p = p;
    r->s = s;
    r->now_ns = step_before(s->now_ns);
    r->order = copy_order(&p->arena, p->policy.order);
    r->estimate_ns = p->policy.backfill.estimate_ns;
    r->load = -1;
    for (size_t i = 0; i < r->order.queues_len; i++) {
        int32_t priority = r->order.queues[i].priority;
        r->queue_low = priority < r->queue_low ? priority : r->queue_low;
        r->queue_high = priority > r->queue_high ? priority : r->queue_high;
    }
    r->totals = ARENA_ARRAY(&p->arena, int64_t, s->layout->resources + 1);
    for (uint32_t i = 0; i < s->layout->resources; i++)
        r->totals[i] = -1;
    p->policy.order = r->order;
    p->ranks = r;
    return r;
}

void rank_begin(struct berth_plan *p)
{
    (void)ranks_of(p);
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

static uint32_t queue_find(const struct berth_order *o, const char *name)
{
    for (uint32_t i = 0; i < o->queues_len; i++)
        if (strcmp(o->queues[i].id, name) == 0)
            return i;
    return NONE;
}

uint32_t rank_queue(const struct berth_plan *p, const struct claim *t)
{
    if (!t || t->queue == 0 || p->policy.order.queues_len == 0)
        return NONE;
    const char *name = snapshot_text(p->s, t->queue);
    if (!p->ranks)
        return queue_find(&p->policy.order, name);
    struct rank_queue_cache *known = &p->ranks->known[t->queue % QUEUES_KNOWN];
    if (known->queue != t->queue)
        *known = (struct rank_queue_cache){t->queue, queue_find(&p->policy.order, name)};
    return known->at;
}

const struct berth_ranking *rank_of_queue(const struct berth_plan *p, uint32_t queue)
{
    return queue == NONE ? &p->policy.order.ranking : &p->policy.order.queues[queue].ranking;
}

void rank_weights(const struct berth_plan *p, uint32_t queue, int32_t ret[static 32])
{
    ranking_weights(rank_of_queue(p, queue), ret);
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

static struct rank_row row_in_queue(struct berth_plan *p, uint32_t workload)
{
    struct rank_row row = row_of(p->ranks, workload);
    row.queue = rank_queue(p, row.t);
    return row;
}

static bool is_plain(const struct berth_order *o)
{
    return o->queues_len == 0 && strcmp(o->ranking.name, "fifo") == 0;
}

/* Groups rows by queue: returns the indices of the rows, and in begins[] where the rows of each queue begin. */
static uint32_t *by_queue(struct ranks *r, const struct rank_row *rows, uint32_t len, uint32_t *begins)
{
    size_t queues = r->order.queues_len + 1;
    uint32_t *order = arena_alloc(&r->p->scratch, (len + 1) * sizeof *order);
    for (uint32_t i = 0; i < len; i++)
        begins[(rows[i].queue == NONE ? queues - 1 : rows[i].queue) + 1]++;
    for (size_t q = 0; q < queues; q++)
        begins[q + 1] += begins[q];
    uint32_t *at = arena_dup(&r->p->scratch, begins, queues * sizeof *at);
    for (uint32_t i = 0; i < len; i++)
        order[at[rows[i].queue == NONE ? queues - 1 : rows[i].queue]++] = i;
    return order;
}

/* Computes the keys of rows, each by the ranking of its queue. */
static int keys_of(struct ranks *r, const struct rank_row *rows, uint32_t len, int64_t *keys, struct berth_err *err)
{
    struct berth_plan *p = r->p;
    size_t queues = r->order.queues_len + 1;
    int rc = 0;

    struct rank_row *sorted = arena_alloc(&p->scratch, (len + 1) * sizeof *sorted);
    int64_t *got = arena_alloc(&p->scratch, (len + 1) * sizeof *got);
    uint32_t *begins = ARENA_ARRAY(&p->scratch, uint32_t, queues + 2);
    const uint32_t *order = by_queue(r, rows, len, begins);
    for (uint32_t i = 0; i < len; i++)
        sorted[i] = rows[order[i]];
    for (size_t q = 0; q < queues && rc == 0; q++) {
        uint32_t queue = q + 1 == queues ? NONE : (uint32_t)q, from = begins[q], n = begins[q + 1] - from;
        if (n)
            rc = ranking_keys(r, rank_of_queue(p, queue), sorted + from, n, got + from, err);
        if (rc && queue != NONE)
            (void)err_prefix(err, "queue \"%s\"", r->order.queues[q].id);
    }
    for (uint32_t i = 0; rc == 0 && i < len; i++)
        keys[order[i]] = got[i];
    return rc;
}

int rank_keys(struct berth_plan *p, const uint32_t *workloads, uint32_t len, int64_t *keys, struct berth_err *err)
{
    struct ranks *r = ranks_of(p);
    memset(keys, 0, len * sizeof *keys);
    if (is_plain(&r->order))
        return 0;
    struct arena_mark mark = arena_mark(&p->scratch);
    struct rank_row *rows = arena_alloc(&p->scratch, (len + 1) * sizeof *rows);
    for (uint32_t i = 0; i < len; i++)
        rows[i] = row_in_queue(p, workloads[i]);
    int rc = keys_of(r, rows, len, keys, err);
    arena_rewind(&p->scratch, mark);
    return rc;
}

int rank_demands(struct berth_plan *p, struct berth_err *err)
{
    static const struct claim silent;
    struct ranks *r = ranks_of(p);
    uint32_t len = (uint32_t)p->demands.len, n = 0;
    if (is_plain(&r->order))
        return 0; /* all keys are 0 */
    struct arena_mark mark = arena_mark(&p->scratch);
    struct rank_row *rows = arena_alloc(&p->scratch, (len + 1) * sizeof *rows);
    int64_t *keys = arena_alloc(&p->scratch, (len + 1) * sizeof *keys);
    for (uint32_t i = 0; i < len; i++) {
        const struct demand *w = &p->demands.at[i];
        if (n == 0 || rows[n - 1].workload != w->workload) /* one row for each workload */
            rows[n++] = (struct rank_row){w->workload, w->queue, snapshot_workload(p->s, w->workload),
                                          w->claim ? w->claim : &silent};
    }
    int rc = keys_of(r, rows, n, keys, err);
    for (uint32_t i = 0, k = 0; rc == 0 && i < len; i++) {
        k += rows[k].workload != p->demands.at[i].workload;
        p->demands.at[i].key = keys[k];
    }
    arena_rewind(&p->scratch, mark);
    return rc;
}

int rank_keys_by(struct berth_plan *p, const struct berth_ranking *by, const uint32_t *workloads, uint32_t len,
                 int64_t *keys, struct berth_err *err)
{
    struct ranks *r = ranks_of(p);
    struct arena_mark mark = arena_mark(&p->scratch);
    struct rank_row *rows = arena_alloc(&p->scratch, (len + 1) * sizeof *rows);
    for (uint32_t i = 0; i < len; i++)
        rows[i] = row_in_queue(p, workloads[i]);
    int rc = ranking_keys(r, by, rows, len, keys, err);
    arena_rewind(&p->scratch, mark);
    return rc;
}

uint32_t rank_factors(struct berth_plan *p, uint32_t workload, int32_t ret[static 32])
{
    struct ranks *r = ranks_of(p);
    struct rank_row row = row_in_queue(p, workload);
    for (uint32_t i = 0; i < factors_len; i++)
        ret[i] = factors[i].of(r, &row);
    return factors_len;
}

uint32_t rank_terms(struct berth_plan *p, uint32_t workload, struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX])
{
    struct ranks *r = ranks_of(p);
    struct rank_row row = row_in_queue(p, workload);
    return ranking_terms(r, rank_of_queue(p, row.queue), &row, ret);
}

void rank_shares(struct berth_plan *p, void (*tell)(void *ctx, const struct berth_share *share), void *ctx)
{
    fair_report(ranks_of(p), tell, ctx);
}

/* A workload that waits alone needs no recheck: no other one can overtake it. */
void rank_recheck(struct berth_plan *p)
{
    struct ranks *r = ranks_of(p);
    uint32_t waiting = 0;
    bool tail_timed = ranking_is_timed(&p->policy.backfill.ranking);
    if (is_plain(&r->order) && !tail_timed)
        return;
    for (size_t i = 0; i < p->demands.len && waiting < 2; i++) {
        const struct demand *w = &p->demands.at[i];
        waiting += w->placed < w->len && (tail_timed || ranking_is_timed(rank_of_queue(p, w->queue)));
    }
    if (waiting > 1)
        plan_recheck(p, r->now_ns + RANK_STEP_NS);
}

/* ---- validation ------------------------------------------------------------------------------------------------- */

static int check_queue(const struct berth_order *o, size_t at, struct berth_err *err)
{
    const struct berth_queue *q = &o->queues[at];
    if (!q->id || !*q->id)
        return err_set(err, EINVAL, "policy: a queue without a name");
    for (size_t i = 0; i < at; i++)
        if (strcmp(o->queues[i].id, q->id) == 0)
            return err_set(err, EINVAL, "policy: queue \"%s\" is listed twice", q->id);
    int rc = ranking_check(&q->ranking, err);
    return rc ? err_prefix(err, "policy: queue \"%s\"", q->id) : 0;
}

int rank_check(const struct berth_order *o, struct berth_err *err)
{
    if (o->queues_len > BERTH_LIST_MAX || o->charges_len > BERTH_LIST_MAX)
        return err_set(err, EINVAL, "policy: more than %d queues or charges", BERTH_LIST_MAX);
    if (o->half_life_ns < 0 || o->age_ns < 0 || o->max_wait_ns < 0)
        return err_set(err, EINVAL, "policy: a half-life, an age or a maximum wait is negative");
    for (size_t i = 0; i < o->charges_len; i++) {
        const struct berth_amount *c = &o->charges[i];
        if (!c->resource || !*c->resource)
            return err_set(err, EINVAL, "policy: a charge for a resource without a name");
        if (c->amount < 0 || c->amount > BERTH_AMOUNT_MAX)
            return err_set(err, EINVAL, "policy: the charge for %s is out of range", c->resource);
    }
    int rc = ranking_check(&o->ranking, err);
    if (rc)
        return err_prefix(err, "policy");
    for (size_t i = 0; i < o->queues_len && rc == 0; i++)
        rc = check_queue(o, i, err);
    return rc;
}

int rank_check_backfill(const struct berth_backfill *b, struct berth_err *err)
{
    int rc = ranking_check(&b->ranking, err);
    return rc ? err_prefix(err, "policy: backfill") : 0;
}
