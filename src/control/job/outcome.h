/* outcome.h - outcomes of workloads and instances: written to their documents at the end, and read from documents.
 *
 * Clients see the outcome when nothing of the workload runs any more; until then a cancelled job is "stopping".
 */
#pragma once

#include "control/state/state.h"

/* Marks a workload's document as ended. `mark`: "cancelled", "failed" or "ended". `error` may be NULL. */
void outcome_put(json_t *doc, const char *mark, enum work_outcome outcome, const char *error);

/* Returns a workload's outcome; OUTCOME_NONE: it has not ended, or is still stopping. O(instances). */
enum work_outcome outcome_of_work(const struct object *work);
/* Returns the outcome in a workload's document; OUTCOME_NONE: it has not ended. */
enum work_outcome outcome_of_doc(const json_t *doc);
/* Returns an instance's outcome; OUTCOME_NONE: it has not ended. */
enum work_outcome outcome_of_instance(const struct instance_view *instance);
/* Returns the outcome of all tasks of a job: that of the failed tasks if they share one, else OUTCOME_FAILED;
 * OUTCOME_SUCCEEDED if none failed. */
enum work_outcome outcome_of_tasks(const struct object *job);
