/* cluster.h - a whole cluster in one process under a seed: the daemon's real logic, a made-up world, faults, and judges.
 *
 * src/control runs over a store in memory and under a virtual clock. Stand-in agents read their configuration and report;
 * people of several groups use and misuse the API; faults are crashes of the daemon, a store that refuses to write, clocks
 * that jump, messages that are lost, late, repeated or out of order, nodes that go silent, two agents with one name. After
 * every event the invariants are checked by code that knows the documents and nothing of how the daemon works. The same
 * seed gives the same run, so a breach can be looked at again and again.
 *
 * Not a benchmark, and no simulator of policies: durations are drawn to make trouble, not to be like anything real.
 *
 * To add a fault: faults.c. To add an invariant: the file that sees what it is about (placement.c, ledger.c, liveness.c,
 * invariants.c, watcher.c), and a call of world_breach with its number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

/* How often things happen, in percent of what is usual. */
struct sim_rates {
    unsigned people, agents, faults;
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
    const struct sim_sabotage *sabotage;                        /* NULL: none */
    void (*progress)(void *ctx, double hours, uint64_t events); /* NULL: none */
    void (*trace)(void *ctx, const char *line);                 /* one line for each event; NULL: none */
    void *ctx;
};

struct sim_result {
    uint64_t events, requests, refused, reports, transactions, plans, replayed;
    uint64_t placements, conflicts, crashes, store_failures, lost_nodes, double_agents, watched, checks;
    uint64_t revision;
    uint64_t hash; /* of everything that happened */
    /* Of a breach; 0: there was none. */
    int invariant; /* its number in INVARIANTS, or 18 for what never comes to rest */
    uint64_t breach_event;
    int64_t breach_ns;
};

/* -EBADMSG for a breach, which *err tells whole: seed, virtual time, event, invariant, details. *ret is filled in any case.
 * The run ends at the first breach. */
int sim_cluster_run(const struct sim_options *options, struct sim_result *ret, struct berth_err *err);
