/* job.h - the life cycle of jobs: dependencies, ends of tasks, cancellation, requeue.
 *
 * Everything that decides is in documents. A job's document says whether its dependencies are met (`met`), when the job
 * first ran (`started`), and when it ended with all its tasks stopped (`finished`). The loop (struct job_loop) writes
 * these. The loop handles a job after a change of the job or its instances, and also handles the jobs that depend on
 * it. The cluster follows from each document alone; after a crash the loop handles all jobs that have not ended.
 *
 * A job that has ended was cancelled, failed or succeeded; outcome.h tells which.
 */
#pragma once

#include "control/api/crud.h"
#include "core/backfill/lookahead.h"
#include "wire/doc/api.h"

/* ---- rules (job_rules.c) ---- */

/* Checks the keys that only jobs have; `d` was read from the document. */
int job_check(struct request *c, const char *id, const json_t *old, const json_t *doc, const struct work_doc *d);
/* Rejects job keys in the document of another kind: -EINVAL. */
int job_refuse_keys(struct request *c, const json_t *doc);
/* Checks that the caller may change the hold: only operators release an operator's hold. */
int job_hold_check(struct request *c, const json_t *old, const json_t *doc);
/* A hold keeps a pending job from starting. Returns -EBUSY for a running job unless the request says ?stop=true.
 * (job_verbs.c) */
int job_hold_running_check(struct request *c, const char *id, const json_t *old, const json_t *doc);

/* ---- dependencies (job_after.c) --------------------------------------------------------------------------------- */

enum job_wait { WAIT_MET, WAIT_OPEN, WAIT_NEVER };
/* Returns whether the dependencies of a waiting job are met, open, or can never be met. *ret_text is a sentence in the
 * arena ("waits for job 12 to end well", or why never). */
struct job_loop;
enum job_wait job_wait(struct job_loop *j, const struct object *job, struct arena *arena, const char **ret_text);
/* Called when `job` is about to be deleted: removes the dependency on it from `waiter` if it is met. */
void job_after_drop(struct change *change, const struct object *waiter, const struct object *job);
/* Returns whether the job has ended and nothing of it is left to stop. */
bool job_is_finished(const struct object *job);
/* Gets the expected dependencies of waiting jobs: the start or the end of other jobs, at most JOB_WAITS_MAX, in the
 * arena. Leaves out jobs that wait for a failure or for an earlier job of the same name. Reads the documents of the
 * waiting jobs. */
enum { JOB_WAITS_MAX = 10000 };
size_t job_waits(const struct state *s, struct arena *arena, const struct lookahead_wait **ret);

/* ---- the ends of tasks (job_end.c) ---- */

/* Returns whether the action would end the job of this task. Reads the job's document into the arena. */
bool job_would_end(const struct state *s, const struct object *instance, enum berth_op op, enum berth_cause cause,
                   struct arena *arena);
/* Applies to a job that a plan stops or loses one of its instances; the change contains the instance's document
 * already. `by`: the job for which it is preempted; NULL: none. */
void job_note_task_stopped(struct change *change, const struct object *instance, enum berth_op op,
                           enum berth_cause cause, const char *by, int64_t now_ns);
/* Adds the event of a preemption; `by` as above. */
void job_event_preempted(struct control *c, const char *workload, uint32_t ordinal, const char *node, const char *by);
/* Records that a task of an array has failed for good, or was stopped at its time limit. */
void job_note_task_failed(struct change *change, const struct object *instance, json_t *doc, enum work_outcome outcome,
                          const char *error, int64_t now_ns);
/* Formats a duration such as "1h30m". */
const char *duration_text(int64_t ns, struct arena *arena);

/* ---- verbs (job_verbs.c, job_roles.c) ---- */

request_verb job_submit, job_hold_verb, job_release_verb, job_cancel_verb, job_requeue_verb;
/* Gets the existing members of the job's set (the job alone if it has no set): numbers in the arena. Returns how
 * many. */
size_t job_set(struct request *c, const struct object *job, uint64_t **ret);
enum { ROLES_MAX = 32 };

/* ---- the loop (job_loop.c) ---- */

struct job_loop *jobs_new(struct control *control);
void jobs_free(struct job_loop *j);
/* Returns the key that a document concerns: the name of a job, the job of an instance; 0: neither. */
uint64_t jobs_key(const struct job_loop *j, enum kind kind, const char *id);
/* Marks what to handle after an applied change. `key_before`: result of jobs_key before the change. */
void jobs_event(struct job_loop *j, enum kind kind, const char *id, uint64_t key_before);
/* Handles the marked jobs and submits the resulting changes. */
void jobs_step(struct job_loop *j);
/* Returns whether a job depends on this job and on others; the record of this job is then still needed. */
bool jobs_has_waiters(const struct job_loop *j, const char *id);
/* Called when the job is deleted in this change: updates the jobs that depend on it. -EBUSY: there are too many of
 * them. */
int jobs_before_delete(struct job_loop *j, struct change *change, const char *id, struct berth_err *err);
/* Returns the first unfinished earlier job of the same owner and name, outside the job's set; NULL: none. */
const struct object *jobs_earlier_of_name(struct job_loop *j, const struct object *job);
const struct state *jobs_state(const struct job_loop *j);
/* Deletes job records that are no longer needed, their instances' records first. */
void jobs_sweep(struct job_loop *j, struct change *change);
