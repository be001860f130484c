/* tenant.h - queues, groups, users, domains and policies of a Kubernetes cluster, and their effect on workloads.
 *
 * Custom resources of berth.dev become documents of the daemon's own kinds in a private state (control/state/state.h),
 * so that queue trees, two-tier quotas, formulas and domains mean the same as in the daemon. A rejected object is kept
 * with the reason and checked again when something else has changed, because objects come in any order. The last
 * accepted version of the same name stays in force meanwhile.
 *
 * kube/tenant/tenant_feed.h feeds the objects. The cache (kube/cache/cache.h) puts the quotas into its cluster and asks
 * for the claims of workloads and the domains of nodes; the scheduler asks for the policy.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "berth.h"
#include "control/kind/kind.h"
#include "control/sched/plan_policy.h"

/* Labels by which our pods name their queue and their user. */
#define TENANT_QUEUE_LABEL "berth.dev/queue"
#define TENANT_USER_LABEL "berth.dev/user"

struct tenants;

/* `changed` is called when anything that a plan depends on may have changed. */
struct tenants *tenants_new(void (*changed)(void *ctx), void *ctx);
void tenants_free(struct tenants *t); /* accepts NULL */

/* Puts a KIND_QUEUE, KIND_GROUP, KIND_USER, KIND_DOMAIN or KIND_POLICY with the spec of its object. -EINVAL with what
 * is wrong and how to fix it, -ENOENT if it names an object that does not exist; on errors the version in force stays
 * in force. */
int tenants_put(struct tenants *t, enum kind kind, const char *name, const json_t *spec, struct berth_err *err);
/* Checks what tenants_put would return, without changes. */
int tenants_check(struct tenants *t, enum kind kind, const char *name, const json_t *spec, struct berth_err *err);
/* Restores a spec that was in force before this process started while the object's present spec was rejected: it is in
 * force again until the present one is accepted. To be called before the object is put. */
void tenants_restore_in_force(struct tenants *t, enum kind kind, const char *name, const json_t *spec);
void tenants_drop(struct tenants *t, enum kind kind, const char *name);

/* State of an object. */
struct tenant_view {
    bool accepted;          /* the last put version is valid and everything it names exists */
    const json_t *in_force; /* its spec or an earlier one; NULL: none */
    const char *why;        /* why it is not accepted; "" if it is. Both valid until the next change */
};
/* false: no such object */
bool tenants_view(const struct tenants *t, enum kind kind, const char *name, struct tenant_view *ret);

/* Returns which parts of a cluster have changed since tenants_put_quotas. Checks rejected objects again. */
struct tenant_changes {
    bool quotas, claims, domains;
};
struct tenant_changes tenants_take_changes(struct tenants *t);
/* Puts the quotas into a cluster: the changed ones, or, for a new cluster, all of them. */
void tenants_put_quotas(struct tenants *t, struct berth_cluster *cluster, bool all);
/* Returns the domain of a node; "": none. Valid until the next change. */
const char *tenants_domain(const struct tenants *t, const char *id, const struct berth_node *node);

/* The queueing properties of a workload. Texts may be NULL. */
struct tenant_claim {
    const char *namespace;
    const char *user, *queue; /* NULL or "": no user; the queue "default" */
    const char *name, *type, *class_name, *network;
    const struct berth_label *attributes;
    size_t attributes_len;
    int64_t parameters;
    int64_t estimate_ns, limit_ns, deadline_ns, min_run_ns; /* 0: not set */
    bool unpreemptible, never_preempts;
};
/* Fills in the workload's quotas, queue, times and traits; its priority (which must be set before) and its domains
 * depend on its queue, too. The group is that of the user, else the first by name that lists the namespace. Returns why
 * the workload may not be placed now, in the arena: its queue does not exist, is not open to it, or has a lower time
 * limit; NULL: it may be placed. */
const char *tenants_claim(struct tenants *t, const struct tenant_claim *claim, struct arena *arena,
                          struct berth_workload *w);

/* Does the same as tenants_claim, but does not put tenants in use. */
const char *tenants_claim_check(struct tenants *t, const struct tenant_claim *claim, struct arena *arena,
                                struct berth_workload *w);

/* Reports whether tenants are in use: an object was accepted, or tenants_claim was called. */
bool tenants_in_use(const struct tenants *t);
/* Returns the planning settings of queues, policies and domains: order, backfill, headroom. The caller adds profile and
 * preemption, and releases the policy as plan_policy.h says. */
void tenants_policy(const struct tenants *t, struct plan_policy *ret);

/* ---- past usage (tenant_history.c) ----
 *
 * Plans count running work themselves. Usage of ended work is kept in usage records, the same as the daemon's
 * (control/tenant/usage.h): decayed usage of the account charged (a user, else a group, else a queue), and what was
 * spent of totals. The status of an object shows both, including running work, as of a moment. A new leader subtracts
 * the part of the work that still runs; the rest is all ended work, also what ended while no process was watching.
 */

/* Running work that holds resources. */
struct tenant_run {
    const char *user, *group, *queue; /* "": none; the group is the user's if the user has one */
    int64_t begin_ns;
    const struct berth_amount *amounts;
    size_t amounts_len;
};
/* Calls `tell` for all running work. */
typedef void tenant_runs(void *of, void (*tell)(void *ctx, const struct tenant_run *run), void *ctx);

/* From now on usage is recorded while `clock` returns the time; 0: another process is the leader. */
void tenants_record_usage(struct tenants *t, int64_t (*clock)(void *ctx), void *ctx);
/* Books running work as ended now. */
void tenants_work_ended(struct tenants *t, const struct tenant_run *run);
/* Takes over the usage from an object's status (format of tenants_usage) that another process has written; applied by
 * the next tenants_apply_usage. */
void tenants_usage_restore(struct tenants *t, enum kind kind, const char *name, const json_t *usage);
/* Applies bookings and puts changed usage into the cluster; returns whether there was any. */
bool tenants_apply_usage(struct tenants *t, struct berth_cluster *cluster, tenant_runs *runs, void *of);

/* Sums up running work for tenants_usage. O(running work). */
void tenants_usage_sum(struct tenants *t, int64_t now_ns, tenant_runs *runs, void *of);
/* Returns a version that grows with the object's usage records; 0: none yet. */
uint64_t tenants_usage_version(const struct tenants *t, enum kind kind, const char *name);
/* Returns the usage as of the last sum: {"at", "units", "own", "all", "totals", "spent"}, for the status; not to be
 * modified. A new reference; NULL: no such object, or not in force. */
json_t *tenants_usage(struct tenants *t, enum kind kind, const char *name);

/* What all work of a queue, a group or a user holds and waits for. */
struct tenant_use {
    int64_t pending, running;       /* tasks */
    int64_t cpu, memory, gpu_milli; /* held: thousandths of a core, bytes, thousandths of a GPU */
};
struct tenant_use tenants_use(const struct berth_cluster *cluster, enum kind kind, const char *name);
