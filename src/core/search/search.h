/* search.h - the best node for the pods of a turn, without looking at most nodes.
 *
 * Best-first branch and bound over the levels of the layout: an entry's bound is its best key, less the least that the
 * shape can cost there, plus the bounds of the other scores; entries in which no single column has enough are dropped.
 * The next block is opened only when no exact score beats its bound, so the answer is the same as that of a full scan:
 * the highest score, then the lowest position.
 *
 * In a nearly full cluster bounds are loose: the node with the best key is short of memory, the one with most memory of
 * cpu. So each class remembers, for each entry, the best score that was really there. As long as nothing is given back
 * in it, no later search of the class finds better: a score falls with what is taken, and what is full stays full.
 */
#pragma once

#include "core/search/attempt.h"

struct search {
    struct turn *t;
    uint64_t *heap;
    uint32_t len;
    uint64_t id;       /* number of the search */
    struct memo *memo; /* NULL: nothing can be remembered for this turn */
    struct cost {
        uint32_t resource;
        int32_t linear; /* what a share of it is worth in the key */
        int64_t need;
    } costs[PROFILE_RESOURCES_MAX]; /* what the shape takes from the key */
    uint32_t costs_len;
    int32_t part; /* that, less what live scores add, in the segment peeked at last */
};

void search_begin(struct search *s, struct turn *t);
/* The best node; false: none can take one more. */
bool search_next(struct search *s, uint32_t *ret_position);
/* The node that was returned has been taken, and the turn told so; others may follow. */
void search_placed(struct search *s, uint32_t position);

/* The best node for what can only be reserved: among nodes on which something is stopping. */
bool search_later(struct turn *t, uint32_t *ret_position);
