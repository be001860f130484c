/* math.h - exp, log, pow, sqrt and the logistic function, with bit-identical results on every machine.
 *
 * Implementations of libm may differ in the last bit, but a plan must not. The functions here use only IEEE 754
 * additions, products and quotients of doubles, in an order that no compiler may change (-ffp-contract=off, no
 * fast-math). The error is at most 0.58 ulp, or 0.8 ulp if the result is subnormal. This is not a complete libm: there
 * is no errno, there are no exception flags, and the only rounding mode is to nearest. Every NaN result is the quiet
 * NaN 0x7ff8000000000000.
 *
 * To add a function: build it on the double-double kernels of math.c, and give math_test.c a row with its error against
 * libm and rows with fixed bits. Bits never change after a release, because journals depend on them.
 */
#pragma once

/* Returns e^x; inf above 709.79, 0 below -745.13. */
double math_exp(double x);

/* Logarithms to base e, 2 and 10; exact if the result is a whole number. -inf for 0, NaN for a negative x. */
double math_log(double x);
double math_log2(double x);
double math_log10(double x);

/* Returns x^y, with the special cases of C's annex F: pow(x, 0) and pow(1, y) are 1 even for NaN; a negative x needs a
 * whole y. */
double math_pow(double x, double y);

/* Returns the square root, correctly rounded: the error is at most half an ulp. NaN for x < 0; -0 for -0. */
double math_sqrt(double x);

/* Returns 1 / (1 + e^-x). Both tails are accurate: small results keep their precision. */
double math_sigmoid(double x);
