/* optask_index.h - which steps of OpTasks are to be looked at, and how many of each OpTask are under way or have failed.
 *
 * Most steps are over for good. The loop (optask_loop.c) tells of each that comes, changes or goes, and looks at the others
 * only. It decides nothing: what is to be done to a step is the loop's.
 */
#pragma once

#include "control/optask/optask.h"

struct opindex;
struct opindex *opindex_new(void);
void opindex_free(struct opindex *ix);

/* How a step stands now; NULL: it is gone. `orphan`: of no OpTask, which is to be looked at. O(those to be looked at). */
void opindex_note(struct opindex *ix, const char *id, const struct opstep_view *v, bool orphan);
/* Those to be looked at, in order of ids: that wait, are under way, have a node to give back, or are orphans. Valid until the
 * next note. */
const char *const *opindex_open(const struct opindex *ix, size_t *ret_len);

struct optally {
    size_t active, failed;
};
struct optally opindex_tally(const struct opindex *ix, const char *optask);
