/* rate_limit.h - limits the request rate of each caller with a token bucket.
 *
 * A caller is a text, such as "user:NAME", or the client address of an unauthenticated caller. Time is an argument and
 * never goes back. The table is bounded: when the table is full, the caller that was idle longest is dropped and starts
 * again with a full bucket. This module does not know requests; handle.c chooses the limits and the answers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate_limits;

enum {
    LIMITS_MAX = 65536,    /* callers in the table, by default */
    LIMIT_CALLER_MAX = 63, /* significant bytes of a caller's name; callers with equal prefixes share a bucket */
};

/* `max`: callers in the table; 0: LIMITS_MAX. The secret seed prevents clients from choosing names whose hashes
 * collide. */
struct rate_limits *limits_new(size_t max, uint64_t seed);
void limits_free(struct rate_limits *l);

/* Takes `cost` requests from the caller's bucket, which holds `burst` and gains `per_s` a second. Returns false if the
 * bucket has less; *ret_retry_ns is the time until it has enough. per_s of 0 or less: no limit. A burst below 1 counts
 * as 1; a cost beyond the burst counts as the burst. */
bool limit_take(struct rate_limits *l, const char *who, double per_s, double burst, double cost, int64_t steady_ns,
                int64_t *ret_retry_ns);
/* Returns the number of callers in the table. */
size_t limits_len(const struct rate_limits *l);
