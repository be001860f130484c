/* node_verbs.c - administrators' verbs on existing nodes. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/node/join.h"
#include "control/node/transition.h"
#include "control/optask/optask.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

struct state_move {
    const char *verb;
    enum berth_node_state to;
    int disabled; /* 1: set, 0: clear, -1: keep */
};

/* The state of a lost node takes effect when the node comes back. */
static int move(struct request *c, const char *id, json_t *doc, const void *arg)
{
    const struct state_move *m = arg;
    char now[TIMESTAMP_MAX];
    enum berth_node_state from = BERTH_NODE_READY;
    const char *state = json_string_value(json_object_get(doc, "state"));
    if (state && !node_state_find(state, &from))
        return err_set(&c->err, EINVAL, "state: %s is unknown", state);
    if (!node_transition_ok(from, m->to))
        return err_set(&c->err, EBUSY, "node %s is %s, which cannot become %s", id, berth_node_state_name(from),
                       berth_node_state_name(m->to));
    opsteps_unmark(&c->change, id);
    if (m->disabled == 1)
        (void)json_object_set_new(doc, "disabled", json_true());
    if (m->disabled == 0)
        (void)json_object_del(doc, "disabled");
    if (from == BERTH_NODE_LOST) {
        (void)json_object_set_new(doc, "was", json_string(berth_node_state_name(m->to)));
    } else if (from != m->to) {
        (void)json_object_set_new(doc, "state", json_string(berth_node_state_name(m->to)));
        (void)json_object_set_new(doc, "since", json_string(timestamp_text(c->now_ns, now)));
    }
    return 0;
}

static int answer(struct request *c, const char *verb, int rc)
{
    const char *id = NULL;
    if (rc == 0)
        rc = crud_id(c, KIND_NODE, c->args[0], &id);
    if (rc < 0)
        return rc;
    crud_name(c, KIND_NODE, id, verb);
    return crud_answer(c, KIND_NODE, id, false);
}

static int move_to(struct request *c, const struct state_move *m)
{
    return answer(c, m->verb, crud_edit(c, &node_crud, PERMIT_NODES, move, m));
}

int node_disable(struct request *c)
{
    static const struct state_move m = {"disable", BERTH_NODE_DRAINING, 1};
    return move_to(c, &m);
}

int node_enable(struct request *c)
{
    static const struct state_move m = {"enable", BERTH_NODE_READY, 0};
    return move_to(c, &m);
}

int node_cordon(struct request *c)
{
    static const struct state_move m = {"cordon", BERTH_NODE_CORDONED, -1};
    return move_to(c, &m);
}

int node_drain(struct request *c)
{
    static const struct state_move m = {"drain", BERTH_NODE_DRAINING, -1};
    return move_to(c, &m);
}

/* ---- parts of the document -------------------------------------------------------------------------------------- */

const char *const node_capability_keys[] = {"allocatable", "gpus",      "runtimes",   "images",
                                            "ports",       "page_size", "overcommit", NULL};
const char *const node_setting_keys[] = {"labels", "taints", "zone", "rack", "domain", "rank", NULL};

/* Replaces these keys by those of the body; other keys are kept. */
static int replace_part(struct request *c, const char *id, json_t *doc, const void *arg)
{
    const char *const *keys = arg;
    const char *name;
    json_t *value;
    CLEANUP(json) json_t *old = json_copy(doc);
    json_object_foreach((json_t *)c->body, name, value)
    {
        char quoted[QUOTE_MAX];
        bool known = false;
        for (const char *const *key = keys; *key && !known; key++)
            known = strcmp(*key, name) == 0;
        if (!known)
            return err_set(&c->err, EINVAL, "unknown key %s; PATCH /v1/nodes/%s accepts all keys of a node",
                           quote(name, quoted), id);
    }
    for (const char *const *key = keys; *key; key++) {
        json_t *given = json_object_get(c->body, *key);
        if (given && !json_is_null(given))
            (void)json_object_set_new(doc, *key, json_deep_copy(given));
        else
            (void)json_object_del(doc, *key);
    }
    return probed_ceiling(old, doc, &c->err);
}

int node_put_capabilities(struct request *c)
{
    return answer(c, "capabilities", crud_edit(c, &node_crud, PERMIT_NODES, replace_part, node_capability_keys));
}

int node_put_settings(struct request *c)
{
    return answer(c, "settings", crud_edit(c, &node_crud, PERMIT_NODES, replace_part, node_setting_keys));
}
