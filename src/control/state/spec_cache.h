/* spec_cache.h - a cache of parsed documents that are read often, reference-counted while a plan uses them
 * (spec_cache.c).
 *
 * A changed document gets a new entry; a referenced entry never changes. All functions run on the state's thread. A
 * formula belongs to its taker from kept_formula_take until kept_formula_give.
 */
#pragma once

#include "control/state/state.h"

struct formula;
struct kept_doc;

struct kept_doc *kept_ref(const struct object *o);
void kept_unref(struct kept_doc *k);

/* Returns the formula of a policy, compiled once. NULL: the formula does not compile, or (EBUSY) another taker has
 * it. */
struct formula *kept_formula_take(struct kept_doc *k, struct berth_err *err);
void kept_formula_give(struct kept_doc *k);
/* Records a failure of the formula and tells whether it is the first one. */
bool kept_first_failure(struct kept_doc *k);
