/* world.h - internal declarations of the cluster simulation; for src/sim only.
 *
 * daemon.c runs the daemon's logic and carries requests to it. agents.c runs the agents' logic, on the machines of
 * machine.c and over the links of network.c. users.c and faults.c act on the cluster. verify.c receives every
 * transaction and journal record, and passes them to the files that check an invariant. After each event, everything
 * that it caused is checked (world_settle) before the next event runs.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"
#include "control/control.h"
#include "control/watch/watch.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/event_queue.h"
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

struct sim_world;

/* ---- requests (request.c) --------------------------------------------------------------------------------------- */

/* The outcome of a request. */
struct request_outcome {
    int status;             /* 0: no answer, so the effect is unknown */
    const json_t *body;     /* NULL: none */
    const char *text;       /* "" if there is a body */
    struct stream **stream; /* the callback takes it by setting it to NULL; NULL: none */
    bool changed;           /* the journal has a change by this request */
    uint64_t revision;
};
typedef void request_callback(struct sim_world *w, void *ctx, const struct request_outcome *reply);

/* A request. Texts are copied. `then` is called exactly once. */
struct sim_request {
    const char *who; /* for the trace */
    const char *method, *path, *token, *key, *if_match;
    const char *query[8];   /* name, value, ... */
    const char *body;       /* text; NULL: none */
    size_t body_len;        /* 0: length of the text */
    bool refuse;            /* the request must not succeed */
    bool harmless;          /* the request must not change anything, whatever the answer */
    int invariant;          /* the invariant that `refuse` or `harmless` checks */
    request_callback *then; /* may be NULL */
    void *ctx;
    void (*drop)(void *ctx); /* frees ctx, after `then`; NULL: not needed */
};
/* Sends a request. Returns its number, which the journal records. */
uint64_t world_request(struct sim_world *w, const struct sim_request *ask);

struct sim_pending_request; /* a running request (request.h) */

/* The record of a finished request. */
struct past_request {
    int16_t status;
    bool over;
    uint64_t changed; /* revision that it made; 0: none */
};

/* Delivers all answers that have arrived. Returns whether there were any. */
bool requests_settle(struct sim_world *w);
/* Notes that, according to the journal, this request made this revision. */
void requests_record(struct sim_world *w, uint64_t number, uint64_t revision);
void requests_done(struct sim_world *w);

/* ---- daemon (daemon.c) ------------------------------------------------------------------------------------------ */

/* The arguments of control_env.run. */
struct worker_task {
    void (*work)(void *);
    void (*after)(void *);
    void *arg;
    bool worked;
    uint64_t life;
};

struct sim_daemon {
    struct store *store;
    struct control *control; /* NULL: the daemon is down */
    struct store_watch *watch;
    struct worker_task *worker_task; /* a plan in progress; NULL: none */
    uint64_t life;                   /* number of starts */
    int64_t started_ns, wake_ns, pump_ns;
    unsigned pumps; /* number of useful pumps left */
    bool dying;     /* being shut down: its output is ignored */
    struct log log;
    char *log_text;
    size_t log_len;
};

int daemon_start(struct sim_world *w, struct berth_err *err);
/* Ends the daemon, as a power failure does or in an orderly way. A copy of the store remains. */
void daemon_crash(struct sim_world *w, bool orderly);
void daemon_close(struct sim_world *w);
/* Called after the daemon received work: the store may have to be pumped. */
void daemon_schedule_pump(struct sim_world *w);

/* ---- received store events (verify.c) ---------------------------------------------------------------------------- */

struct watched_event {
    char *key;
    char *value;
    size_t len;
    bool gone;
    uint64_t created, revision;
};

/* A transaction with all known data. */
struct transaction {
    uint64_t revision;
    const struct mirror_change *changes;
    size_t len;
    const json_t *record; /* journal record; NULL: none */
    const char *verb, *who, *subject;
    uint64_t asked; /* number of the request that made it; 0: none */
};

/* ---- parts of the simulation ------------------------------------------------------------------------------------ */

struct sim_agents;
struct sim_people;
struct faults;
struct guarantees;
struct watchers;
struct unexplained;
struct jobs_history;
struct id_watermarks;

struct sim_counts {
    uint64_t requests, refused, reports, transactions, plans, replayed, placements, conflicts, crashes, store_failures;
    uint64_t lost_nodes, double_agents, watched, checks;
    uint64_t checked[SIM_INVARIANTS], faults[SIM_FAULTS];
};

struct sim_world {
    const struct sim_options *options;
    struct random_stream rng, daemon_rng, agents_rng, users_rng, faults_rng;
    struct event_queue queue;
    int64_t now_ns;  /* virtual steady clock */
    int64_t wall_ns; /* offset of the wall clock, which jumps */
    int64_t end_ns;
    bool calm;        /* calm phase: no more faults and changes; the cluster must settle */
    uint64_t event;   /* number of the current event */
    uint64_t allowed; /* bit set of allowed faults */
    struct str doing, unsettled;
    struct log quiet; /* of the agents */
    uint64_t hash;
    struct sim_counts counts;

    struct sim_daemon daemon;
    VEC(struct sim_pending_request *) asked;    /* by number, from 1; NULL: finished and freed */
    VEC(struct sim_pending_request *) answered; /* to be delivered */
    VEC(struct past_request) past;              /* by number, from 1 */
    size_t waiting;                             /* number of requests without an answer */

    VEC(struct watched_event) heard;
    struct mirror mirror;
    uint64_t log_seq, log_chain;             /* checked so far */
    uint64_t recovered_seq, recovered_chain; /* the same at the last complete check after a crash */
    int64_t jumped_ns;                       /* sum of all jumps of the wall clock, forwards and backwards */

    struct sim_agents *agents;
    struct sim_people *people;
    struct faults *faults;
    struct guarantees *guarantees;
    struct watchers *watchers;
    struct unexplained *unexplained;
    struct jobs_history *jobs;
    struct id_watermarks *ids;

    int invariant; /* the broken invariant; 0: none */
    uint64_t breach_event;
    int64_t breach_ns;
    struct str breach;
};

/* ---- world (world.c) -------------------------------------------------------------------------------------------- */

/* Runs `run(w, arg)` after a delay. */
void world_schedule(struct sim_world *w, int64_t delay_ns, void (*run)(struct sim_world *w, void *arg), void *arg,
                    void (*drop)(void *arg));
/* Describes the current event, for the trace and for a breach. */
void world_trace(struct sim_world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Reports a broken invariant. Only the first report counts. */
void world_breach(struct sim_world *w, int invariant, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Counts a check of an invariant. */
static inline void world_count_check(struct sim_world *w, int invariant)
{
    w->counts.checks++;
    w->counts.checked[invariant]++;
}
/* Adds to the fingerprint of the run. */
void world_mix(struct sim_world *w, uint64_t x);
int64_t world_wall_ns(const struct sim_world *w);

/* Checks everything that the event has caused (verify.c). */
void world_settle(struct sim_world *w);
void verify_done(struct sim_world *w);
/* Checks the store after a crash: the log from its beginning, its last record unchanged, and every decision
 * replayed. */
void verify_recovered(struct sim_world *w);
/* Checks that replaying the log gives the same decisions (15). */
void verify_replay(struct sim_world *w);

/* ---- actors ----------------------------------------------------------------------------------------------------- */

struct sim_agents *agents_new(struct sim_world *w);
void agents_free(struct sim_agents *a);
/* Adds a machine for this node. Its agent reads configurations and reports from now on, with this token. */
void agents_add(struct sim_world *w, const char *node, const char *token);
/* Removes the node's machine with everything that runs on it. */
void agents_remove(struct sim_world *w, const char *node);
bool agents_has(const struct sim_world *w, const char *node);
size_t agents_len(const struct sim_world *w);
bool agents_has_machine(const struct sim_world *w, size_t which); /* the machine has not been removed */
/* Faults of agents; `which` is the index of the agent. */
enum cut { CUT_BOTH, CUT_TO_DAEMON, CUT_FROM_DAEMON };
void agents_cut(struct sim_world *w, size_t which, int64_t for_ns, enum cut cut);
void agents_flap(struct sim_world *w, size_t which, int64_t for_ns);
void agents_kill(struct sim_world *w, size_t which);
void agents_pause(struct sim_world *w, size_t which, int64_t for_ns);
void agents_reboot(struct sim_world *w, size_t which);
void agents_duplicate(struct sim_world *w, size_t which);
void agents_forge(struct sim_world *w, size_t which);
void agents_report_falsely(struct sim_world *w, size_t which);
/* Called when the configuration of a node has changed: pushes it to listening agents. */
void agents_config_changed(struct sim_world *w, const char *node);
/* Called when the daemon declares the node lost: checks that the node was silent long enough. */
void agents_lost_check(struct sim_world *w, const char *node);
void agents_check(struct sim_world *w);
/* Restores all links. */
void agents_calm(struct sim_world *w);
/* Checks that every superseded agent has stopped its instances. */
void superseded_agents_check(struct sim_world *w);
/* Writes to w->unrest which processes or directories are left but should be gone. */
void instances_settled(struct sim_world *w);

/* Creates the administrator, groups, users and nodes, then starts random actions. */
struct sim_people *sim_users_new(struct sim_world *w, const char *admin_token);
void sim_users_free(struct sim_people *p);
const char *sim_users_admin_token(const struct sim_world *w);
/* Returns name and token of a user without the administrator role, for a watch; false: there is none yet. */
bool sim_users_watcher(const struct sim_world *w, const char **ret_user, const char **ret_token);

struct faults *faults_new(struct sim_world *w);
void faults_free(struct faults *f);
/* Returns whether the fault may happen now. */
bool faults_allow(const struct sim_world *w, enum sim_fault_kind fault);
/* Ends all faults. */
void faults_end(struct sim_world *w);
/* Returns whether the store rejects writes, or did so a moment ago. */
bool faults_store_fails(const struct sim_world *w);
/* Returns whether every write takes seconds. */
bool faults_store_slow(const struct sim_world *w);

/* ---- invariant checks ------------------------------------------------------------------------------------------- */

/* Each function checks one transaction; the mirror is in the state after it. */
void placements_verify(struct sim_world *w,
                       const struct transaction *t); /* 1, 2, 3, 5, 10, 12 (placement.c, node_fit.c) */
/* Returns whether this workload prefers two copies over none. */
bool prefers_two_copies(const struct mirror_doc *work);
/* The same for the document that an instance was placed from, which may be kept without its kind. */
bool preferred_two_copies(const struct mirror *m, const char *workload, const struct mirror_doc *from);
/* Returns whether the workload is neither held nor stopped and its owner is not disabled. */
bool mirror_should_run(const struct mirror *m, const struct mirror_doc *work);
/* Returns why the instance may not be on its node, by simple rules; NULL: it may. The text may be in `buf`. */
const char *fit_refusal(const struct mirror *m, const struct mirror_doc *instance, int *ret_invariant, char *buf,
                        size_t size);
/* Returns whether one more pod of this workload fits on the node. */
bool fit_has_room(const struct mirror *m, const struct mirror_doc *node, const struct mirror_doc *work);

/* Returns the amount of a resource that the shape requests. */
int64_t fit_request(const struct berth_shape *shape, const char *resource);

void quotas_verify(struct sim_world *w, const struct transaction *t); /* 11 (quota.c) */
/* Returns whether all quotas of the workload have room for one more pod. */
bool quota_has_room(const struct mirror *m, const struct mirror_doc *work);

struct jobs_history *jobs_history_new(void);
void jobs_history_free(struct jobs_history *j);
void jobs_verify(struct sim_world *w, const struct transaction *t); /* 17, 19 (jobs.c) */

void instances_verify(struct sim_world *w, const struct transaction *t); /* 5, 6, 24, P10 (processes.c) */

struct id_watermarks *ids_new(void);
void ids_free(struct id_watermarks *i);
void states_verify(struct sim_world *w, const struct transaction *t); /* 8, 13, 22 (states.c) */
/* 4: each instance that ran has exactly one usage record */
void usage_records_verify(struct sim_world *w, const struct transaction *t);
/* 4, and compares the daemon's state with the mirror */
void states_check(struct sim_world *w);

/* Guarantees to clients: 7, 9, 20. */
struct guarantees *guarantees_new(void);
void guarantees_free(struct guarantees *p);
void guarantees_answered(struct sim_world *w, uint64_t number, const struct sim_request *ask,
                         const struct request_outcome *reply);
/* Forgets the keys of a deleted user. */
void guarantees_verify(struct sim_world *w, const struct transaction *t);

struct watchers *watchers_new(struct sim_world *w);
void watchers_free(struct watchers *x);
void watchers_expect(struct sim_world *w, const struct transaction *t); /* 28: notes which events they must receive */
void watchers_check(struct sim_world *w);
void watchers_down(struct sim_world *w); /* the daemon is down, so all streams have ended */

/* 17 and 18: no pod is forgotten, and the cluster settles in the calm phase (liveness.c). */
struct unexplained *unexplained_new(void);
void unexplained_free(struct unexplained *l);
void unexplained_check(struct sim_world *w);
/* Returns whether the cluster has settled; otherwise w->unrest says what is missing. */
bool has_settled(struct sim_world *w);
