/* sync.h - parts of telling the cluster what the documents say: quotas, claims of work, domains of nodes.
 *
 * All of them look at nothing but the state, so a cluster made anew says the same as one that was kept. What another object
 * depends on is told again by follow_order (state_follow.c).
 */
#pragma once

#include "control/state/state_parts.h"

#define QUEUE_DEFAULT "default" /* where jobs are that name no queue; it need not be made */

/* sync_quota.c: "user/ID", "group/ID" and "queue/ID". */
int project_user(const struct state *s, struct berth_cluster *cluster, const char *id, const struct user_doc *d,
                 struct arena *arena, struct berth_err *err);
int project_group(const struct state *s, struct berth_cluster *cluster, const char *id, const struct group_doc *d,
                  struct arena *arena, struct berth_err *err);
int project_queue(const struct state *s, struct berth_cluster *cluster, const char *id, const struct queue_doc *d,
                  struct arena *arena, struct berth_err *err);
int project_quota_remove(struct berth_cluster *cluster, const char *kind, const char *id, struct berth_err *err);
/* The same as a description, for checks: in the arena. */
struct berth_quota quota_describe(const struct state *s, const char *id, const struct quota_doc *d,
                                  struct arena *arena);

/* sync_claim.c: fills in what the workload says of its turn: quotas, queue, times, traits; its priority and its domains
 * follow from its queue, too. One that is over says nothing. `o` may be one that is not there yet: its kind, id and owner
 * are looked at. */
void project_claim(const struct state *s, const struct object *o, const struct work_doc *d, struct arena *arena,
                   struct berth_workload *w);
/* Of that the times alone: limit, estimate, whether that is a prediction, deadline. The user's word goes before a
 * prediction; neither is longer than the limit. */
void project_times(const struct state *s, const struct work_doc *d, struct berth_workload *w);
/* The quota "job/ID" of an array that runs a few at a time, or that there is none. */
int project_parallel(struct berth_cluster *cluster, const struct object *o, const struct work_doc *d,
                     struct arena *arena, struct berth_err *err);

/* What a queue says, or, where it says nothing, the nearest above it that does. Of longest times the shortest counts.
 * Valid as long as the state is unchanged. All empty for one that is not there. */
struct queue_terms {
    const char *const *users, *const *groups, *const *domains;
    size_t users_len, groups_len, domains_len;
    const char *policy; /* NULL: none */
    int64_t time_limit_ns, max_time_ns;
};
struct queue_terms queue_terms(const struct state *s, const char *queue);
/* The same of one that is not there yet. */
struct queue_terms queue_terms_of(const struct state *s, const struct queue_doc *d);
/* Is the queue this one, or below it? */
bool queue_within(const struct state *s, const char *queue, const char *above);

/* sync_claim.c: how large a job is, as runs are compared (past_runs.h): all of a gang, or one task. */
int64_t work_size(const struct work_doc *d);
/* Tasks that run together: all of a gang, or 1. */
uint32_t work_tasks(const struct work_doc *d);

/* sync_resources.c: leaves out of a description what names a resource for which the cluster has no room. The cut lists are in the
 * arena. Of a shape true: something was, so it must not be placed. */
void project_names_of_node(const struct berth_cluster *cluster, struct berth_node *n, struct arena *arena);
bool project_names_of_shape(const struct berth_cluster *cluster, struct berth_shape *shape, struct arena *arena);
void project_names_of_usage(const struct berth_cluster *cluster, struct berth_instance *i, struct arena *arena);
void project_names_of_quota(const struct berth_cluster *cluster, struct berth_quota *q, struct arena *arena);

/* sync_domain.c: the domain that a node is in: one that lists it, else the first by name whose labels hold, else its own
 * word. Never NULL; lives as long as the state is unchanged, or as the node's description. */
const char *project_domain(const struct state *s, const char *id, const struct berth_node *node);
/* Does a domain's document list the node, or do its labels hold? */
bool domain_has(const struct domain_doc *d, const char *id, const struct berth_node *node);

/* state_follow.c: tells the cluster again what depends on an object that has come, changed or gone (`o` is NULL then). */
struct order_was { /* before the change */
    bool there, disabled;
    int32_t level;
    char parent[ID_MAX + 1]; /* of a queue; of a user its group */
    uint64_t terms;          /* of a queue: a hash of what its jobs are told to the cluster with */
    int64_t node_pods;       /* of the settings: pods of nodes that do not say */
};
struct order_was order_was(const struct entry *e);
int follow_order(struct state *s, enum kind kind, const char *id, const struct order_was *was, const struct object *o,
                 struct berth_err *err);
