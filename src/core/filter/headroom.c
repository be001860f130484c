/* headroom.c - refuses all nodes of a zone or domain that would have less free than the headroom to be kept there, see
 * core/plan/headroom.h.
 */
#include "core/plan/headroom.h"
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return t->c->headroom && headroom_binds(t->c->headroom, t);
}

static void mask_aspect(const struct attempt *t, uint32_t aspect, struct block_range blocks, uint64_t *bits)
{
    EACH_NODE (p, blocks, bits)
        if (!headroom_left(t->c->headroom, aspect, t->k, p))
            REFUSE_NODE(p, blocks, bits);
}

static uint32_t aspects(const struct attempt *t)
{
    return t->c->headroom->len;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->c->headroom->len; i++)
        mask_aspect(t, i, blocks, bits);
}

static const char *aspect_name(const struct attempt *t, uint32_t aspect)
{
    return snapshot_text(t->c->s, t->c->s->resources[t->c->headroom->at[aspect].resource].name);
}

const struct filter filter_headroom = {
    .name = "headroom",
    .text = "keeps the headroom of its zone or domain free",
    .reason = REASON_HEADROOM,
    .when = FILTER_BLOCK,
    .always = true,
    .applies = applies,
    .mask = mask,
    .aspects = aspects,
    .mask_aspect = mask_aspect,
    .aspect_name = aspect_name,
};
