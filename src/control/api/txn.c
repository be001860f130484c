/* txn.c - several changes of a client in one transaction: each is checked and authorized as a single change would be.
 */
#include <errno.h>
#include <string.h>

#include "control/system/system.h"
#include "control/tenant/admission.h"
#include "wire/text/words.h"

/* ---- the body ---------------------------------------------------------------------------------------------------- */

struct txn_guard {
    const char *kind, *id;
    uint64_t revision;
    bool said; /* `revision` is present */
};

struct part_entry {
    const char *op, *kind, *id;
    const json_t *object;
};

struct txn {
    const struct txn_guard *guards;
    size_t guards_len;
    const struct part_entry *changes;
    size_t changes_len;
};

static int revision_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    ((struct txn_guard *)object)->said = true;
    return u64_read(r, key, value, object);
}

#define AT(field) offsetof(struct txn_guard, field)
static const struct key guard_rows[] = {
    KEY("kind", "text", "must be given", text_read, .at = AT(kind)),
    KEY("id", "text", "must be given", text_read, .at = AT(id)),
    KEY("revision", "whole number", "the required revision; 0: the object must not exist", revision_read,
        .at = AT(revision)),
};
#undef AT
KEY_TABLE(txn_guard_keys, "guard", guard_rows);

static int guard_finish(struct reader *r, void *item)
{
    const struct txn_guard *g = item;
    return !g->kind ? missing(r, "kind") : !g->id ? missing(r, "id") : g->said ? 0 : missing(r, "revision");
}

#define AT(field) offsetof(struct part_entry, field)
static const struct key change_rows[] = {
    KEY("op", "`put` or `delete`", "must be given", text_read, .at = AT(op)),
    KEY("kind", "text", "must be given", text_read, .at = AT(kind)),
    KEY("id", "text", "leave out for a new job", text_read, .at = AT(id)),
    KEY("object", "an object", "the object to store", raw_read, .at = AT(object)),
};
#undef AT
KEY_TABLE(txn_change_keys, "change", change_rows);

static int change_finish(struct reader *r, void *item)
{
    const struct part_entry *p = item;
    if (!p->op || !p->kind)
        return missing(r, p->op ? "kind" : "op");
    bool put = strcmp(p->op, "put") == 0;
    if (!put && strcmp(p->op, "delete") != 0)
        return err_set(r->err, EINVAL, "op: expected put or delete");
    if (put && !p->object)
        return missing(r, "object");
    if (!put && p->object)
        return err_set(r->err, EINVAL, "object: not allowed with a delete");
    return put || p->id ? 0 : missing(r, "id");
}

static int list_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_array(value))
        return expected(r, "a list", value);
    if (json_array_size(value) > TXN_CHANGES_MAX)
        return err_set(r->err, E2BIG, "has %zu entries; at most %d are allowed", json_array_size(value),
                       TXN_CHANGES_MAX);
    return objects_read(r, key, value, object);
}

static const struct object_kind guard_kind = {.table = &txn_guard_keys,
                                              .size = sizeof(struct txn_guard),
                                              .finish = guard_finish};
static const struct object_kind change_kind = {.table = &txn_change_keys,
                                               .size = sizeof(struct part_entry),
                                               .finish = change_finish};

#define LIST(field) .at = offsetof(struct txn, field), .len_at = offsetof(struct txn, field##_len)
static const struct key txn_rows[] = {
    KEY("guards", "list of {`kind`, `id`, `revision`}", "the conditions", list_read, LIST(guards), .arg = &guard_kind),
    KEY("changes", "list of {`op`, `kind`, `id`, `object`}", "the changes; required", list_read, LIST(changes),
        .arg = &change_kind),
};
#undef LIST
KEY_TABLE(txn_keys, "transaction", txn_rows);

/* ---- running it -------------------------------------------------------------------------------------------------- */

/* Returns the crud table of a kind that has write routes of its own; NULL with c->err otherwise. */
static const struct crud *writable(struct request *c, const char *word)
{
    char quoted[QUOTE_MAX];
    static const enum kind allowed[] = {KIND_NODE,    KIND_APP,    KIND_JOB,    KIND_VM,     KIND_VOLUME, KIND_RESOURCE,
                                        KIND_PROFILE, KIND_USER,   KIND_GROUP,  KIND_ROLE,   KIND_SECRET, KIND_CRON,
                                        KIND_QUEUE,   KIND_POLICY, KIND_WINDOW, KIND_DOMAIN, KIND_OPTASK};
    enum kind kind = kind_find(word);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (allowed[i] == kind)
            return crud_find(kind);
    (void)err_set(&c->err, EINVAL, "kind: %s cannot be changed in a transaction", quote(word, quoted));
    return NULL;
}

/* Checks an expected revision. Never reveals whether an object of another owner exists. */
static int guard(struct request *c, const struct txn_guard *g)
{
    const struct crud *k = writable(c, g->kind);
    const char *id = NULL;
    if (!k)
        return -c->err.code;
    if (request_object(c, k->kind, g->id, PERMIT_SELF))
        c->err = (struct berth_err){0};
    else if (g->revision || c->err.code != ENOENT)
        return -c->err.code;
    int rc = crud_id(c, k->kind, g->id, &id);
    if (rc < 0)
        return rc;
    const struct object *o = state_find(c->state, k->kind, id);
    const char *dot = kinds[k->kind].grammar == ID_OWNED ? strchr(id, '.') : NULL;
    const struct object *owner = dot ? state_find(c->state, KIND_USER, dot + 1) : NULL;
    const struct object wanted = {.kind = k->kind,
                                  .id = id,
                                  .owner = o     ? o->owner
                                           : dot ? dot + 1
                                                 : "",
                                  .group = o       ? o->group
                                           : owner ? owner->user->group
                                                   : ""};
    if ((o || dot) && !request_may_see(c, &wanted))
        return crud_not_found(c, k->kind, g->id);
    return change_expect(&c->change, k->kind, id, g->revision, &c->err);
}

static int change(struct request *c, const struct part_entry *p, json_t *results)
{
    const struct crud *k = writable(c, p->kind);
    const char *id = NULL;
    bool is_new = false;
    if (!k)
        return -c->err.code;
    if (strcmp(p->op, "delete") == 0) {
        int rc = crud_remove(c, k, p->id);
        id = p->id;
        if (rc < 0)
            return rc;
    } else {
        int rc = crud_put(c, k, p->id, p->object, p->id ? CRUD_REPLACE : CRUD_CREATE, &id, &is_new);
        if (rc < 0)
            return rc;
    }
    (void)json_array_append_new(results, json_pack("{s:s, s:s, s:o}", "op", p->op, "kind", kinds[k->kind].name, "id",
                                                   crud_id_value(k->kind, id)));
    return 0;
}

/* Limits the number of deleted volumes and secrets: each one is searched for in every workload, so this bounds the time
 * of a request. */
static int check_volumes(struct request *c, const struct txn *txn)
{
    size_t going = 0;
    for (size_t i = 0; i < txn->changes_len; i++) {
        enum kind kind = kind_find(txn->changes[i].kind);
        going += strcmp(txn->changes[i].op, "delete") == 0 && (kind == KIND_VOLUME || kind == KIND_SECRET);
    }
    return going <= TXN_VOLUMES_MAX
               ? 0
               : err_set(&c->err, EINVAL, "changes: %zu volumes and secrets are deleted at once; at most %d", going,
                         TXN_VOLUMES_MAX);
}

static int at(struct request *c, const char *list, size_t i, int rc)
{
    if (rc < 0)
        (void)err_prefix(&c->err, "%s[%zu]", list, i);
    return rc;
}

int txn_run(struct request *c)
{
    struct txn txn = {0};
    struct reader r;
    reader_init(&r, &c->arena, &c->err);
    int rc = table_read(&r, c->body, &txn_keys, &txn);
    if (rc < 0)
        return rc;
    if (txn.changes_len == 0)
        return missing(&r, "changes");
    rc = check_volumes(c, &txn);
    if (rc < 0)
        return rc;
    c->change.verb = "txn";
    c->change.subject = arena_fmt(&c->arena, "%zu changes", txn.changes_len);
    for (size_t i = 0; rc == 0 && i < txn.guards_len; i++)
        rc = at(c, "guards", i, guard(c, &txn.guards[i]));
    json_t *results = json_array();
    c->quota_check_deferred = true;
    for (size_t i = 0; rc == 0 && i < txn.changes_len; i++)
        rc = at(c, "changes", i, change(c, &txn.changes[i], results));
    if (rc == 0)
        rc = admit_all(c);
    if (rc < 0) {
        json_decref(results);
        return rc;
    }
    c->answer.body = json_pack("{s:o}", "results", results);
    return 0;
}
