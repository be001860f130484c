/* redecide.h - one recorded decision made again beside the loop, and compared bit for bit.
 *
 * What `berth replay` does, for one decision of the daemon's own journal: a second state is built from segments and log on the
 * worker for what is slow, and the same core is called. One at a time, for REDECIDE_S seconds at most. Nothing is written, and
 * the state that is in force is not looked at.
 */
#pragma once

#include "control/api/request.h"

enum { REDECIDE_S = 10 }; /* forecasts wait for the same worker */

struct redecide;
/* `dir`: DIR/journal; NULL: the log is all there is. */
struct redecide *redecide_new(struct control *control, const char *dir);
void redecide_free(struct redecide *r);
/* What is under way ends soon; who waits for it is told. */
void redecide_stop(struct redecide *r);

/* GET /v1/audit/{seq}: a record, of a decision with all it says; the documents it wrote by their keys. */
int audit_one(struct call *c);
/* POST /v1/audit/{seq}/replay */
int audit_replay(struct call *c);
