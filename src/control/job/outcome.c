#include "control/job/outcome.h"

#include <string.h>

void outcome_put(json_t *doc, const char *mark, enum work_outcome outcome, const char *error)
{
    (void)json_object_set_new(doc, mark, json_true());
    (void)json_object_set_new(doc, "outcome", json_string(work_outcome_name(outcome)));
    if (error)
        (void)json_object_set_new(doc, "error", json_string(error));
}

enum work_outcome outcome_of_doc(const json_t *doc)
{
    const char *said = json_string_value(json_object_get(doc, "outcome"));
    for (int o = OUTCOME_SUCCEEDED; said && o <= OUTCOME_PREEMPTED; o++)
        if (strcmp(said, work_outcome_name((enum work_outcome)o)) == 0)
            return (enum work_outcome)o;
    return json_is_true(json_object_get(doc, "cancelled")) ? OUTCOME_CANCELLED
           : json_is_true(json_object_get(doc, "failed"))  ? OUTCOME_FAILED
           : json_is_true(json_object_get(doc, "ended"))   ? OUTCOME_SUCCEEDED
                                                           : OUTCOME_NONE;
}

enum work_outcome outcome_of_instance(const struct instance_view *instance)
{
    if (instance->state != BERTH_ENDED)
        return OUTCOME_NONE;
    if (!instance->failed)
        return OUTCOME_SUCCEEDED;
    return instance->outcome ? instance->outcome : OUTCOME_FAILED;
}

enum work_outcome outcome_of_tasks(const struct object *job)
{
    enum work_outcome all = OUTCOME_SUCCEEDED;
    for (size_t i = 0; i < job->work->instances_len; i++) {
        enum work_outcome one = outcome_of_instance(job->work->instances[i]->instance);
        if (one == OUTCOME_NONE || one == OUTCOME_SUCCEEDED || one == all)
            continue;
        if (all != OUTCOME_SUCCEEDED)
            return OUTCOME_FAILED;
        all = one;
    }
    return all;
}

enum work_outcome outcome_of_work(const struct object *work)
{
    const struct work_view *v = work->work;
    size_t ended = 0;
    for (size_t i = 0; i < v->instances_len; i++)
        ended += v->instances[i]->instance->state == BERTH_ENDED;
    if (v->outcome)
        return ended == v->instances_len ? v->outcome : OUTCOME_NONE;
    /* All tasks have ended, but the loop has not marked the job yet. */
    return work->kind == KIND_JOB && v->replicas && ended >= v->replicas ? outcome_of_tasks(work) : OUTCOME_NONE;
}
