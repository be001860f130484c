/* ports.c - refuses a node on which a requested port is held at the same address, or where one of the two holds it at
 * all addresses.
 *
 * For a reservation, ports of stopping instances are free.
 */
#include "base/plant.h"
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return t->k->ports_len > 0;
}

/* Refuses nodes for one port. `freed`: ports of stopping instances are free. */
static void refuse(const struct attempt *t, uint32_t port, bool freed, struct block_range blocks, uint64_t *bits)
{
    PORT_RIVALS_EACH (port_or_volume, &t->c->s->ports_and_volumes, port)
        HOLDS_EACH (h, t, port_or_volume)
            if (h.position / BLOCK >= blocks.from && h.position / BLOCK < blocks.to && !(freed && h.leaving))
                REFUSE_NODE(h.position, blocks, bits);
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->k->ports_len && !PLANTED(PORTS_SHARED); i++)
        refuse(t, t->k->ports[i], t->later, blocks, bits);
}

static uint32_t aspects(const struct attempt *t)
{
    return t->k->ports_len;
}

static void mask_aspect(const struct attempt *t, uint32_t aspect, struct block_range blocks, uint64_t *bits)
{
    refuse(t, t->k->ports[aspect], false, blocks, bits);
}

static const char *aspect_name(const struct attempt *t, uint32_t aspect)
{
    return snapshot_text(t->c->s, snapshot_port_or_volume(t->c->s, t->k->ports[aspect])->name);
}

const struct filter filter_ports = {
    .name = "ports",
    .text = "has the ports free",
    .reason = REASON_PORT,
    .when = FILTER_ATTEMPT,
    .always = true,
    .applies = applies,
    .mask = mask,
    .aspects = aspects,
    .mask_aspect = mask_aspect,
    .aspect_name = aspect_name,
};
