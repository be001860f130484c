/* gpu_clustering.c - prefers nodes that hold pods with the same kind of GPU request: a share, or the same number of
 * GPUs.
 *
 * Nodes form four groups, a quarter of the score each: nodes with pods of that kind only; nodes with that kind and
 * others; nodes without GPU pods; nodes with other kinds. Within a group the node with the fewest free GPUs is better:
 * the node gets the part of its quarter that the GPUs of the largest node, less its free GPUs, are of the GPUs of the
 * largest node. After "Beware of Fragmentation" (ATC'23).
 */
#include "base/bits.h"
#include "core/score/scores.h"

/* Pods by node and kind of request. */
struct gpu_request_count_table {
    uint16_t *pods[GPU_REQUESTS]; /* [kind][position]; NULL: no pod has such a request */
    uint8_t *kinds;               /* [position]: number of kinds with pods there */
};

uint32_t gpu_request_kind(const struct gpu_need *need)
{
    return need->milli < BERTH_GPU_MILLI ? 0 : need->count;
}

static void count(struct cycle *c, struct gpu_request_count_table *g, const struct gpu_need *need, uint32_t position,
                  int sign)
{
    uint16_t **pods = &g->pods[gpu_request_kind(need)];
    if (!*pods)
        *pods = ARENA_ARRAY(c->arena, uint16_t, (size_t)c->blocks * BLOCK + 1);
    bool before = (*pods)[position] > 0;
    (*pods)[position] = (uint16_t)((*pods)[position] + sign);
    g->kinds[position] = (uint8_t)(g->kinds[position] + ((*pods)[position] > 0) - before);
}

static const struct gpu_request_count_table *request_counts_of(struct cycle *c)
{
    if (c->gpu_request_counts)
        return c->gpu_request_counts;
    struct gpu_request_count_table *g = ARENA_NEW(c->arena, struct gpu_request_count_table);
    g->kinds = ARENA_ARRAY(c->arena, uint8_t, (size_t)c->blocks * BLOCK + 1);
    for (uint32_t i = 0; i < c->s->instances.len; i++) {
        const struct instance *in = snapshot_instance(c->s, i);
        if (in->id && in->gpus && in->state != BERTH_ENDED && !bits_has(c->removed, i))
            count(c, g, &snapshot_class(c->s, in->class)->gpu, snapshot_position(c->s, in), 1);
    }
    for (size_t i = 0; i < c->acts.len; i++) {
        const struct plan_act *a = &c->acts.at[i];
        if ((a->op == BERTH_PLACE || a->op == BERTH_RESERVE) && a->gpus)
            count(c, g, &snapshot_class(c->s, snapshot_workload(c->s, a->workload)->class)->gpu, a->position, 1);
    }
    c->gpu_request_counts = g;
    return g;
}

void gpu_request_counts_update(struct cycle *c, const struct gpu_need *need, uint32_t position, int sign)
{
    if (c->gpu_request_counts)
        count(c, c->gpu_request_counts, need, position, sign);
}

static bool applies(const struct attempt *t)
{
    return t->k->gpu.count > 0;
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    const struct gpu_request_count_table *g = request_counts_of(t->c);
    const uint16_t *like = g->pods[gpu_request_kind(&t->k->gpu)];
    const struct resource_amounts d = gpu_amounts_at(t, p);
    int64_t group = like && like[p] ? (g->kinds[p] == 1 ? 3 : 2) : g->kinds[p] == 0;
    return score_ratio(t, group * d.largest + d.largest - d.free, 4 * d.largest);
}

SCORE_ADD(score_of)

const struct score score_gpu_clustering = {
    .name = "gpu_clustering",
    .text = "prefers nodes that run pods with the same kind of GPU request",
    .when = SCORE_BLOCK,
    .stepped = true,
    .applies = applies,
    .add = add,
};
