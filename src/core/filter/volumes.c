/* volumes.c - refuses a node that cannot reach a volume (another zone or node), or a node other than the one that uses
 * a volume which only one node may mount.
 */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return t->k->volumes_len > 0;
}

static void mask_aspect(const struct attempt *t, uint32_t aspect, struct block_range blocks, uint64_t *bits)
{
    const struct port_or_volume *v = snapshot_port_or_volume(t->c->s, t->k->volumes[aspect]);

    EACH_NODE (p, blocks, bits)
        if ((v->zone && t->c->l->zone[p] != v->zone) || (v->node && t->c->l->id[p] != v->node))
            REFUSE_NODE(p, blocks, bits);
    if (v->shared)
        return;
    /* Volumes of stopping instances count, too: a reservation cannot wait for an instance of another node. */
    HOLDS_EACH (h, t, t->k->volumes[aspect])
        EACH_NODE (p, blocks, bits)
            if (p != h.position)
                REFUSE_NODE(p, blocks, bits);
}

static uint32_t aspects(const struct attempt *t)
{
    return t->k->volumes_len;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->k->volumes_len; i++)
        mask_aspect(t, i, blocks, bits);
}

static const char *aspect_name(const struct attempt *t, uint32_t aspect)
{
    return snapshot_text(t->c->s, snapshot_port_or_volume(t->c->s, t->k->volumes[aspect])->name);
}

const struct filter filter_volumes = {
    .name = "volumes",
    .text = "can access the volumes",
    .reason = REASON_VOLUME,
    .when = FILTER_ATTEMPT,
    .always = true,
    .applies = applies,
    .mask = mask,
    .aspects = aspects,
    .mask_aspect = mask_aspect,
    .aspect_name = aspect_name,
};
