/* group.c - groups of users, which managers manage. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "control/kind/queue.h"
#include "control/tenant/user.h"
#include "wire/doc/queue_doc.h"

static int group_check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct group_doc d;
    (void)k;
    (void)old;
    int rc = group_doc_read(doc, &c->arena, &d, &c->err);
    if (rc < 0)
        return rc;
    /* A manager may change the users of its group, but not the group itself. */
    if (c->caller.scope[PERMIT_USERS] != SCOPE_ALL)
        return err_set(&c->err, EACCES, "role %s may not change group %s; ask an administrator", c->caller.role, id);
    return quota_check_group(c, id, &d);
}

static bool is_member(const json_t *user, const char *group)
{
    const char *of = json_string_value(json_object_get(user, "group"));
    return of && strcmp(of, group) == 0;
}

/* Returns a member of the group as the transaction would leave it; NULL: none. */
static const char *member_of(struct change *change, const char *group)
{
    size_t len;
    const struct object *const *users = state_list(change->state, KIND_USER, &len);
    for (size_t i = 0; i < len; i++)
        if (strcmp(users[i]->group, group) == 0 && is_member(change_read(change, KIND_USER, users[i]->id), group))
            return users[i]->id;
    for (size_t i = 0; i < change->items.len; i++)
        if (change->items.at[i].kind == KIND_USER && change->items.at[i].write &&
            is_member(change->items.at[i].doc, group))
            return change->items.at[i].id;
    return NULL;
}

static int group_leaving(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    (void)k;
    (void)old;
    if (next)
        return 0;
    if (c->caller.scope[PERMIT_USERS] != SCOPE_ALL)
        return err_set(&c->err, EACCES, "role %s may not delete group %s; ask an administrator", c->caller.role, id);
    const char *user = member_of(&c->change, id);
    if (user)
        return err_set(&c->err, EBUSY, "user %s is in group %s; delete or move its users first", user, id);
    return users_groups_check_unused(c, KIND_GROUP, id);
}

static void group_show(const struct request *c, const struct object *o, json_t *doc)
{
    char quota[OBJECT_KEY_MAX];
    (void)snprintf(quota, sizeof quota, "group/%s", o->id);
    if (json_object_get(doc, "quota"))
        (void)json_object_set_new(doc, "status",
                                  json_pack("{s:o}", "use", quota_use_show(c, quota, &o->group_doc->quota)));
}

const struct crud group_crud = {
    .kind = KIND_GROUP,
    .make = PERMIT_USERS,
    .change = PERMIT_USERS,
    .check = group_check,
    .leaving = group_leaving,
    .show = group_show,
};
