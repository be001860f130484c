/* cache_pod.c - entries of pods, and their workloads and instances in the cluster. */
#include <assert.h>

#include "base/hash.h"
#include "kube/cache/cache_internal.h"

#define SECOND_NS INT64_C(1000000000)

/* ---- lookup ----------------------------------------------------------------------------------------------------- */

static bool pod_same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct cache *)ctx)->pods.at[value].id, key) == 0;
}

static bool instance_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct cache *)ctx)->pods.at[value].instance == *(const uint64_t *)key;
}

static uint64_t id_hash(const char *id)
{
    return hash_bytes(id, strlen(id), 0);
}

uint32_t pod_find(const struct cache *p, const char *id)
{
    return map_find(&p->pods_by_id, id_hash(id), pod_same, p, id);
}

uint32_t pod_by_instance(const struct cache *p, uint64_t instance)
{
    return instance ? map_find(&p->pods_by_instance, hash_u64(instance), instance_same, p, &instance) : NONE;
}

/* "namespace:name": a namespace contains no colon. */
static const char *id_of(struct cache *p, const struct kube_object *o)
{
    if (strlen(o->namespace) + strlen(o->name) + 1 > BERTH_NAME_MAX)
        return arena_strdup(&p->arena, o->uid);
    return arena_fmt(&p->arena, "%s:%s", o->namespace, o->name);
}

static void own_fields_add(const struct cache *p, const struct pod_entry *e, struct kube_pod *to)
{
    to->meta.namespace = pod_namespace(p, e);
    to->meta.name = e->name;
    to->meta.uid = e->uid;
    to->meta.created_ns = e->created_ns;
    to->meta.deleted_ns = e->deleted_ns;
}

struct kube_pod pod_read(struct cache *p, uint32_t pod)
{
    const struct pod_entry *e = &p->pods.at[pod];
    const struct template *t = &p->templates.at[e->template];
    struct kube_pod from;
    bool ok = kube_pod_read(&p->arena, proto_reader(t->bytes, t->len), &from);
    assert(ok); /* it was parsed when the pod came */
    (void)ok;
    own_fields_add(p, e, &from);
    return from;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

void pod_text_set(char **text, const char *at, size_t len)
{
    mem_free(*text);
    *text = len ? mem_alloc(len + 1) : NULL;
    if (len) {
        memcpy(*text, at, len);
        (*text)[len] = 0;
    }
}

void pod_wait_free(struct cache *p, uint32_t pod)
{
    struct pod_entry *e = &p->pods.at[pod];
    if (!e->wait)
        return;
    volumes_forget(p, pod);
    pod_clear_excluded_nodes(e->wait);
    mem_free(e->wait->told);
    mem_free(e->wait->nominated);
    mem_free(e->wait->why);
    mem_free(e->wait->waits);
    mem_free(e->wait);
    e->wait = NULL;
}

uint32_t pod_new(struct cache *p, const char *id, const struct kube_object *o)
{
    uint32_t i;
    if (p->pods_free.len) {
        i = p->pods_free.at[--p->pods_free.len];
    } else {
        i = (uint32_t)p->pods.len;
        vec_push(&p->pods, (struct pod_entry){0});
    }
    size_t len = strlen(id) + 1, space = strlen(o->namespace), uid_len = strlen(o->uid) + 1;
    bool within = len == space + strlen(o->name) + 2; /* "namespace:name" */
    char *at = mem_alloc(len + uid_len + (within ? 0 : strlen(o->name) + 1));
    struct pod_entry e = {.id = at, .node = NONE, .gang = NONE, .template = NONE};
    /* creationTimestamp has seconds: within a second, the resourceVersion of the first event orders pods. */
    e.created_ns = (int64_t)(o->version % (uint64_t)SECOND_NS);
    memcpy(at, id, len);
    e.uid = memcpy(at + len, o->uid, uid_len);
    e.name = within ? at + space + 1 : memcpy(at + len + uid_len, o->name, strlen(o->name) + 1);
    e.namespace = intern_put(&p->names, o->namespace);
    p->pods.at[i] = e;
    map_add(&p->pods_by_id, id_hash(id), i);
    return i;
}

/* ---- instances -------------------------------------------------------------------------------------------------- */

void pod_instance_clear(struct cache *p, uint32_t pod)
{
    struct pod_entry *e = &p->pods.at[pod];
    if (!e->instance)
        return;
    map_drop(&p->pods_by_instance, hash_u64(e->instance), pod);
    (void)berth_instance_remove(p->cluster, e->instance, NULL);
    if (e->holds)
        node_attachments_mark(p, p->nodes.at[e->node].name);
    e->instance = 0;
    node_leave(p, e->node);
    e->node = NONE;
}

static enum berth_state state_of(const struct pod_entry *e)
{
    return e->stopping                ? BERTH_STOPPING
           : e->state == POD_RESERVED ? BERTH_RESERVED
           : e->state == POD_BOUND    ? BERTH_RUNNING
                                      : BERTH_ASSIGNED;
}

/* `shape`: what the instance holds from now on; NULL: unchanged, or the workload's shape for a new instance. */
int pod_instance_put(struct cache *p, const struct pod_entry *e, uint64_t gpus, const struct berth_shape *shape,
                     struct berth_err *err)
{
    bool reserved = e->state == POD_RESERVED && e->wait;
    struct berth_instance i = {.id = e->instance,
                               .workload = e->task ? task_workload(p, e->task) : e->id,
                               .ordinal = e->task ? e->task->ordinal : 0,
                               .node = p->nodes.at[e->node].name,
                               .state = state_of(e),
                               .ready = e->state == POD_BOUND,
                               .since_ns = e->state == POD_BOUND ? pod_began_ns(e) : e->created_ns,
                               .gpus = gpus,
                               .found = e->state == POD_BOUND,
                               .waits = reserved ? e->wait->waits : NULL,
                               .waits_len = reserved ? e->wait->waits_len : 0,
                               .shape = shape};
    if (e->holds)
        node_attachments_mark(p, i.node);
    return berth_instance_put(p->cluster, &i, err);
}

/* Creates an instance on the node with the workload's present class. */
bool pod_instance_new(struct cache *p, uint32_t pod, const char *node, uint64_t gpus)
{
    struct pod_entry *e = &p->pods.at[pod];
    struct berth_err err = {0};
    e->node = node_enter(p, node);
    e->instance = ++p->instances;
    map_add(&p->pods_by_instance, hash_u64(e->instance), pod);
    if (pod_instance_put(p, e, gpus, NULL, &err) == 0)
        return true;
    cache_trouble(p, "pod %s/%s on node %s: %s", pod_namespace(p, e), e->name, node, err.text);
    pod_instance_clear(p, pod);
    return false;
}

/* ---- from pod to cluster ---------------------------------------------------------------------------------------- */

static void why_set(struct pod_entry *e, const char *why)
{
    if (e->wait)
        pod_text_set(&e->wait->why, why ? why : "", why ? strlen(why) : 0);
}

/* Puts the workload into the cluster. If the cluster rejects it, a waiting pod waits with the error as reason; a pod
 * with a node counts with its resources only. */
static bool workload_put(struct cache *p, uint32_t pod, const struct kube_pod *from, struct berth_shape *ret_shape)
{
    struct pod_entry *e = &p->pods.at[pod];
    bool settled = e->state >= POD_ASSUMED;
    static const struct berth_term nowhere = {0};
    struct berth_err err = {0};
    topic_leave_all(p, pod);
    struct shaped_pod shaped = shape_pod(p, pod, from, settled);
    e = &p->pods.at[pod];
    if (e->job)
        role_claim(p, pod, &shaped);
    e->payer = usage_payer_of(p, &shaped.workload);
    why_set(e, shaped.why);
    if (berth_workload_put(p->cluster, &shaped.workload, &err) == 0) {
        *ret_shape = shaped.workload.shape;
        return true;
    }
    struct berth_workload bare = {.id = e->id,
                                  .kind = BERTH_JOB,
                                  .replicas = shaped.workload.replicas,
                                  .priority = from->priority,
                                  .created_ns = from->meta.created_ns};
    if (settled) {
        bare.shape.requests = shaped.workload.shape.requests;
        bare.shape.requests_len = shaped.workload.shape.requests_len;
        cache_trouble(p, "pod %s/%s counts with its resource requests only: %s", pod_namespace(p, e), e->name,
                      err.text);
    } else {
        bare.shape.require = &nowhere;
        bare.shape.require_len = 1;
        why_set(e, err.text);
    }
    *ret_shape = bare.shape;
    return berth_workload_put(p->cluster, &bare, &err) == 0;
}

static void workload_clear(struct cache *p, uint32_t pod)
{
    if (p->pods.at[pod].there)
        (void)berth_workload_remove(p->cluster, p->pods.at[pod].id, NULL);
    p->pods.at[pod].there = false;
}

/* The instance, if any, keeps its id and node and gets the pod's present shape. */
void pod_refresh_now(struct cache *p, uint32_t pod, const struct kube_pod *from)
{
    struct berth_shape shape;
    struct berth_err err = {0};
    if (p->pods.at[pod].task) {
        task_refresh(p, pod, from);
        return;
    }
    bool anew = !p->pods.at[pod].there;
    p->pods.at[pod].there = workload_put(p, pod, from, &shape);
    const struct pod_entry *e = &p->pods.at[pod];
    if (e->job && anew)
        role_restore_ended(p, pod);
    if (e->instance && e->there && pod_instance_put(p, e, 0, &shape, &err) < 0)
        cache_trouble(p, "pod %s/%s: %s", pod_namespace(p, e), e->name, err.text);
}

void pod_refresh(struct cache *p, uint32_t pod)
{
    struct kube_pod from = pod_read(p, pod);
    if (p->pods.at[pod].state == POD_WAITS && p->pods.at[pod].gated) {
        topic_leave_all(p, pod);
        workload_clear(p, pod);
        return;
    }
    pod_refresh_now(p, pod, &from);
}

void pod_mark(struct cache *p, uint32_t pod)
{
    struct pod_entry *e = &p->pods.at[pod];
    if (!e->marked)
        vec_push(&p->marked, pod);
    e->marked = true;
    cache_notify(p);
}

void pod_forget(struct cache *p, uint32_t pod)
{
    if (p->pods.at[pod].job)
        usage_role_removed(p, pod);
    else
        usage_pod_ended(p, pod);
    pod_instance_clear(p, pod);
    workload_clear(p, pod);
    topic_leave_all(p, pod);
    gang_leave(p, pod);
    struct pod_entry *e = &p->pods.at[pod];
    pod_wait_free(p, pod);
    map_drop(&p->pods_by_id, id_hash(e->id), pod);
    job_parts_free(p, e);
    p->forgotten++;
    mem_free(e->id);
    if (e->template != NONE)
        template_leave(p, e->template);
    bool marked = e->marked;
    *e = (struct pod_entry){.marked = marked}; /* cache_cluster skips a marked free entry and then frees its slot */
    if (!marked)
        vec_push(&p->pods_free, pod);
    cache_notify(p);
}

/* ---- watch events ----------------------------------------------------------------------------------------------- */

const char *pod_scheduler(const struct cache *p, const char *name)
{
    for (size_t i = 0; i < p->config.schedulers_len; i++)
        if (strcmp(p->config.schedulers[i], name) == 0)
            return p->config.schedulers[i];
    return NULL;
}

/* Copies the status fields that do not affect placement; no plan is requested for them. */
static void status_update(struct pod_entry *e, const struct kube_pod_facts *status)
{
    if (!e->wait)
        return;
    pod_text_set(&e->wait->nominated, status->nominated.at, status->nominated.len);
    if (!e->wait->told_ns)
        pod_text_set(&e->wait->told, status->refusal.at, status->refusal.len);
}

/* The API server reports the pod bound to this node. A pod that was assumed there needs no update. */
static void pod_bound(struct cache *p, uint32_t pod, const struct kube_pod *from, const char *node)
{
    struct pod_entry *e = &p->pods.at[pod];
    if (e->task) {
        task_bound(p, pod, from, node);
        return;
    }
    bool stopping = from->meta.deleted_ns != 0 || (e->state == POD_BOUND && e->stopping);
    bool here = e->instance && strcmp(p->nodes.at[e->node].name, node) == 0;
    bool expected = here && e->state == POD_ASSUMED && e->stopping == stopping && from->mounts.len == 0;
    if (!here)
        pod_instance_clear(p, pod);
    e->state = POD_BOUND;
    e->stopping = stopping;
    pod_wait_free(p, pod);
    if (expected) {
        if (e->payer) /* its usage is charged from now on */
            (void)pod_instance_put(p, e, 0, NULL, NULL);
        return;
    }
    pod_refresh_now(p, pod, from);
    if (!here && p->pods.at[pod].there)
        (void)pod_instance_new(p, pod, node, 0);
    cache_notify(p);
}

static void pod_apply(struct cache *p, uint32_t pod, struct kube_pod *from, const struct kube_pod_facts *facts)
{
    struct pod_entry *e = &p->pods.at[pod];
    uint32_t old = e->template;
    e->template = template_take(p, &p->stripped);
    if (old != NONE)
        template_leave(p, old);
    e->created_ns = facts->created_ns + e->created_ns % SECOND_NS;
    e->deleted_ns = facts->deleted_ns;
    e->bound_ns = facts->bound_ns;
    own_fields_add(p, e, from);
    e->scheduler = pod_scheduler(p, from->scheduler);
    e->gated = from->gated;
    if (!facts->node.len && !e->wait)
        e->wait = mem_zalloc(sizeof *e->wait);
    if (*from->group && e->gang == NONE && !e->task)
        gang_join(p, pod, from);
    if (facts->node.len) {
        pod_bound(p, pod, from, arena_strndup(&p->arena, facts->node.at, facts->node.len));
    } else {
        pod_mark(p, pod); /* updated once, however many changes come together */
    }
    if (p->pods.at[pod].gang != NONE)
        gang_changed(p, p->pods.at[pod].gang);
}

/* Reports whether nothing that affects placement has changed. */
static bool pod_unchanged(const struct cache *p, const struct pod_entry *e, const struct kube_pod_facts *facts)
{
    const struct template *t = &p->templates.at[e->template];
    bool bound = e->state == POD_BOUND;
    return t->len == p->stripped.len && memcmp(t->bytes, str_text(&p->stripped), t->len) == 0 &&
           e->deleted_ns == facts->deleted_ns && bound == (facts->node.len > 0) &&
           (!bound || (e->node != NONE && proto_is(facts->node, p->nodes.at[e->node].name)));
}

/* Reports whether the pod is ours to place, or holds resources on a node. */
static bool pod_is_relevant(const struct cache *p, const struct kube_pod *from, const struct kube_pod_facts *facts)
{
    return !facts->ended && (facts->node.len || (!facts->deleted_ns && pod_scheduler(p, from->scheduler)));
}

/* The resources reported by the node are kept only while a resize makes them differ: every started pod has them. */
bool pod_strip(struct cache *p, struct proto_reader raw, const struct kube_pod_facts *facts)
{
    struct kube_pod pod;
    str_clear(&p->stripped);
    if (facts->node.len && facts->resources && kube_strip(raw, &kube_keep_pod_resized, &p->stripped) &&
        kube_pod_read(&p->arena, proto_reader(str_text(&p->stripped), p->stripped.len), &pod) &&
        kube_pod_resizing(&p->arena, &pod))
        return true;
    str_clear(&p->stripped);
    return kube_strip(raw, &kube_keep_pod, &p->stripped);
}

/* Reports whether all of the pod's own fields except its node are unchanged. */
static bool is_known(const struct cache *p, uint32_t pod, const struct kube_pod_facts *facts)
{
    if (pod == NONE || p->pods.at[pod].template == NONE)
        return false;
    const struct pod_entry *e = &p->pods.at[pod];
    const struct template *t = &p->templates.at[e->template];
    return strcmp(e->id, e->uid) != 0 && t->len == p->stripped.len &&
           memcmp(t->bytes, str_text(&p->stripped), t->len) == 0 && e->deleted_ns == facts->deleted_ns &&
           e->created_ns - e->created_ns % SECOND_NS == facts->created_ns;
}

/* Records the input. A pod that neither waits for us nor holds resources is recorded as deleted. `pod`: its entry, or
 * NONE if new. */
static void put_record(struct cache *p, uint32_t pod, const struct kube_object *o, const struct kube_pod *from,
                       const struct kube_pod_facts *facts, bool matters)
{
    bool of_job = matters && p->config.task && kube_labels_find(&from->meta.labels, KUBE_JOB_LABEL);
    if (p->config.input)
        p->config.input(p->config.ctx,
                        &(struct cache_change){.op = matters ? CACHE_OP_PUT : CACHE_OP_DROP,
                                               .kind = CACHE_POD,
                                               .object = o,
                                               .kept = proto_reader(str_text(&p->stripped), p->stripped.len),
                                               .known = !of_job && is_known(p, pod, facts),
                                               .created_ns = facts->created_ns,
                                               .deleted_ns = facts->deleted_ns,
                                               .bound_ns = facts->bound_ns,
                                               .node = facts->node,
                                               .owner = of_job ? task_owner(p, o->raw) : ""});
}

void pod_put(struct cache *p, const struct kube_object *o)
{
    const char *id = id_of(p, o);
    uint32_t pod = pod_find(p, id);
    bool known = pod != NONE;
    struct kube_pod_facts facts;
    struct kube_pod from;
    bool ok = kube_pod_facts_read(o->raw, &facts) && pod_strip(p, o->raw, &facts);
    if (ok && pod != NONE && p->pods.at[pod].task && !*p->pods.at[pod].uid)
        pod = task_pod_appeared(p, pod, o);
    if (ok && pod != NONE && strcmp(p->pods.at[pod].uid, o->uid) != 0) { /* a new pod of the same name */
        pod_forget(p, pod);
        pod = NONE;
    }
    if (ok && pod != NONE && !facts.ended && pod_unchanged(p, &p->pods.at[pod], &facts)) {
        status_update(&p->pods.at[pod], &facts);
        if (p->pods.at[pod].task)
            task_report(p, o);
        return;
    }
    if (!ok || !kube_pod_read(&p->arena, proto_reader(str_text(&p->stripped), p->stripped.len), &from)) {
        cache_trouble(p, "pod %s/%s is malformed; keeping its previous version", o->namespace, o->name);
        return;
    }
    bool matters = pod_is_relevant(p, &from, &facts);
    if (matters || known)
        put_record(p, pod, o, &from, &facts, matters);
    if (matters) {
        if (pod == NONE) {
            pod = pod_new(p, id, o);
            if (facts.node.len)
                task_detect(p, pod, &from, o);
        }
        pod_apply(p, pod, &from, &facts);
        status_update(&p->pods.at[pod], &facts);
    } else if (pod != NONE) {
        pod_forget(p, pod);
    }
    if (p->config.task && kube_labels_find(&from.meta.labels, KUBE_JOB_LABEL))
        task_report(p, o);
}

void pod_drop(struct cache *p, const struct kube_object *o)
{
    uint32_t pod = pod_find(p, id_of(p, o));
    if (pod == NONE)
        return;
    task_report_removed(p, &p->pods.at[pod]);
    input_record(p, &(struct cache_change){.op = CACHE_OP_DROP, .kind = CACHE_POD, .object = o});
    pod_forget(p, pod);
}

void pods_refill(struct cache *p)
{
    for (uint32_t i = 0; i < p->pods.len; i++) {
        struct arena_mark mark = arena_mark(&p->arena);
        p->pods.at[i].there = false;
        if (p->pods.at[i].id)
            pod_refresh(p, i);
        arena_rewind(&p->arena, mark);
    }
}

void pods_done(struct cache *p)
{
    for (uint32_t i = 0; i < p->pods.len; i++) {
        struct pod_entry *e = &p->pods.at[i];
        pod_wait_free(p, i);
        job_parts_free(p, e);
        mem_free(e->id);
        mem_free(e->topics);
    }
    vec_done(&p->pods);
    vec_done(&p->pods_free);
    vec_done(&p->marked);
    map_done(&p->pods_by_id);
    map_done(&p->pods_by_instance);
}
