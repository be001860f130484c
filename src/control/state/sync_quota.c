/* sync_quota.c - puts the quotas of users, groups and queues in the cluster, with the spent part of their totals. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/state/sync.h"
#include "control/tenant/usage.h"

struct berth_quota quota_describe(const struct state *s, const char *id, const struct quota_doc *d, struct arena *arena)
{
    struct berth_total *totals = ARENA_ARRAY(arena, struct berth_total, d->totals_len);
    for (size_t i = 0; i < d->totals_len; i++) {
        totals[i] = d->totals[i];
        if (!usage_spent(s, id, totals[i].resource, &totals[i].spent, &totals[i].since_ns))
            totals[i].spent = totals[i].since_ns = 0;
    }
    return (struct berth_quota){
        .id = id,
        .limits = d->limits,
        .limits_len = d->limits_len,
        .guarantees = d->guarantees,
        .guarantees_len = d->guarantees_len,
        .admitted = d->admitted,
        .admitted_len = d->admitted_len,
        .totals = totals,
        .totals_len = d->totals_len,
    };
}

static const char *below(struct arena *arena, const char *kind, const char *id)
{
    return id && *id ? arena_fmt(arena, "%s/%s", kind, id) : "";
}

static int quota_put(struct berth_cluster *cluster, struct berth_quota *q, struct arena *arena, struct berth_err *err)
{
    sync_cut_quota(cluster, q, arena);
    return berth_quota_put(cluster, q, err);
}

int sync_user_quota(const struct state *s, struct berth_cluster *cluster, const char *id, const struct user_doc *d,
                    struct arena *arena, struct berth_err *err)
{
    struct berth_quota q = quota_describe(s, below(arena, "user", id), &d->quota, arena);
    q.parent = below(arena, "group", d->group);
    q.weight = d->weight;
    return quota_put(cluster, &q, arena, err);
}

int sync_group_quota(const struct state *s, struct berth_cluster *cluster, const char *id, const struct group_doc *d,
                     struct arena *arena, struct berth_err *err)
{
    struct berth_quota q = quota_describe(s, below(arena, "group", id), &d->quota, arena);
    q.weight = d->weight;
    return quota_put(cluster, &q, arena, err);
}

/* A transaction's changes of several queues are applied one by one. In between, the tree may have a loop or be too
 * deep. In that case the queue has no parent until the other changes are applied (sync_dependents). */
int sync_queue_quota(const struct state *s, struct berth_cluster *cluster, const char *id, const struct queue_doc *d,
                     struct arena *arena, struct berth_err *err)
{
    struct berth_quota q = quota_describe(s, below(arena, "queue", id), &d->quota, arena);
    q.parent = below(arena, "queue", d->parent);
    q.weight = d->weight;
    q.weighted = d->share;
    int rc = quota_put(cluster, &q, arena, err);
    if (rc < 0 && *q.parent) {
        q.parent = "";
        rc = berth_quota_put(cluster, &q, err);
    }
    return rc;
}

/* ---- inherited settings of queues ------------------------------------------------------------------------------- */

enum { QUEUES_ABOVE_MAX = 16 }; /* more than any valid tree; bounds a temporary loop */

static void terms_add(struct queue_terms *t, const struct queue_doc *d)
{
    if (t->users_len + t->groups_len == 0) {
        t->users = d->users;
        t->users_len = d->users_len;
        t->groups = d->groups;
        t->groups_len = d->groups_len;
    }
    if (t->domains_len == 0) {
        t->domains = d->domains;
        t->domains_len = d->domains_len;
    }
    if (!t->policy && d->policy && *d->policy)
        t->policy = d->policy;
    if (!t->time_limit_ns)
        t->time_limit_ns = d->time_limit_ns;
    if (d->max_time_ns && (!t->max_time_ns || d->max_time_ns < t->max_time_ns))
        t->max_time_ns = d->max_time_ns;
}

struct queue_terms queue_terms_of(const struct state *s, const struct queue_doc *d)
{
    struct queue_terms t = {0};
    for (int i = 0; d && i < QUEUES_ABOVE_MAX; i++) {
        terms_add(&t, d);
        const struct object *above = d->parent && *d->parent ? state_find(s, KIND_QUEUE, d->parent) : NULL;
        d = above ? above->queue : NULL;
    }
    if (t.max_time_ns && (!t.time_limit_ns || t.time_limit_ns > t.max_time_ns))
        t.time_limit_ns = t.max_time_ns;
    return t;
}

struct queue_terms queue_terms(const struct state *s, const char *queue)
{
    const struct object *o = state_find(s, KIND_QUEUE, queue);
    return queue_terms_of(s, o ? o->queue : NULL);
}

bool queue_within(const struct state *s, const char *queue, const char *above)
{
    for (int i = 0; queue && *queue && i < QUEUES_ABOVE_MAX; i++) {
        if (strcmp(queue, above) == 0)
            return true;
        const struct object *o = state_find(s, KIND_QUEUE, queue);
        queue = o ? o->queue->parent : NULL;
    }
    return false;
}

int sync_quota_remove(struct berth_cluster *cluster, const char *kind, const char *id, struct berth_err *err)
{
    char name[OBJECT_KEY_MAX];
    (void)snprintf(name, sizeof name, "%s/%s", kind, id);
    int rc = berth_quota_remove(cluster, name, err);
    return rc == -ENOENT ? 0 : rc;
}
