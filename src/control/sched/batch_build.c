/* batch_build.c - the documents that a step writes, and the objects whose revisions guard it. */
#include <inttypes.h>
#include <string.h>

#include "control/job/job.h"
#include "control/kind/queue.h"
#include "control/sched/batch_doc.h"
#include "control/sched/batch_parts.h"
#include "control/tenant/usage.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

static bool is_own(const struct batches *u, uint64_t revision)
{
    size_t low = 0, high = u->own.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (u->own.at[mid] < revision)
            low = mid + 1;
        else
            high = mid;
    }
    return low < u->own.len && u->own.at[low] == revision;
}

/* Returns whether no other writer has changed the object since the plan's freeze. */
static bool unchanged_since(const struct batch *u, const struct object *o)
{
    return o->revision <= u->basis.revision || is_own(u->batches, o->revision);
}

/* Makes the commit conditional on the object's revision. Returns false if another writer has changed the object since
 * the plan's freeze, or if it is gone. */
static bool guard_object(struct batch *u, struct change *change, enum kind kind, const char *id)
{
    const struct object *o = state_find(change->state, kind, id);
    return o && unchanged_since(u, o) && change_guard(change, kind, id);
}

static bool ledger_write(struct batch *u, struct change *change, const char *node)
{
    const struct object *ledger = state_find(change->state, KIND_LEDGER, node);
    if (ledger && !guard_object(u, change, KIND_LEDGER, node))
        return false;
    json_int_t cycle = (json_int_t)u->basis.cycle;
    change_put(change, KIND_LEDGER, node, json_pack("{s:I, s:i}", "cycle", cycle, "unit", (int)u->number));
    return true;
}

/* A pod that has an instance gets another one because the first is lost, moves or stops; the commit depends on all of
 * the pod's instances. If a node has come back or a task has ended meanwhile, there is nothing to replace. */
static bool guard_other_instances(struct batch *u, struct change *change, const struct object *work,
                                  const struct batch_step *s)
{
    if (!batch_ordinal_used(&u->taken, change->state, work, s->ordinal, &u->arena))
        return true;
    for (size_t i = 0; i < work->work->instances_len; i++) {
        const struct object *o = work->work->instances[i];
        if (o->instance->ordinal != s->ordinal || o->instance->number == s->instance)
            continue;
        if (!unchanged_since(u, o))
            return false;
        if (!change_guard(change, KIND_INSTANCE, o->id))
            continue; /* this batch loses that instance */
        if (o->instance->state != BERTH_ENDED && !guard_object(u, change, KIND_NODE, o->instance->node))
            return false;
    }
    return true;
}

/* Binds persistent local volumes to the node on first use, so that their data is found again. Returns false if a volume
 * belongs to another node by now, or if another writer has changed it. */
static bool bind_volumes(struct batch *u, struct change *change, const struct object *work, const char *node)
{
    struct work_doc d;
    CLEANUP(json) json_t *doc = memmem(work->doc.at, work->doc.len, "volume", 6) ? object_doc(work) : NULL;
    if (!doc || work_doc_read(doc, &u->arena, &d, NULL) < 0)
        return true;
    const struct berth_shape *shape = &d.workload.shape;
    for (size_t i = 0; i < shape->volumes_len; i++) {
        const json_t *volume = change_read(change, KIND_VOLUME, shape->volumes[i]);
        const char *at = json_string_value(json_object_get(volume, "node"));
        if (volume_doc_needs_pin(volume, node, &u->arena) &&
            ((at && *at) || !guard_object(u, change, KIND_VOLUME, shape->volumes[i])))
            return false;
    }
    for (size_t i = 0; i < shape->volumes_len; i++)
        if (volume_doc_needs_pin(change_read(change, KIND_VOLUME, shape->volumes[i]), node, &u->arena))
            (void)json_object_set_new(change_edit(change, KIND_VOLUME, shape->volumes[i]), "node", json_string(node));
    return true;
}

/* Guards missing objects, too, because they may be created. */
static bool guard_quota_of(struct batch *u, struct change *change, enum kind kind, const char *id)
{
    return !id || !*id || guard_object(u, change, kind, id) || !(change_guard(change, kind, id));
}

/* Guards every object whose quota counts the workload: a limit that was lowered since the freeze is respected. */
static bool guard_quotas(struct batch *u, struct change *change, const struct object *work)
{
    const struct object *at = state_find(change->state, KIND_USER, work->owner);
    bool still = guard_quota_of(u, change, KIND_USER, work->owner) &&
                 guard_quota_of(u, change, KIND_GROUP, at ? at->user->group : NULL);
    const char *queue = work->kind == KIND_JOB ? work->work->queue : NULL;
    for (unsigned above = 0; still && queue && *queue && above <= QUEUE_DEPTH_MAX; above++) {
        still = guard_quota_of(u, change, KIND_QUEUE, queue);
        at = state_find(change->state, KIND_QUEUE, queue);
        queue = at ? at->queue->parent : NULL;
    }
    return still;
}

/* A reserved place is assigned under the same guards as a new one is taken. The workload is one of them: it decides how
 * many pods are wanted and whether a pod may have a second instance. Returns the workload, or NULL after a conflict. */
static const struct object *rests_on_place(struct batch *u, struct change *change, const struct batch_step *s)
{
    const struct object *work = state_find_work(change->state, s->workload);
    bool rests = work && guard_object(u, change, work->kind, work->id) && guard_object(u, change, KIND_NODE, s->node) &&
                 guard_quotas(u, change, work) && guard_other_instances(u, change, work, s) &&
                 ledger_write(u, change, s->node);
    return rests ? work : NULL;
}

static bool step_place(struct batch *u, struct change *change, const struct batch_step *s)
{
    const struct object *work = rests_on_place(u, change, s);
    if (!work || (s->op == BERTH_PLACE && !bind_volumes(u, change, work, s->node)))
        return false;
    change_put(change, KIND_INSTANCE, batch_instance_id(&u->arena, s->instance), json_incref(s->doc));
    return true;
}

const char *batch_stopped_for(const struct batch *u, uint64_t instance)
{
    for (size_t i = 0; i < u->steps.len; i++) {
        const json_t *waits = json_object_get(u->steps.at[i].doc, "waits");
        for (size_t w = 0; w < json_array_size(waits); w++)
            if ((uint64_t)json_integer_value(json_array_get(waits, w)) == instance)
                return u->steps.at[i].workload;
    }
    return NULL;
}

static bool step_change(struct batch *u, struct change *change, const struct batch_step *s)
{
    const char *id = batch_instance_id(&u->arena, s->instance);
    if (!guard_object(u, change, KIND_INSTANCE, id))
        return false;
    const struct object *o = state_find(change->state, KIND_INSTANCE, id);
    if (s->op == BERTH_LOSE && !guard_object(u, change, KIND_NODE, o->instance->node))
        return false; /* the node is back */
    if (s->op == BERTH_LOSE || (s->op == BERTH_STOP && o->instance->state == BERTH_RESERVED)) {
        if (s->op == BERTH_LOSE)
            usage_note_removed(change, o, "lost", u->basis.now_ns);
        job_note_task_stopped(change, o, s->op, s->cause, NULL, u->basis.now_ns);
        change_delete(change, KIND_INSTANCE, id);
        return true;
    }
    json_t *doc = change_edit(change, KIND_INSTANCE, id);
    if (s->op == BERTH_PROMOTE) {
        const struct object *work = rests_on_place(u, change, s);
        if (!work || !bind_volumes(u, change, work, s->node))
            return false;
    }
    if (s->op == BERTH_ADJUST) {
        json_t *limited = instance_doc_with_limit(doc, s->resource, s->limit, u->basis.now_ns, &u->arena);
        if (limited)
            change_put(change, KIND_INSTANCE, id, limited);
        return limited;
    }
    instance_doc_set_state(doc, s->op == BERTH_STOP ? "stopping" : "assigned", u->basis.now_ns);
    if (s->op == BERTH_STOP)
        job_note_task_stopped(change, o, s->op, s->cause, batch_stopped_for(u, s->instance), u->basis.now_ns);
    return true;
}

/* Returns whether the fact of a migration is unchanged: the fact that the step writes, or the fact of the instance that
 * stops or is replaced. */
static bool migration_unchanged(struct batch *u, struct change *change, const struct batch_step *s)
{
    uint64_t of = s->op == BERTH_STOP ? s->instance : 0;
    if (s->op == BERTH_PLACE || s->op == BERTH_RESERVE)
        of = (uint64_t)json_integer_value(json_object_get(s->doc, "replaces"));
    if (!s->fact && !of)
        return true;
    const char *id = s->fact ? s->fact : arena_fmt(&u->arena, "migration/%" PRIu64, of);
    const struct object *o = state_find(change->state, KIND_FACT, id);
    return !o || (unchanged_since(u, o) && change_guard(change, KIND_FACT, id));
}

bool batch_step_build(struct batch *u, struct change *change, const struct batch_step *s)
{
    if (!migration_unchanged(u, change, s))
        return false;
    if (s->fact && s->remembered.over)
        change_delete(change, KIND_FACT, s->fact);
    else if (s->fact)
        change_put(change, KIND_FACT, s->fact, json_incref(s->doc));
    else if (s->op == BERTH_PLACE || s->op == BERTH_RESERVE)
        return step_place(u, change, s) && reservation_victims_stop(change, s->doc);
    else
        return step_change(u, change, s);
    return true;
}
