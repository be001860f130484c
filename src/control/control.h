/* control.h - the daemon's logic as a library: it runs a cluster, given a store, a clock and requests.
 *
 * Clock, randomness, threads and network belong to the caller (struct control_env), so the same code serves berthd,
 * tests and the simulator. All functions run on one thread. See api/request.h for requests, sched/scheduler.h for the
 * scheduling loop, state/state.h for the objects.
 */
#pragma once

#include "base/log.h"
#include "control/api/request.h"

struct control_env {
    void *ctx;
    int64_t (*clock_ns)(void *ctx);  /* since 1970; may jump */
    int64_t (*steady_ns)(void *ctx); /* never goes back; leases, rate limits, timers */
    int64_t (*boot_ns)(void *ctx);   /* as steady_ns, but includes suspend; NULL: as steady_ns */
    void (*random)(void *ctx, void *buf, size_t len);
    /* Runs `work` on any thread and then `after` on this thread, at once or later. */
    void (*run)(void *ctx, void (*work)(void *), void (*after)(void *), void *arg);
    /* The same for work that may take seconds, so that plans do not wait for it. NULL: as `run`. */
    void (*run_slow)(void *ctx, void (*work)(void *), void (*after)(void *), void *arg);
    /* Requests control_tick at this steady time; an earlier request stays in force. */
    void (*wake_at)(void *ctx, int64_t steady_ns);
    /* Requests control_serve in the next iteration of the caller's event loop. NULL: requests never wait for their
     * turn. */
    void (*serve_soon)(void *ctx);
    const struct log *log;
};

struct control_options {
    uint64_t seed;                /* of the seeded score; 0: from the settings */
    int64_t lease_ns;             /* time without a report after which a node is lost; 0: from the settings */
    size_t audit_every;           /* cycles between audits of all counters; 0: from the settings */
    double requests_per_s;        /* per caller, with a burst of ten seconds' worth; 0: from the settings */
    size_t watchers_max;          /* 0: 12000 */
    uint64_t history_max;         /* revisions kept for watches; 0: from the settings */
    const char *journal_dir;      /* folder of the journal's segments; NULL: no segments, the log stays in the store */
    const char *data_dir;         /* folder with the daemon's keys, for backups; outlives the control; NULL: none */
    bool bare;                    /* control_init sets no default requests and limits; for simulations */
    bool secret_key_given;        /* else secrets cannot be written or read */
    unsigned char secret_key[32]; /* encrypts secrets; not in the store, nor in its backups */
};

/* Loads the store. Planning continues from the durable state at once. The store stays the caller's. */
int control_new(const struct control_env *env, const struct control_options *options, struct store *store,
                struct control **ret, struct berth_err *err);
void control_free(struct control *c);

/* Content of an agent's certificate. Its serial number in hex begins with "01" and `joined` in 16 digits. */
struct agent_grant {
    const char *name; /* common name */
    uint64_t joined;
    int64_t not_before_ns, not_after_ns;
};

/* Addresses and certificates that agents need to join (control/node/join.h). Texts belong to the caller and outlive the
 * control. Without it no node can be invited. */
struct control_agents {
    void *ctx;
    /* Signs a certificate for the key of a request; the caller frees the result with mem_free. Returns -EINVAL for an
     * invalid request, which comes from an untrusted machine. */
    int (*sign)(void *ctx, const struct agent_grant *grant, const char *request_pem, char **ret_cert_pem,
                struct berth_err *err);
    const char *ca_pem;    /* certificate of the authority */
    const char *pin;       /* pin of the agents' server */
    const char *addresses; /* of the server, unless set in the settings: "https://A:3981,https://B:3981" */
};
void control_set_agents(struct control *c, const struct control_agents *agents);

/* Initialises an empty store: the administrator, system objects, a token. Returns -EEXIST if the store is not empty.
 * `ret_token` is the only copy of the token's text. Commits before it returns. */
int control_init(struct control *c, char ret_token[static TOKEN_TEXT_MAX], struct berth_err *err);

/* Handles the passing of time: leases, back-off, recheck, history, streams. */
void control_tick(struct control *c);
/* Runs waiting requests for about FAIR_SLICE_NS. */
void control_serve(struct control *c);
/* Delivers events of the store. Called when store_fd is readable, and at any other time. */
void control_pump(struct control *c);
/* Accepts no new work; every submitted transaction is committed or failed on return. */
void control_quiesce(struct control *c);

typedef void control_answered(void *ctx, struct answer *answer);
/* Answers exactly once, at once or from control_pump. The request is copied. The answer belongs to the control: the
 * callback moves out what it keeps. */
void control_handle(struct control *c, const struct request_input *request, control_answered *answered, void *ctx);
/* Result of the checks that need no body. */
struct control_admitted {
    uint64_t body_max;
    char user[ID_MAX + 1]; /* user whose connections and bytes are limited; "": none, an agent or an administrator */
};
/* Returns 0, or the status (401, 403, 404, 405, 429) that control_handle would answer whatever the body. */
int control_admit(struct control *c, const struct request_input *request, struct control_admitted *ret);

struct state *control_state(struct control *c);
struct store *control_store(struct control *c);
struct watch_hub *control_hub(struct control *c);
/* Returns the configuration of a node, valid until the next change; NULL: no such node. */
const struct node_config *control_node_config(struct control *c, const char *node);
struct metrics *control_metrics(struct control *c);
struct scheduler *control_scheduler(struct control *c);
struct session_hub *control_session_hub(struct control *c);
const struct control_env *control_env(const struct control *c);

/* Renews the lease of a node that has reported, in memory only. */
void control_note_report(struct control *c, const char *node, uint64_t epoch, uint64_t seq);
/* Returns the last accepted report of a node; false: none since the daemon started. */
bool control_last_report(const struct control *c, const char *node, uint64_t *ret_epoch, uint64_t *ret_seq);
