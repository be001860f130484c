#include "cli/show/dry_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/text/document.h"

void review_done(struct review *r)
{
    mem_free(take_ptr(&r->items));
    json_decref(take_ptr(&r->body));
}

static json_t *transaction(const struct manifest *at, size_t len)
{
    json_t *changes = json_array();

    for (size_t i = 0; i < len; i++) {
        json_t *change =
            json_pack("{s:s, s:s, s:O}", "op", "put", "kind", at[i].collection->kind, "object", at[i].object);
        if (at[i].id)
            json_object_set_new(change, "id", json_string(at[i].id));
        json_array_append_new(changes, change);
    }
    return json_pack("{s:o}", "changes", changes);
}

/* Replaces "changes[3]: ..." in the server's message by the manifest's file and line. */
static void error_place_name(const struct manifest *at, size_t len, struct api_error *t)
{
    static const char start[] = "changes[";
    char *end = NULL;

    if (strncmp(t->err.text, start, sizeof start - 1) != 0)
        return;
    unsigned long i = strtoul(t->err.text + sizeof start - 1, &end, 10);
    if (i >= len || strncmp(end, "]: ", 3) != 0)
        return;
    memmove(t->err.text, end + 3, strlen(end + 3) + 1);
    const struct manifest *m = &at[i];
    err_prefix(&t->err, "%s: %s%s%s", m->place, m->collection->kind, m->id ? "/" : "", m->id ? m->id : "");
}

static int send(struct api *a, const struct manifest *at, size_t len, bool dry_run, struct api_answer *ret,
                struct api_error *trouble)
{
    CLEANUP(json) json_t *body = transaction(at, len);
    struct api_request request = {.method = "POST", .path = "/v1/txn", .body = body, .dry_run = dry_run};
    int rc = api_try(a, &request, ret, trouble);

    if (rc != EXIT_OK)
        error_place_name(at, len, trouble);
    return rc;
}

/* Returns the change of this object; NULL: the object does not change. */
static const json_t *change_find(const json_t *changes, const char *kind, const char *id)
{
    char buf[ID_TEXT_MAX];
    json_t *change;
    size_t i;

    json_array_foreach(changes, i, change)
    {
        const char *is = json_string_value(json_object_get(change, "kind"));
        if (is && strcmp(is, kind) == 0 && strcmp(object_id(change, buf), id) == 0)
            return change;
    }
    return NULL;
}

static void item_fill(const json_t *body, const struct manifest *m, size_t i, struct review_item *item)
{
    const json_t *result = json_array_get(value_at(body, "answer.results"), i);

    object_id(result, item->id);
    if (!item->id[0])
        snprintf(item->id, sizeof item->id, "%s", m->id ? m->id : "new");
    const json_t *change = change_find(json_object_get(body, "changes"), m->collection->kind, item->id);
    item->before = value_at(change, "before");
    item->after = value_at(change, "after");
    item->outcome = !change ? OUTCOME_UNCHANGED : item->before ? OUTCOME_CHANGED : OUTCOME_CREATED;
}

int review_make(struct api *a, const struct manifest *at, size_t len, struct review *ret, struct api_error *ret_trouble)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    int rc = send(a, at, len, true, &answer, ret_trouble);

    if (rc != EXIT_OK)
        return rc;
    ret->body = take_ptr(&answer.body);
    ret->items = mem_zarray(len + 1, sizeof *ret->items);
    for (size_t i = 0; i < len; i++)
        item_fill(ret->body, &at[i], i, &ret->items[i]);
    return EXIT_OK;
}

int review_commit(struct api *a, const struct manifest *at, size_t len, struct api_error *ret_trouble)
{
    CLEANUP(api_answer) struct api_answer answer = {0};

    return send(a, at, len, false, &answer, ret_trouble);
}
