#include "cli/show/manifest.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

enum { FOLDERS_MAX = 32 };

void manifests_done(struct manifests *m)
{
    for (size_t i = 0; i < m->len; i++) {
        json_decref(m->at[i].object);
        mem_free(m->at[i].id);
        mem_free(m->at[i].place);
    }
    vec_done(m);
}

/* ---- documents -------------------------------------------------------------------------------------------------- */

static int kind_missing(const json_t *document, const char *place, struct berth_err *err)
{
    if (json_object_get(document, "nodes") || json_object_get(document, "workloads"))
        return err_set(err, EINVAL, "%s: this is a cluster file for 'berth plan'; a manifest has a kind", place);
    return err_set(err, EINVAL,
                   "%s: missing kind: one of app, job, vm, node, user, group, role, volume, secret, "
                   "resource, profile, queue, policy, window, domain, cron",
                   place);
}

static int kind_read(const json_t *document, const char *place, const struct collection **ret, struct berth_err *err)
{
    const json_t *kind = json_object_get(document, "kind");
    const char *word = json_string_value(kind), *near;

    if (!kind || json_is_null(kind))
        return kind_missing(document, place, err);
    if (!word)
        return err_set(err, EINVAL, "%s: kind: expected text such as app", place);
    const struct collection *c = collection_find(word);
    if (c && c->manifest) {
        *ret = c;
        return 0;
    }
    if (c)
        return err_set(err, EINVAL, "%s: kind: a manifest cannot create %s", place, c->plural);
    near = collection_near(word);
    if (near)
        return err_set(err, EINVAL, "%s: kind: unknown kind '%s'; did you mean '%s'?", place, word, near);
    return err_set(err, EINVAL,
                   "%s: kind: unknown kind '%s'; kinds are app, job, vm, node, user, group, role, volume, "
                   "secret, resource, profile, queue, policy, window, domain, cron",
                   place, word);
}

/* Returns NAME, or NAME.OWNER if the object has an owner and the kind's ids contain owners. */
static char *id_make(const struct collection *c, const json_t *object)
{
    bool owned = strcmp(c->kind, "app") == 0 || strcmp(c->kind, "vm") == 0 || strcmp(c->kind, "secret") == 0 ||
                 strcmp(c->kind, "cron") == 0;
    bool is_job = strcmp(c->kind, "job") == 0;
    const char *owner = json_string_value(json_object_get(object, "owner"));
    const json_t *id = value_at(object, is_job ? "id" : "id|name");
    struct str text = {0};

    if (json_is_integer(id))
        str_addf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    else if (json_is_string(id))
        str_add(&text, json_string_value(id));
    if (text.len == 0) {
        str_done(&text);
        return NULL;
    }
    if (owned && owner && *owner && !strchr(text.at, '.'))
        str_addf(&text, ".%s", owner);
    return str_take(&text);
}

static int document_add(struct manifests *to, const json_t *document, const char *place, struct berth_err *err)
{
    const struct collection *c = NULL;

    if (!json_is_object(document))
        return err_set(err, EINVAL, "%s: expected an object with a kind", place);
    int rc = kind_read(document, place, &c, err);
    if (rc != 0)
        return rc;
    assert(c);
    CLEANUP(json) json_t *object = json_deep_copy(document);
    object_from_manifest(c, object);
    doc_strip(object);
    CLEANUP(mem) char *id = id_make(c, object);
    if (!id && strcmp(c->kind, "job") != 0)
        return err_set(err, EINVAL, "%s: %s: no %s", place, c->kind,
                       strcmp(c->kind, "app") == 0 || strcmp(c->kind, "vm") == 0 ? "name" : "id");
    vec_push(to, ((struct manifest){
                     .collection = c,
                     .object = take_ptr(&object),
                     .id = take_ptr(&id),
                     .place = mem_strdup(place),
                 }));
    return 0;
}

int manifests_add(struct manifests *to, const json_t *document, const char *name, size_t line, struct berth_err *err)
{
    CLEANUP(str) struct str place = {0};
    const json_t *list = json_is_array(document)             ? document
                         : json_object_get(document, "kind") ? NULL
                                                             : json_object_get(document, "items");
    json_t *item;
    size_t i;

    str_addf(&place, "%s:%zu", name, line);
    if (!json_is_array(list))
        return document_add(to, document, str_text(&place), err);
    size_t place_len = place.len;
    json_array_foreach(list, i, item)
    {
        place.len = place_len; /* cut */
        str_addf(&place, ": [%zu]", i);
        int rc = document_add(to, item, str_text(&place), err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static int file_read(const char *path, struct manifests *to, struct berth_err *err)
{
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    struct documents documents;
    int rc = documents_read(path, &documents, err);

    for (size_t i = 0; rc == 0 && i < documents.len; i++)
        rc = manifests_add(to, documents.at[i].root, name, documents.at[i].line, err);
    documents_done(&documents);
    return rc;
}

static int manifest_filter(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool is_manifest_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
}

static int folder_read(const char *path, unsigned depth, struct manifests *to, struct berth_err *err)
{
    struct dirent **entries = NULL;
    int len = scandir(path, &entries, manifest_filter, by_name);
    int rc = len < 0 ? err_set(err, errno, "%s: %s", path, strerror(errno)) : 0;

    if (rc == 0 && depth == FOLDERS_MAX)
        rc = err_set(err, ELOOP, "%s: folders nested too deeply", path);
    for (int i = 0; i < len; i++) {
        CLEANUP(str) struct str below = {0};
        struct stat st;
        str_addf(&below, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", entries[i]->d_name);
        if (rc == 0 && stat(below.at, &st) != 0)
            rc = err_set(err, errno, "%s: %s", below.at, strerror(errno));
        else if (rc == 0 && S_ISDIR(st.st_mode))
            rc = folder_read(below.at, depth + 1, to, err);
        else if (rc == 0 && is_manifest_name(below.at))
            rc = file_read(below.at, to, err);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int manifests_read(const char *path, struct manifests *to, struct berth_err *err)
{
    struct stat st;

    if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return folder_read(path, 0, to, err);
    return file_read(path, to, err);
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

void manifests_sort(struct manifests *m)
{
    struct manifests sorted = {0};

    for (size_t c = 0; c < collections_len; c++) {
        for (size_t i = 0; i < m->len; i++)
            if (m->at[i].collection == &collections[c])
                vec_push(&sorted, m->at[i]);
    }
    vec_done(m);
    *m = sorted;
}

static int by_id(const void *a_, const void *b_)
{
    const struct manifest *a = *(const struct manifest *const *)a_, *b = *(const struct manifest *const *)b_;

    if (a->collection != b->collection)
        return a->collection < b->collection ? -1 : 1;
    int order = strcmp(a->id ? a->id : "", b->id ? b->id : "");
    return order ? order : a < b ? -1 : a > b;
}

int manifests_check(const struct manifests *m, struct berth_err *err)
{
    CLEANUP(mem) const struct manifest **order = mem_zarray(m->len + 1, sizeof *order);

    for (size_t i = 0; i < m->len; i++)
        order[i] = &m->at[i];
    qsort(order, m->len, sizeof *order, by_id);
    for (size_t i = 1; i < m->len; i++) {
        const struct manifest *a = order[i - 1], *b = order[i];
        if (a->id && b->id && a->collection == b->collection && strcmp(a->id, b->id) == 0)
            return err_set(err, EEXIST, "%s: %s/%s is also in %s", b->place, b->collection->kind, b->id, a->place);
    }
    return 0;
}
