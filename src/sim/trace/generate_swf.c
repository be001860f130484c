/* generate_swf.c - writes traces in the Standard Workload Format. */
#include <inttypes.h>

#include "sim/trace/generate.h"

/* SWF has whole seconds; the run time of a job is rounded up. */
static int64_t seconds(int64_t ns)
{
    return (ns + SIM_SECOND_NS - 1) / SIM_SECOND_NS;
}

/* Returns the number of a word; -1: no word. */
static int64_t number(sym word)
{
    return word ? (int64_t)word : -1;
}

void sim_trace_swf_write(const struct sim_trace *t, FILE *to)
{
    (void)fprintf(to, "; Version: 2.2\n; MaxJobs: %zu\n", t->len);
    if (t->procs)
        (void)fprintf(to, "; MaxProcs: %" PRId64 "\n", t->procs);
    for (size_t i = 0; i < t->len; i++) {
        const struct sim_job *job = &t->jobs[i];
        int64_t procs = (job->tasks * job->cpu_milli + 999) / 1000;
        int64_t request = job->request_ns ? seconds(job->request_ns) : -1;
        (void)fprintf(to,
                      "%" PRId64 " %" PRId64 " -1 %" PRId64 " %" PRId64 " -1 -1 %" PRId64 " %" PRId64 " -1 1 %" PRId64
                      " %" PRId64 " %" PRId64 " %" PRId64 " -1 -1 -1\n",
                      job->id, job->submit_ns / SIM_SECOND_NS, seconds(job->run_ns), procs, procs, request,
                      number(job->user), number(job->group), number(job->name), number(job->queue));
    }
}
