/* batch_assume.c - assumes a plan's actions in the cluster until a commit confirms them or they are rolled back. */
#include <errno.h>

#include "base/str.h"
#include "control/sched/batch_parts.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

const char *batch_instance_id(struct arena *arena, uint64_t number)
{
    char text[24];
    return arena_strdup(arena, str_u64(number, text));
}

static uint64_t generation_of(const struct state *s, const char *workload)
{
    const struct object *work = state_find_work(s, workload);
    return work ? work->work->generation : 0;
}

/* Assumes a new instance and puts its document into the step. */
static int assume_place(struct batch *u, const struct berth_action *a, struct batch_step *step)
{
    struct state *s = u->batches->control->state;
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

/* Assumes the change of an existing instance. */
static int assume_change(struct batch *u, const struct berth_action *a)
{
    struct state *s = u->batches->control->state;
    char text[24];
    const struct object *o = state_find(s, KIND_INSTANCE, str_u64(a->instance, text));
    bool gone = a->op == BERTH_LOSE || (a->op == BERTH_STOP && o && o->instance->state == BERTH_RESERVED);
    if (state_is_assumed(s, KIND_INSTANCE, text))
        return -EAGAIN; /* an earlier batch is about to change it; its document does not show that yet */
    if (gone)
        return state_assume_removed(s, a->instance, NULL);
    if (a->op == BERTH_ADJUST)
        return 0; /* a limit is not counted; the agent's report that confirms it changes the cluster */
    if (!o)
        return -EAGAIN; /* the instance itself is only assumed: wait for its document */

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

void batch_assume(struct batch *u, const struct berth_action *a)
{
    struct batch_step step = {
        .op = a->op,
        .cause = a->cause,
        .workload = arena_strdup(&u->arena, a->workload),
        .node = arena_strdup(&u->arena, a->node ? a->node : ""),
        .ordinal = a->ordinal,
        .instance = a->instance,
        .resource = a->resource ? arena_strdup(&u->arena, a->resource) : NULL,
        .limit = a->limit,
        .score = a->score,
        .rival = a->rival,
    };
    int rc = a->op == BERTH_PLACE || a->op == BERTH_RESERVE ? assume_place(u, a, &step) : assume_change(u, a);
    if (rc < 0) { /* the cluster has changed since the plan was made */
        u->batches->failed = true;
        u->broken = u->whole;
        json_decref(step.doc);
        return;
    }
    u->frees = u->frees || (u->whole && (a->op == BERTH_LOSE || a->op == BERTH_STOP));
    vec_push(&u->steps, step);
}

void batch_assume_fact(struct batch *u, const struct berth_fact *fact)
{
    struct batch_step step = {.fact = fact_doc_id(fact, &u->arena), .remembered = *fact};
    step.remembered.key = arena_strdup(&u->arena, fact->key ? fact->key : "");
    if (!fact->over)
        step.doc = fact_doc_make(fact);
    if (state_assume_fact(u->batches->control->state, fact, NULL) == 0)
        vec_push(&u->steps, step);
    else
        json_decref(step.doc);
}

void batch_step_roll_back(struct batch *u, const struct batch_step *step)
{
    struct state *s = u->batches->control->state;
    if (step->fact) {
        struct berth_fact none = step->remembered;
        none.over = true;
        (void)state_assume_fact(s, &none, NULL);
        state_revert(s, KIND_FACT, step->fact);
    } else
        state_revert(s, KIND_INSTANCE, batch_instance_id(&u->arena, step->instance));
    u->batches->failed = true;
}
