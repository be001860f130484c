/* math_test.c - tests the error against libm's long doubles, special values, and fixed bits. */
#include "base/math.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"

enum { ROUNDS = 200000 };

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t seed_first(void)
{
    const char *set = getenv("BERTH_TEST_SEED");
    uint64_t seed = set ? strtoull(set, NULL, 0) : 1;
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

static uint64_t draw(uint64_t *seed)
{
    return hash_u64(*seed += 0x9e3779b97f4a7c15u);
}

static double draw_between(uint64_t *seed, double low, double high)
{
    return low + (high - low) * (double)(draw(seed) >> 11) * 0x1p-53;
}

static long double sigmoidl(long double x)
{
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

/* Returns the distance in ulps of a double near `want`. */
static double ulps(double got, long double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (fabsl(want) >= 0x1.fffffffffffff8p+1023L || isinf(got))
        return (double)want == got ? 0 : INFINITY;
    if (want == 0)
        return got == 0 ? 0 : INFINITY;
    int exponent = ilogbl(want);
    if (exponent < DBL_MIN_EXP - 1)
        exponent = DBL_MIN_EXP - 1;
    return (double)(fabsl(got - want) / ldexpl(1, exponent - (DBL_MANT_DIG - 1)));
}

static const struct unary {
    const char *name;
    double (*own)(double);
    long double (*libm)(long double);
    double low, high; /* bounds of most random arguments; the others are random bits */
    double ulps_max, ulps_max_subnormal;
} unaries[] = {
    {"exp",           math_exp,     expl,     -750, 715,  0.57, 0.80},
    {"exp near 0",    math_exp,     expl,     -1,   1,    0.57, 0.80},
    {"log",           math_log,     logl,     0,    4,    0.51, 0.51},
    {"log near 1",    math_log,     logl,     0.98, 1.02, 0.51, 0.51},
    {"log2",          math_log2,    log2l,    0,    4,    0.51, 0.51},
    {"log2 near 1",   math_log2,    log2l,    0.98, 1.02, 0.51, 0.51},
    {"log10",         math_log10,   log10l,   0,    4,    0.51, 0.51},
    {"log10 near 1",  math_log10,   log10l,   0.98, 1.02, 0.51, 0.51},
    {"sigmoid",       math_sigmoid, sigmoidl, -45,  45,   0.57, 0.80},
    {"sigmoid tails", math_sigmoid, sigmoidl, -750, 50,   0.57, 0.80},
    {"sqrt",          math_sqrt,    sqrtl,    0,    4,    0.5,  0.5 },
    {"sqrt of large", math_sqrt,    sqrtl,    0,    1e15, 0.5,  0.5 },
};

static void unaries_are_near_libm(void **state)
{
    (void)state;
    if (LDBL_MANT_DIG < 64)
        skip(); /* libm has no higher precision to compare with */
    uint64_t seed = seed_first();

    for (const struct unary *u = unaries; u < unaries + sizeof unaries / sizeof *unaries; u++) {
        double worst[2] = {0};
        for (int i = 0; i < ROUNDS; i++) {
            double x = i % 4 ? draw_between(&seed, u->low, u->high) : from_bits(draw(&seed));
            double got = u->own(x), off = ulps(got, u->libm(x));
            int subnormal = fabs(got) < DBL_MIN;
            if (off > worst[subnormal])
                worst[subnormal] = off;
            if (off > (subnormal ? u->ulps_max_subnormal : u->ulps_max))
                fail_msg("%s(%a) = %a, libm %a: off by %f ulp", u->name, x, got, (double)u->libm(x), off);
        }
        print_message("%-14s worst %.4f ulp, subnormal %.4f\n", u->name, worst[0], worst[1]);
    }
}

static void pow_is_near_libm(void **state)
{
    (void)state;
    if (LDBL_MANT_DIG < 64)
        skip();
    uint64_t seed = seed_first();
    double worst[2] = {0};

    for (int i = 0; i < 3 * ROUNDS; i++) {
        double x = 0, y = 0;
        switch (i % 4) {
        case 0: /* random bits, mostly special cases */
            x = from_bits(draw(&seed));
            y = from_bits(draw(&seed));
            break;
        case 1: /* typical values of formulas */
            x = draw_between(&seed, 0, 20);
            y = draw_between(&seed, -20, 20);
            break;
        case 2: /* any x, with y chosen so that the result is in range */
            x = fabs(from_bits(draw(&seed)));
            y = draw_between(&seed, -750, 750) / (double)logl(x);
            break;
        case 3: /* x near 1 with large y; negative x with whole y */
            x = -1 + draw_between(&seed, -0.01, 0.01);
            y = rint(draw_between(&seed, -80000, 80000));
            break;
        }
        double got = math_pow(x, y), off = ulps(got, powl(x, y));
        int subnormal = fabs(got) < DBL_MIN;
        if (off > worst[subnormal])
            worst[subnormal] = off;
        if (off > (subnormal ? 0.80 : 0.57))
            fail_msg("pow(%a, %a) = %a, libm %a: off by %f ulp", x, y, got, (double)powl(x, y), off);
    }
    print_message("%-14s worst %.4f ulp, subnormal %.4f\n", "pow", worst[0], worst[1]);
}

/* Compares every pair of zeros, subnormals, range limits, halves, whole numbers, infinities and NaN with libm. */
static void edge_cases_match_libm(void **state)
{
    (void)state;
    static const double edges[] = {
        0.0,         0x1p-1074,
        0x1.8p-1050, DBL_MIN,
        0x1p-500,    0x1p-66,
        0x1p-54,     0x1p-27,
        0.5,         0x1.fffffffffffffp-1,
        1.0,         0x1.0000000000001p+0,
        1.5,         2.0,
        3.0,         10.0,
        36.75,       37,
        63,          709.0,
        709.5,       709.79,
        745.0,       0x1p52,
        0x1p53 - 1,  0x1p53,
        0x1p54,      0x1p63,
        0x1p65,      0x1p1023,
        DBL_MAX,     INFINITY,
        NAN,
    };
    enum { LEN = sizeof edges / sizeof *edges };

    for (size_t i = 0; i < 2 * LEN; i++) {
        double x = i < LEN ? edges[i] : -edges[i - LEN];
        for (size_t u = 0; u < sizeof unaries / sizeof *unaries; u++) {
            double got = unaries[u].own(x), want = (double)unaries[u].libm(x);
            if (ulps(got, want) > 1 ||
                (isnan(got) ? bits_of(got) != 0x7ff8000000000000 : signbit(got) != signbit(want)))
                fail_msg("%s(%a) = %a, libm %a", unaries[u].name, x, got, want);
        }
        for (size_t j = 0; j < 2 * LEN; j++) {
            double y = j < LEN ? edges[j] : -edges[j - LEN];
            double got = math_pow(x, y), want = pow(x, y);
            if (ulps(got, want) > 1 ||
                (isnan(got) ? bits_of(got) != 0x7ff8000000000000 : signbit(got) != signbit(want)))
                fail_msg("pow(%a, %a) = %a, libm %a", x, y, got, want);
        }
    }
}

static void integer_results_are_exact(void **state)
{
    (void)state;
    for (int k = -1074; k < 1024; k++) {
        assert_true(math_log2(ldexp(1, k)) == k);
        assert_true(math_pow(2, k) == ldexp(1, k));
    }
    double ten = 1;
    for (int k = 0; k <= 22; k++, ten *= 10) {
        assert_true(math_log10(ten) == k);
        assert_true(math_pow(10, k) == ten);
    }
    for (int k = 1; k < 1000; k++) {
        assert_true(math_pow(k, 1) == k);
        assert_true(math_pow(k, 2) == k * k);
        assert_true(math_pow(k * k, 0.5) == k);
        assert_true(math_sqrt((double)k * k) == k);
    }
    assert_true(math_exp(0) == 1 && math_log(1) == 0 && math_sigmoid(0) == 0.5);
}

static void exp_and_sigmoid_are_monotonic(void **state)
{
    (void)state;
    uint64_t seed = seed_first();
    for (int i = 0; i < ROUNDS; i++) {
        double x = draw_between(&seed, -50, 50), above = nextafter(x, INFINITY);
        if (math_exp(x) > math_exp(above) || math_sigmoid(x) > math_sigmoid(above))
            fail_msg("falls after %a", x);
    }
}

/* The bits are the same for every compiler, optimisation level and machine. A failure means that they changed, even if
 * the new bits are more accurate. */
static const struct {
    double (*own)(double);
    double x;
    uint64_t want;
} unary_bits[] = {
    {math_exp,     1.0,        0x4005bf0a8b145769},
    {math_exp,     -1.0,       0x3fd78b56362cef38},
    {math_exp,     0.1,        0x3ff1aec7b35a00d4},
    {math_exp,     -0.5,       0x3fe368b2fc6f960a},
    {math_exp,     3.7,        0x4044394144eeec81},
    {math_exp,     100.25,     0x48f8c39b9134bac4},
    {math_exp,     -700.5,     0x00c4ff475c68ca02},
    {math_exp,     709.5,      0x7fe81e9b4b52d0c9},
    {math_exp,     -740.0,     0x0000000000000055},
    {math_exp,     1e-09,      0x3ff000000044b830},
    {math_log,     2.0,        0x3fe62e42fefa39ef},
    {math_log,     3.0,        0x3ff193ea7aad030b},
    {math_log,     0.1,        0xc0026bb1bbb55515},
    {math_log,     0.99,       0xbf8495453e6fd4bc},
    {math_log,     1.01,       0x3f8460d6ccca367c},
    {math_log,     1e+300,     0x4085963447f87fb5},
    {math_log,     5e-324,     0xc0874385446d71c3},
    {math_log,     123456.789, 0x40277281cad8a844},
    {math_log,     0.7,        0xbfd6d3c324e13f50},
    {math_log,     1.5,        0x3fd9f323ecbf984c},
    {math_log2,    3.0,        0x3ff95c01a39fbd68},
    {math_log2,    10.0,       0x400a934f0979a371},
    {math_log2,    0.1,        0xc00a934f0979a371},
    {math_log2,    1.1,        0x3fc199b728cb9d0c},
    {math_log2,    1e-300,     0xc08f24a09f1a8b89},
    {math_log10,   2.0,        0x3fd34413509f79ff},
    {math_log10,   3.0,        0x3fde8927964fd5fd},
    {math_log10,   0.1,        0xbff0000000000000},
    {math_log10,   1.1,        0x3fa5316c0a18add7},
    {math_log10,   1e-300,     0xc072c00000000000},
    {math_sqrt,    2.0,        0x3ff6a09e667f3bcd},
    {math_sqrt,    0.1,        0x3fd43d136248490f},
    {math_sqrt,    1e300,      0x5f138d352e5096af},
    {math_sqrt,    5e-324,     0x1e60000000000000},
    {math_sigmoid, 1.0,        0x3fe764d4f5d5a2bd},
    {math_sigmoid, -1.0,       0x3fd136561454ba86},
    {math_sigmoid, 0.1,        0x3fe0cca12729afb8},
    {math_sigmoid, 5.5,        0x3fefdea84d73d71f},
    {math_sigmoid, -30.0,      0x3d3a56e0c2ac7cbf},
    {math_sigmoid, -300.0,     0x24e245639c3a49f7},
    {math_sigmoid, 20.0,       0x3feffffffee4b79b},
};

static const struct {
    double x, y;
    uint64_t want;
} pow_bits[] = {
    {2.0,       0.5,          0x3ff6a09e667f3bcd},
    {10.0,      -3.0,         0x3f50624dd2f1a9fc},
    {1.1,       7.3,          0x40000abbdb22bbdf},
    {0.3,       0.3,          0x3fe64c8e84c5f4e9},
    {1.0000001, 1000000000.0, 0x48f349445c228792},
    {7.0,       300.0,        0x7492763cf89c12d4},
    {1e-05,     64.5,         0x0000000000000006},
    {-3.0,      5.0,          0xc06e600000000000},
    {0.99,      12345.6,      0x34bfdea2fa47ab46},
};

static void result_bits_are_fixed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof unary_bits / sizeof *unary_bits; i++)
        if (bits_of(unary_bits[i].own(unary_bits[i].x)) != unary_bits[i].want)
            fail_msg("row %zu, x = %a: bits 0x%016llx", i, unary_bits[i].x,
                     (unsigned long long)bits_of(unary_bits[i].own(unary_bits[i].x)));
    for (size_t i = 0; i < sizeof pow_bits / sizeof *pow_bits; i++)
        if (bits_of(math_pow(pow_bits[i].x, pow_bits[i].y)) != pow_bits[i].want)
            fail_msg("pow row %zu: bits 0x%016llx", i,
                     (unsigned long long)bits_of(math_pow(pow_bits[i].x, pow_bits[i].y)));

    /* A fingerprint over many more arguments. */
    uint64_t seed = 7, print = 0;
    for (int i = 0; i < 20000; i++) {
        double x = draw_between(&seed, -50, 50), y = draw_between(&seed, -50, 50), size = fabs(x);
        const double results[] = {math_exp(x),      math_log(size),    math_log2(size),
                                  math_log10(size), math_pow(size, y), math_sigmoid(x)};
        for (size_t r = 0; r < sizeof results / sizeof *results; r++)
            print = hash_pair(print, bits_of(results[r]));
    }
    if (print != 0x53e688e284e4aa5d)
        fail_msg("fingerprint 0x%016llx", (unsigned long long)print);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unaries_are_near_libm),         cmocka_unit_test(pow_is_near_libm),
        cmocka_unit_test(edge_cases_match_libm),         cmocka_unit_test(integer_results_are_exact),
        cmocka_unit_test(exp_and_sigmoid_are_monotonic), cmocka_unit_test(result_bits_are_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
