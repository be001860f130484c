/* trace.h - jobs as they came, whatever file or generator they came from.
 *
 * A trace is what the engine of trace_run.h plays: jobs in order of their submission, and what is known of the machine. It is
 * plain data; a reader or a generator adds jobs in any order and calls sim_trace_sort at its end. Readers: trace_swf.c (Standard
 * Workload Format). To add one: trace_NAME.c on struct sim_lines, so that bad lines are told by their number and files may be
 * compressed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/intern.h"

#define SIM_SECOND_NS INT64_C(1000000000)

/* Times are nanoseconds on the trace's own clock. A task is a pod: it stands on one node; all tasks of a job start
 * together. An elastic job starts with its minimum and may have more tasks later; its run time does not depend on how
 * many it has. */
struct sim_job {
    int64_t id; /* as the trace calls it */
    int64_t submit_ns;
    int64_t run_ns;                  /* how long it really runs, once it does */
    int64_t request_ns;              /* how long its user says it will; 0: nothing is said */
    sym user, group, name, queue;    /* sim_trace_text; the name is that of the program or the job */
    int32_t priority;                /* higher first */
    uint32_t tasks;                  /* at least 1 */
    int64_t cpu_milli, memory_bytes; /* of each task; a processor is 1000 */
    uint32_t gpus, gpu_milli;        /* of each task; gpu_milli (1 to 999) with gpus 1: a share of one */
    uint32_t tasks_min;              /* of an elastic job: tasks with which it starts; 0: all of them */
};

/* Tasks that must be placed before the job runs. */
static inline uint32_t sim_job_least(const struct sim_job *job)
{
    return job->tasks_min && job->tasks_min < job->tasks ? job->tasks_min : job->tasks;
}

struct sim_trace {
    struct sim_job *jobs; /* by submission, then as they stood in the file */
    size_t len, cap;
    int64_t procs; /* of the machine they ran on; 0: the trace does not say */
    struct intern words;
};

void sim_trace_init(struct sim_trace *t);
void sim_trace_done(struct sim_trace *t);
/* Copies the job to the end. */
void sim_trace_add(struct sim_trace *t, const struct sim_job *job);
/* By submission; of one moment by id, then as they were added. */
void sim_trace_sort(struct sim_trace *t);
/* Valid until sim_trace_done. */
static inline const char *sim_trace_text(const struct sim_trace *t, sym word)
{
    return intern_text(&t->words, word);
}
static inline void sim_trace_cleanup(struct sim_trace *t)
{
    sim_trace_done(t);
}

/* Reads a file of the Standard Workload Format, also a compressed one (gzip), into an empty trace: one task of as many
 * processors as were asked for, or else allocated. Jobs that have no processors, no submission or no run time (cancelled
 * before they began) are left out. Who did not say for how long is taken to have asked for as long as it ran. -EINVAL with
 * the line's number; -errno where the file cannot be read. */
int sim_trace_swf_read(const char *path, struct sim_trace *t, struct berth_err *err);

/* A text file line by line, also a compressed one. */
struct sim_lines {
    const char *path;
    void *file;
    char *text; /* the line, without its end */
    size_t cap, number;
};

int sim_lines_open(struct sim_lines *l, const char *path, struct berth_err *err);
void sim_lines_close(struct sim_lines *l);
/* 1: l->text is the next line; 0: there is none; -errno. The line may be changed in place. */
int sim_lines_next(struct sim_lines *l, struct berth_err *err);
/* -EINVAL, with "PATH, line N: " before the text. */
int sim_lines_bad(const struct sim_lines *l, struct berth_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static inline void sim_lines_cleanup(struct sim_lines *l)
{
    sim_lines_close(l);
}
