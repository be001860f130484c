/* job.h - the life of jobs: what they wait for, when they are over, and what becomes of them on the way.
 *
 * Everything that decides is in the documents. A job's own says whether it need not wait any more (`met`), when it first ran
 * (`started`), and since when it is over and nothing of it runs (`finished`); these are written by the loop (struct jobs),
 * which looks at a job when something happened to it or its instances, and at those that wait for it. So the cluster
 * follows from each document alone, and after a crash the loop looks at all jobs that are not over.
 *
 * A job that is over was cancelled, has failed, or has ended well; outcome.h tells how.
 */
#pragma once

#include "control/api/crud.h"
#include "core/backfill/lookahead.h"
#include "wire/doc/api.h"

/* ---- rules (job_rules.c) ---- */

/* Is what only jobs say right? `d` was read from the document. */
int job_check(struct call *c, const char *id, const json_t *old, const json_t *doc, const struct work_doc *d);
/* Keys of jobs in the document of something else: -EINVAL. */
int job_refuse_keys(struct call *c, const json_t *doc);
/* Who holds it may release it; an operator's hold is an operator's to release. */
int job_hold_check(struct call *c, const json_t *old, const json_t *doc);
/* A hold keeps a pending job from starting; -EBUSY for a running one, unless the request says ?stop=true.
 * (job_verbs.c) */
int job_hold_running_check(struct call *c, const char *id, const json_t *old, const json_t *doc);

/* ---- what it waits for (job_after.c) ---- */

enum job_wait { WAIT_MET, WAIT_OPEN, WAIT_NEVER };
/* Of one that waits; the sentence ("waits for job 12 to end well", or why never) is in the arena. */
struct jobs;
enum job_wait job_wait(struct jobs *j, const struct object *job, struct arena *arena, const char **ret_text);
/* The job is about to be deleted: what the other waits for and has come about needs no waiting any more. */
void job_after_drop(struct change *change, const struct object *waiter, const struct object *job);
/* Is it over, and nothing of it left to stop? */
bool job_is_over(const struct object *job);
/* What jobs wait for that is expected to come about: the start or the end of others. In the arena, at most
 * JOB_WAITS_MAX. A job that waits for a failure, or for an earlier job of its name, is left out. Reads the documents
 * of the jobs that wait. */
enum { JOB_WAITS_MAX = 10000 };
size_t job_waits(const struct state *s, struct arena *arena, const struct lookahead_wait **ret);

/* ---- the ends of tasks (job_end.c) ---- */

/* Would the action end the job whose task it takes? Its document is read into the arena. */
bool job_would_end(const struct state *s, const struct object *instance, enum berth_op op, enum berth_cause cause,
                   struct arena *arena);
/* A plan stops or loses an instance of a job; the change has its document already. Says what that means for the job. `by`:
 * the job it is stopped for; NULL: none. */
void job_task_stopped(struct change *change, const struct object *instance, enum berth_op op, enum berth_cause cause,
                      const char *by, int64_t now_ns);
/* An event of it. `by`: as above. */
void job_tell_preempted(struct control *c, const char *workload, uint32_t ordinal, const char *node, const char *by);
/* A task of an array has failed for good, or was stopped because it ran for too long: it stays as a record. */
void job_task_failed(struct change *change, const struct object *instance, json_t *doc, enum work_outcome outcome,
                     const char *error, int64_t now_ns);
/* "1h30m" */
const char *duration_text(int64_t ns, struct arena *arena);

/* ---- verbs (job_verbs.c, job_roles.c) ---- */

call_run job_submit, job_hold_verb, job_release_verb, job_cancel_verb, job_requeue_verb;
/* The members of the set a job is part of, itself alone if of none: numbers in the arena, those that are there. */
size_t job_set(struct call *c, const struct object *job, uint64_t **ret);
enum { ROLES_MAX = 32 };

/* ---- the loop (job_loop.c) ---- */

struct jobs *jobs_new(struct control *control);
void jobs_free(struct jobs *j);
/* What a document concerns: the name of a job, the job of an instance; 0: neither. */
uint64_t jobs_key(const struct jobs *j, enum kind kind, const char *id);
/* A change was applied: what has to be looked at. `key_before`: jobs_key before that. */
void jobs_event(struct jobs *j, enum kind kind, const char *id, uint64_t key_before);
/* Looks, and submits what there is to write. */
void jobs_step(struct jobs *j);
/* Does some job wait for it and for others? Then its record is needed. */
bool jobs_awaited(const struct jobs *j, const char *id);
/* It is deleted in this change: those that wait for it are told what has come about. -EBUSY: they are too many. */
int jobs_leaving(struct jobs *j, struct change *change, const char *id, struct berth_err *err);
/* The first earlier job of its owner with its name, and of no set with it, that is not over; NULL: none. */
const struct object *jobs_elder(struct jobs *j, const struct object *job);
const struct state *jobs_state(const struct jobs *j);
/* For the housekeeping: may its record go? Deletes some of its instances' records first. */
void jobs_sweep(struct jobs *j, struct change *change);
