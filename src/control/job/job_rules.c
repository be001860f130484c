/* job_rules.c - checks the keys that only jobs have. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "control/job/job.h"
#include "control/job/notification.h"
#include "wire/text/document.h"

int job_refuse_keys(struct request *c, const json_t *doc)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)doc, key, value) if (job_key_is(key)) return err_set(&c->err, EINVAL,
                                                                                       "%s: is only for jobs", key);
    return 0;
}

static bool same(const json_t *old, const json_t *doc, const char *key)
{
    const json_t *was = json_object_get(old, key), *is = json_object_get(doc, key);
    return old && was && is && json_equal(was, is);
}

/* Checked only when the deadline is set; the loop handles deadlines that pass later. */
static int deadline_check(struct request *c, const json_t *old, const json_t *doc, const struct job_terms *t)
{
    int64_t need_ns = t->estimate_ns ? t->estimate_ns : t->time_limit_ns;
    if (!t->deadline_ns || (same(old, doc, "deadline") && same(old, doc, "estimate")))
        return 0;
    if (t->deadline_ns <= c->now_ns)
        return err_set(&c->err, EINVAL, "deadline: expected a time in the future; this was %s ago",
                       duration_text(c->now_ns - t->deadline_ns, &c->arena));
    if (!need_ns) /* otherwise the job would count as one hour and might never start */
        return err_set(&c->err, EINVAL, "deadline: needs an estimate or a time_limit");
    if (t->deadline_ns - c->now_ns < need_ns)
        return err_set(&c->err, EINVAL, "deadline: is in %s, but the job needs %s",
                       duration_text(t->deadline_ns - c->now_ns, &c->arena), duration_text(need_ns, &c->arena));
    return 0;
}

static bool waited_before(const struct job_terms *was, uint64_t job)
{
    for (size_t i = 0; i < was->after_len; i++)
        if (was->after[i].job == job)
            return true;
    return false;
}

/* Checks dependencies. A job that the caller may not see is reported as missing. Only earlier jobs are allowed, so
 * there are no cycles. */
static int after_check(struct request *c, const char *id, const json_t *old, const struct job_terms *t)
{
    struct work_doc before = {0};
    int64_t own = 0;
    if (old && work_doc_read(old, &c->arena, &before, NULL) < 0)
        before.job.after_len = 0;
    (void)str_parse_i64(id, &own);
    for (size_t i = 0; i < t->after_len; i++) {
        char number[24];
        const char *of = str_u64(t->after[i].job, number);
        const struct object *o = state_find(c->state, KIND_JOB, of);
        if (waited_before(&before.job, t->after[i].job))
            continue;
        if (!change_read(&c->change, KIND_JOB, of) || (o && !request_may_see(c, o)))
            return err_set(&c->err, EINVAL, "after[%zu]: job %s does not exist; see 'berth get jobs'", i, of);
        if (t->after[i].job >= (uint64_t)own)
            return err_set(&c->err, EINVAL, "after[%zu]: job %s is not earlier; a job waits only for earlier jobs", i,
                           of);
    }
    return 0;
}

int job_check(struct request *c, const char *id, const json_t *old, const json_t *doc, const struct work_doc *d)
{
    const struct job_terms *t = &d->job;
    if (t->time_limit_ns && t->estimate_ns > t->time_limit_ns)
        return err_set(&c->err, EINVAL, "estimate: %s is more than the time limit, %s",
                       duration_text(t->estimate_ns, &c->arena), duration_text(t->time_limit_ns, &c->arena));
    if (t->array.count && d->workload.gang && *d->workload.gang)
        return err_set(&c->err, EINVAL, "gang: cannot be combined with an array");
    if (t->singleton && (!d->name || !*d->name))
        return err_set(&c->err, EINVAL, "singleton: needs a job name");
    if (t->deadline_ns && d->workload.begin_ns >= t->deadline_ns)
        return err_set(&c->err, EINVAL, "begin: must be before the deadline");
    int rc = deadline_check(c, old, doc, t);
    if (rc == 0 && !json_equal(json_object_get(old, "notify"), json_object_get(doc, "notify")))
        rc = notification_check(c, t, &c->err);
    if (rc == 0)
        rc = job_hold_running_check(c, id, old, doc);
    return rc < 0 ? rc : after_check(c, id, old, t);
}

int job_hold_check(struct request *c, const json_t *old, const json_t *doc)
{
    const char *by = json_string_value(json_object_get(old, "held_by"));
    const char *owner = json_string_value(json_object_get(old, "owner"));
    bool held = json_is_true(json_object_get(doc, "hold"));
    if (!by || held || permit(&c->caller, PERMIT_MANAGE, "", ""))
        return 0;
    return err_set(&c->err, EACCES, "this job was held by an operator, so %s cannot release it; ask an operator",
                   owner ? owner : "the owner");
}
