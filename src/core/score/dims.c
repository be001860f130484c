/* dims.c - amounts that several scores use. */
#include "base/plant.h"
#include "core/score/scores.h"

struct dim dim_gpu(const struct turn *t, uint32_t p)
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

/* Scales a number of whole steps to the range of scores. */
static int32_t stepped(uint32_t steps, int64_t whole)
{
    return (int32_t)(whole * SCORE_ONE / steps);
}

int32_t score_from(const struct turn *t, double value)
{
    uint32_t steps = t->c->profile.steps;
    if (PLANTED(TABLE_SCORE))
        value = 1 - value;
    if (!(value > 0))
        return 0;
    if (value >= 1)
        return SCORE_ONE;
    return steps ? stepped(steps, (int64_t)(value * steps)) : (int32_t)(value * SCORE_ONE);
}

int32_t score_ratio(const struct turn *t, int64_t part, int64_t whole)
{
    uint32_t steps = t->c->profile.steps;
    if (part <= 0 || whole <= 0)
        return 0;
    if (part >= whole)
        return SCORE_ONE;
    return steps ? stepped(steps, part * steps / whole) : (int32_t)(part * SCORE_ONE / whole);
}
