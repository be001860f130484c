#include "control/unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/plant.h"
#include "base/str.h"
#include "control/commit.h"
#include "control/job.h"
#include "control/queue.h"
#include "control/unit_group.h"
#include "control/unit_reasons.h"
#include "control/unit_taken.h"
#include "control/usage.h"
#include "wire/api.h"
#include "wire/document.h"

/* One action or fact, with all it needs when its unit's turn comes; the plan is gone by then. */
struct step {
    enum berth_op op;
    enum berth_cause cause;
    const char *workload, *node;
    uint32_t ordinal;
    uint64_t instance;
    json_t *doc;                  /* of PLACE, RESERVE: the instance's; of a fact: its own. NULL otherwise */
    const char *fact;             /* the id of a fact's document; NULL: an action */
    struct berth_fact remembered; /* that fact */
    const char *resource;         /* of ADJUST */
    int64_t limit;
};

struct unit {
    struct unit *next;
    struct units *units;
    struct arena arena;
    struct unit_basis basis;
    VEC(struct step) steps;
    struct str reasons; /* of the pods left over, on the plan's first unit */
    struct unit_taken taken;
    size_t number, of;
    bool whole;  /* all of its steps or none */
    bool frees;  /* some step makes room at once, which later ones may have been given */
    bool broken; /* a step of a whole one could not be assumed */
    uint64_t
        dropped; /* state_dropped when it was assumed: since then it stands in the cluster no more, if that differs */
};

struct units {
    struct control *control;
    void (*idle)(void *ctx);
    void *ctx;
    struct unit *first, *last; /* the first one is under way, if any is */
    size_t len;
    VEC(uint64_t) own; /* revisions of our commits, growing */
    uint64_t returned; /* how often something was given back that later plans count on */
    bool failed, troubled, submitted;
};

static void unit_free(struct unit *u)
{
    for (size_t i = 0; i < u->steps.len; i++)
        json_decref(u->steps.at[i].doc);
    vec_done(&u->steps);
    str_done(&u->basis.assumed);
    str_done(&u->reasons);
    arena_done(&u->arena);
    mem_free(u);
}

struct units *units_new(struct control *control, void (*idle)(void *ctx), void *ctx)
{
    struct units *u = mem_zalloc(sizeof *u);
    u->control = control;
    u->idle = idle;
    u->ctx = ctx;
    return u;
}

void units_free(struct units *u)
{
    if (!u)
        return;
    while (u->first) {
        struct unit *next = u->first->next;
        unit_free(u->first);
        u->first = next;
    }
    vec_done(&u->own);
    mem_free(u);
}

size_t units_len(const struct units *u)
{
    return u->len;
}

uint64_t units_returned(const struct units *u)
{
    return u->returned + state_dropped(u->control->state);
}

enum units_failure units_failure(struct units *u)
{
    enum units_failure failure = u->troubled ? UNITS_TROUBLE : u->failed ? UNITS_CONFLICT : UNITS_FINE;
    u->failed = u->troubled = false;
    return failure;
}

/* ---- from the plan ------------------------------------------------------------------------------------------------- */

static const char *instance_id(struct arena *arena, uint64_t number)
{
    char text[24];
    return arena_strdup(arena, str_u64(number, text));
}

static uint64_t generation_of(const struct state *s, const char *workload)
{
    const struct object *work = state_find_work(s, workload);
    return work ? work->work->generation : 0;
}

/* Assumes a new instance; the step carries its document. */
static int assume_place(struct unit *u, const struct berth_action *a, struct step *step)
{
    struct state *s = u->units->control->state;
    struct instance_doc d = {
        .instance = {.id = state_next_number(s, KIND_INSTANCE),
                     .workload = a->workload,
                     .ordinal = a->ordinal,
                     .node = a->node,
                     .state = a->op == BERTH_RESERVE ? BERTH_RESERVED : BERTH_ASSIGNED,
                     .since_ns = u->basis.now_ns,
                     .gpus = a->gpus,
                     .replaces = a->replaces,
                     .waits = a->waits,
                     .waits_len = a->waits_len},
        .generation = generation_of(s, a->workload),
    };
    int rc = state_assume(s, &d.instance, NULL);
    if (rc < 0)
        return rc;
    step->instance = d.instance.id;
    step->doc = instance_doc_make(&d);
    return 0;
}

/* Assumes what becomes of an instance that is there. */
static int assume_change(struct unit *u, const struct berth_action *a)
{
    struct state *s = u->units->control->state;
    char text[24];
    const struct object *o = state_find(s, KIND_INSTANCE, str_u64(a->instance, text));
    bool gone = a->op == BERTH_LOSE || (a->op == BERTH_STOP && o && o->instance->state == BERTH_RESERVED);
    if (state_is_assumed(s, KIND_INSTANCE, text))
        return -EAGAIN; /* an earlier unit is about to change it: the document does not say yet what it will be */
    if (gone)
        return state_assume_gone(s, a->instance, NULL);
    if (a->op == BERTH_ADJUST)
        return 0; /* counts nowhere: the report that confirms it changes the cluster */
    if (!o)
        return -EAGAIN; /* still assumed itself: wait for its document */

    struct arena_mark mark = arena_mark(&u->arena);
    struct instance_doc d;
    json_t *doc = object_doc(o);
    int rc = instance_doc_read(doc, &u->arena, &d, NULL);
    if (rc == 0) {
        d.instance.state = a->op == BERTH_STOP ? BERTH_STOPPING : BERTH_ASSIGNED;
        d.instance.since_ns = u->basis.now_ns;
        d.instance.waits_len = 0;
        rc = state_assume(s, &d.instance, NULL);
    }
    json_decref(doc);
    arena_rewind(&u->arena, mark);
    return rc;
}

static void step_add(struct unit *u, const struct berth_action *a)
{
    struct step step = {
        .op = a->op,
        .cause = a->cause,
        .workload = arena_strdup(&u->arena, a->workload),
        .node = arena_strdup(&u->arena, a->node ? a->node : ""),
        .ordinal = a->ordinal,
        .instance = a->instance,
        .resource = a->resource ? arena_strdup(&u->arena, a->resource) : NULL,
        .limit = a->limit,
    };
    int rc = a->op == BERTH_PLACE || a->op == BERTH_RESERVE ? assume_place(u, a, &step) : assume_change(u, a);
    if (rc < 0) { /* the cluster has changed while the plan was made */
        u->units->failed = true;
        u->broken = u->whole;
        json_decref(step.doc);
        return;
    }
    u->frees = u->frees || (u->whole && (a->op == BERTH_LOSE || a->op == BERTH_STOP));
    vec_push(&u->steps, step);
}

static void fact_add(struct unit *u, const struct berth_fact *fact)
{
    struct step step = {.fact = fact_doc_id(fact, &u->arena), .remembered = *fact};
    step.remembered.key = arena_strdup(&u->arena, fact->key ? fact->key : "");
    if (!fact->over)
        step.doc = fact_doc_make(fact);
    if (state_assume_fact(u->units->control->state, fact, NULL) == 0)
        vec_push(&u->steps, step);
    else
        json_decref(step.doc);
}

static struct unit *unit_new(struct units *u, const struct unit_basis *basis)
{
    struct unit *unit = mem_zalloc(sizeof *unit);
    unit->units = u;
    unit->dropped = state_dropped(u->control->state);
    unit->basis = *basis;
    unit->basis.assumed = (struct str){0};
    arena_init(&unit->arena);
    unit->basis.profile = arena_strdup(&unit->arena, basis->profile);
    if (u->last)
        u->last->next = unit;
    else
        u->first = unit;
    u->last = unit;
    u->len++;
    return unit;
}

static void advance(struct units *u);

static struct unit_groups *groups_read(const struct units *u, const struct berth_plan *plan)
{
    struct unit_groups *g = unit_groups_new(u->control->state);
    for (const struct unit *unit = u->first; unit; unit = unit->next)
        for (size_t i = 0; i < unit->steps.len; i++)
            if (!unit->steps.at[i].fact && unit->steps.at[i].op == BERTH_RESERVE)
                unit_groups_promised(g, unit->steps.at[i].node);
    unit_groups_read(g, plan);
    return g;
}

size_t units_add(struct units *u, struct berth_plan *plan, struct unit_basis *basis)
{
    struct unit *open = NULL, *first = NULL;
    VEC(struct unit *) groups = {0}; /* by their numbers */
    struct unit_groups *together = groups_read(u, plan);
    size_t made = 0, old = 0;

    /* What waits rests on the freeze of its own plan, and the first in line on the earliest. */
    uint64_t earliest = u->first ? u->first->basis.revision : basis->revision;
    while (old < u->own.len && u->own.at[old] <= earliest)
        old++;
    if (old) {
        memmove(u->own.at, u->own.at + old, (u->own.len - old) * sizeof *u->own.at);
        u->own.len -= old;
    }

    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        uint64_t number = unit_group_of(together, &a);
        while (groups.len <= number)
            vec_push(&groups, NULL);
        struct unit *unit = groups.at[number];
        if (!unit && (number || !open || open->steps.len >= UNIT_ACTIONS_MAX)) {
            unit = unit_new(u, basis);
            unit->number = ++made;
            first = first ? first : unit;
            if (number) {
                groups.at[number] = unit;
                unit->whole = true;
            } else {
                open = unit;
            }
        }
        step_add(unit ? unit : open, &a);
    }
    for (size_t i = 0; i < berth_plan_facts(plan); i++) {
        struct berth_fact fact = berth_plan_fact(plan, i);
        if (!first) {
            first = unit_new(u, basis);
            first->number = ++made;
        }
        fact_add(first, &fact);
    }
    if (first) { /* once in the journal for all units of the plan: it may be long */
        unit_reasons_write(plan, &first->reasons);
        first->basis.assumed = basis->assumed;
        basis->assumed = (struct str){0};
    }
    for (struct unit *unit = first; unit; unit = unit->next)
        unit->of = made;
    vec_done(&groups);
    unit_groups_free(together);
    advance(u);
    return made;
}

void units_assumed(const struct units *u, struct str *to)
{
    bool some = false;
    str_add_char(to, '[');
    for (const struct unit *unit = u->first; unit; unit = unit->next)
        for (size_t i = 0; i < unit->steps.len; i++) {
            const struct step *s = &unit->steps.at[i];
            char number[24];
            if (!state_is_assumed(u->control->state, s->fact ? KIND_FACT : KIND_INSTANCE,
                                  s->fact ? s->fact : str_u64(s->instance, number)))
                continue; /* somebody has changed it since: the unit will meet a conflict */
            json_t *tree = s->fact ? fact_doc_make(&s->remembered) : json_incref(s->doc);
            char *doc = tree ? json_dumps(tree, JSON_COMPACT) : NULL;
            json_decref(tree);
            str_addf(to, "%s[\"%s\",", some ? "," : "", s->fact ? "fact" : berth_op_name(s->op));
            if (s->fact)
                str_add_json(to, s->fact);
            else
                str_addf(to, "%" PRIu64, s->instance);
            str_addf(to, ",%" PRId64 ",%s]", unit->basis.now_ns, doc ? doc : "null");
            free(doc);
            some = true;
        }
    str_add_char(to, ']');
}

/* ---- to the store -------------------------------------------------------------------------------------------------- */

static bool is_own(const struct units *u, uint64_t revision)
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

/* Has nobody else changed it since the plan's freeze? */
static bool unchanged_since(const struct unit *u, const struct object *o)
{
    return o->revision <= u->basis.revision || is_own(u->units, o->revision);
}

/* Rests the unit on an object; false when somebody else has changed it since the plan's freeze, or it is gone. */
static bool rests_on(struct unit *u, struct change *change, enum kind kind, const char *id)
{
    const struct object *o = state_find(change->state, kind, id);
    return o && unchanged_since(u, o) && change_rest_on(change, kind, id);
}

static bool ledger_write(struct unit *u, struct change *change, const char *node)
{
    const struct object *ledger = state_find(change->state, KIND_LEDGER, node);
    if (ledger && !rests_on(u, change, KIND_LEDGER, node))
        return false;
    json_int_t cycle = (json_int_t)u->basis.cycle;
    change_put(change, KIND_LEDGER, node, json_pack("{s:I, s:i}", "cycle", cycle, "unit", (int)u->number));
    return true;
}

/* A pod that has an instance gets another one because that one is lost, moves or stops: rests on all of them. A node that
 * came back or a task that ended meanwhile leaves nothing to be replaced. */
static bool rests_on_others(struct unit *u, struct change *change, const struct object *work, const struct step *s)
{
    if (!unit_taken(&u->taken, change->state, work, s->ordinal, &u->arena))
        return true;
    for (size_t i = 0; i < work->work->instances_len; i++) {
        const struct object *o = work->work->instances[i];
        if (o->instance->ordinal != s->ordinal || o->instance->number == s->instance)
            continue;
        if (!unchanged_since(u, o))
            return false;
        if (!change_rest_on(change, KIND_INSTANCE, o->id))
            continue; /* this very unit loses it */
        if (o->instance->state != BERTH_ENDED && !rests_on(u, change, KIND_NODE, o->instance->node))
            return false;
    }
    return true;
}

/* Is it a folder that stays, on no node yet or on another than this? What hangs on a driver or is shared is reached from
 * elsewhere. */
static bool pin_wanted(const json_t *doc, const char *node, struct arena *arena)
{
    struct volume_doc v;
    return doc && volume_doc_read(doc, arena, &v, NULL) == 0 && v.type == VOLUME_LOCAL && !v.volume.shared &&
           !(v.volume.driver && *v.volume.driver) && !(v.volume.node && strcmp(v.volume.node, node) == 0);
}

/* What is in such a folder has to be found again: when it is used for the first time, it belongs to that node from now on.
 * False: it is another's by now, or somebody else has changed it. */
static bool pin_volumes(struct unit *u, struct change *change, const struct object *work, const char *node)
{
    struct work_doc d;
    CLEANUP(json) json_t *doc = memmem(work->doc.at, work->doc.len, "volume", 6) ? object_doc(work) : NULL;
    if (!doc || work_doc_read(doc, &u->arena, &d, NULL) < 0)
        return true;
    const struct berth_shape *shape = &d.workload.shape;
    for (size_t i = 0; i < shape->volumes_len; i++) {
        const json_t *volume = change_read(change, KIND_VOLUME, shape->volumes[i]);
        const char *at = json_string_value(json_object_get(volume, "node"));
        if (pin_wanted(volume, node, &u->arena) &&
            ((at && *at) || !rests_on(u, change, KIND_VOLUME, shape->volumes[i])))
            return false;
    }
    for (size_t i = 0; i < shape->volumes_len; i++)
        if (pin_wanted(change_read(change, KIND_VOLUME, shape->volumes[i]), node, &u->arena))
            (void)json_object_set_new(change_edit(change, KIND_VOLUME, shape->volumes[i]), "node", json_string(node));
    return true;
}

/* Guards what is not there, too: it may be made. */
static bool rests_on_quota(struct unit *u, struct change *change, enum kind kind, const char *id)
{
    return !id || !*id || rests_on(u, change, kind, id) || !(change_rest_on(change, kind, id));
}

/* Whatever it counts against is as the plan saw it: a limit that was lowered since holds. */
static bool rests_on_quotas(struct unit *u, struct change *change, const struct object *work)
{
    const struct object *at = state_find(change->state, KIND_USER, work->owner);
    bool still = rests_on_quota(u, change, KIND_USER, work->owner) &&
                 rests_on_quota(u, change, KIND_GROUP, at ? at->user->group : NULL);
    const char *queue = work->kind == KIND_JOB ? work->work->queue : NULL;
    for (unsigned above = 0; still && queue && *queue && above <= QUEUE_DEPTH_MAX; above++) {
        still = rests_on_quota(u, change, KIND_QUEUE, queue);
        at = state_find(change->state, KIND_QUEUE, queue);
        queue = at ? at->queue->parent : NULL;
    }
    return still;
}

static bool step_place(struct unit *u, struct change *change, const struct step *s)
{
    const struct object *work = state_find_work(change->state, s->workload);
    if (!work || !rests_on(u, change, work->kind, work->id) || !rests_on(u, change, KIND_NODE, s->node) ||
        !rests_on_quotas(u, change, work) || !rests_on_others(u, change, work, s) ||
        !ledger_write(u, change, s->node) || (s->op == BERTH_PLACE && !pin_volumes(u, change, work, s->node)))
        return false;
    change_put(change, KIND_INSTANCE, instance_id(&u->arena, s->instance), json_incref(s->doc));
    return true;
}

static void instance_becomes(json_t *doc, const char *state, int64_t now_ns)
{
    char since[TIMESTAMP_MAX];
    (void)json_object_set_new(doc, "state", json_string(state));
    (void)json_object_set_new(doc, "since", json_string(timestamp_text(now_ns, since)));
    (void)json_object_del(doc, "waits");
}

/* The document of an instance with another limit. */
static json_t *limit_becomes(struct unit *u, const json_t *doc, const struct step *s)
{
    struct instance_doc d;
    if (instance_doc_read(doc, &u->arena, &d, NULL) < 0)
        return NULL;
    struct berth_usage *usage = ARENA_ARRAY(&u->arena, struct berth_usage, d.instance.usage_len);
    for (size_t i = 0; i < d.instance.usage_len; i++) {
        usage[i] = d.instance.usage[i];
        if (strcmp(usage[i].resource, s->resource) == 0) {
            usage[i].limit = s->limit;
            usage[i].limit_since_ns = u->basis.now_ns;
        }
    }
    d.instance.usage = usage;
    return instance_doc_make(&d);
}

/* The workload that an instance is stopped for; NULL: none of this unit waits for it. */
static const char *stopped_for(const struct unit *u, uint64_t instance)
{
    for (size_t i = 0; i < u->steps.len; i++) {
        const json_t *waits = json_object_get(u->steps.at[i].doc, "waits");
        for (size_t w = 0; w < json_array_size(waits); w++)
            if ((uint64_t)json_integer_value(json_array_get(waits, w)) == instance)
                return u->steps.at[i].workload;
    }
    return NULL;
}

static bool step_change(struct unit *u, struct change *change, const struct step *s)
{
    const char *id = instance_id(&u->arena, s->instance);
    if (!rests_on(u, change, KIND_INSTANCE, id))
        return false;
    const struct object *o = state_find(change->state, KIND_INSTANCE, id);
    if (s->op == BERTH_LOSE && !rests_on(u, change, KIND_NODE, o->instance->node))
        return false; /* it is back */
    if (s->op == BERTH_LOSE || (s->op == BERTH_STOP && o->instance->state == BERTH_RESERVED)) {
        if (s->op == BERTH_LOSE)
            usage_note_gone(change, o, "lost", u->basis.now_ns);
        job_task_stopped(change, o, s->op, s->cause, NULL, u->basis.now_ns);
        change_delete(change, KIND_INSTANCE, id);
        return true;
    }
    json_t *doc = change_edit(change, KIND_INSTANCE, id);
    const struct object *work = s->op == BERTH_PROMOTE ? state_find_work(change->state, s->workload) : NULL;
    if (s->op == BERTH_PROMOTE && (!work || !rests_on_quotas(u, change, work) || !rests_on_others(u, change, work, s) ||
                                   !rests_on(u, change, KIND_NODE, s->node) || !ledger_write(u, change, s->node) ||
                                   !pin_volumes(u, change, work, s->node)))
        return false;
    if (s->op == BERTH_ADJUST) {
        json_t *limited = limit_becomes(u, doc, s);
        if (limited)
            change_put(change, KIND_INSTANCE, id, limited);
        return limited;
    }
    instance_becomes(doc, s->op == BERTH_STOP ? "stopping" : "assigned", u->basis.now_ns);
    if (s->op == BERTH_STOP)
        job_task_stopped(change, o, s->op, s->cause, stopped_for(u, s->instance), u->basis.now_ns);
    return true;
}

/* What a reservation waits for is about to stop, or has: else nothing would ever end the waiting. */
static bool waits_hold(struct change *change, const struct step *s)
{
    size_t i;
    json_t *id;
    char text[24];
    json_array_foreach(json_object_get(s->doc, "waits"), i, id)
    {
        const json_t *doc = change_read(change, KIND_INSTANCE, str_u64((uint64_t)json_integer_value(id), text));
        const char *state = json_string_value(json_object_get(doc, "state"));
        if (doc && (!state || strcmp(state, "stopping") != 0))
            return false;
    }
    return true;
}

/* Does nobody want something else of a migration by now: of the fact that is written, or of the instance that stops or is
 * taken over from? */
static bool wishes_stand(struct unit *u, struct change *change, const struct step *s)
{
    uint64_t of = s->op == BERTH_STOP ? s->instance : 0;
    if (s->op == BERTH_PLACE || s->op == BERTH_RESERVE)
        of = (uint64_t)json_integer_value(json_object_get(s->doc, "replaces"));
    if (!s->fact && !of)
        return true;
    const char *id = s->fact ? s->fact : arena_fmt(&u->arena, "migration/%" PRIu64, of);
    const struct object *o = state_find(change->state, KIND_FACT, id);
    return !o || (unchanged_since(u, o) && change_rest_on(change, KIND_FACT, id));
}

static bool step_build(struct unit *u, struct change *change, const struct step *s)
{
    if (!wishes_stand(u, change, s))
        return false;
    if (s->fact && s->remembered.over)
        change_delete(change, KIND_FACT, s->fact);
    else if (s->fact)
        change_put(change, KIND_FACT, s->fact, json_incref(s->doc));
    else if (s->op == BERTH_PLACE || s->op == BERTH_RESERVE)
        return step_place(u, change, s) && waits_hold(change, s);
    else
        return step_change(u, change, s);
    return true;
}

/* The cluster goes back to what the documents say. */
static void step_give_back(struct unit *u, const struct step *step)
{
    struct state *s = u->units->control->state;
    if (step->fact) {
        struct berth_fact none = step->remembered;
        none.over = true;
        (void)state_assume_fact(s, &none, NULL);
        state_restore(s, KIND_FACT, step->fact);
    } else
        state_restore(s, KIND_INSTANCE, instance_id(&u->arena, step->instance));
    u->units->failed = true;
}

static void give_back_later(struct units *u);

/* False: it is to be given back. Of a unit whose steps stand for themselves only those that cannot be are. */
static bool unit_build(struct unit *u, struct change *change)
{
    bool numbers = false;
    size_t kept = 0;
    for (size_t i = 0; i < u->steps.len; i++) {
        struct step *s = &u->steps.at[i];
        bool ok = step_build(u, change, s);
        if (!ok && u->whole)
            return false;
        numbers = numbers || (ok && !s->fact && (s->op == BERTH_PLACE || s->op == BERTH_RESERVE));
        if (ok) {
            u->steps.at[kept++] = *s;
        } else {
            give_back_later(u->units);
            step_give_back(u, s);
            json_decref(s->doc);
            metric_add(u->units->control->metrics, METRIC_UNITS_CONFLICT, 0, 1);
        }
    }
    u->steps.len = kept;
    if (numbers) {
        json_int_t last = (json_int_t)state_last_number(change->state, KIND_INSTANCE);
        change_put_unguarded(change, KIND_COUNTER, kinds[KIND_INSTANCE].plural, json_pack("{s:I}", "last", last));
    }
    return kept > 0;
}

static void unit_give_back(struct unit *u)
{
    for (size_t i = u->steps.len; i-- > 0;)
        step_give_back(u, &u->steps.at[i]);
    u->units->failed = true;
    metric_add(u->units->control->metrics, METRIC_UNITS_CONFLICT, 0, 1);
}

static void unit_pop(struct units *u)
{
    struct unit *unit = u->first;
    u->first = unit->next;
    if (!u->first)
        u->last = NULL;
    u->len--;
    unit_free(unit);
}

/* Something of the first unit does not come true. Gives back what counts on it, the last one first, so that what each one
 * replaced finds its place again: units of later plans, and of its own plan all behind it if others may have been given
 * the room it makes. The plan that is being made counts on it, too. */
static void give_back_later(struct units *u)
{
    VEC(struct unit *) later = {0};
    struct unit *kept = u->first;
    while (!u->first->frees && kept->next && kept->next->basis.cycle == u->first->basis.cycle)
        kept = kept->next;
    for (struct unit *unit = kept->next; unit; unit = unit->next)
        vec_push(&later, unit);
    kept->next = NULL;
    u->last = kept;
    while (later.len) {
        struct unit *unit = later.at[--later.len];
        unit_give_back(unit);
        unit_free(unit);
        u->len--;
    }
    vec_done(&later);
    u->returned++;
}

/* Drops the first unit, of which nothing is in the journal: what is said once for all units of its plan goes on. */
static void drop_first(struct units *u)
{
    struct unit *unit = u->first, *next = unit->next;
    if (next && next->basis.cycle == unit->basis.cycle && unit->basis.assumed.len) {
        next->basis.assumed = unit->basis.assumed;
        unit->basis.assumed = (struct str){0};
    }
    if (next && next->basis.cycle == unit->basis.cycle && unit->reasons.len) {
        next->reasons = unit->reasons;
        unit->reasons = (struct str){0};
    }
    unit_pop(u);
}

static void give_back_first(struct units *u)
{
    give_back_later(u);
    unit_give_back(u->first);
    drop_first(u);
}

static void count_placed(struct unit *u)
{
    struct control *c = u->units->control;
    int64_t now_ns = control_now_ns(c);
    for (size_t i = 0; i < u->steps.len; i++) {
        const struct step *s = &u->steps.at[i];
        if (s->fact)
            continue;
        metric_add(c->metrics, METRIC_ACTIONS, s->op, 1);
        if (s->op == BERTH_STOP && s->cause == BERTH_CAUSE_PREEMPTED)
            job_tell_preempted(c, s->workload, s->ordinal, s->node, stopped_for(u, s->instance));
        const struct object *work = s->op == BERTH_PLACE ? state_find_work(c->state, s->workload) : NULL;
        if (work && work->work->created_ns)
            metric_observe(c->metrics, METRIC_PLACE_SECONDS, now_ns - work->work->created_ns);
    }
}

/* Does the cluster have what it wants? */
static bool is_assumed(const struct unit *u)
{
    return u->dropped == state_dropped(u->units->control->state);
}

static void unit_done(void *ctx, const struct store_result *result)
{
    struct unit *unit = ctx;
    struct units *u = unit->units;
    struct control *c = u->control;
    u->submitted = false;
    metric_add(c->metrics, METRIC_COMMITS, result->rc == 0 ? 0 : result->rc == -EAGAIN ? 1 : 2, 1);
    if (result->rc == 0) {
        if (is_assumed(unit)) /* else later plans do not know of it */
            vec_push(&u->own, result->revision);
        for (size_t i = 0; i < unit->steps.len; i++)
            if (unit->steps.at[i].fact)
                state_fact_settle(c->state, unit->steps.at[i].fact);
        count_placed(unit);
    } else {
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "unit.failed", LOG_NUMBER("cycle", (int64_t)unit->basis.cycle),
                  LOG_NUMBER("unit", (int64_t)unit->number), LOG_NUMBER("actions", (int64_t)unit->steps.len),
                  LOG_TEXT("text", result->rc == -EAGAIN ? "something it rests on has changed" : result->text));
        u->troubled = u->troubled || result->rc != -EAGAIN;
        give_back_first(u);
    }
    if (result->rc == 0)
        unit_pop(u);
    advance(u);
    if (!u->first)
        u->idle(u->ctx);
}

/* The decision's part of the record. */
static void cycle_write(const struct unit *u, struct str *to)
{
    const struct unit_basis *b = &u->basis;
    str_addf(to,
             "{\"cycle\":{\"n\":%" PRIu64 ",\"unit\":%zu,\"of\":%zu,\"revision\":%" PRIu64 ",\"state\":\"%016" PRIx64
             "\",\"now\":%" PRId64 ",\"seed\":%" PRIu64 ",\"plan\":\"%016" PRIx64 "\",\"profile\":",
             b->cycle, u->number, u->of, b->revision, b->state_hash,
             b->now_ns + PLANTED(MOMENT_UNTOLD) * INT64_C(3600000000000), b->seed, b->plan_hash);
    str_add_json(to, b->profile);
    if (b->assumed.len) {
        str_add(to, ",\"assumed\":");
        str_add_bytes(to, b->assumed.at, b->assumed.len);
    }
    if (u->reasons.len) {
        str_add(to, ",\"pending\":");
        str_add_bytes(to, u->reasons.at, u->reasons.len);
    }
    str_add(to, "}}");
}

static bool unit_submit(struct unit *u)
{
    struct control *c = u->units->control;
    struct change change;
    CLEANUP(str) struct str extra = {0};
    struct berth_err err;
    change_init(&change, c->state, &u->arena);
    int rc = unit_build(u, &change) ? 0 : -EAGAIN;
    if (rc == 0) {
        cycle_write(u, &extra);
        struct commit_note note = {
            .who = "berth", .verb = "unit", .extra = {extra.at, extra.len}
        };
        rc = commit_submit(c, &change, &note, unit_done, u, &err);
        if (rc < 0) {
            u->units->troubled = true;
            log_write(c->env.log, c->now_ns, LEVEL_ERROR, "unit.refused", LOG_TEXT("text", err.text));
        }
    }
    change_done(&change);
    return rc > 0;
}

/* Submits the first unit, if none is under way; units that cannot be are given back. */
static void advance(struct units *u)
{
    while (u->first && !u->submitted) {
        if (u->first->steps.len && !u->first->broken && is_assumed(u->first) && unit_submit(u->first)) {
            u->submitted = true;
            return;
        }
        if (u->first->steps.len)
            give_back_first(u);
        else
            drop_first(u);
    }
}
