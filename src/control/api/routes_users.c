/* routes_users.c - the routes of users, groups, roles and tokens, and /v1/whoami. */
#include "control/api/routes.h"
#include "control/tenant/archive.h"
#include "control/tenant/user.h"
#include "wire/doc/api.h"

enum { BODY_MAX = 16 * 1024 };

COLLECTION(user)
COLLECTION(group)

/* Answers the caller's identity, its permissions, and the expiry of its token. */
static int whoami(struct request *c)
{
    const struct caller *who = &c->caller;
    json_t *permissions = json_object();
    for (int p = PERMIT_SELF + 1; p < PERMISSIONS; p++)
        if (who->scope[p] != SCOPE_NONE)
            (void)json_object_set_new(permissions, permission_name((enum permission)p),
                                      json_string(scope_name(who->scope[p])));
    c->answer.body = json_pack("{s:s, s:s, s:s, s:o}", "user", who->user, "group", who->group, "role", who->role,
                               "permissions", permissions);
    if (who->node[0])
        (void)json_object_set_new(c->answer.body, "node", json_string(who->node));
    const struct object *token = who->token[0] ? state_find(c->state, KIND_TOKEN, who->token) : NULL;
    if (token) {
        char when[TIMESTAMP_MAX];
        json_t *shown = json_pack("{s:s}", "id", token->id);
        if (token->token->expires_ns != BERTH_NEVER_NS)
            (void)json_object_set_new(shown, "expires", json_string(timestamp_text(token->token->expires_ns, when)));
        (void)json_object_set_new(c->answer.body, "token", shown);
    }
    return 0;
}

static const char lists[] = "limit,after,watch", filtered[] = "limit,after,watch,group",
                  token_lists[] = "limit,after,watch,user,node", takes[] = "as,merge,group,role";

#define SEE PERMIT_READ, 0
#define ANYONE PERMIT_SELF, 0
#define USERS PERMIT_USERS, BODY_MAX
#define ROLES PERMIT_SYSTEM, BODY_MAX
const struct route users_routes[] = {
    ROUTE("GET", "/v1/users", SEE, ROUTE_STREAMS, user_list, "List users", .query = filtered),
    ROUTE("POST", "/v1/users", USERS, ROUTE_CHANGES, user_create, "Add a user"),
    ROUTE("POST", "/v1/users/import", PERMIT_USERS, ARCHIVE_BYTES_MAX, ROUTE_CHANGES | ROUTE_HEAVY, user_import,
          "Import a user from an archive", .query = takes),
    ROUTE("GET", "/v1/users/{id}", SEE, 0, user_get, "Read a user"),
    ROUTE("PUT", "/v1/users/{id}", USERS, ROUTE_CHANGES, user_replace, "Add or replace a user"),
    ROUTE("PATCH", "/v1/users/{id}", USERS, ROUTE_CHANGES, user_patch, "Change some keys of a user"),
    ROUTE("DELETE", "/v1/users/{id}", PERMIT_USERS, 0, ROUTE_CHANGES, user_delete,
          "Remove a user; with force, including all objects of the user", .query = "force"),
    ROUTE("POST", "/v1/users/{id}/disable", USERS, ROUTE_CHANGES, user_disable,
          "Suspend a user's apps and reject the user's tokens"),
    ROUTE("POST", "/v1/users/{id}/enable", USERS, ROUTE_CHANGES, user_enable, "Enable a user again"),
    ROUTE("GET", "/v1/users/{id}/export", SEE, ROUTE_HEAVY, user_export,
          "Export a user with all objects as an archive"),

    ROUTE("GET", "/v1/groups", ANYONE, ROUTE_STREAMS, group_list, "List groups", .query = lists),
    ROUTE("POST", "/v1/groups", USERS, ROUTE_CHANGES, group_create, "Add a group"),
    ROUTE("GET", "/v1/groups/{id}", ANYONE, 0, group_get, "Read a group"),
    ROUTE("PUT", "/v1/groups/{id}", USERS, ROUTE_CHANGES, group_replace, "Add or replace a group"),
    ROUTE("PATCH", "/v1/groups/{id}", USERS, ROUTE_CHANGES, group_patch, "Change some keys of a group"),
    ROUTE("DELETE", "/v1/groups/{id}", PERMIT_USERS, 0, ROUTE_CHANGES, group_delete, "Remove a group without users"),

    ROUTE("GET", "/v1/roles", ANYONE, ROUTE_STREAMS, role_list, "List roles, built-in ones first", .query = lists),
    ROUTE("POST", "/v1/roles", ROLES, ROUTE_CHANGES, role_create, "Define a role"),
    ROUTE("GET", "/v1/roles/{id}", ANYONE, 0, role_get, "Read a role"),
    ROUTE("PUT", "/v1/roles/{id}", ROLES, ROUTE_CHANGES, role_replace, "Define or replace a role"),
    ROUTE("PATCH", "/v1/roles/{id}", ROLES, ROUTE_CHANGES, role_patch, "Change some keys of a role"),
    ROUTE("DELETE", "/v1/roles/{id}", PERMIT_SYSTEM, 0, ROUTE_CHANGES, role_delete, "Remove an unused role"),

    ROUTE("GET", "/v1/tokens", ANYONE, ROUTE_STREAMS, token_list, "List tokens, without their secrets",
          .query = token_lists),
    ROUTE("POST", "/v1/tokens", PERMIT_SELF, BODY_MAX, ROUTE_CHANGES, token_create,
          "Create a token; only this response shows its text"),
    ROUTE("GET", "/v1/tokens/{id}", ANYONE, 0, token_get, "Read a token, without its secret"),
    ROUTE("DELETE", "/v1/tokens/{id}", ANYONE, ROUTE_CHANGES, token_delete, "Revoke a token"),

    ROUTE("GET", "/v1/whoami", ANYONE, 0, whoami, "Read the caller's identity and permissions"),
};
const size_t users_routes_len = sizeof users_routes / sizeof *users_routes;
