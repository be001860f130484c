#include "control/api/crud.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "control/job/cron.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

static const struct crud *const cruds[] = {
    &app_crud,     &job_crud,      &vm_crud,     &node_crud,   &volume_crud, &resource_crud,
    &profile_crud, &instance_crud, &user_crud,   &group_crud,  &role_crud,   &secret_crud,
    &cron_crud,    &queue_crud,    &policy_crud, &window_crud, &domain_crud, &optask_crud,
};

const struct crud *crud_find(enum kind kind)
{
    for (size_t i = 0; i < sizeof cruds / sizeof *cruds; i++)
        if (cruds[i]->kind == kind)
            return cruds[i];
    return NULL;
}

static const char *member(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

/* ---- ids --------------------------------------------------------------------------------------------------------- */

static int owned_id(struct request *c, const char *arg, const char **ret_id)
{
    char name[ID_MAX + 1], owner[ID_MAX + 1];
    const char *dot = strchr(arg, '.');
    const char *head = dot ? arena_strndup(&c->arena, arg, (size_t)(dot - arg)) : arg;
    int rc = id_fold("id", head, name, &c->err);
    if (rc < 0)
        return rc;
    if (dot && strcmp(dot + 1, "system") != 0 && (rc = id_fold("id", dot + 1, owner, &c->err)) < 0)
        return rc;
    if (!dot && !c->caller.user[0])
        return err_set(&c->err, EINVAL, "id: expected NAME.OWNER; an agent owns no objects");
    *ret_id = !dot                             ? arena_fmt(&c->arena, "%s.%s", name, c->caller.user)
              : strcmp(dot + 1, "system") == 0 ? arena_fmt(&c->arena, "%s.system", name)
                                               : arena_fmt(&c->arena, "%s.%s", name, owner);
    return 0;
}

/* Validates an id that keeps its case: printable ASCII without the characters that a path or a key cannot contain. */
static int free_id(struct request *c, const char *arg, const char **ret_id)
{
    char quoted[QUOTE_MAX];
    size_t len = strlen(arg);
    if (len == 0 || len > BERTH_NAME_MAX)
        return err_set(&c->err, EINVAL, "id: expected 1 to %d characters", BERTH_NAME_MAX);
    for (const char *p = arg; *p; p++)
        if (*p <= ' ' || *p >= 0x7f || *p == '/')
            return err_set(&c->err, EINVAL,
                           "id: %s: only printable ASCII characters without spaces and '/' are "
                           "allowed",
                           quote(arg, quoted));
    *ret_id = arena_strdup(&c->arena, arg);
    return 0;
}

int crud_id(struct request *c, enum kind kind, const char *arg, const char **ret_id)
{
    char label[ID_MAX + 1], quoted[QUOTE_MAX];
    int64_t number;
    int rc;
    switch (kinds[kind].grammar) {
    case ID_NUMBER:
        if (!str_parse_i64(arg, &number) || number <= 0 || *arg == '0')
            return err_set(&c->err, EINVAL, "id: expected a number above 0, found %s", quote(arg, quoted));
        *ret_id = arena_strdup(&c->arena, arg);
        return 0;
    case ID_OWNED: return owned_id(c, arg, ret_id);
    case ID_LABEL:
        rc = id_fold("id", arg, label, &c->err);
        if (rc == 0)
            *ret_id = arena_strdup(&c->arena, label);
        return rc;
    case ID_FREE: break;
    }
    return free_id(c, arg, ret_id);
}

/* The default source of the id is the path's argument, else the body's `id`, else its `name`. Folding the id leaves
 * `name` as the user wrote it. */
static int identify(struct request *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id)
{
    if (k->identify)
        return k->identify(c, k, arg, doc, ret_id);
    const json_t *given = json_object_get(doc, "id");
    if (!given)
        given = json_object_get(doc, "name");
    const char *text = arg ? arg : json_string_value(given);
    if (!text)
        return given ? err_set(&c->err, EINVAL, "id: expected text") : err_set(&c->err, EINVAL, "id: missing");
    int rc = crud_id(c, k->kind, text, ret_id);
    assert(rc < 0 || *ret_id);
    if (rc == 0 && strcmp(text, *ret_id) != 0 && !json_object_get(doc, "display"))
        (void)json_object_set_new(doc, "display", json_string(text));
    return rc;
}

int crud_not_found(struct request *c, enum kind kind, const char *arg)
{
    char quoted[QUOTE_MAX];
    return err_set(&c->err, ENOENT, "no %s %s; see 'berth get %s'", kinds[kind].name, quote(arg, quoted),
                   kinds[kind].plural);
}

const json_t *crud_open(struct request *c, enum kind kind, const char *arg, enum permission need, const char **ret_id)
{
    const struct object *o = request_object(c, kind, arg, need);
    const char *id = o ? o->id : NULL;
    if (!o && c->err.code != ENOENT)
        return NULL;
    if (!o && (crud_id(c, kind, arg, &id) < 0 || state_find(c->state, kind, id))) {
        (void)crud_not_found(c, kind, arg); /* the id is invalid, or the caller may not see the object */
        return NULL;
    }
    const json_t *doc = change_read(&c->change, kind, id);
    if (!doc) {
        (void)crud_not_found(c, kind, arg);
        return NULL;
    }
    if (!o && !permit(&c->caller, need, member(doc, "owner"), member(doc, "group"))) {
        (void)err_set(&c->err, EACCES, "role %s may not do this to %s %s", c->caller.role, kinds[kind].name, id);
        return NULL;
    }
    c->err = (struct berth_err){0};
    *ret_id = arena_strdup(&c->arena, id);
    return doc;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void crud_name(struct request *c, enum kind kind, const char *id, const char *verb)
{
    if (c->change.verb[0]) /* the first part of a transaction names the transaction */
        return;
    c->change.verb = arena_fmt(&c->arena, "%s.%s", kinds[kind].name, verb);
    c->change.subject = arena_fmt(&c->arena, "%s/%s", kinds[kind].plural, id);
}

/* Returns the client's part of a document, without the daemon's keys and without the keys that do not affect the
 * generation. A new reference. */
static json_t *client_part(const struct crud *k, const json_t *doc)
{
    json_t *left = json_copy((json_t *)doc);
    doc_strip(left);
    for (const char *const *key = k->keep; key && *key; key++)
        (void)json_object_del(left, *key);
    return left;
}

/* Copies from the present document the daemon's keys, and the keys that a replacement may omit. */
static void carry_over(const struct crud *k, const json_t *old, json_t *doc)
{
    CLEANUP(json) json_t *stripped = json_copy((json_t *)old);
    const char *key;
    json_t *value;
    doc_strip(stripped);
    json_object_foreach((json_t *)old, key, value)
    {
        bool kept = !json_object_get(stripped, key);
        for (const char *const *keep = k->keep; keep && *keep && !kept; keep++)
            kept = strcmp(*keep, key) == 0 && !json_object_get(doc, key);
        if (kept)
            (void)json_object_set(doc, key, value);
    }
}

json_t *crud_id_value(enum kind kind, const char *id)
{
    int64_t number = 0;
    bool is_number = kinds[kind].grammar == ID_NUMBER && str_parse_i64(id, &number);
    return is_number ? json_integer(number) : json_string(id);
}

static void stamp(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    char now[TIMESTAMP_MAX];
    (void)json_object_set_new(doc, "id", crud_id_value(k->kind, id));
    if (!json_object_get(doc, "created"))
        (void)json_object_set_new(doc, "created", json_string(timestamp_text(c->now_ns, now)));
    if (!old) {
        if (!json_object_get(doc, "generation"))
            (void)json_object_set_new(doc, "generation", json_integer(1));
        return;
    }
    CLEANUP(json) json_t *before = client_part(k, old);
    CLEANUP(json) json_t *after = client_part(k, doc);
    json_int_t generation = json_integer_value(json_object_get(old, "generation"));
    /* A restart counts as a change: it requests pods of a later generation although the description is the same. */
    bool restarted =
        json_integer_value(json_object_get(old, "restart")) != json_integer_value(json_object_get(doc, "restart"));
    bool differs = restarted || !json_equal(before, after);
    (void)json_object_set_new(doc, "generation", json_integer(generation + differs));
}

/* Maps every parser error to -EINVAL: the client sent an invalid document. */
static int refused(struct request *c, int rc)
{
    if (rc == -ERANGE || rc == -EDOM || rc == -EOVERFLOW) {
        c->err.code = EINVAL;
        return -EINVAL;
    }
    return rc;
}

/* Returns the kinds whose objects refer to objects of this kind; ends with KINDS. Each of these kinds has a counter
 * that grows with every new object. The removal of a referenced object expects the counters unchanged, so no new
 * reference can appear concurrently. */
static const enum kind *referrers(enum kind kind)
{
    static const enum kind of_user[] = {KIND_APP, KIND_JOB, KIND_VM, KIND_VOLUME, KIND_SECRET, KIND_CRON, KINDS};
    static const enum kind of_group[] = {KIND_USER, KINDS};
    static const enum kind none[] = {KINDS};
    return kind == KIND_USER ? of_user : kind == KIND_GROUP || kind == KIND_ROLE ? of_group : none;
}

static void count_referrer(struct request *c, enum kind kind, bool is_new)
{
    bool refers = kind == KIND_USER || (is_new && (kind == KIND_APP || kind == KIND_VM || kind == KIND_VOLUME ||
                                                   kind == KIND_SECRET || kind == KIND_CRON));
    if (!refers) /* jobs have their own counter, for their numbers */
        return;
    json_int_t count = (json_int_t)state_next_number(c->state, kind);
    change_put_unguarded(&c->change, KIND_COUNTER, kinds[kind].plural, json_pack("{s:I}", "last", count));
}

int crud_write(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    CLEANUP(json) json_t *made = doc;
    stamp(c, k, id, old, made);
    if (old && json_equal(old, made))
        return 0;
    int rc = k->check ? refused(c, k->check(c, k, id, old, made)) : 0;
    if (rc == 0 && old && k->leaving)
        rc = k->leaving(c, k, id, old, made);
    if (rc == 0) {
        change_put(&c->change, k->kind, id, take_ptr(&made));
        count_referrer(c, k->kind, !old);
    }
    return rc;
}

static int check_make_permission(struct request *c, const struct crud *k, const char *arg, const char *id,
                                 const json_t *doc)
{
    const char *owner = "", *group = "";
    int rc = k->belongs ? k->belongs(c, k, id, doc, &owner, &group) : 0;
    if (rc < 0)
        return rc;
    if (permit(&c->caller, k->make, owner, group))
        return 0;
    if (arg && kinds[k->kind].owned) /* answers as for an existing object that the caller may not see */
        return crud_not_found(c, k->kind, arg);
    return err_set(&c->err, EACCES, "role %s may not create %s%s%s", c->caller.role, kinds[k->kind].plural,
                   owner[0] ? " for " : "", owner);
}

/* Consumes the reference to `doc`, also on failure. */
static int put_new(struct request *c, const struct crud *k, const char *arg, json_t *doc, const char **ret_id)
{
    CLEANUP(json) json_t *made = doc;
    const char *id = NULL;
    if (arg && kinds[k->kind].grammar == ID_NUMBER)
        return crud_not_found(c, k->kind, arg);
    int rc = refused(c, identify(c, k, arg, made, &id));
    if (rc < 0)
        return rc;
    /* the first read, because If-Match applies to the object that the path names */
    bool there = change_read(&c->change, k->kind, id) != NULL;
    rc = check_make_permission(c, k, arg, id, made);
    if (rc < 0)
        return rc;
    if (there)
        return err_set(&c->err, EEXIST, "%s %s already exists; change it with 'berth edit' or PUT", kinds[k->kind].name,
                       id);
    rc = k->prepare ? refused(c, k->prepare(c, k, id, NULL, made)) : 0;
    if (rc == 0)
        rc = crud_write(c, k, id, NULL, take_ptr(&made));
    if (rc == 0)
        *ret_id = id;
    return rc;
}

/* Checks that the body's `id`, if present, names the same object as the path. */
static int same_id(struct request *c, const struct crud *k, const char *id, const json_t *doc)
{
    const json_t *given = json_object_get(doc, "id");
    const char *meant = "", *text = json_string_value(given);
    if (!given || json_is_null(given))
        return 0;
    if (json_is_integer(given))
        text = arena_fmt(&c->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(given));
    if (!text)
        return err_set(&c->err, EINVAL, "id: expected %s", id);
    if (strcmp(text, id) == 0)
        return 0;
    int rc = crud_id(c, k->kind, text, &meant);
    if (rc < 0 || strcmp(meant, id) == 0)
        return rc;
    return err_set(&c->err, EINVAL, "id: %s cannot be renamed to %s; delete it and create another", id, meant);
}

static int put_existing(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    CLEANUP(json) json_t *made = doc;
    int rc = same_id(c, k, id, made);
    if (rc < 0)
        return rc;
    carry_over(k, old, made);
    rc = k->prepare ? refused(c, k->prepare(c, k, id, old, made)) : 0;
    return rc < 0 ? rc : crud_write(c, k, id, old, take_ptr(&made));
}

/* Applies an RFC 7396 merge patch: null removes a key, objects are merged, every other value replaces. */
static void merge_patch(json_t *into, const json_t *patch)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)patch, key, value)
    {
        if (json_is_null(value)) {
            (void)json_object_del(into, key);
        } else if (json_is_object(value)) {
            json_t *present = json_object_get(into, key), *fresh = NULL;
            if (!json_is_object(present))
                (void)json_object_set_new(into, key, fresh = json_object());
            merge_patch(fresh ? fresh : present, value);
        } else {
            (void)json_object_set(into, key, value);
        }
    }
}

/* Removes keys with a null value: null means absent. */
static void drop_nulls(json_t *doc)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(doc, next, key, value) if (json_is_null(value))(void) json_object_del(doc, key);
}

int crud_put(struct request *c, const struct crud *k, const char *arg, const json_t *body, enum crud_mode mode,
             const char **ret_id, bool *ret_new)
{
    CLEANUP(json) json_t *doc = json_deep_copy(body);
    const char *id = NULL;
    const json_t *old = NULL;
    if (!json_is_object(doc))
        return err_set(&c->err, EINVAL, "expected an object");
    doc_strip(doc);
    int rc = k->normalise ? refused(c, k->normalise(c, k, doc)) : 0;
    if (rc < 0)
        return rc;
    if (mode != CRUD_CREATE) {
        old = crud_open(c, k->kind, arg, k->change, &id);
        if (!old && (mode == CRUD_PATCH || c->err.code != ENOENT))
            return -c->err.code;
        if (!old && crud_id(c, k->kind, arg, &id) == 0 && state_find(c->state, k->kind, id) &&
            change_read(&c->change, k->kind, id))
            return crud_not_found(c, k->kind, arg); /* the object exists, but the caller may not see it */
        c->err = (struct berth_err){0};
    }
    if (mode == CRUD_PATCH) {
        json_t *patched = json_deep_copy(old);
        merge_patch(patched, doc);
        json_decref(doc);
        doc = patched;
    } else {
        drop_nulls(doc);
    }
    rc = old ? put_existing(c, k, id, old, take_ptr(&doc)) : put_new(c, k, arg, take_ptr(&doc), &id);
    if (rc < 0)
        return rc;
    crud_name(c, k->kind, id, !old ? "create" : mode == CRUD_PATCH ? "patch" : "replace");
    *ret_id = id;
    *ret_new = !old;
    return 0;
}

int crud_edit(struct request *c, const struct crud *k, enum permission need, crud_edit_fn *edit, const void *arg)
{
    const char *id = NULL;
    const json_t *old = crud_open(c, k->kind, c->args[0], need, &id);
    if (!old)
        return -c->err.code;
    CLEANUP(json) json_t *doc = json_deep_copy(old);
    int rc = refused(c, edit(c, id, doc, arg));
    return rc < 0 ? rc : crud_write(c, k, id, old, take_ptr(&doc));
}

int crud_remove(struct request *c, const struct crud *k, const char *arg)
{
    const char *id = NULL;
    const json_t *old = crud_open(c, k->kind, arg, k->change, &id);
    if (!old)
        return -c->err.code;
    for (const enum kind *by = referrers(k->kind); *by != KINDS; by++)
        (void)change_guard(&c->change, KIND_COUNTER, kinds[*by].plural);
    int rc = k->leaving ? k->leaving(c, k, id, old, NULL) : 0;
    if (rc < 0)
        return rc;
    crud_name(c, k->kind, id, "delete");
    change_delete(&c->change, k->kind, id);
    return 0;
}

/* ---- verbs ------------------------------------------------------------------------------------------------------- */

int crud_answer(struct request *c, enum kind kind, const char *id, bool is_new)
{
    const struct object *o = state_find(c->state, kind, id);
    json_decref(c->answer.body);
    c->answer.body = json_pack("{s:o}", "id", crud_id_value(kind, id));
    if (o) /* for a verb that writes nothing; otherwise the commit sets the revision */
        (void)json_object_set_new(c->answer.body, "revision", json_integer((json_int_t)o->revision));
    c->answer.status = is_new ? 201 : 200;
    return 0;
}

static int put(struct request *c, const struct crud *k, const char *arg, enum crud_mode mode)
{
    const char *id = NULL;
    bool is_new = false;
    int rc = crud_put(c, k, arg, c->body, mode, &id, &is_new);
    return rc < 0 ? rc : crud_answer(c, k->kind, id, is_new);
}

int crud_create(struct request *c, const struct crud *k)
{
    return put(c, k, NULL, CRUD_CREATE);
}

int crud_replace(struct request *c, const struct crud *k)
{
    return put(c, k, c->args[0], CRUD_REPLACE);
}

int crud_patch(struct request *c, const struct crud *k)
{
    return put(c, k, c->args[0], CRUD_PATCH);
}

int crud_delete(struct request *c, const struct crud *k)
{
    int rc = crud_remove(c, k, c->args[0]);
    if (rc == 0)
        c->answer.status = 204;
    return rc;
}
