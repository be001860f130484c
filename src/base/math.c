/* math.c - elementary functions in double-double arithmetic.
 *
 * A double-double is an unevaluated sum hi + lo with |lo| at most half an ulp of hi: about 106 bits. The kernels are
 * accurate to 60 to 68 bits, so nearly all of the error comes from the single rounding at the end.
 */
#include "base/math.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "base/math.c needs IEEE 754 arithmetic as written"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "doubles must be evaluated as doubles");

struct dd {
    double hi, lo;
};

enum { EXP_STEPS = 16, LOG_STEPS = 32, LOG_HALVE_FROM = 13 };

static const double NOT_A_NUMBER = __builtin_nan("");
static const double INFINITE = __builtin_inf();

/* The high parts are multiples of 2^-42, so their product with a small whole number is exact. */
static const struct dd LN2 = {0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
static const struct dd LN2_STEP = {0x1.62e42fefap-5, 0x1.cf79abc9e3b3ap-44}; /* ln 2 / EXP_STEPS */
static const double STEPS_PER_E = 0x1.71547652b82fep+4;                      /* EXP_STEPS / ln 2 */
static const struct dd LOG2_E = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
static const struct dd LOG10_E = {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

/* 2^(i / EXP_STEPS) */
static const struct dd exp_table[EXP_STEPS] = {
    {0x1p+0,               0x0p+0                },
    {0x1.0b5586cf9890fp+0, 0x1.8a62e4adc610bp-54 },
    {0x1.172b83c7d517bp+0, -0x1.19041b9d78a76p-55},
    {0x1.2387a6e756238p+0, 0x1.9b07eb6c70573p-54 },
    {0x1.306fe0a31b715p+0, 0x1.6f46ad23182e4p-55 },
    {0x1.3dea64c123422p+0, 0x1.ada0911f09ebcp-55 },
    {0x1.4bfdad5362a27p+0, 0x1.d4397afec42e2p-56 },
    {0x1.5ab07dd485429p+0, 0x1.6324c054647adp-54 },
    {0x1.6a09e667f3bcdp+0, -0x1.bdd3413b26456p-54},
    {0x1.7a11473eb0187p+0, -0x1.41577ee04992fp-55},
    {0x1.8ace5422aa0dbp+0, 0x1.6e9f156864b27p-54 },
    {0x1.9c49182a3f09p+0,  0x1.c7c46b071f2bep-56 },
    {0x1.ae89f995ad3adp+0, 0x1.7a1cd345dcc81p-54 },
    {0x1.c199bdd85529cp+0, 0x1.11065895048ddp-55 },
    {0x1.d5818dcfba487p+0, 0x1.2ed02d75b3707p-55 },
    {0x1.ea4afa2a490dap+0, -0x1.e9c23179c2893p-54},
};

/* Indexed by i for a mantissa m in [1, 2) that is nearest to 1 + i / LOG_STEPS. `inverse` is about 1 / m in nine bits.
 * `log` is -ln(inverse), and -ln(2 * inverse) from LOG_HALVE_FROM on; its high part is a multiple of 2^-42. The first
 * and last entries give exactly 0, so there is no cancellation near x = 1. */
static const struct {
    double inverse;
    struct dd log;
} log_table[LOG_STEPS + 1] = {
    {0x1p+0,    {0x0p+0, 0x0p+0}                            },
    {0x1.fp-1,  {0x1.0415d89e78p-5, -0x1.dddc7f461c516p-44} },
    {0x1.e2p-1, {0x1.eea31c0068p-5, 0x1.c3dd83606d891p-44}  },
    {0x1.d4p-1, {0x1.700d30aeacp-4, 0x1.c1e8da99ded32p-49}  },
    {0x1.c7p-1, {0x1.e3707ee304p-4, 0x1.0f684e6766abdp-45}  },
    {0x1.bbp-1, {0x1.28753bc11ap-3, 0x1.7494e359302e6p-44}  },
    {0x1.afp-1, {0x1.60b3100b0ap-3, -0x1.71456c988f814p-44} },
    {0x1.a4p-1, {0x1.95a5adcf7p-3, 0x1.7f22858a0ff6fp-47}   },
    {0x1.9ap-1, {0x1.c6ffbc6fp-3, 0x1.ee138d3a69d43p-44}    },
    {0x1.9p-1,  {0x1.f991c6cb3cp-3, -0x1.90d04cd7cc834p-44} },
    {0x1.86p-1, {0x1.16b5ccbadp-2, -0x1.23299042d74bfp-44}  },
    {0x1.7dp-1, {0x1.2e9e2bce12p-2, 0x1.4300c128d1dc2p-45}  },
    {0x1.74p-1, {0x1.4718dc271cp-2, 0x1.06c18fb4c14c5p-44}  },
    {0x1.6cp-1, {-0x1.686c81e9b1p-2, -0x1.2bb110af84054p-44}},
    {0x1.64p-1, {-0x1.51aad872ep-2, 0x1.f4bd8db0a7cc1p-44}  },
    {0x1.5dp-1, {-0x1.3d54fa5c1fp-2, -0x1.c3e1cd9a395e3p-44}},
    {0x1.55p-1, {-0x1.2596010df7p-2, -0x1.8e7bc224ea3e3p-44}},
    {0x1.4ep-1, {-0x1.1058bf9ae5p-2, 0x1.4ab9d817d52cdp-44} },
    {0x1.48p-1, {-0x1.fb9186d5e4p-3, 0x1.d572aab993c87p-47} },
    {0x1.41p-1, {-0x1.cf6354e09cp-3, -0x1.771239a07d55bp-45}},
    {0x1.3bp-1, {-0x1.a8becfc882p-3, -0x1.e3185cf21b9cfp-44}},
    {0x1.35p-1, {-0x1.815c0a1436p-3, 0x1.02a52f9201ce8p-44} },
    {0x1.2fp-1, {-0x1.59338d9982p-3, -0x1.0ba68b7555d4ap-48}},
    {0x1.2ap-1, {-0x1.371fc201e8p-3, -0x1.ee8779b2d8abcp-44}},
    {0x1.25p-1, {-0x1.1478584674p-3, -0x1.563451027c75p-46} },
    {0x1.1fp-1, {-0x1.d4313d66ccp-4, 0x1.9454379135713p-45} },
    {0x1.1ap-1, {-0x1.8c345d6318p-4, -0x1.b20f5acb42a66p-44}},
    {0x1.16p-1, {-0x1.51b073f06p-4, -0x1.83f69278e686ap-44} },
    {0x1.11p-1, {-0x1.075983599p-4, 0x1.b8ecfe4b59987p-44}  },
    {0x1.0dp-1, {-0x1.95c830ec9p-5, 0x1.c148297c5feb8p-45}  },
    {0x1.08p-1, {-0x1.f829b0e78p-6, -0x1.980267c7e09e4p-45} },
    {0x1.04p-1, {-0x1.fc0a8b0fcp-7, -0x1.f1e7cf6d3a69cp-50} },
    {0x1p-1,    {0x0p+0, 0x0p+0}                            },
};

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

static double magnitude(double x)
{
    return from_bits(bits_of(x) & INT64_MAX);
}

/* Returns a + b exactly. Requires a == 0 or |a| >= |b|. */
static struct dd sum_ordered(double a, double b)
{
    double hi = a + b;
    return (struct dd){hi, b - (hi - a)};
}

/* Returns a + b exactly. */
static struct dd sum(double a, double b)
{
    double hi = a + b, b_part = hi - a;
    return (struct dd){hi, (a - (hi - b_part)) + (b - b_part)};
}

/* Returns the upper 26 bits of a; a - upper(a) then also fits in 26 bits. Requires |a| < 2^990. */
static double upper(double a)
{
    double up = a * 0x1.0000002p+27;
    return up - (up - a);
}

/* Returns a * b exactly, unless the product underflows. */
static struct dd product(double a, double b)
{
    double ah = upper(a), al = a - ah, bh = upper(b), bl = b - bh, hi = a * b;
    return (struct dd){hi, ((ah * bh - hi) + ah * bl + al * bh) + al * bl};
}

static struct dd dd_product(struct dd a, struct dd b)
{
    struct dd p = product(a.hi, b.hi);
    return sum_ordered(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static struct dd dd_quotient(struct dd a, struct dd b)
{
    double q = a.hi / b.hi;
    struct dd back = product(q, b.hi);
    return sum_ordered(q, (((a.hi - back.hi) - back.lo) + (a.lo - q * b.lo)) / b.hi);
}

/* Returns x * 2^exponent, rounded once. Requires x near 1 and |exponent| <= 1100. */
static double scale(double x, int exponent)
{
    int half = exponent / 2;
    double by_half = from_bits((uint64_t)(1023 + half) << 52);
    double by_rest = from_bits((uint64_t)(1023 + exponent - half) << 52);
    return x * by_half * by_rest;
}

/* Computes e^x = result * 2^(*ret_exponent) for |x| up to 750.
 *
 * With x = n ln2/16 + r and |r| <= ln2/32: e^x = 2^(n/16) (1 + r + r^2/2! + ...). The omitted terms are below 2^-68.
 */
static struct dd exp_kernel(struct dd x, int *ret_exponent)
{
    double steps = x.hi * STEPS_PER_E;
    int n = (int)(steps < 0 ? steps - 0.5 : steps + 0.5);
    int i = n & (EXP_STEPS - 1);

    /* x.hi - n * LN2_STEP.hi is exact: the operands are close together, and n * LN2_STEP.hi has at most 53 bits. */
    struct dd r = sum(x.hi - n * LN2_STEP.hi, x.lo - n * LN2_STEP.lo);
    double h = r.hi;
    double series = 1.0 / 720 + h * (1.0 / 5040 + h * (1.0 / 40320));
    series = 1.0 / 2 + h * (1.0 / 6 + h * (1.0 / 24 + h * (1.0 / 120 + h * series)));
    double grown = h + (r.lo + h * h * series); /* e^r - 1 */

    struct dd step = exp_table[i];
    *ret_exponent = (n - i) / EXP_STEPS;
    return sum_ordered(step.hi, step.lo + step.hi * grown);
}

double math_exp(double x)
{
    if (x != x)
        return NOT_A_NUMBER;
    if (x > 710)
        return INFINITE;
    if (x < -746)
        return 0;
    int exponent;
    struct dd v = exp_kernel((struct dd){x, 0}, &exponent);
    return scale(v.hi, exponent);
}

/* Computes ln x for a positive, finite x.
 *
 * With x = 2^k m and z = m * inverse - 1: ln x = k ln2 - ln(inverse) + ln(1 + z), and with s = z / (2 + z) ln(1 + z) =
 * 2 (s + s^3/3 + s^5/5 + ...); |z| < 1/59, so the omitted terms are below 2^-70 of the sum.
 */
static struct dd log_kernel(double x)
{
    int k = -1023;
    if (x < DBL_MIN) {
        x *= 0x1p54;
        k -= 54;
    }
    uint64_t bits = bits_of(x), fraction = bits & (((uint64_t)1 << 52) - 1);
    unsigned i = (unsigned)((fraction + ((uint64_t)1 << 46)) >> 47);
    k += (int)(bits >> 52) + (i >= LOG_HALVE_FROM);
    double m = from_bits(fraction | (uint64_t)1023 << 52);
    double m_high =
        /* The upper 29 bits of m: the products of both parts with `inverse` are exact. */
        from_bits(bits_of(m) & ~(uint64_t)0xffffff);

    double inverse = log_table[i].inverse;
    struct dd from = log_table[i].log;
    struct dd z = sum(m_high * inverse - 1, (m - m_high) * inverse);
    struct dd d = sum_ordered(2, z.hi);
    struct dd s = dd_quotient(z, (struct dd){d.hi, d.lo + z.lo});
    double s2 = s.hi * s.hi;
    double tail = 2 * s.hi * s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7 + s2 * (1.0 / 9 + s2 * (1.0 / 11)))));

    struct dd head = sum(k * LN2.hi + from.hi, 2 * s.hi);
    return sum_ordered(head.hi, head.lo + ((k * LN2.lo + from.lo) + (2 * s.lo + tail)));
}

/* Returns true if x is not a positive, finite number; *ret is then the logarithm of x to any base. */
static bool log_special(double x, double *ret)
{
    if (x > 0 && x < INFINITE)
        return false;
    *ret = x == 0 ? -INFINITE : x > 0 ? INFINITE : NOT_A_NUMBER;
    return true;
}

double math_log(double x)
{
    double special;
    return log_special(x, &special) ? special : log_kernel(x).hi;
}

double math_log2(double x)
{
    double special;
    return log_special(x, &special) ? special : dd_product(log_kernel(x), LOG2_E).hi;
}

double math_log10(double x)
{
    double special;
    return log_special(x, &special) ? special : dd_product(log_kernel(x), LOG10_E).hi;
}

static bool is_whole(double y)
{
    return magnitude(y) >= 0x1p53 || (double)(int64_t)y == y;
}

static bool is_odd(double y)
{
    return magnitude(y) < 0x1p53 && is_whole(y) && ((int64_t)y & 1);
}

double math_pow(double x, double y)
{
    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return NOT_A_NUMBER;

    double size = magnitude(x);
    double sign = bits_of(x) >> 63 && is_odd(y) ? -1 : 1;
    double limit = (size > 1) == (y > 0) ? INFINITE : 0; /* the limit for growing |y| */
    if (size == 0 || size == INFINITE)
        return sign * limit;
    if (x < 0 && !is_whole(y))
        return NOT_A_NUMBER;
    if (size == 1)
        return sign;
    if (magnitude(y) > 0x1p64) /* |ln x| > 2^-54: the result is outside the exponent range */
        return sign * limit;
    if (magnitude(y) < 0x1p-65) /* |ln x| < 2^10: the result rounds to 1 */
        return 1;

    struct dd log = log_kernel(size), p = product(log.hi, y);
    p = sum_ordered(p.hi, p.lo + log.lo * y);
    if (p.hi > 710 || p.hi < -746)
        return sign * limit;
    int exponent;
    struct dd v = exp_kernel(p, &exponent);
    return sign * scale(v.hi, exponent);
}

/* Returns the whole part of the square root of m * 2^52, for m of 53 or 54 bits. Newton's method gives an
 * approximation, which is then corrected to the exact value. */
static uint64_t whole_root(uint64_t m, unsigned __int128 *ret_rest)
{
    double of = (double)m * 0x1p52, y = from_bits((bits_of(of) >> 1) + ((uint64_t)0x1ff8 << 48));
    for (int i = 0; i < 4; i++) /* each step doubles the number of correct bits; the first has 4 */
        y = 0.5 * (y + of / y);
    unsigned __int128 square = (unsigned __int128)m << 52;
    uint64_t root = (uint64_t)y;
    while ((unsigned __int128)root * root > square)
        root--;
    while ((unsigned __int128)(root + 1) * (root + 1) <= square)
        root++;
    *ret_rest = square - (unsigned __int128)root * root;
    return root;
}

/* With x = m * 4^k: the remainder of the integer root decides the rounding direction. Ties cannot occur. */
double math_sqrt(double x)
{
    if (x != x || x < 0)
        return NOT_A_NUMBER;
    if (x == 0 || x == INFINITE)
        return x;
    int exponent = -1023 - 52;
    if (x < DBL_MIN) {
        x *= 0x1p54;
        exponent -= 54;
    }
    uint64_t bits = bits_of(x), m = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    exponent += (int)(bits >> 52);
    if (exponent & 1) {
        m *= 2;
        exponent--;
    }
    unsigned __int128 rest;
    uint64_t root = whole_root(m, &rest);
    root += rest > root; /* the next bit would be 1 */
    return scale((double)root, exponent / 2 - 26);
}

double math_sigmoid(double x)
{
    if (x != x)
        return NOT_A_NUMBER;
    if (x > 40)
        return 1; /* e^-40 is below half an ulp of 1 */
    if (x < -40)
        return math_exp(x); /* the denominator also differs from 1 by less than half an ulp */

    int exponent;
    struct dd v = exp_kernel((struct dd){-magnitude(x), 0}, &exponent);
    struct dd e = {scale(v.hi, exponent), scale(v.lo, exponent)};
    struct dd d = sum_ordered(1, e.hi);
    d.lo += e.lo;
    return dd_quotient(x < 0 ? e : (struct dd){1, 0}, d).hi;
}
