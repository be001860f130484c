/* distributions.c - draws from standard distributions. */
#include "sim/trace/distributions.h"

#include <assert.h>

#include "base/math.h"

double draw_uniform(struct random_stream *c)
{
    return (double)(random_next(c) >> 11) * 0x1p-53;
}

double draw_exponential(struct random_stream *c)
{
    return -math_log(1 - draw_uniform(c));
}

/* Marsaglia's polar method. The second value of each pair is discarded, so that a draw does not depend on earlier
 * draws. */
double draw_normal(struct random_stream *c)
{
    for (;;) {
        double x = 2 * draw_uniform(c) - 1, y = 2 * draw_uniform(c) - 1, s = x * x + y * y;
        if (s > 0 && s < 1)
            return x * math_sqrt(-2 * math_log(s) / s);
    }
}

/* The method of Marsaglia and Tsang. */
double draw_gamma(struct random_stream *c, double shape, double scale)
{
    assert(shape >= 1);
    double d = shape - 1.0 / 3, e = 1 / math_sqrt(9 * d);
    for (;;) {
        double x = draw_normal(c), v = 1 + e * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (math_log(1 - draw_uniform(c)) < x * x / 2 + d - d * v + d * math_log(v))
            return d * v * scale;
    }
}
