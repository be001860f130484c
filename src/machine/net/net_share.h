/* net_share.h - shares out the receive bandwidth of a line by weights; a pure function.
 *
 * Sent traffic waits in a qdisc that implements shares (net_class.h); received traffic has already passed the line when
 * it is seen. Therefore, each receiver gets a bound: its share of the line among the active receivers, plus what others
 * leave of their shares.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct net_share {
    int64_t weight; /* 0: only `limit` bounds it, and its rate is subtracted from the line */
    int64_t limit;  /* maximum bytes per second; 0: none */
    int64_t rate;   /* recently received bytes per second */
    int64_t bound;  /* input: present bound, 0: none; output: new bound */
};

/* Computes the bounds. A receiver below four fifths of its bound gets a quarter more than its rate and leaves the rest
 * to the others, but never less than its share, so that it can speed up at any time. `capacity` 0: unknown; weights
 * then have no effect. */
void net_share_out(int64_t capacity, struct net_share *at, size_t len);
