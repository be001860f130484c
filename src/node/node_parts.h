/* node_parts.h - the inside of a node, shared by its files: node.c (what is held), wish.c (what shall be), report.c. */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "node/node.h"

#define NODE_SECOND INT64_C(1000000000)

struct held_port {
    char *endpoint;
    uint16_t port;
};

struct held_use {
    char *resource;
    int64_t now, sent, said; /* measured; in the report under way; as the daemon knows it. -1: not */
    bool spent;              /* used up in all: also told when it is over */
};

/* An instance that is here, or was and the daemon has yet to know. */
struct held {
    uint64_t id;
    enum node_state state;
    bool ready;
    bool listed;  /* by the present configuration */
    bool wanted;  /* listed, and to run */
    bool unknown; /* the daemon says that it is not to be here */
    bool asked;   /* it was told to stop */
    bool forced;  /* and by force */
    json_t *config;
    int64_t fence_ns; /* 0: goes on whatever happens */
    VEC(struct held_port) ports;
    VEC(struct held_use) use;
    int progress;          /* thousandths; -1: it does not say */
    uint16_t foreign_port; /* 0: none */
    char *note, *unenforced, *over, *error;
    json_t *exclusive; /* {resource: name}; NULL: none */
    enum node_end end;
    int exit;
    bool oom_killed;
    /* Counts of node->changes: the last change, the one in the report under way, the one the daemon has taken. */
    uint64_t changed, sent, said;
};

struct node {
    struct node_env env;
    const struct node_machine *machine;
    void *machine_ctx;
    char *id;
    uint64_t epoch, seq;
    bool begun;    /* has reported, or tried to */
    bool accepted; /* the daemon has taken a report of this epoch: it may act */
    bool superseded;
    VEC(struct held *) held; /* in order of ids */
    uint64_t changes;

    /* What shall be. */
    bool configured;
    uint64_t revision;
    char *hash;
    json_t *pending; /* came before the first report was taken */

    /* The conversation. */
    json_t *self;      /* to be said with the next report; NULL: nothing */
    json_t *self_sent; /* in the report under way */
    int64_t heard_ns;  /* when the last report that was taken was sent; 0: never */
    int64_t sent_ns;   /* when the one under way was sent */
    int64_t next_ns;   /* of the next report, at the latest */
    int64_t heartbeat_ns;
    bool heartbeat_given;
    bool sending;
    unsigned failures; /* in a row */
};

/* node.c */
struct held *held_find(const struct node *n, uint64_t id);
struct held *held_add(struct node *n, uint64_t id, enum node_state state);
void held_config(struct held *h, const json_t *config);
/* Something the daemon should hear of at once. */
void held_changed(struct node *n, struct held *h);
/* Stops what shall not run; true: it is over and forgotten, and gone from the list. */
bool held_settle(struct node *n, struct held *h);
void node_settle(struct node *n);
/* Something older that it had to say of itself, and that nobody has heard. Takes the reference. */
void self_keep(struct node *n, json_t *older);
static inline bool held_lives(const struct held *h)
{
    return h->state != NODE_OVER;
}

/* wish.c */
void wish_apply(struct node *n, const json_t *config);

/* report.c */
/* Sends one if it is time; else asks to be woken. */
void report_tick(struct node *n);
/* One is wanted within this time. */
void report_within(struct node *n, int64_t ns);
