/* net_share.h - what each may receive of a line, by weight; a function of numbers.
 *
 * What is sent waits in a queue that knows shares (net_class.h); what is received has passed the line already when it is seen.
 * So everybody is given a bound: its share of the line among those who receive, and what others leave of theirs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct net_share {
    int64_t weight; /* 0: none: it is bounded by `limit` alone, and what it takes is taken off the line */
    int64_t limit;  /* bytes a second at most; 0: none */
    int64_t rate;   /* received of late, in bytes a second */
    int64_t bound;  /* in: the bound until now, 0: none; out: the new one */
};

/* Who receives less than four fifths of its bound is content with a quarter more than it receives, and leaves the rest to the others,
 * until it wants its share again: that it may always begin with. `capacity` 0: not known; weights say nothing then. */
void net_share_out(int64_t capacity, struct net_share *at, size_t len);
