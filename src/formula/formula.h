/* formula.h - administrators' formulas: from the factors of a job to its key, in Lua.
 *
 * The text is an expression ("2 * age + fair_share") or the body of a function that returns a number; see docs/policies.md
 * for what it may name. A formula is a function of its row: it keeps nothing from one row to the next, sees no clock, file or
 * chance, counts with base/math.h instead of libm, and has a bound of instructions and memory. So the same rows give the
 * same keys on every machine. It is no way to write a scheduler: what it sees is struct berth_factors.
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

/* Compiles a formula and tries it on some rows. -EINVAL with the name, the line and the reason where it is none that can be
 * ranked by. To be freed. */
int formula_new(const char *text, const char *name, struct formula **ret, struct berth_err *err);
void formula_free(struct formula *f);

/* A berth_formula, with the formula as its context: keys in thousandths of what it gives, as far as they go. */
int formula_run(void *formula, const struct berth_factors *in, int64_t *keys, struct berth_err *err);

static inline void formula_cleanup(struct formula **f)
{
    formula_free(*f);
}
