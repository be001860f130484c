/* dims.c - amounts that several scores look at. */
#include "base/bits.h"
#include "core/score/scores.h"

static struct dim dim_gpu(const struct turn *t, uint32_t p)
{
    const struct layout *l = t->c->l;
    struct dim d = {.need = (int64_t)t->k->gpu.count * t->k->gpu.milli, .largest = t->c->largest[0]};

    for (uint32_t i = l->device[p]; i < l->device[p + 1]; i++) {
        const struct device_free *f = &t->c->devices[i];
        d.free += f->now < f->later ? f->now : f->later;
        d.capacity += BERTH_GPU_MILLI;
    }
    return d;
}

struct dim dim_at(const struct turn *t, uint32_t i, uint32_t p)
{
    uint32_t r = t->c->profile.resources[i];
    if (r == RESOURCE_GPU)
        return dim_gpu(t, p);
    const int64_t *column = cycle_column(t->c, r, t->later);
    struct dim d = {.capacity = snapshot_capacity(t->c->s, r, p), .largest = t->c->largest[1 + i]};
    d.free = column ? column[p] : 0;
    for (uint32_t n = 0; n < t->k->needs_len; n++)
        d.need += t->k->needs[n].resource == r ? t->k->needs[n].amount : 0;
    return d;
}

int32_t score_from(double value)
{
    if (!(value > 0))
        return 0;
    return value < 1 ? (int32_t)(value * SCORE_ONE) : SCORE_ONE;
}

static bool same_request(const struct gpu_cluster *g, const struct gpu_need *need)
{
    return g->count == need->count && g->milli == need->milli;
}

const struct gpu_cluster *gpu_cluster_of(struct cycle *c, const struct gpu_need *need)
{
    for (struct gpu_cluster *g = c->gpu_clusters; g; g = g->next)
        if (same_request(g, need))
            return g;
    struct gpu_cluster *g = ARENA_NEW(c->arena, struct gpu_cluster);
    *g = (struct gpu_cluster){need->count, need->milli, NULL, c->gpu_clusters};
    g->pods = ARENA_ARRAY(c->arena, uint16_t, (size_t)c->blocks * BLOCK + 1);
    for (uint32_t i = 0; i < c->s->instances.len; i++) {
        const struct instance *in = snapshot_instance(c->s, i);
        if (in->id && in->gpus && in->state != BERTH_ENDED && !bits_has(c->removed, i) &&
            same_request(g, &snapshot_class(c->s, in->class)->gpu))
            g->pods[snapshot_position(c->s, in)]++;
    }
    for (size_t i = 0; i < c->acts.len; i++) {
        const struct act *a = &c->acts.at[i];
        if ((a->op == BERTH_PLACE || a->op == BERTH_RESERVE) && a->gpus &&
            same_request(g, &snapshot_class(c->s, snapshot_workload(c->s, a->workload)->class)->gpu))
            g->pods[a->position]++;
    }
    c->gpu_clusters = g;
    return g;
}

void gpu_cluster_count(struct cycle *c, const struct gpu_need *need, uint32_t position, int sign)
{
    for (struct gpu_cluster *g = c->gpu_clusters; g; g = g->next)
        if (same_request(g, need))
            g->pods[position] = (uint16_t)(g->pods[position] + sign);
}
