/* cache.h - a Kubernetes cluster mirrored as a berth_cluster, updated object by object.
 *
 * Watches (kube/client/watch.h) feed objects into the cache. The scheduler freezes `project_cluster`, plans, and
 * assumes its decisions here until the API server confirms them. The cache sends no requests and makes no decisions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "berth.h"
#include "kube/client/watch.h"

struct project;
struct tenants;

/* Kinds of watched objects, one watch each. Priority classes are not watched: spec.priority of a pod holds the resolved
 * number. */
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
    PROJECT_CAPACITY, /* CSIStorageCapacity: free storage by storage class */
    PROJECT_LIMIT_RANGE,
    PROJECT_RUNTIME_CLASS,
    PROJECT_ATTACHMENT, /* VolumeAttachment */
    PROJECT_KINDS,
    PROJECT_GROUP = PROJECT_KINDS, /* pod groups; only if the API server serves them */
};
struct project_source {
    const char *path; /* "/api/v1/pods" */
    const char *name; /* "pods", for messages */
    bool judges;      /* only the admission of new pods depends on this kind; no plan does */
};
extern const struct project_source project_sources[PROJECT_GROUP + 1];

struct project_task;
struct project_input;
struct arena;
struct project_config {
    const char *const *schedulers; /* names; pods that name one of them are ours */
    size_t schedulers_len;
    const char *const *profiles; /* profile of each scheduler name, "" for the default; NULL: all use the default */
    struct tenants *tenants;     /* queues, groups and users (kube/tenant/tenant.h), or NULL; must outlive the cache */
    void (*changed)(void *ctx);  /* called when anything that a plan may depend on has changed */
    /* called with a message for a malformed object; its previous version stays in force */
    void (*trouble)(void *ctx, const char *text);
    void *ctx;
    /* For jobs; NULL: there are no jobs and their pods are treated as plain pods. Fills in the fields of the role's
     * workload beside its shape (quotas, queue, replicas). Returns why the role may not be placed now, in the arena, or
     * NULL. */
    const char *(*claim)(void *ctx, const char *role, struct arena *arena, struct berth_workload *w);
    /* called when a pod of a job was added, changed, finished or deleted */
    void (*task)(void *ctx, const struct project_task *task);
    /* Called for every input that changes the cache (cache_input.h), in order; NULL: no listener. */
    void (*input)(void *ctx, const struct project_input *in);
};
struct project *project_new(const struct project_config *config);
void project_free(struct project *p);
/* Returns the cluster with all objects applied. Pods that depend on changed objects are updated here, each once however
 * many changes came. The workload id of a pod is "namespace:name" (its uid if that is too long). Policies used with
 * this cluster must not migrate, shed or drain: Berth stops bound pods only by preemption. The cluster is occasionally
 * replaced by a new one; no snapshot of the old one may be alive at the call. */
struct berth_cluster *project_cluster(struct project *p);
/* Returns the cluster as of the last project_cluster, for reading only. */
const struct berth_cluster *project_seen(const struct project *p);
/* Calls `tell` for every running pod that is charged to a user, group or queue (the tenant_runs callback; `of` is the
 * cache). O(pods). */
struct tenant_run;
void project_runs(void *of, void (*tell)(void *ctx, const struct tenant_run *run), void *ctx);
/* Returns the number of nodes in the domain. */
size_t project_domain_nodes(const struct project *p, const char *domain);

void project_object_put(struct project *p, enum project_kind kind, const struct kube_object *o);
void project_object_drop(struct project *p, enum project_kind kind, const struct kube_object *o);

/* Returns what the API server would add to pods of this namespace and runtime class ("": none): default container
 * requests from limit ranges, and the pod overhead. In the arena. */
struct kube_amounts;
void project_defaults(const struct project *p, const char *namespace, const char *runtime, struct arena *arena,
                      struct kube_amounts *ret_requests, struct kube_amounts *ret_overhead);

/* A pod of ours, with the fields that API writes need; valid until the next call that changes the cache. */
struct project_pod {
    const char *namespace, *name, *uid, *scheduler;
    const char *node;      /* bound or assumed; "" if neither */
    const char *nominated; /* status.nominatedNodeName as last seen */
    uint64_t instance;     /* instance id in the cluster if bound, assumed or reserved; else 0 */
    bool ours;             /* spec.schedulerName is one of our names */
    bool bound;            /* confirmed by the API server */
    bool gated;
    const char *told;  /* message of the PodScheduled=False condition, last seen or last written by us; "" if none */
    int64_t told_ns;   /* when we wrote that message; 0: not written by us */
    uint32_t failures; /* consecutive failed bindings */
    const char *role;  /* for a task of a job: workload id of its role; "": a plain pod */
    const char *owner; /* for a task of a job: uid of the job */
    uint32_t ordinal, attempt;
    bool stopping;
};
/* Finds a pod by its workload id, or by its instance id. The id of a role finds the role's entry. */
bool project_pod_of(const struct project *p, const char *workload, struct project_pod *ret);
bool project_pod_by_instance(const struct project *p, uint64_t instance, struct project_pod *ret);

/* Assumes the pod on the node: its resources count there from now on. Returns the id of the new instance; 0 if the pod
 * is gone or has a node already. With `waits`, the instance is reserved until those instances are gone
 * (BERTH_RESERVED). */
uint64_t project_assume(struct project *p, const char *workload, const char *node, uint64_t gpus, const uint64_t *waits,
                        size_t waits_len);
/* Promotes a reserved instance to assigned. */
bool project_promote(struct project *p, uint64_t instance);
/* Undoes an assumption: the pod waits again and is not placed before `not_before_ns` (the wall clock of plans). Does
 * nothing if the API server has bound the pod. */
void project_give_back(struct project *p, uint64_t instance, int64_t not_before_ns);
/* Marks an instance as stopping (a preemption victim), or withdraws that mark. */
void project_stopping(struct project *p, uint64_t instance, bool stopping);
/* Returns an instance that is reserved until this instance is gone; 0: none. O(pods). */
uint64_t project_waiter(const struct project *p, uint64_t instance);
/* Records the scheduling message that was last written for the pod, and when. */
void project_told(struct project *p, const char *workload, const char *text, int64_t now_ns);

/* Appends the message for an unschedulable pod in kube-scheduler's words: "0/5 nodes are available: 3 Insufficient cpu,
 * ...". */
struct str;
void project_refusal(const struct project *p, const struct berth_pending *pending, struct str *to);

/* An unbound WaitForFirstConsumer claim of a pod, and what must be written for it once the pod has a node and before
 * the pod is bound. */
struct project_volume {
    const char *claim_namespace, *claim, *claim_uid;
    const char *volume; /* volume to bind to the claim; "": to be provisioned for the node */
    /* another assumed pod provisions or binds this volume; this pod waits for it and takes over if that pod goes */
    bool joined;
};
size_t project_volumes(struct project *p, uint64_t instance, struct project_volume *ret, size_t cap);
/* Reports whether the claim's selected-node annotation is set. */
bool project_claim_selected(struct project *p, const struct project_volume *claim);
/* Reports whether all volumes chosen for the instance are bound to their claims. */
bool project_volumes_bound(struct project *p, uint64_t instance);
/* Reports whether the node of the instance can reach the bound volumes. */
bool project_volumes_reached(struct project *p, uint64_t instance);
/* Calls `tell` for each unbound claim created for the pod itself (ephemeral volumes), with whether its selected-node
 * annotation is set. Returns how many such claims have no volume, including claims not created yet. Texts are valid
 * during the call. */
typedef void project_claim_teller(void *ctx, const struct project_volume *claim, bool selected);
size_t project_claims_made(struct project *p, const char *workload, project_claim_teller *tell, void *ctx);

/* ---- queries for explanations (cache_query.c); results live as long as the cache, so each call grows its memory - */

/* Which requirements of the pod to leave out. */
enum project_but {
    PROJECT_AS_IS,
    PROJECT_ANY_LABELS, /* no node selector, no required node affinity */
    PROJECT_ANY_TAINTS, /* tolerates all taints */
    PROJECT_ANY_NEIGHBOURS,
    PROJECT_ANY_SPREAD,
    PROJECT_ANY_PORTS,
};
/* The demand of a pod as if it were submitted now, whatever node it has. */
struct project_wish {
    struct berth_workload workload;
    const char *why; /* why the pod cannot be placed at all; NULL: it can */
    bool differs;    /* the pod had some of the requirements left out */
};
bool project_wish(struct project *p, const char *workload, enum project_but but, struct project_wish *ret);

/* A known pod (ours, or any pod with a node), or a role of a job, whose name is "job:role". */
struct project_holder {
    const char *workload, *namespace, *name;
    uint32_t tasks;   /* number of tasks of a role; 0: a pod */
    const char *node; /* "": none */
    uint64_t instance;
    int64_t created_ns;
    int32_t priority;
    bool never_preempts, ours, gated, stopping;
    const struct berth_amount *requests; /* sum over the containers; without `pods` */
    size_t requests_len;
};
bool project_holder(struct project *p, const char *workload, struct project_holder *ret);
bool project_holder_by_instance(struct project *p, uint64_t instance, struct project_holder *ret);
/* Calls `tell` for every pod on the node, in no particular order. O(pods). */
void project_holders(struct project *p, const char *node, void (*tell)(void *ctx, const struct project_holder *holder),
                     void *ctx);

struct project_node {
    const char *name;
    bool unschedulable;
    uint32_t pods;
    const struct berth_amount *allocatable;
    size_t allocatable_len;
};
/* Calls `tell` for every existing node, in no particular order. */
void project_nodes(struct project *p, void (*tell)(void *ctx, const struct project_node *node), void *ctx);

/* ---- jobs (cache_job.c): a role is one workload, even before it has pods; its pods are the instances -------------- */

/* Labels on the pods of jobs. */
#define PROJECT_JOB_LABEL "berth.dev/job"
#define PROJECT_ROLE_LABEL "berth.dev/role"
#define PROJECT_INDEX_LABEL "berth.dev/index"
#define PROJECT_ATTEMPT_LABEL "berth.dev/attempt"

struct project_role {
    const char *id;          /* "namespace:job:role" */
    const char *namespace;   /* of the job */
    const char *owner;       /* uid of the job: pods of another job are not its instances */
    struct proto_reader pod; /* a pod of the role as the API server would create it, without envelope */
};
/* Adds a role, or replaces its pod. Returns false if the pod is malformed. */
bool project_role_put(struct project *p, const struct project_role *role);
void project_role_drop(struct project *p, const char *id);
/* Notes that the `claim` callback would return something else for the role now. */
void project_role_changed(struct project *p, const char *id);
bool project_role_there(const struct project *p, const char *id);

/* A placement of one task: a pod that exists or will be created on a node. */
struct project_place {
    const char *role, *name; /* `name` is that of the pod */
    uint32_t ordinal, attempt;
    const char *node;
    uint64_t gpus;
    const uint64_t *waits; /* reserved until those instances are gone */
    size_t waits_len;
    bool recorded; /* replayed from a record: its volumes come as a separate input */
};
/* Assumes a task on a node. Returns the id of the new instance; 0 if the role or the node is gone, a pod of that name
 * exists, or its claims find no volumes on the node. project_promote, project_give_back and project_stopping apply to
 * the instance from then on; a task that is given back is forgotten. */
uint64_t project_task_assume(struct project *p, const struct project_place *place);
/* Records that the task succeeded and is not placed again; project_tasks_again makes all tasks of the role run
 * again. */
void project_task_end(struct project *p, const char *role, uint32_t ordinal);
void project_tasks_again(struct project *p, const char *role);

enum project_phase { PROJECT_PENDING, PROJECT_RUNNING, PROJECT_SUCCEEDED, PROJECT_FAILED, PROJECT_GONE };
/* A pod of a job as just seen; texts are valid during the call. */
struct project_task {
    const char *namespace, *job, *role; /* from its labels; the role id is "namespace:job:role" */
    const char *owner;                  /* uid of the job that created the pod */
    const char *name, *uid, *node;
    uint32_t ordinal, attempt;
    enum project_phase phase;
    bool leaves;     /* the pod is being deleted */
    const char *why; /* why a failed task failed; "" if unknown */
};
