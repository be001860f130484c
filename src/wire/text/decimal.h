/* decimal.h - numbers with a decimal point, exactly, without floating point. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { DECIMAL_TEXT_MAX = 64 };

/* Reads [+-]digits[.digits][e[+-]digits] from the start of the text, as long as that goes: digits * 10^exponent. */
struct decimal {
    bool negative;
    uint64_t digits;
    int32_t exponent;
    const char *rest; /* what follows */
};

/* -EINVAL: no number there; -ERANGE: more than 19 significant digits. */
int decimal_read(const char *text, struct decimal *ret);

/* The number times `scale`, towards zero; *ret_exact says whether nothing was cut off. -ERANGE when it does not fit. */
int decimal_scale(const struct decimal *d, uint64_t scale, int64_t *ret, bool *ret_exact);

/* A JSON number as text that decimal_read knows: the shortest one that people could have written. */
const char *decimal_text(const json_t *number, char buf[static DECIMAL_TEXT_MAX]);
