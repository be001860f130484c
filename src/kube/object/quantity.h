/* quantity.h - amounts as Kubernetes writes them: "1500m", "16Gi", "1e3", ".5".
 *
 * Read as kube-scheduler counts them: `cpu` in thousandths, everything else in whole units, what is left over rounded up. Berth's
 * own spelling of amounts is wire/text/quantity.h: it is stricter, and refuses what is not whole.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The amount in units of 1/scale (1 or 1000), rounded up (of a negative one: towards 0), at most INT64_MAX. False, with *ret
 * untouched, for what is not a quantity. */
bool kube_quantity_parse(const char *text, size_t len, int64_t scale, int64_t *ret);
