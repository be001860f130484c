/* node_config.c - what one node shall run: exactly this, and nothing else. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/derived_out.h"
#include "control/derived_parts.h"
#include "wire/document.h"

#define FENCE_NS_DEFAULT (INT64_C(600) * 1000000000)

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

/* ---- resources ------------------------------------------------------------------------------------------------------ */

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

/* The limit that a plan has put in force, or the workload's own. */
static int64_t limit_in_force(const struct berth_limit *limit, const struct berth_instance *instance)
{
    for (size_t i = 0; i < instance->usage_len; i++)
        if (instance->usage[i].limit && strcmp(instance->usage[i].resource, limit->resource) == 0)
            return instance->usage[i].limit;
    return limit->amount;
}

static void limits_write(struct out *o, const struct berth_shape *shape, const struct berth_instance *instance,
                         struct arena *arena)
{
    if (!shape->limits_len)
        return;
    struct berth_limit *sorted = arena_dup(arena, shape->limits, shape->limits_len * sizeof *sorted);
    qsort(sorted, shape->limits_len, sizeof *sorted, limit_compare);
    out_open(o, "limits", '{');
    for (size_t i = 0; i < shape->limits_len; i++) {
        out_open(o, sorted[i].resource, '{');
        if (sorted[i].kind == BERTH_WEIGHTED)
            out_number(o, "weight", (uint64_t)sorted[i].amount);
        else
            out_amount(o, "amount", sorted[i].resource, limit_in_force(&sorted[i], instance));
        out_close(o, '}');
    }
    out_close(o, '}');
}

static void gpus_write(struct out *o, const struct berth_gpu_need *need, uint64_t held)
{
    if (!held)
        return;
    out_open(o, "gpus", '[');
    for (unsigned i = 0; i < BERTH_NODE_GPUS_MAX; i++)
        if (held >> i & 1)
            out_number(o, NULL, i);
    out_close(o, ']');
    if (need->milli && need->milli < BERTH_GPU_MILLI)
        out_number(o, "gpu_milli", need->milli);
    if (need->memory_bytes)
        out_amount(o, "gpu_memory", "memory", need->memory_bytes);
}

/* An endpoint's own start port, and how far up it may try: to the end of its app's block. */
static void ports_write(struct out *o, const struct work_doc *d)
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
        out_close(o, '}');
    }
    out_close(o, ']');
}

/* ---- what is said about it ------------------------------------------------------------------------------------------ */

/* With defaults filled in, as the app reads them. */
static void settings_write(struct out *o, const struct work_doc *d)
{
    CLEANUP(json) json_t *filled = NULL;

    if (!d->settings && !d->settings_schema)
        return;
    if (settings_check(d->settings_schema, d->settings, &filled, NULL) == 0)
        out_tree(o, "settings", filled);
    else if (d->settings) /* was checked when it was written; better the app's own words than none */
        out_tree(o, "settings", d->settings);
}

/* How long the agent keeps it when it hears nothing more from here: then it must have stopped it, because another one will
 * be started elsewhere. Not there: for ever. */
static void fence_write(struct out *o, const struct work_doc *d, bool service)
{
    enum berth_on_lost on_lost = d->workload.on_lost;

    if (on_lost == BERTH_LOST_DEFAULT)
        on_lost = service && d->workload.replicas > 1 ? BERTH_LOST_REPLACE : BERTH_LOST_FENCE;
    if (on_lost == BERTH_LOST_FENCE)
        out_number(o, "fence_ns", (uint64_t)(d->workload.fence_ns ? d->workload.fence_ns : FENCE_NS_DEFAULT));
}

/* How often a restart was asked for, by the workload as it is now: the agent restarts what it runs when this grows, also
 * what was placed from an earlier form of it. */
static void restart_write(struct out *o, const struct object *present, const struct object *from,
                          const struct work_doc *placed)
{
    uint64_t restarts = placed->restarts;

    if (present && present != from) {
        CLEANUP(json) json_t *doc = object_doc(present);
        restarts = (uint64_t)json_integer_value(json_object_get(doc, "restart"));
    }
    if (restarts)
        out_number(o, "restart", restarts);
}

/* The document it was placed from. NULL: its workload is gone without a trace, so there is nothing to run. */
static const struct object *placed_from(const struct state *s, const struct instance_view *i)
{
    const struct object *work = state_find_work(s, i->workload);

    if (work && work->work->generation == i->generation)
        return work;
    const struct object *spec = state_spec(s, i->workload, i->generation);
    return spec ? spec : work;
}

static void run_write(struct out *o, const struct state *s, const struct object *instance, const struct object *from)
{
    struct arena arena;
    struct work_doc work;
    struct instance_doc held;
    CLEANUP(json) json_t *doc = object_doc(from);
    CLEANUP(json) json_t *instance_doc = object_doc(instance);
    const struct object *present = state_find_work(s, instance->instance->workload);

    arena_init(&arena);
    int rc = work_doc_read(doc, &arena, &work, NULL);
    assert(rc == 0); /* both were read when they came */
    rc = instance_doc_read(instance_doc, &arena, &held, NULL);
    assert(rc == 0);
    (void)rc;
    out_text_given(o, "kind", present ? kinds[present->kind].name : NULL);
    out_text_given(o, "owner", from->owner);
    out_text_given(o, "group", from->group);
    texts_write(o, "command", work.command, work.command_len);
    env_write(o, &work, &arena);
    out_text_given(o, "image", work.image);
    out_text_given(o, "workdir", work.workdir);
    out_text_given(o, "runtime", work.workload.shape.runtime);
    gpus_write(o, &work.workload.shape.gpu, held.instance.gpus);
    requests_write(o, &work.workload.shape, &arena);
    limits_write(o, &work.workload.shape, &held.instance, &arena);
    ports_write(o, &work);
    texts_write(o, "volumes", work.workload.shape.volumes, work.workload.shape.volumes_len);
    settings_write(o, &work);
    if (work.install)
        out_tree(o, "install", work.install);
    fence_write(o, &work, present && present->kind == KIND_APP);
    restart_write(o, present, from, &work);
    arena_done(&arena);
}

static void instance_write(struct out *o, const struct state *s, const struct object *instance)
{
    const struct instance_view *i = instance->instance;
    const struct object *from = i->state == BERTH_STOPPING ? NULL : placed_from(s, i);

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

int node_config_write(const struct state *s, const char *node, struct str *to)
{
    const struct object *object = state_find(s, KIND_NODE, node);
    struct out o = {.to = to};

    if (!object)
        return -ENOENT;
    out_open(&o, NULL, '{');
    out_text(&o, "node", object->id);
    out_open(&o, "instances", '[');
    for (size_t i = 0; i < object->node->instances_len; i++) {
        const struct object *instance = object->node->instances[i];
        enum berth_state state = instance->instance->state;
        if (state != BERTH_RESERVED && state != BERTH_ENDED)
            instance_write(&o, s, instance);
    }
    out_close(&o, ']');
    out_close(&o, '}');
    return 0;
}
