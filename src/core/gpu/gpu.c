/* gpu.c - checks and picks devices. */
#include "core/gpu/gpu.h"

#include <assert.h>

#include "core/backfill/reservation.h"
#include "core/gpu/fragmentation.h"
#include "core/gpu/gpu_cost.h"

bool gpu_device_suits(const struct layout *l, const struct gpu_need *need, uint32_t device)
{
    const struct device *d = &l->devices[device];
    bool model = need->kinds.len == 0;

    for (uint32_t i = 0; i < need->kinds.len; i++)
        model |= need->kinds.at[i] == d->kind;
    return model && !d->unhealthy && d->memory_bytes >= need->memory_bytes;
}

int32_t gpu_milli_left(const struct attempt *t, uint32_t device)
{
    const struct device_free *f = &t->c->devices[device];
    if (t->later)
        return f->later;
    return f->now < f->later ? f->now : f->later;
}

bool gpu_device_fits(const struct attempt *t, uint32_t device)
{
    const struct device_free *f = &t->c->devices[device];
    int64_t mem = t->later || f->mem_later < f->mem_now ? f->mem_later : f->mem_now;

    if (gpu_milli_left(t, device) < (int32_t)t->k->gpu.milli)
        return false;
    if (t->k->gpu.milli < BERTH_GPU_MILLI && mem < t->k->gpu.memory_bytes)
        return false;
    return gpu_device_suits(t->c->l, &t->k->gpu, device);
}

bool gpu_node_fits(const struct attempt *t, uint32_t position)
{
    const struct layout *l = t->c->l;
    uint32_t found = 0;
    for (uint32_t d = l->device[position]; d < l->device[position + 1] && found < t->k->gpu.count; d++)
        found += gpu_device_fits(t, d);
    return found >= t->k->gpu.count;
}

uint64_t gpu_pick(const struct attempt *t, uint32_t position)
{
    const struct layout *l = t->c->l;
    uint32_t first = l->device[position], left = t->k->gpu.count;
    uint64_t picked = 0, may = reservations_devices(t, position);

    if (t->k->gpu.milli < BERTH_GPU_MILLI) {
        if (t->c->gpu_prices)
            return (uint64_t)1 << gpu_cost_of(t, position).device;
        if (t->c->profile.fragmentation)
            return (uint64_t)1 << fragmentation_of(t, position).device;
        int32_t least = INT32_MAX;
        uint32_t best = NONE;
        for (uint32_t d = first; d < l->device[position + 1]; d++) {
            int32_t milli = gpu_milli_left(t, d);
            if (milli < least && may >> (d - first) & 1 && gpu_device_fits(t, d)) {
                least = milli;
                best = d;
            }
        }
        assert(best != NONE);
        return (uint64_t)1 << (best - first);
    }
    for (uint32_t d = first; d < l->device[position + 1] && left; d++)
        if (may >> (d - first) & 1 && gpu_device_fits(t, d)) {
            picked |= (uint64_t)1 << (d - first);
            left--;
        }
    assert(left == 0);
    return picked;
}
