/* token_verb.c - tokens in the API: create, list, revoke.
 *
 * A token belongs to a user or a node. A user always manages its own tokens; others' tokens need a permission over
 * their user, or over nodes. A token never permits more than its creator may do. The secret is only in the answer to
 * its creation; so a request with an idempotency key, whose answer would be stored, is rejected.
 */
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "control/api/page.h"
#include "control/control.h"
#include "control/state/clock.h"
#include "control/tenant/user.h"
#include "control/watch/watch.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

/* ---- access ----------------------------------------------------------------------------------------------------- */

static bool is_own(const struct caller *c, const struct object *token)
{
    return c->user[0] && strcmp(token->token->user, c->user) == 0;
}

static bool may_see_token(const struct request *c, const struct object *token)
{
    const struct token_view *v = token->token;
    if (is_own(&c->caller, token))
        return true;
    if (v->node[0])
        return permit(&c->caller, PERMIT_NODES, "", "");
    const struct object *user = state_find(c->state, KIND_USER, v->user);
    return permit(&c->caller, PERMIT_USERS, v->user, user ? user->group : "");
}

/* Returns the token that the path names, guarded; NULL with c->err: it does not exist, or the caller may not see it. */
static const struct object *token_open(struct request *c)
{
    const struct object *o = state_find(c->state, KIND_TOKEN, c->args[0]);
    if (!o || !may_see_token(c, o)) {
        (void)crud_not_found(c, KIND_TOKEN, c->args[0]);
        return NULL;
    }
    (void)change_guard(&c->change, KIND_TOKEN, o->id);
    return o;
}

/* ---- list and read ---------------------------------------------------------------------------------------------- */

static json_t *token_json(const struct request *c, const struct object *o)
{
    json_t *doc = object_doc(o);
    crud_redact(&c->caller, o, doc);
    (void)json_object_set_new(doc, "revision", json_integer((json_int_t)o->revision));
    return doc;
}

static bool passes(const struct request *c, const struct object *o)
{
    const char *user = request_query(c, "user"), *node = request_query(c, "node");
    return may_see_token(c, o) && (!user || strcmp(user, o->token->user) == 0) &&
           (!node || strcmp(node, o->token->node) == 0);
}

int token_list(struct request *c)
{
    uint64_t limit = 0, from = 0;
    int rc = request_query_number(c, "limit", 1, 10000, 1000, &limit);
    if (rc == 0)
        rc = request_query_number(c, "watch", 0, INT64_MAX, 0, &from);
    if (rc < 0)
        return rc;
    if (request_query(c, "watch"))
        return watch_open(c, KIND_TOKEN, from);

    size_t len;
    const char *after = request_query(c, "after"), *last = NULL;
    const struct object *const *list = state_list(c->state, KIND_TOKEN, &len);
    bool more = false;
    struct list_page page = {.items = json_array()};
    for (size_t i = 0; i < len && !more; i++) {
        if ((after && strcmp(list[i]->id, after) <= 0) || !passes(c, list[i]))
            continue;
        more = json_array_size(page.items) == limit || !page_add(&page, token_json(c, list[i]), list[i]->doc.len);
        if (more)
            break;
        last = list[i]->id;
    }
    c->answer.revision = state_revision(c->state);
    c->answer.body = json_pack("{s:o, s:I}", "items", page.items, "revision", (json_int_t)c->answer.revision);
    if (more)
        (void)json_object_set_new(c->answer.body, "continue", json_string(last));
    return 0;
}

int token_get(struct request *c)
{
    const struct object *o = token_open(c);
    if (!o)
        return -c->err.code;
    c->answer.body = token_json(c, o);
    return 0;
}

static const char *role_of(const json_t *user)
{
    const char *role = json_string_value(json_object_get(user, "role"));
    return role ? role : "";
}

/* ---- create ----------------------------------------------------------------------------------------------------- */

struct token_request {
    const char *user, *node, *role, *note;
    int64_t expires_ns;
};

/* Reads `expires` or `ttl`; rejects times in the past. */
static int read_expiry(struct request *c, const json_t *ttl, int64_t *expires_ns)
{
    int64_t ttl_ns = 0, wall_ns = control_wall_ns(c->control); /* tokens expire by the wall clock */
    if (ttl && *expires_ns != BERTH_NEVER_NS)
        return err_set(&c->err, EINVAL, "ttl: give either ttl or expires");
    if (ttl) {
        int rc = duration_parse(ttl, &ttl_ns, &c->err);
        if (rc < 0)
            return err_prefix(&c->err, "ttl");
        if (__builtin_add_overflow(wall_ns, ttl_ns, expires_ns))
            *expires_ns = BERTH_NEVER_NS;
    }
    if (*expires_ns <= wall_ns)
        return err_set(&c->err, EINVAL, "%s: must be in the future", ttl ? "ttl" : "expires");
    return 0;
}

static int token_request_read(struct request *c, struct token_request *ret)
{
    static const char *const foreign[] = {"id", "hash", "display"};
    CLEANUP(json) json_t *body = json_copy((json_t *)c->body);
    struct token_doc d = {0};
    json_t *ttl = json_object_get(c->body, "ttl");
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (json_object_get(body, foreign[i]))
            return err_set(&c->err, EINVAL, "%s: is set by the daemon; leave it out", foreign[i]);
    (void)json_object_del(body, "ttl");
    doc_strip(body);
    (void)json_object_set_new(body, "id", json_string("new")); /* every document needs an ID */
    int rc = token_doc_read(body, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = read_expiry(c, json_is_null(ttl) ? NULL : ttl, &d.expires_ns);
    if (rc < 0)
        return rc;
    *ret = (struct token_request){.user = d.user ? d.user : "",
                                  .node = d.node ? d.node : "",
                                  .role = d.role ? d.role : "",
                                  .note = d.note ? d.note : "",
                                  .expires_ns = d.expires_ns};
    /* The document is freed on return. */
    ret->user = arena_strdup(&c->arena, ret->user);
    ret->node = arena_strdup(&c->arena, ret->node);
    ret->role = arena_strdup(&c->arena, ret->role);
    ret->note = arena_strdup(&c->arena, ret->note);
    return 0;
}

static int too_many(struct request *c, const struct token_request *w)
{
    size_t len, n = 0;
    const struct object *const *list = state_list(c->state, KIND_TOKEN, &len);
    for (size_t i = 0; i < len; i++)
        n += strcmp(list[i]->token->user, w->user) == 0 && strcmp(list[i]->token->node, w->node) == 0;
    if (n < TOKENS_USER_MAX)
        return 0;
    return err_set(&c->err, EBUSY, "%s has %zu tokens; revoke some first", w->node[0] ? w->node : w->user, n);
}

static int node_token_check(struct request *c, struct token_request *w)
{
    if (!permit(&c->caller, PERMIT_NODES, "", ""))
        return err_set(&c->err, EACCES, "role %s may not create tokens for nodes", c->caller.role);
    if (!crud_open(c, KIND_NODE, w->node, PERMIT_NODES, &w->node))
        return -c->err.code;
    if (w->role[0] && strcmp(w->role, "agent") != 0)
        return err_set(&c->err, EINVAL, "role: the token of a node always has the role agent; leave it out");
    w->role = "agent";
    return 0;
}

/* Checks what the token would permit: the user's role, narrowed by the token's own role. */
static int token_check_covered(struct request *c, const struct token_request *w, const char *user_role)
{
    enum scope gives[PERMISSIONS] = {SCOPE_NONE}, narrowed[PERMISSIONS] = {SCOPE_NONE};
    int rc = role_guard(c, user_role, gives);
    if (rc == 0 && w->role[0])
        rc = role_guard(c, w->role, narrowed);
    if (rc < 0)
        return rc;
    for (size_t p = 0; p < PERMISSIONS && w->role[0]; p++)
        if (narrowed[p] < gives[p])
            gives[p] = narrowed[p];
    if (caller_covers(&c->caller, gives))
        return 0;
    return err_set(&c->err, EACCES,
                   "role: the token would have more permissions than your own role %s; choose a "
                   "role with fewer permissions",
                   c->caller.role);
}

static int user_token_check(struct request *c, struct token_request *w)
{
    char role[ID_MAX + 1];
    const json_t *user;
    if (!w->user[0])
        w->user = c->caller.user;
    if (!w->user[0])
        return err_set(&c->err, EACCES, "an agent may not create tokens");
    if (w->role[0]) {
        int rc = id_fold("role", w->role, role, &c->err);
        if (rc < 0)
            return rc;
        w->role = arena_strdup(&c->arena, role);
    }
    /* A caller's own token needs no permission; another user's needs the permission over users. */
    const char *id = NULL;
    if (crud_id(c, KIND_USER, w->user, &id) == 0 && strcmp(id, c->caller.user) == 0) {
        user = change_read(&c->change, KIND_USER, id);
        w->user = id;
        if (!w->role[0] && strcmp(c->caller.role, role_of(user)) != 0)
            w->role = c->caller.role; /* a restricted token creates restricted tokens */
    } else {
        user = crud_open(c, KIND_USER, w->user, PERMIT_USERS, &w->user);
        /* otherwise a caller could act as a user with more permissions */
        if (user && user_covered(c, w->user, user) < 0)
            user = NULL;
    }
    if (!user)
        return -c->err.code;
    return token_check_covered(c, w, role_of(user));
}

int token_create(struct request *c)
{
    struct token_request w = {.user = "", .node = "", .role = "", .note = ""};
    char text[TOKEN_TEXT_MAX];
    unsigned char random[40];
    const char *id = NULL;
    if (c->input->idempotency_key)
        return err_set(&c->err, EINVAL,
                       "Idempotency-Key: not allowed for tokens: the response is secret and is not stored; revoke "
                       "surplus tokens");
    int rc = token_request_read(c, &w);
    if (rc == 0)
        rc = w.node[0] ? node_token_check(c, &w) : user_token_check(c, &w);
    if (rc == 0)
        rc = too_many(c, &w);
    if (rc < 0)
        return rc;
    const struct control_env *env = control_env(c->control);
    env->random(env->ctx, random, sizeof random);
    json_t *doc = token_make(random, w.user, w.node, w.role, w.note, c->now_ns, w.expires_ns, text, &id, &c->arena);
    change_put(&c->change, KIND_TOKEN, id, doc);
    crud_name(c, KIND_TOKEN, id, "create");
    c->answer.status = 201;
    c->answer.body = c->dry_run ? json_object() : json_pack("{s:s, s:s}", "id", id, "token", text);
    sodium_memzero(random, sizeof random);
    sodium_memzero(text, sizeof text);
    return 0;
}

/* ---- revoke ----------------------------------------------------------------------------------------------------- */

int token_delete(struct request *c)
{
    const struct object *o = token_open(c);
    if (!o)
        return -c->err.code;
    if (o->token->user[0] && !is_own(&c->caller, o)) {
        const json_t *user = change_read(&c->change, KIND_USER, o->token->user);
        int rc = user ? user_covered(c, o->token->user, user) : 0;
        if (rc < 0)
            return rc;
    }
    crud_name(c, KIND_TOKEN, o->id, "delete");
    change_delete(&c->change, KIND_TOKEN, o->id);
    c->answer.status = 204;
    return 0;
}
