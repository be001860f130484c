/* cluster.h - the maintained state: what is told through berth.h, kept so that freezing it is cheap.
 *
 * Records sit in copy-on-write tables and refer to each other by index; an index ("slot") stays with its object for
 * life. Counters (what is held on each node, how many instances a workload has) are kept with every change and
 * compared with a recomputation by audit.c. Decisions are not made here, and nothing here depends on the order in which
 * parts arrive, except the numbers of slots and strings, which no decision looks at.
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

/* Known from the start, at these indices. */
enum { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_PODS, RESOURCES_BUILT_IN };

struct resource {
    sym name;
    enum berth_resource_kind kind;
    int64_t period_ns;
    int64_t page_size_bytes; /* of huge pages */
    bool optional;           /* a node that does not say how much it has takes any number: pods, attached volumes */
};

struct taint {
    sym key, value;
    enum berth_effect effect;
};

struct device {
    sym model, kind; /* as its node says it; by which it is matched: without regard to case */
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
    int64_t allocatable; /* what is really there */
};

struct amount {
    uint32_t resource;
    int64_t amount;
};

/* What an agent says of its node, and what changes often: no part of the body, so that a report leaves the layout alone. */
struct node_use {
    uint32_t consumed_len, used_len;
    struct node_amount {
        uint32_t resource;
        int64_t amount, since_ns; /* of what is consumed */
    } at[];                       /* consumed, then used */
};

/* Resources of which real use steers decisions. */
enum { USE_CPU, USE_MEMORY, USES };

/* Sums over the active instances of a node that say what they use: that, and what they asked for. */
struct use_book {
    int64_t used[USES], asked[USES];
};

/* What rarely changes of a node: one block of memory, shared by layouts. */
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
    struct node_body *body; /* NULL: a slot to be used again */
    struct device_book *devices;
    struct node_use *use; /* NULL: nothing was said */
    enum berth_node_state state;
    int64_t since_ns;
    uint32_t first; /* instance; NONE */
    uint32_t ports; /* its own, a chain of holds */
    uint32_t instances;
};

/* What is held of one resource on one node. */
struct book {
    int64_t active, stopping, reserved; /* `active` includes `stopping` */
};

/* An exclusive thing that is held on a node: a port or a volume. */
enum thing_kind { THING_PORT, THING_VOLUME };

struct thing {
    enum thing_kind kind;
    sym name; /* "tcp/80", "tcp/80@10.0.0.1", or the volume's id */
    sym zone, node;
    uint32_t driver; /* resource, or NONE */
    bool shared;
    uint32_t first; /* hold */
    /* Of a port at one address: the same at all; of one at all addresses: the first of those at one. NONE: none. */
    uint32_t whole, parts, next_part;
};

struct hold {
    uint32_t thing, node, instance; /* instance NONE: the node's own */
    uint32_t next, prev;            /* of the thing */
    uint32_t more;                  /* of the instance, or free list */
};

enum { QUOTAS_MAX = 4, QUOTA_DEPTH_MAX = 8 };

/* What a workload says of its turn; most services say nothing. What a plan reads of every one stands in the first cache line,
 * as in the two records that follow. */
struct claim {
    _Alignas(64) uint32_t quotas[QUOTAS_MAX];
    uint32_t quotas_len; /* indices; the first is its account */
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
    uint32_t claim; /* index, NONE: it says nothing */
    int64_t created_ns, begin_ns;
    uint32_t gang; /* index, NONE */
    struct class_ix class;
    uint32_t first;             /* instance */
    uint32_t ended;             /* tasks done */
    enum berth_on_lost on_lost; /* resolved: never DEFAULT */
    bool suspended;
    bool gone; /* removed, or never there: only its instances are left */
    bool live; /* the slot is in use */
    int64_t fence_ns;
    enum berth_on_drain on_drain; /* resolved */
    uint32_t min_available;
    uint32_t next_in_gang, prev_in_gang;
    uint32_t label_set;
    uint32_t uses;                    /* chain */
    uint32_t plain;                   /* instances that are assigned, starting or running and take over from nobody */
    uint32_t other;                   /* those reserved, stopping, taking over or outdated */
    uint64_t ordinals, ordinals_want; /* sums of hashes of the ordinals it has and should have */
    uint32_t next_labelled, prev_labelled; /* workloads with the same labels */
};

struct gang {
    sym id;
    uint32_t first; /* workload */
};

struct usage {
    uint32_t resource, more;
    int64_t used, used_since_ns, limit, limit_since_ns;
};

struct wait {
    uint64_t id;
    uint32_t more;
};

struct instance {
    _Alignas(64) uint64_t id; /* 0: a slot to be used again */
    struct workload_ix workload;
    uint32_t ordinal;
    struct node_ix node; /* NONE once it has ended: what is done holds no node */
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
    const uint32_t *pairs; /* of each label */
    uint32_t first;        /* workload */
};

/* One key and value that occurs in label sets or in the conditions of ties. */
struct pair {
    struct label label;
    uint32_t first;       /* posting */
    uint32_t first_apart; /* required `apart` tie whose first anchor this is */
};

struct posting {
    uint32_t set, next;
};

/* A workload whose pods keep others away. */
struct use {
    uint32_t tie, workload;
    uint32_t next, prev; /* of the tie */
    uint32_t more;       /* of the workload */
};

/* Amounts of quotas: of resources by their index, and of these. */
enum {
    QUOTA_GPU = BERTH_RESOURCES_MAX,
    QUOTA_JOBS,
    QUOTA_ASSIGNED, /* of accounts: instances that are assigned (placement_budget.h); no quota limits it */
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

/* Of one resource: what is held at once, what will be once all stops are done, and what is admitted. */
struct quota_book {
    uint32_t resource;
    int64_t active, later, asked;
};

/* What a quota says; one block of memory. */
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
    bool known;                /* it was put; else only named */
    struct quota_terms *terms; /* NULL: it says nothing */
    VEC(struct quota_book) books;
};

/* Of what the tie selects so many may be stopped. */
struct budget {
    sym id;
    struct tie_ix tie;
    int32_t allowed;
};

struct fact {
    enum berth_fact_kind kind;
    uint64_t subject;
    sym key;
    int64_t value, at_ns;
    bool live;
};

struct named {
    uint32_t slot;
    sym id;
};

/* GPUs of one model, over all nodes. */
struct gpu_count {
    sym kind, model; /* as the first node said it */
    uint64_t devices;
};

/* Slots that can be used again. */
typedef VEC(uint32_t) slot_list;

struct berth_cluster {
    struct intern names;
    struct cluster_shapes shapes;
    VEC(struct resource) resources;
    VEC(VEC(struct book)) books;    /* [resource].at[node] */
    VEC(struct use_book) use_books; /* [node]; may be shorter */
    uint32_t consuming;             /* nodes that say what was consumed */
    uint32_t said;                  /* nodes and instances that say what they use */

    struct pages nodes, workloads, instances, things, holds, usages, waits, label_sets, facts;
    struct pages gangs, claims;
    VEC(struct quota) quotas; /* never freed but with the cluster */
    struct map quotas_by_id, words_by_labels;
    VEC(struct labels) words; /* distinct ones */
    VEC(struct budget) budgets;
    uint32_t guaranteed;     /* quotas that guarantee less than everything */
    uint32_t limited;        /* quotas that limit something */
    uint64_t quota_moves;    /* how often the tree of quotas has changed */
    VEC(uint64_t) accounted; /* workloads that count against a quota, a bit each */
    VEC(uint64_t) timed;     /* workloads whose pods may run for a limited time, a bit each */
    int64_t expires_ns;      /* when the first pod runs out of its time; INT64_MIN: to be found anew */
    struct pages pairs, postings, uses, tie_uses; /* tie_uses[tie]: its first use */
    uint32_t apart_loose;                         /* first required `apart` tie without an anchor */
    slot_list nodes_free, workloads_free, instances_free, holds_free, usages_free, waits_free, facts_free, uses_free;
    slot_list claims_free;
    struct map nodes_by_id, workloads_by_id, instances_by_id, things_by_name, label_sets_by_labels, facts_by_subject;
    struct map followers; /* instances by the id of the one they replace; several may replace one */
    struct map pairs_by_label, gangs_by_id;
    uint32_t nodes_len; /* in use */
    VEC(struct gpu_count) gpu_counts;

    VEC(uint64_t) unsettled;                /* workloads that a plan must look at, a bit each */
    VEC(uint64_t) watched;                  /* instances whose limits may be adjusted */
    VEC(uint64_t) leaving;                  /* instances that are stopping */
    uint32_t stopping, reserved, replacing; /* instances in such a state: books of two kinds are needed */

    uint64_t revision;           /* counts changes */
    struct layout *layout;       /* of the nodes as they are; NULL: to be made anew */
    VEC(struct named) by_id;     /* workloads sorted by id; of one that is gone the slot is NONE */
    VEC(struct named) by_id_new; /* not yet merged in */
    size_t by_id_gone;           /* of by_id */
    VEC(uint32_t) ranks;         /* [workload]: its place in by_id */
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
    return ((const struct pooled *)pages_at(&c->shapes.classes.items, k.v))->object;
}
static inline const struct resource *cluster_resource(const struct berth_cluster *c, uint32_t r)
{
    return &c->resources.at[r];
}
/* Is it a task of the job that need not run again? */
static inline bool workload_done(const struct workload *w, const struct instance *i)
{
    return i->state == BERTH_ENDED && w->kind == BERTH_JOB && !w->gone && i->ordinal < w->replicas;
}
/* When a running instance has run for as long as it may. */
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

/* The ports that clash with this one, itself first: the same at all addresses, or at each. */
static inline uint32_t port_rival_after(const struct pages *things, uint32_t port, uint32_t at)
{
    const struct thing *t = pages_at(things, port);
    if (at == port)
        return t->whole != NONE ? t->whole : t->parts;
    return t->whole != NONE ? NONE : ((const struct thing *)pages_at(things, at))->next_part;
}
#define PORT_RIVALS_EACH(at, things, port)                                                                             \
    for (uint32_t at = (port); at != NONE; at = port_rival_after(things, port, at))

/* The index of a resource, made known if need be; of a port, by the number `n` above its first; of a volume (NONE if
 * unknown). */
uint32_t cluster_resource_put(struct berth_cluster *c, const char *name);
bool cluster_resource_known(const struct berth_cluster *c, const char *name);
uint32_t cluster_port_put(struct berth_cluster *c, const struct berth_port *port, uint32_t n);
uint32_t cluster_volume_find(const struct berth_cluster *c, const char *id);
/* By what a GPU model is matched: its name in capitals. */
sym cluster_gpu_kind_put(struct berth_cluster *c, const char *model);
/* The slot of an id, or NONE. */
uint32_t cluster_node_find(const struct berth_cluster *c, const char *id);
uint32_t cluster_workload_find(const struct berth_cluster *c, const char *id);
uint32_t cluster_instance_find(const struct berth_cluster *c, uint64_t id);
uint32_t cluster_label_set_put(struct berth_cluster *c, const struct berth_label *labels, size_t len);

uint32_t cluster_pair_put(struct berth_cluster *c, struct label label);
/* Enters a new required `apart` tie where its anchor will find it. */
void cluster_apart_add(struct berth_cluster *c, struct tie_ix tie);

/* An equal of the cluster that may be changed on another thread while the cluster itself changes. Strings and shapes
 * stay those of the cluster, which must be freed later. O(pages and lists, not records; nodes); freed by
 * berth_cluster_free. */
struct berth_cluster *cluster_copy(const struct berth_cluster *c);

/* A slot that was freed, or a new one at the end. */
uint32_t slot_take(struct pages *table, slot_list *unused);

struct book *cluster_book(struct berth_cluster *c, uint32_t resource, uint32_t node);
/* Adds a hold of the thing on the node to the instance's chain (or to the node itself: instance NONE); returns it. */
uint32_t cluster_hold(struct berth_cluster *c, uint32_t thing, uint32_t node, uint32_t instance, uint32_t more);
void cluster_unhold(struct berth_cluster *c, uint32_t hold);
/* Does any instance other than `but` hold the volume on the node? */
bool cluster_holds(const struct berth_cluster *c, uint32_t thing, uint32_t node, uint32_t but);

static inline const struct claim *cluster_claim(const struct berth_cluster *c, uint32_t workload)
{
    const struct workload *w = cluster_workload(c, workload);
    return w->claim == NONE ? NULL : pages_at(&c->claims, w->claim);
}

/* claim.c: what the workload says of its turn, copied; forgotten. The description is valid. */
void claim_put(struct berth_cluster *c, uint32_t workload, const struct berth_workload *from);
void claim_drop(struct berth_cluster *c, uint32_t workload);
/* When a running pod runs out of its time is kept in mind, until it changes or goes; the first such moment. */
void claim_note_expiry(struct berth_cluster *c, const struct instance *i);
void claim_forget_expiry(struct berth_cluster *c, const struct instance *i);
int64_t claim_expiry(struct berth_cluster *c, int64_t now_ns);

/* quota.c: adds what an instance holds to the books of all its quotas, or takes it off; the same of what a workload asks
 * for while it is there.
 *
 * A pod that moves has two instances and counts once, as the larger one: of the new one counts what it needs beyond the old
 * one, for as long as that is there. At once, while the old one is active; once all stops are done, unless it stops. */
void quota_count(struct berth_cluster *c, const struct instance *i, int sign);
void quota_ask(struct berth_cluster *c, uint32_t workload, int sign);
/* All that its instances hold at once. */
void quota_hold(struct berth_cluster *c, uint32_t workload, int sign);
uint32_t cluster_quota_find(const struct berth_cluster *c, const char *id);
/* The slot of an id, made known if need be. */
uint32_t cluster_quota_named(struct berth_cluster *c, const char *id);
void quotas_done(struct berth_cluster *c);
/* A block of its own with the same terms; NULL of NULL. */
struct quota_terms *quota_terms_copy(const struct quota_terms *from);
/* Adds what an instance counts for beside the old one (NULL: there is none) to the books of `quotas`, in all quotas
 * of the claim; the same of a workload's first instance, as a job. For books beside those of the cluster, too
 * (quota_ledger.c). */
void quota_books_add(const struct berth_cluster *c, struct quota *quotas, const struct claim *t,
                     const struct instance *i, const struct instance *old, int sign);
void quota_books_add_job(struct quota *quotas, const struct claim *t, int sign);
/* Does some book of `a` differ from that of `b`? */
bool quota_books_differ(const struct quota *a, struct quota *b);
/* Compares all books with a recomputation. */
int quota_audit(const struct berth_cluster *c, struct berth_err *err);
/* All quotas that the workload counts against, each once, with their parents; returns how many. */
enum { QUOTA_CHAIN_MAX = QUOTAS_MAX * QUOTA_DEPTH_MAX };
uint32_t quota_chains(const struct quota *quotas, const struct claim *t, uint32_t ret[static QUOTA_CHAIN_MAX]);
/* The same of one quota, or of none. */
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
/* What one pod takes of a quota's resource; of QUOTA_JOBS nothing. */
int64_t quota_need(const struct class *k, uint32_t resource);
/* The same beyond what another one of its pod is counted for already; NULL: there is none. */
static inline int64_t quota_need_beyond(const struct class *k, const struct class *counted, uint32_t resource)
{
    int64_t need = quota_need(k, resource), has = counted ? quota_need(counted, resource) : 0;
    return need > has ? need - has : 0;
}

/* Recomputes whether a plan must look at the workload. */
void cluster_settle(struct berth_cluster *c, uint32_t workload);
/* A workload slot for an id of which only instances are known. */
uint32_t workload_ghost(struct berth_cluster *c, const char *id);
/* snapshot.c: the id has its place in the order of ids, or no longer. */
void cluster_name(struct berth_cluster *c, uint32_t slot, sym id);
void cluster_unname(struct berth_cluster *c, uint32_t slot);
void workload_drop_if_empty(struct berth_cluster *c, uint32_t workload);

void node_body_unref(struct node_body *b);

/* Adds an instance to the counts of its workload, or takes it off (sign -1). */
void workload_count(struct workload *w, const struct instance *i, int sign);
/* Need a plan not look at it? One whose pods are not numbered in order is looked at each time. */
bool workload_settled(const struct workload *w);

/* What apply.c and instances.c share: makes, changes and removes instances that are known to be valid. */
struct instance_change {
    struct instance record; /* fields up to `replaces`; chains are ignored */
    const uint64_t *waits;
    size_t waits_len;
    const struct berth_usage *usage;
    size_t usage_len;
};
/* The class an instance has that is put without a shape: its own if it is known, else its workload's. */
struct class_ix instance_class(const struct berth_cluster *c, uint32_t slot, uint32_t workload);
uint32_t instance_add(struct berth_cluster *c, const struct instance_change *change);
void instance_drop(struct berth_cluster *c, uint32_t slot);
void instance_set_state(struct berth_cluster *c, uint32_t slot, enum berth_state state, int64_t since_ns);

/* Checks of descriptions (describe.c): 0, or -EINVAL and a text that names the object. */
int describe_resource(const struct berth_cluster *c, const struct berth_resource *r, struct berth_err *err);
int describe_node(const struct berth_cluster *c, const struct berth_node *n, struct berth_err *err);
int describe_quota(const struct berth_cluster *c, const struct berth_quota *q, struct berth_err *err);
int describe_budget(const struct berth_budget *b, struct berth_err *err);
int describe_volume(const struct berth_cluster *c, const struct berth_volume *v, struct berth_err *err);
int describe_workload(const struct berth_cluster *c, const struct berth_workload *w, struct berth_err *err);
int describe_instance(const struct berth_cluster *c, const struct berth_instance *i, struct berth_err *err);
/* "hugepages-2Mi" -> 2 MiB; 0 for other names, -1 for a size that is none. */
int64_t describe_page_size(const char *resource);
