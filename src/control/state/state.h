/* state.h - everything the store holds, typed and in memory, and the cluster the core plans.
 *
 * Made from the store's keys at start, kept by its watch, changed by nothing else: what is here is durable. Each object
 * keeps its document as text, and a typed view of what the daemon looks at often. Assumed instances (control/loop.h) are
 * in the cluster before they are here.
 *
 * Pointers to objects are valid until control returns to the store: never keep one across a commit.
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

/* How long a node may keep in silence what fences, if the workload does not say. */
#define FENCE_NS_DEFAULT (INT64_C(600) * 1000000000)

struct state;
struct object;
struct quota_ledger;

/* ---- views: what is read from a document when it arrives; texts live as long as the object ---- */

struct user_view {
    const char *group; /* "" : none */
    const char *role;
    bool disabled;
    bool account; /* may run as the account of this name */
    int32_t level;
    uint32_t uid; /* on every node; 0: none yet */
};

struct token_view {
    const char *user; /* or of an agent: "" */
    const char *node; /* or of a user: "" */
    const char *role; /* narrower than the user's; "": the user's */
    unsigned char hash[32];
    int64_t expires_ns; /* BERTH_NEVER_NS: never */
};

struct prediction_view { /* as published: version 0 has none */
    int64_t p50_ns, p90_ns;
    int64_t memory; /* that nine of ten stay below; 0: not known */
    uint64_t version;
    const struct pasts *pasts; /* of an owner or everybody: what predicts run times (past_runs.h); NULL: nothing */
    int32_t slower;            /* of a class: by how many millionths beside others; 0: not at all, or not known */
};

struct usage_view { /* of a record of use: what sums need */
    const char *queue, *name;
    const char *outcome; /* a word of usage_outcome: of no document */
    int64_t start_ns, end_ns;
    int64_t cpu, gpu, memory; /* thousandths, thousandths, bytes */
    bool last;                /* the instance is over; else there will be more of it */
};

struct node_view {
    enum berth_node_state state;
    int64_t since_ns;
    uint64_t epoch;            /* of its agent; an older agent is refused */
    uint64_t joined;           /* in the certificates of its agent; 0: it has not joined */
    const char *domain;        /* that it is in, by the domains there are or its own word; "": none */
    struct object **instances; /* on it, sorted by id */
    size_t instances_len, instances_cap;
};

struct work_view { /* of an app, a job, a vm */
    const char *name, *owner, *group;
    const char *gang;    /* "": none */
    const char *queue;   /* of a job: "default" if it names none; else "" */
    uint64_t generation; /* of what the user asked for */
    uint32_t replicas;
    bool held; /* by its user: hold of a job, stop of an app or vm */
    bool cancelled;
    bool failed, ended;        /* over, by its restart policy */
    enum work_outcome outcome; /* of one that is cancelled, failed or ended, also where its document does not say it */
    bool system;               /* a system service */
    int64_t created_ns;
    /* Of a job (control/job/job.h). */
    bool waits;             /* for other jobs */
    bool array;             /* its tasks fail each for itself */
    uint32_t least;         /* tasks that must have ended well; as many as replicas, but of an elastic one */
    uint64_t of;            /* the first of its set; 0: none */
    int64_t limit_ns, size; /* its own time limit, 0: none; how large it is (past_runs.h) */
    int64_t started_ns, finished_ns;
    int64_t begin_ns, begin_by_ns; /* not before; its deadline, less the time it needs. 0: none */
    const char *cron;
    int32_t port_index;        /* of its block of ports; -1: none */
    struct object **instances; /* of it, sorted by id */
    size_t instances_len, instances_cap;
};

struct instance_view {
    uint64_t number;
    const char *workload, *node;
    uint32_t ordinal;
    enum berth_state state;
    bool ready;
    int64_t since_ns;
    int64_t placed_ns;             /* when it was placed; of one from before the daemon's start when it first ran */
    uint64_t generation;           /* of the workload it was placed from */
    uint64_t report_seq;           /* of the last report that changed it */
    int64_t started_ns;            /* when it first ran; 0: it has not */
    int64_t counted_ns;            /* up to when its use has been recorded; 0: not yet */
    bool failed;                   /* of a task of an array that is over: not well */
    enum work_outcome outcome;     /* of one that failed, timed out or was preempted */
    int32_t progress;              /* thousandths; -1: it does not say */
    const char *note, *unenforced; /* what it is at; resources, "cpu, memory"; "": none */
};

struct opstep_view { /* an OpTask on a node */
    const char *optask, *node;
    uint64_t attempt;
    enum opstep_state state;
    enum opstep_fault fault;
    bool undo, init, drained;
    uint32_t excused;
    int64_t since_ns;
};

/* Documents of these are kept as they are read (wire/doc/queue_doc.h). */
struct group_doc;
struct queue_doc;
struct policy_doc;
struct window_doc;
struct domain_doc;
struct optask_doc;

struct object {
    enum kind kind;
    const char *id;
    uint64_t created, revision; /* of the store */
    struct bytes doc;           /* JSON text as stored */
    const char *owner, *group;  /* "" where the kind has none */
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

/* Reads all keys. Refuses a document it cannot read, naming the key. */
int state_load(struct store *store, struct state **ret, struct berth_err *err);
/* The same as of a revision from documents that somebody else has: `range` visits, in order, those whose keys begin so. */
typedef int state_range(void *ctx, const char *prefix, store_visit *visit, void *visit_ctx, struct berth_err *err);
int state_load_from(state_range *range, void *ctx, uint64_t revision, struct state **ret, struct berth_err *err);
void state_free(struct state *s);

/* One committed change; called in order of revisions. What cannot be understood was written by somebody else: it is
 * refused with its key named, and the state is as before. */
int state_apply(struct state *s, const struct store_event *event, struct berth_err *err);
/* Of the last change applied. */
uint64_t state_revision(const struct state *s);
/* Over every key, revision and document that is in the journal, in whatever order they came. */
uint64_t state_hash(const struct state *s);
/* The part of one kind; that of the state is their sum. */
uint64_t state_hash_of(const struct state *s, enum kind kind);

/* NULL: not there. */
const struct object *state_find(const struct state *s, enum kind kind, const char *id);
/* The workload of that id, whatever its kind. */
const struct object *state_find_work(const struct state *s, const char *id);
/* The workload as it was at a generation that an instance was placed from; NULL: it is the present one, or was not kept. */
const struct object *state_spec(const struct state *s, const char *workload, uint64_t generation);
/* All of a kind, sorted by id (numbers by value). Valid until the next change. */
const struct object *const *state_list(const struct state *s, enum kind kind, size_t *ret_len);
/* Last number given out for jobs or instances, assumed ones included. */
uint64_t state_last_number(const struct state *s, enum kind kind);
/* Gives out the next one; it is never given again, whatever becomes of it, once a transaction puts KIND_COUNTER. */
uint64_t state_next_number(struct state *s, enum kind kind);

/* A new reference; never NULL: what is stored has been read before. */
json_t *object_doc(const struct object *o);
/* How long a workload waits after so many failures in a row: growing, bounded. They are remembered as the fact
 * "since/WORKLOAD" (value: failures, at: the last one), for as long as it takes until a pod of it is well again. */
int64_t pause_ns(uint64_t failures);
/* When it may be tried again, and after how many failures; 0: it has not failed lately. */
int64_t state_pause_end_ns(const struct state *s, const char *workload, uint64_t *ret_failures);
/* Is the owner of this workload enabled and the workload neither held nor waiting for others? */
bool state_work_wanted(const struct state *s, const struct object *work);

/* The cluster that the core plans; owned by the state. */
struct berth_cluster *state_cluster(struct state *s);
/* What each user has, for caps (control/tenant/cap.h). */
struct cap_book *state_caps(const struct state *s);
/* What counts against quotas by the documents alone; owned by the state. */
struct quota_ledger *state_ledger(struct state *s);
/* Rebuilds the cluster from the documents, dropping names that nothing uses; assumed instances are lost. */
int state_rebuild(struct state *s, struct berth_err *err);
/* Compares the cluster with one made anew from the documents; -EBADMSG with the first difference. O(all). */
int state_audit(struct state *s, struct berth_err *err);

/* What a plan wants and no commit has confirmed: in the cluster at once, in no document yet. The change that confirms it
 * (state_apply) settles it; a commit that fails gives it back. */
int state_assume(struct state *s, const struct berth_instance *instance, struct berth_err *err);
int state_assume_fact(struct state *s, const struct berth_fact *fact, struct berth_err *err);
int state_assume_gone(struct state *s, uint64_t id, struct berth_err *err);
/* Makes the cluster say of this object what its document says, or that there is none. */
void state_restore(struct state *s, enum kind kind, const char *id);
size_t state_assumed(const struct state *s);
/* How often all that was assumed of instances had to go because a document left no room for it. Whoever counted on it
 * begins anew. */
uint64_t state_dropped(const struct state *s);
/* Of an instance or a fact: does the cluster still say what was assumed? */
bool state_is_assumed(const struct state *s, enum kind kind, const char *id);
/* A commit has confirmed what was assumed of a fact, even if there was nothing to write. */
void state_fact_settle(struct state *s, const char *id);
