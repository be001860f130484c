/* control.h - the daemon's logic as a library: give it a store, a clock and requests, and it runs a cluster.
 *
 * Clock, randomness, threads and network are the caller's (struct control_env), so the same code serves berthd, tests and
 * the simulator. One thread calls it. See request.h for requests, loop.h for the scheduling loop, state.h for what is known.
 */
#pragma once

#include "base/log.h"
#include "control/api/request.h"

struct control_env {
    void *ctx;
    int64_t (*clock_ns)(void *ctx);  /* since 1970; may jump */
    int64_t (*steady_ns)(void *ctx); /* never goes back; leases, rate limits, timers */
    int64_t (*boot_ns)(void *ctx);   /* the same, and goes on while the machine sleeps; NULL: as steady_ns */
    void (*random)(void *ctx, void *buf, size_t len);
    /* Runs `work` somewhere and `after` on this thread, now or later. */
    void (*run)(void *ctx, void (*work)(void *), void (*after)(void *), void *arg);
    /* The same for what may take seconds, so that plans do not wait for it. NULL: as `run`. */
    void (*run_slow)(void *ctx, void (*work)(void *), void (*after)(void *), void *arg);
    /* control_tick is wanted at this steady time, or, if sooner than the last wish, then already. */
    void (*wake_at)(void *ctx, int64_t steady_ns);
    /* control_serve is wanted in the next round of the caller's event loop. NULL: requests never wait for their turn. */
    void (*serve_soon)(void *ctx);
    const struct log *log;
};

struct control_options {
    uint64_t seed;                /* of the plan's seeded score; 0: as the settings say */
    int64_t lease_ns;             /* silence after which a node is lost; 0: as the settings say */
    size_t audit_every;           /* cycles between audits of every counter; 0: as the settings say */
    double requests_per_s;        /* of one caller, with a burst of ten seconds' worth; 0: as the settings say */
    size_t watchers_max;          /* 0: 12000 */
    uint64_t history_max;         /* revisions kept for watches; 0: as the settings say */
    const char *journal_dir;      /* where the journal's segments are made; NULL: the log is kept in the store */
    const char *data_dir;         /* with the daemon's keys, for backups; outlives the control; NULL: none */
    bool bare;                    /* control_init: work gets no default requests and limits; for simulations */
    bool secret_key_given;        /* else nobody can write or read a secret */
    unsigned char secret_key[32]; /* that secrets are sealed under; not in the store, nor in its backups */
};

/* Reads the store, then is ready: planning goes on from the durable state at once. The store stays the caller's. */
int control_new(const struct control_env *env, const struct control_options *options, struct store *store,
                struct control **ret, struct berth_err *err);
void control_free(struct control *c);

/* What an agent's certificate shall say. Its serial number in hex begins with "01" and `joined` in 16 digits. */
struct agent_grant {
    const char *name; /* the common name */
    uint64_t joined;
    int64_t not_before_ns, not_after_ns;
};

/* What agents need to join (control/node/join.h). Texts are the caller's and outlive the control. Without it nobody can be
 * invited. */
struct control_agents {
    void *ctx;
    /* A certificate for the key of a request, to be freed with mem_free. -EINVAL for a request that is no good: it is a
     * stranger's. */
    int (*sign)(void *ctx, const struct agent_grant *grant, const char *request_pem, char **ret_cert_pem,
                struct berth_err *err);
    const char *ca_pem;    /* the authority's own */
    const char *pin;       /* of the server they come to */
    const char *addresses; /* of it, unless the settings name others: "https://A:3981,https://B:3981" */
};
void control_set_agents(struct control *c, const struct control_agents *agents);

/* First start on an empty store: the administrator, system objects, a token. -EEXIST when there is a state already.
 * `ret_token` may be shown once. Commits before it returns. */
int control_init(struct control *c, char ret_token[static TOKEN_TEXT_MAX], struct berth_err *err);

/* Time has passed: leases, back-off, recheck, history, streams. */
void control_tick(struct control *c);
/* Runs requests that wait for their turn, for about FAIR_SLICE_NS. */
void control_serve(struct control *c);
/* The store has something to deliver (store_fd), or may have. */
void control_pump(struct control *c);
/* No new work; everything submitted is committed or failed when this returns. */
void control_quiesce(struct control *c);

typedef void control_answered(void *ctx, struct answer *answer);
/* Answers exactly once, now or from control_pump. The request need not live on. The answer is the control's: what the
 * callback wants to keep it moves out. */
void control_handle(struct control *c, const struct request *request, control_answered *answered, void *ctx);
/* What is known before a body is there. */
struct control_admitted {
    uint64_t body_max;
    char user[ID_MAX + 1]; /* whose connections and bytes are bounded; "": nobody's, an agent's or an administrator's */
};
/* 0, or a status (401, 403, 404, 405, 429) for which control_handle would answer without looking at the body. */
int control_admit(struct control *c, const struct request *request, struct control_admitted *ret);

struct state *control_state(struct control *c);
struct store *control_store(struct control *c);
struct watch_hub *control_hub(struct control *c);
/* Of a node; NULL: there is none of this name. Until the next change. */
const struct node_config *control_node_config(struct control *c, const char *node);
struct metrics *control_metrics(struct control *c);
struct scheduler *control_scheduler(struct control *c);
struct relay *control_relay(struct control *c);
const struct control_env *control_env(const struct control *c);

/* A node has reported: its lease is renewed, in memory only. */
void control_heard(struct control *c, const char *node, uint64_t epoch, uint64_t seq);
/* The last report of a node that was taken; false: none since the daemon started. */
bool control_last_heard(const struct control *c, const char *node, uint64_t *ret_epoch, uint64_t *ret_seq);
