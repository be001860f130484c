/* idle.c - idle resources and their fragmentation. */
#include "sim/report/idle.h"

#include <stdlib.h>
#include <string.h>

#include "sim/trace/trace_result.h"

enum { SAMPLES = 1000 };

static int by_amount(const void *a, const void *b)
{
    const struct idle_need *x = a, *y = b;
    return (x->amount > y->amount) - (x->amount < y->amount);
}

/* Collects each amount once, with the share of tasks that request this amount or more. */
static void needs_gather(struct idle_sampler *w, const struct sim_trace *t, bool by_gpus)
{
    double total = 0;
    size_t kept = 0;
    for (size_t i = 0; i < t->len; i++) {
        struct idle_need need = {sim_task_held(&t->jobs[i], by_gpus), sim_job_min_tasks(&t->jobs[i])};
        if (need.amount == 0)
            continue;
        vec_push(&w->needs, need);
        total += need.weight;
    }
    if (w->needs.len)
        qsort(w->needs.at, w->needs.len, sizeof *w->needs.at, by_amount);
    for (size_t i = 0; i < w->needs.len; i++) {
        if (kept && w->needs.at[kept - 1].amount == w->needs.at[i].amount)
            w->needs.at[kept - 1].weight += w->needs.at[i].weight;
        else
            w->needs.at[kept++] = w->needs.at[i];
    }
    w->needs.len = kept;
    for (size_t i = kept; i-- > 0;)
        w->needs.at[i].weight = w->needs.at[i].weight / total + (i + 1 < kept ? w->needs.at[i + 1].weight : 0);
}

void idle_sampler_init(struct idle_sampler *w, const struct sim_trace *t, bool by_gpus, sim_samples *samples)
{
    *w = (struct idle_sampler){.samples = samples, .next_ns = INT64_MIN};
    w->every_ns = t->len ? (t->jobs[t->len - 1].submit_ns - t->jobs[0].submit_ns) / SAMPLES : 0;
    needs_gather(w, t, by_gpus);
}

void idle_sampler_done(struct idle_sampler *w)
{
    vec_done(&w->needs);
}

bool idle_sampler_due(struct idle_sampler *w, int64_t now_ns)
{
    w->there = w->idle = w->lost = 0;
    return now_ns >= w->next_ns;
}

/* Returns the share of tasks that need more than `idle`. */
static double share_needing_more(const struct idle_sampler *w, int64_t idle)
{
    size_t low = 0, high = w->needs.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (w->needs.at[middle].amount <= idle)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->needs.len ? w->needs.at[low].weight : 0;
}

void idle_sampler_node(struct idle_sampler *w, int64_t there, int64_t held)
{
    int64_t idle = there > held ? there - held : 0;
    w->there += (double)there;
    w->idle += (double)idle;
    w->lost += (double)idle * share_needing_more(w, idle);
}

void idle_sampler_close(struct idle_sampler *w, int64_t now_ns)
{
    struct sim_sample sample = {now_ns, w->there > 0 ? 1 - w->idle / w->there : 0, w->idle > 0 ? w->lost / w->idle : 0};
    vec_push(w->samples, sample);
    w->next_ns = now_ns + w->every_ns;
}

double idle_mean(const sim_samples *s)
{
    double sum = 0, span = 0;
    for (size_t i = 0; i + 1 < s->len; i++) {
        double time = (double)(s->at[i + 1].at_ns - s->at[i].at_ns);
        sum += s->at[i].fragmented * time;
        span += time;
    }
    return span > 0 ? sum / span : 0;
}
