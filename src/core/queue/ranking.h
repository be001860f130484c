/* ranking.h - the built-in rankings: they compute keys from the rows of one queue; the highest key is first.
 *
 * To add one: a function and a row in the table of ranking.c, and a line in docs/policies.md.
 */
#pragma once

#include "core/queue/factor.h"

/* Computes the keys of the rows of one queue. Fails if a formula fails. The ranking has passed ranking_check. */
int ranking_keys(struct ranks *r, const struct berth_ranking *by, const struct rank_row *rows, uint32_t len,
                 int64_t *keys, struct berth_err *err);
/* Returns the key in thousandths, as users see it. */
int64_t ranking_key_for_display(const struct berth_ranking *by, int64_t key);
/* Checks that the ranking exists, that its factors exist and that weights are in range. 0 or -EINVAL. */
int ranking_check(const struct berth_ranking *by, struct berth_err *err);
/* Returns whether the passage of time alone may change the order. */
bool ranking_is_timed(const struct berth_ranking *by);
/* Returns the weight of each factor: 0 for a factor that is not weighed, and all 0 if the ranking weighs no factors. */
void ranking_weights(const struct berth_ranking *by, int32_t ret[static FACTORS_MAX]);
/* Fills in the terms whose sum is the key of one row; returns their number. 0 for a ranking of weighed factors, for a
 * formula, and where all keys are equal. */
uint32_t ranking_terms(struct ranks *r, const struct berth_ranking *by, const struct rank_row *row,
                       struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX]);
/* rank_berth.c: the key of one row, and its terms. The terms count from the moment of the plan instead of the epoch. */
double ranking_berth(struct ranks *r, const struct rank_row *row);
uint32_t ranking_berth_terms(struct ranks *r, const struct rank_row *row,
                             struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX]);
/* rank_formula.c: calls the administrator's formula with the columns of the rows. */
int ranking_formula(struct ranks *r, const struct berth_ranking *by, const struct rank_row *rows, uint32_t len,
                    int64_t *keys, struct berth_err *err);
