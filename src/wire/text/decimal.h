/* decimal.h - exact decimal numbers, without floating point. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { DECIMAL_TEXT_MAX = 64 };

/* A number [+-]digits[.digits][e[+-]digits] at the start of a text: digits * 10^exponent. */
struct decimal {
    bool negative;
    uint64_t digits;
    int32_t exponent;
    const char *rest; /* the text after the number */
};

/* Parses as far as the number goes. Returns -EINVAL if there is no number, -ERANGE for more than 19 significant
 * digits. */
int decimal_read(const char *text, struct decimal *ret);

/* Multiplies the number by `scale`, rounded towards zero; *ret_exact says whether nothing was cut off. Returns -ERANGE
 * on overflow. */
int decimal_scale(const struct decimal *d, uint64_t scale, int64_t *ret, bool *ret_exact);

/* Writes a JSON number as the shortest text that decimal_read parses to the same number. */
const char *decimal_text(const json_t *number, char buf[static DECIMAL_TEXT_MAX]);
