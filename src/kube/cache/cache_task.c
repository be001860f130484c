/* cache_task.c - pods of jobs as reported by the API server: their job, role, ordinal and phase. */
#include <string.h>

#include "kube/cache/cache_internal.h"

/* ---- labels and owner ------------------------------------------------------------------------------------------- */

enum {
    META_OWNERS = 13,
    OWNER_KIND = 1,
    OWNER_UID = 4,
    OWNER_VERSION = 5,
    OWNER_CONTROLS = 6,
    POD_META = 1,
    POD_SPEC = 2,
    POD_STATUS = 3,
    SPEC_NODE = 10,
    STATUS_PHASE = 1,
    STATUS_MESSAGE = 3,
    STATUS_REASON = 4,
    STATUS_CONTAINERS = 8,
    CONTAINER_NAME = 1,
    CONTAINER_STATE = 2,
    STATE_TERMINATED = 3,
    TERMINATED_EXIT = 1,
    TERMINATED_REASON = 3,
};

static bool number_of(const struct kube_meta *meta, const char *key, uint32_t least, uint32_t *ret)
{
    const char *text = kube_labels_find(&meta->labels, key);
    int64_t number;
    if (!text || !str_parse_i64(text, &number) || number < least || number >= BERTH_REPLICAS_MAX)
        return false;
    *ret = (uint32_t)number;
    return true;
}

/* Reads the task from the pod's labels and owner; false: the pod is no task. */
static bool task_of(const struct kube_meta *meta, struct cache_task_view *ret)
{
    const char *job = kube_labels_find(&meta->labels, KUBE_JOB_LABEL);
    const char *role = kube_labels_find(&meta->labels, KUBE_ROLE_LABEL);
    if (!job || !role || !*meta->controller || !number_of(meta, KUBE_INDEX_LABEL, 0, &ret->ordinal) ||
        !number_of(meta, KUBE_ATTEMPT_LABEL, 1, &ret->attempt) ||
        strlen(meta->namespace) + strlen(job) + strlen(role) + 2 + 1 + strlen(meta->controller) > BERTH_NAME_MAX)
        return false;
    ret->namespace = meta->namespace;
    ret->job = job;
    ret->role = role;
    ret->owner = meta->controller;
    ret->name = meta->name;
    ret->uid = meta->uid;
    ret->leaves = meta->deleted_ns != 0;
    return true;
}

/* Returns the uid of the job that created the pod; "" if none did. */
static const char *job_of(struct cache *p, struct proto_reader meta)
{
    static const char group[] = "berth.dev/";
    struct kube_decoder in = {.arena = &p->arena};
    struct proto_field f, g;
    while (proto_next(&meta, &f)) {
        struct proto_reader owner = f.number == META_OWNERS ? proto_sub(&f) : proto_reader(NULL, 0);
        bool kind = false, version = false, controls = false;
        const char *uid = "";
        while (proto_next(&owner, &g)) {
            struct proto_text text = proto_text(&g);
            if (g.number == OWNER_KIND)
                kind = proto_is(text, "Job");
            else if (g.number == OWNER_VERSION)
                version = text.len >= strlen(group) && memcmp(text.at, group, strlen(group)) == 0;
            else if (g.number == OWNER_CONTROLS)
                controls = proto_bool(&g);
            else if (g.number == OWNER_UID)
                uid = kube_text(&in, &g);
        }
        if (kind && version && controls)
            return uid;
    }
    return "";
}

static struct kube_meta meta_of(struct cache *p, struct proto_reader raw)
{
    struct kube_decoder in = {.arena = &p->arena};
    struct kube_meta meta = KUBE_META_NONE;
    struct proto_field f;
    while (proto_next(&raw, &f))
        if (f.number == POD_META) {
            meta = kube_meta_read(&in, &f);
            meta.controller = job_of(p, proto_sub(&f));
        }
    return meta;
}

const char *task_owner(struct cache *p, struct proto_reader raw)
{
    return meta_of(p, raw).controller;
}

static const char *role_id(struct cache *p, const struct cache_task_view *t)
{
    return arena_fmt(&p->arena, "%s:%s:%s", t->namespace, t->job, t->role);
}

uint32_t task_pod_appeared(struct cache *p, uint32_t pod, const struct kube_object *o)
{
    struct pod_entry *e = &p->pods.at[pod];
    struct kube_meta meta = meta_of(p, o->raw);
    struct cache_task_view t = {0};
    if (!task_of(&meta, &t) || strcmp(t.owner, e->task->owner) != 0 || strcmp(role_id(p, &t), e->task->role) != 0 ||
        t.ordinal != e->task->ordinal || t.attempt != e->task->attempt) {
        pod_forget(p, pod);
        return NONE;
    }
    size_t len = strlen(e->id) + 1, uid_len = strlen(o->uid) + 1;
    size_t name = (size_t)(e->name - e->id);
    char *at = mem_alloc(len + uid_len);
    memcpy(at, e->id, len);
    e->uid = memcpy(at + len, o->uid, uid_len);
    e->name = at + name; /* "namespace:name" */
    mem_free(e->id);
    e->id = at;
    return pod;
}

void task_detect(struct cache *p, uint32_t pod, const struct kube_pod *from, const struct kube_object *o)
{
    struct cache_task_view t = {0};
    if (!p->config.task || !kube_labels_find(&from->meta.labels, KUBE_JOB_LABEL))
        return;
    struct kube_meta meta = meta_of(p, o->raw);
    if (!task_of(&meta, &t))
        return;
    struct pod_entry *e = &p->pods.at[pod];
    e->task = mem_zalloc(sizeof *e->task);
    *e->task = (struct pod_task){mem_strdup(role_id(p, &t)), mem_strdup(t.owner), t.ordinal, t.attempt};
}

/* ---- status ----------------------------------------------------------------------------------------------------- */

/* Returns a text like "container main ended with status 3 (OOMKilled)"; NULL if the container did not fail. */
static const char *container_end(struct cache *p, struct proto_reader status)
{
    struct kube_decoder in = {.arena = &p->arena};
    struct proto_field f, g, h;
    const char *name = "", *reason = "";
    int64_t code = 0;
    while (proto_next(&status, &f)) {
        if (f.number == CONTAINER_NAME)
            name = kube_text(&in, &f);
        struct proto_reader state = f.number == CONTAINER_STATE ? proto_sub(&f) : proto_reader(NULL, 0);
        while (proto_next(&state, &g)) {
            struct proto_reader end = g.number == STATE_TERMINATED ? proto_sub(&g) : proto_reader(NULL, 0);
            while (proto_next(&end, &h)) {
                if (h.number == TERMINATED_EXIT)
                    code = proto_int(&h);
                else if (h.number == TERMINATED_REASON)
                    reason = kube_text(&in, &h);
            }
        }
    }
    if (!code)
        return NULL;
    bool plain = !*reason || strcmp(reason, "Error") == 0;
    return arena_fmt(&p->arena, "container %s exited with code %lld%s%s%s", name, (long long)code, plain ? "" : " (",
                     plain ? "" : reason, plain ? "" : ")");
}

static void status_read(struct cache *p, struct proto_reader status, struct cache_task_view *t)
{
    struct kube_decoder in = {.arena = &p->arena};
    struct proto_field f;
    const char *message = "", *reason = "", *container = NULL;
    while (proto_next(&status, &f)) {
        struct proto_text text = proto_text(&f);
        if (f.number == STATUS_PHASE)
            t->phase = proto_is(text, "Succeeded") ? CACHE_TASK_SUCCEEDED
                       : proto_is(text, "Failed")  ? CACHE_TASK_FAILED
                       : proto_is(text, "Running") ? CACHE_TASK_RUNNING
                                                   : CACHE_TASK_PENDING;
        else if (f.number == STATUS_MESSAGE)
            message = kube_text(&in, &f);
        else if (f.number == STATUS_REASON)
            reason = kube_text(&in, &f);
        else if (f.number == STATUS_CONTAINERS && !container)
            container = container_end(p, proto_sub(&f));
    }
    if (t->phase == CACHE_TASK_FAILED)
        t->why = *message ? message : *reason ? reason : container ? container : "";
}

void task_report(struct cache *p, const struct kube_object *o)
{
    struct kube_decoder in = {.arena = &p->arena};
    struct cache_task_view t = {.node = "", .why = ""};
    struct kube_meta meta = meta_of(p, o->raw);
    struct proto_reader raw = o->raw;
    struct proto_field f, g;
    if (!p->config.task || !task_of(&meta, &t))
        return;
    while (proto_next(&raw, &f)) {
        if (f.number == POD_STATUS)
            status_read(p, proto_sub(&f), &t);
        struct proto_reader spec = f.number == POD_SPEC ? proto_sub(&f) : proto_reader(NULL, 0);
        while (proto_next(&spec, &g))
            if (g.number == SPEC_NODE)
                t.node = kube_text(&in, &g);
    }
    if (*t.node)
        p->config.task(p->config.ctx, &t);
}

void task_report_removed(struct cache *p, const struct pod_entry *e)
{
    if (!p->config.task || !e->task || !*e->uid)
        return;
    const char *namespace = pod_namespace(p, e), *job = e->task->role + strlen(namespace) + 1;
    const char *role = strrchr(e->task->role, ':') + 1;
    p->config.task(p->config.ctx,
                   &(struct cache_task_view){.namespace = namespace,
                                             .job = arena_strndup(&p->arena, job, (size_t)(role - job) - 1),
                                             .role = role,
                                             .owner = e->task->owner,
                                             .name = e->name,
                                             .uid = e->uid,
                                             .node = e->node == NONE ? "" : p->nodes.at[e->node].name,
                                             .ordinal = e->task->ordinal,
                                             .attempt = e->task->attempt,
                                             .phase = CACHE_TASK_GONE,
                                             .why = ""});
}
