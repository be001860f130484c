/* formula.h - administrators' formulas in Lua, which compute the rank key of a job from its factors.
 *
 * The text is an expression ("2 * age + fair_share") or the body of a function that returns a number; docs/policies.md
 * lists the names that it may use. A formula is a function of its row: it stores nothing between rows, has no access to
 * clocks, files or random numbers, computes with base/math.h instead of libm, and is limited in instructions and
 * memory. So the same rows give the same keys on every machine. A formula cannot replace the scheduler: its only input
 * is struct berth_factors.
 *
 * One formula belongs to one thread at a time.
 */
#pragma once

#include "berth.h"

enum {
    FORMULA_TEXT_MAX = 8192,      /* bytes */
    FORMULA_STEPS_MAX = 2000,     /* instructions for one row */
    FORMULA_MEMORY_MAX = 1 << 20, /* bytes */
};

struct formula;

/* Compiles a formula and runs it on some sample rows. -EINVAL with the name, the line and the reason if the formula is
 * not valid. The caller frees it with formula_free. */
int formula_new(const char *text, const char *name, struct formula **ret, struct berth_err *err);
void formula_free(struct formula *f);

/* A berth_formula with the formula as its context: keys are thousandths of the formula's result, saturated. */
int formula_run(void *formula, const struct berth_factors *in, int64_t *keys, struct berth_err *err);

static inline void formula_cleanup(struct formula **f)
{
    formula_free(*f);
}
