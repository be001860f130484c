/* rbac_table.c - the permissions of users, derived from users, groups, roles, nodes and apps.
 *
 * Agents read the part of their node: the users and apps with instances there, and the node itself.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/permit.h"
#include "control/watch/derived.h"
#include "control/watch/derived_out.h"

/* Writes the permissions that a role has. "public" and "self" are omitted: every caller has them. */
static void permissions_write(struct json_out *o, const enum scope scope[static PERMISSIONS])
{
    json_out_open(o, "permissions", '{');
    for (unsigned p = PERMIT_SELF + 1; p < PERMISSIONS; p++)
        if (scope[p] != SCOPE_NONE)
            json_out_text(o, permission_name((enum permission)p), scope_name(scope[p]));
    json_out_close(o, '}');
}

static void user_write(struct json_out *o, const struct state *s, const struct object *user)
{
    enum scope scope[PERMISSIONS] = {SCOPE_NONE};

    /* A deleted role grants nothing. */
    if (!user->user->disabled)
        (void)role_scopes(s, user->user->role, scope, NULL);
    json_out_open(o, NULL, '{');
    json_out_text(o, "user", user->id);
    json_out_text(o, "group", user->user->group);
    json_out_text(o, "role", user->user->role);
    if (user->user->disabled)
        json_out_bool(o, "disabled", true);
    permissions_write(o, scope);
    json_out_close(o, '}');
}

static bool is_here(const struct object *instance)
{
    enum berth_state state = instance->instance->state;

    return state != BERTH_RESERVED && state != BERTH_ENDED;
}

/* Tells whether this user, or this app, has an instance on the node. `node` NULL: any node. */
static bool has_instance_here(const struct state *s, const struct object *node, const struct object *o)
{
    if (!node)
        return true;
    for (size_t i = 0; i < node->node->instances_len; i++) {
        const struct object *instance = node->node->instances[i];
        const struct object *work = is_here(instance) ? state_find_work(s, instance->instance->workload) : NULL;
        if (work && (o->kind == KIND_USER ? strcmp(work->owner, o->id) == 0 : work == o))
            return true;
    }
    return false;
}

int rbac_write(const struct state *s, const char *of_node, struct str *to)
{
    const struct object *node = *of_node ? state_find(s, KIND_NODE, of_node) : NULL;
    struct json_out o = {.to = to};
    size_t len;

    if (*of_node && !node)
        return -ENOENT;
    json_out_open(&o, NULL, '{');
    json_out_open(&o, "subjects", '[');
    const struct object *const *list = state_list(s, KIND_USER, &len);
    for (size_t i = 0; i < len; i++)
        if (has_instance_here(s, node, list[i]))
            user_write(&o, s, list[i]);
    json_out_close(&o, ']');
    json_out_open(&o, "nodes", '[');
    list = state_list(s, KIND_NODE, &len);
    for (size_t i = 0; i < len; i++) {
        if (node && list[i] != node)
            continue;
        json_out_open(&o, NULL, '{');
        json_out_text(&o, "node", list[i]->id);
        permissions_write(&o, role_find("agent")->scope);
        json_out_close(&o, '}');
    }
    json_out_close(&o, ']');
    json_out_open(&o, "apps", '[');
    list = state_list(s, KIND_APP, &len);
    for (size_t i = 0; i < len; i++) {
        if (!has_instance_here(s, node, list[i]))
            continue;
        json_out_open(&o, NULL, '{');
        json_out_text(&o, "app", list[i]->id);
        json_out_text(&o, "owner", list[i]->owner);
        json_out_text(&o, "group", list[i]->group);
        json_out_close(&o, '}');
    }
    json_out_close(&o, ']');
    json_out_close(&o, '}');
    return 0;
}
