/* attach.c - refuses a node to which no more volumes of a driver can be attached.
 *
 * The limit of a node is its resource `attach-DRIVER`; a node without that resource has no limit. A volume counts once
 * per node.
 */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    for (uint32_t i = 0; i < t->k->volumes_len; i++)
        if (cycle_column(t->c, snapshot_port_or_volume(t->c->s, t->k->volumes[i])->driver, false))
            return true;
    return false;
}

static bool is_attached_here(const struct attempt *t, uint32_t port_or_volume, uint32_t position)
{
    HOLDS_EACH (h, t, port_or_volume)
        if (h.position == position)
            return true;
    return false;
}

/* Returns the number of volumes of this driver that the pod would newly attach to the node. */
static int64_t volumes_to_attach(const struct attempt *t, uint32_t driver, uint32_t position)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < t->k->volumes_len; i++)
        n += snapshot_port_or_volume(t->c->s, t->k->volumes[i])->driver == driver &&
             !is_attached_here(t, t->k->volumes[i], position);
    return n;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->k->volumes_len; i++) {
        uint32_t driver = snapshot_port_or_volume(t->c->s, t->k->volumes[i])->driver;
        const int64_t *left = cycle_column(t->c, driver, false);
        if (!left)
            continue;
        EACH_NODE (p, blocks, bits) {
            int64_t more =
                volumes_to_attach(t, driver, p); /* attached volumes need no place, even on a node above its limit */
            if (more > 0 && left[p] < more)
                REFUSE_NODE(p, blocks, bits);
        }
    }
}

const struct filter filter_attach = {
    .name = "attach",
    .text = "can attach the volumes",
    .reason = REASON_ATTACH,
    .when = FILTER_ATTEMPT,
    .always = true,
    .applies = applies,
    .mask = mask,
};
