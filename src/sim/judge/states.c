/* states.c - checks ids and states of documents (8, 13, 22), and the daemon's memory against the documents (4, 7). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "control/node/transition.h"
#include "control/sched/scheduler.h"
#include "sim/cluster/world.h"

enum { COMPARE_EVERY = 997 }; /* events between complete comparisons; larger states are compared less often */

struct id_watermarks {
    uint64_t last[KINDS];  /* highest number so far, of kinds with numeric ids */
    uint64_t floor[KINDS]; /* the same when this daemon process started */
    uint64_t life;
    VEC(uint8_t) used[KINDS]; /* by number */
    uint64_t audited;         /* state at the last audit */
    uint64_t compare_at;      /* event after which everything is compared again */
};

struct id_watermarks *ids_new(void)
{
    return mem_zalloc(sizeof(struct id_watermarks));
}

void ids_free(struct id_watermarks *i)
{
    for (unsigned k = 0; i && k < KINDS; k++)
        vec_done(&i->used[k]);
    mem_free(i);
}

/* ---- 8: ids ----------------------------------------------------------------------------------------------------- */

/* Checks that no id is used twice, and none that an earlier daemon process could have used. The ids of one plan may be
 * committed in another order than assigned. */
static void id_verify(struct sim_world *w, const struct mirror_doc *now)
{
    struct id_watermarks *ids = w->ids;
    int64_t number = 0;
    if (kinds[now->kind].grammar != ID_NUMBER)
        return;
    if (ids->life != w->daemon.life)
        memcpy(ids->floor, ids->last, sizeof ids->floor);
    ids->life = w->daemon.life;
    if (!str_parse_i64(now->id, &number) || number <= 0) {
        world_breach(w, 8, "%s %s has no number", kinds[now->kind].name, now->id);
        return;
    }
    if ((uint64_t)number <= ids->floor[now->kind])
        world_breach(w, 8, "%s %s is new, but before the daemon started there was %" PRIu64, kinds[now->kind].name,
                     now->id, ids->floor[now->kind]);
    if ((size_t)number < ids->used[now->kind].len && ids->used[now->kind].at[number])
        world_breach(w, 8, "%s %s is new, and has been there before", kinds[now->kind].name, now->id);
    if ((size_t)number >= ids->used[now->kind].len)
        vec_resize(&ids->used[now->kind], (size_t)number + 1);
    ids->used[now->kind].at[number] = 1;
    if ((uint64_t)number > ids->last[now->kind])
        ids->last[now->kind] = (uint64_t)number;
}

/* ---- 13: states ------------------------------------------------------------------------------------------------- */

/* Transitions according to INVARIANTS.md and the documentation, independent of the daemon's own table. */
static bool state_follows(enum berth_state from, enum berth_state to)
{
    switch (from) {
    case BERTH_RESERVED: return to == BERTH_ASSIGNED;
    case BERTH_ASSIGNED: return to != BERTH_RESERVED;
    case BERTH_STARTING: return to == BERTH_RUNNING || to == BERTH_STOPPING || to == BERTH_ENDED;
    case BERTH_RUNNING: return to == BERTH_STARTING || to == BERTH_STOPPING || to == BERTH_ENDED;
    case BERTH_STOPPING: return to == BERTH_ENDED;
    default: return false;
    }
}

/* Returns whether a job is requeued from the beginning: finished parts do not count any more. */
static bool runs_anew(const struct transaction *t)
{
    return t->asked && strstr(t->verb, "requeue");
}

static void instance_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *old,
                            const struct mirror_doc *now)
{
    const struct berth_instance *was = old ? &old->instance.instance : NULL, *is = now ? &now->instance.instance : NULL;
    world_count_check(w, 13);
    if (!was && is && is->state != BERTH_RESERVED && is->state != BERTH_ASSIGNED)
        world_breach(w, 13, "instance %s begins as %s", now->id, berth_state_name(is->state));
    if (was && is && was->state != is->state && !state_follows(was->state, is->state))
        world_breach(w, 13, "instance %s goes from %s to %s", now->id, berth_state_name(was->state),
                     berth_state_name(is->state));
    if (was && is &&
        (was->ordinal != is->ordinal || was->gpus != is->gpus || was->replaces != is->replaces ||
         strcmp(was->workload, is->workload) != 0 || strcmp(was->node, is->node) != 0 ||
         old->instance.generation != now->instance.generation))
        world_breach(w, 13, "instance %s is another one after %s", now->id, t->verb);
    if (was && was->state == BERTH_ENDED && !is && !runs_anew(t) && mirror_find(&w->mirror, KIND_JOB, was->workload))
        world_breach(w, 13, "task %u of job %s was done, and is forgotten by %s %s", was->ordinal, was->workload,
                     t->who, t->verb);
}

static void node_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *old,
                        const struct mirror_doc *now)
{
    if (old && now && !node_transition_ok(old->node.node.state, now->node.node.state))
        world_breach(w, 13, "node %s goes from %s to %s by %s", now->id, berth_node_state_name(old->node.node.state),
                     berth_node_state_name(now->node.node.state), t->verb);
    if (old && now && now->node.epoch < old->node.epoch)
        world_breach(w, 14, "node %s goes back from epoch %" PRIu64 " to %" PRIu64, now->id, old->node.epoch,
                     now->node.epoch);
}

static void workload_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *old,
                            const struct mirror_doc *now)
{
    if (!old || !now)
        return;
    if (now->work.meta.generation < old->work.meta.generation)
        world_breach(w, 13, "%s goes back to generation %" PRIu64, now->id, now->work.meta.generation);
    if (old->work.cancelled && !now->work.cancelled && !runs_anew(t))
        world_breach(w, 13, "job %s was cancelled, and is not any more", now->id);
    if (now->kind == KIND_JOB && old->work.failed && !now->work.failed && !runs_anew(t))
        world_breach(w, 13, "job %s had failed, and has not any more", now->id);
    if (strcmp(old->work.owner ? old->work.owner : "", now->work.owner ? now->work.owner : "") != 0)
        world_breach(w, 21, "%s has another owner than before", now->id);
}

/* ---- 22: what an agent may change ------------------------------------------------------------------------------- */

static json_t *without_status(const json_t *doc)
{
    static const char *const own[] = {"state", "since", "was", "epoch", "seq"};
    json_t *left = json_copy((json_t *)doc);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        (void)json_object_del(left, own[i]);
    return left;
}

static bool is_its_own(const struct mirror_doc *instance, const char *node, const char *workload)
{
    return instance && strcmp(instance->instance.instance.node, node) == 0 &&
           strcmp(workload, instance->instance.instance.workload) == 0;
}

/* Returns whether the fact is the health of a workload, which follows from a report about one of its pods. */
static bool notes_health(const struct sim_world *w, const struct transaction *t, const char *node, const char *fact)
{
    if (strncmp(fact, "since/", 6) != 0)
        return false;
    for (size_t i = 0; i < t->len; i++)
        if (t->changes[i].kind == KIND_INSTANCE && is_its_own(t->changes[i].old, node, fact + 6))
            return true;
    for (size_t i = 0; i < w->mirror.of[KIND_INSTANCE].len; i++)
        if (is_its_own(w->mirror.of[KIND_INSTANCE].at[i], node, fact + 6))
            return true;
    return false;
}

/* A failed task of an array stays as a record. */
static bool ends(const struct mirror_change *c)
{
    return !c->now || (c->now->instance.failed && c->now->instance.instance.state == BERTH_ENDED);
}

/* The end of an instance may end the workload, and records its termination message. */
static bool ends_with_it(const struct transaction *t, const char *node, const char *workload)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->changes[i].kind == KIND_INSTANCE && ends(&t->changes[i]) &&
            is_its_own(t->changes[i].old, node, workload))
            return true;
    return false;
}

static bool only_ends(const struct mirror_doc *old, const struct mirror_doc *now)
{
    static const char *const end[] = {"failed", "ended", "outcome", "error"};
    if (!old || !now)
        return false;
    json_t *was = json_copy(old->doc), *is = json_copy(now->doc);
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) {
        (void)json_object_del(was, end[i]);
        (void)json_object_del(is, end[i]);
    }
    enum work_outcome outcome = now->work.outcome;
    bool told = now->work.failed ? outcome == OUTCOME_FAILED || outcome == OUTCOME_OUT_OF_MEMORY
                                 : now->work.ended && outcome == OUTCOME_SUCCEEDED;
    bool same = json_equal(was, is) && told && !old->work.failed;
    json_decref(was);
    json_decref(is);
    return same;
}

/* Returns whether this is the usage record of an instance of this node. */
static bool records_its_own(const struct transaction *t, const char *node, const struct mirror_doc *record)
{
    uint64_t id = record ? (uint64_t)json_integer_value(json_object_get(record->doc, "instance")) : 0;
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *old = t->changes[i].kind == KIND_INSTANCE ? t->changes[i].old : NULL;
        if (old && old->instance.instance.id == id && strcmp(old->instance.instance.node, node) == 0)
            return true;
    }
    return false;
}

/* Returns whether an instance of the node is deleted, ends or begins to stop. Other documents may change then. */
static bool leaves_by_it(const struct transaction *t, const char *node)
{
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *old = t->changes[i].kind == KIND_INSTANCE ? t->changes[i].old : NULL,
                                *now = t->changes[i].now;
        if (old && strcmp(old->instance.instance.node, node) == 0 &&
            (!now || now->instance.instance.state == BERTH_STOPPING || now->instance.instance.state == BERTH_ENDED))
            return true;
    }
    return false;
}

static void agent_change_verify(struct sim_world *w, const struct transaction *t, const struct mirror_change *c)
{
    const struct mirror_doc *s = c->now ? c->now : c->old;
    const char *node = t->who + 5;
    bool own = false;
    if (c->kind == KIND_INSTANCE)
        own = c->old && strcmp(c->old->instance.instance.node, node) == 0;
    if (c->kind == KIND_FACT)
        own = s && notes_health(w, t, node, s->id);
    if (c->kind == KIND_LAST_END)
        own = s && ends_with_it(t, node, s->id);
    if (c->kind == KIND_USAGE_RECORD)
        own = !c->old && records_its_own(t, node, c->now);
    if (c->kind == KIND_LEDGER)
        own = s && strcmp(s->id, LEDGER_QUOTAS) == 0 && leaves_by_it(t, node);
    if (kind_is_workload(c->kind))
        own = s && only_ends(c->old, c->now) && ends_with_it(t, node, s->id);
    if (c->kind == KIND_NODE && c->old && c->now && strcmp(s->id, node) == 0) {
        json_t *was = without_status(c->old->doc), *is = without_status(c->now->doc);
        own = json_equal(was, is);
        json_decref(was);
        json_decref(is);
    }
    if (!own && c->kind != KIND_REPLY)
        world_breach(w, 22, "the agent of %s changed %s %s", node, s ? kinds[s->kind].name : "?", s ? s->id : "?");
}

/* ---- 4: usage --------------------------------------------------------------------------------------------------- */

/* Counts the usage records of an instance's end in this transaction. */
static size_t records_of(const struct transaction *t, uint64_t instance)
{
    size_t n = 0;
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_doc *now = t->changes[i].kind == KIND_USAGE_RECORD ? t->changes[i].now : NULL;
        const char *outcome = now ? json_string_value(json_object_get(now->doc, "outcome")) : NULL;
        n += now && (uint64_t)json_integer_value(json_object_get(now->doc, "instance")) == instance && outcome &&
             strcmp(outcome, "running") != 0;
    }
    return n;
}

/* Checks that the transaction that ends an instance writes its usage record, once. */
static void usage_verify(struct sim_world *w, const struct transaction *t, const struct mirror_doc *old,
                         const struct mirror_doc *now)
{
    const struct instance_doc *was = old ? &old->instance : NULL;
    bool ends = was && was->instance.state != BERTH_ENDED && (!now || now->instance.instance.state == BERTH_ENDED);
    size_t records = records_of(t, was ? was->instance.id : now->instance.instance.id);
    if (ends ? records > 1 || (was->started_ns && records == 0) : records > 0)
        world_breach(w, 4, "instance %" PRIu64 " %s, and its use is recorded %zu times",
                     was ? was->instance.id : now->instance.instance.id, ends ? "ends" : "goes on", records);
}

void states_verify(struct sim_world *w, const struct transaction *t)
{
    for (size_t i = 0; i < t->len; i++) {
        const struct mirror_change *c = &t->changes[i];
        if (!c->old && c->now)
            id_verify(w, c->now);
        if (c->kind == KIND_INSTANCE)
            instance_verify(w, t, c->old, c->now);
        else if (c->kind == KIND_NODE)
            node_verify(w, t, c->old, c->now);
        else if (kind_is_workload(c->kind))
            workload_verify(w, t, c->old, c->now);
        if (strncmp(t->who, "node:", 5) == 0)
            agent_change_verify(w, t, c);
    }
}

void usage_records_verify(struct sim_world *w, const struct transaction *t)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->changes[i].kind == KIND_INSTANCE)
            usage_verify(w, t, t->changes[i].old, t->changes[i].now);
}

/* ---- memory of the daemon --------------------------------------------------------------------------------------- */

static void compare(struct sim_world *w)
{
    const struct state *s = control_state(w->daemon.control);
    for (unsigned k = 0; k < KINDS; k++) {
        size_t len;
        const struct object *const *list = state_list(s, (enum kind)k, &len);
        if (len != w->mirror.of[k].len)
            world_breach(w, 7, "the daemon knows %zu %s, the store has %zu", len, kinds[k].plural, w->mirror.of[k].len);
        for (size_t i = 0; i < len && !w->invariant; i++) {
            const struct mirror_doc *mirror_doc = mirror_find(&w->mirror, (enum kind)k, list[i]->id);
            if (!mirror_doc || mirror_doc->revision != list[i]->revision || mirror_doc->created != list[i]->created ||
                mirror_doc->len != list[i]->doc.len || memcmp(mirror_doc->text, list[i]->doc.at, mirror_doc->len) != 0)
                world_breach(w, 7, "the daemon has another %s %s than the store", kinds[k].name, list[i]->id);
        }
    }
}

void states_check(struct sim_world *w)
{
    struct id_watermarks *ids = w->ids;
    struct berth_err err;
    size_t objects = 0;
    if (!w->daemon.control)
        return;
    struct state *s = control_state(w->daemon.control);
    uint64_t now = hash_pair(hash_pair(state_revision(s), state_assumed(s)), w->daemon.life);
    bool whole = w->event >= ids->compare_at;
    if (now == ids->audited && !whole)
        return;
    ids->audited = now;
    w->counts.checks++;
    if (berth_audit(state_cluster(s), &err) < 0)
        world_breach(w, 4, "%s", err.text);
    if (!whole)
        return;
    for (unsigned k = 0; k < KINDS; k++)
        objects += w->mirror.of[k].len;
    ids->compare_at = w->event + COMPARE_EVERY + objects / 4;
    compare(w);
    /* Commit batches in progress are not in the documents yet. */
    if (scheduler_status(control_scheduler(w->daemon.control)).batches == 0 && state_audit(s, &err) < 0)
        world_breach(w, 4, "%s", err.text);
}
