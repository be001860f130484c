/* rank.h - keys of what waits: the factors, the rankings that are built in, fair shares.
 *
 * A key must not depend on what is placed by this or an earlier plan at the same moment, else applying a plan would change
 * the order of what is left, and the next plan would not be empty. So shares are counted over all that is admitted, in the
 * fixed order creation, id, and load is what is admitted over what there is; use counts by the time that has passed.
 */
#pragma once

#include "core/plan/plan.h"

/* Copies what the policy says of the order: the plan's own policy.order then lives as long as the plan. What else is here does
 * so too where it may change the plan; before, queues are found slowly. */
void rank_begin(struct berth_plan *p);
/* Keys of `len` workloads that wait, higher first, each by the ranking of its queue. Fails where a formula does, or for a
 * ranking or a factor that does not exist. */
int rank_keys(struct berth_plan *p, const uint32_t *workloads, uint32_t len, int64_t *keys, struct berth_err *err);
/* The same of all wishes, each by its workload and the queue it has: their `key`. */
int rank_wishes(struct berth_plan *p, struct berth_err *err);
/* Keys of workloads by one ranking, whatever their queues. */
int rank_keys_by(struct berth_plan *p, const struct berth_ranking *by, const uint32_t *workloads, uint32_t len,
                 int64_t *keys, struct berth_err *err);
/* The ranking and the weights that a queue of the policy (NONE: of no queue) is ranked by. */
const struct berth_ranking *rank_of_queue(const struct berth_plan *p, uint32_t queue);
/* The weight that each factor has in it, in the order of berth_factor_at; all 0 where it weighs none. */
void rank_weights(const struct berth_plan *p, uint32_t queue, int32_t ret[static 32]);
/* The queue of the policy that a workload is in, or NONE. */
uint32_t rank_queue(const struct berth_plan *p, const struct claim *t);
/* The factors of one workload, millionths, in the order of berth_factor_at; returns how many. */
uint32_t rank_factors(struct berth_plan *p, uint32_t workload, int32_t ret[static 32]);
/* What the key of one workload in its queue is made of; returns how many terms. */
uint32_t rank_terms(struct berth_plan *p, uint32_t workload, struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX]);
/* Every account with its place in the fair tree. */
void rank_shares(struct berth_plan *p, void (*tell)(void *ctx, const struct berth_share *share), void *ctx);
/* When time alone may next change the order; noted with plan_recheck. */
void rank_recheck(struct berth_plan *p);
/* Are the rankings of the policy all known, with factors that exist? */
int rank_check(const struct berth_order *o, struct berth_err *err);
int rank_check_backfill(const struct berth_backfill *b, struct berth_err *err);
