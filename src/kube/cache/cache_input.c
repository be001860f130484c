/* cache_input.c - applies recorded inputs to a cache. */
#include "kube/cache/cache_input.h"

#include "kube/cache/cache_internal.h"

#define SECOND_NS INT64_C(1000000000)

enum {
    POD_META = 1,
    POD_SPEC = 2,
    POD_STATUS = 3,
    SPEC_NODE = 10,
    META_NAME = 1,
    META_NAMESPACE = 3,
    META_UID = 5,
    META_CREATED = 8,
    META_DELETED = 9,
    META_OWNERS = 13,
    OWNER_KIND = 1,
    OWNER_NAME = 3,
    OWNER_UID = 4,
    OWNER_VERSION = 5,
    OWNER_CONTROLS = 6,
    STATUS_CONDITIONS = 2,
    CONDITION_TYPE = 1,
    CONDITION_STATUS = 2,
    CONDITION_SINCE = 4,
};

/* ---- a complete pod from its template --------------------------------------------------------------------------- */

static void time_add(struct str *to, uint32_t number, int64_t ns)
{
    size_t begun = proto_begin(to, number);
    proto_add_int(to, 1, ns / SECOND_NS);
    if (ns % SECOND_NS)
        proto_add_int(to, 2, ns % SECOND_NS);
    proto_end(to, begun);
}

static void owner_add(struct str *to, const char *uid)
{
    size_t begun = proto_begin(to, META_OWNERS);
    proto_add_text(to, OWNER_KIND, "Job");
    proto_add_text(to, OWNER_UID, uid);
    proto_add_text(to, OWNER_VERSION, "berth.dev/v1");
    proto_add_int(to, OWNER_CONTROLS, 1);
    proto_end(to, begun);
}

static void own_meta_add(struct str *to, const struct cache_change *in)
{
    proto_add_text(to, META_NAME, in->object->name);
    proto_add_text(to, META_NAMESPACE, in->object->namespace);
    proto_add_text(to, META_UID, in->object->uid);
    if (in->created_ns)
        time_add(to, META_CREATED, in->created_ns);
    if (in->deleted_ns)
        time_add(to, META_DELETED, in->deleted_ns);
    if (*in->owner)
        owner_add(to, in->owner);
}

static void scheduled_add(struct str *to, int64_t since_ns)
{
    size_t begun = proto_begin(to, STATUS_CONDITIONS);
    proto_add_text(to, CONDITION_TYPE, "PodScheduled");
    proto_add_text(to, CONDITION_STATUS, "True");
    time_add(to, CONDITION_SINCE, since_ns);
    proto_end(to, begun);
}

/* Merges the pod's own fields into the template; stripping the result yields the same template. */
static void pod_merge_own_fields(const struct cache_change *in, struct str *to)
{
    struct proto_reader r = in->kept;
    struct proto_field f;
    bool told = !in->bound_ns;
    while (proto_next(&r, &f)) {
        size_t begun = proto_begin(to, f.number);
        str_add_bytes(to, f.at, f.len);
        if (f.number == POD_META)
            own_meta_add(to, in);
        else if (f.number == POD_SPEC && in->node.len)
            proto_add_bytes(to, SPEC_NODE, in->node.at, in->node.len);
        else if (f.number == POD_STATUS && !told) {
            scheduled_add(to, in->bound_ns);
            told = true;
        }
        proto_end(to, begun);
    }
    if (told)
        return;
    size_t begun = proto_begin(to, POD_STATUS);
    scheduled_add(to, in->bound_ns);
    proto_end(to, begun);
}

/* ---- an image --------------------------------------------------------------------------------------------------- */

static void waits_set(struct pod_entry *e, const struct cache_change *in)
{
    if (!in->waits_len)
        return;
    e->wait->waits = mem_array(in->waits_len, sizeof *in->waits);
    memcpy(e->wait->waits, in->waits, in->waits_len * sizeof *in->waits);
    e->wait->waits_len = in->waits_len;
}

/* Restores a recorded decision; no volumes are chosen. */
static uint64_t assumption_restore(struct cache *p, const struct cache_change *in)
{
    uint32_t pod = pod_find(p, in->id);
    if (pod == NONE || !p->pods.at[pod].wait || p->pods.at[pod].state != POD_WAITS || p->pods.at[pod].job)
        return 0;
    struct pod_entry *e = &p->pods.at[pod];
    e->state = in->waits_len ? POD_RESERVED : POD_ASSUMED;
    waits_set(e, in);
    (void)pod_instance_new(p, pod, arena_strndup(&p->arena, in->node.at, in->node.len), in->gpus);
    if (e->gang != NONE)
        gang_changed(p, e->gang);
    return p->pods.at[pod].instance;
}

static void backoff_restore(struct cache *p, const struct cache_change *in)
{
    uint32_t pod = pod_find(p, in->id);
    if (pod == NONE || !p->pods.at[pod].wait)
        return;
    p->pods.at[pod].wait->failures = in->failures;
    p->pods.at[pod].wait->begin_ns = in->moment_ns;
    for (size_t i = 0; i < in->nodes_len; i++)
        pod_exclude_node(p, pod, in->nodes[i]);
    pod_mark(p, pod);
}

static void pod_slots_add(struct cache *p, size_t len)
{
    while (p->pods.len < len) {
        vec_push(&p->pods_free, (uint32_t)p->pods.len);
        vec_push(&p->pods, (struct pod_entry){0});
    }
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* Fills in the members that a `known` input leaves out; false: there is no such pod. */
static bool known_fill(struct cache *p, struct kube_object *o, struct cache_change *in)
{
    uint32_t pod = pod_find(p, arena_fmt(&p->arena, "%s:%s", o->namespace, o->name));
    if (pod == NONE || p->pods.at[pod].template == NONE)
        return false;
    const struct pod_entry *e = &p->pods.at[pod];
    const struct template *t = &p->templates.at[e->template];
    o->uid = arena_strdup(&p->arena, e->uid);
    in->kept = proto_reader(t->bytes, t->len);
    in->created_ns = e->created_ns - e->created_ns % SECOND_NS;
    in->deleted_ns = e->deleted_ns;
    return true;
}

static bool object_apply(struct cache *p, struct cache_change in)
{
    CLEANUP(str) struct str whole = {0};
    struct kube_object o = *in.object;
    if (in.op == CACHE_OP_DROP) {
        cache_object_drop(p, in.kind, &o);
        return true;
    }
    if (in.known && !known_fill(p, &o, &in))
        return false;
    o.raw = in.kept;
    in.object = &o;
    if (in.kind == CACHE_POD) {
        pod_merge_own_fields(&in, &whole);
        o.raw = proto_reader(str_text(&whole), whole.len);
    }
    cache_object_put(p, in.kind, &o);
    return true;
}

static uint64_t placement_apply(struct cache *p, const struct cache_change *in, bool image)
{
    const char *node = arena_strndup(&p->arena, in->node.at, in->node.len);
    if (in->op == CACHE_OP_TASK_ASSUME)
        return cache_assume_task(p, &(struct cache_task_placement){.role = in->id,
                                                                   .name = in->name,
                                                                   .ordinal = in->ordinal,
                                                                   .attempt = in->attempt,
                                                                   .node = node,
                                                                   .gpus = in->gpus,
                                                                   .waits = in->waits,
                                                                   .waits_len = in->waits_len,
                                                                   .recorded = image});
    return image ? assumption_restore(p, in) : cache_assume_pod(p, in->id, node, in->gpus, in->waits, in->waits_len);
}

static bool change_apply(struct cache *p, const struct cache_change *in, bool image)
{
    switch (in->op) {
    case CACHE_OP_PUT:
    case CACHE_OP_DROP: return object_apply(p, *in);
    case CACHE_OP_SETTLE: (void)cache_cluster(p); return true;
    case CACHE_OP_ASSUME:
    case CACHE_OP_TASK_ASSUME: return placement_apply(p, in, image) == in->instance;
    case CACHE_OP_PROMOTE: (void)cache_promote_pod(p, in->instance); return true;
    case CACHE_OP_FORGET: cache_forget_pod(p, in->instance, in->moment_ns); return true;
    case CACHE_OP_STOPPING: cache_set_stopping(p, in->instance, in->stopping); return true;
    case CACHE_OP_ROLE_PUT:
        return cache_role_put(p, &(struct cache_job_role){in->id, in->namespace, in->owner, in->kept});
    case CACHE_OP_ROLE_DROP: cache_role_drop(p, in->id); return true;
    case CACHE_OP_ROLE_CHANGED: cache_role_changed(p, in->id); return true;
    case CACHE_OP_TASK_SUCCEEDED: cache_task_succeeded(p, in->id, in->ordinal); return p->instances == in->instance;
    case CACHE_OP_TASKS_RERUN: cache_tasks_rerun(p, in->id); return true;
    case CACHE_OP_BACKOFF: backoff_restore(p, in); return true;
    case CACHE_OP_VOLUMES: volumes_restore(p, in->id, in->volumes, in->volumes_len); return true;
    case CACHE_OP_IMAGE_END:
        p->instances = in->instance;
        pod_slots_add(p, in->places);
        cache_refill_cluster(p);
        return true;
    case CACHE_OP_REPORTED:
    case CACHE_OPS: break;
    }
    return true;
}

bool cache_change_apply(struct cache *p, const struct cache_change *in, bool image)
{
    struct arena_mark mark = arena_mark(&p->arena);
    if (image && in->instance && in->op != CACHE_OP_IMAGE_END)
        p->instances = in->instance - 1;
    bool same = change_apply(p, in, image);
    arena_rewind(&p->arena, mark);
    return same;
}
