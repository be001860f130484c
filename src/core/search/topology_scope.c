/* topology_scope.c - the nodes on which a spread counts pods, and the domains it keeps even.
 *
 * Both depend only on the constraints of the class and on the nodes, so they are computed once per plan.
 */
#include "base/bits.h"
#include "core/filter/filters.h"

/* Returns the nodes that have all the topologies and, as far as the spread requires, satisfy the constraints of the
 * class. */
static uint64_t *find(const struct attempt *t, const struct spread_nodes *of)
{
    struct cycle *c = t->c;
    struct block_range all = {0, c->blocks};
    uint64_t *bits = arena_alloc(c->arena, (c->blocks + 1) * sizeof *bits);
    for (uint32_t b = 0; b < c->blocks; b++)
        bits[b] = layout_block_bits(c->l, b);
    for (uint32_t i = 0; i < of->topologies_len; i++) {
        const uint32_t *domain = of->topologies[i]->domain;
        EACH_NODE (p, all, bits)
            if (domain && domain[p] == NONE)
                REFUSE_NODE(p, all, bits);
    }
    if ((of->nodes == BERTH_SPREAD_REQUIRED || of->nodes == BERTH_SPREAD_BOTH) && filter_labels.applies(t))
        filter_labels.mask(t, all, bits);
    if (of->nodes == BERTH_SPREAD_TOLERATED || of->nodes == BERTH_SPREAD_BOTH)
        filter_taints.mask(t, all, bits);
    return bits;
}

/* Returns the topologies of all required, or of all preferred, spreads of the class. */
static const struct topology **topologies_of(struct attempt *t, bool required, uint32_t *ret_len)
{
    const struct topology **at =
        ARENA_ARRAY(t->c->scratch, const struct topology *, t->k->topology_constraints_len + 1);
    uint32_t len = 0;
    for (uint32_t i = 0; i < t->k->topology_constraints_len; i++) {
        const struct topology_constraint *topology_constraint =
            snapshot_topology_constraint(t->c->s, t->k->topology_constraints[i]);
        if (topology_constraint->kind == TOPOLOGY_SPREAD && (topology_constraint->weight == 0) == required)
            at[len++] = cycle_topology(t->c, topology_constraint->topology);
    }
    *ret_len = len;
    return at;
}

static bool counted_same(const struct spread_nodes *a, const struct spread_nodes *b)
{
    if (a->constraints != b->constraints || a->nodes != b->nodes || a->topologies_len != b->topologies_len)
        return false;
    for (uint32_t i = 0; i < a->topologies_len; i++)
        if (a->topologies[i] != b->topologies[i])
            return false;
    return true;
}

const uint64_t *spread_counted(struct attempt *t, const struct topology_constraint *topology_constraint)
{
    struct cycle *c = t->c;
    if (topology_constraint->nodes == BERTH_SPREAD_POSSIBLE)
        return NULL;
    struct spread_nodes x = {.constraints = t->k->constraints.v, .nodes = topology_constraint->nodes};
    const struct topology **topologies = topologies_of(t, topology_constraint->weight == 0, &x.topologies_len);
    x.topologies = topologies;
    for (const struct spread_nodes *at = c->spread_nodes; at; at = at->next)
        if (counted_same(at, &x))
            return at->bits;
    x.topologies = arena_dup(c->arena, topologies, x.topologies_len * sizeof *topologies);
    x.bits = find(t, &x);
    x.next = c->spread_nodes;
    c->spread_nodes = arena_dup(c->arena, &x, sizeof x);
    return x.bits;
}

const struct eligible_domains *spread_eligible(struct attempt *t, const struct topology_constraint *topology_constraint)
{
    struct cycle *c = t->c;
    const struct topology *topology = cycle_topology(c, topology_constraint->topology);
    const uint64_t *counted = spread_counted(t, topology_constraint),
                   *nodes = counted ? counted : attempt_constraints_mask(c, t);
    for (struct eligible_domains *e = c->eligibles; e; e = e->next)
        if (e->nodes == nodes && e->topology == topology)
            return e;
    struct eligible_domains *e = ARENA_NEW(c->arena, struct eligible_domains);
    uint64_t *domains = ARENA_ARRAY(c->arena, uint64_t, bits_words(topology->domains) + 1);
    for (uint32_t b = 0; b < c->blocks; b++)
        BITS_EACH (lane, nodes[b]) {
            uint32_t p = b * BLOCK + (uint32_t)lane, d = topology->domain ? topology->domain[p] : p;
            if (d != NONE)
                bits_add(domains, d);
        }
    uint32_t len = (uint32_t)bits_count(domains, bits_words(topology->domains));
    *e = (struct eligible_domains){nodes, topology, domains, len, c->eligibles};
    c->eligibles = e;
    return e;
}
