/* state_parts.h - the inside of the state; for state*.c only. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/state/state.h"
#include "control/tenant/usage.h"
#include "wire/doc/api.h"
#include "wire/doc/optask_doc.h"
#include "wire/doc/queue_doc.h"

enum { KEPT_MAX = 8 };

/* An object with what it owns. The address stays while the object does. */
struct entry {
    struct object object;
    union {
        struct user_view user;
        struct token_view token;
        struct node_view node;
        struct prediction_view prediction;
        struct usage_view usage;
        struct work_view work;
        struct instance_view instance;
        struct opstep_view opstep;
        struct {
            int64_t value, at_ns;
        } fact;
    } view;
    char *kept[KEPT_MAX]; /* texts of the view */
    size_t kept_len;
    char *owner, *group;       /* of an instance */
    char *domain;              /* of a node */
    struct kept_doc *kept_doc; /* of kinds that have one; spec_cache.h */
    uint32_t slot;
    struct entry *on_node, *of_work; /* of an instance: where it is listed; NULL: nowhere */
    bool linked;
};

struct table {
    struct object **at; /* sorted by id, unless `unsorted` */
    size_t len, cap;
    size_t skipped; /* places before `at` that were given up: numbers go from the front */
    bool unsorted;  /* while loading */
};

/* What a plan wants of an instance. */
struct assumed {
    uint64_t id;
    const struct entry *node; /* where it is put; NULL: it goes, or the node is gone */
    bool fresh, gone;         /* it has no document yet; it goes */
    enum berth_state state;   /* that it will have, since when */
    int64_t since_ns;
};

struct state {
    struct table tables[KINDS];
    struct map map; /* (kind, id) to a slot */
    VEC(struct entry *) slots;
    VEC(uint32_t) free_slots;
    struct berth_cluster *cluster;
    VEC(struct assumed) assumed;
    struct map assumed_map;    /* instance to its place there */
    VEC(char *) assumed_facts; /* their ids */
    struct map facts_map;
    uint64_t dropped; /* how often all that was assumed of instances had to go */
    uint64_t revision;
    uint64_t hashes[KINDS]; /* of what is in the journal */
    uint64_t last_number[KINDS];
    size_t orphans; /* instances whose workload or node is not there */
    bool loading;
    struct cap_book *caps;       /* what each user has (control/tenant/cap.h) */
    struct quota_ledger *ledger; /* what counts against quotas by the documents alone */
    struct arena scratch;        /* of the change at hand */
};

struct entry *state_entry(const struct state *s, enum kind kind, const char *id);
/* Tells a cluster what the object's document says. */
int object_project(struct state *s, struct berth_cluster *cluster, const struct object *o, struct berth_err *err);

/* state_assume.c. NULL: nothing is. */
const struct assumed *assumed_find(const struct state *s, uint64_t id);
/* Is what a document says what was assumed, or does it make that moot? */
bool assumed_confirms(const struct assumed *a, const struct berth_instance *i);
void assumed_settle(struct state *s, uint64_t id);
void assumed_drop_all(struct state *s);
void assumed_done(struct state *s);

/* state_view.c: a document, read once for the view and for the cluster. */
struct parsed {
    struct doc_meta meta;
    union {
        struct work_doc work;
        struct node_doc node;
        struct user_doc user;
        struct group_doc group;
        struct queue_doc queue;
        struct policy_doc policy;
        struct window_doc window;
        struct domain_doc domain;
        struct optask_doc optask;
        struct opstep_doc opstep;
        struct token_doc token;
        struct role_doc role;
        struct instance_doc instance;
        struct volume_doc volume;
        struct secret_doc secret;
        struct cron_doc cron;
        struct berth_resource resource;
        struct berth_fact fact;
        struct prediction_view prediction;
        struct usage_row usage;
    };
};
int doc_parse(enum kind kind, const json_t *doc, struct arena *arena, struct parsed *ret, struct berth_err *err);
void view_set(struct state *s, struct entry *e, const struct parsed *p, const json_t *doc);
void view_drop(struct entry *e);
/* Of a node: its domain has changed. */
void view_domain(struct state *s, struct entry *e, const struct berth_node *node);
/* spec_cache.c: the document as it is read, for kinds that have one; it has been read before. */
void kept_set(struct entry *e, const json_t *doc);
void kept_drop(struct entry *e);
/* Of an instance: its workload belongs to others now. */
void view_owner(struct state *s, struct entry *e);
/* Lists an instance with its node and workload, or takes it off. */
void links_make(struct state *s, struct entry *e);
void links_drop(struct state *s, struct entry *e);

/* state_sync.c: tells the cluster of an object, or that it is gone. On failure the cluster is as before. */
int project_put(const struct state *s, struct berth_cluster *cluster, const struct object *o, struct parsed *p,
                struct arena *arena, struct berth_err *err);
int project_remove(const struct state *s, struct berth_cluster *cluster, const struct entry *e, struct berth_err *err);
