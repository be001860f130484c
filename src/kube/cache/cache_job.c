/* cache_job.c - jobs: a role as a workload of several tasks, and the pods of jobs as its instances.
 *
 * A role has an entry among the pods that stays in POD_WAITS. Its shape is that of the pod the API server would create,
 * and it follows volumes and namespaces like any pod. A task has an entry from when it is assumed; when its pod
 * appears, the entry becomes the pod's.
 */
#include <string.h>

#include "base/hash.h"
#include "kube/cache/cache_internal.h"

/* ---- roles ------------------------------------------------------------------------------------------------------ */

static uint32_t role_find(const struct cache *p, const char *id)
{
    uint32_t pod = pod_find(p, id);
    return pod != NONE && p->pods.at[pod].job ? pod : NONE;
}

static void ended_clear(struct cache *p, struct pod_job *job)
{
    for (size_t i = 0; i < job->ended.len; i++)
        if (job->ended.at[i])
            (void)berth_instance_remove(p->cluster, job->ended.at[i], NULL);
    job->ended.len = 0;
}

void job_parts_free(struct cache *p, struct pod_entry *e)
{
    if (e->job) {
        ended_clear(p, e->job);
        vec_done(&e->job->ended);
        mem_free(e->job->owner);
    }
    if (e->task) {
        mem_free(e->task->role);
        mem_free(e->task->owner);
    }
    mem_free(e->job);
    mem_free(e->task);
    e->job = NULL;
    e->task = NULL;
}

void role_claim(struct cache *p, uint32_t pod, struct shaped_pod *shaped)
{
    static const struct berth_term nowhere = {0};
    const char *why = NULL;
    topic_follow(p, pod, TENANTS_TOPIC);
    if (p->config.claim)
        why = p->config.claim(p->config.ctx, p->pods.at[pod].id, &p->arena, &shaped->workload);
    if (!shaped->why && why) {
        shaped->why = why;
        shaped->workload.shape.require = &nowhere;
        shaped->workload.shape.require_len = 1;
    }
}

/* The node of an ended task no longer matters, but the model requires a name. */
static void ended_task_put(struct cache *p, const struct pod_entry *e, uint32_t ordinal)
{
    const struct berth_instance i = {
        .id = e->job->ended.at[ordinal], .workload = e->id, .ordinal = ordinal, .node = "ended", .state = BERTH_ENDED};
    struct berth_err err = {0};
    if (i.id && berth_instance_put(p->cluster, &i, &err) < 0)
        cache_trouble(p, "task %u of %s: %s", ordinal, e->id, err.text);
}

void role_restore_ended(struct cache *p, uint32_t pod)
{
    const struct pod_entry *e = &p->pods.at[pod];
    for (uint32_t i = 0; i < e->job->ended.len; i++)
        ended_task_put(p, e, i);
}

struct instance_id_list {
    VEC(uint64_t) ids;
};

static void instance_add(void *ctx, const struct berth_instance_view *i)
{
    struct instance_id_list *found = ctx;
    vec_push(&found->ids, i->id);
}

static bool task_put_on_node(struct cache *p, uint32_t pod, const struct kube_pod *from, const char *node,
                             uint64_t gpus);

/* Pods left by an earlier job of the same name are not tasks of this job. A task whose pod is not seen yet keeps its
 * instance number, by which the job controller knows it. */
static void foreign_task_move(struct cache *p, uint32_t pod)
{
    struct pod_entry *e = &p->pods.at[pod];
    const char *node = arena_strdup(&p->arena, p->nodes.at[e->node].name);
    struct kube_pod from = pod_read(p, pod);
    uint64_t instance = e->instance;
    pod_instance_clear(p, pod);
    if (e->state == POD_BOUND) {
        task_bound(p, pod, &from, node);
        return;
    }
    e->node = node_enter(p, node);
    e->instance = instance;
    map_add(&p->pods_by_instance, hash_u64(instance), pod);
    (void)task_put_on_node(p, pod, &from, node, 0);
}

static void foreign_tasks_move(struct cache *p, const char *id)
{
    struct instance_id_list found = {0};
    berth_instances(p->cluster, id, instance_add, &found);
    for (size_t i = 0; i < found.ids.len; i++) {
        uint32_t pod = pod_by_instance(p, found.ids.at[i]);
        if (pod != NONE && strcmp(task_workload(p, p->pods.at[pod].task), id) != 0)
            foreign_task_move(p, pod);
    }
    vec_done(&found.ids);
}

static uint32_t role_new(struct cache *p, const struct cache_job_role *role)
{
    const struct kube_object o = {
        .namespace = role->namespace, .name = role->id + strlen(role->namespace) + 1, .uid = role->owner};
    uint32_t pod = pod_new(p, role->id, &o);
    struct pod_entry *e = &p->pods.at[pod];
    e->job = mem_zalloc(sizeof *e->job);
    e->job->owner = mem_strdup(role->owner);
    e->wait = mem_zalloc(sizeof *e->wait);
    e->scheduler = p->config.schedulers[0];
    foreign_tasks_move(p, role->id);
    return pod;
}

static bool role_put(struct cache *p, const struct cache_job_role *role)
{
    struct kube_pod_facts facts = {0};
    struct kube_pod from;
    if (!pod_strip(p, role->pod, &facts) ||
        !kube_pod_read(&p->arena, proto_reader(str_text(&p->stripped), p->stripped.len), &from))
        return false;
    input_record(p, &(struct cache_change){.op = CACHE_OP_ROLE_PUT,
                                           .id = role->id,
                                           .namespace = role->namespace,
                                           .owner = role->owner,
                                           .kept = proto_reader(str_text(&p->stripped), p->stripped.len)});
    uint32_t pod = role_find(p, role->id);
    if (pod != NONE && strcmp(p->pods.at[pod].job->owner, role->owner) != 0) {
        pod_forget(p, pod);
        pod = NONE;
    }
    if (pod == NONE)
        pod = role_new(p, role);
    struct pod_entry *e = &p->pods.at[pod];
    const char *scheduler = pod_scheduler(p, from.scheduler);
    if (scheduler)
        e->scheduler = scheduler;
    uint32_t old = e->template;
    e->template = template_take(p, &p->stripped);
    if (old != NONE)
        template_leave(p, old);
    pod_mark(p, pod);
    return true;
}

bool cache_role_put(struct cache *p, const struct cache_job_role *role)
{
    struct arena_mark mark = arena_mark(&p->arena);
    bool ok = role_put(p, role);
    arena_rewind(&p->arena, mark);
    return ok;
}

void cache_role_drop(struct cache *p, const char *id)
{
    uint32_t pod = role_find(p, id);
    if (pod == NONE)
        return;
    input_record(p, &(struct cache_change){.op = CACHE_OP_ROLE_DROP, .id = id});
    pod_forget(p, pod);
}

void cache_role_changed(struct cache *p, const char *id)
{
    uint32_t pod = role_find(p, id);
    if (pod == NONE)
        return;
    if (!p->pods.at[pod].marked)
        input_record(p, &(struct cache_change){.op = CACHE_OP_ROLE_CHANGED, .id = id});
    pod_mark(p, pod);
}

bool cache_role_exists(const struct cache *p, const char *id)
{
    return role_find(p, id) != NONE;
}

/* ---- ended tasks ------------------------------------------------------------------------------------------------ */

void cache_task_succeeded(struct cache *p, const char *role, uint32_t ordinal)
{
    uint32_t pod = role_find(p, role);
    if (pod == NONE)
        return;
    struct pod_job *job = p->pods.at[pod].job;
    if (ordinal < job->ended.len && job->ended.at[ordinal])
        return;
    if (ordinal >= job->ended.len)
        vec_resize(&job->ended, ordinal + 1);
    job->ended.at[ordinal] = ++p->instances;
    input_record(p, &(struct cache_change){
                        .op = CACHE_OP_TASK_SUCCEEDED, .id = role, .ordinal = ordinal, .instance = p->instances});
    if (p->pods.at[pod].there)
        ended_task_put(p, &p->pods.at[pod], ordinal);
    cache_notify(p);
}

void cache_tasks_rerun(struct cache *p, const char *role)
{
    uint32_t pod = role_find(p, role);
    if (pod == NONE)
        return;
    input_record(p, &(struct cache_change){.op = CACHE_OP_TASKS_RERUN, .id = role});
    ended_clear(p, p->pods.at[pod].job);
    cache_notify(p);
}

/* ---- tasks on nodes --------------------------------------------------------------------------------------------- */

const char *task_workload(struct cache *p, const struct pod_task *task)
{
    uint32_t role = role_find(p, task->role);
    if (role == NONE || strcmp(p->pods.at[role].job->owner, task->owner) == 0)
        return task->role;
    /* no such workload exists, so the instance is stopped */
    return arena_fmt(&p->arena, "%s:%s", task->role, task->owner);
}

static int task_instance_put(struct cache *p, uint32_t pod, const struct kube_pod *from, uint64_t gpus,
                             struct berth_err *err)
{
    topic_leave_all(p, pod);
    struct shaped_pod shaped = shape_pod(p, pod, from, true);
    return pod_instance_put(p, &p->pods.at[pod], gpus, &shaped.workload.shape, err);
}

void task_refresh(struct cache *p, uint32_t pod, const struct kube_pod *from)
{
    struct berth_err err = {0};
    if (!p->pods.at[pod].instance || task_instance_put(p, pod, from, 0, &err) == 0)
        return;
    const struct pod_entry *e = &p->pods.at[pod];
    cache_trouble(p, "pod %s/%s: %s", pod_namespace(p, e), e->name, err.text);
}

/* Puts the task on the node, creating its instance if it has none there. */
static bool task_put_on_node(struct cache *p, uint32_t pod, const struct kube_pod *from, const char *node,
                             uint64_t gpus)
{
    struct pod_entry *e = &p->pods.at[pod];
    struct berth_err err = {0};
    if (e->instance && strcmp(p->nodes.at[e->node].name, node) != 0)
        pod_instance_clear(p, pod);
    if (!e->instance) {
        e->node = node_enter(p, node);
        e->instance = ++p->instances;
        map_add(&p->pods_by_instance, hash_u64(e->instance), pod);
    }
    if (task_instance_put(p, pod, from, gpus, &err) == 0)
        return true;
    e = &p->pods.at[pod];
    cache_trouble(p, "pod %s/%s on node %s: %s", pod_namespace(p, e), e->name, node, err.text);
    pod_instance_clear(p, pod);
    return false;
}

void task_bound(struct cache *p, uint32_t pod, const struct kube_pod *from, const char *node)
{
    struct pod_entry *e = &p->pods.at[pod];
    e->stopping = e->stopping || from->meta.deleted_ns != 0;
    e->state = POD_BOUND;
    pod_wait_free(p, pod);
    (void)task_put_on_node(p, pod, from, node, 0);
    cache_notify(p);
}

static uint64_t task_assume(struct cache *p, const struct cache_task_placement *place)
{
    uint32_t role = role_find(p, place->role);
    if (role == NONE || !p->pods.at[role].there || node_find(p, place->node) == NONE)
        return 0;
    const char *namespace = arena_strdup(&p->arena, pod_namespace(p, &p->pods.at[role]));
    const char *id = arena_fmt(&p->arena, "%s:%s", namespace, place->name);
    if (strlen(id) > BERTH_NAME_MAX || pod_find(p, id) != NONE)
        return 0;
    const struct kube_object o = {.namespace = namespace, .name = place->name, .uid = ""};
    uint32_t pod = pod_new(p, id, &o);
    struct pod_entry *e = &p->pods.at[pod];
    e->template = p->pods.at[role].template;
    p->templates.at[e->template].pods++;
    e->scheduler = p->pods.at[role].scheduler;
    e->created_ns = p->pods.at[role].created_ns;
    e->task = mem_zalloc(sizeof *e->task);
    *e->task = (struct pod_task){mem_strdup(place->role), mem_strdup(p->pods.at[role].job->owner), place->ordinal,
                                 place->attempt};
    e->wait = mem_zalloc(sizeof *e->wait);
    e->state = place->waits_len ? POD_RESERVED : POD_ASSUMED;
    if (place->waits_len) {
        e->wait->waits = mem_array(place->waits_len, sizeof *place->waits);
        memcpy(e->wait->waits, place->waits, place->waits_len * sizeof *place->waits);
        e->wait->waits_len = place->waits_len;
    }
    struct kube_pod from = pod_read(p, pod);
    bool served = place->recorded || volumes_choose(p, pod, &from, place->node);
    if (!served)
        pod_exclude_node(p, role, place->node);
    if (served && task_put_on_node(p, pod, &from, place->node, place->gpus))
        return p->pods.at[pod].instance;
    pod_forget(p, pod);
    return 0;
}

uint64_t cache_assume_task(struct cache *p, const struct cache_task_placement *place)
{
    struct arena_mark mark = arena_mark(&p->arena);
    uint64_t instance = task_assume(p, place);
    input_record(p, &(struct cache_change){
                        .op = CACHE_OP_TASK_ASSUME,
                        .id = place->role,
                        .name = place->name,
                        .node = {place->node, strlen(place->node)},
                        .ordinal = place->ordinal,
                        .attempt = place->attempt,
                        .instance = instance,
                        .gpus = place->gpus,
                        .waits = place->waits,
                        .waits_len = place->waits_len
    });
    arena_rewind(&p->arena, mark);
    return instance;
}
