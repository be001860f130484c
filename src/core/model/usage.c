/* usage.c - past use: the cost of holding resources for a while, and its decay. */
#include <string.h>

#include "base/math.h"
#include "core/model/usage.h"

#define GIB ((int64_t)1 << 30)
#define SECOND_NS 1e9
#define WEEK_NS ((int64_t)7 * 86400 * 1000000000)
#define USED_MAX (INT64_MAX / 4) /* so that the sum of two cannot overflow */

static const double LN2 = 0x1.62e42fefa39efp-1;

static const struct berth_amount charges_usual[] = {
    {"cpu",    1000 },
    {"gpu",    10000},
    {"memory", 250  },
};

int64_t usage_half_life_ns(const struct berth_order *o)
{
    return o && o->half_life_ns > 0 ? o->half_life_ns : WEEK_NS;
}

int64_t usage_sum(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) || sum > USED_MAX ? USED_MAX : sum;
}

static int64_t rounded(double x)
{
    return x < 0.5 ? 0 : x >= (double)USED_MAX ? USED_MAX : (int64_t)(x + 0.5);
}

/* Returns the part of 1 that is left after `ns`. */
static double left_after(double ns, int64_t half_life_ns)
{
    return ns <= 0 ? 1 : math_exp(-LN2 * (ns / (double)half_life_ns));
}

int64_t berth_usage_decay(int64_t amount, int64_t from_ns, int64_t at_ns, int64_t half_life_ns)
{
    int64_t half = half_life_ns > 0 ? half_life_ns : WEEK_NS;
    if (at_ns <= from_ns || amount <= 0)
        return amount > 0 ? amount : 0;
    return rounded((double)amount * left_after((double)at_ns - (double)from_ns, half));
}

/* Returns the integral of rate * 2^(-(at - t) / half life) over t from start to end. */
int64_t berth_usage_add(int64_t rate, int64_t start_ns, int64_t end_ns, int64_t at_ns, int64_t half_life_ns)
{
    int64_t half = half_life_ns > 0 ? half_life_ns : WEEK_NS;
    if (rate <= 0 || end_ns <= start_ns)
        return 0;
    double ran = (double)end_ns - (double)start_ns, since = (double)at_ns - (double)end_ns;
    double full = (double)rate * ((double)half / SECOND_NS / LN2);
    return rounded(full * (1 - left_after(ran, half)) * left_after(since, half));
}

int64_t usage_charge(const struct berth_order *o, const char *resource)
{
    const struct berth_amount *at = charges_usual;
    size_t len = sizeof charges_usual / sizeof *charges_usual;
    if (o && o->charges_len) {
        at = o->charges;
        len = o->charges_len;
    }
    for (size_t i = 0; i < len; i++)
        if (strcmp(at[i].resource, resource) == 0)
            return at[i].amount;
    return 0;
}

int64_t usage_cost(int64_t amount, int64_t charge, const char *resource)
{
    int64_t unit = strcmp(resource, "cpu") == 0 || strcmp(resource, "gpu") == 0 ? 1000
                   : strcmp(resource, "memory") == 0                            ? GIB
                                                                                : 1;
    __int128 cost = (__int128)amount * charge / unit;
    return cost < USED_MAX ? (int64_t)cost : USED_MAX;
}

int64_t berth_usage_rate(const struct berth_shape *shape, const struct berth_order *order)
{
    const struct berth_gpu_need *g = &shape->gpu;
    int64_t milli = (int64_t)g->count * (g->milli ? g->milli : BERTH_GPU_MILLI);
    int64_t rate = usage_cost(milli, usage_charge(order, "gpu"), "gpu");
    for (size_t i = 0; i < shape->requests_len; i++) {
        const struct berth_amount *a = &shape->requests[i];
        rate = usage_sum(rate, usage_cost(a->amount, usage_charge(order, a->resource), a->resource));
    }
    return rate;
}
