/* agent.h - what the parts of `berth bench agent` share: a berthd and a berth-agent of their own on this machine.
 *
 * Each part starts both in a temporary folder, with a cgroup of its own, and measures from outside: through the API, and by
 * what the kernel counts of the processes. Instances are real processes.
 *
 *     agent.c          the verb, the table of parts, cleaning up
 *     run.c      the agent: start it, ask the kernel about it, stop it
 *     jobs.c     latency and throughput
 *     idle.c     an idle agent, and one with many instances
 *
 * To add a part: a function here, and a row in the table of agent.c.
 */
#pragma once

#include "bench/daemon/daemon.h"

enum bench_size { SIZE_QUICK, SIZE_USUAL, SIZE_FULL, SIZES };

struct bench_agent {
    struct bench_daemon daemon; /* rows are its */
    const char *program;        /* berth-agent */
    char group[64];             /* of cgroups, for all parts */
    enum bench_size size;
};

/* One daemon, and the only node it has. */
struct bench_node {
    struct bench_run run;
    pid_t pid; /* of the agent */
    struct str state;
};

/* Starts both; the node is ready. The folders are FOLDER/name and FOLDER/name-agent. */
int bench_node_start(const struct bench_agent *b, const char *name, struct bench_node *ret, struct berth_err *err);
/* Ends both, by force; instances stay, for bench_group_clear. All zero is fine. */
void bench_node_stop(struct bench_node *n);
/* Processor time of the agent since it began, in seconds: its own, and its children's that have ended. */
double bench_node_cpu_s(const struct bench_node *n);

struct bench_memory {
    double rss_bytes, pss_bytes, private_bytes;
};
/* All zero: cannot be read. */
struct bench_memory bench_node_memory(const struct bench_node *n);

/* Kills what is in the cgroups of that name, in every hierarchy, and removes them. */
void bench_group_clear(const char *group);

static inline void bench_node_cleanup(struct bench_node *n)
{
    bench_node_stop(n);
}

int bench_agent_latency(struct bench_agent *b, struct berth_err *err);
int bench_agent_throughput(struct bench_agent *b, struct berth_err *err);
int bench_agent_idle(struct bench_agent *b, struct berth_err *err);
int bench_agent_many(struct bench_agent *b, struct berth_err *err);
