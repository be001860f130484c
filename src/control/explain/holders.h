/* holders.h - who holds a node or a device, now or at a past time; and how much of others a caller may be told.
 *
 * Of what is not theirs people learn as much as the setting `holder_shown` says: nobody, the group's name, or the user's.
 * What it is called and what it does they never learn. The past is read from usage records, which are written when an
 * instance ends and kept for a while.
 */
#pragma once

#include "control/api/request.h"

/* Adds `owner` and `group` as far as the caller may know them. True: it may see all of what belongs to them. */
bool holder_show(const struct call *c, const char *owner, const char *group, json_t *to);
/* What plans expect of the time that tasks of a job take; of other workloads, or NULL, nothing. Reads its document. */
struct holder_times {
    int64_t estimate_ns, limit_ns; /* 0: none */
    bool guess;                    /* the estimate is a prediction or the default: nobody has stated it */
};
struct holder_times holder_times(const struct call *c, const struct object *work);
/* When an instance of it is expected to have ended: by the estimate of its job, twice that if it has outrun it, and again, at
 * most its limit. BERTH_NEVER_NS: nobody can say. *ret_guess: nobody has stated it. */
int64_t holder_end_ns(const struct call *c, const struct holder_times *t, const struct object *instance,
                      bool *ret_guess);
/* An instance as one who holds something: whose, where, since when, until when. A new reference. */
json_t *holder_json(const struct call *c, const struct object *instance);

/* GET /v1/holders?node=N | device=N/gpu3 [&at=TIME] */
int holders_run(struct call *c);
