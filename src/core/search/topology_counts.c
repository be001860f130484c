/* topology_counts.c - topology counts of one placement attempt, kept for the next one with the same constraint.
 *
 * Many single-pod workloads with the same labels would count each other's pods again and again. Kept counts are valid
 * as long as nothing was stopped or revoked since; placements are added. Counts over few pods are not kept.
 */
#include <string.h>

#include "core/search/attempt.h"

enum { CACHED_PODS_MIN = 64 }; /* least number of examined pods for which counts are kept */

struct topology_counts {
    const struct topology_constraint *topology_constraint;
    bool mirror, lasting;
    const uint64_t *counted;
    int32_t *count; /* [domain] */
    int64_t total;
    uint32_t going, seen, revocations;
    size_t acts; /* number of actions included */
    struct topology_counts *next;
};

static struct topology_counts *topology_counts_find(const struct cycle *c, const struct topology_state *ts)
{
    for (struct topology_counts *y = c->topology_counts_cache; y; y = y->next)
        if (y->topology_constraint == ts->topology_constraint && y->mirror == ts->mirror && y->lasting == ts->lasting &&
            y->counted == ts->counted)
            return y;
    return NULL;
}

bool topology_state_selects(const struct cycle *c, const struct topology_state *ts, uint32_t workload)
{
    const struct workload *w = snapshot_workload(c->s, workload);
    const struct label_set *set = pages_at(&c->s->label_sets, w->label_set);
    const struct anti_affinity_use *u;
    if (!ts->mirror)
        return term_holds(&c->s->names, &ts->topology_constraint->select, set->labels);
    for (uint32_t at = w->uses; at != NONE; at = u->more) {
        u = pages_at(&c->s->uses, at);
        if (u->topology_constraint == ts->mirrored)
            return true;
    }
    return false;
}

/* Adds the placements made since. Returns false if the pods must be counted again. */
static bool catch_up(const struct cycle *c, struct topology_counts *y, struct topology_state *ts)
{
    if (y->revocations != c->revocations || c->acts.len - y->acts > y->seen / 2)
        return false;
    memcpy(ts->count, y->count, ts->topology->domains * sizeof *y->count);
    ts->total = y->total;
    ts->going = y->going;
    for (; y->acts < c->acts.len; y->acts++) {
        const struct plan_act *a = &c->acts.at[y->acts];
        if (a->op == BERTH_ADJUST)
            continue;
        if (a->op != BERTH_PLACE && a->op != BERTH_RESERVE)
            return false;
        if (topology_state_selects(c, ts, a->workload))
            topology_count_pod(ts, a->position, false);
    }
    return true;
}

void topology_count_cached(struct cycle *c, struct topology_state *ts)
{
    struct topology_counts *y = ts->leaving ? NULL : topology_counts_find(c, ts);
    size_t bytes = ts->topology->domains * sizeof *ts->count;
    if (!y || !catch_up(c, y, ts)) {
        memset(ts->count, 0, bytes);
        ts->total = 0;
        ts->going = 0;
        uint32_t seen = topology_count(c, ts);
        if (seen < CACHED_PODS_MIN || ts->leaving)
            return;
        if (!y) {
            y = ARENA_NEW(c->arena, struct topology_counts);
            *y = (struct topology_counts){.topology_constraint = ts->topology_constraint,
                                          .next = c->topology_counts_cache,
                                          .counted = ts->counted};
            y->mirror = ts->mirror;
            y->lasting = ts->lasting;
            y->count = arena_alloc(c->arena, bytes + sizeof *y->count);
            c->topology_counts_cache = y;
        }
        y->seen = seen;
        y->revocations = c->revocations;
        y->acts = c->acts.len;
    }
    memcpy(y->count, ts->count, bytes);
    y->total = ts->total;
    y->going = ts->going;
}
