/* ranking.h - the rankings that are built in: from rows of one queue to their keys, higher first.
 *
 * To add one: a function and a row in the table of ranking.c, and a line in docs/policies.md.
 */
#pragma once

#include "core/queue/factor.h"

/* Keys of rows of one queue. Fails where a formula does. The ranking passed ranking_check. */
int ranking_keys(struct ranks *r, const struct berth_ranking *by, const struct row *rows, uint32_t len, int64_t *keys,
                 struct berth_err *err);
/* The key in thousandths, as people are told it. */
int64_t ranking_key_told(const struct berth_ranking *by, int64_t key);
/* Is it known, with factors that exist and weights in their range? */
int ranking_check(const struct berth_ranking *by, struct berth_err *err);
/* May time alone change the order? */
bool ranking_is_timed(const struct berth_ranking *by);
/* The weight that each factor has in it: 0 for none, and all 0 where it weighs no factors. */
void ranking_weights(const struct berth_ranking *by, int32_t ret[static FACTORS_MAX]);
/* What the key of one row is made of; returns how many. 0: of weighed factors, of a formula, or all keys are equal. */
uint32_t ranking_terms(struct ranks *r, const struct berth_ranking *by, const struct row *row,
                       struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX]);
/* rank_berth.c: the key of one row, and its terms. The terms count from the moment of the plan instead of the epoch. */
double ranking_berth(struct ranks *r, const struct row *row);
uint32_t ranking_berth_terms(struct ranks *r, const struct row *row,
                             struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX]);
/* rank_formula.c: the columns that a formula is given. */
int ranking_formula(struct ranks *r, const struct berth_ranking *by, const struct row *rows, uint32_t len,
                    int64_t *keys, struct berth_err *err);
