/* plan.c - the passes of a plan, and reading it. */
#include "core/plan.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/sort.h"
#include "core/holds.h"

struct act *plan_act(struct berth_plan *p, enum berth_op op, enum berth_cause cause, uint32_t instance)
{
    struct act a = {.op = (uint8_t)op, .cause = (uint8_t)cause, .instance = instance, .replaces = NONE, .next = NONE};
    if (instance != NONE) {
        const struct instance *i = snapshot_instance(p->s, instance);
        a.workload = i->workload.v;
        a.ordinal = i->ordinal;
        a.position = snapshot_position(p->s, i);
        a.gpus = i->gpus;
    }
    vec_push(&p->c.acts, a);
    return &p->c.acts.at[p->c.acts.len - 1];
}

void plan_stop(struct berth_plan *p, uint32_t instance, enum berth_cause cause)
{
    const struct instance *i = snapshot_instance(p->s, instance);
    (void)plan_act(p, BERTH_STOP, cause, instance);
    bits_add(p->c.stopped, instance);
    if (i->state == BERTH_RESERVED) {
        bits_add(p->c.removed, instance); /* before the books are looked at again */
        cycle_unreserve(&p->c, i);
        holds_release(&p->c, i);
    } else {
        cycle_leave(&p->c, i);
    }
}

void plan_recheck(struct berth_plan *p, int64_t at_ns)
{
    if (at_ns > p->s->now_ns && at_ns < p->recheck_ns)
        p->recheck_ns = at_ns;
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

/* Migrations that are remembered, by the old instance. */
static void facts_index(struct berth_plan *p)
{
    uint32_t len = p->s->facts.len;
    struct keyed *rows = arena_alloc(&p->arena, (2 * (size_t)len + 1) * sizeof *rows);
    for (uint32_t i = 0; i < len; i++) {
        const struct fact *f = pages_at(&p->s->facts, i);
        if (f->live && f->kind == BERTH_FACT_MIGRATION)
            rows[p->migrations_len++] = (struct keyed){f->subject, i};
    }
    sort_keyed(rows, rows + len, p->migrations_len);
    p->migrations = rows;
}

/* Its place in the index, or NONE. */
static uint32_t migration_find(const struct berth_plan *p, uint64_t instance)
{
    uint32_t low = 0, high = p->migrations_len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (p->migrations[mid].key < instance)
            low = mid + 1;
        else
            high = mid;
    }
    return low < p->migrations_len && p->migrations[low].key == instance ? low : NONE;
}

void plan_fact_migration(struct berth_plan *p, uint64_t instance, enum berth_migration_phase phase)
{
    uint32_t at = migration_find(p, instance);
    if (at != NONE && ((const struct fact *)pages_at(&p->s->facts, p->migrations[at].value))->value == phase)
        return;
    struct berth_fact fresh = {
        .kind = BERTH_FACT_MIGRATION, .subject = instance, .key = "", .value = phase, .at_ns = p->s->now_ns};
    vec_push(&p->facts, fresh);
}

static void mark_migration(const struct berth_plan *p, uint64_t *bits, uint64_t instance)
{
    uint32_t at = migration_find(p, instance);
    if (at != NONE)
        bits_add(bits, at);
}

/* Migrations that are still under way: the old instance is there, and it stops or somebody is to take over from it. */
static uint64_t *migrations_live(struct berth_plan *p)
{
    const struct cycle *c = &p->c;
    size_t words = bits_words(p->migrations_len) + 1;
    uint64_t *live = ARENA_ARRAY(&p->scratch, uint64_t, words), *there = ARENA_ARRAY(&p->scratch, uint64_t, words);

    for (uint32_t i = 0; p->migrations_len && i < p->s->instances.len; i++) {
        const struct instance *in = snapshot_instance(p->s, i);
        if (!in->id || in->state == BERTH_ENDED || bits_has(c->removed, i))
            continue;
        bool stops = in->state == BERTH_STOPPING || bits_has(c->stopped, i);
        mark_migration(p, there, in->id);
        mark_migration(p, live, stops ? in->id : in->replaces);
    }
    for (size_t i = 0; p->migrations_len && i < c->acts.len; i++)
        if (c->acts.at[i].replaces != NONE)
            mark_migration(p, live, snapshot_instance(p->s, c->acts.at[i].replaces)->id);
    for (size_t w = 0; w < words; w++)
        live[w] &= there[w];
    return live;
}

/* Ends what is over, and puts facts in order of the instances they are about. */
static void facts_close(struct berth_plan *p)
{
    const uint64_t *live = migrations_live(p);
    for (uint32_t i = 0; i < p->migrations_len; i++) {
        const struct fact *f = pages_at(&p->s->facts, p->migrations[i].value);
        if (bits_has(live, i))
            continue;
        struct berth_fact over = {.kind = f->kind,
                                  .subject = f->subject,
                                  .key = snapshot_text(p->s, f->key),
                                  .value = f->value,
                                  .at_ns = p->s->now_ns,
                                  .over = true};
        vec_push(&p->facts, over);
    }
    struct keyed *rows = arena_alloc(&p->scratch, (2 * p->facts.len + 1) * sizeof *rows);
    struct berth_fact *old = arena_dup(&p->scratch, p->facts.at, p->facts.len * sizeof *old);
    for (uint32_t i = 0; i < p->facts.len; i++)
        rows[i] = (struct keyed){old[i].subject, i};
    sort_keyed(rows, rows + p->facts.len, p->facts.len);
    for (size_t i = 0; i < p->facts.len; i++)
        p->facts.at[i] = old[rows[i].value];
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* Over a third of the nodes, and more than one: rather the network is broken than all of them. */
static void count_lost(struct berth_plan *p)
{
    for (uint32_t i = 0; i < p->s->idle_len; i++)
        p->lost += p->s->state[p->s->idle[i]] == BERTH_NODE_LOST;
    p->alarm = p->lost > 1 && (uint64_t)p->lost * 3 > p->s->layout->len;
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
    return hash_bytes(text, strlen(text), seed);
}

static uint64_t hash_plan(const struct berth_plan *p)
{
    uint64_t h = 0;
    for (size_t i = 0; i < p->c.acts.len; i++) {
        const struct act *a = &p->c.acts.at[i];
        struct berth_action x = berth_plan_action(p, i);
        uint64_t words[] = {a->op, a->cause, a->ordinal, x.instance, x.replaces, x.gpus, (uint64_t)x.limit};
        h = hash_bytes(words, sizeof words, hash_text(x.workload, hash_text(x.node, h)));
        h = hash_bytes(x.waits, x.waits_len * sizeof *x.waits, hash_text(x.resource ? x.resource : "", h));
    }
    for (size_t i = 0; i < p->facts.len; i++) {
        const struct berth_fact *f = &p->facts.at[i];
        uint64_t words[] = {f->kind, f->subject, (uint64_t)f->value, (uint64_t)f->at_ns, f->over};
        h = hash_bytes(words, sizeof words, hash_text(f->key, h));
    }
    return hash_pair(h, (uint64_t)p->recheck_ns);
}

static void sum_up(struct berth_plan *p)
{
    for (uint32_t i = 0; i < p->wishes.len; i++) {
        const struct wish *w = &p->wishes.at[i];
        p->placed += w->placed;
        p->unplaced += w->len - w->placed;
        if (w->placed < w->len)
            vec_push(&p->left, i);
    }
}

int berth_plan_make(const struct berth_snapshot *s, const struct berth_policy *policy, struct berth_plan **ret_plan,
                    struct berth_err *err)
{
    const struct berth_profile *from = policy && policy->profile ? policy->profile : berth_profile_at(0);
    struct profile profile;
    int rc = profile_resolve(from, s, &profile, err);
    if (rc)
        return rc;

    struct berth_plan *p = mem_zalloc(sizeof *p);
    p->s = s;
    p->recheck_ns = s->recheck_ns;
    if (policy)
        p->policy = (struct policy_copy){policy->progress, policy->progress_ctx};
    arena_init(&p->arena);
    arena_init(&p->scratch);
    cycle_init(&p->c, s, &profile, &p->arena, &p->scratch);
    count_lost(p);
    facts_index(p);

    uint32_t len;
    const uint32_t *order = order_make(p, &len);
    reconcile(p, order, len);
    place(p);
    adjust(p);
    facts_close(p);
    sum_up(p);
    *ret_plan = p;
    return 0;
}

void berth_plan_free(struct berth_plan *p)
{
    if (!p)
        return;
    vec_done(&p->c.acts);
    vec_done(&p->c.waits);
    vec_done(&p->c.given);
    vec_done(&p->wishes);
    vec_done(&p->facts);
    vec_done(&p->left);
    arena_done(&p->scratch);
    arena_done(&p->arena);
    mem_free(p);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

size_t berth_plan_actions(const struct berth_plan *p)
{
    return p->c.acts.len;
}

struct berth_action berth_plan_action(const struct berth_plan *p, size_t i)
{
    const struct act *a = &p->c.acts.at[i];
    const struct berth_snapshot *s = p->s;
    struct berth_action x = {
        .op = (enum berth_op)a->op,
        .cause = (enum berth_cause)a->cause,
        .workload = snapshot_text(s, snapshot_workload(s, a->workload)->id),
        .ordinal = a->ordinal,
        .node = snapshot_text(s, s->layout->id[a->position]),
        .instance = a->instance == NONE ? 0 : snapshot_instance(s, a->instance)->id,
        .replaces = a->replaces == NONE ? 0 : snapshot_instance(s, a->replaces)->id,
        .gpus = a->gpus,
    };
    if (a->op == BERTH_RESERVE) {
        x.waits = p->c.waits.at + a->aux;
        x.waits_len = a->aux_len;
    }
    if (a->op == BERTH_ADJUST) {
        x.resource = snapshot_text(s, s->resources[a->aux].name);
        x.limit = a->limit;
    }
    return x;
}

size_t berth_plan_facts(const struct berth_plan *p)
{
    return p->facts.len;
}

struct berth_fact berth_plan_fact(const struct berth_plan *p, size_t i)
{
    return p->facts.at[i];
}

size_t berth_plan_pendings(const struct berth_plan *p)
{
    return p->left.len;
}

const char *berth_plan_pending_name(const struct berth_plan *p, size_t i)
{
    const struct wish *w = &p->wishes.at[p->left.at[i]];
    return snapshot_text(p->s, snapshot_workload(p->s, w->workload)->id);
}

struct berth_pending berth_plan_pending(struct berth_plan *p, size_t i)
{
    const struct wish *w = &p->wishes.at[p->left.at[i]];
    const struct explanation *e = explain(p, w);
    uint32_t left = w->len - w->placed;
    uint32_t *ordinals = ARENA_ARRAY(&p->arena, uint32_t, left);
    for (uint32_t n = 0; n < left; n++)
        ordinals[n] = wish_ordinal(w, w->placed + n);
    return (struct berth_pending){
        .workload = berth_plan_pending_name(p, i),
        .ordinals = ordinals,
        .ordinals_len = left,
        .reasons = e->reasons,
        .reasons_len = e->len,
        .help = e->help,
    };
}

int64_t berth_plan_recheck_ns(const struct berth_plan *p)
{
    return p->recheck_ns;
}

bool berth_plan_alarm(const struct berth_plan *p)
{
    return p->alarm;
}

uint64_t berth_plan_hash(const struct berth_plan *p)
{
    return hash_plan(p);
}

struct berth_plan_stats berth_plan_stats(const struct berth_plan *p)
{
    return (struct berth_plan_stats){p->c.searches, p->c.opened, p->c.l->segments, p->placed, p->unplaced};
}
