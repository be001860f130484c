/* node_parts.h - internals of the node logic: node.c (instances), desired.c (desired state), report.c. */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "node/node.h"

#define NODE_SECOND INT64_C(1000000000)

struct node_instance_port {
    char *endpoint;
    uint16_t port;
};

struct node_instance_usage {
    char *resource;
    int64_t now, sent, said; /* measured; in the report in flight; acknowledged by the daemon. -1: none */
    bool spent;              /* cumulative: also reported after the end */
};

/* An instance on this node, or an ended one whose outcome the daemon has not acknowledged. */
struct node_instance {
    uint64_t id;
    enum node_state state;
    bool ready;
    bool listed;  /* contained in the current configuration */
    bool wanted;  /* listed with state "run" */
    bool unknown; /* the daemon answered that it does not know this instance */
    bool asked;   /* a stop was requested */
    bool forced;  /* with SIGKILL */
    json_t *config;
    int64_t fence_ns; /* 0: never fenced */
    VEC(struct node_instance_port) ports;
    VEC(struct node_instance_usage) use;
    int progress;          /* thousandths; -1: not reported */
    uint16_t foreign_port; /* 0: none */
    char *note, *unenforced, *over, *error;
    json_t *exclusive; /* {resource: name}; NULL: none */
    enum node_end end;
    int exit;
    bool oom_killed;
    /* Values of node->changes: at the last change, in the report in flight, acknowledged by the daemon. */
    uint64_t changed, sent, said;
};

struct node_agent {
    struct node_env env;
    const struct node_machine *machine;
    void *machine_ctx;
    char *id;
    uint64_t epoch, seq;
    bool begun;    /* node_begin was called */
    bool accepted; /* the daemon has accepted a report of this epoch: configurations may be applied */
    bool superseded;
    VEC(struct node_instance *) node_instance; /* sorted by id */
    uint64_t changes;

    /* Desired state. */
    bool configured;
    uint64_t revision;
    char *hash;
    json_t *pending; /* configuration received before the first report was accepted */

    /* Reports. */
    json_t *self;      /* "node" of the next report; NULL: none */
    json_t *self_sent; /* "node" of the report in flight */
    int64_t heard_ns;  /* send time of the last accepted report; 0: none */
    int64_t sent_ns;   /* send time of the report in flight */
    int64_t next_ns;   /* latest time of the next report */
    int64_t heartbeat_ns;
    bool heartbeat_given;
    bool sending;
    unsigned failures; /* consecutive failed reports */
};

/* node.c */
struct node_instance *node_instance_find(const struct node_agent *n, uint64_t id);
struct node_instance *node_instance_add(struct node_agent *n, uint64_t id, enum node_state state);
void node_instance_set_config(struct node_instance *h, const json_t *config);
/* Marks the instance as changed and schedules a report at once. */
void node_instance_changed(struct node_agent *n, struct node_instance *h);
/* Stops the instance if it must not run; forgets it if it has ended and the daemon knows. True: it was removed from the
 * list. */
bool node_instance_settle(struct node_agent *n, struct node_instance *h);
void node_settle(struct node_agent *n);
/* Merges an older "node" object that the daemon has not received into the next report. Takes the reference. */
void machine_state_merge(struct node_agent *n, json_t *older);
static inline bool node_instance_is_alive(const struct node_instance *h)
{
    return h->state != NODE_OVER;
}

/* desired.c */
void desired_apply(struct node_agent *n, const json_t *config);

/* report.c */
/* Sends a report if one is due; otherwise requests a wakeup. */
void report_tick(struct node_agent *n);
/* Schedules the next report within this time. */
void report_within(struct node_agent *n, int64_t ns);
