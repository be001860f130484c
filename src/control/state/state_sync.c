/* state_sync.c - updates the cluster that the core plans from the documents. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "control/state/sync.h"
#include "control/system/settings_table.h"
#include "core/model/cluster.h"

const struct object *state_spec(const struct state *s, const char *workload, uint64_t generation)
{
    char id[OBJECT_KEY_MAX], number[24];
    (void)snprintf(id, sizeof id, "%s/%s", workload, str_u64(generation, number));
    return state_find(s, KIND_SPEC, id);
}

static bool owner_disabled(const struct state *s, const char *owner)
{
    const struct object *user = owner ? state_find(s, KIND_USER, owner) : NULL;
    return user && user->user->disabled;
}

/* ---- back-off after failures ------------------------------------------------------------------------------------ */

int64_t pause_ns(uint64_t failures)
{
    enum { FIRST_S = 10, DOUBLINGS_MAX = 5 }; /* 10 s, 20 s, ... 320 s */
    uint64_t doublings = failures ? failures - 1 : 0;
    return (int64_t)FIRST_S * 1000000000 << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
}

int64_t state_backoff_end_ns(const struct state *s, const char *workload, uint64_t *ret_failures)
{
    char id[OBJECT_KEY_MAX];
    (void)snprintf(id, sizeof id, "since/%s", workload);
    const struct state_entry *fact = state_entry(s, KIND_FACT, id);
    *ret_failures = fact && fact->view.fact.value > 0 ? (uint64_t)fact->view.fact.value : 0;
    return *ret_failures ? fact->view.fact.at_ns + pause_ns(*ret_failures) : 0;
}

/* ---- outdated pods ---------------------------------------------------------------------------------------------- */

/* Keys that may change without a restart of the pods. Sorted. */
static const char *const template_ignored_keys[] = {
    "begin",           "cancelled", "created", "display",  "ended",    "error",          "failed",  "fence",
    "generation",      "group",     "hold",    "id",       "labels",   "min_available",  "name",    "on_drain",
    "on_lost",         "outcome",   "owner",   "priority", "replicas", "restart_policy", "retries", "settings",
    "settings_schema", "stoppable", "stopped", "system",   "v",        "weight",
};

static json_t *template_of(const struct object *o)
{
    json_t *doc = object_doc(o);
    for (size_t i = 0; i < sizeof template_ignored_keys / sizeof *template_ignored_keys; i++)
        (void)json_object_del(doc, template_ignored_keys[i]);
    return doc;
}

static bool template_differs(const struct object *a, const struct object *b)
{
    json_t *x = template_of(a), *y = template_of(b);
    bool same = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return !same;
}

/* ---- updates of the cluster ------------------------------------------------------------------------------------- */

static int put_work(const struct state *s, struct berth_cluster *cluster, const struct object *o, struct parsed_doc *p,
                    struct arena *arena, struct berth_err *err)
{
    static const enum berth_workload_kind core_kind[KINDS] = {
        [KIND_APP] = BERTH_SERVICE, [KIND_JOB] = BERTH_JOB, [KIND_VM] = BERTH_VM};
    struct berth_workload *w = &p->work.workload;
    w->id = o->id;
    w->kind = core_kind[o->kind];
    w->created_ns = p->work.meta.created_ns;
    uint64_t failures;
    int64_t again_ns = state_backoff_end_ns(s, o->id, &failures);
    w->begin_ns = again_ns > w->begin_ns ? again_ns : w->begin_ns;
    w->suspended = w->suspended || p->work.hold || p->work.stopped || owner_disabled(s, p->work.owner);
    sync_scheduling(s, o, &p->work, arena, w);
    if (sync_cut_shape(cluster, &w->shape, arena))
        w->suspended = true;
    int rc = sync_array_limit(cluster, o, &p->work, arena, err);
    return rc < 0 ? rc : berth_workload_put(cluster, w, err);
}

/* Returns the fence that the node was given at placement (node_config.c): if the node is lost, the instance may run
 * until then. */
static int64_t placement_fence_ns(const struct object *work, const struct berth_workload *kept)
{
    enum berth_on_lost on_lost = kept->on_lost;
    if (on_lost == BERTH_LOST_DEFAULT)
        on_lost = work && work->kind == KIND_APP && kept->replicas > 1 ? BERTH_LOST_REPLACE : BERTH_LOST_FENCE;
    if (on_lost == BERTH_LOST_WAIT)
        return BERTH_NEVER_NS;
    return on_lost == BERTH_LOST_FENCE ? (kept->fence_ns ? kept->fence_ns : FENCE_NS_DEFAULT) : 0;
}

/* Puts an instance with its shape at placement: the workload's present one, or the kept one if the generation
 * differs. */
static int put_instance(const struct state *s, struct berth_cluster *cluster, struct parsed_doc *p, struct arena *arena,
                        struct berth_err *err)
{
    struct berth_instance *i = &p->instance.instance;
    const struct object *work = state_find_work(s, i->workload);
    sync_cut_usage(cluster, i, arena);
    if (i->shape || (work && work->work->generation == p->instance.generation))
        return berth_instance_put(cluster, i, err);

    const struct object *spec = state_spec(s, i->workload, p->instance.generation);
    if (!spec)
        return berth_instance_put(cluster, i, err);
    i->outdated = work && template_differs(spec, work);
    struct work_doc kept;
    json_t *doc = object_doc(spec);
    int rc = work_doc_read(doc, arena, &kept, err);
    if (rc == 0) {
        (void)sync_cut_shape(cluster, &kept.workload.shape, arena);
        i->shape = &kept.workload.shape;
        i->fence_ns = placement_fence_ns(work, &kept.workload);
        rc = berth_instance_put(cluster, i, err);
    }
    json_decref(doc);
    return rc;
}

/* A definition beyond the limit of names stays in the store without effect: no node and no workload can name its
 * resource either (sync_resources.c). */
static int put_resource(struct berth_cluster *cluster, const struct berth_resource *r, struct berth_err *err)
{
    int rc = berth_resource_put(cluster, r, err);
    bool beyond =
        rc == -EINVAL && cluster->resources.len >= BERTH_RESOURCES_MAX && !cluster_resource_known(cluster, r->name);
    return beyond ? 0 : rc;
}

/* If the name of the volume driver's capacity exceeds the limit of resource names, no node can offer that capacity. */
static int put_volume(struct berth_cluster *cluster, const struct berth_volume *v, struct berth_err *err)
{
    int rc = berth_volume_put(cluster, v, err);
    return rc == -EINVAL && cluster->resources.len >= BERTH_RESOURCES_MAX ? 0 : rc;
}

/* Sets the default number of pods of a node from the settings: each pod costs the daemon and the node something,
 * whatever it requests. */
static void pods_fill(const struct state *s, struct berth_node *n, struct arena *arena)
{
    int64_t pods = system_setting_number(s, SETTING_NODE_PODS);
    for (size_t i = 0; i < n->allocatable_len; i++)
        if (strcmp(n->allocatable[i].resource, "pods") == 0)
            return;
    if (pods == 0)
        return;
    struct berth_amount *filled = ARENA_ARRAY(arena, struct berth_amount, n->allocatable_len + 1);
    if (n->allocatable_len)
        memcpy(filled, n->allocatable, n->allocatable_len * sizeof *filled);
    filled[n->allocatable_len] = (struct berth_amount){"pods", pods};
    n->allocatable = filled;
    n->allocatable_len++;
}

int sync_put(const struct state *s, struct berth_cluster *cluster, const struct object *o, struct parsed_doc *p,
             struct arena *arena, struct berth_err *err)
{
    switch (o->kind) {
    case KIND_RESOURCE: return put_resource(cluster, &p->resource, err);
    case KIND_VOLUME: return put_volume(cluster, &p->volume.volume, err);
    case KIND_NODE:
        p->node.node.id = o->id;
        p->node.node.domain = node_domain(s, o->id, &p->node.node);
        pods_fill(s, &p->node.node, arena);
        sync_cut_node(cluster, &p->node.node, arena);
        return berth_node_put(cluster, &p->node.node, err);
    case KIND_USER: return sync_user_quota(s, cluster, o->id, &p->user, arena, err);
    case KIND_GROUP: return sync_group_quota(s, cluster, o->id, &p->group, arena, err);
    case KIND_QUEUE: return sync_queue_quota(s, cluster, o->id, &p->queue, arena, err);
    case KIND_APP:
    case KIND_JOB:
    case KIND_VM: return put_work(s, cluster, o, p, arena, err);
    case KIND_INSTANCE: return put_instance(s, cluster, p, arena, err);
    case KIND_FACT: return berth_fact_put(cluster, &p->fact, err);
    default: return 0;
    }
}

/* Removes the node with all instances that the cluster has on it: either their documents are removed in the same
 * change, or a planned placement on the node will meet a conflict. A finished task needs no node. */
static int remove_node(const struct state *s, struct berth_cluster *cluster, const struct state_entry *e,
                       struct berth_err *err)
{
    for (size_t i = 0; i < e->view.node.instances_len; i++)
        if (e->view.node.instances[i]->instance->state != BERTH_ENDED)
            (void)berth_instance_remove(cluster, e->view.node.instances[i]->instance->number, NULL);
    for (size_t i = 0; i < s->assumed.len; i++)
        if (s->assumed.at[i].node == e)
            (void)berth_instance_remove(cluster, s->assumed.at[i].id, NULL);
    return berth_node_remove(cluster, e->object.id, err);
}

static int remove_fact(const struct state *s, struct berth_cluster *cluster, const struct state_entry *e,
                       struct berth_err *err)
{
    struct parsed_doc parsed;
    struct arena arena;
    (void)s;
    arena_init(&arena);
    json_t *doc = object_doc(&e->object);
    int rc = doc_parse(KIND_FACT, doc, &arena, &parsed, err);
    if (rc == 0) {
        parsed.fact.over = true;
        rc = berth_fact_put(cluster, &parsed.fact, err);
    }
    json_decref(doc);
    arena_done(&arena);
    return rc;
}

int sync_remove(const struct state *s, struct berth_cluster *cluster, const struct state_entry *e,
                struct berth_err *err)
{
    int rc = 0;
    switch (e->object.kind) {
    case KIND_NODE: rc = remove_node(s, cluster, e, err); break;
    case KIND_APP:
    case KIND_JOB:
    case KIND_VM:
        rc = berth_workload_remove(cluster, e->object.id, err);
        if (rc == 0 && e->object.kind == KIND_JOB)
            rc = sync_quota_remove(cluster, "job", e->object.id, err);
        break;
    case KIND_USER:
    case KIND_GROUP:
    case KIND_QUEUE: rc = sync_quota_remove(cluster, kinds[e->object.kind].name, e->object.id, err); break;
    case KIND_INSTANCE: rc = berth_instance_remove(cluster, e->view.instance.number, err); break;
    case KIND_FACT: rc = remove_fact(s, cluster, e, err); break;
    default: break; /* an unused volume or resource stays known until the cluster is rebuilt */
    }
    return rc == -ENOENT ? 0 : rc; /* an assumption has removed the object already */
}
