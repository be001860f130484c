/* node.c - nodes as objects: checks, kept members, and what is deleted with a released node. */
#include "control/node/node.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "control/node/join.h"
#include "control/node/transition.h"
#include "control/optask/optask.h"
#include "control/state/sync.h"
#include "control/tenant/usage.h"
#include "core/model/cluster.h"
#include "core/model/resource_names.h"
#include "wire/doc/api.h"
#include "wire/doc/queue_doc.h"
#include "wire/text/document.h"

enum { NAMED_MAX = 5 }; /* instances named in an error */

static const char *member(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

/* A new node is ready, joining or cordoned; later only verbs change its state. */
static int prepare(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    (void)k;
    char now[TIMESTAMP_MAX];
    enum berth_node_state state = BERTH_NODE_READY;
    const json_t *given = json_object_get(doc, "state");
    if (given && (!json_is_string(given) || !node_state_find(json_string_value(given), &state)))
        return err_set(&c->err, EINVAL, "state: expected ready, joining or cordoned");
    if (!old) {
        if (state == BERTH_NODE_DRAINING || state == BERTH_NODE_LOST)
            return err_set(&c->err, EINVAL, "state: a new node is ready, joining or cordoned");
        (void)json_object_set_new(doc, "state", json_string(berth_node_state_name(state)));
        (void)json_object_set_new(doc, "since", json_string(timestamp_text(c->now_ns, now)));
        static const char *const later[] = {"disabled", "joined", "probed", "ceiling"};
        for (size_t i = 0; i < sizeof later / sizeof *later; i++)
            (void)json_object_del(doc, later[i]);
        return 0;
    }
    static const char *const daemons[] = {"joined", "probed", "ceiling"};
    for (size_t i = 0; i < sizeof daemons / sizeof *daemons; i++) {
        json_t *was = json_object_get(old, daemons[i]), *is = json_object_get(doc, daemons[i]);
        if (was ? !is || !json_equal(was, is) : is != NULL)
            return err_set(&c->err, EINVAL, "%s: is set by the daemon from the reports of the agent", daemons[i]);
    }
    int rc = probed_ceiling(old, doc, &c->err);
    if (rc < 0)
        return rc;
    static const char *const verbs[] = {"state", "disabled"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *was = json_object_get(old, verbs[i]), *is = json_object_get(doc, verbs[i]);
        bool same = was ? is && json_equal(was, is) : !is || json_is_false(is);
        if (!same)
            return err_set(&c->err, EINVAL,
                           "%s: is changed with POST /v1/nodes/%s/ and enable, disable, cordon or drain", verbs[i], id);
    }
    if (json_object_get(old, "since"))
        (void)json_object_set(doc, "since", json_object_get(old, "since"));
    return 0;
}

/* Rejects a domain that has no effect: a domain that lists the node, or whose labels match, takes precedence over the
 * node's document. */
static int domain_check(struct request *c, const char *id, const json_t *old, const struct berth_node *node)
{
    const char *was = member(old, "domain"), *is = node->domain;
    if (!is || !*is || (was && strcmp(was, is) == 0))
        return 0;
    for (size_t i = 0; i < c->change.items.len; i++)
        if (c->change.items.at[i].kind == KIND_DOMAIN) /* another part of the transaction may change the domain */
            return 0;
    const char *in = node_domain(c->state, id, node);
    const struct object *o = strcmp(in, is) != 0 ? state_find(c->state, KIND_DOMAIN, in) : NULL;
    if (!o || !change_guard(&c->change, KIND_DOMAIN, in))
        return 0;
    bool listed = false;
    for (size_t i = 0; i < o->domain->nodes_len; i++)
        listed = listed || strcmp(o->domain->nodes[i], id) == 0;
    return err_set(&c->err, EINVAL, "domain: %s is in domain %s, %s; change the domain first", id, in,
                   listed ? "which lists the node" : "whose `require` matches the labels of the node");
}

static int check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    (void)k;
    struct node_doc d;
    int rc = node_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = describe_node(state_cluster(c->state), &d.node, &c->err);
    if (rc == 0)
        rc = domain_check(c, id, old, &d.node);
    if (rc == 0 && old)
        rc = node_check_in_use(c, id, old, doc);
    if (rc == 0 && !c->dry_run)
        resource_names_of_node(state_cluster(c->state), &d.node);
    return rc;
}

/* ---- release ---------------------------------------------------------------------------------------------------- */

/* Returns -EBUSY naming the remaining instances; 0: none. */
static int name_instances(struct request *c, const char *id, const struct node_view *node)
{
    CLEANUP(str) struct str names = {0};
    size_t len = 0;
    for (size_t i = 0; i < node->instances_len; i++)
        if (instance_holds_node(node->instances[i]) && ++len <= NAMED_MAX)
            str_addf(&names, "%s%s of %s", len > 1 ? ", " : "", node->instances[i]->id,
                     node->instances[i]->instance->workload);
    if (len == 0)
        return 0;
    if (len > NAMED_MAX)
        str_addf(&names, " and %zu more", len - NAMED_MAX);
    return err_set(&c->err, EBUSY,
                   "node %s still runs instances %s; drain it first, or use force (--force, ?force=true)", id,
                   str_text(&names));
}

static bool forced(struct request *c, int *ret_rc)
{
    const char *force = request_query(c, "force");
    *ret_rc = 0;
    if (!force || strcmp(force, "false") == 0)
        return false;
    if (*force && strcmp(force, "true") != 0 && strcmp(force, "1") != 0)
        *ret_rc = err_set(&c->err, EINVAL, "force: expected true or false");
    return true;
}

static void delete_if_exists(struct request *c, enum kind kind, const char *id)
{
    if (state_find(c->state, kind, id))
        change_delete(&c->change, kind, id);
}

int node_release(struct request *c, const char *id)
{
    const struct object *node = state_find(c->state, KIND_NODE, id);
    size_t len = 0;
    int rc;
    if (!node)
        return 0; /* the node was created in the same transaction */
    bool force = forced(c, &rc);
    if (rc == 0 && !force)
        rc = name_instances(c, id, node->node);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < node->node->instances_len; i++) {
        const char *instance = node->node->instances[i]->id;
        if (!instance_holds_node(node->node->instances[i]))
            continue;
        usage_note_removed(&c->change, node->node->instances[i], "removed", c->now_ns);
        change_delete(&c->change, KIND_INSTANCE, instance);
        delete_if_exists(c, KIND_FACT, arena_fmt(&c->arena, "migration/%s", instance));
    }
    const struct object *const *tokens = state_list(c->state, KIND_TOKEN, &len);
    for (size_t i = 0; i < len; i++)
        if (strcmp(tokens[i]->token->node, id) == 0)
            change_delete(&c->change, KIND_TOKEN, tokens[i]->id);
    opsteps_release(c, id);
    /* The ledger is guarded even if it does not exist: the first placement on the node may be in progress. */
    if (change_guard(&c->change, KIND_LEDGER, id))
        change_delete(&c->change, KIND_LEDGER, id);
    return 0;
}

static int on_delete(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    (void)k;
    (void)old;
    return next ? 0 : node_release(c, id);
}

static bool pass(const struct request *c, const struct object *o)
{
    const char *state = request_query(c, "state");
    return !state || strcmp(state, berth_node_state_name(o->node->state)) == 0;
}

static void show(const struct request *c, const struct object *o, json_t *doc)
{
    json_t *grown = probed_grown(doc);
    json_t *status =
        json_pack("{s:s, s:I}", "state", member(doc, "state"), "instances", (json_int_t)node_instances(o->node));
    json_t *optasks = opsteps_show(c->state, o->id);
    if (grown)
        (void)json_object_set_new(status, "grown", grown);
    if (optasks)
        (void)json_object_set_new(status, "optasks", optasks);
    if (o->node->state == BERTH_NODE_DRAINING || json_is_true(json_object_get(doc, "disabled")))
        (void)json_object_set_new(status, "drain", node_drain_status(c, o));
    node_statuses_show(c->control->lives, o, status);
    (void)json_object_set_new(doc, "status", status);
}

static const char *const keep[] = {"state", "since", "disabled", "joined", "probed", "ceiling", NULL};

const struct crud node_crud = {
    .kind = KIND_NODE,
    .make = PERMIT_NODES,
    .change = PERMIT_NODES,
    .prepare = prepare,
    .check = check,
    .leaving = on_delete,
    .show = show,
    .pass = pass,
    .keep = keep,
};
