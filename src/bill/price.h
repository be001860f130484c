/* price.h - what an hour costs: a file of prices, queues and budgets, in YAML or JSON (docs/billing.md).
 *
 * Money is counted in millionths of the currency's unit and hours in billionths, both whole numbers, so that two runs over
 * the same records give the same bill to the last digit.
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

/* What somebody may spend in a month. */
struct budget {
    const char *user, *group; /* one of them */
    int64_t amount;           /* money */
    const json_t *floor; /* limits that hold once it is spent: {pods: 0} if not given. Lives as long as the prices */
};

struct price {
    const char *name; /* a resource, or a queue */
    int64_t amount; /* money for an hour of a core, a GiB, a GPU, or a unit; or of a queue, thousandths of the price */
};

struct prices {
    struct arena arena;
    json_t *doc;
    const char *currency;
    const struct price *resources, *queues;
    size_t resources_len, queues_len;
    const char *const *free; /* outcomes that cost nothing */
    size_t free_len;
    const struct budget *budgets;
    size_t budgets_len;
};

/* Errors say where: "prices.yaml: prices: gpu: ...". */
int prices_read(const char *path, struct prices *ret, struct berth_err *err);
int prices_parse(const char *text, const char *name, struct prices *ret, struct berth_err *err);
void prices_done(struct prices *p);

/* Money for so many hours (billionths) of a resource in a queue, rounded to the nearest millionth. */
int64_t prices_of(const struct prices *p, const char *resource, const char *queue, int64_t hours);
/* Never more than can be counted; both are 0 or more. */
int64_t money_add(int64_t a, int64_t b);
bool prices_outcome_free(const struct prices *p, const char *outcome);

/* "12.50", of two digits at least and as many as are needed. */
enum { MONEY_TEXT_MAX = 40 };
const char *money_text(int64_t money, char buf[static MONEY_TEXT_MAX]);
