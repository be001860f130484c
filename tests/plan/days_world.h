/* days_world.h - the nodes, quotas, jobs and tasks of a random day, for days*.c. */
#pragma once

#include "base/arena.h"
#include "berth.h"
#include "rng.h"

#define DAY_SECOND_NS ((int64_t)1000000000)

enum { DAY_NODES_MAX = 64, DAY_JOBS_MAX = 400, DAY_TASKS_MAX = 24, DAY_QUOTAS_MAX = 24, DAY_GPUS_MAX = 8 };

struct day_node {
    char id[12];
    int64_t cpu;
    uint32_t gpus;
};

/* The resources of a quota: cpu in thousandths of a core, GPUs in thousandths of a device, number of jobs. An amount of
 * -1 means that the quota does not have the resource. */
enum day_resource { DAY_CPU, DAY_GPU, DAY_JOBS, DAY_RESOURCES };

struct day_quota {
    char id[20];
    int parent; /* -1: none */
    int64_t limit[DAY_RESOURCES], guarantee[DAY_RESOURCES];
};

enum day_state { DAY_NONE, DAY_RESERVED, DAY_RUNNING, DAY_STOPPING, DAY_ENDED };

struct day_task {
    enum day_state state;
    uint64_t id;
    uint32_t node;
    uint64_t gpus;
    int64_t since_ns, ends_ns; /* ends_ns in RUNNING: when the task ends; in STOPPING: when its stop is confirmed */
    bool expired;
};

struct day_job {
    char id[12];
    uint32_t tasks, min; /* min less than tasks: an elastic gang */
    bool gang;
    int32_t priority;
    int64_t cpu;
    uint32_t gpus;
    int64_t arrives_ns, runs_ns, estimate_ns, limit_ns, min_run_ns;
    bool unpreemptible;
    int user, queue; /* indices into day.quotas */
    bool there, over, refused;
    int64_t started_ns; /* the first start; 0: not yet */
    uint32_t preempted;
    struct day_task task[DAY_TASKS_MAX];
};

struct day {
    uint64_t seed;
    struct rng rng;
    struct berth_cluster *cluster;
    struct berth_policy policy;
    struct berth_queue queues[3];
    struct day_node nodes[DAY_NODES_MAX];
    struct day_quota quotas[DAY_QUOTAS_MAX];
    struct day_job *jobs;                    /* ordered by arrival */
    struct day_job *by_number[DAY_JOBS_MAX]; /* indexed by the number in the id, less one */
    uint32_t nodes_len, quotas_len, jobs_len;
    bool guarantees;
    double load;
    int64_t now_ns;
    int64_t pause_ns;   /* least time between two plans */
    int64_t recheck_ns; /* when the last plan asked to be made again */
    bool unchecked;     /* plans are applied without being checked (forecast_check.c) */
    uint64_t next_id;
    bool is_verbose;
    char failure[512];
    uint64_t plans, placed, preempted, expired, reserved;
};

/* Makes the whole day from the seed and puts its nodes and quotas into the cluster. */
void day_make(struct day *d, uint64_t seed);
void day_submit(struct day *d, struct day_job *j);
/* Runs the day until there is no further event up to `timeout_at_ns`; BERTH_NEVER_NS runs it to its end. Returns false
 * after a failure, with the text in d->failure. */
bool day_run_until(struct day *d, int64_t until_ns);
/* Puts the task into the cluster as an instance. */
void day_put_task(struct day *d, const struct day_job *j, uint32_t task);

/* days_oracle.c: check a plan before it is applied, the state after each plan, and the day after its end. Return false
 * after a failure, with the text in d->failure. */
bool day_check_plan(struct day *d, const struct berth_plan *plan);
bool day_check_state(struct day *d);
bool day_check_end(struct day *d);

/* Sets d->failure; returns false. */
bool day_fail(struct day *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Returns the job with this id, or NULL. */
struct day_job *day_job_find(struct day *d, const char *id);
/* Returns the index of the node with this id. */
uint32_t day_node_find(const struct day *d, const char *id);
