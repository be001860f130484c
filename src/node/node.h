/* node.h - the agent's logic as a library: what shall run here, what does, and what to say of it.
 *
 * Everything it touches is the caller's (struct node_env, struct node_machine), so the same code serves berth-agent, tests
 * and the simulator. One thread calls it. It starts what the configuration lists and nothing else; never starts anything
 * twice; stops what is not listed any more; stops what must be fenced when the daemon has been silent too long; reports
 * what changed until the daemon has acknowledged it. No processes, cgroups or files here: machine/. No sockets: agent/.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "berth.h"

struct node;

/* What is asked of the machine. Nothing here may call back into the node before it returns, but for `start`. */
struct node_machine {
    /* Starts an instance that was never started here; `config` is its object of node_config (docs/node-config.md), and
     * need not live on. That it is being started is remembered durably before any process of it runs. Answers by
     * node_started or node_over, now or later. */
    void (*start)(void *ctx, uint64_t id, const json_t *config);
    /* Its object has changed while it lives: limits, settings, files. */
    void (*change)(void *ctx, uint64_t id, const json_t *config);
    /* Ends it and all it has brought forth: politely (its signal, its grace, then by force), or with `now` by force at
     * once. Answers by node_over. Asking again is harmless, and `now` overtakes a polite one. */
    void (*stop)(void *ctx, uint64_t id, bool now);
    /* It is over and the daemon knows: nothing of it stays but logs and persistent volumes. */
    void (*forget)(void *ctx, uint64_t id);
};

struct node_env {
    void *ctx;
    int64_t (*steady_ns)(void *ctx); /* goes on while the machine sleeps, never back (CLOCK_BOOTTIME) */
    /* Sends a report; the text is the callee's (free). Answered once by node_reported, whatever happens; one is under
     * way at a time. */
    void (*report)(void *ctx, uint64_t seq, char *text);
    /* The daemon has taken a report that was sent at this time: fences count from it. To be kept beyond this process. */
    void (*heard)(void *ctx, int64_t sent_ns);
    /* The daemon's configuration is another one than this node has: read it, if that is not being done. */
    void (*reread)(void *ctx);
    /* Another agent speaks for this node, with a later epoch. All instances here have been told to stop. */
    void (*superseded)(void *ctx, const char *text);
    /* node_tick is wanted at this time, or sooner if an earlier wish says so. */
    void (*wake_at)(void *ctx, int64_t steady_ns);
    const struct log *log;
    int64_t (*clock_ns)(void *ctx); /* since 1970; for the log only */
};

struct node_options {
    const char *id;
    uint64_t epoch;       /* above that of every earlier start */
    int64_t heard_ns;     /* what `heard` kept last, if the machine has not been started anew since; else 0 */
    int64_t heartbeat_ns; /* 0: a third of the lease as the daemon tells it, 5 s until then */
};

int node_new(const struct node_env *env, const struct node_machine *machine, void *machine_ctx,
             const struct node_options *options, struct node **ret, struct berth_err *err);
void node_free(struct node *n); /* NULL is fine; stops nothing */

/* ---- what an earlier agent has left, before node_begin ---- */

enum node_end { NODE_ENDED, NODE_FAILED, NODE_STOPPED };

struct node_port {
    const char *endpoint;
    uint16_t port;
};

/* What is told of one that runs, as one: a report may go at once. */
struct node_start {
    const struct node_port *ports;
    size_t ports_len;
    const json_t *exclusive; /* what it took of exclusive resources, {resource: name}; NULL: nothing */
    const char *unenforced;  /* as in node_trouble */
};

struct node_outcome {
    enum node_end end; /* ENDED: by itself and well; STOPPED: because it was told to; FAILED: anything else */
    int exit;          /* its code, or 128 + its signal; -1: it never ran, or nobody knows */
    const char *text;  /* one sentence for people; NULL: none */
    bool oom_killed;   /* a process of it was killed for using more memory than the limit */
};

/* It lives: adopted as it is. `config` is its object as it was started from, or changed to since. */
void node_found(struct node *n, uint64_t id, const json_t *config, const struct node_start *start);
/* It is being started; answered by node_started or node_over. */
void node_found_starting(struct node *n, uint64_t id, const json_t *config);
/* It is over, how it went was kept. */
void node_found_over(struct node *n, uint64_t id, const struct node_outcome *outcome);
/* Reports for the first time, then does what it is told. */
void node_begin(struct node *n);

/* ---- what happens ---- */

/* node_config as of this revision of the store; an older one than known is ignored. `hash` is its content's. -EINVAL: it
 * makes no sense, and nothing is done. */
int node_configure(struct node *n, uint64_t revision, const char *hash, const json_t *config, struct berth_err *err);
/* It runs. An instance without health checks and without awaited ports is ready from here on. */
void node_started(struct node *n, uint64_t id, const struct node_start *start);
/* The verdict of the health check, or of the wait for its ports, has changed. `text`: what is wrong; NULL: nothing. */
void node_health(struct node *n, uint64_t id, bool ready, const char *text);
/* Nothing of it runs any more. */
void node_over(struct node *n, uint64_t id, const struct node_outcome *outcome);
/* What it uses now; reported when it differs by more than a tenth, and not at once. */
void node_usage(struct node *n, uint64_t id, const struct berth_amount *usage, size_t usage_len);
/* What it has used up in all of a resource of which that counts; goes also with the report of its end, if that is yet to be sent. */
void node_spent(struct node *n, uint64_t id, const char *resource, int64_t amount);
/* How far it says it is, in thousandths (-1: it does not say), and what it is at. */
void node_progress(struct node *n, uint64_t id, int done_milli, const char *text);
/* Resources whose limit the kernel does not enforce, and those it uses above their limit all the same. Comma-separated,
 * sorted; "" or NULL: none. */
void node_trouble(struct node *n, uint64_t id, const char *unenforced, const char *over);
/* It tried to bind this port of another app's block, or has bound it. */
void node_foreign_port(struct node *n, uint64_t id, uint16_t port);
/* The machine as a whole: an object for "node" of the report, sent with the next heartbeat. Takes the place of
 * one that was not sent yet, but for its `probed` if this one has none. Takes the reference. */
void node_self(struct node *n, json_t *self);

/* The answer to a report. `status` 0: none came. */
void node_reported(struct node *n, uint64_t seq, int status, const json_t *answer);
/* Time has passed. */
void node_tick(struct node *n);

/* ---- looking ---- */

enum node_state { NODE_STARTING, NODE_RUNNING, NODE_STOPPING, NODE_OVER };
struct node_seen {
    uint64_t id;
    enum node_state state;
    bool ready;
    const json_t *config; /* NULL: not known */
};
/* The instance at place i; false past the end. */
bool node_at(const struct node *n, size_t i, struct node_seen *ret);
bool node_find(const struct node *n, uint64_t id, struct node_seen *ret);
