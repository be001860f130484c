#include "machine/net/net_share.h"

#include <stdbool.h>

enum { CONTENT_PERCENT = 80, SPARE_PERCENT = 125 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t part(int64_t of, int64_t weight, int64_t sum)
{
    return sum ? (int64_t)((__int128)of * weight / sum) : 0;
}

/* Returns the rate that it would use without a bound: INT64_MAX if it is near its bound. */
static int64_t wanted_rate(const struct net_share *s)
{
    bool content = !s->bound || s->rate < s->bound / 100 * CONTENT_PERCENT;
    int64_t want = content ? s->rate / 100 * SPARE_PERCENT : INT64_MAX;
    return s->limit ? least(want, s->limit) : want;
}

/* Water filling in rounds: a receiver with a demand below its share gets its demand, and the others share the rest. */
void net_share_out(int64_t capacity, struct net_share *at, size_t len)
{
    int64_t left = capacity, sum = 0, all = 0;
    for (size_t i = 0; i < len; i++) {
        left -= at[i].weight ? 0 : least(at[i].rate, left);
        sum += at[i].weight;
    }
    all = sum;
    int64_t shared = left;
    for (bool again = true; again && capacity;) {
        int64_t round = left, weights = sum;
        again = false;
        for (size_t i = 0; i < len; i++) {
            int64_t want = wanted_rate(&at[i]);
            if (at[i].weight <= 0 || want > part(round, at[i].weight, weights))
                continue;
            left -= want;
            sum -= at[i].weight;
            at[i].weight = -at[i].weight; /* negative: served */
            again = true;
        }
    }
    for (size_t i = 0; i < len; i++) {
        struct net_share *s = &at[i];
        bool served = s->weight < 0;
        s->weight = served ? -s->weight : s->weight;
        if (!s->weight || !capacity) {
            s->bound = s->limit;
            continue;
        }
        int64_t own = part(shared, s->weight, all), want = wanted_rate(s);
        int64_t fair = !served ? part(left, s->weight, sum) : want > own ? want : own;
        s->bound = s->limit ? least(fair, s->limit) : fair;
        s->bound = s->bound > 0 ? s->bound : 1;
    }
}
