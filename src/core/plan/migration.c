/* migration.c - facts about migrations: indexed when a plan begins, closed when it ends. */
#include "core/plan/migration.h"

#include "base/bits.h"
#include "base/sort.h"

#define HOUR_NS (3600 * (int64_t)1000000000)

/* ---- the index -------------------------------------------------------------------------------------------------- */

struct replacement {
    uint32_t slot, next;
};

/* A migration fact of the snapshot. */
struct migration {
    const struct fact *fact;
    uint32_t slot;         /* slot of the old instance, or NONE */
    uint32_t replacements; /* replacements of it, a chain */
    bool renewed;          /* this plan records a new fact about it */
};

struct migrations {
    struct migration *at; /* sorted by the old instance's id */
    uint32_t len;
    VEC(struct replacement) replacements;
};

static struct migration *find(const struct migrations *m, uint64_t id)
{
    uint32_t low = 0, high = m->len;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (m->at[mid].fact->subject < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < m->len && m->at[low].fact->subject == id ? &m->at[low] : NULL;
}

/* Finds the old and new instances of all migrations in one pass over the instances. Skipped without migrations. */
static void find_instances(struct berth_plan *p, struct migrations *m)
{
    for (uint32_t i = 0; m->len && i < p->s->instances.len; i++) {
        const struct instance *in = snapshot_instance(p->s, i);
        struct migration *own = in->id ? find(m, in->id) : NULL;
        struct migration *of = in->id && in->replaces ? find(m, in->replaces) : NULL;
        if (own)
            own->slot = i;
        if (!of)
            continue;
        struct replacement replacement = {i, of->replacements};
        of->replacements = (uint32_t)m->replacements.len;
        vec_push(&m->replacements, replacement);
    }
}

void migrations_index(struct berth_plan *p)
{
    uint32_t len = p->s->facts.len, n = 0;
    struct migrations *m = ARENA_NEW(&p->arena, struct migrations);
    struct keyed *rows = arena_alloc(&p->scratch, (2 * (size_t)len + 1) * sizeof *rows);

    for (uint32_t i = 0; i < len; i++) {
        const struct fact *f = pages_at(&p->s->facts, i);
        if (f->live && f->kind == BERTH_FACT_MIGRATION)
            rows[n++] = (struct keyed){f->subject, i};
    }
    sort_keyed(rows, rows + len, n);
    m->at = ARENA_ARRAY(&p->arena, struct migration, n);
    for (m->len = 0; m->len < n; m->len++)
        m->at[m->len] = (struct migration){pages_at(&p->s->facts, rows[m->len].value), NONE, NONE, false};
    find_instances(p, m);
    p->migrations = m;
}

void migrations_done(struct berth_plan *p)
{
    if (p->migrations)
        vec_done(&p->migrations->replacements);
}

void migrations_mark_workloads(const struct berth_plan *p, uint64_t *workloads)
{
    for (uint32_t i = 0; i < p->migrations->len; i++)
        if (p->migrations->at[i].slot != NONE)
            bits_add(workloads, snapshot_instance(p->s, p->migrations->at[i].slot)->workload.v);
}

bool migration_of(const struct berth_plan *p, uint64_t instance, struct migration_state *ret)
{
    const struct migration *m = p->migrations->len ? find(p->migrations, instance) : NULL;
    if (!m)
        return false;
    *ret = (struct migration_state){.phase = berth_migration_phase(m->fact->value),
                                    .cause = berth_migration_cause(m->fact->value),
                                    .at_ns = m->fact->at_ns,
                                    .to = m->fact->key};
    return true;
}

/* ---- recording -------------------------------------------------------------------------------------------------- */

static bool is_present(const struct berth_plan *p, uint32_t slot)
{
    return slot != NONE && snapshot_instance(p->s, slot)->state != BERTH_ENDED && !bits_has(p->c.removed, slot);
}

static bool is_stopping(const struct berth_plan *p, uint32_t slot)
{
    return snapshot_instance(p->s, slot)->state == BERTH_STOPPING || bits_has(p->c.stopped, slot);
}

/* Returns whether a replacement of the instance exists or was placed by this plan. */
static bool has_replacement(const struct berth_plan *p, const struct migration *m)
{
    for (uint32_t h = m->replacements; h != NONE; h = p->migrations->replacements.at[h].next) {
        uint32_t slot = p->migrations->replacements.at[h].slot;
        if (is_present(p, slot) && !is_stopping(p, slot))
            return true;
    }
    for (uint32_t a = p->c.fresh[snapshot_instance(p->s, m->slot)->workload.v]; a != NONE; a = p->c.acts.at[a].next)
        if (p->c.acts.at[a].replaces == m->slot)
            return true;
    return false;
}

static bool live(struct berth_plan *p, const struct migration *m)
{
    enum berth_migration_phase phase = berth_migration_phase(m->fact->value);
    int64_t end;

    if (!is_present(p, m->slot))
        return false;
    if (phase == BERTH_MIGRATION_UNDONE) {
        if (__builtin_add_overflow(m->fact->at_ns, HOUR_NS, &end))
            end = BERTH_NEVER_NS;
        plan_recheck(p, end);
        return p->s->now_ns < end && !is_stopping(p, m->slot);
    }
    bool wished = berth_migration_cause(m->fact->value) == BERTH_CAUSE_MANUAL;
    return wished || is_stopping(p, m->slot) || has_replacement(p, m);
}

bool migration_is_active(struct berth_plan *p, uint64_t instance)
{
    const struct migration *m = p->migrations->len ? find(p->migrations, instance) : NULL;
    return m && live(p, m);
}

void migration_note(struct berth_plan *p, uint64_t instance, enum berth_migration_phase phase, enum berth_cause cause)
{
    struct migration *known = find(p->migrations, instance);
    sym to = 0;
    if (known) {
        bool ends = phase == BERTH_MIGRATION_STOPPING;
        enum berth_cause was = berth_migration_cause(known->fact->value);
        cause = ends && was != BERTH_CAUSE_PENDING ? was : cause;
        to = cause == BERTH_CAUSE_MANUAL ? known->fact->key : 0;
        bool same = known->fact->value == berth_migration_value(phase, cause) && known->fact->key == to;
        if (same &&
            (phase != BERTH_MIGRATION_STARTING || has_replacement(p, known))) /* else the migration begins anew */
            return;
        known->renewed = true;
    }
    struct berth_fact fresh = {.kind = BERTH_FACT_MIGRATION,
                               .subject = instance,
                               .key = snapshot_text(p->s, to),
                               .value = berth_migration_value(phase, cause),
                               .at_ns = p->s->now_ns};
    vec_push(&p->facts, fresh);
}

bool migrations_in_progress(struct berth_plan *p)
{
    for (uint32_t i = 0; i < p->migrations->len; i++) {
        enum berth_migration_phase phase = berth_migration_phase(p->migrations->at[i].fact->value);
        bool moving = phase == BERTH_MIGRATION_STARTING || phase == BERTH_MIGRATION_STOPPING;
        if (moving && !p->migrations->at[i].renewed && live(p, &p->migrations->at[i]))
            return true;
    }
    for (size_t i = 0; i < p->facts.len; i++)
        if (p->facts.at[i].kind == BERTH_FACT_MIGRATION &&
            berth_migration_phase(p->facts.at[i].value) != BERTH_MIGRATION_UNDONE)
            return true;
    return false;
}

void migrations_close(struct berth_plan *p)
{
    for (uint32_t i = 0; i < p->migrations->len; i++) {
        const struct migration *m = &p->migrations->at[i];
        if (m->renewed || live(p, m))
            continue;
        struct berth_fact over = {.kind = BERTH_FACT_MIGRATION,
                                  .subject = m->fact->subject,
                                  .key = snapshot_text(p->s, m->fact->key),
                                  .value = m->fact->value,
                                  .at_ns = p->s->now_ns,
                                  .over = true};
        vec_push(&p->facts, over);
    }
}
