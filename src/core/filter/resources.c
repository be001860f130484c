/* resources.c - refuses a node with less of any free resource than the pod requests.
 *
 * Compares requests, never live usage, so that the result can be replayed. Over-commit is already applied in the
 * layout.
 */
#include "base/bits.h"
#include "base/lanes.h"
#include "core/filter/filters.h"

enum { FEW_NODES = 6 }; /* number of nodes in a block up to which single checks are faster than the whole block */

static bool applies(const struct attempt *t)
{
    return t->k->needs_len > 0;
}

static void mask_aspect(const struct attempt *t, uint32_t aspect, struct block_range blocks, uint64_t *bits)
{
    const struct resource_need *need = &t->k->needs[aspect];
    const int64_t *column = cycle_column(t->c, need->resource, t->later);

    for (uint32_t b = blocks.from; b < blocks.to; b++)
        bits[b - blocks.from] &= column ? lanes_at_least(column + (size_t)b * BLOCK, need->amount) : 0;
}

static bool fits(const struct attempt *t, uint32_t position)
{
    for (uint32_t i = 0; i < t->k->needs_len; i++) {
        const int64_t *column = cycle_column(t->c, t->k->needs[i].resource, t->later);
        if (!column || column[position] < t->k->needs[i].amount)
            return false;
    }
    return true;
}

static bool are_few(uint64_t bits)
{
    for (unsigned n = 0; bits && n < FEW_NODES; n++)
        bits &= bits - 1;
    return !bits;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    if (blocks.to - blocks.from == 1 && are_few(bits[0])) {
        BITS_EACH (i, bits[0])
            if (!fits(t, blocks.from * BLOCK + (uint32_t)i))
                bits[0] &= ~((uint64_t)1 << i);
        return;
    }
    for (uint32_t i = 0; i < t->k->needs_len; i++)
        mask_aspect(t, i, blocks, bits);
}

static uint32_t aspects(const struct attempt *t)
{
    return t->k->needs_len;
}

static const char *aspect_name(const struct attempt *t, uint32_t aspect)
{
    return snapshot_text(t->c->s, t->c->s->resources[t->k->needs[aspect].resource].name);
}

const struct filter filter_resources = {
    .name = "resources",
    .text = "has enough of each requested resource, including huge pages",
    .reason = REASON_SHORT,
    .when = FILTER_BLOCK,
    .always = true,
    .applies = applies,
    .mask = mask,
    .aspects = aspects,
    .mask_aspect = mask_aspect,
    .aspect_name = aspect_name,
};
