/* permit.c - roles, the identification of callers, and permission checks. */
#include "control/api/permit.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

static const char *const permission_names[PERMISSIONS] = {
    [PERMIT_PUBLIC] = "public", [PERMIT_SELF] = "self",     [PERMIT_READ] = "read",     [PERMIT_CLUSTER] = "cluster",
    [PERMIT_SUBMIT] = "submit", [PERMIT_MANAGE] = "manage", [PERMIT_NODES] = "nodes",   [PERMIT_USERS] = "users",
    [PERMIT_SYSTEM] = "system", [PERMIT_AUDIT] = "audit",   [PERMIT_REPORT] = "report",
};

static const char *const scope_names[] = {
    [SCOPE_NONE] = "none",
    [SCOPE_OWN] = "own",
    [SCOPE_GROUP] = "group",
    [SCOPE_ALL] = "all",
};

const char *permission_name(enum permission p)
{
    return permission_names[p];
}

const char *scope_name(enum scope s)
{
    return scope_names[s];
}

static int name_find(const char *const *names, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

int permission_find(const char *name)
{
    return name_find(permission_names, PERMISSIONS, name);
}

int scope_find(const char *name)
{
    return name_find(scope_names, sizeof scope_names / sizeof *scope_names, name);
}

/* ---- roles ------------------------------------------------------------------------------------------------------ */

/* Permissions that every valid caller has, with any role. Objects without an owner, such as nodes, belong to no user
 * and no group: only the scope `all` reaches them. */
#define EVERY_CALLER [PERMIT_PUBLIC] = SCOPE_ALL, [PERMIT_SELF] = SCOPE_ALL

static const struct role roles[] = {
    {"admin",
     "everything",                                                             {EVERY_CALLER, [PERMIT_READ] = SCOPE_ALL, [PERMIT_CLUSTER] = SCOPE_ALL, [PERMIT_SUBMIT] = SCOPE_ALL,
      [PERMIT_MANAGE] = SCOPE_ALL, [PERMIT_NODES] = SCOPE_ALL, [PERMIT_USERS] = SCOPE_ALL, [PERMIT_SYSTEM] = SCOPE_ALL,
      [PERMIT_AUDIT] = SCOPE_ALL, [PERMIT_REPORT] = SCOPE_ALL}                                                                                                  },
    {"operator",
     "see everything, manage nodes, workloads and system services; not users", {EVERY_CALLER, [PERMIT_READ] = SCOPE_ALL, [PERMIT_CLUSTER] = SCOPE_ALL, [PERMIT_SUBMIT] = SCOPE_ALL,
      [PERMIT_MANAGE] = SCOPE_ALL, [PERMIT_NODES] = SCOPE_ALL, [PERMIT_SYSTEM] = SCOPE_ALL}         },
    {"auditor",
     "see everything, including the audit log",                                {EVERY_CALLER, [PERMIT_READ] = SCOPE_ALL, [PERMIT_CLUSTER] = SCOPE_ALL, [PERMIT_AUDIT] = SCOPE_ALL}},
    {"manager",
     "manage workloads and users of the own group",                            {EVERY_CALLER, [PERMIT_READ] = SCOPE_GROUP, [PERMIT_CLUSTER] = SCOPE_ALL, [PERMIT_SUBMIT] = SCOPE_GROUP,
      [PERMIT_MANAGE] = SCOPE_GROUP, [PERMIT_USERS] = SCOPE_GROUP}                                                             },
    {"user",
     "manage one's own workloads",                                             {EVERY_CALLER, [PERMIT_READ] = SCOPE_OWN, [PERMIT_CLUSTER] = SCOPE_ALL, [PERMIT_SUBMIT] = SCOPE_OWN,
      [PERMIT_MANAGE] = SCOPE_OWN}                                                                                                              },
    {"viewer",
     "see workloads of the own group",                                         {EVERY_CALLER, [PERMIT_READ] = SCOPE_GROUP, [PERMIT_CLUSTER] = SCOPE_ALL}                          },
    {"agent",    "read its own node's configuration and report",               {EVERY_CALLER, [PERMIT_REPORT] = SCOPE_OWN}                                                        },
};

const struct role *role_at(size_t i)
{
    return i < sizeof roles / sizeof *roles ? &roles[i] : NULL;
}

const struct role *role_find(const char *name)
{
    const struct role *role;
    for (size_t i = 0; (role = role_at(i)); i++)
        if (strcmp(role->name, name) == 0)
            return role;
    return NULL;
}

/* Permissions about the cluster as a whole, without owners: the scope is `all` or `none`. */
static bool is_cluster_wide(int permission)
{
    return permission == PERMIT_CLUSTER || permission == PERMIT_NODES || permission == PERMIT_SYSTEM ||
           permission == PERMIT_AUDIT;
}

int role_doc_scopes(const json_t *doc, enum scope ret[static PERMISSIONS], struct berth_err *err)
{
    enum scope scope[PERMISSIONS] = {EVERY_CALLER};
    struct arena arena;
    struct role_doc role = {0};
    struct berth_err why = {0};
    arena_init(&arena);
    int rc = role_doc_read(doc, &arena, &role, &why);
    for (size_t i = 0; i < role.permissions_len && rc == 0; i++) {
        char buf[QUOTE_MAX];
        const char *name = role.permissions[i].key, *value = role.permissions[i].value;
        int permission = permission_find(name), given = scope_find(value);
        if (permission <= PERMIT_SELF)
            rc = err_set(&why, EINVAL, "permissions: unknown permission %s; see docs/api.md", quote(name, buf));
        else if (given < 0)
            rc = err_set(&why, EINVAL, "permissions: %s: expected none, own, group or all, found %s", name,
                         quote(value, buf));
        else if (is_cluster_wide(permission) && given != SCOPE_NONE && given != SCOPE_ALL)
            rc = err_set(&why, EINVAL,
                         "permissions: %s: applies to the whole cluster; expected none or all, found "
                         "%s",
                         name, quote(value, buf));
        else
            scope[permission] = (enum scope)given;
    }
    arena_done(&arena);
    if (rc < 0)
        return err_set(err, why.code, "%s", why.text);
    memcpy(ret, scope, sizeof scope);
    return 0;
}

int role_scopes(const struct state *s, const char *name, enum scope ret[static PERMISSIONS], struct berth_err *err)
{
    char buf[QUOTE_MAX];
    const struct role *built_in = role_find(name);
    if (built_in) {
        memcpy(ret, built_in->scope, sizeof built_in->scope);
        return 0;
    }
    const struct object *o = state_find(s, KIND_ROLE, name);
    if (!o)
        return err_set(err, ENOENT, "there is no role %s; see 'berth get roles'", quote(name, buf));
    CLEANUP(json) json_t *doc = object_doc(o);
    return role_doc_scopes(doc, ret, err);
}

bool caller_covers(const struct caller *c, const enum scope scope[static PERMISSIONS])
{
    for (size_t p = PERMIT_SELF + 1; p < PERMISSIONS; p++)
        if (scope[p] > c->scope[p])
            return false;
    return true;
}

/* ---- authentication --------------------------------------------------------------------------------------------- */

static int refused(struct berth_err *err)
{
    return err_set(err, EPERM, "no valid token; ask an administrator for one");
}

/* Reduces the user's present permissions to those of the token's role. */
static bool apply_token_role(const struct state *s, const char *role, enum scope scope[static PERMISSIONS])
{
    enum scope token[PERMISSIONS] = {SCOPE_NONE};
    if (role_scopes(s, role, token, NULL) < 0)
        return false;
    for (size_t p = 0; p < PERMISSIONS; p++)
        if (token[p] < scope[p])
            scope[p] = token[p];
    return true;
}

static bool user_caller(const struct state *s, const char *user, struct caller *ret)
{
    const struct object *o = state_find(s, KIND_USER, user);
    if (!o || o->user->disabled)
        return false;
    *ret = (struct caller){.user = o->id, .group = o->user->group, .role = o->user->role, .node = "", .token = ""};
    return role_scopes(s, o->user->role, ret->scope, NULL) == 0;
}

static bool node_caller(const struct state *s, const char *node, struct caller *ret)
{
    const struct object *o = state_find(s, KIND_NODE, node);
    const struct role *agent = role_find("agent");
    if (!o)
        return false;
    *ret = (struct caller){
        .user = "", .group = "", .role = agent->name, .node = o->id, .token = "", .joined = o->node->joined};
    memcpy(ret->scope, agent->scope, sizeof ret->scope);
    return true;
}

static bool is_invitation(const struct token_view *v)
{
    return v->node[0] && strcmp(v->role, INVITATION_ROLE) == 0;
}

static bool token_caller(const struct state *s, const struct object *token, int64_t now_ns, struct caller *ret)
{
    const struct token_view *view = token->token;
    if (view->expires_ns <= now_ns || is_invitation(view))
        return false;
    if (!(view->node[0] ? node_caller(s, view->node, ret) : user_caller(s, view->user, ret)))
        return false;
    ret->token = token->id;
    if (!view->role[0])
        return true;
    ret->role = view->role;
    return apply_token_role(s, view->role, ret->scope);
}

static bool peer_caller(const struct state *s, const char *peer, struct caller *ret)
{
    if (strncmp(peer, "user:", 5) == 0)
        return user_caller(s, peer + 5, ret);
    if (strncmp(peer, "node:", 5) == 0)
        return node_caller(s, peer + 5, ret);
    return false;
}

bool certificate_valid(const struct state *s, const char *peer, const char *serial, int64_t until_ns, int64_t now_ns)
{
    char want[2 + 2 * sizeof(uint64_t) + 1];
    if (!serial)
        return true;
    if (until_ns <= now_ns)
        return false;
    if (strncmp(peer, "node:", 5) != 0)
        return true;
    const struct object *node = state_find(s, KIND_NODE, peer + 5);
    if (!node || !node->node->joined)
        return false;
    (void)snprintf(want, sizeof want, "01%016" PRIx64, node->node->joined);
    return strncmp(serial, want, strlen(want)) == 0;
}

const struct object *invitation_find(const struct state *s, const char *text, int64_t now_ns)
{
    static const unsigned char nobody[TOKEN_HASH_LEN];
    char id[TOKEN_ID_LEN + 1], plain[TOKEN_TEXT_MAX];
    unsigned char hash[TOKEN_HASH_LEN];
    const size_t prefix = strlen(INVITATION_PREFIX);
    if (strncmp(text, INVITATION_PREFIX, prefix) != 0 || strlen(text) >= sizeof plain)
        return NULL;
    (void)snprintf(plain, sizeof plain, TOKEN_PREFIX "%s", text + prefix);
    if (!token_read(plain, id, hash))
        return NULL;
    const struct object *o = state_find(s, KIND_TOKEN, id);
    bool same = sodium_memcmp(hash, o ? o->token->hash : nobody, sizeof hash) == 0;
    return o && same && is_invitation(o->token) && o->token->expires_ns > now_ns ? o : NULL;
}

int caller_find(const struct state *s, const char *token, const char *peer, int64_t now_ns, struct caller *ret,
                struct berth_err *err)
{
    /* compared instead of a hash if the token is unknown, for constant time */
    static const unsigned char nobody[TOKEN_HASH_LEN];
    struct caller found;
    if (!token) {
        if (!peer || !peer_caller(s, peer, &found))
            return refused(err);
        *ret = found;
        return 0;
    }
    char id[TOKEN_ID_LEN + 1];
    unsigned char hash[TOKEN_HASH_LEN];
    if (!token_read(token, id, hash))
        return refused(err);
    const struct object *o = state_find(s, KIND_TOKEN, id);
    bool same = sodium_memcmp(hash, o ? o->token->hash : nobody, sizeof hash) == 0;
    if (!o || !same || !token_caller(s, o, now_ns, &found))
        return refused(err);
    *ret = found;
    return 0;
}

bool token_is_valid(const struct state *s, const char *token_id, int64_t now_ns)
{
    struct caller found;
    if (!token_id[0])
        return true;
    const struct object *o = state_find(s, KIND_TOKEN, token_id);
    return o && token_caller(s, o, now_ns, &found);
}

bool caller_unchanged(const struct state *s, const struct caller *c, int64_t now_ns)
{
    struct caller found;
    if (c->token[0]) {
        const struct object *o = state_find(s, KIND_TOKEN, c->token);
        if (!o || !token_caller(s, o, now_ns, &found))
            return false;
    } else if (!(c->node[0] ? node_caller(s, c->node, &found) : user_caller(s, c->user, &found))) {
        return false;
    }
    if (c->node[0]) {
        const struct object *node = state_find(s, KIND_NODE, c->node);
        if (found.joined != c->joined || (c->epoch && node && node->node->epoch > c->epoch))
            return false;
    }
    return strcmp(found.user, c->user) == 0 && strcmp(found.node, c->node) == 0 && strcmp(found.group, c->group) == 0 &&
           strcmp(found.role, c->role) == 0 && memcmp(found.scope, c->scope, sizeof found.scope) == 0;
}

/* ---- authorization ---------------------------------------------------------------------------------------------- */

static bool is_own(const struct caller *c, enum permission need, const char *owner)
{
    const char *self = need == PERMIT_REPORT ? c->node : c->user;
    return self[0] && strcmp(self, owner) == 0;
}

bool permit(const struct caller *c, enum permission need, const char *owner, const char *group)
{
    if (need == PERMIT_PUBLIC)
        return true;
    if (need == PERMIT_SELF)
        return c->scope[PERMIT_SELF] != SCOPE_NONE;
    switch (c->scope[need]) {
    case SCOPE_NONE: return false;
    case SCOPE_OWN: return is_own(c, need, owner);
    case SCOPE_GROUP: return is_own(c, need, owner) || (c->group[0] && strcmp(c->group, group) == 0);
    case SCOPE_ALL: return true;
    }
    return false;
}
