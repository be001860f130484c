#include "control/state/upgrade.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

/* Only one version exists so far. */
const struct upgrades upgrades = {.version = SCHEMA_VERSION};

int upgrade_document(enum kind kind, json_t *doc, const struct upgrades *by, struct berth_err *err)
{
    const json_t *v = json_object_get(doc, "v");
    json_int_t version = json_integer_value(v);
    if (!json_is_integer(v) || version < 1)
        return err_set(err, ENOTSUP, "the store has no schema version; it was not written by berthd");
    if (version > by->version)
        return err_set(err, ENOTSUP,
                       "the schema version of the store is %" JSON_INTEGER_FORMAT
                       ", but this berthd supports up to %d; start a newer berthd",
                       version, by->version);
    for (; version < by->version; version++)
        for (size_t i = 0; i < by->len; i++)
            if (by->at[i].from == version && by->at[i].kind == kind)
                by->at[i].run(doc);
    (void)json_object_set_new(doc, "v", json_integer(by->version));
    return 0;
}

struct upgrade_txn {
    struct arena arena;
    VEC(struct store_op) ops;
    const struct upgrades *by;
    struct berth_err *err;
};

/* Most documents are up to date. Finds "v":N, as json_dumps writes it, without parsing. */
static bool is_present(const struct bytes *doc, int version)
{
    char mark[24];
    size_t len = (size_t)snprintf(mark, sizeof mark, "\"v\":%d", version);
    const char *at = memmem(doc->at, doc->len, mark, len), *end = (const char *)doc->at + doc->len;
    return at && at + len < end && (at[len] == ',' || at[len] == '}');
}

static int visit(void *ctx, const struct store_entry *entry)
{
    struct upgrade_txn *u = ctx;
    const char *id;
    enum kind kind = object_key_split(entry->key, &id);
    if (kind == KINDS || is_present(&entry->value, u->by->version))
        return 0;
    json_error_t where;
    json_t *doc = json_loadb(entry->value.at, entry->value.len, 0, &where);
    int rc = 0;
    if (!json_is_object(doc))
        rc = err_set(u->err, EBADMSG, "%s: not a JSON object; restore a backup", entry->key);
    else if ((rc = upgrade_document(kind, doc, u->by, u->err)) < 0)
        (void)err_prefix(u->err, "%s", entry->key);
    else {
        char *text = json_dumps(doc, JSON_COMPACT);
        size_t len = strlen(text);
        struct store_op op = {
            .key = arena_strdup(&u->arena, entry->key), .value = {arena_dup(&u->arena, text, len), len}
        };
        free(text);
        if (op.value.len != entry->value.len || memcmp(op.value.at, entry->value.at, len) != 0)
            vec_push(&u->ops, op);
    }
    json_decref(doc);
    return rc;
}

static void on_committed(void *ctx, const struct store_result *result)
{
    *(int *)ctx = result->rc;
}

int upgrade_documents(struct store *store, const struct upgrades *by, struct berth_err *err)
{
    struct berth_err unheard;
    struct upgrade_txn u = {.by = by, .err = err ? err : &unheard};
    int done = 0;
    arena_init(&u.arena);
    int rc = store_range(store, "", 0, visit, &u, err);
    for (size_t at = 0; rc == 0 && at < u.ops.len; at += STORE_OPS_MAX) {
        size_t len = u.ops.len - at < STORE_OPS_MAX ? u.ops.len - at : STORE_OPS_MAX;
        struct store_txn txn = {.ops = u.ops.at + at, .ops_len = len};
        rc = store_submit(store, &txn, on_committed, &done, err);
        store_drain(store);
        if (rc == 0 && done < 0)
            rc = err_set(err, -done, "documents could not be brought up to version %d; is the disk full?",
                         SCHEMA_VERSION);
    }
    vec_done(&u.ops);
    arena_done(&u.arena);
    return rc;
}
