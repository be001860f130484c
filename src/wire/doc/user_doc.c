/* user_doc.c - documents of users, roles, tokens and secrets. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/doc/queue_doc.h"

enum { LEVEL_MAX = 1000, HASH_TEXT_LEN = 64 };

static int level_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < -LEVEL_MAX || json_integer_value(value) > LEVEL_MAX)
        return expected(r, "a whole number from -1000 to 1000", value);
    return i32_read(r, key, value, object);
}

static int hash_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != HASH_TEXT_LEN || strspn(text, "0123456789abcdef") != HASH_TEXT_LEN)
        /* the value is not shown, because it may be secret */
        return err_set(r->err, EINVAL, "expected 64 hexadecimal digits");
    *(const char **)key_field(key, object) = text_keep(r, text);
    return 0;
}

static int permissions_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    void *at = json_object_iter((json_t *)value);
    for (; at; at = json_object_iter_next((json_t *)value, at)) {
        const json_t *scope = json_object_iter_value(at);
        if (!json_is_string(scope))
            return in_member(r, json_object_iter_key(at), expected(r, "none, own, group or all", scope));
    }
    return labels_read(r, key, value, object);
}

#define AT(field) offsetof(struct user_doc, field)
static const struct key user_rows[] = {
    KEY("group", "group", "group of the user; default: none", line_read, .at = AT(group)),
    KEY("role", "role", "role of the user; default: `user`", line_read, .at = AT(role)),
    KEY("disabled", "true or false", "tokens are rejected and apps suspended", bool_read, .at = AT(disabled)),
    KEY("level", "-1000 to 1000", "level, for policies that rank users: below 0 counts as 0, above 100 as 100",
        level_read, .at = AT(level)),
    KEY("weight", "1 to 1000000", "weight among users of the group; default: 1", quota_weight_read, .at = AT(weight)),
    KEY("quota", "{`limits`, `guarantees`, `admitted`, `totals`}", "quota of all work of the user", quota_read,
        .at = AT(quota)),
    KEY("account", "true or false",
        "whether nodes with `--accounts` may run its work as the account of its name; set at creation, and false "
        "for users that group managers create",
        bool_read, .at = AT(account)),
    KEY("uid", "whole number", "user number (uid) on every node; set by the daemon", u32_read, .at = AT(uid)),
};
#undef AT
static KEY_TABLE(user_keys, "user", user_rows);

static const struct key role_rows[] = {
    KEY("permissions", "{permission: scope}", "permissions that are not listed are `none`", permissions_read,
        .at = offsetof(struct role_doc, permissions), .len_at = offsetof(struct role_doc, permissions_len)),
};
static KEY_TABLE(role_keys, "role", role_rows);

#define AT(field) offsetof(struct token_doc, field)
static const struct key token_rows[] = {
    KEY("user", "user", "the OpTask", line_read, .at = AT(user)),
    KEY("node", "node", "node of the agent, instead of a user", line_read, .at = AT(node)),
    KEY("role", "role", "role, at most that of the user; default: the user's role", line_read, .at = AT(role)),
    KEY("note", "text", "purpose", line_read, .at = AT(note)),
    KEY("expires", "time", "default: never", time_read, .at = AT(expires_ns)),
    KEY("hash", "64 hexadecimal digits", "SHA-256 of the secret; set by the daemon", hash_read, .at = AT(hash)),
};
#undef AT
static KEY_TABLE(token_keys, "token", token_rows);

const struct key_table *const user_tables[] = {&user_keys, &identity_keys, &meta_keys, &created_keys, NULL};
const struct key_table *const role_tables[] = {&role_keys, &identity_keys, &meta_keys, &created_keys, NULL};
const struct key_table *const token_tables[] = {&token_keys, &identity_keys, &meta_keys, &created_keys, NULL};

int user_doc_read(const json_t *doc, struct arena *arena, struct user_doc *ret, struct berth_err *err)
{
    struct user_doc d = {.account = true};
    int rc = document_fill(doc, arena, &user_keys, &d, &d.meta, err);
    if (rc == 0)
        *ret = d;
    return rc;
}

int role_doc_read(const json_t *doc, struct arena *arena, struct role_doc *ret, struct berth_err *err)
{
    struct role_doc d = {0};
    int rc = document_fill(doc, arena, &role_keys, &d, &d.meta, err);
    if (rc == 0)
        *ret = d;
    return rc;
}

int token_doc_read(const json_t *doc, struct arena *arena, struct token_doc *ret, struct berth_err *err)
{
    struct token_doc d = {.expires_ns = BERTH_NEVER_NS};
    int rc = document_fill(doc, arena, &token_keys, &d, &d.meta, err);
    if (rc < 0)
        return rc;
    if (d.user && *d.user && d.node && *d.node)
        return err_set(err, EINVAL, "node: a token belongs to either a user or a node");
    *ret = d;
    return 0;
}

/* ---- secrets ----------------------------------------------------------------------------------------------------- */

static int sealed_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_string(value))
        /* the value is not shown, because it may be secret */
        return err_set(r->err, EINVAL, "expected a value encrypted by the daemon");
    *(const char **)key_field(key, object) = text_keep(r, json_string_value(value));
    return 0;
}

/* Only for the reference: stored documents never have this key. */
static int data_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    (void)key;
    (void)value;
    (void)object;
    return err_set(r->err, EINVAL, "must be encrypted before it is stored");
}

#define AT(field) offsetof(struct secret_doc, field)
static const struct key secret_rows[] = {
    KEY("name", "text", "first part of the id", line_read, .at = AT(name)),
    KEY("owner", "user", "default: the caller", line_read, .at = AT(owner)),
    KEY("group", "group", "group of the owner; set by the daemon", line_read, .at = AT(group)),
    KEY("data", "{name: text}", "keys and their texts; never shown", data_read),
    KEY("keys", "{name: whole number}", "keys and their sizes in bytes; set by the daemon", tree_read, .at = AT(keys)),
    KEY("sealed", "text", "set by the daemon; never shown", sealed_read, .at = AT(sealed)),
};
#undef AT
static KEY_TABLE(secret_keys, "secret", secret_rows);

const struct key_table *const secret_tables[] = {&secret_keys, &identity_keys, &meta_keys, &created_keys, NULL};

int secret_doc_read(const json_t *doc, struct arena *arena, struct secret_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct secret_doc d = {0};
    const struct object_part parts[] = {
        {&secret_keys,   &d     },
        {&identity_keys, &d.meta},
        {&meta_keys,     &d.meta},
        {&created_keys,  &d.meta},
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    if (rc == 0)
        rc = meta_finish(&r, &d.meta, d.meta.id);
    if (rc == 0 && (!d.keys || !d.sealed))
        rc = missing(&r, d.keys ? "sealed" : "keys");
    if (rc == 0)
        *ret = d;
    return rc;
}
