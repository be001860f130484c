/* spec_cache.h - documents that are looked at often, as they were read (spec_cache.c), held while a plan is made of them.
 *
 * A document that changes meanwhile is another one: this stays as it is until it is given back. All on the state's thread; the
 * formula that was taken belongs to the taker's until it is given back.
 */
#pragma once

#include "control/state/state.h"

struct formula;
struct kept_doc;

struct kept_doc *kept_ref(const struct object *o);
void kept_unref(struct kept_doc *k);

/* Of a policy: its formula, compiled once. NULL: it does not compile, or (EBUSY) somebody else has taken it. */
struct formula *kept_formula_take(struct kept_doc *k, struct berth_err *err);
void kept_formula_give(struct kept_doc *k);
/* Is this the first time it fails? */
bool kept_first_failure(struct kept_doc *k);
