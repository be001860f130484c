/* search.h - finds the best node for the pods of a placement attempt without examining most nodes.
 *
 * Best-first branch and bound over the levels of the layout. The bound of an entry is its best key, less the least that
 * the shape can cost there, plus the bounds of the other scores. Entries in which no single column has enough are
 * dropped. The next block is opened only when no exact score beats its bound, so the result is that of a full scan: the
 * highest score, then the lowest position.
 *
 * In a nearly full cluster bounds are loose: the node with the best key is short of memory, the node with most memory
 * is short of cpu. So each class remembers, for each entry, the best score that was really found. As long as nothing is
 * freed in the entry, no later search of the class finds a better one: scores fall as resources are taken, and full
 * nodes stay full.
 */
#pragma once

#include "core/search/attempt.h"

struct search {
    struct attempt *t;
    uint64_t *heap;
    uint32_t len;
    uint64_t id;              /* sequence number of the search */
    struct search_memo *memo; /* NULL: this attempt cannot use remembered bounds */
    struct resource_cost {
        uint32_t resource;
        int32_t linear; /* weight of a share of it in the key */
        int64_t need;
    } costs[PROFILE_RESOURCES_MAX]; /* how much the shape lowers the key, per resource */
    uint32_t costs_len;
    int32_t part; /* the sum of costs less constant scores, in the segment peeked at last */
};

void search_begin(struct search *s, struct attempt *t);
/* Stores the position of the best node; false: no node can take one more pod. */
bool search_next(struct search *s, uint32_t *ret_position);
/* Continues after a pod was placed on the returned node and attempt_placed was called. */
void search_placed(struct search *s, uint32_t position);

/* Stores the best node for a reserving action, among nodes on which something is stopping. */
bool search_later(struct attempt *t, uint32_t *ret_position);
