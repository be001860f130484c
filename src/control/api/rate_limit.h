/* rate_limit.h - how often one caller may ask: a bucket per caller that fills with time and is emptied by requests.
 *
 * Callers are texts: a token's id, or the remote address of those without one. Time is an argument and never goes back.
 * The table is bounded: when it is full, whoever was silent longest is forgotten and starts with a full bucket again. Knows
 * nothing of requests; what is shed, and with which answer, is control.c's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limits;

enum {
    LIMITS_MAX = 65536, /* callers remembered, if not said otherwise */
    LIMIT_WHO_MAX = 63, /* bytes of a caller that count; those alike so far share a bucket */
};

/* `max`: callers remembered; 0: LIMITS_MAX. The seed keeps strangers from choosing names that collide. */
struct limits *limits_new(size_t max, uint64_t seed);
void limits_free(struct limits *l);

/* Takes `cost` requests from the caller's bucket, which holds `burst` and gains `per_s` a second. False: the bucket has
 * less, and in *ret_retry_ns it will not. per_s of 0 or less: no limit. A burst below 1 counts as 1; a cost beyond the burst
 * counts as the burst. */
bool limit_take(struct limits *l, const char *who, double per_s, double burst, double cost, int64_t steady_ns,
                int64_t *ret_retry_ns);
/* Callers remembered now. */
size_t limits_len(const struct limits *l);
