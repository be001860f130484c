/* trace_result.c - computes numbers from the outcomes of a trace. */
#include "sim/trace/trace_result.h"

#include "base/math.h"
#include "base/mem.h"
#include "base/sort.h"

void sim_outcomes_done(struct sim_outcomes *o)
{
    mem_free(o->at);
    mem_free(o->points);
    mem_free(o->queue_lengths);
    *o = (struct sim_outcomes){0};
}

static double seconds(int64_t ns)
{
    int64_t whole = ns / SIM_SECOND_NS, rest = ns % SIM_SECOND_NS;
    return (double)whole + (double)rest / 1e9;
}

double sim_bounded_slowdown(const struct sim_job *job, const struct sim_outcome *o)
{
    int64_t run = job->run_ns > SIM_BOUND_NS ? job->run_ns : SIM_BOUND_NS;
    double x = seconds(o->start_ns - job->submit_ns + job->run_ns) / seconds(run);
    return x > 1 ? x : 1;
}

int64_t sim_task_held(const struct sim_job *job, bool by_gpus)
{
    if (!by_gpus)
        return job->cpu_milli;
    return job->gpus == 1 && job->gpu_milli ? (int64_t)job->gpu_milli : (int64_t)job->gpus * 1000;
}

int64_t sim_job_held(const struct sim_job *job, bool by_gpus)
{
    return (int64_t)job->tasks * sim_task_held(job, by_gpus);
}

/* Returns the lower median of the queue lengths at decisions. */
static double median(const struct sim_outcomes *o)
{
    uint64_t all = 0, seen = 0;
    for (size_t i = 0; i < o->queue_lengths_len; i++)
        all += o->queue_lengths[i];
    for (size_t i = 0; i < o->queue_lengths_len && all; i++) {
        seen += o->queue_lengths[i];
        if (2 * seen >= all)
            return (double)i;
    }
    return 0;
}

static double p99(struct keyed *rows, size_t len)
{
    if (len == 0)
        return 0;
    sort_keyed(rows, rows + len, len);
    return seconds((int64_t)rows[(len * 99 + 99) / 100 - 1].key);
}

struct sim_summary sim_summarise(const struct sim_trace *t, const struct sim_outcomes *o, bool by_gpus)
{
    struct sim_summary s = {.queue_median = median(o)};
    struct keyed *rows = mem_array(2 * t->len + 1, sizeof *rows);
    double sum = 0, squares = 0, waits = 0, completions = 0, held = 0;
    int64_t last = 0;

    for (size_t i = 0; i < t->len; i++) {
        const struct sim_job *j = &t->jobs[i];
        if (o->at[i].end_ns < 0) {
            s.unrun++;
            continue;
        }
        double x = sim_bounded_slowdown(j, &o->at[i]), wait = seconds(o->at[i].start_ns - j->submit_ns);
        rows[s.jobs++].key = (uint64_t)(o->at[i].end_ns - j->submit_ns);
        sum += x;
        squares += x * x;
        waits += wait;
        completions += seconds(o->at[i].end_ns - j->submit_ns);
        held += (double)sim_job_held(j, by_gpus) * seconds(j->run_ns);
        held -= (double)sim_task_held(j, by_gpus) * o->at[i].missing_s;
        s.max_bounded_slowdown = x > s.max_bounded_slowdown ? x : s.max_bounded_slowdown;
        s.max_wait_s = wait > s.max_wait_s ? wait : s.max_wait_s;
        last = o->at[i].end_ns > last ? o->at[i].end_ns : last;
    }
    if (s.jobs) {
        double n = (double)s.jobs;
        s.average_bounded_slowdown = sum / n;
        s.rms_bounded_slowdown = math_sqrt(squares / n);
        s.mean_wait_s = waits / n;
        s.mean_completion_s = completions / n;
        s.p99_completion_s = p99(rows, s.jobs);
        s.makespan_s = seconds(last - t->jobs[0].submit_ns);
    }
    if (s.makespan_s > 0 && o->capacity > 0)
        s.utilisation = held / ((double)o->capacity * s.makespan_s);
    mem_free(rows);
    return s;
}
