/* policy.c - the usual policy, and what a policy may say beside its profile. */
#include "core/policy.h"

#include <errno.h>
#include <string.h>

#define SECOND_NS ((int64_t)1000000000)

enum { PERCENT_MAX = 1000, MOVES_MAX = 1024, PERMILLE_MAX = 1000 };

struct berth_policy berth_policy_usual(void)
{
    return (struct berth_policy){
        .pressure = {.high_percent = 95, .low_percent = 85, .hold_ns = 10 * SECOND_NS, .drops = 10},
        .shed = true,
        .rebalance = {.moves = 2,                  .gain_percent = 15,                          .age_ns = 600 * SECOND_NS               },
    };
}

static int check_reserves(const struct berth_headroom *h, struct berth_err *err)
{
    if (h->reserves_len > BERTH_LIST_MAX)
        return err_set(err, EINVAL, "policy: headroom of more than %d resources", BERTH_LIST_MAX);
    for (size_t i = 0; i < h->reserves_len; i++) {
        const struct berth_reserve *r = &h->reserves[i];
        if (!r->resource || !*r->resource)
            return err_set(err, EINVAL, "policy: headroom of a resource without a name");
        if (r->amount < 0 || r->amount > BERTH_AMOUNT_MAX || r->permille > PERMILLE_MAX)
            return err_set(err, EINVAL, "policy: headroom of %s is out of range", r->resource);
    }
    return 0;
}

int policy_check(const struct berth_policy *p, struct berth_err *err)
{
    if (p->pressure.high_percent > PERCENT_MAX || p->pressure.low_percent > p->pressure.high_percent)
        return err_set(err, EINVAL, "policy: pressure from %u %% down to %u %%: expected at most %d %%, and less down",
                       p->pressure.high_percent, p->pressure.low_percent, PERCENT_MAX);
    if (p->pressure.high_percent && p->pressure.hold_ns < 1)
        return err_set(err, EINVAL, "policy: pressure must be held for some time before something is stopped");
    if (p->rebalance.age_ns < 0)
        return err_set(err, EINVAL, "policy: an age is negative");
    if (p->pressure.drops > MOVES_MAX || p->rebalance.moves > MOVES_MAX)
        return err_set(err, EINVAL, "policy: more than %d at a time", MOVES_MAX);
    if (p->rebalance.moves && (p->rebalance.gain_percent < 1 || p->rebalance.gain_percent > PERCENT_MAX))
        return err_set(err, EINVAL, "policy: a gain of %u %% by rebalancing: expected 1 to %d",
                       p->rebalance.gain_percent, PERCENT_MAX);
    return check_reserves(&p->headroom, err);
}
