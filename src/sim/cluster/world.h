/* world.h - the inside of a simulation; for src/sim only.
 *
 * daemon.c runs the daemon's logic and carries requests to it; agents.c runs the agents', on the machines of machine.c and
 * over the links of network.c; people.c and faults.c act upon it all; judge.c hears every transaction and record and hands
 * them to those who know an invariant. An event runs, then everything it caused is
 * looked at (world_settle), then the next one runs.
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

/* Promises that have no number among the invariants, told as P10. */
enum { RULES = 100, RULE_LISTED = RULES + 10 };

struct world;

/* ---- requests (request.c) ------------------------------------------------------------------------------------------ */

/* How a request went. */
struct outcome {
    int status;             /* 0: no answer came, and nobody knows */
    const json_t *body;     /* NULL: none */
    const char *text;       /* "" where there is a body */
    struct stream **stream; /* taken by setting it to NULL; NULL: none */
    bool changed;           /* it is in the journal */
    uint64_t revision;
};
typedef void ask_then(struct world *w, void *ctx, const struct outcome *reply);

/* One request. Texts are copied. `then` is called once, whatever happens. */
struct ask {
    const char *who; /* for the trace */
    const char *method, *path, *token, *key, *if_match;
    const char *query[8]; /* name, value, ... */
    const char *body;     /* text; NULL: none */
    size_t body_len;      /* 0: as long as the text */
    bool refuse;          /* must not succeed */
    bool harmless;        /* must not change anything, whatever is answered */
    int invariant;        /* that either of these is about */
    ask_then *then;       /* may be NULL */
    void *ctx;
    void (*drop)(void *ctx); /* of ctx, after `then`; NULL: not needed */
};
/* Returns its number, by which the journal knows it. */
uint64_t world_ask(struct world *w, const struct ask *ask);

struct asked; /* a request under way (request.h) */

/* What stays of a request. */
struct past {
    int16_t status;
    bool over;
    uint64_t changed; /* the revision that it made; 0: none */
};

/* Tells whoever asked of every answer that has come; true: there were some. */
bool requests_settle(struct world *w);
/* The journal says that this request made this revision. */
void requests_record(struct world *w, uint64_t number, uint64_t revision);
void requests_done(struct world *w);

/* ---- the daemon (daemon.c) ----------------------------------------------------------------------------------------- */

/* What control_env.run was given. */
struct errand {
    void (*work)(void *);
    void (*after)(void *);
    void *arg;
    bool worked;
    uint64_t life;
};

struct daemon {
    struct store *store;
    struct control *control; /* NULL: it is down */
    struct store_watch *watch;
    struct errand *errand; /* a plan in the making; NULL: none */
    uint64_t life;         /* counts starts */
    int64_t started_ns, wake_ns, pump_ns;
    unsigned pumps; /* that are still worth making */
    bool dying;     /* it is being taken apart: nobody hears it */
    struct log log;
    char *log_text;
    size_t log_len;
};

int daemon_start(struct world *w, struct berth_err *err);
/* Ends it as a power cut would, or in good order; the store's copy is what is left. */
void daemon_crash(struct world *w, bool orderly);
void daemon_close(struct world *w);
/* Something was asked of it: the store may have work. */
void daemon_touched(struct world *w);

/* ---- what was heard (judge.c) -------------------------------------------------------------------------------------- */

struct heard {
    char *key;
    char *value;
    size_t len;
    bool gone;
    uint64_t created, revision;
};

/* One transaction with all that is known of it. */
struct transaction {
    uint64_t revision;
    const struct seen_change *changes;
    size_t len;
    const json_t *record; /* of the journal; NULL: there is none */
    const char *verb, *who, *subject;
    uint64_t asked; /* the request that made it; 0: none */
};

/* ---- the parts ----------------------------------------------------------------------------------------------------- */

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
    int64_t now_ns;  /* virtual and steady */
    int64_t wall_ns; /* to be added for the wall clock, which jumps */
    int64_t end_ns;
    bool calm;        /* no more faults, no more wishes: everything shall come to rest */
    uint64_t event;   /* number of the one that runs */
    uint64_t allowed; /* faults, a bit for each */
    struct str doing, unrest;
    struct log quiet; /* of the agents */
    uint64_t hash;
    struct counts counts;

    struct daemon daemon;
    VEC(struct asked *) asked;    /* by number, from 1; NULL: over and forgotten */
    VEC(struct asked *) answered; /* to be looked at */
    VEC(struct past) past;        /* by number, from 1 */
    size_t waiting;               /* without an answer */

    VEC(struct heard) heard;
    struct mirror mirror;
    uint64_t log_seq, log_chain;             /* seen so far */
    uint64_t recovered_seq, recovered_chain; /* the same when all of it was read again after a crash */
    int64_t jumped_ns;                       /* how far the wall clock has jumped, ahead and back, in all */

    struct agents *agents;
    struct people *people;
    struct faults *faults;
    struct promises *promises;
    struct watchers *watchers;
    struct limbo *limbo;
    struct jobs_seen *jobs;
    struct ids *ids;

    int invariant; /* broken; 0: none */
    uint64_t breach_event;
    int64_t breach_ns;
    struct str breach;
};

/* ---- the world (world.c) ------------------------------------------------------------------------------------------- */

/* Runs `run(w, arg)` after a while. */
void world_later(struct world *w, int64_t delay_ns, void (*run)(struct world *w, void *arg), void *arg,
                 void (*drop)(void *arg));
/* Names what is happening, for the trace and for a breach. */
void world_says(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An invariant is broken. Only the first one counts. */
void world_breach(struct world *w, int invariant, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* An invariant was looked at. */
static inline void world_checked(struct world *w, int invariant)
{
    w->counts.checks++;
    w->counts.checked[invariant]++;
}
/* Adds to the fingerprint of the run. */
void world_mix(struct world *w, uint64_t x);
int64_t world_wall_ns(const struct world *w);

/* Looks at everything that the event has caused (judge.c). */
void world_settle(struct world *w);
void judge_done(struct world *w);
/* The store a crash has left: the log from its beginning, its last record as it was, and every decision again. */
void judge_recovered(struct world *w);
/* Are the decisions in the log those that are made again? (15) */
void judge_replay(struct world *w);

/* ---- actors -------------------------------------------------------------------------------------------------------- */

struct agents *agents_new(struct world *w);
void agents_free(struct agents *a);
/* A machine for this node: its agent reads and reports from now on, with this token. */
void agents_add(struct world *w, const char *node, const char *token);
/* The agent's machine is taken away with all that runs on it. */
void agents_remove(struct world *w, const char *node);
bool agents_has(const struct world *w, const char *node);
size_t agents_len(const struct world *w);
bool agents_there(const struct world *w, size_t which); /* its machine has not been taken away */
/* What happens to them; each by its place. */
enum cut { CUT_BOTH, CUT_MUTE, CUT_DEAF };
void agents_cut(struct world *w, size_t which, int64_t for_ns, enum cut cut);
void agents_flap(struct world *w, size_t which, int64_t for_ns);
void agents_kill(struct world *w, size_t which);
void agents_pause(struct world *w, size_t which, int64_t for_ns);
void agents_reboot(struct world *w, size_t which);
void agents_twin(struct world *w, size_t which);
void agents_impostor(struct world *w, size_t which);
void agents_lie(struct world *w, size_t which);
/* The configuration of a node has changed: those who listen are told. */
void agents_told(struct world *w, const char *node);
/* The daemon says that the node is lost: was it silent that long? */
void agents_lost(struct world *w, const char *node);
void agents_check(struct world *w);
/* No more silence. */
void agents_calm(struct world *w);
/* Has everyone who was told to give way done so? */
void trees_check(struct world *w);
/* Says in w->unrest what runs or lies about and should not. */
void trees_rest(struct world *w);

/* First the administrator, groups, users and nodes; then whatever they like. */
struct people *people_new(struct world *w, const char *admin_token);
void people_free(struct people *p);
const char *people_admin_token(const struct world *w);
/* A user that is not the administrator, for a watch: its name and token; false: there is none yet. */
bool people_watcher(const struct world *w, const char **ret_user, const char **ret_token);

struct faults *faults_new(struct world *w);
void faults_free(struct faults *f);
/* May this happen now? */
bool faults_allow(const struct world *w, enum fault fault);
/* Everything works again. */
void faults_end(struct world *w);
/* The store refuses to write, or has done so a moment ago. */
bool faults_store_fails(const struct world *w);
/* Every write takes seconds. */
bool faults_store_slow(const struct world *w);

/* ---- judges -------------------------------------------------------------------------------------------------------- */

/* Each looks at one transaction, with the mirror as it left it. */
void placements_judge(struct world *w, const struct transaction *t); /* 1, 2, 3, 5, 10, 12 (placement.c, fit.c) */
/* Would this workload rather run twice than not at all? */
bool placement_twice(const struct seen *work);
/* The same of the document that an instance was placed from, which may be kept without saying what it was. */
bool placement_was_twice(const struct mirror *m, const char *workload, const struct seen *from);
/* Is it neither held nor stopped, nor its owner disabled? */
bool mirror_wanted(const struct mirror *m, const struct seen *work);
/* What is against this instance where it is, by the naive rules; NULL: nothing. The text may be in the caller's buffer. */
const char *fit_against(const struct mirror *m, const struct seen *instance, int *ret_invariant, char *buf,
                        size_t size);
/* Could one more pod of this workload be on the node? */
bool fit_takes(const struct mirror *m, const struct seen *node, const struct seen *work);

/* What the shape asks for of a resource. */
int64_t fit_request(const struct berth_shape *shape, const char *resource);

void quotas_judge(struct world *w, const struct transaction *t); /* 11 (quota.c) */
/* Is there room for one more pod of it in everything that it counts against? */
bool quota_takes(const struct mirror *m, const struct seen *work);

struct jobs_seen *jobs_seen_new(void);
void jobs_seen_free(struct jobs_seen *j);
void jobs_judge(struct world *w, const struct transaction *t); /* 17, 19 (jobs.c) */

void trees_judge(struct world *w, const struct transaction *t); /* 5, 6, 24, P10 (processes.c) */

struct ids *ids_new(void);
void ids_free(struct ids *i);
void states_judge(struct world *w, const struct transaction *t); /* 8, 13, 22 (states.c) */
void used_judge(struct world *w, const struct transaction *t);   /* 4: what ran and is over is recorded, once */
void states_check(struct world *w);                              /* 4, and the daemon's state against the mirror */

/* What was promised to those who asked: 7, 9, 20. */
struct promises *promises_new(void);
void promises_free(struct promises *p);
void promises_answered(struct world *w, uint64_t number, const struct ask *ask, const struct outcome *reply);
/* Forgets whom a key belonged to when the user is gone. */
void promises_judge(struct world *w, const struct transaction *t);

struct watchers *watchers_new(struct world *w);
void watchers_free(struct watchers *x);
void watchers_judge(struct world *w, const struct transaction *t); /* 28: what they should be told */
void watchers_check(struct world *w);
void watchers_down(struct world *w); /* the daemon is gone, and every stream with it */

/* 17 and 18: nothing in limbo, and rest when all is calm (liveness.c). */
struct limbo *limbo_new(void);
void limbo_free(struct limbo *l);
void limbo_check(struct world *w);
/* False: w->unrest says what is still to come. */
bool rest_reached(struct world *w);
