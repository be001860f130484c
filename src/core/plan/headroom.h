/* headroom.h - resources kept free in every zone, or in one domain, for future work.
 *
 * Headroom is summed over what the ready nodes of a zone (nodes without a zone form one zone), or of the domain, have
 * free at once. A pod below the policy's priority is not placed in a zone that would then have less free than the
 * headroom, unless its gang is large enough. Replacement instances are no new demand and are exempt. The sums are
 * updated with every change of the books.
 */
#pragma once

#include "core/search/attempt.h"

struct headroom {
    int32_t priority;
    uint32_t tasks; /* gangs of at least so many pods may use it; 0: no gang may */
    struct headroom_row {
        uint32_t resource;
        const char *domain;   /* NULL: every zone */
        const uint32_t *zone; /* [position]: zone or domain index; NONE: not ready or outside the domain */
        int64_t *free, *keep; /* [zone] */
    } * at;
    uint32_t len;
};

/* Returns NULL if no headroom is kept. The policy is valid. */
struct headroom *headroom_new(struct cycle *c, const struct berth_headroom *from);
/* Subtracts what the node has free from the sums (sign -1), or adds it again (sign 1). */
void headroom_count(const struct cycle *c, uint32_t position, int sign);

/* Returns whether pods of the placement attempt must leave the headroom free. */
bool headroom_binds(const struct headroom *h, const struct attempt *t);

/* Returns whether one more pod of the class on this node leaves enough of the row's resource. */
static inline bool headroom_left(const struct headroom *h, uint32_t row, const struct class *k, uint32_t position)
{
    const struct headroom_row *r = &h->at[row];
    int64_t need = class_need(k, r->resource);
    uint32_t zone = r->zone[position];
    return need == 0 || zone == NONE || r->keep[zone] == 0 || r->free[zone] - need >= r->keep[zone];
}
