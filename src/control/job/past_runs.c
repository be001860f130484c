#include "control/job/past_runs.h"

#define SECOND_NS INT64_C(1000000000)

enum { OWNER_FIRST = 4, OWNER_EVERY = 8 };

/* Values that did well on several real logs; the result is not sensitive to them. */
static const double weight_decay = 0.8, other_size = 0.1, other_limit = 0.1, all_weight = 0.5;
static const double factor = 1.5, limit_share_max = 0.99, shortest_s = 60, bound_s = 10;

static double seconds(int64_t ns)
{
    return (double)ns / (double)SECOND_NS;
}

void past_runs_add(struct past_runs *p, const struct past_run *x)
{
    p->at[p->len++ % PAST_RUNS_MAX] = *x;
}

int64_t past_run_size(uint32_t tasks, uint32_t gpus, int64_t cpu_milli)
{
    __int128 size = (__int128)tasks * (gpus ? (int64_t)gpus << 32 : cpu_milli);
    return size > INT64_MAX ? INT64_MAX : (int64_t)size;
}

bool past_run_counts(uint64_t before)
{
    return before < OWNER_FIRST || before % OWNER_EVERY == 0;
}

struct weighted_mean {
    double sum, weight;
};

/* Adds what a job with this limit would have run for by the past run. */
static void mean_add(struct weighted_mean *m, const struct past_run *p, int64_t limit_ns, double weight)
{
    double limit_s = seconds(limit_ns), s = seconds(p->run_ns);
    if (p->limit_ns > 0 && limit_ns > 0)
        s *= limit_s / seconds(p->limit_ns);
    if (limit_ns > 0 && s > limit_s)
        s = limit_s;
    m->sum += weight * (s > bound_s ? s : bound_s);
    m->weight += weight;
}

/* Weighs recent and similar runs most. */
static void mean_add_own(struct weighted_mean *m, const struct past_runs *own, int64_t limit_ns, int64_t size)
{
    double weight = 1;
    for (uint64_t i = 0; i < PAST_RUNS_MAX && i < own->len; i++, weight *= weight_decay) {
        const struct past_run *p = &own->at[(own->len - 1 - i) % PAST_RUNS_MAX];
        double like = p->size == size ? 1 : other_size;
        mean_add(m, p, limit_ns, weight * like * (p->limit_ns == limit_ns ? 1 : other_limit));
    }
}

static void mean_add_all(struct weighted_mean *m, const struct past_runs *all, int64_t limit_ns)
{
    uint64_t len = all->len < PAST_RUNS_MAX ? all->len : PAST_RUNS_MAX;
    for (uint64_t i = 0; i < len; i++)
        mean_add(m, &all->at[i], limit_ns, all_weight / (double)len);
}

int64_t past_predict(const struct past_runs *own, const struct past_runs *all, int64_t limit_ns, int64_t size)
{
    struct weighted_mean mean = {0};
    double limit_s = seconds(limit_ns);
    if (own)
        mean_add_own(&mean, own, limit_ns, size);
    if (all)
        mean_add_all(&mean, all, limit_ns);
    if (mean.weight == 0 || (limit_ns > 0 && mean.sum / mean.weight >= limit_share_max * limit_s))
        return mean.weight == 0 ? 0 : limit_ns;
    double s = factor * mean.sum / mean.weight;
    s = s > shortest_s ? s : shortest_s;
    if (limit_ns > 0 && s > limit_share_max * limit_s)
        s = limit_share_max * limit_s;
    if (s >= (double)(INT64_MAX / SECOND_NS))
        return INT64_MAX;
    return s > 1 ? (int64_t)s * SECOND_NS : SECOND_NS;
}

bool past_prediction_moved(int64_t was_ns, int64_t is_ns, int64_t limit_ns)
{
    int64_t apart = is_ns > was_ns ? is_ns - was_ns : was_ns - is_ns;
    return apart > was_ns / 4 || (limit_ns && (was_ns == limit_ns) != (is_ns == limit_ns));
}
