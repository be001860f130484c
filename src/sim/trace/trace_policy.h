/* trace_policy.h - policies for traces by name: the order of the queue, and backfilling.
 *
 * A policy consists of an order, a kind of backfilling and a predictor; the first two are settings of the planner. To
 * add an order that is more than a ranking of the planner, or a kind of backfilling: a row in trace_policy.c.
 */
#pragma once

#include "berth.h"
#include "sim/trace/predict.h"

struct sim_named {
    const char *name, *sentence;
};

/* Return an order or a kind of backfilling, in the order of the help; name NULL past the end. Any ranking of
 * berth_ranking_at is an order, too. */
struct sim_named sim_order_at(size_t i);
struct sim_named sim_backfill_at(size_t i);

/* Set the order or backfilling of a policy, or find a predictor, by name. Return -EINVAL for an unknown name; the text
 * lists the known names. */
int sim_policy_order(const char *name, struct berth_policy *p, struct berth_err *err);
int sim_policy_backfill(const char *name, struct berth_policy *p, struct berth_err *err);
int sim_policy_predictor(const char *name, const struct sim_predictor **ret, struct berth_err *err);
