/* replay_decision.h - repeats one recorded decision on a worker thread, and compares the result bit for bit.
 *
 * Does what `berth replay` does, for one decision of the daemon's own journal: builds a second state from segments and
 * log on the worker for slow work, and calls the same core. One decision at a time, for at most REDECIDE_S seconds.
 * Nothing is written, and the live state is not read.
 */
#pragma once

#include "control/api/request.h"

enum { REDECIDE_S = 10 }; /* short, because forecasts use the same worker */

struct redecision;
/* `dir`: DIR/journal; NULL: only the log is available. */
struct redecision *redecision_new(struct control *control, const char *dir);
void redecision_free(struct redecision *r);
/* Stops the running comparison soon, and answers the waiting request. */
void redecision_stop(struct redecision *r);

/* GET /v1/audit/{seq}: one record. A decision is shown completely; written documents are shown by their keys. */
int audit_one(struct request *c);
/* POST /v1/audit/{seq}/replay */
int audit_replay(struct request *c);
