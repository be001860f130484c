#include "control/tenant/admission.h"

#include <errno.h>
#include <string.h>

#include "control/job/job.h"
#include "control/sched/route_rules.h"
#include "control/state/sync.h"
#include "control/tenant/cap.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/document.h"

static bool among(const char *const *texts, size_t len, const char *text)
{
    for (size_t i = 0; text && i < len; i++)
        if (strcmp(texts[i], text) == 0)
            return true;
    return false;
}

static bool is_open(const struct queue_terms *d, const char *user, const char *group)
{
    return d->users_len + d->groups_len == 0 || among(d->users, d->users_len, user) ||
           (group && *group && among(d->groups, d->groups_len, group));
}

bool queue_open(const struct state *s, const char *queue, const char *user, const char *group)
{
    const struct queue_terms terms = queue_terms(s, queue);
    return state_find(s, KIND_QUEUE, queue) ? is_open(&terms, user, group) : strcmp(queue, QUEUE_DEFAULT) == 0;
}

/* ---- the queue -------------------------------------------------------------------------------------------------- */

/* Gets the queue's terms, also of a queue that the same transaction creates. */
static bool queue_of(struct request *c, const char *queue, struct queue_terms *ret)
{
    struct queue_doc made;
    const json_t *doc = change_read(&c->change, KIND_QUEUE, queue);
    if (!doc || queue_doc_read(doc, &c->arena, &made, NULL) < 0)
        return false;
    *ret = queue_terms_of(c->state, &made);
    return true;
}

static int domains_meet(struct request *c, const char *queue, const struct queue_terms *q,
                        const struct berth_shape *shape)
{
    if (q->domains_len == 0 || shape->domains_len == 0)
        return 0;
    for (size_t i = 0; i < shape->domains_len; i++)
        if (among(q->domains, q->domains_len, shape->domains[i]))
            return 0;
    return err_set(&c->err, EINVAL, "domains: queue %s runs jobs in %s%s, not in the requested domains", queue,
                   q->domains[0], q->domains_len > 1 ? " and others" : "");
}

static int queue_check(struct request *c, const json_t *old, const struct work_doc *d)
{
    struct queue_terms q;
    const char *queue = d->job.queue && *d->job.queue ? d->job.queue : QUEUE_DEFAULT;
    const char *was = json_string_value(json_object_get(old, "queue"));
    bool moves = !old || strcmp(was ? was : QUEUE_DEFAULT, queue) != 0;
    int rc = moves ? queue_check_exists(c, "queue", queue) : 0;
    if (rc < 0 || !queue_of(c, queue, &q))
        return rc;
    if (moves && !is_open(&q, d->owner, d->group))
        return err_set(&c->err, EACCES,
                       "queue: %s is not open to user %s; it is open to %s%s%s; use another queue, or ask an "
                       "administrator",
                       queue, d->owner, q.groups_len ? "group " : "user ", q.groups_len ? q.groups[0] : q.users[0],
                       q.users_len + q.groups_len > 1 ? " and others" : "");
    if (q.max_time_ns && d->job.time_limit_ns > q.max_time_ns)
        return err_set(&c->err, EINVAL, "time_limit: queue %s allows at most %s; this job requests %s", queue,
                       duration_text(q.max_time_ns, &c->arena), duration_text(d->job.time_limit_ns, &c->arena));
    return domains_meet(c, queue, &q, &d->workload.shape);
}

/* ---- quotas ----------------------------------------------------------------------------------------------------- */

static bool is_finished(const json_t *doc)
{
    return json_is_true(json_object_get(doc, "failed")) || json_is_true(json_object_get(doc, "cancelled")) ||
           json_is_true(json_object_get(doc, "ended"));
}

/* Returns whether a change asks for more resources, another queue, or another run. Otherwise an admitted workload stays
 * admitted until it ends. */
static bool requests_more(const json_t *old, const json_t *doc)
{
    static const char *const keys[] = {"replicas", "requests", "resources", "gpu",      "queue",
                                       "array",    "min",      "max",       "estimate", "time_limit"};
    for (size_t i = 0; old && i < sizeof keys / sizeof *keys; i++) {
        const json_t *a = json_object_get(old, keys[i]), *b = json_object_get(doc, keys[i]);
        if (a != b && !(a && b && json_equal(a, b)))
            return true;
    }
    return !old || (is_finished(old) && !is_finished(doc));
}

static bool is_work(const struct change_item *item)
{
    return kind_is_workload(item->kind) && item->write;
}

/* Tells the workload to the cluster for a moment, so that other workloads of the same transaction count, too. */
static void item_put(struct request *c, const struct change_item *item)
{
    char *text = item->doc ? json_dumps(item->doc, JSON_COMPACT) : NULL;
    struct object o = {
        .kind = item->kind, .id = item->id, .owner = "", .group = "", .doc = {text, text ? strlen(text) : 0}
    };
    if (text)
        (void)object_sync(c->state, state_cluster(c->state), &o, NULL);
    else
        (void)berth_workload_remove(state_cluster(c->state), item->id, NULL);
    free(text);
}

static void item_remove(struct request *c, const struct change_item *item)
{
    if (state_find(c->state, item->kind, item->id))
        state_revert(c->state, item->kind, item->id);
    else
        (void)berth_workload_remove(state_cluster(c->state), item->id, NULL);
}

/* Returns, for example, "ask a manager of group vision". */
static const char *contact_text(struct arena *arena, const char *quota, const char *group)
{
    return strncmp(quota, "user/", 5) == 0 && group && *group ? arena_fmt(arena, "ask a manager of group %s", group)
                                                              : "ask an administrator";
}

static const char *hours(struct arena *arena, const char *resource, int64_t amount)
{
    return arena_fmt(arena, "%lld", (long long)(amount / quota_hour(resource)));
}

int admit_refuse(const struct berth_admission_result *v, const char *kind, const char *group, struct arena *arena,
                 struct berth_err *err)
{
    const char *r = v->resource, *ask = contact_text(arena, v->quota, group);
    if (strcmp(v->kind, "total") == 0)
        return err_set(err, EACCES,
                       "quota %s: %s of %s %s hours are used or reserved; this %s requests %s, and %s would be "
                       "accepted; %s, or wait for the next period",
                       v->quota, hours(arena, r, v->used), hours(arena, r, v->limit), r, kind,
                       hours(arena, r, v->asked), hours(arena, r, v->accepted), ask);
    const char *limit = quota_amount_text(r, v->limit, arena), *asked = quota_amount_text(r, v->asked, arena);
    const char *accepted = quota_amount_text(r, v->accepted, arena);
    if (strcmp(v->kind, "limit") == 0)
        return err_set(err, EACCES,
                       "quota %s: at most %s at once; this %s requests %s and could never run; %s would be "
                       "accepted; %s",
                       v->quota, limit, kind, asked, accepted, ask);
    return err_set(err, EACCES,
                   "quota %s: %s of %s are admitted; this %s requests %s, and %s would be accepted; %s, or wait "
                   "until other work has ended",
                   v->quota, quota_amount_text(r, v->used, arena), limit, kind, asked, accepted, ask);
}

static int quotas_check(struct request *c, enum kind kind, const char *id, const struct work_doc *d)
{
    static const enum berth_workload_kind core_kind[KINDS] = {
        [KIND_APP] = BERTH_SERVICE, [KIND_JOB] = BERTH_JOB, [KIND_VM] = BERTH_VM};
    struct berth_workload w = d->workload;
    const struct object draft = {.kind = kind, .id = id, .owner = "", .group = ""};
    w.id = id;
    w.kind = core_kind[kind];
    w.created_ns = c->now_ns;
    sync_scheduling(c->state, &draft, d, &c->arena, &w);
    struct berth_admission_result v = berth_admission_check(state_cluster(c->state), &w, c->now_ns);
    return v.ok ? 0 : admit_refuse(&v, kinds[kind].name, d->group, &c->arena, &c->err);
}

static int item_quotas_check(struct request *c, const struct change_item *item)
{
    struct work_doc d;
    const struct object *o = state_find(c->state, item->kind, item->id);
    CLEANUP(json) json_t *old = o ? object_doc(o) : NULL;
    if (!requests_more(old, item->doc))
        return 0;
    int rc = work_doc_read(item->doc, &c->arena, &d, &c->err);
    return rc < 0 ? rc : quotas_check(c, item->kind, item->id, &d);
}

int admit_all(struct request *c)
{
    int rc = 0;
    size_t told = 0;
    for (; rc == 0 && told < c->change.items.len; told++) {
        if (!is_work(&c->change.items.at[told]))
            continue;
        rc = c->change.items.at[told].doc ? item_quotas_check(c, &c->change.items.at[told]) : 0;
        item_put(c, &c->change.items.at[told]);
    }
    for (size_t i = 0; i < told; i++)
        if (is_work(&c->change.items.at[i]))
            item_remove(c, &c->change.items.at[i]);
    return rc;
}

int admit_check(struct request *c, enum kind kind, const char *id, const json_t *old, const json_t *doc,
                const struct work_doc *d)
{
    int rc = kind == KIND_JOB ? queue_check(c, old, d) : 0;
    if (rc == 0)
        rc = cap_admit(c, kind, id, d);
    if (rc < 0 || c->quota_check_deferred || !requests_more(old, doc))
        return rc;
    for (size_t i = 0; i < c->change.items.len; i++)
        if (is_work(&c->change.items.at[i]) && strcmp(c->change.items.at[i].id, id) != 0)
            item_put(c, &c->change.items.at[i]);
    rc = quotas_check(c, kind, id, d);
    for (size_t i = 0; i < c->change.items.len; i++)
        if (is_work(&c->change.items.at[i]) && strcmp(c->change.items.at[i].id, id) != 0)
            item_remove(c, &c->change.items.at[i]);
    return rc;
}
