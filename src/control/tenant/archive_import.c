/* archive_import.c - import of a user: every object passes the checks of a request, under free names.
 *
 * An existing user is rejected, unless the archive is imported under another name or merged into that user. A merge
 * keeps what the user has, and adds missing apps, VMs and volumes, and all jobs.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/tenant/archive.h"
#include "control/tenant/user.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

enum { NAMES_TRIED_MAX = 1000 };

struct archive_import {
    struct request *request;
    const char *old_user, *user;
    json_t *renamed; /* {"volumes/maps": "volumes/maps-2"} */
    json_t *volumes; /* {old: new} of all volumes, for the workloads that mount them */
    json_t *kept;    /* ["apps/web.ann"]: existing objects, left as they are; NULL: no merge */
};

static void archive_import_cleanup(struct archive_import *t)
{
    json_decref(t->renamed);
    json_decref(t->volumes);
    json_decref(t->kept);
}

static const char *member(const json_t *doc, const char *key)
{
    return json_string_value(json_object_get(doc, key));
}

static void note_renamed(struct archive_import *t, enum kind kind, const char *from, const char *to)
{
    struct arena *arena = &t->request->arena;
    if (strcmp(from, to) != 0)
        (void)json_object_set_new(t->renamed, arena_fmt(arena, "%s/%s", kinds[kind].plural, from),
                                  json_string(arena_fmt(arena, "%s/%s", kinds[kind].plural, to)));
}

/* Gets the first of NAME, NAME-2, NAME-3, ... that no object of the kind has. */
static int free_name(struct archive_import *t, enum kind kind, const char *name, const char **ret)
{
    struct request *c = t->request;
    char folded[ID_MAX + 1];
    int rc = id_fold("id", name, folded, &c->err);
    if (rc < 0)
        return rc;
    *ret = arena_strdup(&c->arena, folded);
    for (int n = 2; change_guard(&c->change, kind, *ret); n++) {
        if (n > NAMES_TRIED_MAX)
            return err_set(&c->err, EEXIST, "%s %s exists, and so do all alternative names", kinds[kind].name, folded);
        char number[16];
        int len = snprintf(number, sizeof number, "-%d", n);
        *ret = arena_fmt(&c->arena, "%.*s%s", ID_MAX - len, folded, number);
    }
    return 0;
}

static int put(struct archive_import *t, enum kind kind, json_t *doc, const char **ret_id)
{
    bool is_new;
    return crud_put(t->request, crud_find(kind), NULL, doc, CRUD_CREATE, ret_id, &is_new);
}

/* ---- the user --------------------------------------------------------------------------------------------------- */

static int merge_option(struct request *c, bool *ret)
{
    const char *merge = request_query(c, "merge");
    *ret = merge && strcmp(merge, "false") != 0;
    if (*ret && *merge && strcmp(merge, "true") != 0 && strcmp(merge, "1") != 0)
        return err_set(&c->err, EINVAL, "merge: expected true or false");
    return 0;
}

/* Merges into an existing user, which is not changed. */
static int merge_user(struct archive_import *t, const char *id)
{
    struct request *c = t->request;
    if (!crud_open(c, KIND_USER, id, PERMIT_USERS, &t->user))
        return -c->err.code;
    if (request_query(c, "group") || request_query(c, "role"))
        return err_set(&c->err, EINVAL, "group and role: only for a new user; %s already exists and is not changed",
                       id);
    return 0;
}

static int make_user(struct archive_import *t, json_t *doc, const char *id)
{
    struct request *c = t->request;
    const char *group = request_query(c, "group"), *role = request_query(c, "role");
    (void)json_object_set_new(doc, "id", json_string(id));
    if (group)
        (void)json_object_set_new(doc, "group", json_string(group));
    if (role)
        (void)json_object_set_new(doc, "role", json_string(role));
    int rc = put(t, KIND_USER, doc, &t->user);
    if (rc == -EEXIST)
        return err_set(
            &c->err, EEXIST,
            "%s already exists; import the archive under another name (--as, ?as=ID), or add missing objects to "
            "the existing user (--merge, ?merge=true)",
            id);
    return rc;
}

static int import_user(struct archive_import *t, const json_t *archive, const char *as)
{
    struct request *c = t->request;
    CLEANUP(json) json_t *doc = json_deep_copy(json_object_get(archive, "user"));
    const char *id = member(doc, "id");
    char folded[ID_MAX + 1];
    bool merge = false;
    int rc = merge_option(c, &merge);
    if (rc < 0)
        return rc;
    if (!id)
        return err_set(&c->err, EINVAL, "user: id: missing");
    t->old_user = arena_strdup(&c->arena, id);
    rc = id_fold("id", as ? as : id, folded, &c->err);
    if (rc == 0 && merge)
        t->kept = json_array();
    id = arena_strdup(&c->arena, folded);
    if (rc == 0)
        rc = merge && change_read(&c->change, KIND_USER, id) ? merge_user(t, id) : make_user(t, doc, id);
    if (rc < 0)
        return err_prefix(&c->err, "user");
    assert(t->user);
    note_renamed(t, KIND_USER, t->old_user, t->user);
    return 0;
}

/* ---- objects of the user ---------------------------------------------------------------------------------------- */

/* Returns the document's ID as text; it may be a number. */
static const char *id_of(struct archive_import *t, const json_t *doc)
{
    const json_t *id = json_object_get(doc, "id");
    if (json_is_integer(id))
        return arena_fmt(&t->request->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    return json_is_string(id) ? arena_strdup(&t->request->arena, json_string_value(id)) : NULL;
}

/* Returns true if a merge finds the object already there and keeps it. */
static bool is_existing_kept(struct archive_import *t, enum kind kind, const char *id)
{
    struct request *c = t->request;
    const json_t *there = t->kept ? change_read(&c->change, kind, id) : NULL;
    const char *owner = member(there, "owner");
    if (!owner || strcmp(owner, t->user) != 0)
        return false;
    (void)json_array_append_new(t->kept, json_string(arena_fmt(&c->arena, "%s/%s", kinds[kind].plural, id)));
    return true;
}

/* Returns the ID NAME.USER of an app or VM with its name folded; NULL: the name is invalid and is rejected later. */
static const char *owned_id_of(struct archive_import *t, const json_t *doc)
{
    char folded[ID_MAX + 1];
    const char *name = member(doc, "name");
    if (!name || id_fold("name", name, folded, NULL) < 0)
        return NULL;
    return arena_fmt(&t->request->arena, "%s.%s", folded, t->user);
}

static int rename_volume(struct archive_import *t, json_t *doc, const char *old)
{
    const char *name = NULL;
    int rc = free_name(t, KIND_VOLUME, old, &name);
    if (rc < 0)
        return rc;
    (void)json_object_set_new(t->volumes, old, json_string(name));
    return json_object_set_new(doc, "id", json_string(name));
}

static bool is_existing_volume_kept(struct archive_import *t, const char *old)
{
    char folded[ID_MAX + 1];
    if (!t->kept || id_fold("id", old, folded, NULL) < 0 || !is_existing_kept(t, KIND_VOLUME, folded))
        return false;
    (void)json_object_set_new(t->volumes, old, json_string(folded));
    return true;
}

static json_t *volume_renamed(struct archive_import *t, json_t *name)
{
    json_t *to = json_is_string(name) ? json_object_get(t->volumes, json_string_value(name)) : NULL;
    return json_incref(to ? to : name);
}

/* Renames the mounted volumes and the gang. Gang names are global in the cluster, so each user gets its own. */
static void rename_in_work(struct archive_import *t, json_t *doc)
{
    json_t *mounts = json_object_get(doc, "volumes");
    const char *gang = member(doc, "gang");
    if (json_is_array(mounts)) {
        json_t *renamed = json_array();
        for (size_t i = 0; i < json_array_size(mounts); i++)
            (void)json_array_append_new(renamed, volume_renamed(t, json_array_get(mounts, i)));
        (void)json_object_set_new(doc, "volumes", renamed);
    } else if (mounts) {
        (void)json_object_set_new(doc, "volumes", volume_renamed(t, mounts));
    }
    if (!gang || !*gang)
        return;
    const char *dot = strrchr(gang, '.');
    size_t len = dot && strcmp(dot + 1, t->old_user) == 0 ? (size_t)(dot - gang) : strlen(gang);
    (void)json_object_set_new(doc, "gang",
                              json_string(arena_fmt(&t->request->arena, "%.*s.%s", (int)len, gang, t->user)));
}

static int import_item(struct archive_import *t, enum kind kind, const json_t *item)
{
    struct request *c = t->request;
    CLEANUP(json) json_t *doc = json_deep_copy(item);
    const char *id = NULL, *old = id_of(t, doc);
    if (!json_is_object(doc) || !old)
        return err_set(&c->err, EINVAL, "expected an object with an id");
    int rc = 0;
    if (kind == KIND_VOLUME) {
        if (is_existing_volume_kept(t, old))
            return 0;
        rc = rename_volume(t, doc, old);
    } else {
        rename_in_work(t, doc);
        if (kind != KIND_JOB && !member(doc, "name"))
            (void)json_object_set_new(doc, "name",
                                      /* the ID is NAME.OWNER */
                                      json_string(arena_strndup(&c->arena, old, strcspn(old, "."))));
        (void)json_object_del(doc, "id");
        const char *there = kind != KIND_JOB && t->kept ? owned_id_of(t, doc) : NULL;
        if (there && is_existing_kept(t, kind, there))
            return 0;
    }
    if (rc < 0)
        return rc;
    (void)json_object_set_new(doc, "owner", json_string(t->user));
    (void)json_object_del(doc, "group");
    rc = put(t, kind, doc, &id);
    if (rc == 0)
        note_renamed(t, kind, old, id);
    return rc;
}

static int import_parts(struct archive_import *t, const json_t *archive)
{
    struct request *c = t->request;
    for (size_t p = 0; p < archive_parts_len; p++) {
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(archive, archive_parts[p].name), i, item)
        {
            int rc = import_item(t, archive_parts[p].kind, item);
            if (rc < 0)
                return err_prefix(&c->err, "%s[%zu]", archive_parts[p].name, i);
        }
    }
    return 0;
}

int archive_import(struct request *c, const json_t *archive, const char *as)
{
    CLEANUP(archive_import)
    struct archive_import t = {.request = c, .renamed = json_object(), .volumes = json_object()};
    bool dry_run = c->dry_run;
    int rc = archive_check(archive, &c->err);
    if (rc < 0)
        return rc;
    c->dry_run = false; /* a dry run would show every job the same next number; number gaps are accepted instead */
    rc = import_user(&t, archive, as);
    if (rc == 0)
        rc = import_parts(&t, archive);
    c->dry_run = dry_run;
    if (rc < 0)
        return rc;
    c->change.verb = "user.import";
    c->change.subject = arena_fmt(&c->arena, "users/%s", t.user);
    json_decref(c->answer.body);
    c->answer.body = json_pack("{s:s, s:O}", "id", t.user, "renamed", t.renamed);
    if (t.kept)
        (void)json_object_set(c->answer.body, "kept", t.kept);
    c->answer.status = 201;
    return 0;
}

int user_import(struct request *c)
{
    return archive_import(c, c->body, request_query(c, "as"));
}
