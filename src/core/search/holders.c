/* holders.c - ports and volumes held, updated as the plan places pods. */
#include "core/search/holders.h"

#include <assert.h>

#include "base/bits.h"

struct holders_walk holders_begin(const struct cycle *c, uint32_t port_or_volume)
{
    return (struct holders_walk){.c = c,
                                 .old = snapshot_port_or_volume(c->s, port_or_volume)->first,
                                 .fresh = c->planned_holds ? c->planned_holds[port_or_volume] : NULL};
}

bool holders_next(struct holders_walk *w)
{
    const struct berth_snapshot *s = w->c->s;
    while (w->old != NONE) {
        const struct port_or_volume_hold *h = pages_at(&s->holds, w->old);
        w->old = h->next;
        w->now = (struct resource_holder){s->layout->position[h->node], false};
        if (h->instance == NONE)
            return true;
        if (bits_has(w->c->removed, h->instance))
            continue;
        w->now.leaving =
            snapshot_instance(s, h->instance)->state == BERTH_STOPPING || bits_has(w->c->stopped, h->instance);
        return true;
    }
    if (!w->fresh)
        return false;
    w->now = (struct resource_holder){w->fresh->position, false};
    w->fresh = w->fresh->next;
    return true;
}

/* Takes an attachment of the driver on the node (sign 1) or gives it back, unless another pod there holds the
 * volume. */
static void attach(struct cycle *c, uint32_t port_or_volume, uint32_t position, int sign)
{
    uint32_t driver = snapshot_port_or_volume(c->s, port_or_volume)->driver;
    if (!cycle_column(c, driver, false))
        return;
    for (struct holders_walk w = holders_begin(c, port_or_volume); holders_next(&w);)
        if (w.now.position == position)
            return;
    cycle_shift(c, driver, position, -sign);
}

static void take_one(struct cycle *c, uint32_t port_or_volume, uint32_t position)
{
    struct planned_hold *h = ARENA_NEW(c->arena, struct planned_hold);
    *h = (struct planned_hold){position, c->planned_holds[port_or_volume]};
    c->planned_holds[port_or_volume] = h;
}

static void release_one(struct cycle *c, uint32_t port_or_volume, uint32_t position)
{
    assert(c->planned_holds[port_or_volume]->position == position);
    c->planned_holds[port_or_volume] = c->planned_holds[port_or_volume]->next;
}

void holds_release(struct cycle *c, const struct instance *i)
{
    const struct class *k = snapshot_class(c->s, i->class);
    for (uint32_t v = 0; v < k->volumes_len; v++)
        attach(c, k->volumes[v], snapshot_position(c->s, i), -1);
}

void holds_take(struct cycle *c, const struct class *k, uint32_t position)
{
    if (k->ports_len + k->volumes_len && !c->planned_holds)
        c->planned_holds = ARENA_ARRAY(c->arena, struct planned_hold *, c->s->ports_and_volumes.len + 1);
    for (uint32_t i = 0; i < k->ports_len; i++)
        take_one(c, k->ports[i], position);
    for (uint32_t i = 0; i < k->volumes_len; i++) {
        attach(c, k->volumes[i], position, 1);
        take_one(c, k->volumes[i], position);
    }
}

void holds_undo(struct cycle *c, const struct class *k, uint32_t position)
{
    for (uint32_t i = k->volumes_len; i-- > 0;) {
        release_one(c, k->volumes[i], position);
        attach(c, k->volumes[i], position, -1);
    }
    for (uint32_t i = k->ports_len; i-- > 0;)
        release_one(c, k->ports[i], position);
}
