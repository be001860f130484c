/* yaml_scalar.c - the meaning of unquoted YAML scalars. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wire/text/yaml.h"

enum { NUMBER_TEXT_MAX = 64 };

static bool is_one_of(const char *text, size_t len, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == len && memcmp(*words, text, len) == 0)
            return true;
    return false;
}

static size_t digits(const char *text, size_t len, size_t from)
{
    size_t i = from;
    while (i < len && isdigit((unsigned char)text[i]))
        i++;
    return i - from;
}

/* Parses 0x1F and 0o17. */
static int based_parse(const char *text, size_t len, json_t **ret, bool *ret_is)
{
    unsigned base = text[1] == 'x' ? 16 : 8;
    json_int_t value = 0;
    bool over = false;

    for (size_t i = 2; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        unsigned digit = isdigit(c) ? c - (unsigned)'0' : isxdigit(c) ? (unsigned)(tolower(c) - 'a') + 10 : base;
        if (digit >= base)
            return 0; /* a string */
        over |= __builtin_mul_overflow(value, (json_int_t)base, &value);
        over |= __builtin_add_overflow(value, (json_int_t)digit, &value);
    }
    *ret_is = true;
    if (over)
        return -ERANGE;
    *ret = json_integer(value);
    return 0;
}

/* Rewrites a number of the core schema as JSON, because jansson converts independently of the locale. Returns false and
 * writes nothing for other text. */
static bool number_as_json(const char *text, size_t len, char out[static NUMBER_TEXT_MAX])
{
    size_t i = 0;
    bool minus = len > 0 && text[0] == '-';
    if (len > 0 && (text[0] == '-' || text[0] == '+'))
        i++;

    size_t whole = digits(text, len, i), whole_at = i;
    i += whole;
    size_t fraction = 0, fraction_at = i;
    bool dot = i < len && text[i] == '.';
    if (dot) {
        fraction_at = ++i;
        fraction = digits(text, len, i);
        i += fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (whole > 1 && text[whole_at] == '0') /* 007: parsers disagree about its value */
        return false;

    size_t exponent_at = i, exponent = 0;
    if (i < len && (text[i] == 'e' || text[i] == 'E')) {
        i++;
        if (i < len && (text[i] == '-' || text[i] == '+'))
            i++;
        exponent = digits(text, len, i);
        if (exponent == 0)
            return false;
        i += exponent;
    }
    if (i != len || len + 4 > NUMBER_TEXT_MAX)
        return false;

    (void)snprintf(out, NUMBER_TEXT_MAX, "%s%.*s%s%.*s%.*s", minus ? "-" : "", whole ? (int)whole : 1,
                   whole ? text + whole_at : "0", dot ? "." : "", dot && !fraction ? 1 : (int)fraction,
                   dot && !fraction ? "0" : text + fraction_at, (int)(len - exponent_at), text + exponent_at);
    return true;
}

int yaml_scalar(const char *text, size_t len, json_t **ret)
{
    static const char *const null_words[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const true_words[] = {"true", "True", "TRUE", NULL};
    static const char *const false_words[] = {"false", "False", "FALSE", NULL};
    static const char *const no_number[] = {".inf",  ".Inf",  ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
                                            "-.Inf", "-.INF", ".nan", ".NaN",  ".NAN",  NULL};
    json_t *value = NULL;

    if (is_one_of(text, len, null_words)) {
        value = json_null();
    } else if (is_one_of(text, len, true_words)) {
        value = json_true();
    } else if (is_one_of(text, len, false_words)) {
        value = json_false();
    } else if (is_one_of(text, len, no_number)) {
        return -EDOM;
    } else if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o')) {
        bool is_number = false;
        int rc = based_parse(text, len, &value, &is_number);
        if (rc < 0)
            return rc;
        if (!is_number)
            value = json_stringn(text, len);
    } else {
        char number[NUMBER_TEXT_MAX];
        if (number_as_json(text, len, number)) {
            value = json_loadb(number, strlen(number), JSON_DECODE_ANY, NULL);
            if (!value)
                return -ERANGE;
        } else {
            value = json_stringn(text, len);
        }
    }
    if (!value)
        return -ENOMEM;
    *ret = value;
    return 0;
}
