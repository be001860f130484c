/* agent.h - shared by the parts of `berth bench agent`: starts a separate berthd and berth-agent on this machine.
 *
 * Each part starts both in a temporary folder with a separate cgroup, and measures from outside: through the API, and
 * with the kernel's statistics of the processes. Instances are real processes.
 *
 *     agent.c    the verb, the table of parts, cleaning up
 *     run.c      the agent: start it, read its kernel statistics, stop it
 *     jobs.c     latency and throughput
 *     idle.c     an idle agent, and one with many instances
 *
 * To add a part: a function here, and a row in the table of agent.c.
 */
#pragma once

#include "bench/daemon/daemon.h"

enum bench_agent_size { SIZE_QUICK, SIZE_USUAL, SIZE_FULL, SIZES };

struct bench_agent {
    struct bench_daemon daemon; /* holds the result rows */
    const char *program;        /* berth-agent */
    char group[64];             /* cgroup name, for all parts */
    enum bench_agent_size size;
};

/* A daemon and its only node. */
struct bench_node {
    struct bench_run run;
    pid_t pid; /* of the agent */
    struct str state;
};

/* Starts both and waits until the node is ready. The folders are FOLDER/name and FOLDER/name-agent. */
int bench_node_start(const struct bench_agent *b, const char *name, struct bench_node *ret, struct berth_err *err);
/* Kills both; instances keep running until bench_group_clear. Accepts a zeroed struct. */
void bench_node_stop(struct bench_node *n);
/* Returns the agent's CPU time since its start in seconds, including its ended children. */
double bench_node_cpu_s(const struct bench_node *n);

struct bench_memory {
    double rss_bytes, pss_bytes, private_bytes;
};
/* Returns zeroes if the values cannot be read. */
struct bench_memory bench_node_memory(const struct bench_node *n);

/* Kills all processes in the cgroups of that name in every hierarchy, and removes the cgroups. */
void bench_group_clear(const char *group);

static inline void bench_node_cleanup(struct bench_node *n)
{
    bench_node_stop(n);
}

int bench_agent_latency(struct bench_agent *b, struct berth_err *err);
int bench_agent_throughput(struct bench_agent *b, struct berth_err *err);
int bench_agent_idle(struct bench_agent *b, struct berth_err *err);
int bench_agent_many(struct bench_agent *b, struct berth_err *err);
