/* resources.c - refuses a node with less of any resource than the pod requests.
 *
 * Compares requests, never live usage, so that a verdict can be replayed. Knows nothing of over-commit: the layout has
 * applied it.
 */
#include "base/clones.h"
#include "core/filter/filters.h"

typedef int64_t lanes __attribute__((vector_size(32), aligned(8)));

/* One bit per lane of 64 values that are at least `amount`. */
CLONES static uint64_t at_least(const int64_t *column, int64_t amount)
{
    const lanes need = {amount, amount, amount, amount};
    lanes got = {0};
    for (unsigned i = 0; i < BLOCK; i += 4) {
        const lanes *four = (const lanes *)(const void *)(column + i);
        lanes bit = {(int64_t)((uint64_t)1 << i), (int64_t)((uint64_t)2 << i), (int64_t)((uint64_t)4 << i),
                     (int64_t)((uint64_t)8 << i)};
        got |= (*four >= need) & bit;
    }
    return (uint64_t)(got[0] | got[1] | got[2] | got[3]);
}

static bool applies(const struct turn *t)
{
    return t->k->needs_len > 0;
}

static void mask_aspect(const struct turn *t, uint32_t aspect, struct range blocks, uint64_t *bits)
{
    const struct need *need = &t->k->needs[aspect];
    const int64_t *column = cycle_column(t->c, need->resource, t->later);

    for (uint32_t b = blocks.from; b < blocks.to; b++)
        bits[b - blocks.from] &= column ? at_least(column + (size_t)b * BLOCK, need->amount) : 0;
}

static void mask(const struct turn *t, struct range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->k->needs_len; i++)
        mask_aspect(t, i, blocks, bits);
}

static uint32_t aspects(const struct turn *t)
{
    return t->k->needs_len;
}

static const char *aspect_name(const struct turn *t, uint32_t aspect)
{
    return snapshot_text(t->c->s, t->c->s->resources[t->k->needs[aspect].resource].name);
}

const struct filter filter_resources = {
    .name = "resources",
    .text = "has enough of every resource, huge pages included",
    .reason = REASON_SHORT,
    .when = FILTER_BLOCK,
    .applies = applies,
    .mask = mask,
    .aspects = aspects,
    .mask_aspect = mask_aspect,
    .aspect_name = aspect_name,
};
