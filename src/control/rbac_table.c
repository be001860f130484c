/* rbac_table.c - who may do what where, in one table made from users, groups, roles, nodes and apps. */
#include "base/mem.h"
#include "control/derived.h"
#include "control/derived_out.h"
#include "control/permit.h"

/* What a role gives, without what it does not; "public" and "self" are everybody's and say nothing. */
static void permissions_write(struct out *o, const enum scope scope[static PERMISSIONS])
{
    out_open(o, "permissions", '{');
    for (unsigned p = PERMIT_SELF + 1; p < PERMISSIONS; p++)
        if (scope[p] != SCOPE_NONE)
            out_text(o, permission_name((enum permission)p), scope_name(scope[p]));
    out_close(o, '}');
}

static void user_write(struct out *o, const struct state *s, const struct object *user)
{
    enum scope scope[PERMISSIONS] = {SCOPE_NONE};

    /* A role that is gone gives nothing. */
    if (!user->user->disabled)
        (void)role_scopes(s, user->user->role, scope, NULL);
    out_open(o, NULL, '{');
    out_text(o, "user", user->id);
    out_text(o, "group", user->user->group);
    out_text(o, "role", user->user->role);
    if (user->user->disabled)
        out_bool(o, "disabled", true);
    permissions_write(o, scope);
    out_close(o, '}');
}

int rbac_write(const struct state *s, const char *unused, struct str *to)
{
    struct out o = {.to = to};
    size_t len;

    (void)unused;
    out_open(&o, NULL, '{');
    out_open(&o, "subjects", '[');
    const struct object *const *list = state_list(s, KIND_USER, &len);
    for (size_t i = 0; i < len; i++)
        user_write(&o, s, list[i]);
    out_close(&o, ']');
    out_open(&o, "nodes", '[');
    list = state_list(s, KIND_NODE, &len);
    for (size_t i = 0; i < len; i++) {
        out_open(&o, NULL, '{');
        out_text(&o, "node", list[i]->id);
        permissions_write(&o, role_find("agent")->scope);
        out_close(&o, '}');
    }
    out_close(&o, ']');
    out_open(&o, "apps", '[');
    list = state_list(s, KIND_APP, &len);
    for (size_t i = 0; i < len; i++) {
        out_open(&o, NULL, '{');
        out_text(&o, "app", list[i]->id);
        out_text(&o, "owner", list[i]->owner);
        out_text(&o, "group", list[i]->group);
        out_close(&o, '}');
    }
    out_close(&o, ']');
    out_close(&o, '}');
    return 0;
}
