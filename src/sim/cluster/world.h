/* world.h - internal declarations of the cluster simulation; for src/sim only.
 *
 * daemon.c runs the daemon's logic and carries requests to it. agents.c runs the agents' logic, on the machines of
 * machine.c and over the links of network.c. people.c and faults.c act on the cluster. judge.c receives every
 * transaction and journal record, and passes them to the files that check an invariant. After each event, everything
 * that it caused is checked (world_settle) before the next event runs.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"
#include "control/control.h"
#include "control/watch/watch.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/queue.h"
#include "sim/judge/mirror.h"
#include "sim/random.h"

#define MICROSECOND INT64_C(1000)
#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

enum { LEASE_S = 45, USERS_MAX = 40, NODES_MAX = 200, HISTORY_REVISIONS = 400 };

/* Guarantees without a number among the invariants; printed as P10. */
enum { RULES = 100, RULE_LISTED = RULES + 10 };

struct world;

/* ---- requests (request.c) --------------------------------------------------------------------------------------- */

/* The outcome of a request. */
struct outcome {
    int status;             /* 0: no answer, so the effect is unknown */
    const json_t *body;     /* NULL: none */
    const char *text;       /* "" if there is a body */
    struct stream **stream; /* the callback takes it by setting it to NULL; NULL: none */
    bool changed;           /* the journal has a change by this request */
    uint64_t revision;
};
typedef void ask_then(struct world *w, void *ctx, const struct outcome *reply);

/* A request. Texts are copied. `then` is called exactly once. */
struct ask {
    const char *who; /* for the trace */
    const char *method, *path, *token, *key, *if_match;
    const char *query[8]; /* name, value, ... */
    const char *body;     /* text; NULL: none */
    size_t body_len;      /* 0: length of the text */
    bool refuse;          /* the request must not succeed */
    bool harmless;        /* the request must not change anything, whatever the answer */
    int invariant;        /* the invariant that `refuse` or `harmless` checks */
    ask_then *then;       /* may be NULL */
    void *ctx;
    void (*drop)(void *ctx); /* frees ctx, after `then`; NULL: not needed */
};
/* Sends a request. Returns its number, which the journal records. */
uint64_t world_ask(struct world *w, const struct ask *ask);

struct asked; /* a running request (request.h) */

/* The record of a finished request. */
struct past {
    int16_t status;
    bool over;
    uint64_t changed; /* revision that it made; 0: none */
};

/* Delivers all answers that have arrived. Returns whether there were any. */
bool requests_settle(struct world *w);
/* Notes that, according to the journal, this request made this revision. */
void requests_record(struct world *w, uint64_t number, uint64_t revision);
void requests_done(struct world *w);

/* ---- daemon (daemon.c) ------------------------------------------------------------------------------------------ */

/* The arguments of control_env.run. */
struct errand {
    void (*work)(void *);
    void (*after)(void *);
    void *arg;
    bool worked;
    uint64_t life;
};

struct daemon {
    struct store *store;
    struct control *control; /* NULL: the daemon is down */
    struct store_watch *watch;
    struct errand *errand; /* a plan in progress; NULL: none */
    uint64_t life;         /* number of starts */
    int64_t started_ns, wake_ns, pump_ns;
    unsigned pumps; /* number of useful pumps left */
    bool dying;     /* being shut down: its output is ignored */
    struct log log;
    char *log_text;
    size_t log_len;
};

int daemon_start(struct world *w, struct berth_err *err);
/* Ends the daemon, as a power failure does or in an orderly way. A copy of the store remains. */
void daemon_crash(struct world *w, bool orderly);
void daemon_close(struct world *w);
/* Called after the daemon received work: the store may have to be pumped. */
void daemon_touched(struct world *w);

/* ---- received store events (judge.c) ---------------------------------------------------------------------------- */

struct heard {
    char *key;
    char *value;
    size_t len;
    bool gone;
    uint64_t created, revision;
};

/* A transaction with all known data. */
struct transaction {
    uint64_t revision;
    const struct seen_change *changes;
    size_t len;
    const json_t *record; /* journal record; NULL: none */
    const char *verb, *who, *subject;
    uint64_t asked; /* number of the request that made it; 0: none */
};

/* ---- parts of the simulation ------------------------------------------------------------------------------------ */

struct agents;
struct people;
struct faults;
struct promises;
struct watchers;
struct limbo;
struct jobs_seen;
struct ids;

struct counts {
    uint64_t requests, refused, reports, transactions, plans, replayed, placements, conflicts, crashes, store_failures;
    uint64_t lost_nodes, double_agents, watched, checks;
    uint64_t checked[SIM_INVARIANTS], faults[SIM_FAULTS];
};

struct world {
    const struct sim_options *options;
    struct chance luck, daemon_luck, agents_luck, people_luck, faults_luck;
    struct due_queue queue;
    int64_t now_ns;  /* virtual steady clock */
    int64_t wall_ns; /* offset of the wall clock, which jumps */
    int64_t end_ns;
    bool calm;        /* calm phase: no more faults and changes; the cluster must settle */
    uint64_t event;   /* number of the current event */
    uint64_t allowed; /* bit set of allowed faults */
    struct str doing, unrest;
    struct log quiet; /* of the agents */
    uint64_t hash;
    struct counts counts;

    struct daemon daemon;
    VEC(struct asked *) asked;    /* by number, from 1; NULL: finished and freed */
    VEC(struct asked *) answered; /* to be delivered */
    VEC(struct past) past;        /* by number, from 1 */
    size_t waiting;               /* number of requests without an answer */

    VEC(struct heard) heard;
    struct mirror mirror;
    uint64_t log_seq, log_chain;             /* checked so far */
    uint64_t recovered_seq, recovered_chain; /* the same at the last complete check after a crash */
    int64_t jumped_ns;                       /* sum of all jumps of the wall clock, forwards and backwards */

    struct agents *agents;
    struct people *people;
    struct faults *faults;
    struct promises *promises;
    struct watchers *watchers;
    struct limbo *limbo;
    struct jobs_seen *jobs;
    struct ids *ids;

    int invariant; /* the broken invariant; 0: none */
    uint64_t breach_event;
    int64_t breach_ns;
    struct str breach;
};

/* ---- world (world.c) -------------------------------------------------------------------------------------------- */

/* Runs `run(w, arg)` after a delay. */
void world_later(struct world *w, int64_t delay_ns, void (*run)(struct world *w, void *arg), void *arg,
                 void (*drop)(void *arg));
/* Describes the current event, for the trace and for a breach. */
void world_says(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reports a broken invariant. Only the first report counts. */
void world_breach(struct world *w, int invariant, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Counts a check of an invariant. */
static inline void world_checked(struct world *w, int invariant)
{
    w->counts.checks++;
    w->counts.checked[invariant]++;
}
/* Adds to the fingerprint of the run. */
void world_mix(struct world *w, uint64_t x);
int64_t world_wall_ns(const struct world *w);

/* Checks everything that the event has caused (judge.c). */
void world_settle(struct world *w);
void judge_done(struct world *w);
/* Checks the store after a crash: the log from its beginning, its last record unchanged, and every decision
 * replayed. */
void judge_recovered(struct world *w);
/* Checks that replaying the log gives the same decisions (15). */
void judge_replay(struct world *w);

/* ---- actors ----------------------------------------------------------------------------------------------------- */

struct agents *agents_new(struct world *w);
void agents_free(struct agents *a);
/* Adds a machine for this node. Its agent reads configurations and reports from now on, with this token. */
void agents_add(struct world *w, const char *node, const char *token);
/* Removes the node's machine with everything that runs on it. */
void agents_remove(struct world *w, const char *node);
bool agents_has(const struct world *w, const char *node);
size_t agents_len(const struct world *w);
bool agents_there(const struct world *w, size_t which); /* the machine has not been removed */
/* Faults of agents; `which` is the index of the agent. */
enum cut { CUT_BOTH, CUT_MUTE, CUT_DEAF };
void agents_cut(struct world *w, size_t which, int64_t for_ns, enum cut cut);
void agents_flap(struct world *w, size_t which, int64_t for_ns);
void agents_kill(struct world *w, size_t which);
void agents_pause(struct world *w, size_t which, int64_t for_ns);
void agents_reboot(struct world *w, size_t which);
void agents_twin(struct world *w, size_t which);
void agents_impostor(struct world *w, size_t which);
void agents_lie(struct world *w, size_t which);
/* Called when the configuration of a node has changed: pushes it to listening agents. */
void agents_told(struct world *w, const char *node);
/* Called when the daemon declares the node lost: checks that the node was silent long enough. */
void agents_lost(struct world *w, const char *node);
void agents_check(struct world *w);
/* Restores all links. */
void agents_calm(struct world *w);
/* Checks that every superseded agent has stopped its instances. */
void trees_check(struct world *w);
/* Writes to w->unrest which processes or directories are left but should be gone. */
void trees_rest(struct world *w);

/* Creates the administrator, groups, users and nodes, then starts random actions. */
struct people *people_new(struct world *w, const char *admin_token);
void people_free(struct people *p);
const char *people_admin_token(const struct world *w);
/* Returns name and token of a user without the administrator role, for a watch; false: there is none yet. */
bool people_watcher(const struct world *w, const char **ret_user, const char **ret_token);

struct faults *faults_new(struct world *w);
void faults_free(struct faults *f);
/* Returns whether the fault may happen now. */
bool faults_allow(const struct world *w, enum fault fault);
/* Ends all faults. */
void faults_end(struct world *w);
/* Returns whether the store rejects writes, or did so a moment ago. */
bool faults_store_fails(const struct world *w);
/* Returns whether every write takes seconds. */
bool faults_store_slow(const struct world *w);

/* ---- invariant checks ------------------------------------------------------------------------------------------- */

/* Each function checks one transaction; the mirror is in the state after it. */
void placements_judge(struct world *w, const struct transaction *t); /* 1, 2, 3, 5, 10, 12 (placement.c, fit.c) */
/* Returns whether this workload prefers two copies over none. */
bool placement_twice(const struct seen *work);
/* The same for the document that an instance was placed from, which may be kept without its kind. */
bool placement_was_twice(const struct mirror *m, const char *workload, const struct seen *from);
/* Returns whether the workload is neither held nor stopped and its owner is not disabled. */
bool mirror_wanted(const struct mirror *m, const struct seen *work);
/* Returns why the instance may not be on its node, by simple rules; NULL: it may. The text may be in `buf`. */
const char *fit_against(const struct mirror *m, const struct seen *instance, int *ret_invariant, char *buf,
                        size_t size);
/* Returns whether one more pod of this workload fits on the node. */
bool fit_takes(const struct mirror *m, const struct seen *node, const struct seen *work);

/* Returns the amount of a resource that the shape requests. */
int64_t fit_request(const struct berth_shape *shape, const char *resource);

void quotas_judge(struct world *w, const struct transaction *t); /* 11 (quota.c) */
/* Returns whether all quotas of the workload have room for one more pod. */
bool quota_takes(const struct mirror *m, const struct seen *work);

struct jobs_seen *jobs_seen_new(void);
void jobs_seen_free(struct jobs_seen *j);
void jobs_judge(struct world *w, const struct transaction *t); /* 17, 19 (jobs.c) */

void trees_judge(struct world *w, const struct transaction *t); /* 5, 6, 24, P10 (processes.c) */

struct ids *ids_new(void);
void ids_free(struct ids *i);
void states_judge(struct world *w, const struct transaction *t); /* 8, 13, 22 (states.c) */
/* 4: each instance that ran has exactly one usage record */
void used_judge(struct world *w, const struct transaction *t);
/* 4, and compares the daemon's state with the mirror */
void states_check(struct world *w);

/* Guarantees to clients: 7, 9, 20. */
struct promises *promises_new(void);
void promises_free(struct promises *p);
void promises_answered(struct world *w, uint64_t number, const struct ask *ask, const struct outcome *reply);
/* Forgets the keys of a deleted user. */
void promises_judge(struct world *w, const struct transaction *t);

struct watchers *watchers_new(struct world *w);
void watchers_free(struct watchers *x);
void watchers_judge(struct world *w, const struct transaction *t); /* 28: notes which events they must receive */
void watchers_check(struct world *w);
void watchers_down(struct world *w); /* the daemon is down, so all streams have ended */

/* 17 and 18: no pod is forgotten, and the cluster settles in the calm phase (liveness.c). */
struct limbo *limbo_new(void);
void limbo_free(struct limbo *l);
void limbo_check(struct world *w);
/* Returns whether the cluster has settled; otherwise w->unrest says what is missing. */
bool rest_reached(struct world *w);
