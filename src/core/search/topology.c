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

void topology_count_pod(struct topology_state *ts, uint32_t position, bool leaving)
{
    uint32_t d = topology_state_domain(ts, position);
    if (d == NONE || (ts->counted && (leaving || !bits_has(ts->counted, position))))
        return;
    ts->total++;
    ts->going += leaving;
    ts->count[d] += !(leaving && ts->lasting);
    if (leaving && ts->leaving)
        ts->leaving[position]++;
}

static uint32_t count_workload(const struct cycle *c, struct topology_state *ts, uint32_t workload)
{
    const struct instance *i;
    uint32_t seen = 1;
    for (uint32_t at = snapshot_workload(c->s, workload)->first; at != NONE; at = i->next_of_workload) {
        i = snapshot_instance(c->s, at);
        seen++;
        if (i->state != BERTH_ENDED && !bits_has(c->removed, at))
            topology_count_pod(ts, snapshot_position(c->s, i), i->state == BERTH_STOPPING || bits_has(c->stopped, at));
    }
    for (uint32_t at = c->fresh[workload]; at != NONE; at = c->acts.at[at].next)
        topology_count_pod(ts, c->acts.at[at].position, false);
    return seen;
}

static uint32_t count_label_set(const struct cycle *c, struct topology_state *ts, uint32_t set)
{
    const struct label_set *s = pages_at(&c->s->label_sets, set);
    uint32_t seen = 1;
    if (s->first == NONE || !term_holds(&c->s->names, &ts->topology_constraint->select, s->labels))
        return seen;
    for (uint32_t w = s->first; w != NONE; w = snapshot_workload(c->s, w)->next_labelled)
        seen += count_workload(c, ts, w);
    return seen;
}

/* Counts the pods of all workloads that have the constraint. */
static uint32_t count_owners(const struct cycle *c, struct topology_state *ts)
{
    const struct anti_affinity_use *u;
    uint32_t seen = 0;
    for (uint32_t at = *(const uint32_t *)pages_at(&c->s->topology_constraint_uses, ts->mirrored); at != NONE;
         at = u->next) {
        u = pages_at(&c->s->uses, at);
        seen += count_workload(c, ts, u->workload);
    }
    return seen;
}

/* Counts the pods of all workloads that the constraint selects. */
uint32_t topology_count(const struct cycle *c, struct topology_state *ts)
{
    const struct topology_constraint *topology_constraint = ts->topology_constraint;
    uint32_t seen = 0;
    if (ts->mirror)
        return count_owners(c, ts);
    if (topology_constraint->anchors_len == 0) {
        for (uint32_t set = 0; set < c->s->label_sets.len; set++)
            seen += count_label_set(c, ts, set);
        return seen;
    }
    for (uint32_t a = 0; a < topology_constraint->anchors_len; a++) {
        const struct label_pair *pair = pages_at(&c->s->pairs, topology_constraint->anchors[a]);
        const struct label_posting *p;
        for (uint32_t at = pair->first; at != NONE; at = p->next) {
            p = pages_at(&c->s->postings, at);
            seen += count_label_set(c, ts, p->set);
        }
    }
    return seen;
}

/* ---- spread ----------------------------------------------------------------------------------------------------- */

/* Returns the lowest count of any eligible domain, and in *ret_domains how many domains have it. */
static int32_t spread_least(const struct topology_state *ts, const int32_t *count, uint32_t *ret_domains)
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
    bool few = ts->eligible->domains_len < ts->topology_constraint->min_domains;
    *ret_domains = few ? 0 : at_least;
    return at_least && !few ? least : 0;
}

/* Returns the domain of the replaced pod if that counts, else NONE. */
static uint32_t replaced_domain(const struct attempt *t, const struct topology_state *ts)
{
    if (t->replaces == NONE || !ts->self)
        return NONE;
    uint32_t from = snapshot_position(t->c->s, snapshot_instance(t->c->s, t->replaces));
    return !ts->counted || bits_has(ts->counted, from) ? topology_state_domain(ts, from) : NONE;
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
static void spread_after(const struct attempt *t, struct topology_state *ts)
{
    uint32_t replaced = replaced_domain(t, ts);
    if (ts->going == 0 && replaced == NONE)
        return;
    struct topology_state after = *ts;
    after.lasting = true;
    after.count = ARENA_ARRAY(t->c->scratch, int32_t, ts->topology->domains + 1);
    topology_count_cached(t->c, &after);
    count_without(after.count, replaced);
    ts->after = after.count;
    ts->after_least = spread_least(ts, ts->after, &ts->after_at_least);
}

/* ---- constraints of the placement attempt ----------------------------------------------------------------------- */

static struct topology_state *state_new(struct attempt *t, sym topology)
{
    struct topology_state *ts = &t->topology_constraints[t->topology_constraints_len++];
    *ts = (struct topology_state){.topology = cycle_topology(t->c, topology)};
    ts->count = ARENA_ARRAY(t->c->scratch, int32_t, ts->topology->domains + 1);
    return ts;
}

/* A pod that waits for stopping pods on its own node need not stay apart from them. */
static void leaving_begin(struct attempt *t, struct topology_state *ts)
{
    if (t->later && t->c->any_leaving && ts->topology_constraint->kind == TOPOLOGY_ANTI_AFFINITY &&
        ts->topology_constraint->weight == 0)
        ts->leaving = ARENA_ARRAY(t->c->scratch, int32_t, t->c->len + 1);
}

static void own_constraint(struct attempt *t, const struct topology_constraint *topology_constraint,
                           struct labels labels)
{
    struct topology_state *ts = state_new(t, topology_constraint->topology);
    ts->topology_constraint = topology_constraint;
    ts->self = term_holds(&t->c->s->names, &topology_constraint->select, labels);
    ts->lasting = (t->later && topology_constraint->kind == TOPOLOGY_AFFINITY) ||
                  (topology_constraint->kind == TOPOLOGY_SPREAD && topology_constraint->weight);
    leaving_begin(t, ts);
    ts->counted = topology_constraint->kind == TOPOLOGY_SPREAD ? spread_counted(t, topology_constraint) : NULL;
    topology_count_cached(t->c, ts);
    if (topology_constraint->kind == TOPOLOGY_SPREAD && topology_constraint->weight == 0) {
        ts->eligible = spread_eligible(t, topology_constraint);
        ts->least = spread_least(ts, ts->count, &ts->at_least);
        spread_after(t, ts);
    }
    if (topology_constraint->kind == TOPOLOGY_SPREAD && topology_constraint->weight)
        count_without(ts->count, replaced_domain(t, ts));
    /* With single nodes as domains only the node itself is affected, and search.c checks that one again anyway. */
    bool shared = ts->topology->domain != NULL;
    t->entangled |= ts->self && (shared || topology_constraint->kind != TOPOLOGY_ANTI_AFFINITY);
}

/* Handles each required `apart` constraint of other workloads that selects these labels. With `make`, adds a state for
 * each; returns how many were found. */
static uint32_t mirror_chain(struct attempt *t, uint32_t topology_constraint, struct labels labels, bool make)
{
    uint32_t found = 0;
    for (const struct topology_constraint *x; topology_constraint != NONE; topology_constraint = x->next_apart) {
        x = snapshot_topology_constraint(t->c->s, (struct topology_constraint_ix){topology_constraint});
        const uint32_t first = *(const uint32_t *)pages_at(&t->c->s->topology_constraint_uses, topology_constraint);
        if (first == NONE || !term_holds(&t->c->s->names, &x->select, labels))
            continue;
        const struct anti_affinity_use *u = pages_at(&t->c->s->uses, first);
        if (u->workload == t->workload && u->next == NONE)
            continue; /* only the workload's own constraint, which own_constraint handles */
        found++;
        if (!make)
            continue;
        struct topology_state *ts = state_new(t, x->topology);
        ts->topology_constraint = x;
        ts->mirror = true;
        ts->mirrored = topology_constraint;
        leaving_begin(t, ts);
        for (uint32_t i = 0; i < t->k->topology_constraints_len; i++)
            ts->self |= t->k->topology_constraints[i].v == topology_constraint;
        topology_count_cached(t->c, ts);
        t->entangled |= ts->self && ts->topology->domain;
    }
    return found;
}

static uint32_t mirrors(struct attempt *t, const struct label_set *set, bool make)
{
    uint32_t found = mirror_chain(t, t->c->s->apart_unanchored, set->labels, make);
    for (uint32_t i = 0; i < set->labels.len; i++) {
        const struct label_pair *p = pages_at(&t->c->s->pairs, set->pairs[i]);
        found += mirror_chain(t, p->first_apart, set->labels, make);
    }
    return found;
}

static const struct label_set *labels_of(const struct attempt *t)
{
    return pages_at(&t->c->s->label_sets, t->w->label_set);
}

uint32_t topology_states_needed(struct attempt *t)
{
    uint32_t others = t->c->s->topology_constraint_uses.len ? mirrors(t, labels_of(t), false) : 0;
    return t->k->topology_constraints_len + others + (t->k->max_per_node != 0);
}

void topology_begin(struct attempt *t)
{
    const struct class *k = t->k;
    uint32_t found = topology_states_needed(t);
    if (found == 0)
        return;
    const struct label_set *set = labels_of(t);
    t->topology_constraints = ARENA_ARRAY(t->c->scratch, struct topology_state, found + 1);
    for (uint32_t i = 0; i < k->topology_constraints_len; i++)
        own_constraint(t, snapshot_topology_constraint(t->c->s, k->topology_constraints[i]), set->labels);
    if (t->c->s->topology_constraint_uses.len)
        (void)mirrors(t, set, true);
    if (k->max_per_node) {
        struct topology_state *ts = &t->topology_constraints[t->topology_constraints_len++];
        static const struct topology node = {0};
        struct topology *own = arena_dup(t->c->scratch, &node, sizeof node);
        own->domains = t->c->len;
        *ts = (struct topology_state){.topology = own, .self = true};
        ts->count = ARENA_ARRAY(t->c->scratch, int32_t, t->c->len + 1);
        (void)count_workload(t->c, ts, t->workload);
    }
}

/* Updates the lowest count after a domain with `before` pods got one more. Returns whether the lowest count may have
 * risen. */
static bool least_rises(const struct topology_state *ts, uint32_t d, int32_t before, const int32_t *count,
                        int32_t *least, uint32_t *at_least)
{
    if (!*at_least || before != *least || !bits_has(ts->eligible->domains, d) || --*at_least)
        return false;
    *least = spread_least(ts, count, at_least);
    return true;
}

void topology_placed(struct attempt *t, uint32_t position)
{
    for (uint32_t i = 0; i < t->topology_constraints_len; i++) {
        struct topology_state *ts = &t->topology_constraints[i];
        if (!ts->self)
            continue;
        uint32_t d = topology_state_domain(ts, position);
        if (d == NONE || (ts->counted && !bits_has(ts->counted, position)))
            continue;
        bool first = ts->total++ == 0;
        int32_t before = ts->count[d]++;
        if (!ts->topology_constraint || ts->mirror)
            continue;
        if (ts->topology_constraint->kind == TOPOLOGY_AFFINITY && (first || before == 0))
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
