/* gpu_kind.c - refuses a node without enough GPUs of the required model and memory, free or not. */
#include "core/filter/filters.h"
#include "core/gpu/gpu.h"

static bool applies(const struct attempt *t)
{
    return turn_rules(t)->gpu.count > 0;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    const struct gpu_need *need = &turn_rules(t)->gpu;
    EACH_NODE (p, blocks, bits) {
        uint32_t suited = 0;
        for (uint32_t d = t->c->l->device[p]; d < t->c->l->device[p + 1]; d++)
            suited += gpu_device_suits(t->c->l, need, d);
        if (suited < need->count)
            REFUSE_NODE(p, blocks, bits);
    }
}

const struct filter filter_gpu_kind = {
    .name = "gpu_kind",
    .text = "has GPUs of the requested model and memory",
    .reason = REASON_GPU_KIND,
    .when = FILTER_STATIC,
    .always = true,
    .applies = applies,
    .mask = mask,
};
