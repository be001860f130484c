/* sync.h - parts of synchronising the cluster with the documents: quotas, scheduling attributes of workloads, domains
 * of nodes.
 *
 * These functions read only the state, so a rebuilt cluster equals one that was updated step by step. sync_dependents
 * (sync_dependents.c) updates the objects that depend on another object.
 */
#pragma once

#include "control/state/state_parts.h"

#define QUEUE_DEFAULT "default" /* queue of jobs that name none; its object is optional */

/* sync_quota.c: the quotas "user/ID", "group/ID" and "queue/ID". */
int sync_user_quota(const struct state *s, struct berth_cluster *cluster, const char *id, const struct user_doc *d,
                    struct arena *arena, struct berth_err *err);
int sync_group_quota(const struct state *s, struct berth_cluster *cluster, const char *id, const struct group_doc *d,
                     struct arena *arena, struct berth_err *err);
int sync_queue_quota(const struct state *s, struct berth_cluster *cluster, const char *id, const struct queue_doc *d,
                     struct arena *arena, struct berth_err *err);
int sync_quota_remove(struct berth_cluster *cluster, const char *kind, const char *id, struct berth_err *err);
/* Returns the quota as a description in the arena, for checks. */
struct berth_quota quota_describe(const struct state *s, const char *id, const struct quota_doc *d,
                                  struct arena *arena);

/* sync_scheduling.c: fills in the scheduling attributes of a workload: quotas, queue, times and traits, and the
 * priority and domains that derive from its queue. Does nothing for a finished workload. `o` may be a workload that
 * does not exist yet: only its kind, id and owner are read. */
void sync_scheduling(const struct state *s, const struct object *o, const struct work_doc *d, struct arena *arena,
                     struct berth_workload *w);
/* Fills in only the times: limit, estimate, whether the estimate is predicted, deadline. An estimate of the user takes
 * precedence over a prediction; neither exceeds the limit. */
void sync_times(const struct state *s, const struct work_doc *d, struct berth_workload *w);
/* Puts the quota "job/ID" of an array with a limit on concurrent tasks, or removes it. */
int sync_array_limit(struct berth_cluster *cluster, const struct object *o, const struct work_doc *d,
                     struct arena *arena, struct berth_err *err);

/* The settings of a queue, each inherited from the nearest ancestor that has it. Of maximum times the shortest applies.
 * Valid until the state changes. All empty for a missing queue. */
struct queue_terms {
    const char *const *users, *const *groups, *const *domains;
    size_t users_len, groups_len, domains_len;
    const char *policy; /* NULL: none */
    int64_t time_limit_ns, max_time_ns;
};
struct queue_terms queue_terms(const struct state *s, const char *queue);
/* The same for a queue that does not exist yet. */
struct queue_terms queue_terms_of(const struct state *s, const struct queue_doc *d);
/* Tells whether the queue is `above` or a descendant of it. */
bool queue_within(const struct state *s, const char *queue, const char *above);

/* sync_scheduling.c: returns the size of a job for comparisons of runs (past_runs.h): of the whole gang, or of one
 * task. */
int64_t work_size(const struct work_doc *d);
/* Returns the number of tasks that run together: the whole gang, or 1. */
uint32_t work_tasks(const struct work_doc *d);

/* sync_resources.c: removes resources from a description for which the cluster has no room. The shortened lists are in
 * the arena. A shape from which something was removed (result true) must not be placed. */
void sync_cut_node(const struct berth_cluster *cluster, struct berth_node *n, struct arena *arena);
bool sync_cut_shape(const struct berth_cluster *cluster, struct berth_shape *shape, struct arena *arena);
void sync_cut_usage(const struct berth_cluster *cluster, struct berth_instance *i, struct arena *arena);
void sync_cut_quota(const struct berth_cluster *cluster, struct berth_quota *q, struct arena *arena);

/* sync_domain.c: returns the domain of a node: a domain that lists the node, else the first by name whose labels match,
 * else the domain in the node's own document. Never NULL; valid until the state changes, or as long as the node's
 * description. */
const char *node_domain(const struct state *s, const char *id, const struct berth_node *node);
/* Tells whether a domain lists the node or matches its labels. */
bool domain_has(const struct domain_doc *d, const char *id, const struct berth_node *node);

/* sync_dependents.c: updates the cluster objects that depend on an object that was added, changed or removed (`o` is
 * NULL then). */
struct dependents_before { /* values before the change */
    bool there, disabled;
    int32_t level;
    char parent[ID_MAX + 1]; /* parent of a queue; group of a user */
    uint64_t terms;          /* of a queue: hash of the settings that its jobs in the cluster depend on */
    int64_t node_pods;       /* of the settings: default number of pods per node */
};
struct dependents_before dependents_before(const struct state_entry *e);
int sync_dependents(struct state *s, enum kind kind, const char *id, const struct dependents_before *was,
                    const struct object *o, struct berth_err *err);
