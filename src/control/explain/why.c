#include "control/explain/why.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/explain/holders.h"
#include "control/explain/queue_view.h"
#include "control/explain/start_advice.h"
#include "control/explain/status.h"
#include "control/job/outcome.h"
#include "control/job/predict.h"
#include "wire/doc/api.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/document.h"

enum { BLOCKERS_MAX = 20, PARENTS_MAX = 16 };

static void add_time(json_t *to, const char *key, int64_t ns)
{
    char text[TIMESTAMP_MAX];
    if (ns > 0 && ns != BERTH_NEVER_NS)
        (void)json_object_set_new(to, key, json_string(timestamp_text(ns, text)));
}

/* ---- quotas ----------------------------------------------------------------------------------------------------- */

/* Returns the amount of a resource that one more pod, or the whole gang, counts against quotas. */
static int64_t counts_of(const struct berth_workload *w, const char *resource)
{
    const struct berth_gpu_need *gpu = &w->shape.gpu;
    int64_t pods = w->gang && *w->gang ? (int64_t)(w->gang_min ? w->gang_min : w->replicas) : 1;
    if (strcmp(resource, "gpu") == 0)
        return pods * (gpu->count > 1 || !gpu->milli ? (int64_t)gpu->count * BERTH_GPU_MILLI : (int64_t)gpu->milli);
    if (strcmp(resource, "pods") == 0)
        return pods;
    if (strcmp(resource, "jobs") == 0)
        return 1;
    for (size_t i = 0; i < w->shape.requests_len; i++)
        if (strcmp(w->shape.requests[i].resource, resource) == 0)
            return pods * w->shape.requests[i].amount;
    return 0;
}

/* Adds "group/vision holds 8 gpu, of 8 gpu at most" for each limit that the workload would exceed now. */
static void quota_add(struct request *c, const char *id, const struct quota_doc *q, const struct berth_workload *w,
                      json_t *list)
{
    struct berth_quota_use use;
    for (size_t i = 0; i < q->limits_len; i++) {
        const struct berth_amount *limit = &q->limits[i];
        int64_t more = counts_of(w, limit->resource);
        if (!more || !berth_quota_use(state_cluster(c->state), id, limit->resource, &use) ||
            use.held + more <= limit->amount)
            continue;
        const char *text = arena_fmt(&c->arena, "%s uses %s of at most %s; this job requests %s", id,
                                     quota_amount_text(limit->resource, use.held, &c->arena),
                                     quota_amount_text(limit->resource, limit->amount, &c->arena),
                                     quota_amount_text(limit->resource, more, &c->arena));
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:I, s:I, s:I, s:s}", "quota", id, "resource",
                                              limit->resource, "held", (json_int_t)use.held, "limit",
                                              (json_int_t)limit->amount, "asked", (json_int_t)more, "text", text));
    }
}

static json_t *quotas_json(struct request *c, const struct object *work, const struct work_doc *d)
{
    json_t *list = json_array();
    const struct object *user = state_find(c->state, KIND_USER, work->owner);
    const struct object *group = *work->group ? state_find(c->state, KIND_GROUP, work->group) : NULL;
    const char *queue = d->job.queue;
    struct user_doc of_user;
    struct group_doc of_group;
    CLEANUP(json) json_t *user_json = user ? object_doc(user) : NULL, *group_json = group ? object_doc(group) : NULL;
    if (user && user_doc_read(user_json, &c->arena, &of_user, NULL) == 0)
        quota_add(c, arena_fmt(&c->arena, "user/%s", user->id), &of_user.quota, &d->workload, list);
    if (group && group_doc_read(group_json, &c->arena, &of_group, NULL) == 0)
        quota_add(c, arena_fmt(&c->arena, "group/%s", group->id), &of_group.quota, &d->workload, list);
    for (int i = 0; i < PARENTS_MAX && queue && *queue; i++) {
        struct queue_doc of_queue;
        const struct object *o = state_find(c->state, KIND_QUEUE, queue);
        CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
        if (!o || queue_doc_read(doc, &c->arena, &of_queue, NULL) < 0)
            break;
        quota_add(c, arena_fmt(&c->arena, "queue/%s", o->id), &of_queue.quota, &d->workload, list);
        queue = of_queue.parent ? arena_strdup(&c->arena, of_queue.parent) : NULL;
    }
    return list;
}

/* ---- dependencies ----------------------------------------------------------------------------------------------- */

static json_t *after_json(struct request *c, const struct work_doc *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->job.after_len; i++) {
        const struct job_after *a = &d->job.after[i];
        char id[24];
        const struct object *o = state_find(c->state, KIND_JOB, str_u64(a->job, id));
        bool sees = o && request_may_see(c, o);
        (void)json_array_append_new(list, json_pack("{s:I, s:s, s:s}", "job", (json_int_t)a->job, "when",
                                                    after_when_name(a->when), "state",
                                                    sees ? work_state_word(c->state, o, c->now_ns)
                                                    : o  ? "no permission"
                                                         : "gone"));
    }
    return list;
}

/* ---- blockers --------------------------------------------------------------------------------------------------- */

static json_t *blockers_json(const struct request *c, const struct berth_queue_position *s)
{
    json_t *list = json_array();
    char id[24];
    for (size_t i = 0; i < s->blockers_len && i < BLOCKERS_MAX; i++) {
        const struct object *o = state_find(c->state, KIND_INSTANCE, str_u64(s->blockers[i], id));
        if (o)
            (void)json_array_append_new(list, holder_json(c, o));
    }
    return list;
}

/* ---- answer ----------------------------------------------------------------------------------------------------- */

static void add_queue_position(const struct request *c, const struct forecast_plan *p, size_t at, json_t *body)
{
    bool guess;
    struct berth_queue_position s = forecast_queue_position(p, at, &guess);
    struct berth_pending pending = berth_plan_pending(p->plan, at);
    json_t *standing = json_object();
    queue_position_show(&s, guess, standing);
    (void)json_object_set_new(standing, "of", json_integer((json_int_t)berth_plan_pendings(p->plan)));
    (void)json_object_set_new(standing, "factors", factors_json(&s));
    (void)json_object_set_new(standing, "terms", terms_json(&s));
    (void)json_object_set_new(body, "standing", standing);
    (void)json_object_set_new(body, "pending", json_integer((json_int_t)pending.ordinals_len));
    (void)json_object_set_new(body, "reasons", reasons_json(&pending));
    (void)json_object_set_new(body, "blockers", blockers_json(c, &s));
    add_time(body, "start", s.start_ns);
    add_time(body, "end", s.start_ns ? s.end_ns : 0);
    if (s.start_ns && guess)
        (void)json_object_set_new(body, "start_guess", json_true());
}

/* Adds the expected end of a running job: that of its last task. */
static void add_end(const struct request *c, const struct object *work, json_t *body)
{
    int64_t end_ns = 0, start_ns = 0;
    bool guess = false;
    struct holder_times times = holder_times(c, work);
    for (size_t i = 0; i < work->work->instances_len; i++) {
        const struct object *o = work->work->instances[i];
        if (o->instance->state != BERTH_RUNNING)
            continue;
        bool one_guess;
        int64_t one_ns = holder_end_ns(c, &times, o, &one_guess), from_ns = o->instance->started_ns;
        guess = one_ns > end_ns ? one_guess : guess;
        end_ns = one_ns > end_ns ? one_ns : end_ns;
        start_ns = from_ns && (!start_ns || from_ns < start_ns) ? from_ns : start_ns;
    }
    add_time(body, "start", start_ns);
    add_time(body, "end", end_ns);
    if (guess)
        (void)json_object_set_new(body, "end_guess", json_true());
}

/* Adds the start of a job that is not in the order yet, or whose reserved place is about to be free. */
static void add_start(const struct forecast_run *run, const struct object *work, json_t *body)
{
    bool guess;
    int64_t start_ns = forecast_start_ns(&run->plans[0], work->id, run->now_ns, &guess);
    if (json_object_get(body, "start") || start_ns <= run->now_ns)
        return;
    add_time(body, "start", start_ns);
    if (guess)
        (void)json_object_set_new(body, "start_guess", json_true());
}

static json_t *why_json(struct request *c, const struct object *work, const struct forecast_run *run, bool suggest)
{
    const struct forecast_plan *p = &run->plans[0];
    struct work_doc d;
    size_t at;
    CLEANUP(json) json_t *doc = object_doc(work);
    const char *state = work_state_word(c->state, work, c->now_ns);
    json_t *lines = json_array();
    why_work(c, work, NULL, lines);
    json_t *body = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "kind", "job", "id", work->id, "state", state, "lines",
                             lines, "asked", requests_json(work), "forecast", forecast_label(run));
    enum work_outcome outcome = outcome_of_work(work);
    if (outcome)
        (void)json_object_set_new(body, "outcome", json_string(work_outcome_name(outcome)));
    if (*work->work->name)
        (void)json_object_set_new(body, "name", json_string(work->work->name));
    add_time(body, "created", work->work->created_ns);
    bool waits = forecast_find(p, work->id, &at);
    if (waits)
        add_queue_position(c, p, at, body);
    else
        add_end(c, work, body);
    if (!waits && forecast_starts(p, work->id))
        (void)json_object_set_new(body, "now", json_true());
    if (!waits)
        add_start(run, work, body);
    if (work_doc_read(doc, &c->arena, &d, NULL) == 0) {
        (void)json_object_set_new(body, "quotas", waits ? quotas_json(c, work, &d) : json_array());
        (void)json_object_set_new(body, "after", after_json(c, &d));
    }
    json_t *prediction = predict_show(c->state, work);
    if (prediction)
        (void)json_object_set_new(body, "prediction", prediction);
    if (suggest)
        (void)json_object_set_new(body, "sooner", waits ? start_advice_json(run, work->id) : json_array());
    return body;
}

int job_why(struct request *c)
{
    const struct forecast_run *run = NULL;
    const struct object *work = request_object(c, KIND_JOB, c->args[0], PERMIT_READ);
    const char *asked = request_query(c, "suggest");
    if (!work)
        return -c->err.code;
    bool suggest = asked && (strcmp(asked, "1") == 0 || strcmp(asked, "true") == 0);
    int rc = suggest ? start_advice_plan(c, NULL, 0, work, true, &run)
                     : forecast_request(c, &(struct forecast_spec){0}, &run);
    if (rc < 0 || !run)
        return rc;
    c->answer.body = why_json(c, work, run, suggest);
    c->answer.revision = state_revision(c->state);
    return 0;
}
