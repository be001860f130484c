/* dims.c - amounts that several scores use. */
#include "base/plant.h"
#include "core/score/scores.h"

struct resource_amounts gpu_amounts_at(const struct attempt *t, uint32_t p)
{
    const struct layout *l = t->c->l;
    struct resource_amounts d = {.need = (int64_t)t->k->gpu.count * t->k->gpu.milli, .largest = t->c->largest[0]};

    for (uint32_t i = l->device[p]; i < l->device[p + 1]; i++) {
        const struct device_free *f = &t->c->devices[i];
        d.free += f->now < f->later ? f->now : f->later;
        d.capacity += BERTH_GPU_MILLI;
    }
    return d;
}

struct resource_amounts resource_amounts_at(const struct attempt *t, uint32_t i, uint32_t p)
{
    uint32_t r = t->c->profile.resources[i];
    if (r == RESOURCE_GPU)
        return gpu_amounts_at(t, p);
    const int64_t *column = cycle_column(t->c, r, t->later);
    struct resource_amounts d = {.capacity = snapshot_capacity(t->c->s, r, p), .largest = t->c->largest[1 + i]};
    d.free = column ? column[p] : 0;
    for (uint32_t n = 0; n < t->k->needs_len; n++)
        d.need += t->k->needs[n].resource == r ? t->k->needs[n].amount : 0;
    return d;
}

/* Scales a number of whole steps to the range of scores. */
static int32_t score_of_steps(uint32_t steps, int64_t whole)
{
    return (int32_t)(whole * SCORE_ONE / steps);
}

int32_t score_from(const struct attempt *t, double value)
{
    uint32_t steps = t->c->profile.steps;
    if (PLANTED(TABLE_SCORE))
        value = 1 - value;
    if (!(value > 0))
        return 0;
    if (value >= 1)
        return SCORE_ONE;
    return steps ? score_of_steps(steps, (int64_t)(value * steps)) : (int32_t)(value * SCORE_ONE);
}

int32_t score_ratio(const struct attempt *t, int64_t part, int64_t whole)
{
    uint32_t steps = t->c->profile.steps;
    if (part <= 0 || whole <= 0)
        return 0;
    if (part >= whole)
        return SCORE_ONE;
    return steps ? score_of_steps(steps, part * steps / whole) : (int32_t)(part * SCORE_ONE / whole);
}
