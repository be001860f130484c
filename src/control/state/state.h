/* state.h - all stored objects, typed and in memory, and the cluster that the core plans.
 *
 * Loaded from the store's keys at start, updated by the store's events, and changed by nothing else: everything here is
 * durable. Each object keeps its document as text, and a typed view of the values that the daemon reads often. Assumed
 * instances (control/sched/batch.h) are in the cluster before they are in the documents.
 *
 * Pointers to objects are valid until control returns to the store: never keep a pointer across a commit.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "berth.h"
#include "control/kind/kind.h"
#include "store/store.h"
#include "wire/doc/optask_words.h"
#include "wire/doc/work_outcome.h"

/* Default fence: how long the node keeps an instance running without contact to the daemon. */
#define FENCE_NS_DEFAULT (INT64_C(600) * 1000000000)

struct state;
struct object;
struct quota_ledger;

/* ---- views: values read from a document when it arrives; texts live as long as the object ----------------------- */

struct user_view {
    const char *group; /* "" : none */
    const char *role;
    bool disabled;
    bool account; /* may run as the Unix account of this name */
    int32_t level;
    uint32_t uid; /* the same on every node; 0: none yet */
};

struct token_view {
    const char *user; /* "" for a token of an agent */
    const char *node; /* "" for a token of a user */
    const char *role; /* reduces the user's role; "": the user's role */
    unsigned char hash[32];
    int64_t expires_ns; /* BERTH_NEVER_NS: never */
};

struct prediction_view { /* as published; version 0: none */
    int64_t p50_ns, p90_ns;
    int64_t memory; /* 90th percentile of memory use; 0: unknown */
    uint64_t version;
    const struct past_runs *past_runs; /* of an owner or of all users: predicts run times (past_runs.h); NULL: none */
    int32_t slower;                    /* of a class: millionths of slowdown next to other jobs; 0: none or unknown */
};

struct usage_view { /* a usage record: the values that totals need */
    const char *queue, *name;
    const char *outcome; /* static text of usage_outcome */
    int64_t start_ns, end_ns;
    int64_t cpu, gpu, memory; /* thousandths, thousandths, bytes */
    bool last;                /* the instance has ended; else further records will follow */
};

struct node_view {
    enum berth_node_state state;
    int64_t since_ns;
    uint64_t epoch;            /* of its agent; an older agent is rejected */
    uint64_t joined;           /* number of the join, in the agent's certificates; 0: not joined */
    const char *domain;        /* by the domain objects, else by the node's own document; "": none */
    struct object **instances; /* on this node, sorted by id */
    size_t instances_len, instances_cap;
};

struct work_view { /* an app, a job or a vm */
    const char *name, *owner, *group;
    const char *gang;    /* "": none */
    const char *queue;   /* of a job, "default" if unset; else "" */
    uint64_t generation; /* of the user's description */
    uint32_t replicas;
    bool held; /* by its user: a held job, a stopped app or vm */
    bool cancelled;
    bool failed, ended;        /* finished, by its restart policy */
    enum work_outcome outcome; /* set if cancelled, failed or ended, even if the document lacks it */
    bool system;               /* a system service */
    int64_t created_ns;
    /* Only of jobs (control/job/job.h). */
    bool waits;             /* for other jobs */
    bool array;             /* an array: each task fails by itself */
    uint32_t least;         /* tasks that must succeed; equals replicas unless elastic */
    uint64_t of;            /* first job of its set; 0: none */
    int64_t limit_ns, size; /* its own time limit, 0: none; its size (past_runs.h) */
    int64_t started_ns, finished_ns;
    int64_t begin_ns, begin_by_ns; /* earliest start; latest start (deadline less run time). 0: none */
    const char *cron;
    int32_t port_index;        /* index of its block of ports; -1: none */
    struct object **instances; /* of this workload, sorted by id */
    size_t instances_len, instances_cap;
};

struct instance_view {
    uint64_t number;
    const char *workload, *node;
    uint32_t ordinal;
    enum berth_state state;
    bool ready;
    int64_t since_ns;
    /* time of placement; if unknown (placed before the daemon started), its first start */
    int64_t placed_ns;
    uint64_t generation;           /* generation of the workload at placement */
    uint64_t report_seq;           /* last report that changed this instance */
    int64_t started_ns;            /* first start; 0: not started */
    int64_t counted_ns;            /* end of the recorded usage; 0: none recorded */
    bool failed;                   /* a finished task of an array that did not succeed */
    enum work_outcome outcome;     /* set if failed, timed out or preempted */
    int32_t progress;              /* thousandths; -1: not reported */
    const char *note, *unenforced; /* reported activity; resources without enforced limits, "cpu, memory"; "": none */
};

struct opstep_view { /* an OpTask on one node */
    const char *optask, *node;
    uint64_t attempt;
    enum opstep_state state;
    enum opstep_fault fault;
    bool undo, init, drained;
    uint32_t excused;
    int64_t since_ns;
};

/* Documents of these kinds are cached in parsed form (wire/doc/queue_doc.h). */
struct group_doc;
struct queue_doc;
struct policy_doc;
struct window_doc;
struct domain_doc;
struct optask_doc;

struct object {
    enum kind kind;
    const char *id;
    uint64_t created, revision; /* revisions of the store */
    struct bytes doc;           /* JSON text as stored */
    const char *owner, *group;  /* "" if the kind has none */
    union {
        struct user_view *user;
        struct token_view *token;
        struct node_view *node;
        struct prediction_view *prediction;
        struct usage_view *usage;
        struct work_view *work;
        struct instance_view *instance;
        const struct group_doc *group_doc;
        const struct queue_doc *queue;
        const struct policy_doc *policy;
        const struct window_doc *window;
        const struct domain_doc *domain;
        const struct optask_doc *optask;
        struct opstep_view *opstep;
    };
};

/* Loads all keys. Rejects an unreadable document with an error that names its key. */
int state_load(struct store *store, struct state **ret, struct berth_err *err);
/* Loads the state at a revision from documents of another source: `range` visits, in order, the keys with this
 * prefix. */
typedef int state_range(void *ctx, const char *prefix, store_visit *visit, void *visit_ctx, struct berth_err *err);
int state_load_from(state_range *range, void *ctx, uint64_t revision, struct state **ret, struct berth_err *err);
void state_free(struct state *s);

/* Applies one committed change; called in order of revisions. An invalid document, which another program must have
 * written, is rejected with an error that names its key, and the state is unchanged. */
int state_apply(struct state *s, const struct store_event *event, struct berth_err *err);
/* Returns the revision of the last applied change. */
uint64_t state_revision(const struct state *s);
/* Returns a hash of every journalled key, revision and document, independent of their order. */
uint64_t state_hash(const struct state *s);
/* Returns the part of one kind. The hash of the state is the sum of the parts. */
uint64_t state_hash_of(const struct state *s, enum kind kind);

/* Returns NULL if there is no such object. */
const struct object *state_find(const struct state *s, enum kind kind, const char *id);
/* Returns the workload of any kind with this id. */
const struct object *state_find_work(const struct state *s, const char *id);
/* Returns the workload at the generation that an instance was placed from; NULL: that is the present one, or it was not
 * kept. */
const struct object *state_spec(const struct state *s, const char *workload, uint64_t generation);
/* Returns all objects of a kind, sorted by id (numbers by value). Valid until the next change. */
const struct object *const *state_list(const struct state *s, enum kind kind, size_t *ret_len);
/* Returns the last number that was assigned to a job or an instance, assumed instances included. */
uint64_t state_last_number(const struct state *s, enum kind kind);
/* Assigns the next number. The number is never assigned again once a transaction has written KIND_COUNTER. */
uint64_t state_next_number(struct state *s, enum kind kind);

/* Parses the document. A new reference, never NULL: every stored document has been parsed before. */
json_t *object_doc(const struct object *o);
/* Returns the back-off of a workload after this many consecutive failures: growing and bounded. Failures are stored as
 * the fact "since/WORKLOAD" (value: number of failures, at: the last one) until a pod of the workload is healthy
 * again. */
int64_t pause_ns(uint64_t failures);
/* Returns the end of the back-off, and the number of failures; 0: no recent failure. */
int64_t state_backoff_end_ns(const struct state *s, const char *workload, uint64_t *ret_failures);
/* Tells whether the workload should run: its owner is enabled, and the workload is neither held nor waits for other
 * jobs. */
bool state_work_should_run(const struct state *s, const struct object *work);

/* Returns the cluster that the core plans; owned by the state. */
struct berth_cluster *state_cluster(struct state *s);
/* Returns the resource use of each user, for caps (control/tenant/cap.h). */
struct cap_book *state_caps(const struct state *s);
/* Returns the quota use according to the documents alone; owned by the state. */
struct quota_ledger *state_ledger(struct state *s);
/* Rebuilds the cluster from the documents and drops unused names; assumed instances are lost. */
int state_rebuild(struct state *s, struct berth_err *err);
/* Compares the cluster with a new one built from the documents; -EBADMSG with the first difference. O(all). */
int state_audit(struct state *s, struct berth_err *err);

/* Assumes a result of a plan that is not committed yet: puts it in the cluster at once, without a document. The change
 * that confirms it (state_apply) settles it; state_revert reverts it after a failed commit. */
int state_assume(struct state *s, const struct berth_instance *instance, struct berth_err *err);
int state_assume_fact(struct state *s, const struct berth_fact *fact, struct berth_err *err);
int state_assume_removed(struct state *s, uint64_t id, struct berth_err *err);
/* Makes the cluster match the object's document again, or its absence. */
void state_revert(struct state *s, enum kind kind, const char *id);
size_t state_assumed(const struct state *s);
/* Counts how often all assumed instances were dropped because they conflicted with a document. A caller that relied on
 * assumed instances must start again when this number changes. */
uint64_t state_assumption_losses(const struct state *s);
/* Tells whether the cluster still has the assumed version of an instance or a fact. */
bool state_is_assumed(const struct state *s, enum kind kind, const char *id);
/* Settles an assumed fact after its commit, which may have written nothing. */
void state_fact_settle(struct state *s, const char *id);
