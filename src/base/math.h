/* math.h - exp, log, pow, sqrt and the logistic function, with the same bits on every machine.
 *
 * A libm may differ from the next one in the last bit, and a plan must not: these use only IEEE 754 additions,
 * products and quotients of doubles, in an order that no compiler may change (-ffp-contract=off, no fast-math). Errors
 * stay within 0.58 ulp, 0.8 where the result is subnormal. Not a whole libm: no errno, no exception flags, no
 * rounding mode but to nearest. Every NaN that comes out is the one quiet NaN 0x7ff8000000000000.
 *
 * To add a function: build it on the double-double kernels of math.c, and give math_test.c a row with its error against
 * libm and rows with fixed bits. Once published, bits do not change: journals depend on them.
 */
#pragma once

/* e to the x. inf from 709.79 on, 0 below -745.13. */
double math_exp(double x);

/* Logarithms to base e, 2 and 10; exact where the result is a whole number. -inf of 0, NaN of less. */
double math_log(double x);
double math_log2(double x);
double math_log10(double x);

/* x to the y, with the special cases of C's annex F: pow(x, 0) and pow(1, y) are 1 even for NaN, a negative x needs a
 * whole y. */
double math_pow(double x, double y);

/* The square root, correctly rounded: within half an ulp. NaN of less than 0; -0 of -0. */
double math_sqrt(double x);

/* 1 / (1 + e to the -x), exact in both tails: small results keep their precision. */
double math_sigmoid(double x);
