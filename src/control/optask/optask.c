/* optask.c - OpTasks as objects: rules, display, and verbs. */
#include "control/optask/optask.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "control/control_parts.h"
#include "control/state/sync.h"
#include "wire/text/document.h"

enum { HASH_HEX = 2 * crypto_hash_sha256_BYTES + 1, NAME_DIGITS = 10 };

static const char *text_of_key(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

static bool node_is(const json_t *node, enum berth_node_state state)
{
    const char *said = text_of_key(node, "state");
    return said && strcmp(said, berth_node_state_name(state)) == 0;
}

const char *opstep_id(struct arena *arena, const char *node, const char *optask)
{
    return arena_fmt(arena, "%s/%s", node, optask);
}

void opstep_move(json_t *step, enum opstep_state to, int64_t now_ns)
{
    char now[TIMESTAMP_MAX];
    (void)json_object_set_new(step, "state", json_string(opstep_state_name(to)));
    (void)json_object_set_new(step, "since", json_string(timestamp_text(now_ns, now)));
}

void opstep_clear_fault(json_t *step)
{
    static const char *const past[] = {"fault", "error", "exit"};
    for (size_t i = 0; i < sizeof past / sizeof *past; i++)
        (void)json_object_del(step, past[i]);
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

static void sha256(const char *text, size_t len, char ret[static HASH_HEX])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256(hash, (const unsigned char *)text, len);
    (void)sodium_bin2hex(ret, HASH_HEX, hash, sizeof hash);
}

/* Hashes everything that determines what is done on a node. */
static void content_hash(const json_t *doc, char ret[static HASH_HEX])
{
    static const char *const keys[] = {"language", "script", "undo", "args"};
    CLEANUP(json) json_t *content = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(doc, keys[i]))
            (void)json_object_set(content, keys[i], json_object_get(doc, keys[i]));
    const char *language = text_of_key(doc, "language");
    if (!language)
        (void)json_object_set_new(content, "language", json_string(optask_language_name(OPTASK_SHELL)));
    if (json_array_size(json_object_get(doc, "args")) == 0)
        (void)json_object_del(content, "args");
    CLEANUP(mem) char *text = json_dumps(content, JSON_COMPACT | JSON_SORT_KEYS);
    sha256(text, strlen(text), ret);
}

/* Compares the hash that came with a script, or stores the script's hash. */
static int script_hash_check(struct request *c, json_t *doc, const char *script, const char *key)
{
    char hash[HASH_HEX];
    const json_t *given = json_object_get(doc, key);
    const char *text = text_of_key(doc, script);
    if (!text || strcmp(text, OPTASK_UNDO_SELF) == 0)
        return 0;
    sha256(text, json_string_length(json_object_get(doc, script)), hash);
    if (given && (!json_is_string(given) || strcmp(json_string_value(given), hash) != 0))
        return err_set(&c->err, EINVAL, "%s: the received script has another hash: %s", key, hash);
    (void)json_object_set_new(doc, key, json_string(hash));
    return 0;
}

/* Makes a key if the request has none: it describes the task, and equal content gets an equal key. */
static int identify(struct request *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id)
{
    char hash[HASH_HEX];
    const char *given = arg ? arg : text_of_key(doc, "id"), *ready = text_of_key(doc, "ready");
    content_hash(doc, hash);
    if (json_object_get(doc, "id") && !json_is_string(json_object_get(doc, "id")))
        return err_set(&c->err, EINVAL, "id: expected text");
    if (!given)
        given = arena_fmt(&c->arena, "%.40s-%.*s", ready ? ready : "script", NAME_DIGITS, hash);
    return crud_id(c, k->kind, given, ret_id);
}

static int prepare(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    char hash[HASH_HEX];
    const char *was = old ? text_of_key(old, "content") : NULL;
    (void)k;
    content_hash(doc, hash);
    if (was && strcmp(was, hash) != 0)
        return err_set(&c->err, EEXIST,
                       "optask %s already exists with different content, and the content of a key cannot be "
                       "changed; choose another key",
                       id);
    if (old && json_is_true(json_object_get(old, "init")) != json_is_true(json_object_get(doc, "init")))
        return err_set(&c->err, EEXIST, "init: cannot be changed; choose another key");
    (void)json_object_set_new(doc, "content", json_string(hash));
    int rc = script_hash_check(c, doc, "script", "sha256");
    return rc < 0 ? rc : script_hash_check(c, doc, "undo", "undo_sha256");
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static void step_add(struct request *c, const char *node, const char *optask)
{
    const char *id = opstep_id(&c->arena, node, optask);
    if (change_read(&c->change, KIND_OPSTEP, id))
        return;
    json_t *step = json_pack("{s:s, s:s, s:i}", "optask", optask, "node", node, "attempt", 0);
    opstep_move(step, OPSTEP_PENDING, c->now_ns);
    change_put(&c->change, KIND_OPSTEP, id, step);
}

static int steps_by_name(struct request *c, const char *id, const struct optask_doc *d)
{
    for (size_t i = 0; i < d->nodes_len; i++) {
        const char *node = NULL;
        int rc = crud_id(c, KIND_NODE, d->nodes[i], &node);
        if (rc < 0 || !change_guard(&c->change, KIND_NODE, node))
            return err_set(&c->err, EINVAL, "nodes[%zu]: there is no node %.80s; see 'berth get nodes'", i,
                           d->nodes[i]);
        step_add(c, node, id);
    }
    return 0;
}

static bool labels_hold(struct request *c, const struct optask_doc *d, const char *id, const json_t *node)
{
    struct node_doc read;
    const struct domain_doc like = {.require = d->require, .require_len = d->require_len};
    return node_doc_read(node, &c->arena, &read, NULL) == 0 && domain_has(&like, id, &read.node);
}

static int steps_by_label(struct request *c, const char *id, const struct optask_doc *d)
{
    size_t len, found = 0;
    const struct object *const *nodes = state_list(c->state, KIND_NODE, &len);
    for (size_t i = 0; i < len; i++) {
        CLEANUP(json) json_t *node = object_doc(nodes[i]);
        if (!labels_hold(c, d, nodes[i]->id, node))
            continue;
        (void)change_guard(&c->change, KIND_NODE, nodes[i]->id);
        step_add(c, nodes[i]->id, id);
        found++;
    }
    return found ? 0
                 : err_set(&c->err, EINVAL,
                           "require: matches no node; see the labels with 'berth get nodes -o "
                           "yaml'");
}

static int steps_make(struct request *c, const char *id, const json_t *doc)
{
    struct optask_doc d;
    int rc = optask_doc_read(doc, &c->arena, &d, &c->err);
    if (rc < 0 || d.init)
        return rc;
    return d.nodes_len ? steps_by_name(c, id, &d) : steps_by_label(c, id, &d);
}

int optasks_join(struct request *c, const char *id, const json_t *node)
{
    size_t len;
    const struct object *const *tasks = state_list(c->state, KIND_OPTASK, &len);
    for (size_t i = 0; i < len; i++) {
        const struct optask_doc *d = tasks[i]->optask;
        if (!d->init || (d->require_len && !labels_hold(c, d, id, node)))
            continue;
        /* If the machine has run the task already, its agent reports that at once; another machine is to run it. */
        const char *step = opstep_id(&c->arena, id, tasks[i]->id);
        (void)change_guard(&c->change, KIND_OPTASK, tasks[i]->id);
        json_t *there = change_edit(&c->change, KIND_OPSTEP, step);
        if (!there) {
            step_add(c, id, tasks[i]->id);
            there = change_edit(&c->change, KIND_OPSTEP, step);
        }
        opstep_move(there, OPSTEP_PENDING, c->now_ns);
        (void)json_object_set_new(there, "undo", json_false());
        (void)json_object_set_new(there, "init", json_true());
        if (node_is(node, BERTH_NODE_LOST)) /* the node rejoins */
            (void)json_object_set_new(change_edit(&c->change, KIND_NODE, id), "was",
                                      json_string(berth_node_state_name(BERTH_NODE_JOINING)));
    }
    return 0;
}

/* ---- rules ------------------------------------------------------------------------------------------------------ */

/* The routes check this permission, transactions do not. */
static int may_operate(struct request *c)
{
    return permit(&c->caller, PERMIT_NODES, "", "")
               ? 0
               : err_set(&c->err, EACCES, "role %s may not change nodes", c->caller.role);
}

static int check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    (void)k;
    (void)old;
    int rc = may_operate(c);
    return rc < 0 ? rc : steps_make(c, id, doc);
}

static int on_delete(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    size_t len;
    (void)k;
    (void)old;
    int rc = may_operate(c);
    if (rc < 0)
        return rc;
    const struct object *const *steps = state_list(c->state, KIND_OPSTEP, &len);
    for (size_t i = 0; !next && i < len; i++) {
        if (strcmp(steps[i]->opstep->optask, id) != 0)
            continue;
        (void)change_guard(&c->change, KIND_OPSTEP, steps[i]->id);
        if (opstep_listed(steps[i]->opstep))
            return err_set(&c->err, EBUSY, "optask %s is %s on node %s; wait until it has finished", id,
                           opstep_state_name(steps[i]->opstep->state), steps[i]->opstep->node);
        if (steps[i]->opstep->drained)
            opstep_restore_node(&c->change, steps[i], c->now_ns);
        change_delete(&c->change, KIND_OPSTEP, steps[i]->id);
    }
    return 0;
}

/* ---- display ---------------------------------------------------------------------------------------------------- */

struct optask_totals {
    size_t counts[OPSTEP_UNDONE + 1], all, failed;
    size_t undone;  /* failed steps that were undone manually since */
    size_t excused; /* largest value of any pending step */
    bool undo;      /* a pending step is to be undone */
};

static void optask_totals_add(struct optask_totals *w, const struct opstep_view *v)
{
    w->counts[v->state]++;
    w->failed += opstep_failed(v);
    w->undone += opstep_failed(v) && v->undo && v->state == OPSTEP_UNDONE;
    w->all++;
    if (v->state == OPSTEP_PENDING && v->undo)
        w->undo = true;
    else if (v->state == OPSTEP_PENDING && v->excused > w->excused)
        w->excused = v->excused;
}

static const char *optask_totals_state(const struct optask_doc *d, const struct optask_totals *w)
{
    if (w->counts[OPSTEP_DRAINING] + w->counts[OPSTEP_RUNNING] + w->counts[OPSTEP_UNDOING])
        return "running";
    if (w->counts[OPSTEP_PENDING])
        return !w->undo && w->failed > d->max_failures + w->excused ? "stopped" : "pending";
    if (w->failed > w->undone)
        return "failed";
    return w->all && w->counts[OPSTEP_UNDONE] == w->all ? "undone" : w->all || !d->init ? "done" : "waiting";
}

static json_t *step_json(const struct object *step)
{
    static const char *const keys[] = {"node", "optask", "state", "attempt", "since", "fault", "error", "exit", "undo"};
    CLEANUP(json) json_t *doc = object_doc(step);
    json_t *shown = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(doc, keys[i]) && !json_is_false(json_object_get(doc, keys[i])))
            (void)json_object_set(shown, keys[i], json_object_get(doc, keys[i]));
    return shown;
}

static void show(const struct request *c, const struct object *o, json_t *doc)
{
    size_t len;
    struct optask_totals w = {0};
    bool alone = c->args[0] && *c->args[0]; /* a single OpTask is shown */
    json_t *nodes = json_array(), *status = json_object();
    const struct object *const *steps = state_list(c->state, KIND_OPSTEP, &len);
    for (size_t i = 0; i < len; i++) {
        const struct opstep_view *v = steps[i]->opstep;
        if (strcmp(v->optask, o->id) != 0)
            continue;
        optask_totals_add(&w, v);
        if (alone)
            (void)json_array_append_new(nodes, step_json(steps[i]));
    }
    (void)json_object_set_new(status, "state", json_string(optask_totals_state(o->optask, &w)));
    (void)json_object_set_new(status, "all", json_integer((json_int_t)w.all));
    (void)json_object_set_new(status, "failures", json_integer((json_int_t)w.failed));
    for (size_t i = 0; i <= OPSTEP_UNDONE; i++)
        if (w.counts[i])
            (void)json_object_set_new(status, opstep_state_name((enum opstep_state)i),
                                      json_integer((json_int_t)w.counts[i]));
    if (alone)
        (void)json_object_set(status, "nodes", nodes);
    json_decref(nodes);
    (void)json_object_set_new(doc, "status", status);
}

/* Scripts run as root on nodes and could gain any permission; so they need the permission to grant permissions. */
const struct crud optask_crud = {
    .kind = KIND_OPTASK,
    .make = PERMIT_USERS,
    .change = PERMIT_USERS,
    .identify = identify,
    .prepare = prepare,
    .check = check,
    .leaving = on_delete,
    .show = show,
};

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

int optask_of_node(struct request *c)
{
    size_t len;
    const struct object *node = request_object(c, KIND_NODE, c->args[0], PERMIT_NODES);
    if (!node)
        return -c->err.code;
    const struct object *const *steps = opsteps_of_node(c->state, node->id, &len);
    json_t *items = json_array();
    for (size_t i = 0; i < len; i++)
        (void)json_array_append_new(items, step_json(steps[i]));
    c->answer.revision = state_revision(c->state);
    c->answer.body = json_pack("{s:o, s:I}", "items", items, "revision", (json_int_t)c->answer.revision);
    return 0;
}

int optask_create(struct request *c)
{
    const char *id = NULL, *made = NULL, *arg = c->args[0] && *c->args[0] ? c->args[0] : NULL;
    bool is_new = false;
    CLEANUP(json) json_t *doc = json_deep_copy(c->body);
    int rc = identify(c, &optask_crud, arg, doc, &id);
    if (rc < 0)
        return rc;
    bool named = arg || change_read(&c->change, KIND_OPTASK, id);
    rc = crud_put(c, &optask_crud, named ? id : NULL, c->body, named ? CRUD_REPLACE : CRUD_CREATE, &made, &is_new);
    if (rc == 0) /* also if nothing of it is new: other nodes may have its labels now */
        rc = steps_make(c, made, change_read(&c->change, KIND_OPTASK, made));
    return rc < 0 ? rc : crud_answer(c, KIND_OPTASK, made, is_new);
}

static bool acts_on(const struct optask_act *act, const char *node)
{
    for (size_t i = 0; i < act->nodes_len; i++)
        if (strcmp(act->nodes[i], node) == 0)
            return true;
    return act->nodes_len == 0;
}

static bool can_retry(enum opstep_state state)
{
    return state == OPSTEP_FAILED || state == OPSTEP_UNDONE;
}

static bool can_undo(enum opstep_state state)
{
    return state == OPSTEP_DONE || state == OPSTEP_FAILED;
}

/* An undo of all of the OpTask also ends its pending steps. A joining node still needs its step. */
static bool can_give_up(const struct opstep_view *v)
{
    return (v->state == OPSTEP_PENDING || v->state == OPSTEP_DRAINING) && !v->undo && !v->init;
}

/* Counts the failures that remain when these steps are retried: they were known and do not block the retry. */
static size_t failures_left(const struct request *c, const char *id, const struct optask_act *act)
{
    size_t len, left = 0;
    const struct object *const *steps = state_list(c->state, KIND_OPSTEP, &len);
    for (size_t i = 0; i < len; i++) {
        const struct opstep_view *v = steps[i]->opstep;
        if (strcmp(v->optask, id) == 0 && opstep_failed(v) && !(acts_on(act, v->node) && can_retry(v->state)))
            left++;
    }
    return left;
}

static void step_restart(struct request *c, const struct object *o, bool undo, size_t excused)
{
    json_t *step = change_edit(&c->change, KIND_OPSTEP, o->id);
    if (undo && can_give_up(o->opstep) && o->opstep->attempt == 0) {
        opstep_move(step, OPSTEP_UNDONE, c->now_ns);
        return;
    }
    if (!undo) /* an undone step still counts as failed, so that the rollout does not continue by itself */
        opstep_clear_fault(step);
    opstep_move(step, OPSTEP_PENDING, c->now_ns);
    (void)json_object_set_new(step, "undo", json_boolean(undo));
    (void)json_object_set_new(step, "excused", json_integer((json_int_t)excused));
}

/* Restarts steps, either to be run or to be undone. */
static int steps_restart(struct request *c, const char *verb, bool undo)
{
    struct optask_act act;
    const char *id = NULL;
    size_t len, found = 0;
    const json_t *doc = crud_open(c, KIND_OPTASK, c->args[0], PERMIT_USERS, &id);
    if (!doc)
        return -c->err.code;
    int rc = optask_act_read(c->body, &c->arena, &act, &c->err);
    if (rc < 0)
        return rc;
    if (undo && !json_object_get(doc, "undo"))
        return err_set(&c->err, EBUSY, "optask %s has no undo script", id);
    for (size_t i = 0; i < act.nodes_len; i++)
        if (!change_guard(&c->change, KIND_OPSTEP, opstep_id(&c->arena, act.nodes[i], id)))
            return err_set(&c->err, EINVAL, "nodes[%zu]: optask %s does not include node %.80s", i, id, act.nodes[i]);
    size_t excused = undo ? 0 : failures_left(c, id, &act);
    const struct object *const *steps = state_list(c->state, KIND_OPSTEP, &len);
    for (size_t i = 0; i < len; i++) {
        const struct opstep_view *v = steps[i]->opstep;
        if (strcmp(v->optask, id) != 0 || !acts_on(&act, v->node))
            continue;
        bool can = undo ? can_undo(v->state) || (act.nodes_len == 0 && can_give_up(v)) : can_retry(v->state);
        if (!can) {
            if (act.nodes_len)
                return err_set(&c->err, EBUSY, "optask %s is %s on node %s; there is nothing to %s", id,
                               opstep_state_name(v->state), v->node, verb);
            continue;
        }
        step_restart(c, steps[i], undo, excused);
        found++;
    }
    if (!found)
        return err_set(&c->err, EBUSY, "optask %s: there is no node on which to %s it", id, verb);
    crud_name(c, KIND_OPTASK, id, verb);
    return crud_answer(c, KIND_OPTASK, id, false);
}

int optask_retry(struct request *c)
{
    return steps_restart(c, "retry", false);
}

int optask_undo(struct request *c)
{
    return steps_restart(c, "undo", true);
}
