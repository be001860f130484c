/* draw.h - numbers of known distributions from a chance of random.h, the same bits on every machine. */
#pragma once

#include "sim/random.h"

/* 0 to just below 1, in steps of 2^-53. */
double draw_uniform(struct chance *c);
/* Of mean 1. */
double draw_exponential(struct chance *c);
/* Of mean 0 and deviation 1. */
double draw_normal(struct chance *c);
/* Of mean shape x scale; the shape is at least 1. */
double draw_gamma(struct chance *c, double shape, double scale);
