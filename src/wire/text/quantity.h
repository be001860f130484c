/* quantity.h - parses and prints amounts of resources: "500m", "2.5", "16Gi", "10G".
 *
 * `cpu` is counted in thousandths of a core, everything else in bytes or units, as in berth.h. All arithmetic uses
 * integers. The model decides whether an amount is valid (it may be negative here).
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

enum { QUANTITY_TEXT_MAX = 32 };

/* Parses a string or a number. Units: m (thousandths; only for cpu), k M G T P, Ki Mi Gi Ti Pi. Rejects amounts that
 * are not integers, except that a size in binary units is rounded up to the next byte ("62.7Gi"). */
int quantity_parse(const char *resource, const json_t *value, int64_t *ret, struct berth_err *err);
int quantity_parse_text(const char *resource, const char *text, int64_t *ret, struct berth_err *err);

/* Writes the shortest readable form that parses back to the same amount, and returns buf. */
const char *quantity_print(const char *resource, int64_t amount, char buf[static QUANTITY_TEXT_MAX]);

/* Parses a ratio or share in thousandths: 1.5 and "1500m" are 1500. */
int ratio_parse(const json_t *value, int64_t *ret, struct berth_err *err);
