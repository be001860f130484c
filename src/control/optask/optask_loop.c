/* optask_loop.c - decides which steps of OpTasks start: a limited number per OpTask, one per node, until too many have
 * failed. Drains nodes first where requested, and restores them afterwards.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "control/control_parts.h"
#include "control/node/node.h"
#include "control/optask/optask_index.h"
#include "control/state/commit.h"
#include "wire/text/document.h"

enum { WRITES_MAX = 1000, AGAIN_S = 1 };
#define SECOND_NS INT64_C(1000000000)

struct optask_loop {
    struct control *control;
    struct opindex *index;
    bool dirty, busy;
    bool unread;      /* the index is to be rebuilt from all steps */
    int64_t look_ns;  /* steady time of the next check, unless an event comes first */
    int64_t again_ns; /* steady time; nothing is written before, whatever happens */
};

/* One check of all open steps. */
struct optask_pass {
    struct optask_loop *all;
    struct change change;
    struct arena arena;
    const struct object *const *tasks;
    size_t tasks_len, writes;
    size_t *begun; /* per OpTask: number of steps that this check starts */
    int64_t now_ns;
};

struct optask_loop *optasks_new(struct control *control)
{
    struct optask_loop *o = mem_zalloc(sizeof *o);
    *o = (struct optask_loop){.control = control, .index = opindex_new(), .dirty = true, .unread = true};
    return o;
}

void optasks_free(struct optask_loop *o)
{
    if (!o)
        return;
    opindex_free(o->index);
    mem_free(o);
}

static size_t open_len(const struct optask_loop *o)
{
    size_t len;
    (void)opindex_open(o->index, &len);
    return len;
}

static void index_note(struct optask_loop *o, const char *id, const struct object *step)
{
    bool orphan = step && !state_find(o->control->state, KIND_OPTASK, step->opstep->optask);
    opindex_note(o->index, id, step ? step->opstep : NULL, orphan);
}

void optasks_event(struct optask_loop *o, enum kind kind, const char *id)
{
    bool of_it = kind == KIND_OPTASK || kind == KIND_OPSTEP, around = kind == KIND_NODE || kind == KIND_INSTANCE;
    const struct object *it = of_it ? state_find(o->control->state, kind, id) : NULL;
    if (kind == KIND_OPSTEP)
        index_note(o, id, it);
    else if (kind == KIND_OPTASK && !it) /* the OpTask may have left steps behind */
        o->unread = true;
    o->dirty = o->dirty || of_it || (around && open_len(o));
}

static void index_read(struct optask_loop *o)
{
    size_t len;
    const struct object *const *steps = state_list(o->control->state, KIND_OPSTEP, &len);
    for (size_t i = 0; i < len; i++)
        index_note(o, steps[i]->id, steps[i]);
    o->unread = false;
}

static size_t first_at_least(const struct object *const *at, size_t len, const char *id)
{
    size_t low = 0, high = len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(at[mid]->id, id) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct object *const *opsteps_of_node(const struct state *s, const char *node, size_t *ret_len)
{
    char first[OBJECT_KEY_MAX], after[OBJECT_KEY_MAX];
    size_t len;
    const struct object *const *all = state_list(s, KIND_OPSTEP, &len);
    (void)snprintf(first, sizeof first, "%s/", node);
    (void)snprintf(after, sizeof after, "%s%c", node, '/' + 1);
    size_t from = first_at_least(all, len, first);
    *ret_len = first_at_least(all, len, after) - from;
    return *ret_len > 0 ? all + from : NULL;
}

static size_t task_at(const struct optask_pass *l, const char *id)
{
    size_t at = first_at_least(l->tasks, l->tasks_len, id);
    return at < l->tasks_len && strcmp(l->tasks[at]->id, id) == 0 ? at : l->tasks_len;
}

/* ---- one step --------------------------------------------------------------------------------------------------- */

static json_t *edit(struct optask_pass *l, const struct object *step, enum opstep_state to)
{
    json_t *doc = change_edit(&l->change, KIND_OPSTEP, step->id);
    opstep_move(doc, to, l->now_ns);
    l->writes++;
    return doc;
}

/* Starts the step: from now on it is in the agent's configuration. */
static void step_begin(struct optask_pass *l, const struct object *step)
{
    const struct opstep_view *v = step->opstep;
    json_t *doc = edit(l, step, v->undo ? OPSTEP_UNDOING : OPSTEP_RUNNING);
    (void)json_object_set_new(doc, "attempt", json_integer((json_int_t)v->attempt + 1));
}

static void drain(struct optask_pass *l, const struct object *step)
{
    opstep_drain(&l->change, step, l->now_ns);
    l->writes++;
}

/* Restores the node's previous state, unless an administrator has set another one meanwhile. */
static void node_restore(struct optask_pass *l, const struct object *step)
{
    opstep_restore_node(&l->change, step, l->now_ns);
    l->writes++;
}

static bool node_empty(const struct object *node)
{
    for (size_t i = 0; i < node->node->instances_len; i++)
        if (instance_holds_node(node->node->instances[i]))
            return false;
    return true;
}

static bool may_begin(const struct optask_pass *l, const struct object *step, const struct object *node, size_t task)
{
    const struct opstep_view *v = step->opstep;
    const struct optask_doc *d = l->tasks[task]->optask;
    const struct optask_counts t = opindex_counts(l->all->index, v->optask);
    if (node->node->state == BERTH_NODE_LOST || (node->node->state == BERTH_NODE_JOINING && !v->init))
        return false;
    if (v->init && !v->undo) /* a new node does not wait for other nodes */
        return node->node->epoch > 0;
    return t.active + l->begun[task] < d->parallel && (v->undo || t.failed <= (size_t)d->max_failures + v->excused);
}

static void step_lose(struct optask_pass *l, const struct object *step)
{
    json_t *doc = edit(l, step, OPSTEP_FAILED);
    (void)json_object_set_new(doc, "fault", json_string(opstep_fault_name(OPFAULT_LOST)));
    (void)json_object_set_new(doc, "error", json_string("the node was lost during the run and has not returned"));
}

/* Deletes a step whose OpTask was deleted while the step was created. */
static void orphan_drop(struct optask_pass *l, const struct object *step)
{
    if (step->opstep->drained)
        node_restore(l, step);
    change_delete(&l->change, KIND_OPSTEP, step->id);
    l->writes++;
}

static void draining_check(struct optask_pass *l, const struct object *step, const struct object *node)
{
    if (node->node->state == BERTH_NODE_LOST) { /* the step has not started, so other steps go first */
        if (step->opstep->drained)
            node_restore(l, step);
        (void)edit(l, step, OPSTEP_PENDING);
    } else if (node_empty(node)) {
        step_begin(l, step);
    }
}

/* Returns true if the node has an active step. */
static bool step_check(struct optask_pass *l, const struct object *step, const struct object *node, bool busy)
{
    const struct opstep_view *v = step->opstep;
    size_t task = task_at(l, v->optask);
    if (task == l->tasks_len) {
        orphan_drop(l, step);
        return busy;
    }
    const struct optask_doc *d = l->tasks[task]->optask;
    switch (v->state) {
    case OPSTEP_DRAINING: draining_check(l, step, node); break;
    case OPSTEP_RUNNING:
    case OPSTEP_UNDOING:
        if (node->node->state == BERTH_NODE_LOST && l->now_ns - node->node->since_ns > d->timeout_ns)
            step_lose(l, step);
        break;
    case OPSTEP_PENDING:
        if (busy || !may_begin(l, step, node, task))
            break;
        l->begun[task]++;
        if (d->drain && !v->undo)
            drain(l, step);
        else
            step_begin(l, step);
        return true;
    case OPSTEP_DONE:
    case OPSTEP_UNDONE:
        if (v->drained)
            node_restore(l, step);
        break;
    case OPSTEP_FAILED: break; /* a drained node stays drained: its condition is unknown */
    }
    return busy;
}

/* ---- all steps -------------------------------------------------------------------------------------------------- */

/* Checks the steps of one node, one after the other. */
static void node_check(struct optask_pass *l, const char *const *ids, size_t len, const struct object *node)
{
    const struct state *s = l->all->control->state;
    bool busy = false;
    for (size_t i = 0; i < len; i++)
        busy = busy || opstep_active(state_find(s, KIND_OPSTEP, ids[i])->opstep->state);
    for (size_t i = 0; node && i < len; i++)
        busy = step_check(l, state_find(s, KIND_OPSTEP, ids[i]), node, busy);
}

static void all_check(struct optask_pass *l)
{
    const struct state *s = l->all->control->state;
    size_t len, end;
    const char *const *ids = opindex_open(l->all->index, &len);
    l->tasks = state_list(s, KIND_OPTASK, &l->tasks_len);
    l->begun = ARENA_ARRAY(&l->arena, size_t, l->tasks_len + 1);
    for (size_t i = 0; i < len && l->writes < WRITES_MAX && l->change.bytes < CHANGE_BYTES_ENOUGH; i = end) {
        const char *node = state_find(s, KIND_OPSTEP, ids[i])->opstep->node;
        for (end = i + 1; end < len && strcmp(state_find(s, KIND_OPSTEP, ids[end])->opstep->node, node) == 0;)
            end++;
        node_check(l, ids + i, end - i, state_find(s, KIND_NODE, node));
    }
}

/* After a failure the check is repeated: at once after a conflict, else after a pause. */
static void on_written(void *ctx, const struct store_result *result)
{
    struct optask_loop *o = ctx;
    const struct control_env *env = &o->control->env;
    int64_t now_ns = env->steady_ns(env->ctx);
    o->busy = false;
    o->dirty = true;
    if (result->rc < 0 && result->rc != -EAGAIN)
        o->again_ns = now_ns + AGAIN_S * SECOND_NS;
    env->wake_at(env->ctx, o->again_ns > now_ns ? o->again_ns : now_ns);
}

void optasks_step(struct optask_loop *o)
{
    struct control *c = o->control;
    struct optask_pass l = {.all = o};
    struct berth_err err;
    int64_t steady_ns = c->env.steady_ns(c->env.ctx);
    if (o->busy || c->stopping || c->broken[0] || steady_ns < o->again_ns)
        return;
    if (!o->dirty && (!open_len(o) || steady_ns < o->look_ns))
        return;
    o->dirty = false;
    l.now_ns = control_now_ns(c);
    arena_init(&l.arena);
    change_init(&l.change, c->state, &l.arena);
    if (o->unread)
        index_read(o);
    all_check(&l);
    o->look_ns = steady_ns + SECOND_NS;
    struct commit_note note = {.who = "berth", .verb = "optask"};
    int rc = l.writes ? commit_submit(c, &l.change, &note, on_written, o, &err) : 0;
    o->busy = rc > 0;
    if (rc < 0) {
        log_write(c->env.log, l.now_ns, LEVEL_WARN, "optask.failed", LOG_TEXT("text", err.text));
        on_written(o, &(struct store_result){.rc = rc});
    }
    change_done(&l.change);
    arena_done(&l.arena);
}
