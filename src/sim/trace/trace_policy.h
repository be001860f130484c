/* trace_policy.h - policies for traces by name: who comes first, and who may go before.
 *
 * A policy is an order, a way of backfilling and a predictor; the first two are settings of the planner. To add an order that is
 * more than a ranking of the planner, or a way of backfilling: a row in trace_policy.c.
 */
#pragma once

#include "berth.h"
#include "sim/trace/predict.h"

struct sim_named {
    const char *name, *sentence;
};

/* In the order of help; name NULL past the end. Any ranking of berth_ranking_at is an order, too. */
struct sim_named sim_order_at(size_t i);
struct sim_named sim_backfill_at(size_t i);

/* Fills order and backfill of the policy, which names words of this program only. -EINVAL: there is no such thing; the text
 * lists those that are. */
int sim_policy_order(const char *name, struct berth_policy *p, struct berth_err *err);
int sim_policy_backfill(const char *name, struct berth_policy *p, struct berth_err *err);
int sim_policy_predictor(const char *name, const struct sim_predictor **ret, struct berth_err *err);
