/* spec_cache.h - a cache of parsed documents that are read often, reference-counted while a plan uses them
 * (spec_cache.c).
 *
 * A changed document gets a new entry; a referenced entry never changes. All functions run on the state's thread. A
 * formula belongs to its taker from cached_formula_acquire until cached_formula_release.
 */
#pragma once

#include "control/state/state.h"

struct formula;
struct cached_spec;

struct cached_spec *cached_spec_ref(const struct object *o);
void cached_spec_unref(struct cached_spec *k);

/* Returns the formula of a policy, compiled once. NULL: the formula does not compile, or (EBUSY) another taker has
 * it. */
struct formula *cached_formula_acquire(struct cached_spec *k, struct berth_err *err);
void cached_formula_release(struct cached_spec *k);
/* Records a failure of the formula and tells whether it is the first one. */
bool cached_formula_first_failure(struct cached_spec *k);
