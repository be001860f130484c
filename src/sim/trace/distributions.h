/* distributions.h - draws from standard distributions with a generator of random.h, with the same bits on every
 * machine.
 */
#pragma once

#include "sim/random.h"

/* Uniform: 0 to just below 1, in steps of 2^-53. */
double draw_uniform(struct random_stream *c);
/* Exponential, with mean 1. */
double draw_exponential(struct random_stream *c);
/* Normal, with mean 0 and standard deviation 1. */
double draw_normal(struct random_stream *c);
/* Gamma, with mean shape x scale; the shape must be at least 1. */
double draw_gamma(struct random_stream *c, double shape, double scale);
