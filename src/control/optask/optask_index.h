/* optask_index.h - index of the OpTask steps that the loop has to check, with counts of active and failed steps per
 * OpTask.
 *
 * Most steps have ended for good. The loop (optask_loop.c) reports each new, changed or deleted step, and checks only
 * the open ones. The index decides nothing.
 */
#pragma once

#include "control/optask/optask.h"

struct opindex;
struct opindex *opindex_new(void);
void opindex_free(struct opindex *ix);

/* Records a step's present state; NULL: it is deleted. `orphan`: its OpTask does not exist, so it has to be checked.
 * O(open steps). */
void opindex_note(struct opindex *ix, const char *id, const struct opstep_view *v, bool orphan);
/* Returns the open steps, ordered by ID: pending, active, with a node to restore, or orphans. Valid until the next
 * note. */
const char *const *opindex_open(const struct opindex *ix, size_t *ret_len);

struct optask_counts {
    size_t active, failed;
};
struct optask_counts opindex_counts(const struct opindex *ix, const char *optask);
