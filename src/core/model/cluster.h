/* cluster.h - the maintained state of a cluster: what callers put through berth.h, kept so that freezing it is cheap.
 *
 * Records are in copy-on-write tables and refer to each other by index; an object keeps its index ("slot") for life.
 * Counters (resources held on each node, instances of a workload) are updated with every change and compared with a
 * recomputation by audit.c. This module makes no decisions. Nothing here depends on the order in which objects arrive,
 * except the numbers of slots and strings, which no decision uses.
 */
#pragma once

#include <stdatomic.h>

#include "base/vec.h"
#include "core/model/shape.h"

struct node_ix {
    uint32_t v;
};
struct workload_ix {
    uint32_t v;
};
struct instance_ix {
    uint32_t v;
};

#define NONE UINT32_MAX

/* Built-in resources with fixed indices. */
enum { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_PODS, RESOURCES_BUILT_IN };

struct resource {
    sym name;
    enum berth_resource_kind kind;
    int64_t period_ns;
    int64_t page_size_bytes; /* of huge pages */
    bool optional;           /* a node that states no amount takes any number: pods, attached volumes */
};

struct taint {
    sym key, value;
    enum berth_effect effect;
};

struct device {
    sym model, kind; /* the name its node states; the name for matching, in upper case */
    int64_t memory_bytes;
    bool unhealthy;
};

struct image {
    sym name;
    int64_t size_bytes;
};

struct capacity {
    uint32_t resource;
    int64_t capacity;    /* allocatable times the over-commit ratio */
    int64_t allocatable; /* the amount that is really there */
};

struct amount {
    uint32_t resource;
    int64_t amount;
};

/* Use that the agent reports for its node. It changes often and is not part of the body, so that a report does not
 * invalidate the layout. */
struct node_usage {
    uint32_t consumed_len, used_len;
    struct node_amount {
        uint32_t resource;
        int64_t amount, since_ns; /* since_ns: start of the consumption period */
    } at[];                       /* consumed amounts, then used amounts */
};

/* Resources whose real use affects decisions. */
enum { USE_CPU, USE_MEMORY, USES };

/* Sums over the active instances of a node that report use: their use and their requests. */
struct node_use_sums {
    int64_t used[USES], asked[USES];
};

/* The rarely changing part of a node: one block of memory, shared by layouts. */
struct node_body {
    atomic_uint refs;     /* of the record and of layouts */
    uint64_t fingerprint; /* of the content */
    sym id, zone, rack, domain, arch;
    uint32_t rank;
    int64_t page_size_bytes;
    struct labels labels;
    struct syms runtimes;
    const struct taint *taints;
    const struct device *devices;
    const struct image *images;
    const struct capacity *capacities;
    const uint32_t *ports; /* things */
    uint32_t taints_len, devices_len, images_len, capacities_len, ports_len;
};

struct device_book {
    int32_t active, stopping, reserved; /* milli */
    int64_t mem_active, mem_stopping, mem_reserved;
};

struct node {
    struct node_body *body; /* NULL: a free slot */
    struct device_book *devices;
    struct node_usage *use; /* NULL: nothing was reported */
    enum berth_node_state state;
    int64_t since_ns;
    uint32_t first; /* first instance, or NONE */
    uint32_t ports; /* ports of the node itself, a chain of holds */
    uint32_t instances;
};

/* Amounts of one resource that instances hold on one node. */
struct amount_book {
    int64_t active, stopping, reserved; /* `active` includes `stopping` */
};

/* An exclusive object held on a node: a port or a volume. */
enum port_or_volume_kind { HELD_PORT, HELD_VOLUME };

struct port_or_volume {
    enum port_or_volume_kind kind;
    sym name; /* "tcp/80", "tcp/80@10.0.0.1", or the volume's id */
    sym zone, node;
    uint32_t driver; /* resource, or NONE */
    bool shared;
    uint32_t first; /* first hold */
    /* Of a port at one address: the same port at all addresses. Of a port at all addresses: the first of those at one
     * address, which are chained by next_part. NONE: none. */
    uint32_t whole, parts, next_part;
};

struct port_or_volume_hold {
    uint32_t port_or_volume, node, instance; /* instance NONE: held by the node itself */
    uint32_t next, prev;                     /* in the list of the thing */
    uint32_t more;                           /* in the chain of the instance, or in the free list */
};

enum { QUOTAS_MAX = 4, QUOTA_DEPTH_MAX = 8 };

/* A workload's quotas, queue, times and traits; most services have none of these. As in the next two records, the
 * fields that a plan reads of every record are in the first cache line. */
struct claim {
    _Alignas(64) uint32_t quotas[QUOTAS_MAX];
    uint32_t quotas_len; /* quotas are indices; the first is the account */
    sym queue;
    int64_t estimate_ns, limit_ns, deadline_ns;
    int32_t urgency;
    bool unpreemptible, never_preempts;
    bool predicted; /* estimate_ns is a prediction */
    int64_t min_run_ns;
    int32_t user_level, group_level, interference;
    int64_t parameters, attained_ns;
    struct labels words; /* pooled: equal ones have equal addresses */
};

struct workload {
    _Alignas(64) sym id;
    enum berth_workload_kind kind;
    uint32_t replicas, gang_min;
    int32_t priority;
    uint32_t claim; /* index, or NONE: no claim */
    int64_t created_ns, begin_ns;
    uint32_t gang; /* index, or NONE */
    struct class_ix class;
    uint32_t first;             /* first instance, or NONE */
    uint32_t ended;             /* number of finished tasks */
    enum berth_on_lost on_lost; /* resolved: never BERTH_LOST_DEFAULT */
    bool suspended;
    bool gone; /* removed or never put: only instances that name it are left */
    bool live; /* the slot is in use */
    int64_t fence_ns;
    enum berth_on_drain on_drain; /* resolved: never BERTH_DRAIN_DEFAULT */
    uint32_t min_available;
    uint32_t next_in_gang, prev_in_gang;
    uint32_t label_set;
    uint32_t uses;                         /* constraints that affect other workloads, a chain */
    uint32_t plain;                        /* instances that are assigned, starting or running and replace no other */
    uint32_t other;                        /* instances that are reserved, stopping, outdated or replace another */
    uint64_t ordinals, ordinals_want;      /* sums of hashes of its actual and desired ordinals */
    uint32_t next_labelled, prev_labelled; /* list of workloads with the same labels */
};

struct gang {
    sym id;
    uint32_t first; /* first workload */
};

struct usage {
    uint32_t resource, more;
    int64_t used, used_since_ns, limit, limit_since_ns;
};

struct instance_wait {
    uint64_t id;
    uint32_t more;
};

struct instance {
    _Alignas(64) uint64_t id; /* 0: a free slot */
    struct workload_ix workload;
    uint32_t ordinal;
    struct node_ix node; /* NONE once the instance has ended: it holds no node then */
    struct class_ix class;
    enum berth_state state;
    uint32_t next_of_workload, next_of_node;
    bool ready, outdated, found;
    int64_t since_ns;
    uint64_t replaces, gpus;
    int64_t counted_ns, fence_ns; /* counted_ns 0: it has not run */
    sym node_id;
    uint32_t waits, usage, holds; /* chains */
    uint32_t prev_of_workload, prev_of_node;
};

struct label_set {
    struct labels labels;
    const uint32_t *pairs; /* [label]: its pair */
    uint32_t first;        /* first workload */
};

/* One key and value that occurs in label sets or in topology constraints. */
struct label_pair {
    struct label label;
    uint32_t first;       /* first posting */
    uint32_t first_apart; /* first required `apart` constraint with this pair as first anchor */
};

struct label_posting {
    uint32_t set, next;
};

/* A workload with a required `apart` constraint: its pods keep other pods away. */
struct anti_affinity_use {
    uint32_t topology_constraint, workload;
    uint32_t next, prev; /* in the list of the constraint */
    uint32_t more;       /* in the chain of the workload */
};

/* Resources of quotas: resource indices, and these. */
enum {
    QUOTA_GPU = BERTH_RESOURCES_MAX,
    QUOTA_JOBS,
    QUOTA_ASSIGNED, /* of accounts: number of assigned instances (placement_budget.h); no quota limits it */
    QUOTA_RESOURCES
};

struct quota_amount {
    uint32_t resource;
    int64_t amount;
};

struct quota_total {
    uint32_t resource;
    int64_t limit, spent, since_ns, period_ns;
};

/* Amounts of one resource: held now (active), held once all stops are done (later), and requested by admitted workloads
 * (asked). */
struct quota_book {
    uint32_t resource;
    int64_t active, later, asked;
};

/* The limits and guarantees of a quota; one block of memory. */
struct quota_terms {
    uint32_t limits_len, guarantees_len, admitted_len, totals_len;
    const struct quota_amount *limits, *guarantees, *admitted;
    const struct quota_total *totals;
};

struct quota {
    sym id;
    uint32_t parent; /* NONE */
    uint32_t weight;
    bool weighted;
    bool known;                /* it was put; false: only named */
    struct quota_terms *terms; /* NULL: no limits or guarantees */
    VEC(struct quota_book) books;
};

/* How many of the pods that a term selects may be stopped. */
struct disruption_budget {
    sym id;
    struct topology_constraint_ix topology_constraint;
    int32_t allowed;
};

struct fact {
    enum berth_fact_kind kind;
    uint64_t subject;
    sym key;
    int64_t value, at_ns;
    bool live;
};

struct named_slot {
    uint32_t slot;
    sym id;
};

/* Number of GPUs of one model in the cluster. */
struct gpu_count {
    sym kind, model; /* model: as the first node states it */
    uint64_t devices;
};

/* Free slots. */
typedef VEC(uint32_t) slot_list;

struct berth_cluster {
    struct intern names;
    struct cluster_shapes shapes;
    VEC(struct resource) resources;
    VEC(VEC(struct amount_book)) books;  /* [resource].at[node] */
    VEC(struct node_use_sums) use_books; /* [node]; may be shorter */
    uint32_t consuming;                  /* number of nodes that report consumption */
    uint32_t said;                       /* number of nodes and instances that report use */

    struct pages nodes, workloads, instances, ports_and_volumes, holds, usages, waits, label_sets, facts;
    struct pages gangs, claims;
    VEC(struct quota) quotas; /* entries are freed only with the cluster */
    struct map quotas_by_id, words_by_labels;
    VEC(struct labels) words; /* distinct label lists */
    VEC(struct disruption_budget) budgets;
    uint32_t guaranteed;     /* number of quotas with guarantees */
    uint32_t limited;        /* number of quotas with limits */
    uint64_t quota_moves;    /* number of changes to the tree of quotas */
    VEC(uint64_t) accounted; /* workloads that count against a quota, a bit each */
    VEC(uint64_t) timed;     /* workloads whose pods may run for a limited time, a bit each */
    int64_t expires_ns;      /* when the first pod reaches its time limit; INT64_MIN: must be recomputed */
    struct pages pairs, postings, uses, topology_constraint_uses; /* topology_constraint_uses[tie]: its first use */
    uint32_t apart_unanchored; /* first required `apart` constraint without an anchor */
    slot_list nodes_free, workloads_free, instances_free, holds_free, usages_free, waits_free, facts_free, uses_free;
    slot_list claims_free;
    struct map nodes_by_id, workloads_by_id, instances_by_id, ports_and_volumes_by_name, label_sets_by_labels,
        facts_by_subject;
    struct map replacements_by_old; /* instances by the id of the instance they replace; several may replace one */
    struct map pairs_by_label, gangs_by_id;
    uint32_t nodes_len; /* in use */
    VEC(struct gpu_count) gpu_counts;

    VEC(uint64_t) unsettled; /* workloads that a plan must look at, a bit each */
    VEC(uint64_t) watched;   /* instances whose limits may be adjusted */
    VEC(uint64_t) leaving;   /* instances that are stopping */
    /* numbers of such instances: two kinds of books are needed while there are any */
    uint32_t stopping, reserved, replacing;

    uint64_t revision;                /* counts changes */
    struct layout *layout;            /* layout of the present nodes; NULL: must be made again */
    VEC(struct named_slot) by_id;     /* workloads sorted by id; slot NONE: removed */
    VEC(struct named_slot) by_id_new; /* not yet merged in */
    size_t by_id_gone;                /* number of removed entries in by_id */
    VEC(uint32_t) ranks;              /* [workload]: its index in by_id */
};

static inline const struct node *cluster_node(const struct berth_cluster *c, uint32_t i)
{
    return pages_at(&c->nodes, i);
}
static inline const struct workload *cluster_workload(const struct berth_cluster *c, uint32_t i)
{
    return pages_at(&c->workloads, i);
}
static inline const struct instance *cluster_instance(const struct berth_cluster *c, uint32_t i)
{
    return pages_at(&c->instances, i);
}
static inline const struct class *cluster_class(const struct berth_cluster *c, struct class_ix k)
{
    return ((const struct pool_entry *)pages_at(&c->shapes.classes.items, k.v))->object;
}
static inline const struct resource *cluster_resource(const struct berth_cluster *c, uint32_t r)
{
    return &c->resources.at[r];
}
/* Returns whether the instance is a finished task that need not run again. */
static inline bool workload_done(const struct workload *w, const struct instance *i)
{
    return i->state == BERTH_ENDED && w->kind == BERTH_JOB && !w->gone && i->ordinal < w->replicas;
}
/* Returns when a running instance reaches its time limit. */
static inline int64_t instance_expiry(const struct claim *claim, const struct instance *i)
{
    int64_t at;
    if (claim->limit_ns == 0 || __builtin_add_overflow(i->since_ns, claim->limit_ns, &at))
        return BERTH_NEVER_NS;
    return at;
}
static inline bool state_active(enum berth_state s)
{
    return s != BERTH_RESERVED && s != BERTH_ENDED;
}

/* Iterates the ports that clash with a port, itself first: the same port at all addresses, or at each address. */
static inline uint32_t port_rival_after(const struct pages *ports_and_volumes, uint32_t port, uint32_t at)
{
    const struct port_or_volume *t = pages_at(ports_and_volumes, port);
    if (at == port)
        return t->whole != NONE ? t->whole : t->parts;
    return t->whole != NONE ? NONE : ((const struct port_or_volume *)pages_at(ports_and_volumes, at))->next_part;
}
#define PORT_RIVALS_EACH(at, ports_and_volumes, port)                                                                  \
    for (uint32_t at = (port); at != NONE; at = port_rival_after(ports_and_volumes, port, at))

/* Returns the index of a resource, adding it if needed; of a port, with number `n` above the first of `port`, adding it
 * if needed; of a volume, NONE if unknown. */
uint32_t cluster_resource_put(struct berth_cluster *c, const char *name);
bool cluster_resource_known(const struct berth_cluster *c, const char *name);
uint32_t cluster_port_put(struct berth_cluster *c, const struct berth_port *port, uint32_t n);
uint32_t cluster_volume_find(const struct berth_cluster *c, const char *id);
/* Returns the name by which a GPU model is matched: its name in upper case. */
sym cluster_gpu_kind_put(struct berth_cluster *c, const char *model);
/* Returns the slot of an id, or NONE. */
uint32_t cluster_node_find(const struct berth_cluster *c, const char *id);
uint32_t cluster_workload_find(const struct berth_cluster *c, const char *id);
uint32_t cluster_instance_find(const struct berth_cluster *c, uint64_t id);
uint32_t cluster_label_set_put(struct berth_cluster *c, const struct berth_label *labels, size_t len);

uint32_t cluster_pair_put(struct berth_cluster *c, struct label label);
/* Links a new required `apart` constraint to its first anchor. */
void cluster_apart_add(struct berth_cluster *c, struct topology_constraint_ix topology_constraint);

/* Returns an equal cluster that may be changed on another thread while the original changes. Strings and shapes belong
 * to the original, which must be freed later. O(pages and lists, not records; nodes); freed by berth_cluster_free. */
struct berth_cluster *cluster_copy(const struct berth_cluster *c);

/* Returns a free slot, or a new one at the end. */
uint32_t slot_take(struct pages *table, slot_list *unused);

struct amount_book *cluster_book(struct berth_cluster *c, uint32_t resource, uint32_t node);
/* Adds a hold of the thing on the node to the instance's chain (instance NONE: to the node's own); returns it. */
uint32_t cluster_hold(struct berth_cluster *c, uint32_t port_or_volume, uint32_t node, uint32_t instance,
                      uint32_t more);
void cluster_unhold(struct berth_cluster *c, uint32_t hold);
/* Returns whether any instance other than `but` holds the volume on the node. */
bool cluster_holds(const struct berth_cluster *c, uint32_t port_or_volume, uint32_t node, uint32_t but);

static inline const struct claim *cluster_claim(const struct berth_cluster *c, uint32_t workload)
{
    const struct workload *w = cluster_workload(c, workload);
    return w->claim == NONE ? NULL : pages_at(&c->claims, w->claim);
}

/* claim.c: stores a copy of the workload's claim; removes it. The description is valid. */
void claim_put(struct berth_cluster *c, uint32_t workload, const struct berth_workload *from);
void claim_drop(struct berth_cluster *c, uint32_t workload);
/* Track when the first running pod reaches its time limit: an instance was added or changed; will change or go; the
 * tracked moment. */
void claim_note_expiry(struct berth_cluster *c, const struct instance *i);
void claim_forget_expiry(struct berth_cluster *c, const struct instance *i);
int64_t claim_expiry(struct berth_cluster *c, int64_t now_ns);

/* quota.c: adds what an instance holds to the books of all its quotas (sign 1), or subtracts it (sign -1);
 * quota_count_requests does the same with what a workload requests while it exists.
 *
 * A migrating pod has two instances and counts once, as the larger one: the new instance counts only what it needs
 * beyond the old one, for as long as the old one exists. In the active book this applies while the old one is active;
 * in the later book unless the old one stops.
 */
void quota_count(struct berth_cluster *c, const struct instance *i, int sign);
void quota_count_requests(struct berth_cluster *c, uint32_t workload, int sign);
/* The same with everything that the workload's instances hold. */
void quota_count_booked(struct berth_cluster *c, uint32_t workload, int sign);
uint32_t cluster_quota_find(const struct berth_cluster *c, const char *id);
/* Returns the slot of an id, adding it if needed. */
uint32_t cluster_quota_named(struct berth_cluster *c, const char *id);
void quotas_done(struct berth_cluster *c);
/* Returns a copy in a block of its own; NULL if `from` is NULL. */
struct quota_terms *quota_terms_copy(const struct quota_terms *from);
/* Adds what an instance counts for beyond the instance `old` that it replaces (NULL: none) to the books of all quotas
 * of the claim; quota_books_add_job adds a job when a workload gets its first instance. `quotas` may be other books
 * than those of the cluster (quota_ledger.c). */
void quota_books_add(const struct berth_cluster *c, struct quota *quotas, const struct claim *t,
                     const struct instance *i, const struct instance *old, int sign);
void quota_books_add_job(struct quota *quotas, const struct claim *t, int sign);
/* Returns whether some book of `a` differs from that of `b`. */
bool quota_books_differ(const struct quota *a, struct quota *b);
/* Compares all books with a recomputation. */
int quota_audit(const struct berth_cluster *c, struct berth_err *err);
/* Fills in all quotas that the workload counts against, each once, with their parents; returns how many. */
enum { QUOTA_CHAIN_MAX = QUOTAS_MAX * QUOTA_DEPTH_MAX };
uint32_t quota_chains(const struct quota *quotas, const struct claim *t, uint32_t ret[static QUOTA_CHAIN_MAX]);
/* The same for one quota, or for NONE. */
static inline uint32_t quota_path(const struct quota *quotas, uint32_t quota, uint32_t ret[static QUOTA_CHAIN_MAX])
{
    uint32_t len = 0;
    for (uint32_t q = quota; q != NONE && len < QUOTA_DEPTH_MAX; q = quotas[q].parent)
        ret[len++] = q;
    return len;
}
static inline uint32_t quota_chain(const struct quota *quotas, const struct claim *t,
                                   uint32_t ret[static QUOTA_CHAIN_MAX])
{
    if (t->quotas_len > 1)
        return quota_chains(quotas, t, ret);
    return quota_path(quotas, t->quotas_len ? t->quotas[0] : NONE, ret);
}
/* Returns what one pod takes of a quota's resource; 0 for QUOTA_JOBS. */
int64_t quota_need(const struct class *k, uint32_t resource);
/* The same, beyond what another instance of the same pod already counts for; NULL: there is none. */
static inline int64_t quota_need_beyond(const struct class *k, const struct class *counted, uint32_t resource)
{
    int64_t need = quota_need(k, resource), has = counted ? quota_need(counted, resource) : 0;
    return need > has ? need - has : 0;
}

/* Recomputes whether a plan must examine the workload. */
void cluster_settle(struct berth_cluster *c, uint32_t workload);
/* Returns a workload slot for an id that only instances name so far. */
uint32_t workload_placeholder(struct berth_cluster *c, const char *id);
/* snapshot.c: adds the id to the order of ids, or removes it. */
void cluster_name(struct berth_cluster *c, uint32_t slot, sym id);
void cluster_unname(struct berth_cluster *c, uint32_t slot);
void workload_drop_if_empty(struct berth_cluster *c, uint32_t workload);

void node_body_unref(struct node_body *b);

/* Adds an instance to the counts of its workload (sign 1), or removes it (sign -1). */
void workload_count(struct workload *w, const struct instance *i, int sign);
/* Returns whether a plan can skip the workload. A workload with wrong ordinals is never settled. */
bool workload_settled(const struct workload *w);

/* Functions shared by apply.c and instances.c: add, change and remove instances that are known to be valid. */
struct instance_change {
    struct instance record; /* fields up to `replaces`; chains are ignored */
    const uint64_t *waits;
    size_t waits_len;
    const struct berth_usage *usage;
    size_t usage_len;
};
/* Returns the class of an instance that is put without a shape: its own if the slot is known, else its workload's. */
struct class_ix instance_class(const struct berth_cluster *c, uint32_t slot, uint32_t workload);
uint32_t instance_add(struct berth_cluster *c, const struct instance_change *change);
void instance_drop(struct berth_cluster *c, uint32_t slot);
void instance_set_state(struct berth_cluster *c, uint32_t slot, enum berth_state state, int64_t since_ns);

/* Validation of descriptions (describe.c): 0, or -EINVAL and a text that names the object. */
int describe_resource(const struct berth_cluster *c, const struct berth_resource *r, struct berth_err *err);
int describe_node(const struct berth_cluster *c, const struct berth_node *n, struct berth_err *err);
int describe_quota(const struct berth_cluster *c, const struct berth_quota *q, struct berth_err *err);
int describe_budget(const struct berth_budget *b, struct berth_err *err);
int describe_volume(const struct berth_cluster *c, const struct berth_volume *v, struct berth_err *err);
int describe_workload(const struct berth_cluster *c, const struct berth_workload *w, struct berth_err *err);
int describe_instance(const struct berth_cluster *c, const struct berth_instance *i, struct berth_err *err);
/* Returns the page size: "hugepages-2Mi" -> 2 MiB; 0 for other names, -1 for an invalid size. */
int64_t describe_page_size(const char *resource);
