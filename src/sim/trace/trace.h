/* trace.h - a trace of jobs in memory, from a file or a generator.
 *
 * trace_run.h simulates traces: jobs in order of submission, and the known properties of the machine. A trace is plain
 * data. A reader or generator adds jobs in any order and finally calls sim_trace_sort. Readers: trace_swf.c (Standard
 * Workload Format). To add one: write trace_NAME.c with struct sim_lines, so that errors have line numbers and files
 * may be compressed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/intern.h"

#define SIM_SECOND_NS INT64_C(1000000000)

/* A job. Times are nanoseconds on the trace's own clock. A task is a pod on one node; all tasks of a job start
 * together. An elastic job starts with its minimum and may get more tasks later; its run time does not depend on the
 * number of tasks. */
struct sim_job {
    int64_t id; /* id in the trace */
    int64_t submit_ns;
    int64_t run_ns;                  /* actual run time */
    int64_t request_ns;              /* requested time; 0: none */
    sym user, group, name, queue;    /* see sim_trace_text; the name is that of the program or the job */
    int32_t priority;                /* higher is first */
    uint32_t tasks;                  /* at least 1 */
    int64_t cpu_milli, memory_bytes; /* per task; 1000 is one processor */
    uint32_t gpus, gpu_milli;        /* per task; gpu_milli (1 to 999) with gpus 1: a share of one GPU */
    uint32_t tasks_min;              /* of an elastic job: number of tasks to start; 0: all */
};

/* Returns the number of tasks that must be placed before the job runs. */
static inline uint32_t sim_job_min_tasks(const struct sim_job *job)
{
    return job->tasks_min && job->tasks_min < job->tasks ? job->tasks_min : job->tasks;
}

struct sim_trace {
    struct sim_job *jobs; /* ordered by submission, then as in the file */
    size_t len, cap;
    int64_t procs; /* of the original machine; 0: unknown */
    struct intern words;
};

void sim_trace_init(struct sim_trace *t);
void sim_trace_done(struct sim_trace *t);
/* Appends a copy of the job. */
void sim_trace_add(struct sim_trace *t, const struct sim_job *job);
/* Sorts by submission, then by id, then by order of insertion. */
void sim_trace_sort(struct sim_trace *t);
/* Returns the text of a word; valid until sim_trace_done. */
static inline const char *sim_trace_text(const struct sim_trace *t, sym word)
{
    return intern_text(&t->words, word);
}
static inline void sim_trace_cleanup(struct sim_trace *t)
{
    sim_trace_done(t);
}

/* Reads a file of the Standard Workload Format, optionally compressed (gzip), into an empty trace. Each job gets one
 * task with the requested processors, or else the allocated ones. Jobs without processors, submission or run time
 * (cancelled before their start) are left out. A missing requested time is set to the run time. Returns -EINVAL with
 * the line number, or -errno if the file cannot be read. */
int sim_trace_swf_read(const char *path, struct sim_trace *t, struct berth_err *err);

/* Reads a text file line by line; the file may be compressed. */
struct sim_lines {
    const char *path;
    void *file;
    char *text; /* the line, without its end */
    size_t cap, number;
};

int sim_lines_open(struct sim_lines *l, const char *path, struct berth_err *err);
void sim_lines_close(struct sim_lines *l);
/* Reads the next line to l->text. Returns 1, 0 at the end, or -errno. The caller may change the line in place. */
int sim_lines_next(struct sim_lines *l, struct berth_err *err);
/* Returns -EINVAL, with "PATH, line N: " before the text. */
int sim_lines_error(const struct sim_lines *l, struct berth_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static inline void sim_lines_cleanup(struct sim_lines *l)
{
    sim_lines_close(l);
}
