/* last_words.h - how instances ended that are gone: their last words.
 *
 * What has failed or was stopped has no instance any more, but its log is still on its node, and people ask why. One small
 * document per workload (KIND_LAST) keeps the latest end of some ordinals; it goes with its workload. No decision depends
 * on it.
 */
#pragma once

#include "control/api/request.h"
#include "wire/doc/api.h"

enum { LAST_MAX = 8 };

/* Adds the end of an instance to the change, in place of an earlier one of the same ordinal, or of the oldest. */
void last_note(struct call *c, const struct object *instance, const struct report_item *item);
/* [{"instance", "ordinal", "node", "state", "outcome", "exit", "error", "since"}], the latest first. A new reference;
 * NULL: none. */
json_t *last_show(const struct state *s, const char *workload);
