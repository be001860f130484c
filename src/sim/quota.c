/* quota.c - what users, groups, queues and arrays hold, against what they may (11). Naively: sums over all instances. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/project.h"
#include "sim/world.h"

enum { BOUNDS_MAX = 32, QUEUES_ABOVE_MAX = 16 };

/* One that limits a workload. */
struct bound {
    const struct seen *of; /* a user, a group, a queue, or an array */
    const struct berth_amount *limits;
    size_t limits_len;
    bool totals;                  /* it has some */
    struct berth_amount parallel; /* of an array */
};

struct bounds {
    struct bound at[BOUNDS_MAX];
    size_t len;
};

static void bound_add(struct bounds *b, const struct seen *of, const struct quota_doc *quota)
{
    if (b->len < BOUNDS_MAX)
        b->at[b->len++] = (struct bound){
            .of = of, .limits = quota->limits, .limits_len = quota->limits_len, .totals = quota->totals_len};
}

static void queues_add(const struct mirror *m, const char *queue, struct bounds *b)
{
    for (size_t i = 0; queue && *queue && i < QUEUES_ABOVE_MAX; i++) {
        const struct seen *s = mirror_find(m, KIND_QUEUE, queue);
        if (!s)
            return;
        bound_add(b, s, &s->queue.quota);
        queue = s->queue.parent;
    }
}

/* What is over counts nowhere, even while the last of it stops. */
static struct bounds bounds_of(const struct mirror *m, const struct seen *work)
{
    struct bounds b = {.len = 0};
    const struct work_doc *d = &work->work;
    if (d->cancelled || d->failed || d->ended)
        return b;
    const struct seen *user = d->owner && !d->system ? mirror_find(m, KIND_USER, d->owner) : NULL;
    if (user)
        bound_add(&b, user, &user->user.quota);
    const struct seen *group = user && user->user.group ? mirror_find(m, KIND_GROUP, user->user.group) : NULL;
    if (group)
        bound_add(&b, group, &group->group.quota);
    if (work->kind != KIND_JOB)
        return b;
    queues_add(m, d->job.queue && *d->job.queue ? d->job.queue : QUEUE_DEFAULT, &b);
    if (d->job.array.parallel && b.len < BOUNDS_MAX)
        b.at[b.len++] = (struct bound){
            .of = work, .limits_len = 1, .parallel = {"pods", d->job.array.parallel}
        };
    return b;
}

static const struct berth_amount *limit_at(const struct bound *b, size_t i)
{
    return b->parallel.resource ? &b->parallel : &b->limits[i];
}

static bool is_under(const struct mirror *m, const struct seen *work, const struct bound *bound)
{
    struct bounds b = bounds_of(m, work);
    for (size_t i = 0; i < b.len; i++)
        if (b.at[i].of == bound->of)
            return true;
    return false;
}

static int64_t need_of(const struct berth_shape *shape, const char *resource)
{
    if (strcmp(resource, "gpu") != 0)
        return fit_request(shape, resource);
    int64_t milli = shape && shape->gpu.milli ? shape->gpu.milli : BERTH_GPU_MILLI;
    return shape ? (int64_t)shape->gpu.count * milli : 0;
}

/* Of a move only the old one counts. */
static bool counts(const struct berth_instance *i)
{
    return i->state != BERTH_ENDED && i->replaces == 0;
}

struct use {
    int64_t active, promised; /* at once, and once all stops are done */
};

/* Workloads of which something is placed. */
static int64_t jobs_of(const struct mirror *m, const struct bound *bound)
{
    int64_t n = 0;
    for (unsigned k = KIND_APP; k <= KIND_VM; k++)
        for (size_t w = 0; w < m->of[k].len; w++) {
            const struct seen *work = m->of[k].at[w];
            bool some = false;
            for (size_t i = 0; i < m->of[KIND_INSTANCE].len && !some; i++) {
                const struct berth_instance *x = &m->of[KIND_INSTANCE].at[i]->instance.instance;
                some = counts(x) && strcmp(x->workload, work->id) == 0;
            }
            n += some && is_under(m, work, bound);
        }
    return n;
}

static struct use use_of(const struct mirror *m, const struct bound *bound, const char *resource)
{
    struct use use = {0};
    if (strcmp(resource, "jobs") == 0) {
        use.active = use.promised = jobs_of(m, bound);
        return use;
    }
    for (size_t i = 0; i < m->of[KIND_INSTANCE].len; i++) {
        const struct seen *s = m->of[KIND_INSTANCE].at[i];
        const struct berth_instance *x = &s->instance.instance;
        const struct seen *work = counts(x) ? mirror_work(m, x->workload) : NULL;
        if (!work || !is_under(m, work, bound))
            continue;
        const struct seen *from = mirror_placed_from(m, s);
        int64_t need = need_of(from ? &from->work.workload.shape : NULL, resource);
        use.active += x->state == BERTH_RESERVED ? 0 : need;
        use.promised += x->state == BERTH_STOPPING ? 0 : need;
    }
    return use;
}

/* Had it a pod before this revision? */
static bool was_there(const struct mirror *m, const struct seen *work, uint64_t revision)
{
    for (size_t i = 0; i < m->of[KIND_INSTANCE].len; i++) {
        const struct seen *s = m->of[KIND_INSTANCE].at[i];
        if (s->created < revision && counts(&s->instance.instance) &&
            strcmp(s->instance.instance.workload, work->id) == 0)
            return true;
    }
    return false;
}

/* ---- promises beyond a limit ---------------------------------------------------------------------------------------- */

/* What a plan promises may count on stops of the same plan that are written a moment later. Whatever stands beyond a limit
 * when the next plan comes, because of that or because the limit was lowered, gets nothing new. */
struct beyond {
    enum kind kind;
    char id[ID_OWNED_MAX + 1], resource[ID_MAX + 1];
    uint64_t plan; /* its hash */
};

struct quotas {
    VEC(struct beyond) at;
    uint64_t reworked; /* the last revision that made more of what was there count, or count elsewhere */
};

struct quotas *quotas_new(void)
{
    return mem_zalloc(sizeof(struct quotas));
}

void quotas_free(struct quotas *q)
{
    if (q)
        vec_done(&q->at);
    mem_free(q);
}

static const json_t *cycle_of(const struct transaction *t)
{
    return json_object_get(t->record, "cycle");
}

static uint64_t plan_of(const struct transaction *t)
{
    const char *hash = json_string_value(json_object_get(cycle_of(t), "plan"));
    uint64_t number = (uint64_t)json_integer_value(json_object_get(cycle_of(t), "n"));
    return hash_pair(hash_bytes(hash ? hash : "", hash ? strlen(hash) : 0, 1), number);
}

static bool beyond_before(struct quotas *q, const struct transaction *t, const struct bound *b, const char *resource)
{
    for (size_t i = 0; i < q->at.len; i++)
        if (q->at.at[i].kind == b->of->kind && strcmp(q->at.at[i].id, b->of->id) == 0 &&
            strcmp(q->at.at[i].resource, resource) == 0)
            return q->at.at[i].plan != plan_of(t);
    struct beyond one = {.kind = b->of->kind, .plan = plan_of(t)};
    (void)snprintf(one.id, sizeof one.id, "%s", b->of->id);
    (void)snprintf(one.resource, sizeof one.resource, "%s", resource);
    vec_push(&q->at, one);
    return false;
}

static int64_t limit_of(const struct bound *b, const char *resource)
{
    for (size_t i = 0; i < b->limits_len; i++)
        if (strcmp(limit_at(b, i)->resource, resource) == 0)
            return limit_at(b, i)->amount;
    return INT64_MAX;
}

static struct bound bound_of(const struct seen *of)
{
    struct bounds b = {.len = 0};
    if (of->kind == KIND_JOB)
        return (struct bound){
            .of = of, .limits_len = 1, .parallel = {"pods", of->work.job.array.parallel}
        };
    bound_add(&b, of,
              of->kind == KIND_USER    ? &of->user.quota
              : of->kind == KIND_GROUP ? &of->group.quota
                                       : &of->queue.quota);
    return b.at[0];
}

/* Those that are within their limits again are forgotten. */
static void beyond_look(struct world *w)
{
    struct quotas *q = w->quotas;
    size_t kept = 0;
    for (size_t i = 0; i < q->at.len; i++) {
        const struct seen *of = mirror_find(&w->mirror, q->at.at[i].kind, q->at.at[i].id);
        struct bound b = of ? bound_of(of) : (struct bound){0};
        if (of && use_of(&w->mirror, &b, q->at.at[i].resource).promised > limit_of(&b, q->at.at[i].resource))
            q->at.at[kept++] = q->at.at[i];
    }
    q->at.len = kept;
}

/* ---- judging ------------------------------------------------------------------------------------------------------- */

static void breach(struct world *w, const struct berth_instance *x, const struct bound *b,
                   const struct berth_amount *limit, struct use use)
{
    world_breach(w, 11,
                 "%s/%u is %s as %" PRIu64 ": %s %s has %" PRId64 " of %s, and promised %" PRId64
                 "; its limit is %" PRId64,
                 x->workload, x->ordinal, berth_state_name(x->state), x->id, kinds[b->of->kind].name, b->of->id,
                 use.active, limit->resource, use.promised, limit->amount);
}

/* One more pod was assigned or promised: is everything that it counts against still within its limits? */
static void placed_judge(struct world *w, const struct transaction *t, const struct seen *s)
{
    const struct berth_instance *x = &s->instance.instance;
    const struct seen *work = counts(x) ? mirror_work(&w->mirror, x->workload) : NULL;
    /* Somebody made more of what was there count, while this was on its way. */
    bool excused = w->quotas->reworked > (uint64_t)json_integer_value(json_object_get(cycle_of(t), "revision"));
    if (!work || excused)
        return;
    struct bounds b = bounds_of(&w->mirror, work);
    world_checked(w, 11);
    for (size_t i = 0; i < b.len; i++)
        for (size_t k = 0; k < b.at[i].limits_len; k++) {
            const struct berth_amount *limit = limit_at(&b.at[i], k);
            bool jobs = strcmp(limit->resource, "jobs") == 0;
            if (jobs ? was_there(&w->mirror, work, t->revision)
                     : need_of(&work->work.workload.shape, limit->resource) <= 0)
                continue;
            struct use use = use_of(&w->mirror, &b.at[i], limit->resource);
            if ((x->state != BERTH_RESERVED && use.active > limit->amount) ||
                (use.promised > limit->amount && beyond_before(w->quotas, t, &b.at[i], limit->resource)))
                breach(w, x, &b.at[i], limit, use);
        }
}

static bool is_over(const struct seen *work)
{
    return work->work.cancelled || work->work.failed || work->work.ended;
}

static bool same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Does more of what is there count than before, or count elsewhere? */
static bool counts_otherwise(const struct seen *old, const struct seen *now)
{
    if (!old) /* what is left of another one of that name is its own now */
        return now->kind == KIND_APP || now->kind == KIND_VM;
    if (kind_is_workload(now->kind))
        return (is_over(old) && !is_over(now)) || !same(old->work.job.queue, now->work.job.queue);
    return (now->kind == KIND_USER && !same(old->user.group, now->user.group)) ||
           (now->kind == KIND_QUEUE && !same(old->queue.parent, now->queue.parent));
}

void quotas_judge(struct world *w, const struct transaction *t)
{
    beyond_look(w);
    for (size_t i = 0; i < t->len; i++) {
        const struct seen *old = t->changes[i].old, *now = t->changes[i].now;
        if (now && counts_otherwise(old, now))
            w->quotas->reworked = t->revision;
        if (t->changes[i].kind != KIND_INSTANCE || !now)
            continue;
        enum berth_state is = now->instance.instance.state;
        if (!old || (old->instance.instance.state == BERTH_RESERVED && is == BERTH_ASSIGNED))
            placed_judge(w, t, now);
    }
}

bool quota_takes(const struct mirror *m, const struct seen *work)
{
    struct bounds b = bounds_of(m, work);
    for (size_t i = 0; i < b.len; i++) {
        for (size_t k = 0; k < b.at[i].limits_len; k++) {
            const struct berth_amount *limit = limit_at(&b.at[i], k);
            bool jobs = strcmp(limit->resource, "jobs") == 0;
            int64_t need =
                jobs ? !was_there(m, work, UINT64_MAX) : need_of(&work->work.workload.shape, limit->resource);
            struct use use = use_of(m, &b.at[i], limit->resource);
            int64_t held = use.promised > use.active ? use.promised : use.active;
            if (need > 0 && held + need > limit->amount)
                return false;
        }
        if (b.at[i].totals)
            return false; /* how long it will run is the plan's to guess */
    }
    return true;
}
