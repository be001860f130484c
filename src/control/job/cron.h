/* cron.h - schedules that make jobs (KIND_CRON).
 *
 * A schedule's document says up to when its times have been seen to (`last`). When one is due, the job and the new `last` are
 * one transaction: a crash neither loses nor doubles it. Of times that nobody saw to, because the daemon was down, one job
 * is made at most. The job is made with the rights of the owner, as if submitted by it.
 */
#pragma once

#include "control/api/crud.h"

struct crons;
struct crons *crons_new(struct control *control);
void crons_free(struct crons *c);
/* A schedule has changed, come or gone. */
void crons_event(struct crons *c, const char *id);
/* Makes what is due; at most one transaction is under way. */
void crons_step(struct crons *c);

extern const struct crud cron_crud;
