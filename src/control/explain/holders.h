/* holders.h - current and past holders of nodes and devices, and what a caller may see of other users' work.
 *
 * The setting `holder_shown` determines what a caller sees about an owner: nothing, the group's name, or the user's
 * name. Names and details of other users' workloads are never shown. Past holders are read from usage records, which
 * are written when an instance ends and kept for a limited time.
 */
#pragma once

#include "control/api/request.h"

/* Adds `owner` and `group` as far as the caller may see them. Returns true if the caller may see the owner's
 * workloads. */
bool holder_show(const struct request *c, const char *owner, const char *group, json_t *to);
/* Expected run time of a job's tasks; zeros for other workloads, or NULL. Parses the job's document. */
struct holder_times {
    int64_t estimate_ns, limit_ns; /* 0: none */
    bool guess;                    /* the estimate is a prediction or the default, not stated by a user */
};
struct holder_times holder_times(const struct request *c, const struct object *work);
/* Returns the expected end of an instance: by the estimate of its job, doubled until it exceeds the elapsed time, at
 * most its limit. BERTH_NEVER_NS: unknown. *ret_guess: the end is not stated by a user. */
int64_t holder_end_ns(const struct request *c, const struct holder_times *t, const struct object *instance,
                      bool *ret_guess);
/* Returns an instance as a holder: owner, node and devices, start, expected end. A new reference. */
json_t *holder_json(const struct request *c, const struct object *instance);

/* GET /v1/holders?node=N | device=N/gpu3 [&at=TIME] */
int holders_run(struct request *c);
