/* optask_drain.c - nodes that are drained for OpTasks: their previous state, and when it is restored.
 *
 * A step that drains a node has a mark with the node's previous state. Several steps of a node may have marks; removing
 * the last mark restores the node. If an administrator sets the node's state meanwhile, all marks are removed.
 */
#include <string.h>

#include "control/node/node.h"
#include "control/node/transition.h"
#include "control/optask/optask.h"
#include "wire/doc/api.h"

static enum berth_node_state state_at(const json_t *doc, const char *key)
{
    enum berth_node_state state = BERTH_NODE_READY;
    const char *name = json_string_value(json_object_get(doc, key));
    if (name)
        (void)node_state_find(name, &state);
    return state;
}

static void node_move(struct change *c, const char *node, enum berth_node_state to, int64_t now_ns)
{
    char now[TIMESTAMP_MAX];
    json_t *doc = change_edit(c, KIND_NODE, node);
    (void)json_object_set_new(doc, "state", json_string(berth_node_state_name(to)));
    (void)json_object_set_new(doc, "since", json_string(timestamp_text(now_ns, now)));
}

/* Returns the document of a step on the node with a mark, as the transaction would leave it; NULL: none. */
static const json_t *marked(struct change *c, const char *node)
{
    size_t len;
    const struct object *const *steps = opsteps_of_node(c->state, node, &len);
    for (size_t i = 0; i < len; i++) {
        /* nor did this transaction set a mark */
        if (!steps[i]->opstep->drained && steps[i]->opstep->state != OPSTEP_PENDING)
            continue;
        const json_t *doc = change_read(c, KIND_OPSTEP, steps[i]->id);
        if (doc && json_is_true(json_object_get(doc, "drained")))
            return doc;
    }
    return NULL;
}

static void mark(json_t *step, enum berth_node_state before)
{
    (void)json_object_set_new(step, "drained", json_true());
    if (before == BERTH_NODE_CORDONED)
        (void)json_object_set_new(step, "before", json_string(berth_node_state_name(before)));
}

static void unmark(json_t *step)
{
    (void)json_object_del(step, "drained");
    (void)json_object_del(step, "before");
}

void opstep_drain(struct change *c, const struct object *step, int64_t now_ns)
{
    const char *node = step->opstep->node;
    enum berth_node_state before = state_at(change_read(c, KIND_NODE, node), "state");
    const json_t *other = marked(c, node);
    json_t *doc = change_edit(c, KIND_OPSTEP, step->id);
    opstep_move(doc, OPSTEP_DRAINING, now_ns);
    if (before != BERTH_NODE_DRAINING) {
        mark(doc, before);
        node_move(c, node, BERTH_NODE_DRAINING, now_ns);
    } else if (other && other != doc) { /* drained not by an administrator, but by another step */
        mark(doc, state_at(other, "before"));
    }
}

void opstep_restore_node(struct change *c, const struct object *step, int64_t now_ns)
{
    const char *node = step->opstep->node;
    json_t *doc = change_edit(c, KIND_OPSTEP, step->id);
    enum berth_node_state before = state_at(doc, "before");
    unmark(doc);
    const json_t *now = change_read(c, KIND_NODE, node);
    if (!now || json_is_true(json_object_get(now, "disabled")) || marked(c, node))
        return;
    if (state_at(now, "state") == BERTH_NODE_DRAINING)
        node_move(c, node, before, now_ns);
    else if (state_at(now, "state") == BERTH_NODE_LOST && state_at(now, "was") == BERTH_NODE_DRAINING)
        (void)json_object_set_new(change_edit(c, KIND_NODE, node), "was", json_string(berth_node_state_name(before)));
}

void opsteps_unmark(struct change *c, const char *node)
{
    size_t len;
    const struct object *const *steps = opsteps_of_node(c->state, node, &len);
    for (size_t i = 0; i < len; i++)
        if (steps[i]->opstep->drained)
            unmark(change_edit(c, KIND_OPSTEP, steps[i]->id));
}
