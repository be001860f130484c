#include "control/explain/start_advice.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "control/explain/queue_view.h"
#include "control/tenant/cap.h"
#include "wire/doc/api.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/document.h"

enum { DRAFTS_MAX = 64 };
#define SECOND_NS INT64_C(1000000000)
#define GAIN_NS (60 * SECOND_NS) /* smaller gains are omitted, unless the job would start at once */

/* ---- variations ------------------------------------------------------------------------------------------------- */

/* Copies of the document with one change each: [[document, description of the change, pods of the gang that must start
 * together (0: all)], ...]. The first one is the unchanged document. */
struct doc_variations {
    json_t *list;
    const json_t *doc;
    struct work_doc work;
};

/* Returns the minimum size of the gang; 0: not a gang. */
static uint32_t gang_least(const struct work_doc *d)
{
    const struct berth_workload *w = &d->workload;
    if (!w->gang || !*w->gang)
        return 0;
    return w->gang_min ? w->gang_min : w->replicas;
}

static void add(struct doc_variations *v, const char *key, json_t *value, json_t *text)
{
    json_t *doc = json_deep_copy(v->doc);
    (void)(value ? json_object_set_new(doc, key, value) : json_object_del(doc, key));
    if (json_array_size(v->list) < FORECAST_CASES_MAX)
        (void)json_array_append_new(v->list, json_pack("[o, o, I]", doc, text, (json_int_t)gang_least(&v->work)));
    else {
        json_decref(doc);
        json_decref(text);
    }
}

static void vary_gpus(struct doc_variations *v)
{
    const struct berth_gpu_need *gpu = &v->work.workload.shape.gpu;
    const json_t *asked = json_object_get(v->doc, "gpu");
    uint32_t half = gpu->count / 2;
    if (half == 0)
        return;
    json_t *value = json_is_object(asked) ? json_deep_copy(asked) : json_integer(half);
    if (json_is_object(value))
        (void)json_object_set_new(value, "count", json_integer(half));
    add(v, "gpu", value,
        json_sprintf("with %u GPU%s in each pod instead of %u", half, half == 1 ? "" : "s", gpu->count));
}

static void vary_pods(struct doc_variations *v)
{
    uint32_t least = gang_least(&v->work);
    if (least < 2)
        return;
    add(v, "gang_min", json_integer(least / 2),
        json_sprintf("as an elastic gang that starts with %u pods instead of %u", least / 2, least));
    json_t *item = json_array_get(v->list, json_array_size(v->list) - 1);
    (void)json_array_set_new(item, 2, json_integer(least / 2));
}

static void vary_cpu(struct doc_variations *v)
{
    const struct berth_shape *shape = &v->work.workload.shape;
    for (size_t i = 0; i < shape->requests_len; i++) {
        if (strcmp(shape->requests[i].resource, "cpu") != 0 || shape->requests[i].amount < 2000)
            continue;
        const char *key = json_object_get(v->doc, "requests") ? "requests" : "resources";
        int64_t half = shape->requests[i].amount / 2000;
        json_t *requests = json_deep_copy(json_object_get(v->doc, key));
        (void)json_object_set_new(requests, "cpu", json_integer(half));
        add(v, key, requests,
            json_sprintf("with %d core%s in each pod instead of %.4g", (int)half, half == 1 ? "" : "s",
                         (double)shape->requests[i].amount / 1000));
    }
}

static void vary_time(struct doc_variations *v)
{
    int64_t limit_ns = v->work.job.time_limit_ns, half_s = limit_ns / 2 / SECOND_NS;
    if (half_s < 60)
        return;
    add(v, "time_limit", json_integer(half_s),
        json_sprintf("with a time limit of %d minutes instead of %d", (int)(half_s / 60),
                     (int)(limit_ns / SECOND_NS / 60)));
    json_t *doc = json_array_get(json_array_get(v->list, json_array_size(v->list) - 1), 0);
    if (v->work.job.estimate_ns > half_s * SECOND_NS)
        (void)json_object_set_new(doc, "estimate", json_integer(half_s));
}

static void vary_domain(struct doc_variations *v)
{
    if (v->work.workload.shape.domains_len)
        add(v, "domains", NULL, json_string("in any domain"));
}

static bool listed(const char *const *names, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Tries other queues that the owner may use. */
static void vary_queue(struct doc_variations *v, struct request *c, const char *owner, const char *group)
{
    size_t len;
    const char *present = v->work.job.queue ? v->work.job.queue : "default";
    const struct object *const *queues = state_list(c->state, KIND_QUEUE, &len);
    for (size_t i = 0; i < len && json_array_size(v->list) < FORECAST_CASES_MAX; i++) {
        struct queue_doc q;
        CLEANUP(json) json_t *doc = object_doc(queues[i]);
        if (strcmp(queues[i]->id, present) == 0 || queue_doc_read(doc, &c->arena, &q, NULL) < 0)
            continue;
        bool open = q.users_len + q.groups_len == 0 || listed(q.users, q.users_len, owner) ||
                    listed(q.groups, q.groups_len, group);
        bool fits = !q.max_time_ns || (v->work.job.time_limit_ns && v->work.job.time_limit_ns <= q.max_time_ns);
        if (open && fits)
            add(v, "queue", json_string(queues[i]->id), json_sprintf("in the queue %s", queues[i]->id));
    }
}

static json_t *vary(struct request *c, const json_t *doc, const char *owner, const char *group, bool vary_it)
{
    struct doc_variations v = {.list = json_array(), .doc = doc};
    if (work_doc_read(doc, &c->arena, &v.work, NULL) < 0)
        return v.list;
    (void)json_array_append_new(v.list, json_pack("[O, s, I]", doc, "", (json_int_t)gang_least(&v.work)));
    if (!vary_it)
        return v.list;
    vary_gpus(&v);
    vary_pods(&v);
    vary_time(&v);
    vary_domain(&v);
    vary_cpu(&v);
    vary_queue(&v, c, owner, group);
    return v.list;
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static void drop(void *keep)
{
    json_decref(keep);
}

int start_advice_plan(struct request *c, const struct forecast_draft *of, size_t of_len, const struct object *job,
                      bool vary_it, const struct forecast_run **ret)
{
    struct forecast_case cases[FORECAST_CASES_MAX] = {
        {.drafts = of, .drafts_len = of_len}
    };
    struct forecast_draft drafts[FORECAST_CASES_MAX];
    struct forecast_spec run_spec = {
        .cases = cases, .cases_len = 1, .subject = of_len ? of->id : job->id, .drop = drop};
    CLEANUP(json) json_t *present = of_len ? json_incref((json_t *)of->doc) : object_doc(job);
    struct forecast_draft base = {KIND_JOB, of_len ? of->id : job->id, of_len ? of->owner : job->owner,
                                  of_len ? of->group : job->group, present};
    json_t *list = vary(c, present, base.owner, base.group, vary_it && of_len < 2), *item;
    size_t i;
    run_spec.advise = vary_it;
    json_array_foreach(list, i, item)
    {
        if (i == 0)
            continue;
        drafts[i] = base;
        drafts[i].doc = json_array_get(item, 0);
        cases[run_spec.cases_len++] = (struct forecast_case){.drafts = &drafts[i], .drafts_len = 1};
    }
    run_spec.keep = list;
    return forecast_request(c, &run_spec, ret);
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

int64_t start_advice_start_ns(const struct forecast_run *run, size_t i, const char *workload)
{
    return forecast_start_beside(run, i, 0, workload);
}

/* Returns the number of pods that the plan places. */
static uint32_t starts_of(const struct forecast_plan *p, const char *id)
{
    uint32_t starts = 0;
    for (size_t i = 0; p->plan && i < berth_plan_actions(p->plan); i++) {
        struct berth_action a = berth_plan_action(p->plan, i);
        starts += (a.op == BERTH_PLACE || a.op == BERTH_PROMOTE || a.op == BERTH_RESERVE) && !a.replaces &&
                  strcmp(a.workload, id) == 0;
    }
    return starts;
}

/* Returns the start in case i. A gang counts as started once its minimum number of pods is placed. */
static int64_t case_start_ns(const struct forecast_run *run, size_t i, size_t beside, const char *workload)
{
    uint32_t least = (uint32_t)json_integer_value(json_array_get(json_array_get(run->keep, i), 2));
    if (least && starts_of(&run->plans[i], workload) >= least)
        return run->now_ns;
    return forecast_start_beside(run, i, beside, workload);
}

/* Writes a change that lets all or more of the pods start at once, according to a plan. */
static json_t *advice_json(const struct forecast_run *run, const struct berth_advice *a, int64_t present_ns)
{
    char text[TIMESTAMP_MAX];
    json_t *item =
        json_pack("{s:s, s:s, s:b}", "change", a->what, "start", timestamp_text(run->now_ns, text), "now", 1);
    if (a->starts < a->waiting) {
        (void)json_object_set_new(item, "starts", json_integer((json_int_t)a->starts));
        (void)json_object_set_new(item, "waiting", json_integer((json_int_t)a->waiting));
    }
    if (present_ns)
        (void)json_object_set_new(item, "sooner_s", json_integer((present_ns - run->now_ns) / SECOND_NS));
    return item;
}

/* Tells whether a variation has the same change. */
static bool is_listed(const json_t *list, const char *change)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i,
                       item) if (strcmp(json_string_value(json_object_get(item, "change")), change) == 0) return true;
    return false;
}

static json_t *variation_json(const struct forecast_run *run, size_t i, int64_t start_ns, int64_t present_ns)
{
    char text[TIMESTAMP_MAX];
    const json_t *change = json_array_get(json_array_get(run->keep, i), 1);
    json_t *item = json_pack("{s:O, s:s, s:b}", "change", change, "start", timestamp_text(start_ns, text), "now",
                             start_ns <= run->now_ns);
    if (present_ns)
        (void)json_object_set_new(item, "sooner_s", json_integer((present_ns - start_ns) / SECOND_NS));
    return item;
}

json_t *start_advice_json(const struct forecast_run *run, const char *workload)
{
    const int64_t now_ns = run->now_ns;
    int64_t starts[FORECAST_CASES_MAX + FORECAST_ADVICE_MAX] = {0}, present_ns = case_start_ns(run, 0, 0, workload);
    json_t *list = json_array();
    for (size_t i = 0; i < run->advice_len; i++) {
        if (run->advice[i].after || is_listed(list, run->advice[i].what))
            continue;
        starts[json_array_size(list)] = run->now_ns;
        (void)json_array_append_new(list, advice_json(run, &run->advice[i], present_ns));
    }
    for (size_t i = 1; i < run->plans_len; i++) {
        present_ns = case_start_ns(run, 0, i, workload);
        int64_t start_ns = case_start_ns(run, i, 0, workload), gain_ns = start_ns > now_ns ? GAIN_NS : 1;
        size_t at = json_array_size(list);
        const char *change = json_string_value(json_array_get(json_array_get(run->keep, i), 1));
        if (!start_ns || (present_ns && present_ns - start_ns < gain_ns) || is_listed(list, change))
            continue;
        for (; at > 0 && starts[at - 1] > start_ns; at--)
            starts[at] = starts[at - 1];
        starts[at] = start_ns;
        (void)json_array_insert_new(list, at, variation_json(run, i, start_ns, present_ns));
    }
    return list;
}

/* ---- drafts ----------------------------------------------------------------------------------------------------- */

/* Returns the number of instances that would be preempted. */
static size_t stops_of(const struct forecast_plan *p, const char *id)
{
    size_t stops = 0;
    for (size_t i = 0; i < berth_plan_actions(p->plan); i++) {
        struct berth_action a = berth_plan_action(p->plan, i);
        if (a.op == BERTH_RESERVE && strcmp(a.workload, id) == 0)
            stops += a.waits_len;
    }
    return stops;
}

static json_t *draft_json(const struct forecast_run *run, const char *id)
{
    const struct forecast_plan *p = &run->plans[0];
    char text[TIMESTAMP_MAX];
    size_t at;
    json_t *told = forecast_label(run);
    if (p->plan && forecast_find(p, id, &at)) {
        bool guess;
        struct berth_queue_position s = forecast_queue_position(p, at, &guess);
        struct berth_pending pending = berth_plan_pending(p->plan, at);
        queue_position_show(&s, guess, told);
        (void)json_object_set_new(told, "of", json_integer((json_int_t)berth_plan_pendings(p->plan)));
        (void)json_object_set_new(told, "reasons", reasons_json(&pending));
    } else if (p->plan && forecast_starts(p, id)) {
        bool guess;
        int64_t start_ns = forecast_start_ns(p, id, run->now_ns, &guess);
        (void)json_object_set_new(told, "now", json_true());
        (void)json_object_set_new(told, "stops", json_integer((json_int_t)stops_of(p, id)));
        (void)json_object_set_new(told, "start", json_string(timestamp_text(start_ns, text)));
    }
    (void)json_object_set_new(told, "sooner", start_advice_json(run, id));
    return told;
}

int start_advice_draft(struct request *c)
{
    struct forecast_draft drafts[DRAFTS_MAX];
    const struct forecast_run *run = NULL;
    size_t len = 0;
    for (size_t i = 0; i < c->change.items.len && len < DRAFTS_MAX; i++) {
        const struct change_item *item = &c->change.items.at[i];
        if (item->kind != KIND_JOB || !item->write || !item->doc)
            continue;
        const char *owner = json_string_value(json_object_get(item->doc, "owner"));
        const char *group = json_string_value(json_object_get(item->doc, "group"));
        drafts[len++] = (struct forecast_draft){KIND_JOB, item->id, owner ? owner : "", group ? group : "", item->doc};
    }
    if (len == 0)
        return 0;
    int rc = cap_check(c); /* checked before planning */
    if (rc == 0)
        rc = start_advice_plan(c, drafts, len, NULL, true, &run);
    if (rc < 0 || !run)
        return rc;
    if (!json_is_object(c->answer.body))
        c->answer.body = json_object();
    (void)json_object_set_new(c->answer.body, "forecast", draft_json(run, drafts[0].id));
    return 0;
}
