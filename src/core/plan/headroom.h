/* headroom.h - what is kept free in every zone, or in one domain, for what comes next.
 *
 * Counted over the ready nodes of a zone (those without one are a zone, too), or of the domain: what each has free at once. A pod
 * below the policy's priority is not placed in a zone that would then have less left than is kept, unless it is of a gang that
 * is large enough. One that takes over from another is no new demand and is not held to it. Kept with every change of the
 * books.
 */
#pragma once

#include "core/search/attempt.h"

struct headroom {
    int32_t priority;
    uint32_t tasks; /* of a gang that may use it; 0: none for its size */
    struct headroom_row {
        uint32_t resource;
        const char *domain;   /* NULL: of every zone */
        const uint32_t *zone; /* [position]: or the domain; NONE: not ready, or not of it, counts nowhere */
        int64_t *free, *keep; /* [zone] */
    } * at;
    uint32_t len;
};

/* NULL where nothing is kept. The policy is valid. */
struct headroom *headroom_new(struct cycle *c, const struct berth_headroom *from);
/* What the node has free counts no longer (sign -1), or again. */
void headroom_count(const struct cycle *c, uint32_t position, int sign);

/* Must the pods of the turn leave it alone? */
bool headroom_binds(const struct headroom *h, const struct turn *t);

/* Would one more pod of the class on this node leave enough of the row's resource? */
static inline bool headroom_left(const struct headroom *h, uint32_t row, const struct class *k, uint32_t position)
{
    const struct headroom_row *r = &h->at[row];
    int64_t need = class_need(k, r->resource);
    uint32_t zone = r->zone[position];
    return need == 0 || zone == NONE || r->keep[zone] == 0 || r->free[zone] - need >= r->keep[zone];
}
