/* quantity.h - amounts as Kubernetes writes them: "1500m", "16Gi", "1e3", ".5".
 *
 * Rounded as in kube-scheduler: `cpu` to thousandths, everything else to whole units, upwards. Berth's own amounts are
 * parsed by wire/text/quantity.h, which is stricter and rejects fractions of a unit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses an amount in units of 1/scale (1 or 1000), rounded up (a negative one towards 0), at most INT64_MAX. False,
 * with *ret untouched, if the text is not a quantity. */
bool kube_quantity_parse(const char *text, size_t len, int64_t scale, int64_t *ret);
