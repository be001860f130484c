/* role.c - roles: the built-in ones, which are read-only, and those that administrators define. */
#include <errno.h>
#include <string.h>

#include "control/tenant/user.h"
#include "wire/doc/api.h"

/* ---- write ------------------------------------------------------------------------------------------------------ */

static int built_in(struct request *c, const char *id)
{
    return err_set(&c->err, EBUSY, "role %s is built in and cannot be changed; define a role with another name", id);
}

static int role_check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    enum scope scope[PERMISSIONS] = {SCOPE_NONE}, before[PERMISSIONS] = {SCOPE_NONE};
    (void)k;
    if (role_find(id))
        return built_in(c, id);
    int rc = role_doc_scopes(doc, scope, &c->err);
    if (rc == 0 && old)
        rc = role_doc_scopes(old, before, &c->err);
    if (rc < 0)
        return rc;
    if (!caller_covers(&c->caller, scope) || !caller_covers(&c->caller, before))
        return err_set(&c->err, EACCES, "permissions: role %s would have more permissions than your own role %s", id,
                       c->caller.role);
    return 0;
}

static bool names(const json_t *doc, const char *role)
{
    const char *of = json_string_value(json_object_get(doc, "role"));
    return of && strcmp(of, role) == 0;
}

/* Returns a user or token with the role, as the transaction would leave things. */
static const struct change_item *holder(struct change *change, const char *role)
{
    static const enum kind holders[] = {KIND_USER, KIND_TOKEN};
    for (size_t k = 0; k < sizeof holders / sizeof *holders; k++) {
        size_t len;
        const struct object *const *list = state_list(change->state, holders[k], &len);
        for (size_t i = 0; i < len; i++) {
            const char *of = holders[k] == KIND_USER ? list[i]->user->role : list[i]->token->role;
            if (strcmp(of, role) == 0)
                (void)change_guard(change, holders[k], list[i]->id);
        }
    }
    for (size_t i = 0; i < change->items.len; i++) {
        const struct change_item *item = &change->items.at[i];
        if ((item->kind == KIND_USER || item->kind == KIND_TOKEN) &&
            names(change_read(change, item->kind, item->id), role))
            return &change->items.at[i];
    }
    return NULL;
}

static int role_leaving(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    enum scope before[PERMISSIONS] = {SCOPE_NONE};
    (void)k;
    if (next)
        return 0;
    if (role_doc_scopes(old, before, &c->err) == 0 && !caller_covers(&c->caller, before))
        return err_set(&c->err, EACCES, "role %s has more permissions than your own role %s", id, c->caller.role);
    const struct change_item *item = holder(&c->change, id);
    if (item)
        return err_set(&c->err, EBUSY, "%s %s has the role %s; assign another first", kinds[item->kind].name, item->id,
                       id);
    return 0;
}

const struct crud role_crud = {
    .kind = KIND_ROLE,
    .make = PERMIT_SYSTEM,
    .change = PERMIT_SYSTEM,
    .check = role_check,
    .leaving = role_leaving,
};

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

static const struct role *built_in_arg(const struct request *c)
{
    char id[ID_MAX + 1];
    return id_fold("id", c->args[0], id, NULL) == 0 ? role_find(id) : NULL;
}

static json_t *built_in_role_json(const struct role *role)
{
    json_t *permissions = json_object();
    for (int p = PERMIT_SELF + 1; p < PERMISSIONS; p++)
        if (role->scope[p] != SCOPE_NONE)
            (void)json_object_set_new(permissions, permission_name((enum permission)p),
                                      json_string(scope_name(role->scope[p])));
    return json_pack("{s:s, s:s, s:b, s:o}", "id", role->name, "display", role->about, "built_in", 1, "permissions",
                     permissions);
}

int role_list(struct request *c)
{
    int rc = crud_list(c, &role_crud);
    json_t *items = json_object_get(c->answer.body, "items");
    if (rc < 0 || !items || request_query(c, "after"))
        return rc;
    const struct role *role;
    for (size_t i = 0; (role = role_at(i)); i++)
        (void)json_array_insert_new(items, i, built_in_role_json(role));
    return 0;
}

int role_get(struct request *c)
{
    const struct role *role = built_in_arg(c);
    if (!role)
        return crud_get(c, &role_crud);
    c->answer.body = built_in_role_json(role);
    return 0;
}

int role_create(struct request *c)
{
    return crud_create(c, &role_crud);
}

int role_replace(struct request *c)
{
    return built_in_arg(c) ? built_in(c, c->args[0]) : crud_replace(c, &role_crud);
}

int role_patch(struct request *c)
{
    return built_in_arg(c) ? built_in(c, c->args[0]) : crud_patch(c, &role_crud);
}

int role_delete(struct request *c)
{
    return built_in_arg(c) ? built_in(c, c->args[0]) : crud_delete(c, &role_crud);
}
