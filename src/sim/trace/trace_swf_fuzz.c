/* trace_swf_fuzz.c - fuzzes the SWF reader: a log is read or rejected; the jobs are sorted, in range, and can be
 * simulated.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "sim/trace/trace_policy.h"
#include "sim/trace/trace_run.h"

enum { JOBS_PLAYED = 64, PROCS = 64 };

static void jobs_see(const struct sim_trace *t)
{
    for (size_t i = 0; i < t->len; i++) {
        const struct sim_job *j = &t->jobs[i];
        assert(j->submit_ns >= 0 && j->run_ns >= 0 && j->request_ns >= 0);
        assert(j->cpu_milli >= 1000 && j->cpu_milli <= BERTH_AMOUNT_MAX && j->tasks == 1);
        assert(i == 0 || t->jobs[i - 1].submit_ns <= j->submit_ns);
    }
}

/* Simulates the first few jobs, on a machine that may be too small for some of them. */
static void jobs_play(struct sim_trace *t)
{
    CLEANUP(sim_outcomes) struct sim_outcomes out = {0};
    struct sim_trace part = *t;
    struct sim_machine m;
    struct berth_policy policy = {0};
    struct berth_err err;
    part.len = t->len < JOBS_PLAYED ? t->len : JOBS_PLAYED;
    sim_machine_init(&m, PROCS);
    int rc = sim_policy_order("sjbf", &policy, &err);
    if (rc == 0)
        rc = sim_policy_backfill("easy", &policy, &err);
    assert(rc == 0);
    struct sim_setup s = {
        .trace = &part, .nodes = &m.node, .nodes_len = 1, .policy = &policy, .predictor = sim_predictor_find("last2")};
    rc = sim_trace_run(&s, &out, &err);
    assert(rc == 0 || rc == -EOVERFLOW);
    for (size_t i = 0; rc == 0 && i < part.len; i++)
        assert((out.at[i].end_ns < 0) == (part.jobs[i].cpu_milli > PROCS * 1000));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(sim_trace) struct sim_trace t;
    char path[40];
    int fd = memfd_create("log", 0);
    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    sim_trace_init(&t);
    if (sim_trace_swf_read(path, &t, NULL) == 0) {
        jobs_see(&t);
        jobs_play(&t);
    }
    (void)close(fd);
    return 0;
}
