/* rank.h - the rank keys of waiting workloads: factors, built-in rankings, fair shares.
 *
 * A key must not depend on what this plan, or an earlier plan at the same moment, places. Otherwise applying a plan
 * would change the order of the demands that are left, and the next plan would not be empty. So shares are counted over
 * all admitted work, in the fixed order creation, id; load is the admitted work over the capacity; and usage grows only
 * with time.
 */
#pragma once

#include "core/plan/plan.h"

/* Copies the policy's order into the plan: p->policy.order then lives as long as the plan. The other functions here do
 * so too where they may change the plan. Before the first such call, rank_queue searches the list of queues. */
void rank_begin(struct berth_plan *p);
/* Computes the keys of `len` waiting workloads, each by the ranking of its queue; the highest key is first. Fails if a
 * formula fails, or if a ranking or a factor does not exist. */
int rank_keys(struct berth_plan *p, const uint32_t *workloads, uint32_t len, int64_t *keys, struct berth_err *err);
/* Sets the `key` of every demand, by its workload and its queue. Fails as rank_keys does. */
int rank_demands(struct berth_plan *p, struct berth_err *err);
/* Computes the keys of workloads by one ranking, whatever their queues. */
int rank_keys_by(struct berth_plan *p, const struct berth_ranking *by, const uint32_t *workloads, uint32_t len,
                 int64_t *keys, struct berth_err *err);
/* Returns the ranking of a queue of the policy (NONE: of workloads without a queue). */
const struct berth_ranking *rank_of_queue(const struct berth_plan *p, uint32_t queue);
/* Returns the weight of each factor in the queue's ranking, in the order of berth_factor_at; all 0 if that ranking
 * weighs no factors. */
void rank_weights(const struct berth_plan *p, uint32_t queue, int32_t ret[static 32]);
/* Returns the policy's queue that the workload of the claim is in, or NONE. */
uint32_t rank_queue(const struct berth_plan *p, const struct claim *t);
/* Fills in the factors of one workload, in millionths, in the order of berth_factor_at; returns their number. */
uint32_t rank_factors(struct berth_plan *p, uint32_t workload, int32_t ret[static 32]);
/* Fills in the terms whose sum is the key of one workload in its queue; returns their number. */
uint32_t rank_terms(struct berth_plan *p, uint32_t workload, struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX]);
/* Calls `tell` for every account with its share in the fair tree. */
void rank_shares(struct berth_plan *p, void (*tell)(void *ctx, const struct berth_share *share), void *ctx);
/* Notes with plan_recheck when the passage of time alone may next change the order. */
void rank_recheck(struct berth_plan *p);
/* Check that the policy's rankings exist and weigh only factors that exist. 0 or -EINVAL. */
int rank_check(const struct berth_order *o, struct berth_err *err);
int rank_check_backfill(const struct berth_backfill *b, struct berth_err *err);
