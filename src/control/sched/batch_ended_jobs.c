/* batch_ended_jobs.c - leaves pods of a job out of a batch if the job has ended or the batch itself ends it.
 *
 * A plan does not know that a job is cancelled when one of its tasks is preempted or lost with its node. The same plan,
 * or the next one, which is made before the commit, may place other tasks of that job. If the job belongs to a gang,
 * nothing of the gang is placed then. Victims that would be stopped only for such pods are not stopped.
 */
#include <string.h>

#include "base/str.h"
#include "control/job/job.h"
#include "control/sched/batch_parts.h"

/* Jobs and gangs that have ended or end with this batch. */
struct ended_jobs {
    VEC(const char *) jobs;
    VEC(const char *) gangs;
};

static bool is_finished(const struct object *work)
{
    return work->work->cancelled || work->work->failed || work->work->ended;
}

static bool is_among(const char *const *at, size_t len, const char *text)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(at[i], text) == 0)
            return true;
    return false;
}

static void ended_jobs_add(struct ended_jobs *e, const struct object *work)
{
    if (is_among(e->jobs.at, e->jobs.len, work->id))
        return;
    vec_push(&e->jobs, work->id);
    if (*work->work->gang)
        vec_push(&e->gangs, work->work->gang);
}

static bool places(const struct batch_step *s)
{
    return !s->fact && (s->op == BERTH_PLACE || s->op == BERTH_RESERVE || s->op == BERTH_PROMOTE);
}

static bool preempts(const struct batch_step *s)
{
    return !s->fact && s->op == BERTH_STOP && s->cause == BERTH_CAUSE_PREEMPTED;
}

static void ended_jobs_find(struct batch *u, struct ended_jobs *e)
{
    const struct state *state = u->batches->control->state;
    for (size_t i = 0; i < u->steps.len; i++) {
        const struct batch_step *s = &u->steps.at[i];
        const struct object *work = s->fact ? NULL : state_find_work(state, s->workload);
        char id[24];
        if (!work)
            continue;
        const struct object *o = places(s) ? NULL : state_find(state, KIND_INSTANCE, str_u64(s->instance, id));
        if (places(s) ? is_finished(work) : o && job_would_end(state, o, s->op, s->cause, &u->arena))
            ended_jobs_add(e, work);
    }
}

static bool is_ended_job(const struct ended_jobs *e, const struct object *work)
{
    return is_among(e->jobs.at, e->jobs.len, work->id) ||
           (*work->work->gang && is_among(e->gangs.at, e->gangs.len, work->work->gang));
}

/* ---- victims of omitted pods ------------------------------------------------------------------------------------ */

static bool waits_for(const struct batch_step *s, uint64_t instance)
{
    const json_t *waits = json_object_get(s->doc, "waits");
    for (size_t i = 0; i < json_array_size(waits); i++)
        if ((uint64_t)json_integer_value(json_array_get(waits, i)) == instance)
            return true;
    return false;
}

/* Returns whether the two stop together: tasks of one gang, or instances of one pod. */
static bool together(const struct state *state, const struct batch_step *a, const struct batch_step *b)
{
    const struct object *x = state_find_work(state, a->workload), *y = state_find_work(state, b->workload);
    if (strcmp(a->workload, b->workload) == 0 && a->ordinal == b->ordinal)
        return true;
    return x && y && *x->work->gang && strcmp(x->work->gang, y->work->gang) == 0;
}

enum { BY_PLACED = 1, BY_OMITTED = 2 };

/* Returns which steps wait for the instance: BY_PLACED for steps that place, BY_OMITTED for steps that are left out. */
static unsigned waiters_of(const struct batch *u, uint64_t instance)
{
    unsigned by = 0;
    for (size_t i = 0; i < u->steps.len; i++) {
        const struct batch_step *s = &u->steps.at[i];
        if (places(s) && waits_for(s, instance))
            by |= s->omitted ? BY_OMITTED : BY_PLACED;
    }
    return by;
}

/* Marks the victims for which only omitted steps wait, if the same is true of all victims that stop together with
 * them. */
static size_t omit_victims(struct batch *u)
{
    unsigned *by = ARENA_ARRAY(&u->arena, unsigned, u->steps.len);
    size_t n = 0;
    for (size_t i = 0; i < u->steps.len; i++)
        by[i] = preempts(&u->steps.at[i]) ? waiters_of(u, u->steps.at[i].instance) : 0;
    for (size_t i = 0; i < u->steps.len; i++) {
        struct batch_step *s = &u->steps.at[i];
        unsigned all = 0;
        for (size_t k = 0; preempts(s) && k < u->steps.len; k++)
            if (by[k] && together(u->batches->control->state, s, &u->steps.at[k]))
                all |= by[k];
        s->omitted |= all == BY_OMITTED;
        n += all == BY_OMITTED;
    }
    return n;
}

size_t batch_mark_ended(struct batch *u)
{
    struct ended_jobs e = {0};
    size_t n = 0;
    ended_jobs_find(u, &e);
    for (size_t i = 0; e.jobs.len && i < u->steps.len; i++) {
        struct batch_step *s = &u->steps.at[i];
        const struct object *work = places(s) ? state_find_work(u->batches->control->state, s->workload) : NULL;
        s->omitted = work && is_ended_job(&e, work);
        n += s->omitted;
    }
    vec_done(&e.jobs);
    vec_done(&e.gangs);
    return n ? n + omit_victims(u) : 0;
}
