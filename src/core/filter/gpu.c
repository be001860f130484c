/* gpu.c - refuses a node on which too few suitable GPUs, or too small a share of one, are free. */
#include "core/gpu/gpu.h"
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return t->k->gpu.count > 0;
}

/* Returns whether the node has enough suitable GPUs, free or not. Otherwise gpu_kind.c refuses it, so that each refusal
 * has one reason. */
static bool has_suitable_gpus(const struct attempt *t, uint32_t position)
{
    uint32_t suited = 0;
    for (uint32_t d = t->c->l->device[position]; d < t->c->l->device[position + 1]; d++)
        suited += gpu_device_suits(t->c->l, &t->k->gpu, d);
    return suited >= t->k->gpu.count;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    EACH_NODE (p, blocks, bits)
        if (!gpu_node_fits(t, p) && has_suitable_gpus(t, p))
            REFUSE_NODE(p, blocks, bits);
}

const struct filter filter_gpu = {
    .name = "gpu",
    .text = "has enough free GPUs",
    .reason = REASON_GPU,
    .when = FILTER_BLOCK,
    .always = true,
    .by_constraints = true,
    .applies = applies,
    .mask = mask,
};
