/* tenant.h - queues, groups, users, domains and policies of a Kubernetes cluster, and what they mean for its work.
 *
 * Custom resources of berth.dev become documents of the daemon's own kinds in a private state (control/state/state.h), so that trees of queues,
 * quotas in two tiers, formulas and domains mean here what they mean there. What cannot be accepted is kept aside with the reason, and looked at
 * again when something else has changed: objects come in any order. The last good one of the same name stays in force meanwhile.
 *
 * Fed by kube/tenant/tenant_feed.h; the projection (kube/cache/cache.h) tells its cluster the quotas, and asks for the claims of work and the
 * domains of nodes; the scheduler asks for the policy.
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

/* Pods of ours say with these labels which queue they are in and whose they are. */
#define TENANT_QUEUE_LABEL "berth.dev/queue"
#define TENANT_USER_LABEL "berth.dev/user"

struct tenants;

/* `changed`: something that a plan depends on may be different. */
struct tenants *tenants_new(void (*changed)(void *ctx), void *ctx);
void tenants_free(struct tenants *t); /* NULL is fine */

/* KIND_QUEUE, KIND_GROUP, KIND_USER, KIND_DOMAIN or KIND_POLICY with the spec of its object. -EINVAL with what is wrong and what to do, -ENOENT for
 * the name of what is not there yet: what was in force under the name stays so. */
int tenants_put(struct tenants *t, enum kind kind, const char *name, const json_t *spec, struct berth_err *err);
/* What tenants_put would say; nothing changes. */
int tenants_check(struct tenants *t, enum kind kind, const char *name, const json_t *spec, struct berth_err *err);
/* A spec that was in force before we began, of one whose present spec was refused then: it is in force again until that is accepted. To be
 * said before the object is put. */
void tenants_recall(struct tenants *t, enum kind kind, const char *name, const json_t *spec);
void tenants_drop(struct tenants *t, enum kind kind, const char *name);

/* How an object is doing. */
struct tenant_view {
    bool accepted;          /* as it was put last, and what it names is there */
    const json_t *in_force; /* its spec, or one before it; NULL: none */
    const char *why;        /* it is not accepted; "" if it is. Both are valid until something changes */
};
bool tenants_view(const struct tenants *t, enum kind kind, const char *name, struct tenant_view *ret); /* false: none */

/* What of a cluster looks different since this was last asked. Judges again what was refused. */
struct tenant_news {
    bool quotas, claims, domains;
};
struct tenant_news tenants_news(struct tenants *t);
/* Tells a cluster the quotas: those that changed since, or, for a new cluster, all of them. */
void tenants_tell(struct tenants *t, struct berth_cluster *cluster, bool all);
/* The domain that a node is in; "": none. Lives as long as nothing changes. */
const char *tenants_domain(const struct tenants *t, const char *id, const struct berth_node *node);

/* What work says of its turn. Texts may be NULL. */
struct tenant_claim {
    const char *namespace;
    const char *user, *queue; /* none: of nobody; "default" */
    const char *name, *type, *class_name, *network;
    const struct berth_label *attributes;
    size_t attributes_len;
    int64_t parameters;
    int64_t estimate_ns, limit_ns, deadline_ns, min_run_ns; /* 0: not said */
    bool unpreemptible, never_preempts;
};
/* Fills in the workload's quotas, queue, times and traits; its priority (which must be there) and its domains follow from its queue, too. A group
 * is that of its user, else the first by name that lists the namespace. Returns why it may not be placed as things are, in the arena: its
 * queue is not there, or not for it, or gives it less time; NULL: it may. */
const char *tenants_claim(struct tenants *t, const struct tenant_claim *claim, struct arena *arena,
                          struct berth_workload *w);

/* What tenants_claim would fill in and say; nothing is claimed. */
const char *tenants_claim_check(struct tenants *t, const struct tenant_claim *claim, struct arena *arena,
                                struct berth_workload *w);

/* Is anything of all this in use: an object that was accepted, or a claim that was made? */
bool tenants_in_use(const struct tenants *t);
/* What queues, policies and domains say of how to plan: order, backfill, headroom. The caller adds profile and preemption. To be given back as
 * plan_policy.h says. */
void tenants_policy(const struct tenants *t, struct plan_policy *ret);

/* ---- past use (tenant_history.c) ----
 *
 * What runs is counted by plans themselves. What is over stands in books, which are the daemon's (control/tenant/usage.h): decayed use of whose account it
 * was, a user's, else a group's, else a queue's; and what was spent of totals. The status of an object tells both in one, up to a moment. So whoever
 * follows takes off what still runs, and has all: also what ended while nobody looked, up to that moment. */

/* Work that holds something. */
struct tenant_run {
    const char *user, *group, *queue; /* "": none; the group is that of its user where he has one */
    int64_t begin_ns;
    const struct berth_amount *amounts;
    size_t amounts_len;
};
/* Calls `tell` for all that runs. */
typedef void tenant_runs(void *of, void (*tell)(void *ctx, const struct tenant_run *run), void *ctx);

/* From now on books are kept while `clock` says what time it is; 0: somebody else keeps them. */
void tenants_keep(struct tenants *t, int64_t (*clock)(void *ctx), void *ctx);
/* It is over now. */
void tenants_ran(struct tenants *t, const struct tenant_run *run);
/* What the status of an object says (as of tenants_usage), and another process has written. Its books are made of it with the next tenants_past. */
void tenants_usage_recall(struct tenants *t, enum kind kind, const char *name, const json_t *usage);
/* Brings the books up to date and tells them to a cluster where they differ from what it was told; whether they did. */
bool tenants_past(struct tenants *t, struct berth_cluster *cluster, tenant_runs *runs, void *of);

/* Sums up what runs, for tenants_usage. O(all that runs). */
void tenants_usage_sum(struct tenants *t, int64_t now_ns, tenant_runs *runs, void *of);
/* Grows with its books; 0: there are none yet. */
uint64_t tenants_usage_version(const struct tenants *t, enum kind kind, const char *name);
/* As of the last sum: {"at", "units", "own", "all", "totals", "spent"}. To be written; not to be changed. A new reference; NULL: there is no such object,
 * or it is not in force. */
json_t *tenants_usage(struct tenants *t, enum kind kind, const char *name);

/* What all work of a queue, a group or a user holds and waits for. */
struct tenant_use {
    int64_t pending, running;       /* tasks */
    int64_t cpu, memory, gpu_milli; /* held: thousandths of a core, bytes, thousandths of a GPU */
};
struct tenant_use tenants_use(const struct berth_cluster *cluster, enum kind kind, const char *name);
