/* cluster.h - simulates a whole cluster in one process from a seed: the daemon's real logic, faults, and invariant
 * checks.
 *
 * src/control runs on a store in memory, and src/node once per node on simulated machines, all under a virtual clock.
 * Users of several groups use and misuse the API. Faults of all kinds happen (sim_fault_at lists them). After every
 * event, code that knows the documents and the processes, but not the implementation of daemon and agents, checks the
 * invariants. The same seed gives the same run, so a breach is reproducible.
 *
 * This is not a benchmark and does not simulate policies: durations are chosen to provoke conflicts, not to be
 * realistic.
 *
 * To add a fault: enum sim_fault_kind, and a row in faults.c. To add an invariant: a check in the file of its subject
 * (placement.c, quota.c, jobs.c, processes.c, states.c, durability.c, liveness.c, watcher.c) that calls world_breach
 * with its number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "store/store.h"

enum sim_fault_kind {
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
/* Returns a fault, in order of enum sim_fault_kind; NULL past the end. */
const struct sim_fault *sim_fault_at(size_t i);
/* Parses a list of faults to a bit set: "partition,agent-kill", "all", "none", or exclusions "-twin,-clock". Returns
 * -EINVAL for an unknown fault. */
int sim_faults_parse(const char *list, uint64_t *ret, struct berth_err *err);

/* Numbers of INVARIANTS.md; numbers above 100 are requirements: 110 is P10. */
enum { SIM_INVARIANTS = 128 };

/* Frequencies, in percent of the normal frequency. */
struct sim_rates {
    unsigned people, faults;
};

/* Breaks something on purpose, so that a test can verify the invariant checks. Each callback may be NULL. */
struct sim_sabotage {
    void *ctx;
    /* Called after each event, before the checks. The daemon owns the store. */
    void (*after_event)(void *ctx, struct store *store, uint64_t event);
    /* Called with the store that a crash has left; may replace it. Takes and returns ownership. */
    struct store *(*crashed)(void *ctx, struct store *store);
    /* Called for each line of the administrator's watch; false drops the line. */
    bool (*watched)(void *ctx, const char *line, size_t len);
};

struct sim_options {
    uint64_t seed;
    double hours;                                               /* virtual; 0: 1 */
    size_t nodes, users;                                        /* 0: chosen by the seed */
    struct sim_rates rates;                                     /* 0: 100 */
    const char *faults;                                         /* list of faults; NULL: all */
    const struct sim_sabotage *sabotage;                        /* NULL: none */
    void (*progress)(void *ctx, double hours, uint64_t events); /* NULL: none */
    void (*trace)(void *ctx, const char *line);                 /* one line per event; NULL: none */
    void *ctx;
};

struct sim_result {
    uint64_t events, requests, refused, reports, transactions, plans, replayed;
    uint64_t placements, conflicts, crashes, store_failures, lost_nodes, double_agents, watched, checks;
    uint64_t checked[SIM_INVARIANTS]; /* number of checks of each invariant */
    uint64_t faults[SIM_FAULTS];
    uint64_t revision;
    uint64_t hash; /* fingerprint of the whole run */
    /* The breach; 0: none. */
    int invariant; /* 18 if the cluster does not settle */
    uint64_t breach_event;
    int64_t breach_ns;
};

/* Appends the command that repeats the run, without sabotage. */
void sim_command(const struct sim_options *options, struct str *to);

/* Runs a simulation until its end or the first breach. Returns -EBADMSG for a breach; *err then has the command to
 * repeat the run, virtual time, event, invariant and details. Always fills *ret. */
int sim_cluster_run(const struct sim_options *options, struct sim_result *ret, struct berth_err *err);
