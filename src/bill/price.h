/* price.h - the price of an hour: a file of prices, queues and budgets, in YAML or JSON (docs/billing.md).
 *
 * Money is counted in millionths of the currency's unit and hours in billionths. Both are integers, so that two runs
 * over the same records give exactly the same bill.
 *
 * To add a key: a row in its table in price.c, and a line in docs/billing.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define MONEY_ONE INT64_C(1000000) /* one unit of the currency */
#define HOURS_ONE INT64_C(1000000000)

/* The money that a user or group may spend in a month. */
struct spending_budget {
    const char *user, *group; /* one of the two; the other is NULL */
    int64_t amount;           /* money */
    const json_t *floor;      /* limits while the budget is spent; default {pods: 0}. Lives as long as the prices */
};

struct price {
    const char *name; /* a resource, or a queue */
    int64_t amount;   /* money per hour of a core, a GiB, a GPU or a unit; for a queue thousandths of the price */
};

struct prices {
    struct arena arena;
    json_t *doc;
    const char *currency;
    const struct price *resources, *queues;
    size_t resources_len, queues_len;
    const char *const *free; /* free outcomes */
    size_t free_len;
    const struct spending_budget *budgets;
    size_t budgets_len;
};

/* Errors name the place: "prices.yaml: prices: gpu: ...". */
int prices_read(const char *path, struct prices *ret, struct berth_err *err);
int prices_parse(const char *text, const char *name, struct prices *ret, struct berth_err *err);
void prices_done(struct prices *p);

/* Returns the money for `hours` (billionths) of a resource in a queue, rounded to the nearest millionth. */
int64_t prices_of(const struct prices *p, const char *resource, const char *queue, int64_t hours);
/* Adds without overflow, up to the maximum; both must be 0 or more. */
int64_t money_add(int64_t a, int64_t b);
bool prices_outcome_free(const struct prices *p, const char *outcome);

/* Returns text such as "12.50", with at least two decimals. */
enum { MONEY_TEXT_MAX = 40 };
const char *money_text(int64_t money, char buf[static MONEY_TEXT_MAX]);
