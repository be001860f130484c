/* queue.c - queues: a tree of queues, with access rules and quotas for all their jobs together. */
#include "control/kind/queue.h"

#include <errno.h>
#include <string.h>

#include "control/sched/route_rules.h"
#include "control/state/sync.h"

/* ---- the tree --------------------------------------------------------------------------------------------------- */

static const char *parent_of(struct request *c, const char *id)
{
    return json_string_value(json_object_get(change_read(&c->change, KIND_QUEUE, id), "parent"));
}

/* Counts the levels from this queue up, and guards all of them: concurrent writes cannot make a cycle. */
static int tree_above(struct request *c, const char *id, const char *parent, size_t *ret)
{
    size_t levels = 1;
    for (const char *up = parent; up && *up; up = parent_of(c, up), levels++) {
        if (strcmp(up, id) == 0)
            return err_set(&c->err, EINVAL, "parent: queue %s is a descendant of %s and cannot be its parent", parent,
                           id);
        if (levels > QUEUE_DEPTH_MAX)
            break;
        if (!change_guard(&c->change, KIND_QUEUE, up))
            return err_set(&c->err, EINVAL, "parent: there is no queue %.80s; see 'berth queues'", up);
    }
    *ret = levels;
    return 0;
}

/* Returns the depth of the tree below the queue; a write that puts another queue below is guarded by this one. */
static size_t tree_below(struct request *c, const char *id, size_t depth)
{
    size_t len, most = 0;
    const struct object *const *queues = state_list(c->state, KIND_QUEUE, &len);
    for (size_t i = 0; i < len && depth <= QUEUE_DEPTH_MAX; i++) {
        if (!queues[i]->queue->parent || strcmp(queues[i]->queue->parent, id) != 0)
            continue;
        size_t below = 1 + tree_below(c, queues[i]->id, depth + 1);
        most = below > most ? below : most;
    }
    return most;
}

static int tree_check(struct request *c, const char *id, const char *parent)
{
    size_t above = 0;
    int rc = tree_above(c, id, parent, &above);
    if (rc == 0 && above + tree_below(c, id, 0) > QUEUE_DEPTH_MAX)
        rc = err_set(&c->err, EINVAL, "parent: the queue tree would have more than %d levels", QUEUE_DEPTH_MAX);
    return rc;
}

/* ---- write ------------------------------------------------------------------------------------------------------ */

static int domains_check(struct request *c, const struct queue_doc *d)
{
    for (size_t i = 0; i < d->domains_len; i++)
        if (!change_guard(&c->change, KIND_DOMAIN, d->domains[i]))
            return err_set(&c->err, EINVAL, "domains[%zu]: there is no domain %.80s; see 'berth get domains'", i,
                           d->domains[i]);
    return 0;
}

static int check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct queue_doc d;
    (void)k;
    (void)old;
    int rc = queue_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = tree_check(c, id, d.parent);
    if (rc == 0)
        rc = quota_check(c, arena_fmt(&c->arena, "queue/%s", id), &d.quota);
    if (rc == 0)
        rc = users_groups_check(c, d.users, d.users_len, d.groups, d.groups_len);
    if (rc == 0)
        rc = domains_check(c, &d);
    if (rc == 0 && d.policy && *d.policy)
        rc = policy_check_exists(c, "policy", d.policy);
    return rc;
}

static int on_delete(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    size_t len;
    (void)k;
    (void)old;
    if (next)
        return 0;
    const struct object *const *queues = state_list(c->state, KIND_QUEUE, &len);
    for (size_t i = 0; i < len; i++)
        if (queues[i]->queue->parent && strcmp(queues[i]->queue->parent, id) == 0 &&
            change_guard(&c->change, KIND_QUEUE, queues[i]->id))
            return err_set(&c->err, EBUSY, "queue %s is the parent of %s; delete or move the child queue first", id,
                           queues[i]->id);
    if (strcmp(id, QUEUE_DEFAULT) == 0)
        return 0; /* the default queue exists without a document */
    if (routes_use_queue(c, id))
        return err_set(&c->err, EBUSY, "a rule of /v1/routes sends jobs to queue %s; change the rule first", id);
    const struct object *const *jobs = state_list(c->state, KIND_JOB, &len);
    for (size_t i = 0; i < len; i++) {
        const struct work_view *v = jobs[i]->work;
        if (strcmp(v->queue, id) == 0 && !v->cancelled && !v->failed && !v->ended &&
            change_guard(&c->change, KIND_JOB, jobs[i]->id))
            return err_set(&c->err, EBUSY, "job %s is in queue %s; cancel or move its jobs first", jobs[i]->id, id);
    }
    return 0;
}

static void show(const struct request *c, const struct object *o, json_t *doc)
{
    char quota[OBJECT_KEY_MAX];
    struct berth_quota_use pods, jobs;
    (void)snprintf(quota, sizeof quota, "queue/%s", o->id);
    (void)berth_quota_use(state_cluster(c->state), quota, "pods", &pods);
    (void)berth_quota_use(state_cluster(c->state), quota, "jobs", &jobs);
    json_t *status = json_pack("{s:I, s:I, s:o}", "jobs", (json_int_t)jobs.asked, "running", (json_int_t)jobs.held,
                               "use", quota_use_show(c, quota, &o->queue->quota));
    (void)json_object_set_new(doc, "status", status);
}

/* Returns the default queue, for jobs that name no queue; it exists without a document. It has no quota, so its jobs
 * are counted here. */
static json_t *default_queue(const struct request *c, const char *id)
{
    json_int_t jobs = 0, running = 0;
    size_t len;
    if (strcmp(id, QUEUE_DEFAULT) != 0)
        return NULL;
    const struct object *const *list = state_list(c->state, KIND_JOB, &len);
    for (size_t i = 0; i < len; i++) {
        const struct work_view *v = list[i]->work;
        bool placed = false;
        if (strcmp(v->queue, id) != 0 || v->cancelled || v->failed || v->ended)
            continue;
        for (size_t k = 0; k < v->instances_len && !placed; k++)
            placed = v->instances[k]->instance->state != BERTH_ENDED;
        jobs += placed || !v->finished_ns;
        running += placed;
    }
    return json_pack("{s:s, s:b, s:{s:I, s:I, s:{}}}", "id", id, "implied", 1, "status", "jobs", jobs, "running",
                     running, "use");
}

const struct crud queue_crud = {
    .kind = KIND_QUEUE,
    .make = PERMIT_SYSTEM,
    .change = PERMIT_SYSTEM,
    .check = check,
    .leaving = on_delete,
    .show = show,
    .implied = default_queue,
};
