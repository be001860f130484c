/* state_parts.h - internals of the state; only for state*.c and spec_cache.c. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/state/state.h"
#include "control/tenant/usage.h"
#include "wire/doc/api.h"
#include "wire/doc/optask_doc.h"
#include "wire/doc/queue_doc.h"

enum { KEPT_MAX = 8 };

/* An object with the memory that it owns. Its address never changes. */
struct state_entry {
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
    char *owner, *group;             /* of an instance */
    char *domain;                    /* of a node */
    struct cached_spec *cached_spec; /* spec_cache.h; NULL for other kinds */
    uint32_t slot;
    struct state_entry *on_node, *of_work; /* of an instance: the entries that list it; NULL: none */
    bool linked;
};

struct object_table {
    struct object **at; /* sorted by id, unless `unsorted` */
    size_t len, cap;
    size_t skipped; /* unused positions before `at`: low numbers are removed first */
    bool unsorted;  /* while loading */
};

/* The planned but uncommitted change of an instance. */
struct assumed_change {
    uint64_t id;
    const struct state_entry *node; /* its node; NULL: the instance is removed, or the node is gone */
    bool fresh, gone;               /* a new instance without a document; a removed instance */
    enum berth_state state;         /* the planned state and its time */
    int64_t since_ns;
};

struct state {
    struct object_table tables[KINDS];
    struct map map; /* (kind, id) to slot */
    VEC(struct state_entry *) slots;
    VEC(uint32_t) free_slots;
    struct berth_cluster *cluster;
    VEC(struct assumed_change) assumed;
    struct map assumed_map;    /* instance id to position in `assumed` */
    VEC(char *) assumed_facts; /* ids */
    struct map facts_map;
    uint64_t dropped; /* how often all assumed instances were dropped */
    uint64_t revision;
    uint64_t hashes[KINDS]; /* of journalled objects */
    uint64_t last_number[KINDS];
    size_t orphans; /* instances whose workload or node does not exist */
    bool loading;
    struct cap_book *caps;       /* resource use per user (control/tenant/cap.h) */
    struct quota_ledger *ledger; /* quota use according to the documents alone */
    struct arena scratch;        /* for the change that is being applied */
};

struct state_entry *state_entry(const struct state *s, enum kind kind, const char *id);
/* Updates a cluster from the object's document. */
int object_sync(struct state *s, struct berth_cluster *cluster, const struct object *o, struct berth_err *err);

/* state_assume.c. NULL: no assumption. */
const struct assumed_change *assumed_find(const struct state *s, uint64_t id);
/* Tells whether a document confirms the assumption or makes it obsolete. */
bool assumed_confirms(const struct assumed_change *a, const struct berth_instance *i);
void assumed_settle(struct state *s, uint64_t id);
void assumed_drop_all(struct state *s);
void assumed_done(struct state *s);

/* state_view.c: a document, parsed once for both the view and the cluster. */
struct parsed_doc {
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
int doc_parse(enum kind kind, const json_t *doc, struct arena *arena, struct parsed_doc *ret, struct berth_err *err);
void view_set(struct state *s, struct state_entry *e, const struct parsed_doc *p, const json_t *doc);
void view_drop(struct state_entry *e);
/* Updates the domain of a node. */
void view_domain(struct state *s, struct state_entry *e, const struct berth_node *node);
/* spec_cache.c: caches the parsed document, for kinds that have a cache. The document has been parsed before. */
void cached_spec_set(struct state_entry *e, const json_t *doc);
void cached_spec_drop(struct state_entry *e);
/* Updates owner and group of an instance after a change of its workload. */
void view_owner(struct state *s, struct state_entry *e);
/* Adds an instance to the lists of its node and workload, or removes it. */
void links_make(struct state *s, struct state_entry *e);
void links_drop(struct state *s, struct state_entry *e);

/* state_sync.c: updates or removes an object in the cluster. On failure the cluster is unchanged. */
int sync_put(const struct state *s, struct berth_cluster *cluster, const struct object *o, struct parsed_doc *p,
             struct arena *arena, struct berth_err *err);
int sync_remove(const struct state *s, struct berth_cluster *cluster, const struct state_entry *e,
                struct berth_err *err);
