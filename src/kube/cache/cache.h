/* cache.h - a Kubernetes cluster mirrored as a berth_cluster, updated object by object.
 *
 * Watches (kube/client/watch.h) feed objects into the cache. The scheduler freezes `cache_cluster`, plans, and
 * assumes its decisions here until the API server confirms them. The cache sends no requests and makes no decisions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "berth.h"
#include "kube/client/watch.h"

struct cache;
struct tenants;

/* Kinds of watched objects, one watch each. Priority classes are not watched: spec.priority of a pod holds the resolved
 * number. */
enum cache_kind {
    CACHE_NAMESPACE,
    CACHE_NODE,
    CACHE_STORAGE_CLASS,
    CACHE_CSI_NODE,
    CACHE_VOLUME,
    CACHE_CLAIM,
    CACHE_BUDGET,
    CACHE_POD,
    CACHE_CSI_DRIVER,
    CACHE_STORAGE_CAPACITY, /* CSIStorageCapacity: free storage by storage class */
    CACHE_LIMIT_RANGE,
    CACHE_RUNTIME_CLASS,
    CACHE_ATTACHMENT, /* VolumeAttachment */
    CACHE_KINDS,
    CACHE_POD_GROUP = CACHE_KINDS, /* pod groups; only if the API server serves them */
};
struct cache_source {
    const char *path;    /* "/api/v1/pods" */
    const char *name;    /* "pods", for messages */
    bool admission_only; /* only the admission of new pods depends on this kind; no plan does */
};
extern const struct cache_source cache_sources[CACHE_POD_GROUP + 1];

struct cache_task_view;
struct cache_change;
struct arena;
struct cache_config {
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
    void (*task)(void *ctx, const struct cache_task_view *task);
    /* Called for every input that changes the cache (cache_input.h), in order; NULL: no listener. */
    void (*input)(void *ctx, const struct cache_change *in);
};
struct cache *cache_new(const struct cache_config *config);
void cache_free(struct cache *p);
/* Returns the cluster with all objects applied. Pods that depend on changed objects are updated here, each once however
 * many changes came. The workload id of a pod is "namespace:name" (its uid if that is too long). Policies used with
 * this cluster must not migrate, shed or drain: Berth stops bound pods only by preemption. The cluster is occasionally
 * replaced by a new one; no snapshot of the old one may be alive at the call. */
struct berth_cluster *cache_cluster(struct cache *p);
/* Returns the cluster as of the last cache_cluster, for reading only. */
const struct berth_cluster *cache_last_cluster(const struct cache *p);
/* Calls `tell` for every running pod that is charged to a user, group or queue (the tenant_runs callback; `of` is the
 * cache). O(pods). */
struct tenant_run;
void cache_running_pods(void *of, void (*tell)(void *ctx, const struct tenant_run *run), void *ctx);
/* Returns the number of nodes in the domain. */
size_t cache_domain_nodes(const struct cache *p, const char *domain);

void cache_object_put(struct cache *p, enum cache_kind kind, const struct kube_object *o);
void cache_object_drop(struct cache *p, enum cache_kind kind, const struct kube_object *o);

/* Returns what the API server would add to pods of this namespace and runtime class ("": none): default container
 * requests from limit ranges, and the pod overhead. In the arena. */
struct kube_amounts;
void cache_defaults(const struct cache *p, const char *namespace, const char *runtime, struct arena *arena,
                    struct kube_amounts *ret_requests, struct kube_amounts *ret_overhead);

/* A pod of ours, with the fields that API writes need; valid until the next call that changes the cache. */
struct cache_pod_view {
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
bool cache_pod_find(const struct cache *p, const char *workload, struct cache_pod_view *ret);
bool cache_pod_by_instance(const struct cache *p, uint64_t instance, struct cache_pod_view *ret);

/* Assumes the pod on the node: its resources count there from now on. Returns the id of the new instance; 0 if the pod
 * is gone or has a node already. With `waits`, the instance is reserved until those instances are gone
 * (BERTH_RESERVED). */
uint64_t cache_assume_pod(struct cache *p, const char *workload, const char *node, uint64_t gpus, const uint64_t *waits,
                          size_t waits_len);
/* Promotes a reserved instance to assigned. */
bool cache_promote_pod(struct cache *p, uint64_t instance);
/* Undoes an assumption: the pod waits again and is not placed before `not_before_ns` (the wall clock of plans). Does
 * nothing if the API server has bound the pod. */
void cache_forget_pod(struct cache *p, uint64_t instance, int64_t not_before_ns);
/* Marks an instance as stopping (a preemption victim), or withdraws that mark. */
void cache_set_stopping(struct cache *p, uint64_t instance, bool stopping);
/* Returns an instance that is reserved until this instance is gone; 0: none. O(pods). */
uint64_t cache_reservation_waiting_for(const struct cache *p, uint64_t instance);
/* Records the scheduling message that was last written for the pod, and when. */
void cache_note_message(struct cache *p, const char *workload, const char *text, int64_t now_ns);

/* Appends the message for an unschedulable pod in kube-scheduler's words: "0/5 nodes are available: 3 Insufficient cpu,
 * ...". */
struct str;
void cache_unschedulable_message(const struct cache *p, const struct berth_pending *pending, struct str *to);

/* An unbound WaitForFirstConsumer claim of a pod, and what must be written for it once the pod has a node and before
 * the pod is bound. */
struct cache_claim_volume {
    const char *claim_namespace, *claim, *claim_uid;
    const char *volume; /* volume to bind to the claim; "": to be provisioned for the node */
    /* another assumed pod provisions or binds this volume; this pod waits for it and takes over if that pod goes */
    bool joined;
};
size_t cache_claim_volumes(struct cache *p, uint64_t instance, struct cache_claim_volume *ret, size_t cap);
/* Reports whether the claim's selected-node annotation is set. */
bool cache_claim_is_selected(struct cache *p, const struct cache_claim_volume *claim);
/* Reports whether all volumes chosen for the instance are bound to their claims. */
bool cache_volumes_are_bound(struct cache *p, uint64_t instance);
/* Reports whether the node of the instance can reach the bound volumes. */
bool cache_volumes_are_reachable(struct cache *p, uint64_t instance);
/* Calls `tell` for each unbound claim created for the pod itself (ephemeral volumes), with whether its selected-node
 * annotation is set. Returns how many such claims have no volume, including claims not created yet. Texts are valid
 * during the call. */
typedef void cache_claim_visitor(void *ctx, const struct cache_claim_volume *claim, bool selected);
size_t cache_ephemeral_claims(struct cache *p, const char *workload, cache_claim_visitor *tell, void *ctx);

/* ---- queries for explanations (cache_query.c); results live as long as the cache, so each call grows its memory - */

/* Which requirements of the pod to leave out. */
enum cache_relaxation {
    CACHE_RELAX_NOTHING,
    CACHE_RELAX_NODE_LABELS, /* no node selector, no required node affinity */
    CACHE_RELAX_TAINTS,      /* tolerates all taints */
    CACHE_RELAX_POD_AFFINITY,
    CACHE_RELAX_SPREAD,
    CACHE_RELAX_PORTS,
};
/* The demand of a pod as if it were submitted now, whatever node it has. */
struct cache_demand {
    struct berth_workload workload;
    const char *why; /* why the pod cannot be placed at all; NULL: it can */
    bool differs;    /* the pod had some of the requirements left out */
};
bool cache_demand(struct cache *p, const char *workload, enum cache_relaxation but, struct cache_demand *ret);

/* A known pod (ours, or any pod with a node), or a role of a job, whose name is "job:role". */
struct cache_workload {
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
bool cache_workload(struct cache *p, const char *workload, struct cache_workload *ret);
bool cache_workload_by_instance(struct cache *p, uint64_t instance, struct cache_workload *ret);
/* Calls `tell` for every pod on the node, in no particular order. O(pods). */
void cache_workloads_on_node(struct cache *p, const char *node,
                             void (*tell)(void *ctx, const struct cache_workload *holder), void *ctx);

struct cache_node_view {
    const char *name;
    bool unschedulable;
    uint32_t pods;
    const struct berth_amount *allocatable;
    size_t allocatable_len;
};
/* Calls `tell` for every existing node, in no particular order. */
void cache_nodes(struct cache *p, void (*tell)(void *ctx, const struct cache_node_view *node), void *ctx);

/* ---- jobs (cache_job.c): a role is one workload, even before it has pods; its pods are the instances ------------ */

/* Labels on the pods of jobs. */
#define KUBE_JOB_LABEL "berth.dev/job"
#define KUBE_ROLE_LABEL "berth.dev/role"
#define KUBE_INDEX_LABEL "berth.dev/index"
#define KUBE_ATTEMPT_LABEL "berth.dev/attempt"

struct cache_job_role {
    const char *id;          /* "namespace:job:role" */
    const char *namespace;   /* of the job */
    const char *owner;       /* uid of the job: pods of another job are not its instances */
    struct proto_reader pod; /* a pod of the role as the API server would create it, without envelope */
};
/* Adds a role, or replaces its pod. Returns false if the pod is malformed. */
bool cache_role_put(struct cache *p, const struct cache_job_role *role);
void cache_role_drop(struct cache *p, const char *id);
/* Notes that the `claim` callback would return something else for the role now. */
void cache_role_changed(struct cache *p, const char *id);
bool cache_role_exists(const struct cache *p, const char *id);

/* A placement of one task: a pod that exists or will be created on a node. */
struct cache_task_placement {
    const char *role, *name; /* `name` is that of the pod */
    uint32_t ordinal, attempt;
    const char *node;
    uint64_t gpus;
    const uint64_t *waits; /* reserved until those instances are gone */
    size_t waits_len;
    bool recorded; /* replayed from a record: its volumes come as a separate input */
};
/* Assumes a task on a node. Returns the id of the new instance; 0 if the role or the node is gone, a pod of that name
 * exists, or its claims find no volumes on the node. cache_promote_pod, cache_forget_pod and cache_set_stopping apply
 * to the instance from then on; a task that is given back is forgotten. */
uint64_t cache_assume_task(struct cache *p, const struct cache_task_placement *place);
/* Records that the task succeeded and is not placed again; cache_tasks_rerun makes all tasks of the role run
 * again. */
void cache_task_succeeded(struct cache *p, const char *role, uint32_t ordinal);
void cache_tasks_rerun(struct cache *p, const char *role);

enum cache_task_phase {
    CACHE_TASK_PENDING,
    CACHE_TASK_RUNNING,
    CACHE_TASK_SUCCEEDED,
    CACHE_TASK_FAILED,
    CACHE_TASK_GONE
};
/* A pod of a job as just seen; texts are valid during the call. */
struct cache_task_view {
    const char *namespace, *job, *role; /* from its labels; the role id is "namespace:job:role" */
    const char *owner;                  /* uid of the job that created the pod */
    const char *name, *uid, *node;
    uint32_t ordinal, attempt;
    enum cache_task_phase phase;
    bool leaves;     /* the pod is being deleted */
    const char *why; /* why a failed task failed; "" if unknown */
};
