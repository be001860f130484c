/* sync_scheduling.c - derives the scheduling attributes of a workload from its document, its owner, the owner's group
 * and its queue.
 */
#include <string.h>

#include "control/job/past_runs.h"
#include "control/job/predict.h"
#include "control/state/sync.h"

enum { LEVEL_MAX = 100, CLAIM_QUOTAS = 3, WORDS_OWN = 4 };

static const char *text_or_null(const char *text)
{
    return text ? text : "";
}

static int32_t level_of(int32_t level)
{
    return level < 0 ? 0 : level > LEVEL_MAX ? LEVEL_MAX : level;
}

static int32_t add_priority(int32_t a, int32_t b)
{
    int64_t sum = (int64_t)a + b;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
}

static void quotas_fill(const struct object *o, const struct work_doc *d, struct arena *arena, struct berth_workload *w)
{
    const char **quotas = ARENA_ARRAY(arena, const char *, CLAIM_QUOTAS);
    size_t len = 0;
    if (d->owner && *d->owner && !d->system)
        quotas[len++] = arena_fmt(arena, "user/%s", d->owner);
    if (o->kind == KIND_JOB)
        quotas[len++] = arena_fmt(arena, "queue/%s", w->queue);
    if (o->kind == KIND_JOB && d->job.array.parallel)
        quotas[len++] = arena_fmt(arena, "job/%s", o->id);
    w->quotas = quotas;
    w->quotas_len = len;
}

/* Intersects the domains of the queue and of the job; if the intersection is empty, the queue's domains apply. */
static void domains_fill(const struct queue_terms *q, struct arena *arena, struct berth_shape *shape)
{
    if (q->domains_len == 0)
        return;
    const char **both = ARENA_ARRAY(arena, const char *, q->domains_len);
    size_t len = 0;
    for (size_t i = 0; i < q->domains_len; i++)
        for (size_t j = 0; j < shape->domains_len; j++)
            if (strcmp(q->domains[i], shape->domains[j]) == 0) {
                both[len++] = q->domains[i];
                break;
            }
    shape->domains = len ? both : q->domains;
    shape->domains_len = len ? len : q->domains_len;
}

static void trait_add(struct berth_label *words, size_t *len, const char *key, const char *value)
{
    for (size_t i = 0; i < *len; i++)
        if (strcmp(words[i].key, key) == 0)
            return; /* attributes of the workload itself take precedence */
    if (value && *value)
        words[(*len)++] = (struct berth_label){key, value};
}

static void fill_traits(const struct state *s, const struct work_doc *d, struct arena *arena, struct berth_traits *t)
{
    const struct object *user = d->owner ? state_find(s, KIND_USER, d->owner) : NULL;
    const struct object *group = user && *user->user->group ? state_find(s, KIND_GROUP, user->user->group) : NULL;
    const struct job_terms *j = &d->job;
    t->user_level = user ? level_of(user->user->level) : 0;
    t->group_level = group ? level_of(group->group_doc->level) : 0;
    t->urgency = j->urgency;
    t->parameters = j->parameters;
    t->attained_ns = j->attained_ns;
    t->interference = predict_interference(s, text_or_null(j->class_name));
    struct berth_label *words = ARENA_ARRAY(arena, struct berth_label, WORDS_OWN + j->attributes_len);
    size_t len = 0;
    trait_add(words, &len, "type", j->type);
    trait_add(words, &len, "class", j->class_name);
    trait_add(words, &len, "network", j->network);
    trait_add(words, &len, "name", d->name);
    for (size_t i = 0; i < j->attributes_len; i++)
        trait_add(words, &len, j->attributes[i].key, j->attributes[i].value);
    t->words = words;
    t->words_len = len;
}

uint32_t work_tasks(const struct work_doc *d)
{
    return d->workload.gang && *d->workload.gang ? d->workload.replicas : 1;
}

int64_t work_size(const struct work_doc *d)
{
    const struct berth_workload *w = &d->workload;
    int64_t cpu = 0;
    for (size_t i = 0; i < w->shape.requests_len; i++)
        if (strcmp(w->shape.requests[i].resource, "cpu") == 0)
            cpu = w->shape.requests[i].amount;
    return past_run_size(work_tasks(d), w->shape.gpu.count, cpu);
}

static const char *queue_of(const struct work_doc *d)
{
    return d->job.queue && *d->job.queue ? d->job.queue : QUEUE_DEFAULT;
}

void sync_times(const struct state *s, const struct work_doc *d, struct berth_workload *w)
{
    const struct job_terms *j = &d->job;
    const struct queue_terms terms = queue_terms(s, queue_of(d));
    w->limit_ns = j->time_limit_ns ? j->time_limit_ns : terms.time_limit_ns;
    w->estimate_ns = j->estimate_ns;
    if (w->estimate_ns == 0) {
        w->estimate_ns = predict_run_ns(s, d->owner, d->name, w->limit_ns, work_size(d));
        w->predicted = w->estimate_ns > 0;
    }
    if (w->limit_ns && w->estimate_ns > w->limit_ns)
        w->estimate_ns = w->limit_ns;
    w->deadline_ns = j->deadline_ns;
    w->min_run_ns = j->min_run_ns;
}

void sync_scheduling(const struct state *s, const struct object *o, const struct work_doc *d, struct arena *arena,
                     struct berth_workload *w)
{
    if (d->cancelled || d->failed || d->ended)
        return;
    if (o->kind != KIND_JOB) { /* apps and vms do not queue and are never preempted */
        quotas_fill(o, d, arena, w);
        w->unpreemptible = true;
        return;
    }
    w->queue = queue_of(d);
    const struct object *queue = state_find(s, KIND_QUEUE, w->queue);
    const struct queue_terms terms = queue_terms(s, w->queue);
    quotas_fill(o, d, arena, w);
    sync_times(s, d, w);
    fill_traits(s, d, arena, &w->traits);
    w->unpreemptible = !d->job.preemptible;
    w->never_preempts = !d->job.preempts;
    domains_fill(&terms, arena, &w->shape);
    if (queue)
        w->priority = add_priority(w->priority, queue->queue->priority_class);
}

int sync_array_limit(struct berth_cluster *cluster, const struct object *o, const struct work_doc *d,
                     struct arena *arena, struct berth_err *err)
{
    if (o->kind != KIND_JOB)
        return 0;
    if (d->job.array.parallel == 0)
        return sync_quota_remove(cluster, "job", o->id, err);
    struct berth_amount pods = {"pods", d->job.array.parallel};
    struct berth_quota q = {.id = arena_fmt(arena, "job/%s", o->id), .limits = &pods, .limits_len = 1};
    return berth_quota_put(cluster, &q, err);
}
