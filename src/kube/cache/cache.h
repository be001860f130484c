/* cache.h - a Kubernetes cluster as a berth_cluster, kept up to date object by object.
 *
 * Fed by watches (kube/client/watch.h) with objects as they come; whoever decides freezes `project_cluster`, and assumes here what it decided until
 * the API server shows it. No request is made here and nothing is decided.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "berth.h"
#include "kube/client/watch.h"

struct project;
struct tenants;

/* One watch each. Priority classes are not among them: a pod has its number. */
enum project_kind {
    PROJECT_NAMESPACE,
    PROJECT_NODE,
    PROJECT_STORAGE_CLASS,
    PROJECT_CSI_NODE,
    PROJECT_VOLUME,
    PROJECT_CLAIM,
    PROJECT_BUDGET,
    PROJECT_POD,
    PROJECT_CSI_DRIVER,
    PROJECT_CAPACITY, /* what is left of storage, by class */
    PROJECT_LIMIT_RANGE,
    PROJECT_RUNTIME_CLASS,
    PROJECT_ATTACHMENT, /* of volumes to nodes */
    PROJECT_KINDS,
    PROJECT_GROUP = PROJECT_KINDS, /* pod groups: only where the API server has them */
};
struct project_source {
    const char *path; /* "/api/v1/pods" */
    const char *name; /* "pods", for people */
    bool judges;      /* no plan depends on it: it is for who judges what is not there yet */
};
extern const struct project_source project_sources[PROJECT_GROUP + 1];

struct project_task;
struct project_input;
struct arena;
struct project_config {
    const char *const *schedulers; /* names; pods that name one of them are ours */
    size_t schedulers_len;
    const char *const *profiles; /* of each name: a profile of its own, by name, or ""; NULL: none has one */
    struct tenants *tenants;    /* queues, groups and users (kube/tenant/tenant.h); NULL: there are none. Outlives it */
    void (*changed)(void *ctx); /* something that a plan may depend on is different now */
    void (*trouble)(void *ctx,
                    const char *text); /* an object that cannot be understood is left as it was, and this says why */
    void *ctx;
    /* Of jobs; NULL: there are none, and pods of theirs count as pods. Fills in what the role's workload asks for beside its shape; returns why it may
     * not be placed as things are, in the arena, or NULL. */
    const char *(*claim)(void *ctx, const char *role, struct arena *arena, struct berth_workload *w);
    void (*task)(void *ctx, const struct project_task *task); /* a pod of a job came, changed, ended or went */
    /* Told of all that changes the projection (cache_input.h), in the order in which it does; NULL: nobody listens. */
    void (*input)(void *ctx, const struct project_input *in);
};
struct project *project_new(const struct project_config *config);
void project_free(struct project *p);
/* The cluster as it follows from all that was put so far. Objects that depend on others are brought up to date here, each once, however much has
 * come since; the workload of a pod is "namespace:name" (its uid, where that is too long). Policies must not move, shed or drain: what
 * is bound is not ours to stop but for preemption. Now and then it is a new cluster: of the last one no snapshot may be left. */
struct berth_cluster *project_cluster(struct project *p);
/* The same as it was last brought up to date, to look at. */
const struct berth_cluster *project_seen(const struct project *p);
/* All that runs and counts for somebody (a tenant_runs of the projection). O(pods). */
struct tenant_run;
void project_runs(void *of, void (*tell)(void *ctx, const struct tenant_run *run), void *ctx);
/* How many nodes are in the domain. */
size_t project_domain_nodes(const struct project *p, const char *domain);

void project_object_put(struct project *p, enum project_kind kind, const struct kube_object *o);
void project_object_drop(struct project *p, enum project_kind kind, const struct kube_object *o);

/* What the API server would add to pods of the namespace and runtime class ("": none): what containers request that say nothing of it, and the overhead.
 * In the arena. */
struct kube_amounts;
void project_defaults(const struct project *p, const char *namespace, const char *runtime, struct arena *arena,
                      struct kube_amounts *ret_requests, struct kube_amounts *ret_overhead);

/* A pod of ours, as whoever writes about it needs it; valid until the next call that changes anything. */
struct project_pod {
    const char *namespace, *name, *uid, *scheduler;
    const char *node;      /* bound or assumed; "" if neither */
    const char *nominated; /* status.nominatedNodeName as last seen */
    uint64_t instance;     /* of the cluster, if it is bound, assumed or reserved; else 0 */
    bool ours;             /* it names one of our schedulers */
    bool bound;            /* the API server says so */
    bool gated;
    const char *told;  /* the message of its condition PodScheduled=False as last seen or written by us; "" if none */
    int64_t told_ns;   /* when that was written by us; 0: not by us */
    uint32_t failures; /* bindings in a row that came to nothing */
    const char *role;  /* of a task of a job: the workload of its role; "": a pod of its own */
    const char *owner; /* of the same: uid of the job */
    uint32_t ordinal, attempt;
    bool stopping;
};
/* By the id of its workload; by the id of its instance. A role of a job is found by its id, too. */
bool project_pod_of(const struct project *p, const char *workload, struct project_pod *ret);
bool project_pod_by_instance(const struct project *p, uint64_t instance, struct project_pod *ret);

/* The pod is going to this node: it counts there from now on. Returns the id of its new instance; 0 if the pod is gone, bound or assumed already.
 * With waits: reserved, until those instances are gone (BERTH_RESERVED). */
uint64_t project_assume(struct project *p, const char *workload, const char *node, uint64_t gpus, const uint64_t *waits,
                        size_t waits_len);
/* A reserved one becomes assigned. */
bool project_promote(struct project *p, uint64_t instance);
/* The decision came to nothing: it waits again, and is not placed before this moment (the wall clock that plans are made at). What the API server
 * has bound stays. */
void project_give_back(struct project *p, uint64_t instance, int64_t not_before_ns);
/* An instance was told to go (a victim): it counts as stopping; or it was not after all. */
void project_stopping(struct project *p, uint64_t instance, bool stopping);
/* One that is reserved until this instance is gone; 0: none. O(pods). */
uint64_t project_waiter(const struct project *p, uint64_t instance);
/* What was last told to the pod's owner. */
void project_told(struct project *p, const char *workload, const char *text, int64_t now_ns);

/* The sentence for a pod that finds no place, in kube-scheduler's words: "0/5 nodes are available: 3 Insufficient cpu, ...". */
struct str;
void project_refusal(const struct project *p, const struct berth_pending *pending, struct str *to);

/* Claims without a volume that the pod waits with (WaitForFirstConsumer), and what is to be written for the node it got, before it is bound. */
struct project_volume {
    const char *claim_namespace, *claim, *claim_uid;
    const char *volume; /* to be bound to the claim; "": to be made, on the node */
    bool joined;        /* another on its way has it made or bound: this one waits for that, unless that one goes */
};
size_t project_volumes(struct project *p, uint64_t instance, struct project_volume *ret, size_t cap);
/* Does the claim's provisioner know of a node by now? */
bool project_claim_selected(struct project *p, const struct project_volume *claim);
/* Are all of these bound by now? */
bool project_volumes_bound(struct project *p, uint64_t instance);
/* Can its node reach them, now that they are? */
bool project_volumes_reached(struct project *p, uint64_t instance);
/* Claims that are made for a pod itself, as soon as it is there (ephemeral volumes): tells of each that has no volume, and whether its provisioner
 * knows of a node. Returns how many have none, those that are not there yet included. Texts are for the call. */
typedef void project_claim_teller(void *ctx, const struct project_volume *claim, bool selected);
size_t project_claims_made(struct project *p, const char *workload, project_claim_teller *tell, void *ctx);

/* ---- for telling people (cache_query.c). What is given lives in the projection, as long as that does; it grows with every call --------- */

/* Without some of what a pod asks for. */
enum project_but {
    PROJECT_AS_IS,
    PROJECT_ANY_LABELS, /* no node selector, no required node affinity */
    PROJECT_ANY_TAINTS, /* tolerates all */
    PROJECT_ANY_NEIGHBOURS,
    PROJECT_ANY_SPREAD,
    PROJECT_ANY_PORTS,
};
/* A pod as it would be placed if it came now, whatever place it has. */
struct project_wish {
    struct berth_workload workload;
    const char *why; /* it cannot be placed at all, in words; NULL: it can */
    bool differs;    /* it asked for something of what was left out */
};
bool project_wish(struct project *p, const char *workload, enum project_but but, struct project_wish *ret);

/* A pod that is known, of ours or one with a place; or a role of a job, whose name is "job:role". */
struct project_holder {
    const char *workload, *namespace, *name;
    uint32_t tasks;   /* of a role; 0: it is a pod */
    const char *node; /* "": none */
    uint64_t instance;
    int64_t created_ns;
    int32_t priority;
    bool never_preempts, ours, gated, stopping;
    const struct berth_amount *requests; /* in all; not with `pods` */
    size_t requests_len;
};
bool project_holder(struct project *p, const char *workload, struct project_holder *ret);
bool project_holder_by_instance(struct project *p, uint64_t instance, struct project_holder *ret);
/* All of a node, in no particular order. O(pods). */
void project_holders(struct project *p, const char *node, void (*tell)(void *ctx, const struct project_holder *holder),
                     void *ctx);

struct project_node {
    const char *name;
    bool unschedulable;
    uint32_t pods;
    const struct berth_amount *allocatable;
    size_t allocatable_len;
};
/* All that are there, in no particular order. */
void project_nodes(struct project *p, void (*tell)(void *ctx, const struct project_node *node), void *ctx);

/* ---- jobs (cache_job.c): a role is one workload of several tasks, before it has pods; its pods are the instances ----- */

/* Labels of the pods of jobs. */
#define PROJECT_JOB_LABEL "berth.dev/job"
#define PROJECT_ROLE_LABEL "berth.dev/role"
#define PROJECT_INDEX_LABEL "berth.dev/index"
#define PROJECT_ATTEMPT_LABEL "berth.dev/attempt"

struct project_role {
    const char *id;          /* "namespace:job:role" */
    const char *namespace;   /* of the job */
    const char *owner;       /* uid of the job: pods of another are not its instances */
    struct proto_reader pod; /* a pod of it as the API server would make it, without envelope */
};
/* New, or with another pod. False where the pod is malformed. */
bool project_role_put(struct project *p, const struct project_role *role);
void project_role_drop(struct project *p, const char *id);
/* What `claim` says of it is different now. */
void project_role_changed(struct project *p, const char *id);
bool project_role_there(const struct project *p, const char *id);

/* Is, or is to be, the pod of a task. */
struct project_place {
    const char *role, *name; /* of the pod */
    uint32_t ordinal, attempt;
    const char *node;
    uint64_t gpus;
    const uint64_t *waits; /* reserved, until those are gone */
    size_t waits_len;
    bool recorded; /* it was decided before, and which volumes it takes is told beside it */
};
/* The id of its new instance; 0 if the role or the node is gone, a pod of that name is there, or its claims find no volumes on the node. From then on project_promote, project_give_back and
 * project_stopping are for it, too: one that is given back is forgotten. */
uint64_t project_task_assume(struct project *p, const struct project_place *place);
/* The task has ended well, and is not placed again; or all of the role are to be done again. */
void project_task_end(struct project *p, const char *role, uint32_t ordinal);
void project_tasks_again(struct project *p, const char *role);

enum project_phase { PROJECT_PENDING, PROJECT_RUNNING, PROJECT_SUCCEEDED, PROJECT_FAILED, PROJECT_GONE };
/* A pod of a job as it was just seen; texts are for the call. */
struct project_task {
    const char *namespace, *job, *role; /* by its labels; the role's id is "namespace:job:role" */
    const char *owner;                  /* uid of the job that made it */
    const char *name, *uid, *node;
    uint32_t ordinal, attempt;
    enum project_phase phase;
    bool leaves;     /* it is being deleted */
    const char *why; /* of a failed one, in words; "" if nobody says */
};
