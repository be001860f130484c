/* node_config.c - the configuration of one node: the instances that its agent shall run, and no others. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/plant.h"
#include "control/kind/secret.h"
#include "control/node/cumulative_use.h"
#include "control/node/task_config.h"
#include "control/optask/optask.h"
#include "control/watch/derived_out.h"
#include "control/watch/derived_parts.h"
#include "core/model/cluster.h"
#include "wire/text/document.h"

static void texts_write(struct json_out *o, const char *key, const char *const *texts, size_t len)
{
    if (!len)
        return;
    json_out_open(o, key, '[');
    for (size_t i = 0; i < len; i++)
        json_out_text(o, NULL, texts[i]);
    json_out_close(o, ']');
}

static int label_compare(const void *a, const void *b)
{
    return strcmp(((const struct berth_label *)a)->key, ((const struct berth_label *)b)->key);
}

static void env_write(struct json_out *o, const struct work_doc *d, struct arena *arena)
{
    if (!d->env_len)
        return;
    struct berth_label *sorted = arena_dup(arena, d->env, d->env_len * sizeof *sorted);
    qsort(sorted, d->env_len, sizeof *sorted, label_compare);
    json_out_open(o, "env", '{');
    for (size_t i = 0; i < d->env_len; i++)
        json_out_text(o, sorted[i].key, sorted[i].value);
    json_out_close(o, '}');
}

/* ---- resources -------------------------------------------------------------------------------------------------- */

static int amount_compare(const void *a, const void *b)
{
    return strcmp(((const struct berth_amount *)a)->resource, ((const struct berth_amount *)b)->resource);
}

static void requests_write(struct json_out *o, const struct berth_shape *shape, struct arena *arena)
{
    if (!shape->requests_len)
        return;
    struct berth_amount *sorted = arena_dup(arena, shape->requests, shape->requests_len * sizeof *sorted);
    qsort(sorted, shape->requests_len, sizeof *sorted, amount_compare);
    json_out_open(o, "requests", '{');
    for (size_t i = 0; i < shape->requests_len; i++)
        json_out_amount(o, sorted[i].resource, sorted[i].resource, sorted[i].amount);
    json_out_close(o, '}');
}

static int limit_compare(const void *a, const void *b)
{
    return strcmp(((const struct berth_limit *)a)->resource, ((const struct berth_limit *)b)->resource);
}

/* Returns the limit that a plan has set for the instance, or the workload's own. */
static int64_t limit_in_force(const struct berth_limit *limit, const struct berth_instance *instance)
{
    for (size_t i = 0; i < instance->usage_len; i++)
        if (instance->usage[i].limit && strcmp(instance->usage[i].resource, limit->resource) == 0)
            return instance->usage[i].limit;
    return limit->amount;
}

/* The limit "traffic-throttle" has the period of "traffic". */
static int64_t limit_period_ns(const struct state *s, const char *resource)
{
    return cumulative_period_ns(s, strcmp(resource, "traffic-throttle") == 0 ? "traffic" : resource);
}

static void limits_write(struct json_out *o, const struct state *s, const struct berth_shape *shape,
                         const struct berth_instance *instance, struct arena *arena)
{
    if (!shape->limits_len)
        return;
    struct berth_limit *sorted = arena_dup(arena, shape->limits, shape->limits_len * sizeof *sorted);
    qsort(sorted, shape->limits_len, sizeof *sorted, limit_compare);
    json_out_open(o, "limits", '{');
    for (size_t i = 0; i < shape->limits_len; i++) {
        if (describe_page_size(sorted[i].resource) > 0) /* the agent enforces the request */
            continue;
        json_out_open(o, sorted[i].resource, '{');
        if (sorted[i].kind == BERTH_WEIGHTED)
            json_out_number(o, "weight", (uint64_t)sorted[i].amount);
        else
            json_out_amount(o, "amount", sorted[i].resource, limit_in_force(&sorted[i], instance));
        int64_t period_ns = limit_period_ns(s, sorted[i].resource);
        if (period_ns)
            json_out_number(o, "period_ns", (uint64_t)period_ns);
        json_out_close(o, '}');
    }
    json_out_close(o, '}');
}

/* Writes the driver's UUIDs of the GPUs, if all of them have one. */
static void uuids_write(struct json_out *o, const struct state *s, const char *node, uint64_t held, struct arena *arena)
{
    const struct object *object = state_find(s, KIND_NODE, node);
    CLEANUP(json) json_t *doc = object ? object_doc(object) : NULL;
    struct node_doc d;
    if (!doc || node_doc_read(doc, arena, &d, NULL) < 0)
        return;
    for (size_t i = 0; i < BERTH_NODE_GPUS_MAX; i++)
        if (held >> i & 1 && (i >= d.node.gpus_len || !d.gpu_uuids[i]))
            return;
    json_out_open(o, "gpu_uuids", '[');
    for (size_t i = 0; i < d.node.gpus_len; i++)
        if (held >> i & 1)
            json_out_text(o, NULL, d.gpu_uuids[i]);
    json_out_close(o, ']');
}

static void gpus_write(struct json_out *o, const struct state *s, const char *node, const struct berth_gpu_need *need,
                       uint64_t held, struct arena *arena)
{
    if (!held)
        return;
    json_out_open(o, "gpus", '[');
    for (unsigned i = 0; i < BERTH_NODE_GPUS_MAX; i++)
        if (held >> i & 1)
            json_out_number(o, NULL, i);
    json_out_close(o, ']');
    uuids_write(o, s, node, held, arena);
    if (need->milli && need->milli < BERTH_GPU_MILLI)
        json_out_number(o, "gpu_milli", need->milli);
    if (need->memory_bytes)
        json_out_amount(o, "gpu_memory", "memory", need->memory_bytes);
}

/* Writes the endpoints' ports: the first port, and up to which port the agent may try: to the end of the app's
 * block. */
/* `app`: an instance is ready when its ports accept connections, unless a health check decides. */
static void ports_write(struct json_out *o, const struct work_doc *d, bool app)
{
    if (!d->endpoints_len || d->port_index < 0)
        return;
    json_out_open(o, "ports", '[');
    for (size_t i = 0; i < d->endpoints_len; i++) {
        json_out_open(o, NULL, '{');
        json_out_text(o, "endpoint", d->endpoints[i].name);
        json_out_text(o, "protocol", protocol_name(d->endpoints[i].protocol));
        json_out_number(o, "start", PORT_BASE + PORT_BLOCK * (uint64_t)d->port_index + i);
        json_out_number(o, "count", PORT_BLOCK - i);
        json_out_text(o, "listen", d->endpoints[i].listen == LISTEN_SOCKET ? "socket" : "port");
        if (d->endpoints[i].guest)
            json_out_number(o, "guest", d->endpoints[i].guest);
        if (app && d->run.health.how == HEALTH_NONE && endpoint_awaited(&d->endpoints[i]))
            json_out_bool(o, "await", true);
        json_out_close(o, '}');
    }
    json_out_close(o, ']');
}

/* ---- app settings ----------------------------------------------------------------------------------------------- */

/* Writes the settings with defaults filled in, as the app reads them. They are the present ones, whatever spec the
 * instance was placed from. */
static void settings_write(struct json_out *o, const json_t *doc)
{
    CLEANUP(json) json_t *filled = NULL;
    const json_t *schema = json_object_get(doc, "settings_schema"), *settings = json_object_get(doc, "settings");

    if (!settings && !schema)
        return;
    if (settings_check(schema, settings, &filled, NULL) == 0)
        json_out_tree(o, "settings", filled);
    else if (settings) /* checked when they were written; the app's own values are better than none */
        json_out_tree(o, "settings", settings);
}

/* Writes how long the agent keeps the instance running without contact to the daemon. By then the agent must have
 * stopped it, because a replacement is started elsewhere. Absent: without limit. */
static void fence_write(struct json_out *o, const struct work_doc *d, bool service)
{
    enum berth_on_lost on_lost = d->workload.on_lost;

    if (on_lost == BERTH_LOST_DEFAULT)
        on_lost = service && d->workload.replicas > 1 ? BERTH_LOST_REPLACE : BERTH_LOST_FENCE;
    if (on_lost == BERTH_LOST_FENCE && !PLANTED(CONFIG_NO_FENCE))
        json_out_number(o, "fence_ns", (uint64_t)(d->workload.fence_ns ? d->workload.fence_ns : FENCE_NS_DEFAULT));
}

/* ---- how the instance runs -------------------------------------------------------------------------------------- */

/* Writes a volume. A folder of the node has a source; other volumes are stored by their names, or are memory. A mounted
 * volume's type does not change. */
static void volume_write(struct json_out *o, const struct state *s, const char *id, struct arena *arena)
{
    struct volume_doc volume = {0};
    const struct object *object = state_find(s, KIND_VOLUME, id);
    CLEANUP(json) json_t *doc = object ? object_doc(object) : NULL;

    if (doc && volume_doc_read(doc, arena, &volume, NULL) == 0 && volume.type == VOLUME_TMPFS) {
        json_out_number(o, "tmpfs", (uint64_t)volume.size_bytes);
        return;
    }
    json_out_text(o, "volume", id);
    if (volume.type == VOLUME_BIND)
        json_out_text(o, "source", volume.path);
}

static void mounts_write(struct json_out *o, const struct state *s, const struct work_run *run, struct arena *arena)
{
    if (!run->mounts_len)
        return;
    json_out_open(o, "mounts", '[');
    for (size_t i = 0; i < run->mounts_len; i++) {
        const struct work_mount *m = &run->mounts[i];
        json_out_open(o, NULL, '{');
        json_out_text(o, "path", m->path);
        if (m->read_only)
            json_out_bool(o, "read_only", true);
        if (m->volume)
            volume_write(o, s, m->volume, arena);
        else if (m->bind)
            json_out_text(o, "bind", m->bind);
        else
            json_out_number(o, "tmpfs", (uint64_t)m->tmpfs_bytes);
        json_out_close(o, '}');
    }
    json_out_close(o, ']');
}

static void files_write(struct json_out *o, const struct work_run *run, const char *owner, struct arena *arena)
{
    if (!run->files_len)
        return;
    json_out_open(o, "files", '[');
    for (size_t i = 0; i < run->files_len; i++) {
        const struct work_file *f = &run->files[i];
        json_out_open(o, NULL, '{');
        json_out_text(o, "path", f->path);
        json_out_number(o, "mode", f->mode);
        if (f->secret) {
            json_out_text(o, "secret", secret_id(f->secret, owner, arena));
            json_out_text(o, "key", f->key);
        } else {
            json_out_text(o, "text", f->text);
        }
        json_out_close(o, '}');
    }
    json_out_close(o, ']');
}

static void health_write(struct json_out *o, const struct health_rule *h)
{
    if (h->how == HEALTH_NONE)
        return;
    json_out_open(o, "health", '{');
    if (h->how == HEALTH_EXEC) {
        texts_write(o, "exec", h->exec, h->exec_len);
    } else {
        json_out_open(o, h->how == HEALTH_HTTP ? "http" : "tcp", '{');
        json_out_text(o, "endpoint", h->endpoint);
        if (h->how == HEALTH_HTTP)
            json_out_text(o, "path", h->path);
        json_out_close(o, '}');
    }
    json_out_number(o, "every_ns", (uint64_t)h->every_ns);
    json_out_number(o, "timeout_ns", (uint64_t)h->timeout_ns);
    json_out_number(o, "delay_ns", (uint64_t)h->delay_ns);
    json_out_number(o, "failures", h->failures);
    json_out_close(o, '}');
}

static void rules_write(struct json_out *o, const struct work_run *run)
{
    if (run->stop.given) {
        json_out_open(o, "stop", '{');
        json_out_text(o, "signal", run->stop.signal);
        json_out_number(o, "grace_ns", (uint64_t)run->stop.grace_ns);
        if (run->stop.delay_ns >= 0)
            json_out_number(o, "delay_ns", (uint64_t)run->stop.delay_ns);
        json_out_close(o, '}');
    }
    if (run->log.bytes) {
        json_out_open(o, "log", '{');
        json_out_number(o, "bytes", (uint64_t)run->log.bytes);
        json_out_number(o, "files", run->log.files);
        if (run->log.keep_ns)
            json_out_number(o, "keep_ns", (uint64_t)run->log.keep_ns);
        json_out_close(o, '}');
    }
}

static void vm_write(struct json_out *o, const struct vm_terms *vm)
{
    if (!vm->given)
        return;
    json_out_open(o, "vm", '{');
    if (vm->disk_bytes)
        json_out_number(o, "disk", (uint64_t)vm->disk_bytes);
    out_text_if_set(o, "sha256", vm->sha256);
    out_text_if_set(o, "kernel", vm->kernel);
    out_text_if_set(o, "initrd", vm->initrd);
    out_text_if_set(o, "append", vm->append);
    json_out_text(o, "accel", vm_accel_name(vm->accel));
    json_out_close(o, '}');
}

static void checkpoint_write(struct json_out *o, const struct job_checkpoint *checkpoint)
{
    if (!checkpoint->signal)
        return;
    json_out_open(o, "checkpoint", '{');
    json_out_text(o, "signal", checkpoint->signal);
    json_out_number(o, "grace_ns", (uint64_t)checkpoint->grace_ns);
    json_out_close(o, '}');
}

static int exclusive_compare(const void *a, const void *b)
{
    return strcmp(((const struct exclusive_rule *)a)->resource, ((const struct exclusive_rule *)b)->resource);
}

static void held_write(struct json_out *o, const struct work_run *run, struct arena *arena)
{
    if (run->rlimits_len) {
        struct berth_amount *sorted = arena_dup(arena, run->rlimits, run->rlimits_len * sizeof *sorted);
        qsort(sorted, run->rlimits_len, sizeof *sorted, amount_compare);
        json_out_open(o, "rlimits", '{');
        for (size_t i = 0; i < run->rlimits_len; i++)
            json_out_number(o, sorted[i].resource, (uint64_t)sorted[i].amount);
        json_out_close(o, '}');
    }
    if (run->exclusive_len) {
        struct exclusive_rule *sorted = arena_dup(arena, run->exclusive, run->exclusive_len * sizeof *sorted);
        qsort(sorted, run->exclusive_len, sizeof *sorted, exclusive_compare);
        json_out_open(o, "exclusive", '{');
        for (size_t i = 0; i < run->exclusive_len; i++)
            texts_write(o, sorted[i].resource, sorted[i].names, sorted[i].names_len);
        json_out_close(o, '}');
    }
}

const struct object *instance_placed_from(const struct state *s, const struct instance_view *i)
{
    const struct object *work = state_find_work(s, i->workload);

    if (work && work->work->generation == i->generation)
        return work;
    const struct object *spec = state_spec(s, i->workload, i->generation);
    return spec ? spec : work;
}

/* Writes the owner's uid, and whether an account of the owner's name may be used instead. */
static void user_write(struct json_out *o, const struct state *s, const char *owner)
{
    const struct object *user = state_find(s, KIND_USER, owner);

    if (user && user->user->uid)
        json_out_number(o, "uid", user->user->uid);
    if (user && !user->user->account)
        json_out_bool(o, "account", false);
}

static void run_write(struct json_out *o, const struct state *s, const struct object *instance,
                      const struct object *from)
{
    struct arena arena;
    struct work_doc work;
    struct instance_doc held;
    CLEANUP(json) json_t *doc = object_doc(from);
    CLEANUP(json) json_t *instance_doc = object_doc(instance);
    const struct object *present = state_find_work(s, instance->instance->workload);
    CLEANUP(json) json_t *now = present && present != from ? object_doc(present) : json_incref(doc);

    arena_init(&arena);
    int rc = work_doc_read(doc, &arena, &work, NULL);
    assert(rc == 0); /* both documents were checked when they were written */
    rc = instance_doc_read(instance_doc, &arena, &held, NULL);
    assert(rc == 0);
    (void)rc;
    out_text_if_set(o, "kind", present ? kinds[present->kind].name : NULL);
    out_text_if_set(o, "owner", from->owner);
    out_text_if_set(o, "group", from->group);
    user_write(o, s, from->owner);
    texts_write(o, "command", work.command, work.command_len);
    env_write(o, &work, &arena);
    out_text_if_set(o, "image", work.image);
    out_text_if_set(o, "pull", work.run.pull == PULL_ALWAYS ? "always" : NULL);
    out_text_if_set(o, "run_as", work.run.run_as == RUN_AS_OWNER ? "owner" : NULL);
    out_text_if_set(o, "rootfs", work.run.rootfs);
    out_text_if_set(o, "workdir", work.workdir);
    out_text_if_set(o, "runtime", work.workload.shape.runtime);
    vm_write(o, &work.run.vm);
    gpus_write(o, s, instance->instance->node, &work.workload.shape.gpu, held.instance.gpus, &arena);
    requests_write(o, &work.workload.shape, &arena);
    limits_write(o, s, &work.workload.shape, &held.instance, &arena);
    ports_write(o, &work, present && present->kind == KIND_APP);
    task_config_write(o, s, instance, &work);
    held_write(o, &work.run, &arena);
    mounts_write(o, s, &work.run, &arena);
    files_write(o, &work.run, from->owner, &arena);
    health_write(o, &work.run.health);
    rules_write(o, &work.run);
    checkpoint_write(o, &work.job.checkpoint);
    settings_write(o, now);
    if (work.install)
        json_out_tree(o, "install", work.install);
    fence_write(o, &work, present && present->kind == KIND_APP);
    arena_done(&arena);
}

static void instance_write(struct json_out *o, const struct state *s, const struct object *instance)
{
    const struct instance_view *i = instance->instance;
    const struct object *from = i->state == BERTH_STOPPING ? NULL : instance_placed_from(s, i);

    json_out_open(o, NULL, '{');
    json_out_number(o, "id", i->number);
    json_out_text(o, "workload", i->workload);
    json_out_number(o, "ordinal", i->ordinal);
    json_out_text(o, "state", from ? "run" : "stop");
    json_out_number(o, "generation", i->generation);
    if (from)
        run_write(o, s, instance, from);
    json_out_close(o, '}');
}

static bool is_listed(const struct object *instance)
{
    enum berth_state state = instance->instance->state;

    return (state != BERTH_RESERVED || PLANTED(CONFIG_RESERVED)) && state != BERTH_ENDED;
}

static void begin_write(struct json_out *o, const struct object *node)
{
    json_out_open(o, NULL, '{');
    json_out_text(o, "node", node->id);
    json_out_open(o, "instances", '[');
}

static void end_write(struct json_out *o, const struct state *s, const char *node)
{
    json_out_close(o, ']');
    optasks_config_write(o, s, node);
    json_out_close(o, '}');
}

int node_config_write(const struct state *s, const char *node, struct str *to)
{
    const struct object *object = state_find(s, KIND_NODE, node);
    struct json_out o = {.to = to};

    if (!object)
        return -ENOENT;
    begin_write(&o, object);
    for (size_t i = 0; i < object->node->instances_len; i++)
        if (is_listed(object->node->instances[i]))
            instance_write(&o, s, object->node->instances[i]);
    end_write(&o, s, object->id);
    return 0;
}

/* ---- cached parts ----------------------------------------------------------------------------------------------- */

/* Returns a hash; as long as it is unchanged, so is the instance's part. Volumes are separate objects and not
 * covered. */
static uint64_t instance_mark(const struct state *s, const struct object *instance)
{
    const struct object *work = state_find_work(s, instance->instance->workload);
    const struct object *from = instance_placed_from(s, instance->instance);
    uint64_t mark = hash_pair(instance->revision, work ? work->revision : 0);

    mark = hash_pair(mark, state_hash_of(s, KIND_RESOURCE)); /* periods of limits; they seldom change */
    if (work && *work->work->gang)
        mark = hash_pair(mark, task_config_mark(s, instance));
    const struct object *user = from ? state_find(s, KIND_USER, from->owner) : NULL;
    if (user)
        mark = hash_pair(mark, (uint64_t)user->user->uid << 1 | user->user->account);
    return hash_pair(mark, from && from != work ? from->revision : 0);
}

/* Returns the instance's part of the previous text; both are ordered by ID. NULL: there is none, or it is outdated. */
static const struct node_config_part *part_cached(const struct node_config *c, size_t *at, uint64_t number,
                                                  uint64_t mark)
{
    while (*at < c->parts.len && c->parts.at[*at].number < number)
        ++*at;
    const struct node_config_part *part = *at < c->parts.len ? &c->parts.at[*at] : NULL;
    return part && part->number == number && part->mark == mark && mark ? part : NULL;
}

static void part_write(struct json_out *o, const struct state *s, const struct object *instance,
                       const struct node_config *before, size_t *at, struct node_config *to)
{
    struct node_config_part part = {.number = instance->instance->number, .mark = instance_mark(s, instance)};
    const struct node_config_part *kept = part_cached(before, at, part.number, part.mark);

    if (kept) {
        json_out_key(o, NULL);
        part.at = to->text.len;
        str_add_bytes(&to->text, before->text.at + kept->at, kept->len);
    } else {
        part.at = to->text.len + o->more;
        instance_write(o, s, instance);
        const struct str written = {.at = to->text.at + part.at, .len = to->text.len - part.at};
        if (memmem(written.at, written.len, "\"volume\":", strlen("\"volume\":")) ||
            memmem(written.at, written.len, "\"tmpfs\":", strlen("\"tmpfs\":")))
            part.mark = 0; /* depends on volumes, which the mark does not cover: never reused */
    }
    part.len = to->text.len - part.at;
    vec_push(&to->parts, part);
}

static uint64_t whole_mark(const struct state *s, const struct object *node)
{
    uint64_t mark = hash_pair(node->created, 1);

    for (size_t i = 0; i < node->node->instances_len; i++)
        if (is_listed(node->node->instances[i]))
            mark = hash_pair(mark, instance_mark(s, node->node->instances[i]));
    return hash_pair(mark, optasks_config_mark(s, node->id));
}

void node_config_update(struct node_config *c, const struct state *s, const struct object *node)
{
    struct node_config to = {.mark = whole_mark(s, node)};
    struct json_out o = {.to = &to.text};
    size_t at = 0;

    if (c->hash[0] && c->mark == to.mark)
        return;
    begin_write(&o, node);
    for (size_t i = 0; i < node->node->instances_len; i++)
        if (is_listed(node->node->instances[i]))
            part_write(&o, s, node->node->instances[i], c, &at, &to);
    end_write(&o, s, node->id);
    (void)derived_hash(&to.text, to.hash);
    node_config_done(c);
    *c = to;
}

void node_config_done(struct node_config *c)
{
    vec_done(&c->parts);
    str_done(&c->text);
    *c = (struct node_config){0};
}
