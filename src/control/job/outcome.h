/* outcome.h - how workloads and instances ended: written into their documents when they end, and told of any document.
 *
 * Clients are shown the outcome once nothing of the workload runs any more; a job that was cancelled is stopping until
 * then.
 */
#pragma once

#include "control/state/state.h"

/* Writes into a workload's document that it is over for good. `mark`: "cancelled", "failed" or "ended". `error`: may
 * be NULL. */
void outcome_put(json_t *doc, const char *mark, enum work_outcome outcome, const char *error);

/* Of a workload; OUTCOME_NONE: it goes on, or is still stopping. O(instances). */
enum work_outcome outcome_of_work(const struct object *work);
/* As the document of a workload says; OUTCOME_NONE: it is not over. */
enum work_outcome outcome_of_doc(const json_t *doc);
/* Of an instance; OUTCOME_NONE: it has not ended. */
enum work_outcome outcome_of_instance(const struct instance_view *instance);
/* Of all tasks of a job: the outcome that all failed tasks share, else OUTCOME_FAILED; OUTCOME_SUCCEEDED: none failed. */
enum work_outcome outcome_of_tasks(const struct object *job);
