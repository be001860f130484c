/* user.c - users: checks of their documents, and what is deleted or moved with them. */
#include "control/tenant/user.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "control/api/idempotency.h"
#include "control/kind/queue.h"
#include "control/tenant/uid.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

enum {
    OWNED_WRITES_MAX =
        1500, /* workloads and volumes of a user that one transaction deletes or moves to another group */
    REPLIES_DELETED_MAX = 500, /* answers kept for idempotency keys; the others expire by themselves */
    OPS_MAX = STORE_OPS_MAX - 64,
};

static const char *member(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

static bool is_disabled(const json_t *doc)
{
    return json_is_true(json_object_get(doc, "disabled"));
}

static bool is_admin(const json_t *doc)
{
    return doc && !is_disabled(doc) && strcmp(member(doc, "role"), "admin") == 0;
}

static bool is_self(const struct request *c, const char *id)
{
    return strcmp(c->caller.user, id) == 0;
}

/* ---- write ------------------------------------------------------------------------------------------------------ */

/* Folds a name as it is compared and stored; a name of digits may come as a number. */
static int fold_member(struct request *c, json_t *doc, const char *key)
{
    char folded[ID_MAX + 1], digits[24];
    const json_t *value = json_object_get(doc, key);
    const char *text = json_string_value(value);
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        text = str_u64((uint64_t)json_integer_value(value), digits);
    if (!text || !*text)
        return 0; /* not given, or rejected by the reader later */
    int rc = id_fold(key, text, folded, &c->err);
    if (rc == 0)
        (void)json_object_set_new(doc, key, json_string(folded));
    return rc;
}

static int user_normalise(struct request *c, const struct crud *k, json_t *body)
{
    (void)k;
    int rc = fold_member(c, body, "group");
    return rc < 0 ? rc : fold_member(c, body, "role");
}

/* A caller that manages one group creates users of that group. */
static const char *group_of_new(const struct request *c, const json_t *doc)
{
    const char *group = member(doc, "group");
    return *group || c->caller.scope[PERMIT_USERS] != SCOPE_GROUP ? group : c->caller.group;
}

static int user_belongs(struct request *c, const struct crud *k, const char *id, const json_t *doc,
                        const char **ret_owner, const char **ret_group)
{
    (void)id;
    *ret_owner = "";
    *ret_group = group_of_new(c, doc);
    /* Users of other groups are hidden. If such a user may not be created, a PUT is answered as if it existed and were
     * hidden. */
    if (strcmp(c->input->method, "PUT") == 0 && !permit(&c->caller, k->make, "", *ret_group))
        return crud_not_found(c, KIND_USER, c->args[0]);
    return 0;
}

/* On nodes with accounts a user's name is an account name. A caller that creates users for one group must not choose
 * among existing accounts. */
static int account_prepare(struct request *c, const json_t *old, json_t *doc)
{
    const json_t *account = json_object_get(doc, "account");
    if (old && json_is_false(json_object_get(old, "account")) != json_is_false(account))
        return err_set(&c->err, EINVAL, "account: cannot be changed; delete the user and create it again");
    if (old || c->caller.scope[PERMIT_USERS] == SCOPE_ALL)
        return 0;
    if (json_is_true(account))
        return err_set(&c->err, EACCES,
                       "account: role %s may not create users that run as node accounts; ask an administrator",
                       c->caller.role);
    (void)json_object_set_new(doc, "account", json_false());
    return 0;
}

static int user_prepare(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    (void)k;
    (void)id;
    const char *group = group_of_new(c, doc);
    if (!old && *group)
        (void)json_object_set_new(doc, "group", json_string(group));
    const json_t *role = json_object_get(doc, "role");
    if (!role || json_is_null(role))
        (void)json_object_set_new(doc, "role", json_string("user"));
    uint32_t uid = 0;
    int rc = account_prepare(c, old, doc);
    if (rc == 0 && !old)
        rc = uid_take(&c->change, &uid, &c->err);
    if (uid)
        (void)json_object_set_new(doc, "uid", json_integer(uid));
    return rc;
}

int role_guard(struct request *c, const char *role, enum scope ret[static PERMISSIONS])
{
    const struct role *built_in = role_find(role);
    if (built_in) {
        memcpy(ret, built_in->scope, sizeof built_in->scope);
        return 0;
    }
    const json_t *doc = change_read(&c->change, KIND_ROLE, role);
    if (!doc)
        return err_set(&c->err, EINVAL, "role: there is no role %s; see 'berth get roles'", role);
    return role_doc_scopes(doc, ret, &c->err);
}

int user_covered(struct request *c, const char *id, const json_t *doc)
{
    enum scope scope[PERMISSIONS] = {SCOPE_NONE};
    if (is_self(c, id) || role_guard(c, member(doc, "role"), scope) < 0) {
        c->err = (struct berth_err){0};
        return 0; /* a missing role permits nothing */
    }
    if (caller_covers(&c->caller, scope))
        return 0;
    return err_set(&c->err, EACCES,
                   "user %s has the role %s, which has more permissions than yours; ask an "
                   "administrator",
                   id, member(doc, "role"));
}

static int role_check(struct request *c, const char *role)
{
    enum scope scope[PERMISSIONS] = {SCOPE_NONE};
    if (strcmp(role, "agent") == 0)
        return err_set(&c->err, EINVAL, "role: agent is only for tokens of nodes; use another role");
    int rc = role_guard(c, role, scope);
    if (rc < 0)
        return rc;
    if (!caller_covers(&c->caller, scope))
        return err_set(&c->err, EACCES, "role: %s has more permissions than your own role %s", role, c->caller.role);
    return 0;
}

/* Only callers that manage all users may move a user between groups. */
static int group_check(struct request *c, const char *id, const json_t *old, const char *group)
{
    if (*group && !change_guard(&c->change, KIND_GROUP, group))
        return err_set(&c->err, EINVAL, "group: there is no group %s; see 'berth get groups'", group);
    if (c->caller.scope[PERMIT_USERS] == SCOPE_ALL)
        return 0;
    const char *stays = old ? member(old, "group") : c->caller.group;
    if (strcmp(group, stays) != 0)
        return err_set(&c->err, EACCES, "group: role %s may not put user %s into %s%s; ask an administrator",
                       c->caller.role, id, *group ? "group " : "no group", group);
    return 0;
}

/* Checks that another enabled administrator exists, and guards it: two administrators that remove each other cannot
 * both succeed. */
static int other_admin(struct request *c, const char *id)
{
    size_t len;
    const struct object *const *users = state_list(c->state, KIND_USER, &len);
    for (size_t i = 0; i < len; i++)
        if (strcmp(users[i]->id, id) != 0 && !users[i]->user->disabled && strcmp(users[i]->user->role, "admin") == 0 &&
            is_admin(change_read(&c->change, KIND_USER, users[i]->id)))
            return 0;
    return err_set(&c->err, EBUSY, "user %s is the last enabled administrator; create another one first", id);
}

/* Calls back for everything that belongs to a user; stops at the first result other than 0. */
typedef int owned_visit(struct request *c, const struct object *o, void *ctx);
static int each_owned(struct request *c, const char *user, owned_visit *visit, void *ctx)
{
    static const enum kind all[] = {KIND_CRON, KIND_APP,    KIND_JOB,
                                    KIND_VM,   KIND_VOLUME, KIND_SECRET}; /* objects that use others come first */
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        size_t len;
        const struct object *const *list = state_list(c->state, all[k], &len);
        for (size_t i = 0; i < len; i++) {
            int rc = strcmp(list[i]->owner, user) == 0 ? visit(c, list[i], ctx) : 0;
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

static int count_object(struct request *c, const struct object *o, void *ctx)
{
    const struct object **ret = ctx;
    if (!change_guard(&c->change, o->kind, o->id))
        return 0; /* deleted by this transaction */
    *ret = o;
    return 1;
}

/* Rejects a new user while objects of an earlier user of this name remain: a token or workload that was written during
 * that user's deletion must not belong to the new user. */
static int leftovers_check(struct request *c, const char *id)
{
    const struct object *left = NULL;
    size_t len;
    if (each_owned(c, id, count_object, &left) > 0)
        return err_set(&c->err, EBUSY, "%s %s belongs to an earlier user %s; delete it first", kinds[left->kind].name,
                       left->id, id);
    const struct object *const *tokens = state_list(c->state, KIND_TOKEN, &len);
    for (size_t i = 0; i < len; i++)
        if (strcmp(tokens[i]->token->user, id) == 0)
            change_delete(&c->change, KIND_TOKEN, tokens[i]->id);
    return 0;
}

static int user_check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct user_doc d;
    (void)k;
    int rc = user_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0 && old)
        rc = user_covered(c, id, old);
    if (rc == 0)
        rc = group_check(c, id, old, member(doc, "group"));
    if (rc == 0 && (!old || strcmp(member(old, "role"), member(doc, "role")) != 0))
        rc = role_check(c, member(doc, "role"));
    if (rc == 0 && json_object_get(doc, "quota"))
        rc = quota_check_user(c, id, doc);
    if (rc < 0)
        return rc;
    if (!old)
        return leftovers_check(c, id);
    if (is_self(c, id) && is_disabled(doc) && !is_disabled(old))
        return err_set(&c->err, EACCES, "you cannot disable yourself; ask another administrator");
    return is_admin(old) && !is_admin(doc) ? other_admin(c, id) : 0;
}

/* ---- delete ----------------------------------------------------------------------------------------------------- */

static int too_many(struct request *c, const char *id)
{
    return err_set(&c->err, EBUSY,
                   "user %s has too many objects for one transaction; delete some jobs of the user "
                   "first",
                   id);
}

static size_t writes_of(const struct change *change)
{
    size_t n = 0;
    for (size_t i = 0; i < change->items.len; i++)
        n += change->items.at[i].write;
    return n;
}

struct object_count {
    size_t n;
    struct str names; /* of the first few objects */
};

static void count_cleanup(struct object_count *count)
{
    str_done(&count->names);
}

static int count_one(struct request *c, const struct object *o, void *ctx)
{
    struct object_count *count = ctx;
    if (!change_guard(&c->change, o->kind, o->id))
        return 0;
    if (count->n < 3)
        str_addf(&count->names, "%s%s %s", count->n ? ", " : "", kinds[o->kind].name, o->id);
    return ++count->n > OWNED_WRITES_MAX;
}

static int remove_one(struct request *c, const struct object *o, void *ctx)
{
    (void)ctx;
    const char *id = arena_strdup(&c->arena, o->id);
    return change_guard(&c->change, o->kind, id) ? crud_remove(c, crud_find(o->kind), id) : 0;
}

static int user_delete(struct request *c, const char *id, const json_t *old)
{
    const char *force = request_query(c, "force");
    if (is_self(c, id))
        return err_set(&c->err, EACCES, "you cannot delete yourself; ask another administrator");
    int rc = user_covered(c, id, old);
    if (rc == 0 && is_admin(old))
        rc = other_admin(c, id);
    if (rc == 0)
        rc = users_groups_check_unused(c, KIND_USER, id);
    if (rc < 0)
        return rc;

    CLEANUP(count) struct object_count count = {0};
    bool many = each_owned(c, id, count_one, &count) > 0;
    if (count.n && !(force && strcmp(force, "true") == 0))
        return err_set(&c->err, EBUSY,
                       "user %s still has %s%s; delete them first, or delete everything with force (--force, "
                       "?force=true)",
                       id, str_text(&count.names), count.n > 3 ? " and more" : "");
    if (many)
        return too_many(c, id);
    crud_name(c, KIND_USER, id, "delete"); /* names the request for the audit, before the deletions of parts do */
    rc = each_owned(c, id, remove_one, NULL);
    if (rc == -EBUSY) /* a volume that instances still use */
        return err_prefix(&c->err,
                          "user %s cannot be deleted yet; disable the user, and try again when all "
                          "instances have stopped",
                          id);
    if (rc < 0)
        return rc;
    size_t len;
    const struct object *const *tokens = state_list(c->state, KIND_TOKEN, &len);
    for (size_t i = 0; i < len; i++)
        if (strcmp(tokens[i]->token->user, id) == 0)
            change_delete(&c->change, KIND_TOKEN, tokens[i]->id);
    (void)reply_delete_user(&c->change, id, REPLIES_DELETED_MAX);
    return writes_of(&c->change) > OPS_MAX ? too_many(c, id) : 0;
}

static int regroup_one(struct request *c, const struct object *o, void *ctx)
{
    json_t *doc = change_edit(&c->change, o->kind, o->id);
    if (doc)
        (void)json_object_set_new(doc, "group", json_string(ctx));
    return 0;
}

static int user_leaving(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    (void)k;
    if (!next)
        return user_delete(c, id, old);
    if (strcmp(member(old, "group"), member(next, "group")) == 0)
        return 0;
    CLEANUP(count) struct object_count count = {0};
    bool many = each_owned(c, id, count_one, &count) > 0;
    if (many)
        return too_many(c, id);
    return each_owned(c, id, regroup_one, (void *)member(next, "group"));
}

static void user_show(const struct request *c, const struct object *o, json_t *doc)
{
    struct user_doc d;
    struct arena arena;
    char quota[OBJECT_KEY_MAX];
    if (!json_object_get(doc, "quota"))
        return;
    CLEANUP(json) json_t *stored = object_doc(o);
    (void)snprintf(quota, sizeof quota, "user/%s", o->id);
    arena_init(&arena);
    if (user_doc_read(stored, &arena, &d, NULL) == 0)
        (void)json_object_set_new(doc, "status", json_pack("{s:o}", "use", quota_use_show(c, quota, &d.quota)));
    arena_done(&arena);
}

static const char *const user_keep[] = {"disabled", "account", NULL};

const struct crud user_crud = {
    .kind = KIND_USER,
    .make = PERMIT_USERS,
    .change = PERMIT_USERS,
    .normalise = user_normalise,
    .belongs = user_belongs,
    .prepare = user_prepare,
    .check = user_check,
    .leaving = user_leaving,
    .show = user_show,
    .keep = user_keep,
};

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

/* Writes only the user's document: invalid tokens and suspended apps follow from it. */
static int edit_disabled(struct request *c, const char *id, json_t *doc, const void *arg)
{
    bool disable = *(const bool *)arg;
    crud_name(c, KIND_USER, id, disable ? "disable" : "enable");
    if (disable)
        (void)json_object_set_new(doc, "disabled", json_true());
    else
        (void)json_object_del(doc, "disabled");
    return crud_answer(c, KIND_USER, id, false);
}

int user_disable(struct request *c)
{
    static const bool yes = true;
    return crud_edit(c, &user_crud, PERMIT_USERS, edit_disabled, &yes);
}

int user_enable(struct request *c)
{
    static const bool no = false;
    return crud_edit(c, &user_crud, PERMIT_USERS, edit_disabled, &no);
}
