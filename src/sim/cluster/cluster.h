/* cluster.h - a whole cluster in one process under a seed: the daemon's real logic, a made-up world, faults, and judges.
 *
 * src/control runs over a store in memory, src/node once for each node over made-up machines, all under a virtual clock;
 * people of several groups use and misuse the API; faults of every kind happen (sim_fault_at lists them). After every event
 * the invariants are checked by code that knows the documents and the processes, and nothing of how daemon and agents work.
 * The same seed gives the same run, so a breach can be looked at again and again.
 *
 * Not a benchmark, and no simulator of policies: durations are drawn to make trouble, not to be like anything real.
 *
 * To add a fault: enum fault, and a row in faults.c. To add an invariant: the file that sees what it is about (placement.c,
 * quota.c, jobs.c, processes.c, states.c, durability.c, liveness.c, watcher.c), and a call of world_breach with its number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "store/store.h"

enum fault {
    FAULT_DAEMON_KILL,
    FAULT_DAEMON_STOP,
    FAULT_DAEMON_DOWN,
    FAULT_STORE,
    FAULT_SLOW_DISK,
    FAULT_CLOCK,
    FAULT_AGENT_KILL,
    FAULT_AGENT_PAUSE,
    FAULT_REBOOT,
    FAULT_PARTITION,
    FAULT_ONE_WAY,
    FAULT_FLAP,
    FAULT_MASS,
    FAULT_TWIN,
    FAULT_IMPOSTOR,
    FAULT_LIE,
    FAULT_LOST,
    FAULT_LATE,
    FAULT_REPEATED,
    SIM_FAULTS,
};

struct sim_fault {
    const char *name, *text;
};
/* In order of enum fault; NULL past the end. */
const struct sim_fault *sim_fault_at(size_t i);
/* "partition,agent-kill", "all", "none", or all but some: "-twin,-clock"; as bits. -EINVAL: there is no such fault. */
int sim_faults_parse(const char *list, uint64_t *ret, struct berth_err *err);

/* Numbers of INVARIANTS.md; above 100 those of requirements: 110 is P10. */
enum { SIM_INVARIANTS = 128 };

/* How often things happen, in percent of what is usual. */
struct sim_rates {
    unsigned people, faults;
};

/* Breaks something on purpose, so that a test can see the judges notice. Each may be NULL. */
struct sim_sabotage {
    void *ctx;
    /* After each event, before the judges look. The store is the daemon's. */
    void (*after_event)(void *ctx, struct store *store, uint64_t event);
    /* The store that a crash left behind, to be exchanged for a worse one; takes and gives ownership. */
    struct store *(*crashed)(void *ctx, struct store *store);
    /* A line of the administrator's watch is on its way: false loses it. */
    bool (*watched)(void *ctx, const char *line, size_t len);
};

struct sim_options {
    uint64_t seed;
    double hours;                                               /* virtual; 0: 1 */
    size_t nodes, users;                                        /* 0: drawn from the seed */
    struct sim_rates rates;                                     /* of 0: 100 */
    const char *faults;                                         /* which; NULL: all */
    const struct sim_sabotage *sabotage;                        /* NULL: none */
    void (*progress)(void *ctx, double hours, uint64_t events); /* NULL: none */
    void (*trace)(void *ctx, const char *line);                 /* one line for each event; NULL: none */
    void *ctx;
};

struct sim_result {
    uint64_t events, requests, refused, reports, transactions, plans, replayed;
    uint64_t placements, conflicts, crashes, store_failures, lost_nodes, double_agents, watched, checks;
    uint64_t checked[SIM_INVARIANTS]; /* how often each was looked at */
    uint64_t faults[SIM_FAULTS];
    uint64_t revision;
    uint64_t hash; /* of everything that happened */
    /* Of a breach; 0: there was none. */
    int invariant; /* 18 for what never comes to rest */
    uint64_t breach_event;
    int64_t breach_ns;
};

/* The command that makes the same run; sabotage left aside. */
void sim_command(const struct sim_options *options, struct str *to);

/* -EBADMSG for a breach, which *err tells whole: the command to see it again, virtual time, event, invariant, details. *ret is filled in any case.
 * The run ends at the first breach. */
int sim_cluster_run(const struct sim_options *options, struct sim_result *ret, struct berth_err *err);
