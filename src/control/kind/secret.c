/* secret.c - secrets as objects: sealed when they are written, decrypted only for agents. */
#include "control/kind/secret.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/control_parts.h"
#include "control/kind/work.h"
#include "control/watch/derived.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

enum { KEYS_MAX = 64, VALUE_BYTES_MAX = 64 * 1024, DATA_BYTES_MAX = 256 * 1024, KEY_BYTES_MAX = 253 };
enum { NONCE = crypto_secretbox_NONCEBYTES, SEAL = crypto_secretbox_MACBYTES };
#define BASE64 sodium_base64_VARIANT_ORIGINAL

const char *secret_id(const char *name, const char *owner, struct arena *arena)
{
    return strchr(name, '.') ? name : arena_fmt(arena, "%s.%s", name, owner ? owner : "");
}

/* ---- sealing ---------------------------------------------------------------------------------------------------- */

static int key_check(const struct control *c, struct berth_err *err)
{
    if (c->options.secret_key_given)
        return 0;
    return err_set(err, EIO, "this daemon has no key for secrets; see its log");
}

static void wipe(char *text, size_t len)
{
    sodium_memzero(text, len);
    free(text);
}

/* Makes the sealed text to be stored. A new reference. */
static int seal(struct control *c, const char *id, const json_t *data, json_t **ret, struct berth_err *err)
{
    int rc = key_check(c, err);
    if (rc < 0)
        return rc;
    CLEANUP(json) json_t *whole = json_pack("{s:s, s:O}", "id", id, "data", data);
    char *plain = json_dumps(whole, JSON_COMPACT | JSON_SORT_KEYS);
    size_t len = strlen(plain), sealed_len = NONCE + SEAL + len;
    CLEANUP(mem) unsigned char *sealed = mem_alloc(sealed_len);
    size_t text_len = sodium_base64_encoded_len(sealed_len, BASE64);
    CLEANUP(mem) char *text = mem_alloc(text_len);
    c->env.random(c->env.ctx, sealed, NONCE);
    rc = crypto_secretbox_easy(sealed + NONCE, (const unsigned char *)plain, len, sealed, c->options.secret_key);
    wipe(plain, len);
    if (rc != 0)
        return err_set(err, EIO, "the secret cannot be encrypted");
    *ret = json_string(sodium_bin2base64(text, text_len, sealed, sealed_len, BASE64));
    return 0;
}

int secret_open(const struct control *c, const char *id, const json_t *doc, json_t **ret, struct berth_err *err)
{
    const json_t *sealed = json_object_get(doc, "sealed");
    size_t text_len = json_string_length(sealed), len = 0;
    int rc = key_check(c, err);
    if (rc < 0)
        return rc;
    CLEANUP(mem) unsigned char *box = mem_alloc(text_len + 1);
    bool good = sodium_base642bin(box, text_len, json_string_value(sealed), text_len, NULL, &len, NULL, BASE64) == 0 &&
                len >= NONCE + SEAL;
    size_t plain_len = good ? len - NONCE - SEAL : 0;
    char *plain = mem_alloc(plain_len + 1);
    good = good && crypto_secretbox_open_easy((unsigned char *)plain, box + NONCE, len - NONCE, box,
                                              c->options.secret_key) == 0;
    CLEANUP(json) json_t *whole = good ? json_loadb(plain, plain_len, 0, NULL) : NULL;
    sodium_memzero(plain, plain_len);
    mem_free(plain);
    const char *of = json_string_value(json_object_get(whole, "id"));
    if (!of || strcmp(of, id) != 0)
        return err_set(err, EIO,
                       "secret %s is encrypted with a key that this daemon does not have; set the secret "
                       "again",
                       id);
    *ret = json_incref(json_object_get(whole, "data"));
    return 0;
}

struct secret_key_match secret_key_fit(struct control *c)
{
    struct secret_key_match fit = {0};
    const struct object *const *list = state_list(c->state, KIND_SECRET, &fit.secrets);
    for (size_t i = 0; i < fit.secrets && !fit.opens; i++) {
        struct berth_err unheard;
        CLEANUP(json) json_t *doc = json_loadb(list[i]->doc.at, list[i]->doc.len, 0, NULL), *data = NULL;
        fit.opens = secret_open(c, list[i]->id, doc, &data, &unheard) == 0;
    }
    return fit;
}

/* ---- write ------------------------------------------------------------------------------------------------------ */

/* Errors never quote the value, which may be the secret itself. */
static int data_check(struct request *c, const json_t *data)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t bytes = 0;
    const char *key;
    json_t *value;
    if (!json_is_object(data) || json_object_size(data) == 0 || json_object_size(data) > KEYS_MAX)
        return err_set(&c->err, EINVAL, "data: expected an object of 1 to %d keys with text values", KEYS_MAX);
    json_object_foreach((json_t *)data, key, value)
    {
        size_t len = strlen(key);
        if (len == 0 || len > KEY_BYTES_MAX || strspn(key, allowed) != len)
            return err_set(&c->err, EINVAL, "data: a key has at most %d letters, digits, '_', '.' and '-'",
                           KEY_BYTES_MAX);
        if (!json_is_string(value) || json_string_length(value) > VALUE_BYTES_MAX)
            return err_set(&c->err, EINVAL, "data: %s: expected text of at most %d bytes", key, VALUE_BYTES_MAX);
        bytes += len + json_string_length(value);
    }
    return bytes <= DATA_BYTES_MAX ? 0 : err_set(&c->err, EINVAL, "data: more than %d bytes in all", DATA_BYTES_MAX);
}

static int normalise(struct request *c, const struct crud *k, json_t *body)
{
    const char *word = json_string_value(json_object_get(body, "kind"));
    const json_t *data = json_object_get(body, "data");
    if (word && kind_find(word) == k->kind)
        (void)json_object_del(body, "kind");
    (void)json_object_del(body, "keys"); /* set by the daemon only */
    (void)json_object_del(body, "sealed");
    if (c->input->idempotency_key)
        return err_set(&c->err, EINVAL, "Idempotency-Key: not allowed for secrets; PUT may be repeated");
    return data ? data_check(c, data) : 0;
}

static json_t *sizes_of(const json_t *data)
{
    json_t *sizes = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)data, key, value)(void)
        json_object_set_new(sizes, key, json_integer((json_int_t)json_string_length(value)));
    return sizes;
}

static bool same_data(const struct control *c, const char *id, const json_t *old, const json_t *data)
{
    CLEANUP(json) json_t *known = NULL;
    return old && secret_open(c, id, old, &known, NULL) == 0 && json_equal(known, data);
}

/* Keeps the sealed text of unchanged data, so that nothing is written. */
static int data_seal(struct request *c, const char *id, const json_t *old, json_t *doc)
{
    CLEANUP(json) json_t *data = json_incref(json_object_get(doc, "data"));
    json_t *sealed = NULL;
    (void)json_object_del(doc, "data");
    if (!data && !old)
        return err_set(&c->err, EINVAL, "data: missing");
    if (!data || same_data(c->control, id, old, data)) {
        (void)json_object_set(doc, "keys", json_object_get(old, "keys"));
        (void)json_object_set(doc, "sealed", json_object_get(old, "sealed"));
        return 0;
    }
    int rc = seal(c->control, id, data, &sealed, &c->err);
    if (rc < 0)
        return rc;
    (void)json_object_set_new(doc, "keys", sizes_of(data));
    (void)json_object_set_new(doc, "sealed", sealed);
    return 0;
}

static int prepare(struct request *c, const struct crud *k, const char *id, const json_t *old, json_t *doc)
{
    (void)k;
    int rc = old ? owned_key_keep(c, "owner", old, doc) : 0;
    if (rc == 0 && old)
        rc = owned_key_keep(c, "name", old, doc);
    if (rc == 0)
        rc = owned_join_group(c, doc);
    return rc < 0 ? rc : data_seal(c, id, old, doc);
}

static int check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct secret_doc d;
    (void)k;
    (void)id;
    (void)old;
    return secret_doc_read(doc, &c->arena, &d, &c->err);
}

/* ---- references ------------------------------------------------------------------------------------------------- */

bool secret_named(const json_t *work, const char *owner, const char *id)
{
    const json_t *files = json_object_get(work, "files");
    size_t owner_len = strlen(owner), id_len = strlen(id);
    bool own =
        id_len > owner_len + 1 && id[id_len - owner_len - 1] == '.' && strcmp(id + id_len - owner_len, owner) == 0;
    bool alone = json_is_object(files);
    for (size_t i = 0; own && i < (alone ? 1 : json_array_size(files)); i++) {
        const json_t *file = alone ? files : json_array_get(files, i);
        const char *name = json_string_value(json_object_get(file, "secret"));
        size_t len = name ? strcspn(name, ".") : 0;
        if (len && len == id_len - owner_len - 1 && strncmp(name, id, len) == 0)
            return true;
    }
    return false;
}

static bool object_names(const struct object *o, const char *id)
{
    if (!memmem(o->doc.at, o->doc.len, "\"secret\"", 8))
        return false;
    CLEANUP(json) json_t *doc = object_doc(o);
    return secret_named(doc, o->owner, id);
}

static const char *named_by(struct request *c, const char *id, const char *owner)
{
    static const enum kind users[] = {KIND_APP, KIND_JOB, KIND_VM};
    for (size_t k = 0; k < sizeof users / sizeof *users; k++) {
        size_t len = 0;
        const struct object *const *list = state_list(c->state, users[k], &len);
        for (size_t i = 0; i < len; i++)
            if (strcmp(list[i]->owner, owner) == 0 && object_names(list[i], id)) {
                const json_t *now = change_read(&c->change, users[k], list[i]->id);
                if (now && secret_named(now, owner, id)) /* otherwise this transaction removes the reference */
                    return list[i]->id;
            }
    }
    for (size_t i = 0; i < c->change.items.len; i++) {
        const struct change_item *item = &c->change.items.at[i];
        if (kind_is_workload(item->kind) && item->doc && secret_named(item->doc, owner, id))
            return item->id;
    }
    return NULL;
}

static int on_delete(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    (void)k;
    const char *owner = json_string_value(json_object_get(old, "owner"));
    const char *user = next || !owner ? NULL : named_by(c, id, owner);
    return user ? err_set(&c->err, EBUSY, "secret %s is used by %s; change or delete that object first", id, user) : 0;
}

int secrets_check(struct request *c, const json_t *doc, const struct work_run *run)
{
    const char *owner = json_string_value(json_object_get(doc, "owner"));
    for (size_t i = 0; i < run->files_len; i++) {
        char quoted[QUOTE_MAX];
        const struct work_file *f = &run->files[i];
        if (!f->secret)
            continue;
        const char *id = secret_id(f->secret, owner, &c->arena), *dot = strchr(id, '.');
        bool own = owner && strcmp(dot + 1, owner) == 0;
        const json_t *secret = own ? change_read(&c->change, KIND_SECRET, id) : NULL;
        if (!secret)
            return err_set(&c->err, EINVAL,
                           "files[%zu]: secret: the owner has no secret %s; create one with 'berth secret set'", i,
                           quote(f->secret, quoted));
        if (!json_object_get(json_object_get(secret, "keys"), f->key))
            return err_set(&c->err, EINVAL, "files[%zu]: key: secret %s has no key %s", i, id, quote(f->key, quoted));
    }
    return 0;
}

const struct crud secret_crud = {
    .kind = KIND_SECRET,
    .make = PERMIT_SUBMIT,
    .change = PERMIT_MANAGE,
    .normalise = normalise,
    .identify = owned_identify,
    .belongs = owned_belongs,
    .prepare = prepare,
    .check = check,
    .leaving = on_delete,
};

/* ---- for agents ------------------------------------------------------------------------------------------------- */

static bool runs_with(const struct state *s, const struct object *node, const char *id)
{
    for (size_t i = 0; i < node->node->instances_len; i++) {
        const struct instance_view *v = node->node->instances[i]->instance;
        bool runs = v->state == BERTH_ASSIGNED || v->state == BERTH_STARTING || v->state == BERTH_RUNNING;
        const struct object *from = runs ? instance_placed_from(s, v) : NULL;
        if (from && object_names(from, id))
            return true;
    }
    return false;
}

int node_secret(struct request *c)
{
    const char *node = NULL, *id = NULL;
    int rc = crud_id(c, KIND_NODE, c->args[0], &node);
    const struct object *of = rc == 0 ? state_find(c->state, KIND_NODE, node) : NULL;
    if (!of || !permit(&c->caller, PERMIT_REPORT, of->id, ""))
        return crud_not_found(c, KIND_NODE, c->args[0]);
    if (strcmp(c->caller.node, of->id) != 0)
        return err_set(&c->err, EACCES, "only the agent of a node that needs a secret can read it");
    if (!strchr(c->args[1], '.') || crud_id(c, KIND_SECRET, c->args[1], &id) < 0)
        return crud_not_found(c, KIND_SECRET, c->args[1]);
    const struct object *secret = state_find(c->state, KIND_SECRET, id);
    if (!secret || !runs_with(c->state, of, secret->id))
        return crud_not_found(c, KIND_SECRET, c->args[1]);
    json_t *data = NULL;
    CLEANUP(json) json_t *doc = object_doc(secret);
    rc = secret_open(c->control, secret->id, doc, &data, &c->err);
    if (rc == 0)
        c->answer.body = json_pack("{s:o}", "data", data);
    return rc;
}
