/* job_cache.c - jobs and their pods as the watches report them, and the state derived from them. */
#include <string.h>

#include "base/hash.h"
#include "kube/job/job_internal.h"

/* ---- lookup ----------------------------------------------------------------------------------------------------- */

static uint64_t text_hash(const char *text)
{
    return hash_bytes(text, strlen(text), 0);
}

static bool key_same(const void *ctx, uint32_t value, const void *key)
{
    return strcmp(((const struct kube_jobs *)ctx)->jobs.at[value]->key, key) == 0;
}

static bool uid_same(const void *ctx, uint32_t value, const void *uid)
{
    return strcmp(((const struct kube_jobs *)ctx)->jobs.at[value]->uid, uid) == 0;
}

struct job_entry *job_find(const struct kube_jobs *k, const char *key)
{
    uint32_t i = map_find(&k->by_key, text_hash(key), key_same, k, key);
    return i == MAP_NONE ? NULL : k->jobs.at[i];
}

struct job_entry *job_by_uid(const struct kube_jobs *k, const char *uid)
{
    uint32_t i = map_find(&k->by_uid, text_hash(uid), uid_same, k, uid);
    return i == MAP_NONE ? NULL : k->jobs.at[i];
}

struct job_entry *job_of_role(struct kube_jobs *k, const char *role, uint32_t *ret_role)
{
    const char *last = strrchr(role, ':');
    if (!last || last == strchr(role, ':'))
        return NULL; /* "namespace:name" is a plain pod */
    CLEANUP(str) struct str key = {0};
    str_add_bytes(&key, role, (size_t)(last - role));
    struct job_entry *j = job_find(k, key.at);
    for (uint32_t i = 0; j && i < j->roles.len; i++)
        if (strcmp(j->roles.at[i].id, role) == 0) {
            *ret_role = i;
            return j;
        }
    return NULL;
}

void job_dirty(struct job_entry *j)
{
    j->dirty = true;
    j->k->c.changed(j->k->c.ctx);
}

void job_text_set(char **text, const char *value)
{
    char *copy = value ? mem_strdup(value) : NULL;
    mem_free(*text);
    *text = copy;
}

void job_event(const struct job_entry *j, bool warning, const char *reason, const char *action, const char *note)
{
    if (j->k->c.events && j->known)
        kube_events_add(j->k->c.events, &(struct kube_event){.kind = "Job",
                                                             .api_version = "berth.dev/v1",
                                                             .namespace = j->spec.namespace,
                                                             .name = j->spec.name,
                                                             .uid = j->uid,
                                                             .warning = warning,
                                                             .reason = reason,
                                                             .action = action,
                                                             .note = note});
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

void job_roles_changed(struct job_entry *j)
{
    for (size_t i = 0; i < j->roles.len; i++)
        cache_role_changed(j->k->c.cache, j->roles.at[i].id);
}

static void role_done(struct job_entry *j, struct job_role *role)
{
    cache_role_drop(j->k->c.cache, role->id);
    job_stem_drop(j, role);
    mem_free(role->id);
    mem_free(role->tasks);
    mem_free(role->pod);
}

void job_roles_drop(struct job_entry *j)
{
    for (size_t i = 0; i < j->roles.len; i++) {
        cache_role_drop(j->k->c.cache, j->roles.at[i].id);
        j->roles.at[i].shaped = false;
    }
}

void job_note_first_end(struct job_entry *j)
{
    struct kube_jobs *k = j->k;
    if (j->first_dry_run) {
        j->first_dry_run = false;
        k->firsts--;
    }
    if (k->synced || !k->known || k->firsts)
        return;
    k->synced = true;
    k->c.synced(k->c.ctx);
}

static void pod_done(struct task_pod *pod)
{
    mem_free(pod->name);
    mem_free(pod->uid);
    mem_free(pod->why);
    mem_free(pod->role_name);
    job_claims_forget(pod);
    vec_done(&pod->claims);
}

static struct job_entry *job_new(struct kube_jobs *k, const char *uid)
{
    struct job_entry *j = mem_zalloc(sizeof *j);
    j->k = k;
    j->uid = mem_strdup(uid);
    j->attempt = 1;
    arena_init(&j->arena);
    map_add(&k->by_uid, text_hash(uid), (uint32_t)k->jobs.len);
    vec_push(&k->jobs, j);
    return j;
}

/* Updates the indices after a job has moved within the vector. */
static void job_move(struct kube_jobs *k, uint32_t from, uint32_t to)
{
    struct job_entry *j = k->jobs.at[from];
    map_drop(&k->by_uid, text_hash(j->uid), from);
    map_add(&k->by_uid, text_hash(j->uid), to);
    if (j->key) {
        map_drop(&k->by_key, text_hash(j->key), from);
        map_add(&k->by_key, text_hash(j->key), to);
    }
    k->jobs.at[to] = j;
}

void job_free(struct job_entry *j)
{
    for (size_t i = 0; i < j->roles.len; i++)
        role_done(j, &j->roles.at[i]);
    for (size_t i = 0; i < j->pods.len; i++)
        pod_done(&j->pods.at[i]);
    vec_done(&j->roles);
    vec_done(&j->pods);
    map_done(&j->pods_by_name);
    arena_done(&j->arena);
    json_decref(j->object);
    json_decref(j->status);
    mem_free(j->key);
    mem_free(j->uid);
    mem_free(j->refused);
    mem_free(j->waits);
    mem_free(j->end_reason);
    mem_free(j->end_text);
    mem_free(j);
}

static void job_remove(struct job_entry *j)
{
    struct kube_jobs *k = j->k;
    uint32_t i = map_find(&k->by_uid, text_hash(j->uid), uid_same, k, j->uid), last = (uint32_t)k->jobs.len - 1;
    map_drop(&k->by_uid, text_hash(j->uid), i);
    if (j->key)
        map_drop(&k->by_key, text_hash(j->key), i);
    if (i != last)
        job_move(k, last, i);
    k->jobs.len--;
    k->stats.jobs -= j->there;
    job_note_first_end(j);
    job_free(j);
    k->c.changed(k->c.ctx);
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

static bool pod_same(const void *ctx, uint32_t value, const void *name)
{
    return strcmp(((const struct job_entry *)ctx)->pods.at[value].name, name) == 0;
}

static uint32_t role_named(const struct job_entry *j, const char *name)
{
    for (uint32_t i = 0; i < j->roles.len; i++)
        if (strcmp(j->spec.roles[i].name, name) == 0)
            return i;
    return NONE_ROLE;
}

static void pod_drop(struct job_entry *j, uint32_t i)
{
    uint32_t last = (uint32_t)j->pods.len - 1;
    map_drop(&j->pods_by_name, text_hash(j->pods.at[i].name), i);
    pod_done(&j->pods.at[i]);
    if (i != last) {
        map_drop(&j->pods_by_name, text_hash(j->pods.at[last].name), last);
        map_add(&j->pods_by_name, text_hash(j->pods.at[last].name), i);
        j->pods.at[i] = j->pods.at[last];
    }
    j->pods.len--;
}

static void pod_see(struct job_entry *j, uint32_t i, const struct cache_task_view *t)
{
    if (i == MAP_NONE) {
        i = (uint32_t)j->pods.len;
        vec_push(&j->pods,
                 ((struct task_pod){
                     .name = mem_strdup(t->name), .role_name = mem_strdup(t->role), .role = role_named(j, t->role)}));
        map_add(&j->pods_by_name, text_hash(t->name), i);
    }
    struct task_pod *pod = &j->pods.at[i];
    if (pod->uid && strcmp(pod->uid, t->uid) != 0) { /* another pod of the same attempt: the previous one was deleted */
        pod->failed = false;
        job_claims_forget(pod);
    }
    job_text_set(&pod->uid, t->uid);
    job_text_set(&pod->why, t->why);
    pod->ordinal = t->ordinal;
    pod->attempt = t->attempt;
    pod->phase = t->phase;
    pod->leaves = t->leaves;
    pod->failed |= t->phase == CACHE_TASK_FAILED && !t->leaves;
}

void kube_jobs_task(struct kube_jobs *k, const struct cache_task_view *t)
{
    bool ended = t->phase == CACHE_TASK_SUCCEEDED || t->phase == CACHE_TASK_FAILED;
    struct job_entry *j = job_by_uid(k, t->owner);
    if (!j && (t->phase == CACHE_TASK_GONE || (ended && t->leaves)))
        return;
    if (!j)
        j = job_new(k, t->owner);
    uint32_t i = map_find(&j->pods_by_name, text_hash(t->name), pod_same, j, t->name);
    if (t->phase != CACHE_TASK_GONE)
        pod_see(j, i, t);
    else if (i != MAP_NONE && strcmp(j->pods.at[i].uid, t->uid) == 0)
        pod_drop(j, i);
    if (!j->there && j->pods.len == 0)
        job_remove(j);
    else
        job_dirty(j);
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

/* Records a completed task whose pod may be gone, under a name that no pod can have. */
static void completed_task_add(void *ctx, const char *role, uint32_t ordinal)
{
    struct job_entry *j = ctx;
    CLEANUP(str) struct str name = {0};
    uint32_t r = role_named(j, role);
    str_addf(&name, "%s#%u", role, ordinal);
    if (r == NONE_ROLE || ordinal >= j->roles.at[r].len ||
        map_find(&j->pods_by_name, text_hash(name.at), pod_same, j, name.at) != MAP_NONE)
        return;
    pod_see(j, MAP_NONE,
            &(struct cache_task_view){.role = role,
                                      .name = name.at,
                                      .uid = "",
                                      .ordinal = ordinal,
                                      .attempt = j->attempt,
                                      .phase = CACHE_TASK_SUCCEEDED,
                                      .why = ""});
}

/* Takes over restarts and completed tasks from the status that an earlier leader wrote. */
static void status_restore(struct job_entry *j)
{
    const json_t *restarts = json_object_get(j->status, "restarts");
    if (j->spec.gang && json_integer_value(restarts) > 0 && json_integer_value(restarts) < 1000000)
        j->attempt = (uint32_t)json_integer_value(restarts) + 1;
    const char *indexes = json_string_value(json_object_get(j->status, "completedIndexes"));
    if (indexes && j->known)
        job_indexes_each(indexes, completed_task_add, j);
}

/* Takes over the end that another leader wrote: it cannot always be derived from the pods. */
static void end_restore(struct job_entry *j)
{
    const char *reason = json_string_value(json_object_get(j->status, "reason"));
    bool complete = job_condition(j->status, "Complete"), failed = job_condition(j->status, "Failed");
    if (j->over || j->writing_status || (!complete && !failed))
        return;
    j->end = complete ? JOB_COMPLETE : JOB_FAILED;
    j->over = true;
    job_text_set(&j->end_text, reason ? reason : "");
    const json_t *list = json_object_get(j->status, "conditions");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *type = json_string_value(json_object_get(one, "type"));
        const char *word = json_string_value(json_object_get(one, "reason"));
        if (type && word && strcmp(type, complete ? "Complete" : "Failed") == 0)
            job_text_set(&j->end_reason, word);
    }
    if (!j->end_reason)
        job_text_set(&j->end_reason, complete ? "Completed" : "Failed");
}

static void role_resize(struct job_role *role, uint32_t tasks)
{
    role->tasks = mem_resize(role->tasks, tasks, sizeof *role->tasks);
    for (uint32_t i = role->len; i < tasks; i++)
        role->tasks[i] = (struct job_task){0};
    role->len = tasks;
}

/* Updates the roles to the present spec; roles with the same name keep their state. */
static void roles_update(struct job_entry *j)
{
    VEC(struct job_role) roles = {0};
    for (size_t i = 0; i < j->spec.roles_len; i++) {
        CLEANUP(str) struct str id = {0};
        struct job_role role = {0};
        str_addf(&id, "%s:%s", j->key, j->spec.roles[i].name);
        for (size_t o = 0; o < j->roles.len; o++)
            if (j->roles.at[o].id && strcmp(j->roles.at[o].id, id.at) == 0) {
                role = j->roles.at[o];
                j->roles.at[o] = (struct job_role){0};
            }
        if (!role.id) {
            role.id = str_take(&id);
            job_stem_add(j, &role, j->spec.roles[i].name);
        }
        role_resize(&role, j->spec.roles[i].tasks);
        vec_push(&roles, role);
    }
    for (size_t o = 0; o < j->roles.len; o++)
        if (j->roles.at[o].id)
            role_done(j, &j->roles.at[o]);
    vec_done(&j->roles);
    for (size_t i = 0; i < roles.len; i++)
        vec_push(&j->roles, roles.at[i]);
    vec_done(&roles);
    for (size_t i = 0; i < j->pods.len; i++)
        j->pods.at[i].role = role_named(j, j->pods.at[i].role_name);
}

static void spec_apply(struct job_entry *j, const json_t *object)
{
    struct arena arena;
    struct kube_job spec;
    struct berth_err err = {0};
    arena_init(&arena);
    if (kube_job_read(object, &arena, &spec, &err) < 0) {
        arena_done(&arena);
        job_text_set(&j->refused, err.text);
        j->dry_run_ns = 0;
        return;
    }
    arena_done(&j->arena);
    json_decref(j->object);
    j->arena = arena;
    j->object = json_incref((json_t *)(uintptr_t)object);
    j->spec = spec;
    j->known = true;
    j->makes_claims = job_makes_claims(&spec);
    job_text_set(&j->refused, NULL);
    roles_update(j);
}

static struct job_entry *job_meet(struct kube_jobs *k, const char *key, const char *uid)
{
    struct job_entry *j = job_find(k, key);
    if (j && strcmp(j->uid, uid) != 0) { /* a new job of the same name */
        job_remove(j);
        j = NULL;
    }
    if (j)
        return j;
    j = job_by_uid(k, uid);
    if (!j)
        j = job_new(k, uid);
    j->key = mem_strdup(key);
    j->there = true;
    k->stats.jobs++;
    map_add(&k->by_key, text_hash(key), map_find(&k->by_uid, text_hash(uid), uid_same, k, uid));
    return j;
}

void kube_jobs_put(struct kube_jobs *k, const json_t *object)
{
    struct kube_job meta;
    kube_job_meta_read(object, &meta);
    str_clear(&k->text);
    str_addf(&k->text, "%s:%s", meta.namespace, meta.name);
    CLEANUP(mem) char *key = mem_strdup(k->text.at);
    bool is_new = !job_find(k, key) || strcmp(job_find(k, key)->uid, meta.uid) != 0;
    struct job_entry *j = job_meet(k, key, meta.uid);
    bool changed = is_new || j->generation != meta.generation;
    j->generation = meta.generation;
    j->leaves = meta.leaves;
    if (!j->writing_status) { /* else the status being written counts */
        json_decref(j->status);
        j->status = json_incref(json_object_get(object, "status"));
    }
    if (changed)
        spec_apply(j, object);
    if (!j->known) { /* needed for the status write */
        j->spec = meta;
        json_decref(j->object);
        j->object = json_incref((json_t *)(uintptr_t)object);
    }
    if (is_new)
        status_restore(j);
    end_restore(j);
    if (j->leaves || j->over)
        job_roles_drop(j);
    else if (changed && j->known && !j->refused) {
        if (!k->known && !j->first_dry_run) {
            j->first_dry_run = true;
            k->firsts++;
        }
        job_dry_run_pods(j);
        job_roles_changed(j);
    }
    job_dirty(j);
}

void kube_jobs_drop(struct kube_jobs *k, const char *namespace, const char *name)
{
    str_clear(&k->text);
    str_addf(&k->text, "%s:%s", namespace, name);
    struct job_entry *j = job_find(k, k->text.at);
    if (j)
        job_remove(j);
}
