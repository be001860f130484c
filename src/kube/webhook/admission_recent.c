#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "kube/job/job.h"
#include "kube/webhook/admission.h"

#define RECENT_NS (INT64_C(10) * 1000000000)
enum { RECENT_MAX = 1024 };

struct recent_job {
    json_t *object; /* the job points into it */
    struct arena arena;
    struct kube_job job;
    int64_t until_ns;
};

struct recent_jobs {
    VEC(struct recent_job *) jobs; /* in order of admission */
};

struct recent_jobs *recent_jobs_new(void)
{
    return mem_zalloc(sizeof(struct recent_jobs));
}

static void recent_free(struct recent_job *e)
{
    arena_done(&e->arena);
    json_decref(e->object);
    mem_free(e);
}

void recent_jobs_free(struct recent_jobs *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->jobs.len; i++)
        recent_free(r->jobs.at[i]);
    vec_done(&r->jobs);
    mem_free(r);
}

static void drop(struct recent_jobs *r, size_t i)
{
    recent_free(r->jobs.at[i]);
    memmove(&r->jobs.at[i], &r->jobs.at[i + 1], (r->jobs.len - i - 1) * sizeof *r->jobs.at);
    r->jobs.len--;
}

static bool same(const struct kube_job *a, const struct kube_job *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->namespace, b->namespace) == 0;
}

void recent_jobs_add(struct recent_jobs *r, const json_t *object, int64_t now_ns)
{
    struct recent_job *e = mem_zalloc(sizeof *e);
    arena_init(&e->arena);
    e->object = json_deep_copy(object);
    e->until_ns = now_ns + RECENT_NS;
    if (kube_job_read(e->object, &e->arena, &e->job, NULL) < 0) {
        recent_free(e);
        return;
    }
    for (size_t i = 0; i < r->jobs.len; i++)
        if (same(&r->jobs.at[i]->job, &e->job)) {
            drop(r, i);
            break;
        }
    if (r->jobs.len == RECENT_MAX)
        drop(r, 0);
    vec_push(&r->jobs, e);
}

const struct kube_job *recent_jobs_next(struct recent_jobs *r, const struct kube_job *but, int64_t now_ns, size_t *at)
{
    while (*at < r->jobs.len) {
        if (r->jobs.at[*at]->until_ns <= now_ns)
            drop(r, *at);
        else if (!same(&r->jobs.at[(*at)++]->job, but))
            return &r->jobs.at[*at - 1]->job;
    }
    return NULL;
}

void recent_jobs_drop(struct recent_jobs *r, size_t *at)
{
    drop(r, --*at);
}
