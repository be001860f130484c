/* quantity.c - parses and prints amounts with units. */
#include "wire/text/quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wire/text/decimal.h"
#include "wire/text/words.h"

enum { MILLI = 1000 };

struct named_unit {
    const char *name;
    uint64_t scale;
    bool binary;
};

/* Largest first, the order that printing tries. */
static const struct named_unit units[] = {
    {"Pi", (uint64_t)1 << 50, true },
    {"Ti", (uint64_t)1 << 40, true },
    {"Gi", (uint64_t)1 << 30, true },
    {"Mi", (uint64_t)1 << 20, true },
    {"Ki", (uint64_t)1 << 10, true },
    {"P",  1000000000000000,  false},
    {"T",  1000000000000,     false},
    {"G",  1000000000,        false},
    {"M",  1000000,           false},
    {"k",  1000,              false},
};
static const size_t batches_len = sizeof units / sizeof *units;

static bool is_cpu(const char *resource)
{
    return strcmp(resource, "cpu") == 0;
}

/* Parses an amount in thousandths: 2.5, "500m". */
static int milli_parse(const char *text, const struct decimal *d, uint64_t scale, int64_t *ret, struct berth_err *err)
{
    char quoted[QUOTE_MAX];
    bool exact;
    if (decimal_scale(d, scale, ret, &exact) < 0)
        return err_set(err, ERANGE, "%s is too large", quote(text, quoted));
    if (!exact)
        return err_set(err, EINVAL, "%s has more than three decimal places", quote(text, quoted));
    return 0;
}

static const struct named_unit *unit_find(const char *name)
{
    for (size_t i = 0; i < batches_len; i++)
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    return NULL;
}

int quantity_parse_text(const char *resource, const char *text, int64_t *ret, struct berth_err *err)
{
    char quoted[QUOTE_MAX];
    struct decimal d;
    int rc = decimal_read(text, &d);
    if (rc == -ERANGE)
        return err_set(err, ERANGE, "%s has too many digits", quote(text, quoted));
    if (rc < 0)
        return err_set(err, EINVAL, "expected an amount like 2, 1.5%s, found %s",
                       is_cpu(resource) ? " or 500m" : "Gi or 10G", quote(text, quoted));

    bool milli = strcmp(d.rest, "m") == 0;
    const struct named_unit *unit = unit_find(d.rest);
    if (!unit && !milli && *d.rest)
        return err_set(err, EINVAL, "%s has an unknown unit; expected %sk, M, G, T, P, Ki, Mi, Gi, Ti or Pi",
                       quote(text, quoted), is_cpu(resource) ? "m, " : "");
    uint64_t scale = unit ? unit->scale : 1;
    int64_t amount;
    if (is_cpu(resource)) {
        rc = milli_parse(text, &d, milli ? 1 : scale * MILLI, &amount, err);
        if (rc < 0)
            return rc;
        *ret = amount;
        return 0;
    }
    if (milli)
        return err_set(err, EINVAL, "%s: m means thousandths and is for cpu only; mebibytes are Mi, megabytes M",
                       quote(text, quoted));
    bool exact;
    if (decimal_scale(&d, scale, &amount, &exact) < 0)
        return err_set(err, ERANGE, "%s is too large", quote(text, quoted));
    if (!exact && !(unit && unit->binary))
        return err_set(err, EINVAL, "%s is not a whole number of units", quote(text, quoted));
    if (!exact && amount < INT64_MAX && amount > INT64_MIN)
        amount += d.negative ? -1 : 1;
    *ret = amount;
    return 0;
}

int quantity_parse(const char *resource, const json_t *value, int64_t *ret, struct berth_err *err)
{
    char buf[DECIMAL_TEXT_MAX];
    if (json_is_string(value))
        return quantity_parse_text(resource, json_string_value(value), ret, err);
    if (json_is_number(value))
        return quantity_parse_text(resource, decimal_text(value, buf), ret, err);
    return err_set(err, EINVAL, "expected an amount, a number or a string like %s",
                   is_cpu(resource) ? "\"500m\"" : "\"16Gi\"");
}

int ratio_parse(const json_t *value, int64_t *ret, struct berth_err *err)
{
    char buf[DECIMAL_TEXT_MAX], quoted[QUOTE_MAX];
    struct decimal d;
    const char *text = json_is_string(value)   ? json_string_value(value)
                       : json_is_number(value) ? decimal_text(value, buf)
                                               : "";
    if (decimal_read(text, &d) < 0 || (*d.rest && strcmp(d.rest, "m") != 0))
        return err_set(err, EINVAL, "expected a ratio like 1.5, found %s", quote(text, quoted));
    int64_t milli;
    int rc = milli_parse(text, &d, *d.rest ? 1 : MILLI, &milli, err);
    if (rc == 0)
        *ret = milli;
    return rc;
}

/* Returns whether the resource is usually counted in bytes; other resources get a unit only for large round amounts. */
static bool is_size(const char *resource)
{
    static const char *const words[] = {"memory", "storage", "disk", "hugepages", "swap", "traffic"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(resource, words[i]))
            return true;
    return false;
}

/* Prints `value`, in hundredths of a unit, without trailing zeros. */
static const char *hundredths_print(bool negative, unsigned __int128 value, const char *unit,
                                    char buf[static QUANTITY_TEXT_MAX])
{
    uint64_t whole = (uint64_t)(value / 100), part = (uint64_t)(value % 100);
    const char *sign = negative ? "-" : "";
    if (part == 0)
        (void)snprintf(buf, QUANTITY_TEXT_MAX, "%s%" PRIu64 "%s", sign, whole, unit);
    else if (part % 10 == 0)
        (void)snprintf(buf, QUANTITY_TEXT_MAX, "%s%" PRIu64 ".%" PRIu64 "%s", sign, whole, part / 10, unit);
    else
        (void)snprintf(buf, QUANTITY_TEXT_MAX, "%s%" PRIu64 ".%02" PRIu64 "%s", sign, whole, part, unit);
    return buf;
}

static const char *cpu_print(bool negative, uint64_t milli, char buf[static QUANTITY_TEXT_MAX])
{
    if (milli >= MILLI && milli % 10 == 0)
        return hundredths_print(negative, milli / 10, "", buf);
    (void)snprintf(buf, QUANTITY_TEXT_MAX, "%s%" PRIu64 "%s", negative ? "-" : "", milli, milli ? "m" : "");
    return buf;
}

const char *quantity_print(const char *resource, int64_t amount, char buf[static QUANTITY_TEXT_MAX])
{
    bool negative = amount < 0;
    uint64_t size = negative ? -(uint64_t)amount : (uint64_t)amount;
    if (is_cpu(resource))
        return cpu_print(negative, size, buf);

    bool bytes = is_size(resource);
    (void)snprintf(buf, QUANTITY_TEXT_MAX, "%s%" PRIu64, negative ? "-" : "", size);
    for (size_t i = 0; i < batches_len; i++) {
        const struct named_unit *u = &units[i];
        uint64_t least = u->binary && bytes ? u->scale : 1000000; /* 4096 shares are not printed as 4Ki */
        unsigned __int128 hundred = (unsigned __int128)size * 100;
        if (size < u->scale || size < least || hundred % u->scale)
            continue;
        char shorter[QUANTITY_TEXT_MAX];
        hundredths_print(negative, hundred / u->scale, u->name, shorter);
        if (strlen(shorter) < strlen(buf))
            memcpy(buf, shorter, sizeof shorter);
    }
    return buf;
}
