/* cron.h - schedules that create jobs (KIND_CRON).
 *
 * A schedule's document records the last handled time (`last`). The new job and the new `last` are written in one
 * transaction, so a crash neither loses nor repeats a job. If several times passed while the daemon was down, at most
 * one job is created for them. The job is created with the rights of the schedule's owner, as if the owner submitted
 * it.
 */
#pragma once

#include "control/api/crud.h"

struct crons;
struct crons *crons_new(struct control *control);
void crons_free(struct crons *c);
/* Handles a changed, new or deleted schedule. */
void crons_event(struct crons *c, const char *id);
/* Creates the jobs that are due. At most one transaction is in progress. */
void crons_step(struct crons *c);

extern const struct crud cron_crud;
