/* node.h - the agent's logic as a library: assigned instances, actual instances, and reports to the daemon.
 *
 * All side effects go through the caller (struct node_env, struct node_machine), so berth-agent, tests and the
 * simulator run the same code. Not thread-safe: one thread calls it. It starts only instances that the configuration
 * lists; never starts an instance twice; stops instances that are not listed any more; kills instances whose fence time
 * has passed without contact with the daemon; repeats a report until the daemon has acknowledged it. Processes, cgroups
 * and files are in src/machine, sockets in src/agent.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "berth.h"

struct node_agent;

/* Operations that the machine provides. Only `start` may call back into the node before it returns. */
struct node_machine {
    /* Starts an instance that was never started here. `config` is its object of node_config (docs/node-config.md),
     * valid only during the call. The start is recorded durably before any process of the instance runs. The result
     * comes by node_started or node_instance_ended, during the call or later. */
    void (*start)(void *ctx, uint64_t id, const json_t *config);
    /* Applies a changed configuration (limits, settings, files) to a running instance. */
    void (*change)(void *ctx, uint64_t id, const json_t *config);
    /* Stops an instance with all its processes: gracefully (stop signal, grace time, SIGKILL) or, with `now`, by
     * SIGKILL at once. The result comes by node_instance_ended. Repeated calls are harmless; `now` overrides a graceful
     * stop. */
    void (*stop)(void *ctx, uint64_t id, bool now);
    /* Removes everything of an ended instance except logs and persistent volumes; the daemon has received its
     * outcome. */
    void (*forget)(void *ctx, uint64_t id);
};

struct node_env {
    void *ctx;
    int64_t (*steady_ns)(void *ctx); /* CLOCK_BOOTTIME: never goes back, counts suspended time */
    /* Sends a report; the callee frees `text` with free(). Exactly one call of node_reported follows each report; only
     * one report is in flight. */
    void (*report)(void *ctx, uint64_t seq, char *text);
    /* The daemon has accepted the report that was sent at `sent_ns`; fence times count from it. To be stored
     * durably. */
    void (*heard)(void *ctx, int64_t sent_ns);
    /* The daemon's configuration differs from this node's: fetch it, unless that is in progress. */
    void (*reread)(void *ctx);
    /* Another agent with a later epoch has taken over this node. All instances here are being stopped. */
    void (*superseded)(void *ctx, const char *text);
    /* Requests a call of node_tick at this time. An earlier pending request stays in force. */
    void (*wake_at)(void *ctx, int64_t steady_ns);
    const struct log *log;
    int64_t (*clock_ns)(void *ctx); /* since 1970; for the log only */
};

struct node_options {
    const char *id;
    uint64_t epoch;       /* greater than the epoch of every earlier start */
    int64_t heard_ns;     /* last stored value of `heard`; 0 after a reboot */
    int64_t heartbeat_ns; /* 0: a third of the daemon's lease; 5 s until it is known */
};

int node_new(const struct node_env *env, const struct node_machine *machine, void *machine_ctx,
             const struct node_options *options, struct node_agent **ret, struct berth_err *err);
void node_free(struct node_agent *n); /* NULL is fine; stops nothing */

/* ---- instances of an earlier agent, before node_begin ----------------------------------------------------------- */

enum node_end { NODE_ENDED, NODE_FAILED, NODE_STOPPED };

struct node_port {
    const char *endpoint;
    uint16_t port;
};

/* Properties of a started instance, passed together because a report may be sent at once. */
struct node_start {
    const struct node_port *ports;
    size_t ports_len;
    const json_t *exclusive; /* claimed exclusive resources, {resource: name}; NULL: none */
    const char *unenforced;  /* as in node_limit_state */
};

struct node_outcome {
    enum node_end end; /* ENDED: exited with 0; STOPPED: after a stop; FAILED: all other ends */
    int exit;          /* exit code, or 128 + signal; -1: never ran, or unknown */
    const char *text;  /* one sentence for users; NULL: none */
    bool oom_killed;   /* the kernel killed one of its processes at the memory limit */
};

/* Adopts a running instance. `config` is the object that was applied last. */
void node_adopt(struct node_agent *n, uint64_t id, const json_t *config, const struct node_start *start);
/* Adopts an instance that is still starting; node_started or node_instance_ended follows. */
void node_adopt_starting(struct node_agent *n, uint64_t id, const json_t *config);
/* Adopts an ended instance with its recorded outcome. */
void node_adopt_ended(struct node_agent *n, uint64_t id, const struct node_outcome *outcome);
/* Sends the first report; begins to act on configurations after the daemon has accepted it. */
void node_begin(struct node_agent *n);

/* ---- events ----------------------------------------------------------------------------------------------------- */

/* Handles node_config of a store revision; a revision older than the last one is ignored. `hash` is the hash of its
 * content. -EINVAL: invalid document; nothing is changed. */
int node_configure(struct node_agent *n, uint64_t revision, const char *hash, const json_t *config,
                   struct berth_err *err);
/* The instance runs. Without a health check and awaited ports it is ready from now on. */
void node_started(struct node_agent *n, uint64_t id, const struct node_start *start);
/* The result of the health check, or of waiting for ports, has changed. `text`: the failure; NULL: none. */
void node_health(struct node_agent *n, uint64_t id, bool ready, const char *text);
/* No process of the instance runs any more. */
void node_instance_ended(struct node_agent *n, uint64_t id, const struct node_outcome *outcome);
/* Current usage; included in the next report if it changed by more than a tenth, but does not trigger a report. */
void node_usage(struct node_agent *n, uint64_t id, const struct berth_amount *usage, size_t usage_len);
/* Total consumption of a cumulative resource, such as traffic; also included in the final report if that is not sent
 * yet. */
void node_total_usage(struct node_agent *n, uint64_t id, const char *resource, int64_t amount);
/* Progress as the instance reports it: thousandths (-1: none) and a text. */
void node_progress(struct node_agent *n, uint64_t id, int done_milli, const char *text);
/* Resources whose limits the kernel does not enforce, and resources used above their limits. Comma-separated, sorted;
 * "" or NULL: none. */
void node_limit_state(struct node_agent *n, uint64_t id, const char *unenforced, const char *over);
/* The instance tried to bind this port of another app's block, or has bound it. */
void node_foreign_port(struct node_agent *n, uint64_t id, uint16_t port);
/* State of the whole machine: an object for "node" of the next report. Replaces an object that was not sent yet; the
 * member `probed` of that one is kept if the new object has none. Takes the reference. */
void node_machine_state(struct node_agent *n, json_t *self);

/* Handles the answer to a report. `status` 0: no answer came. */
void node_reported(struct node_agent *n, uint64_t seq, int status, const json_t *answer);
/* Checks fences and sends a report if one is due. */
void node_tick(struct node_agent *n);

/* ---- queries ---------------------------------------------------------------------------------------------------- */

enum node_state { NODE_STARTING, NODE_RUNNING, NODE_STOPPING, NODE_OVER };
struct node_instance_view {
    uint64_t id;
    enum node_state state;
    bool ready;
    const json_t *config; /* NULL: unknown */
};
/* Returns the instance at index i; false past the end. */
bool node_at(const struct node_agent *n, size_t i, struct node_instance_view *ret);
bool node_find(const struct node_agent *n, uint64_t id, struct node_instance_view *ret);
