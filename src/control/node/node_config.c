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

static void texts_write(struct out *o, const char *key, const char *const *texts, size_t len)
{
    if (!len)
        return;
    out_open(o, key, '[');
    for (size_t i = 0; i < len; i++)
        out_text(o, NULL, texts[i]);
    out_close(o, ']');
}

static int label_compare(const void *a, const void *b)
{
    return strcmp(((const struct berth_label *)a)->key, ((const struct berth_label *)b)->key);
}

static void env_write(struct out *o, const struct work_doc *d, struct arena *arena)
{
    if (!d->env_len)
        return;
    struct berth_label *sorted = arena_dup(arena, d->env, d->env_len * sizeof *sorted);
    qsort(sorted, d->env_len, sizeof *sorted, label_compare);
    out_open(o, "env", '{');
    for (size_t i = 0; i < d->env_len; i++)
        out_text(o, sorted[i].key, sorted[i].value);
    out_close(o, '}');
}

/* ---- resources -------------------------------------------------------------------------------------------------- */

static int amount_compare(const void *a, const void *b)
{
    return strcmp(((const struct berth_amount *)a)->resource, ((const struct berth_amount *)b)->resource);
}

static void requests_write(struct out *o, const struct berth_shape *shape, struct arena *arena)
{
    if (!shape->requests_len)
        return;
    struct berth_amount *sorted = arena_dup(arena, shape->requests, shape->requests_len * sizeof *sorted);
    qsort(sorted, shape->requests_len, sizeof *sorted, amount_compare);
    out_open(o, "requests", '{');
    for (size_t i = 0; i < shape->requests_len; i++)
        out_amount(o, sorted[i].resource, sorted[i].resource, sorted[i].amount);
    out_close(o, '}');
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

static void limits_write(struct out *o, const struct state *s, const struct berth_shape *shape,
                         const struct berth_instance *instance, struct arena *arena)
{
    if (!shape->limits_len)
        return;
    struct berth_limit *sorted = arena_dup(arena, shape->limits, shape->limits_len * sizeof *sorted);
    qsort(sorted, shape->limits_len, sizeof *sorted, limit_compare);
    out_open(o, "limits", '{');
    for (size_t i = 0; i < shape->limits_len; i++) {
        if (describe_page_size(sorted[i].resource) > 0) /* the agent enforces the request */
            continue;
        out_open(o, sorted[i].resource, '{');
        if (sorted[i].kind == BERTH_WEIGHTED)
            out_number(o, "weight", (uint64_t)sorted[i].amount);
        else
            out_amount(o, "amount", sorted[i].resource, limit_in_force(&sorted[i], instance));
        int64_t period_ns = limit_period_ns(s, sorted[i].resource);
        if (period_ns)
            out_number(o, "period_ns", (uint64_t)period_ns);
        out_close(o, '}');
    }
    out_close(o, '}');
}

/* Writes the driver's UUIDs of the GPUs, if all of them have one. */
static void uuids_write(struct out *o, const struct state *s, const char *node, uint64_t held, struct arena *arena)
{
    const struct object *object = state_find(s, KIND_NODE, node);
    CLEANUP(json) json_t *doc = object ? object_doc(object) : NULL;
    struct node_doc d;
    if (!doc || node_doc_read(doc, arena, &d, NULL) < 0)
        return;
    for (size_t i = 0; i < BERTH_NODE_GPUS_MAX; i++)
        if (held >> i & 1 && (i >= d.node.gpus_len || !d.gpu_uuids[i]))
            return;
    out_open(o, "gpu_uuids", '[');
    for (size_t i = 0; i < d.node.gpus_len; i++)
        if (held >> i & 1)
            out_text(o, NULL, d.gpu_uuids[i]);
    out_close(o, ']');
}

static void gpus_write(struct out *o, const struct state *s, const char *node, const struct berth_gpu_need *need,
                       uint64_t held, struct arena *arena)
{
    if (!held)
        return;
    out_open(o, "gpus", '[');
    for (unsigned i = 0; i < BERTH_NODE_GPUS_MAX; i++)
        if (held >> i & 1)
            out_number(o, NULL, i);
    out_close(o, ']');
    uuids_write(o, s, node, held, arena);
    if (need->milli && need->milli < BERTH_GPU_MILLI)
        out_number(o, "gpu_milli", need->milli);
    if (need->memory_bytes)
        out_amount(o, "gpu_memory", "memory", need->memory_bytes);
}

/* Writes the endpoints' ports: the first port, and up to which port the agent may try: to the end of the app's
 * block. */
/* `app`: an instance is ready when its ports accept connections, unless a health check decides. */
static void ports_write(struct out *o, const struct work_doc *d, bool app)
{
    if (!d->endpoints_len || d->port_index < 0)
        return;
    out_open(o, "ports", '[');
    for (size_t i = 0; i < d->endpoints_len; i++) {
        out_open(o, NULL, '{');
        out_text(o, "endpoint", d->endpoints[i].name);
        out_text(o, "protocol", protocol_name(d->endpoints[i].protocol));
        out_number(o, "start", PORT_BASE + PORT_BLOCK * (uint64_t)d->port_index + i);
        out_number(o, "count", PORT_BLOCK - i);
        out_text(o, "listen", d->endpoints[i].listen == LISTEN_SOCKET ? "socket" : "port");
        if (d->endpoints[i].guest)
            out_number(o, "guest", d->endpoints[i].guest);
        if (app && d->run.health.how == HEALTH_NONE && endpoint_awaited(&d->endpoints[i]))
            out_bool(o, "await", true);
        out_close(o, '}');
    }
    out_close(o, ']');
}

/* ---- app settings ----------------------------------------------------------------------------------------------- */

/* Writes the settings with defaults filled in, as the app reads them. They are the present ones, whatever spec the
 * instance was placed from. */
static void settings_write(struct out *o, const json_t *doc)
{
    CLEANUP(json) json_t *filled = NULL;
    const json_t *schema = json_object_get(doc, "settings_schema"), *settings = json_object_get(doc, "settings");

    if (!settings && !schema)
        return;
    if (settings_check(schema, settings, &filled, NULL) == 0)
        out_tree(o, "settings", filled);
    else if (settings) /* checked when they were written; the app's own values are better than none */
        out_tree(o, "settings", settings);
}

/* Writes how long the agent keeps the instance running without contact to the daemon. By then the agent must have
 * stopped it, because a replacement is started elsewhere. Absent: without limit. */
static void fence_write(struct out *o, const struct work_doc *d, bool service)
{
    enum berth_on_lost on_lost = d->workload.on_lost;

    if (on_lost == BERTH_LOST_DEFAULT)
        on_lost = service && d->workload.replicas > 1 ? BERTH_LOST_REPLACE : BERTH_LOST_FENCE;
    if (on_lost == BERTH_LOST_FENCE && !PLANTED(CONFIG_NO_FENCE))
        out_number(o, "fence_ns", (uint64_t)(d->workload.fence_ns ? d->workload.fence_ns : FENCE_NS_DEFAULT));
}

/* ---- how the instance runs -------------------------------------------------------------------------------------- */

/* Writes a volume. A folder of the node has a source; other volumes are stored by their names, or are memory. A mounted
 * volume's type does not change. */
static void volume_write(struct out *o, const struct state *s, const char *id, struct arena *arena)
{
    struct volume_doc volume = {0};
    const struct object *object = state_find(s, KIND_VOLUME, id);
    CLEANUP(json) json_t *doc = object ? object_doc(object) : NULL;

    if (doc && volume_doc_read(doc, arena, &volume, NULL) == 0 && volume.type == VOLUME_TMPFS) {
        out_number(o, "tmpfs", (uint64_t)volume.size_bytes);
        return;
    }
    out_text(o, "volume", id);
    if (volume.type == VOLUME_BIND)
        out_text(o, "source", volume.path);
}

static void mounts_write(struct out *o, const struct state *s, const struct work_run *run, struct arena *arena)
{
    if (!run->mounts_len)
        return;
    out_open(o, "mounts", '[');
    for (size_t i = 0; i < run->mounts_len; i++) {
        const struct work_mount *m = &run->mounts[i];
        out_open(o, NULL, '{');
        out_text(o, "path", m->path);
        if (m->read_only)
            out_bool(o, "read_only", true);
        if (m->volume)
            volume_write(o, s, m->volume, arena);
        else if (m->bind)
            out_text(o, "bind", m->bind);
        else
            out_number(o, "tmpfs", (uint64_t)m->tmpfs_bytes);
        out_close(o, '}');
    }
    out_close(o, ']');
}

static void files_write(struct out *o, const struct work_run *run, const char *owner, struct arena *arena)
{
    if (!run->files_len)
        return;
    out_open(o, "files", '[');
    for (size_t i = 0; i < run->files_len; i++) {
        const struct work_file *f = &run->files[i];
        out_open(o, NULL, '{');
        out_text(o, "path", f->path);
        out_number(o, "mode", f->mode);
        if (f->secret) {
            out_text(o, "secret", secret_id(f->secret, owner, arena));
            out_text(o, "key", f->key);
        } else {
            out_text(o, "text", f->text);
        }
        out_close(o, '}');
    }
    out_close(o, ']');
}

static void health_write(struct out *o, const struct health_rule *h)
{
    if (h->how == HEALTH_NONE)
        return;
    out_open(o, "health", '{');
    if (h->how == HEALTH_EXEC) {
        texts_write(o, "exec", h->exec, h->exec_len);
    } else {
        out_open(o, h->how == HEALTH_HTTP ? "http" : "tcp", '{');
        out_text(o, "endpoint", h->endpoint);
        if (h->how == HEALTH_HTTP)
            out_text(o, "path", h->path);
        out_close(o, '}');
    }
    out_number(o, "every_ns", (uint64_t)h->every_ns);
    out_number(o, "timeout_ns", (uint64_t)h->timeout_ns);
    out_number(o, "delay_ns", (uint64_t)h->delay_ns);
    out_number(o, "failures", h->failures);
    out_close(o, '}');
}

static void rules_write(struct out *o, const struct work_run *run)
{
    if (run->stop.given) {
        out_open(o, "stop", '{');
        out_text(o, "signal", run->stop.signal);
        out_number(o, "grace_ns", (uint64_t)run->stop.grace_ns);
        if (run->stop.delay_ns >= 0)
            out_number(o, "delay_ns", (uint64_t)run->stop.delay_ns);
        out_close(o, '}');
    }
    if (run->log.bytes) {
        out_open(o, "log", '{');
        out_number(o, "bytes", (uint64_t)run->log.bytes);
        out_number(o, "files", run->log.files);
        if (run->log.keep_ns)
            out_number(o, "keep_ns", (uint64_t)run->log.keep_ns);
        out_close(o, '}');
    }
}

static void vm_write(struct out *o, const struct vm_terms *vm)
{
    if (!vm->given)
        return;
    out_open(o, "vm", '{');
    if (vm->disk_bytes)
        out_number(o, "disk", (uint64_t)vm->disk_bytes);
    out_text_given(o, "sha256", vm->sha256);
    out_text_given(o, "kernel", vm->kernel);
    out_text_given(o, "initrd", vm->initrd);
    out_text_given(o, "append", vm->append);
    out_text(o, "accel", vm_accel_name(vm->accel));
    out_close(o, '}');
}

static void checkpoint_write(struct out *o, const struct job_checkpoint *checkpoint)
{
    if (!checkpoint->signal)
        return;
    out_open(o, "checkpoint", '{');
    out_text(o, "signal", checkpoint->signal);
    out_number(o, "grace_ns", (uint64_t)checkpoint->grace_ns);
    out_close(o, '}');
}

static int exclusive_compare(const void *a, const void *b)
{
    return strcmp(((const struct exclusive_rule *)a)->resource, ((const struct exclusive_rule *)b)->resource);
}

static void held_write(struct out *o, const struct work_run *run, struct arena *arena)
{
    if (run->rlimits_len) {
        struct berth_amount *sorted = arena_dup(arena, run->rlimits, run->rlimits_len * sizeof *sorted);
        qsort(sorted, run->rlimits_len, sizeof *sorted, amount_compare);
        out_open(o, "rlimits", '{');
        for (size_t i = 0; i < run->rlimits_len; i++)
            out_number(o, sorted[i].resource, (uint64_t)sorted[i].amount);
        out_close(o, '}');
    }
    if (run->exclusive_len) {
        struct exclusive_rule *sorted = arena_dup(arena, run->exclusive, run->exclusive_len * sizeof *sorted);
        qsort(sorted, run->exclusive_len, sizeof *sorted, exclusive_compare);
        out_open(o, "exclusive", '{');
        for (size_t i = 0; i < run->exclusive_len; i++)
            texts_write(o, sorted[i].resource, sorted[i].names, sorted[i].names_len);
        out_close(o, '}');
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
static void user_write(struct out *o, const struct state *s, const char *owner)
{
    const struct object *user = state_find(s, KIND_USER, owner);

    if (user && user->user->uid)
        out_number(o, "uid", user->user->uid);
    if (user && !user->user->account)
        out_bool(o, "account", false);
}

static void run_write(struct out *o, const struct state *s, const struct object *instance, const struct object *from)
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
    out_text_given(o, "kind", present ? kinds[present->kind].name : NULL);
    out_text_given(o, "owner", from->owner);
    out_text_given(o, "group", from->group);
    user_write(o, s, from->owner);
    texts_write(o, "command", work.command, work.command_len);
    env_write(o, &work, &arena);
    out_text_given(o, "image", work.image);
    out_text_given(o, "pull", work.run.pull == PULL_ALWAYS ? "always" : NULL);
    out_text_given(o, "run_as", work.run.run_as == RUN_AS_OWNER ? "owner" : NULL);
    out_text_given(o, "rootfs", work.run.rootfs);
    out_text_given(o, "workdir", work.workdir);
    out_text_given(o, "runtime", work.workload.shape.runtime);
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
        out_tree(o, "install", work.install);
    fence_write(o, &work, present && present->kind == KIND_APP);
    arena_done(&arena);
}

static void instance_write(struct out *o, const struct state *s, const struct object *instance)
{
    const struct instance_view *i = instance->instance;
    const struct object *from = i->state == BERTH_STOPPING ? NULL : instance_placed_from(s, i);

    out_open(o, NULL, '{');
    out_number(o, "id", i->number);
    out_text(o, "workload", i->workload);
    out_number(o, "ordinal", i->ordinal);
    out_text(o, "state", from ? "run" : "stop");
    out_number(o, "generation", i->generation);
    if (from)
        run_write(o, s, instance, from);
    out_close(o, '}');
}

static bool is_listed(const struct object *instance)
{
    enum berth_state state = instance->instance->state;

    return (state != BERTH_RESERVED || PLANTED(CONFIG_RESERVED)) && state != BERTH_ENDED;
}

static void begin_write(struct out *o, const struct object *node)
{
    out_open(o, NULL, '{');
    out_text(o, "node", node->id);
    out_open(o, "instances", '[');
}

static void end_write(struct out *o, const struct state *s, const char *node)
{
    out_close(o, ']');
    optasks_config_write(o, s, node);
    out_close(o, '}');
}

int node_config_write(const struct state *s, const char *node, struct str *to)
{
    const struct object *object = state_find(s, KIND_NODE, node);
    struct out o = {.to = to};

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

static void part_write(struct out *o, const struct state *s, const struct object *instance,
                       const struct node_config *before, size_t *at, struct node_config *to)
{
    struct node_config_part part = {.number = instance->instance->number, .mark = instance_mark(s, instance)};
    const struct node_config_part *kept = part_cached(before, at, part.number, part.mark);

    if (kept) {
        out_key(o, NULL);
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
    struct out o = {.to = &to.text};
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
