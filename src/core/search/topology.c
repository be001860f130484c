/* topology.c - counts pods per domain for spread, affinity and anti-affinity.
 *
 * Every instance that has not ended counts, whether reserved, running or stopping, as does every placement of this
 * plan. When a workload is removed, its labels no longer count. Exceptions: a pod that waits for stops cannot be near a
 * stopping pod, and need not stay apart from the pods it waits for; a spread may exclude stopping pods and some nodes
 * (topology_scope.c). A required spread must be even with the stopping pods and without them; a preferred one ignores
 * them.
 *
 * Counts are made when a placement attempt begins, by walking the pods that its constraints select, and updated with
 * each placement of the attempt; nothing else is placed meanwhile.
 */
#include <assert.h>

#include "base/bits.h"
#include "core/search/attempt.h"

/* ---- walking pods ----------------------------------------------------------------------------------------------- */

void ties_count_one(struct tie_state *ts, uint32_t position, bool leaving)
{
    uint32_t d = tie_domain(ts, position);
    if (d == NONE || (ts->counted && (leaving || !bits_has(ts->counted, position))))
        return;
    ts->total++;
    ts->going += leaving;
    ts->count[d] += !(leaving && ts->lasting);
    if (leaving && ts->leaving)
        ts->leaving[position]++;
}

static uint32_t count_workload(const struct cycle *c, struct tie_state *ts, uint32_t workload)
{
    const struct instance *i;
    uint32_t seen = 1;
    for (uint32_t at = snapshot_workload(c->s, workload)->first; at != NONE; at = i->next_of_workload) {
        i = snapshot_instance(c->s, at);
        seen++;
        if (i->state != BERTH_ENDED && !bits_has(c->removed, at))
            ties_count_one(ts, snapshot_position(c->s, i), i->state == BERTH_STOPPING || bits_has(c->stopped, at));
    }
    for (uint32_t at = c->fresh[workload]; at != NONE; at = c->acts.at[at].next)
        ties_count_one(ts, c->acts.at[at].position, false);
    return seen;
}

static uint32_t count_label_set(const struct cycle *c, struct tie_state *ts, uint32_t set)
{
    const struct label_set *s = pages_at(&c->s->label_sets, set);
    uint32_t seen = 1;
    if (s->first == NONE || !term_holds(&c->s->names, &ts->tie->select, s->labels))
        return seen;
    for (uint32_t w = s->first; w != NONE; w = snapshot_workload(c->s, w)->next_labelled)
        seen += count_workload(c, ts, w);
    return seen;
}

/* Counts the pods of all workloads that have the constraint. */
static uint32_t count_owners(const struct cycle *c, struct tie_state *ts)
{
    const struct use *u;
    uint32_t seen = 0;
    for (uint32_t at = *(const uint32_t *)pages_at(&c->s->tie_uses, ts->mirrored); at != NONE; at = u->next) {
        u = pages_at(&c->s->uses, at);
        seen += count_workload(c, ts, u->workload);
    }
    return seen;
}

/* Counts the pods of all workloads that the constraint selects. */
uint32_t ties_count(const struct cycle *c, struct tie_state *ts)
{
    const struct tie *tie = ts->tie;
    uint32_t seen = 0;
    if (ts->mirror)
        return count_owners(c, ts);
    if (tie->anchors_len == 0) {
        for (uint32_t set = 0; set < c->s->label_sets.len; set++)
            seen += count_label_set(c, ts, set);
        return seen;
    }
    for (uint32_t a = 0; a < tie->anchors_len; a++) {
        const struct pair *pair = pages_at(&c->s->pairs, tie->anchors[a]);
        const struct posting *p;
        for (uint32_t at = pair->first; at != NONE; at = p->next) {
            p = pages_at(&c->s->postings, at);
            seen += count_label_set(c, ts, p->set);
        }
    }
    return seen;
}

/* ---- spread ----------------------------------------------------------------------------------------------------- */

/* Returns the lowest count of any eligible domain, and in *ret_domains how many domains have it. */
static int32_t spread_least(const struct tie_state *ts, const int32_t *count, uint32_t *ret_domains)
{
    int32_t least = INT32_MAX;
    uint32_t at_least = 0;
    for (uint32_t w = 0; w < bits_words(ts->topology->domains); w++)
        BITS_EACH (i, ts->eligible->domains[w]) {
            int32_t n = count[w * 64 + i];
            if (n < least) {
                least = n;
                at_least = 0;
            }
            at_least += n == least;
        }
    bool few = ts->eligible->domains_len < ts->tie->min_domains;
    *ret_domains = few ? 0 : at_least;
    return at_least && !few ? least : 0;
}

/* Returns the domain of the replaced pod if that counts, else NONE. */
static uint32_t replaced_domain(const struct turn *t, const struct tie_state *ts)
{
    if (t->replaces == NONE || !ts->self)
        return NONE;
    uint32_t from = snapshot_position(t->c->s, snapshot_instance(t->c->s, t->replaces));
    return !ts->counted || bits_has(ts->counted, from) ? tie_domain(ts, from) : NONE;
}

/* Removes a counted pod; a pod on a lost node was never counted. */
static void count_without(int32_t *count, uint32_t domain)
{
    if (domain != NONE && count[domain] > 0)
        count[domain]--;
}

/* Prepares the counts without stopping pods and without the replaced pod. These pods count while they exist, but the
 * spread must also be even without them. Otherwise the pods of a rolling restart would pile up in the domains that are
 * restarted last. */
static void spread_after(const struct turn *t, struct tie_state *ts)
{
    uint32_t replaced = replaced_domain(t, ts);
    if (ts->going == 0 && replaced == NONE)
        return;
    struct tie_state after = *ts;
    after.lasting = true;
    after.count = ARENA_ARRAY(t->c->scratch, int32_t, ts->topology->domains + 1);
    tally_count(t->c, &after);
    count_without(after.count, replaced);
    ts->after = after.count;
    ts->after_least = spread_least(ts, ts->after, &ts->after_at_least);
}

/* ---- constraints of the placement attempt ----------------------------------------------------------------------- */

static struct tie_state *state_new(struct turn *t, sym topology)
{
    struct tie_state *ts = &t->ties[t->ties_len++];
    *ts = (struct tie_state){.topology = cycle_topology(t->c, topology)};
    ts->count = ARENA_ARRAY(t->c->scratch, int32_t, ts->topology->domains + 1);
    return ts;
}

/* A pod that waits for stopping pods on its own node need not stay apart from them. */
static void leaving_begin(struct turn *t, struct tie_state *ts)
{
    if (t->later && t->c->any_leaving && ts->tie->kind == TIE_APART && ts->tie->weight == 0)
        ts->leaving = ARENA_ARRAY(t->c->scratch, int32_t, t->c->len + 1);
}

static void own_tie(struct turn *t, const struct tie *tie, struct labels labels)
{
    struct tie_state *ts = state_new(t, tie->topology);
    ts->tie = tie;
    ts->self = term_holds(&t->c->s->names, &tie->select, labels);
    ts->lasting = (t->later && tie->kind == TIE_NEAR) || (tie->kind == TIE_SPREAD && tie->weight);
    leaving_begin(t, ts);
    ts->counted = tie->kind == TIE_SPREAD ? spread_counted(t, tie) : NULL;
    tally_count(t->c, ts);
    if (tie->kind == TIE_SPREAD && tie->weight == 0) {
        ts->eligible = spread_eligible(t, tie);
        ts->least = spread_least(ts, ts->count, &ts->at_least);
        spread_after(t, ts);
    }
    if (tie->kind == TIE_SPREAD && tie->weight)
        count_without(ts->count, replaced_domain(t, ts));
    /* With single nodes as domains only the node itself is affected, and search.c checks that one again anyway. */
    bool shared = ts->topology->domain != NULL;
    t->entangled |= ts->self && (shared || tie->kind != TIE_APART);
}

/* Handles each required `apart` constraint of other workloads that selects these labels. With `make`, adds a state for
 * each; returns how many were found. */
static uint32_t mirror_chain(struct turn *t, uint32_t tie, struct labels labels, bool make)
{
    uint32_t found = 0;
    for (const struct tie *x; tie != NONE; tie = x->next_apart) {
        x = snapshot_tie(t->c->s, (struct tie_ix){tie});
        const uint32_t first = *(const uint32_t *)pages_at(&t->c->s->tie_uses, tie);
        if (first == NONE || !term_holds(&t->c->s->names, &x->select, labels))
            continue;
        const struct use *u = pages_at(&t->c->s->uses, first);
        if (u->workload == t->workload && u->next == NONE)
            continue; /* only the workload's own constraint, which own_tie handles */
        found++;
        if (!make)
            continue;
        struct tie_state *ts = state_new(t, x->topology);
        ts->tie = x;
        ts->mirror = true;
        ts->mirrored = tie;
        leaving_begin(t, ts);
        for (uint32_t i = 0; i < t->k->ties_len; i++)
            ts->self |= t->k->ties[i].v == tie;
        tally_count(t->c, ts);
        t->entangled |= ts->self && ts->topology->domain;
    }
    return found;
}

static uint32_t mirrors(struct turn *t, const struct label_set *set, bool make)
{
    uint32_t found = mirror_chain(t, t->c->s->apart_loose, set->labels, make);
    for (uint32_t i = 0; i < set->labels.len; i++) {
        const struct pair *p = pages_at(&t->c->s->pairs, set->pairs[i]);
        found += mirror_chain(t, p->first_apart, set->labels, make);
    }
    return found;
}

static const struct label_set *labels_of(const struct turn *t)
{
    return pages_at(&t->c->s->label_sets, t->w->label_set);
}

uint32_t ties_found(struct turn *t)
{
    uint32_t others = t->c->s->tie_uses.len ? mirrors(t, labels_of(t), false) : 0;
    return t->k->ties_len + others + (t->k->max_per_node != 0);
}

void ties_begin(struct turn *t)
{
    const struct class *k = t->k;
    uint32_t found = ties_found(t);
    if (found == 0)
        return;
    const struct label_set *set = labels_of(t);
    t->ties = ARENA_ARRAY(t->c->scratch, struct tie_state, found + 1);
    for (uint32_t i = 0; i < k->ties_len; i++)
        own_tie(t, snapshot_tie(t->c->s, k->ties[i]), set->labels);
    if (t->c->s->tie_uses.len)
        (void)mirrors(t, set, true);
    if (k->max_per_node) {
        struct tie_state *ts = &t->ties[t->ties_len++];
        static const struct topology node = {0};
        struct topology *own = arena_dup(t->c->scratch, &node, sizeof node);
        own->domains = t->c->len;
        *ts = (struct tie_state){.topology = own, .self = true};
        ts->count = ARENA_ARRAY(t->c->scratch, int32_t, t->c->len + 1);
        (void)count_workload(t->c, ts, t->workload);
    }
}

/* Updates the lowest count after a domain with `before` pods got one more. Returns whether the lowest count may have
 * risen. */
static bool least_rises(const struct tie_state *ts, uint32_t d, int32_t before, const int32_t *count, int32_t *least,
                        uint32_t *at_least)
{
    if (!*at_least || before != *least || !bits_has(ts->eligible->domains, d) || --*at_least)
        return false;
    *least = spread_least(ts, count, at_least);
    return true;
}

void ties_placed(struct turn *t, uint32_t position)
{
    for (uint32_t i = 0; i < t->ties_len; i++) {
        struct tie_state *ts = &t->ties[i];
        if (!ts->self)
            continue;
        uint32_t d = tie_domain(ts, position);
        if (d == NONE || (ts->counted && !bits_has(ts->counted, position)))
            continue;
        bool first = ts->total++ == 0;
        int32_t before = ts->count[d]++;
        if (!ts->tie || ts->mirror)
            continue;
        if (ts->tie->kind == TIE_NEAR && (first || before == 0))
            t->rose = true;
        if (!ts->eligible)
            continue;
        t->rose |= least_rises(ts, d, before, ts->count, &ts->least, &ts->at_least);
        if (ts->after) {
            before = ts->after[d]++;
            t->rose |= least_rises(ts, d, before, ts->after, &ts->after_least, &ts->after_at_least);
        }
    }
}
