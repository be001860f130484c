/* quota.c - checks the quotas of users, groups, queues and arrays (11), with simple sums over all instances. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/state/sync.h"
#include "sim/cluster/world.h"

enum { BOUNDS_MAX = 32, QUEUES_ABOVE_MAX = 16 };

/* Limits that apply to a workload. */
struct limit_source {
    const struct mirror_doc *of; /* a user, a group, a queue, or an array */
    const struct berth_amount *limits;
    size_t limits_len;
    bool totals;                  /* it has limits on total use */
    struct berth_amount parallel; /* of an array */
};

struct limit_sources {
    struct limit_source at[BOUNDS_MAX];
    size_t len;
};

static void bound_add(struct limit_sources *b, const struct mirror_doc *of, const struct quota_doc *quota)
{
    if (b->len < BOUNDS_MAX)
        b->at[b->len++] = (struct limit_source){
            .of = of, .limits = quota->limits, .limits_len = quota->limits_len, .totals = quota->totals_len};
}

static void queues_add(const struct mirror *m, const char *queue, struct limit_sources *b)
{
    for (size_t i = 0; queue && *queue && i < QUEUES_ABOVE_MAX; i++) {
        const struct mirror_doc *s = mirror_find(m, KIND_QUEUE, queue);
        if (!s)
            return;
        bound_add(b, s, &s->queue.quota);
        queue = s->queue.parent;
    }
}

/* Returns the bounds of a workload. A finished workload has none, even while its last instances stop. */
static struct limit_sources bounds_of(const struct mirror *m, const struct mirror_doc *work)
{
    struct limit_sources b = {.len = 0};
    const struct work_doc *d = &work->work;
    if (d->cancelled || d->failed || d->ended)
        return b;
    const struct mirror_doc *user = d->owner && !d->system ? mirror_find(m, KIND_USER, d->owner) : NULL;
    if (user)
        bound_add(&b, user, &user->user.quota);
    const struct mirror_doc *group = user && user->user.group ? mirror_find(m, KIND_GROUP, user->user.group) : NULL;
    if (group)
        bound_add(&b, group, &group->group.quota);
    if (work->kind != KIND_JOB)
        return b;
    queues_add(m, d->job.queue && *d->job.queue ? d->job.queue : QUEUE_DEFAULT, &b);
    if (d->job.array.parallel && b.len < BOUNDS_MAX)
        b.at[b.len++] = (struct limit_source){
            .of = work, .limits_len = 1, .parallel = {"pods", d->job.array.parallel}
        };
    return b;
}

static const struct berth_amount *limit_at(const struct limit_source *b, size_t i)
{
    return b->parallel.resource ? &b->parallel : &b->limits[i];
}

static bool is_under(const struct mirror *m, const struct mirror_doc *work, const struct limit_source *bound)
{
    struct limit_sources b = bounds_of(m, work);
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

struct quota_amount_use {
    int64_t active, promised; /* current use, and use after all stops */
};

static bool is_there(const struct berth_instance *i)
{
    return i->state != BERTH_ENDED;
}

/* Returns the use of an instance. A migrating pod has two instances and counts once, as the larger one: the new
 * instance counts only its excess while the old one exists. */
static struct quota_amount_use use_by(const struct mirror *m, const struct mirror_doc *s, const char *resource)
{
    const struct berth_instance *x = &s->instance.instance;
    const struct mirror_doc *old = x->replaces ? mirror_instance(m, x->replaces) : NULL;
    const struct berth_instance *o = old ? &old->instance.instance : NULL;
    const struct mirror_doc *from = mirror_placed_from(m, s);
    int64_t need = need_of(from ? &from->work.workload.shape : NULL, resource), both = 0;
    if (o && is_there(o) && strcmp(o->workload, x->workload) == 0) {
        from = mirror_placed_from(m, old);
        both = need_of(from ? &from->work.workload.shape : NULL, resource);
        both = both < need ? both : need;
    }
    struct quota_amount_use use = {0};
    if (is_there(x) && x->state != BERTH_RESERVED)
        use.active = both && o->state != BERTH_RESERVED ? need - both : need;
    if (is_there(x) && x->state != BERTH_STOPPING)
        use.promised = both && o->state != BERTH_STOPPING ? need - both : need;
    return use;
}

/* Counts workloads with at least one placed pod. */
static int64_t jobs_of(const struct mirror *m, const struct limit_source *bound)
{
    int64_t n = 0;
    for (unsigned k = KIND_APP; k <= KIND_VM; k++)
        for (size_t w = 0; w < m->of[k].len; w++) {
            const struct mirror_doc *work = m->of[k].at[w];
            bool some = false;
            for (size_t i = 0; i < m->of[KIND_INSTANCE].len && !some; i++) {
                const struct berth_instance *x = &m->of[KIND_INSTANCE].at[i]->instance.instance;
                some = is_there(x) && strcmp(x->workload, work->id) == 0;
            }
            n += some && is_under(m, work, bound);
        }
    return n;
}

static struct quota_amount_use use_of(const struct mirror *m, const struct limit_source *bound, const char *resource)
{
    struct quota_amount_use use = {0};
    if (strcmp(resource, "jobs") == 0) {
        use.active = use.promised = jobs_of(m, bound);
        return use;
    }
    for (size_t i = 0; i < m->of[KIND_INSTANCE].len; i++) {
        const struct mirror_doc *s = m->of[KIND_INSTANCE].at[i];
        const struct berth_instance *x = &s->instance.instance;
        const struct mirror_doc *work = is_there(x) ? mirror_work(m, x->workload) : NULL;
        if (!work || !is_under(m, work, bound))
            continue;
        struct quota_amount_use more = use_by(m, s, resource);
        use.active += more.active;
        use.promised += more.promised;
    }
    return use;
}

/* Returns whether the workload had a pod before this revision. */
static bool was_there(const struct mirror *m, const struct mirror_doc *work, uint64_t revision)
{
    for (size_t i = 0; i < m->of[KIND_INSTANCE].len; i++) {
        const struct mirror_doc *s = m->of[KIND_INSTANCE].at[i];
        if (s->created < revision && is_there(&s->instance.instance) &&
            strcmp(s->instance.instance.workload, work->id) == 0)
            return true;
    }
    return false;
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static void breach(struct sim_world *w, const struct berth_instance *x, const struct limit_source *b,
                   const struct berth_amount *limit, struct quota_amount_use use)
{
    world_breach(w, 11,
                 "%s/%u is %s as %" PRIu64 ": %s %s has %" PRId64 " of %s, and promised %" PRId64
                 "; its limit is %" PRId64,
                 x->workload, x->ordinal, berth_state_name(x->state), x->id, kinds[b->of->kind].name, b->of->id,
                 use.active, limit->resource, use.promised, limit->amount);
}

/* Called for each newly assigned or reserved pod: checks all limits that apply to the pod. */
static void placed_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *s)
{
    const struct berth_instance *x = &s->instance.instance;
    const struct mirror_doc *work = is_there(x) ? mirror_work(&w->mirror, x->workload) : NULL;
    if (!work)
        return;
    struct limit_sources b = bounds_of(&w->mirror, work);
    world_count_check(w, 11);
    for (size_t i = 0; i < b.len; i++)
        for (size_t k = 0; k < b.at[i].limits_len; k++) {
            const struct berth_amount *limit = limit_at(&b.at[i], k);
            bool jobs = strcmp(limit->resource, "jobs") == 0, first = jobs && !was_there(&w->mirror, work, t->revision);
            struct quota_amount_use more =
                jobs ? (struct quota_amount_use){first, first} : use_by(&w->mirror, s, limit->resource);
            if (more.active == 0 && more.promised == 0)
                continue;
            struct quota_amount_use use = use_of(&w->mirror, &b.at[i], limit->resource);
            if ((more.active && use.active > limit->amount) || (more.promised && use.promised > limit->amount))
                breach(w, x, &b.at[i], limit, use);
        }
}

void quotas_verify(struct sim_world *w, const struct transaction *t)
{
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *old = t->changes[i].old, *now = t->changes[i].now;
        if (t->changes[i].kind != KIND_INSTANCE || !now)
            continue;
        enum berth_state is = now->instance.instance.state;
        if (!old || (old->instance.instance.state == BERTH_RESERVED && is == BERTH_ASSIGNED))
            placed_verify(w, t, now);
    }
}

bool quota_has_room(const struct mirror *m, const struct mirror_doc *work)
{
    struct limit_sources b = bounds_of(m, work);
    for (size_t i = 0; i < b.len; i++) {
        for (size_t k = 0; k < b.at[i].limits_len; k++) {
            const struct berth_amount *limit = limit_at(&b.at[i], k);
            bool jobs = strcmp(limit->resource, "jobs") == 0;
            int64_t need =
                jobs ? !was_there(m, work, UINT64_MAX) : need_of(&work->work.workload.shape, limit->resource);
            struct quota_amount_use use = use_of(m, &b.at[i], limit->resource);
            int64_t held = use.promised > use.active ? use.promised : use.active;
            if (need > 0 && held + need > limit->amount)
                return false;
        }
        if (b.at[i].totals)
            return false; /* the expected duration is estimated by the plan */
    }
    return true;
}
