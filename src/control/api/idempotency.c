#include "control/api/idempotency.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plant.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

enum { KEY_HASH_LEN = 16, BODY_HASH_LEN = 32, DELETES_MAX = 512, SECOND = 1000000000 };

/* Returns the owner of a key: "USER" or, for an agent, "node:ID", which cannot be a user name. */
static const char *key_owner(const struct caller *c, char buf[static OBJECT_KEY_MAX])
{
    (void)snprintf(buf, OBJECT_KEY_MAX, "%s%s", c->user[0] ? "" : "node:", c->user[0] ? c->user : c->node);
    return buf;
}

/* Returns the revision that created the user or node, which tells it from a later one with the same name. 0:
 * deleted. */
static uint64_t key_owner_created(const struct state *s, const char *holder)
{
    bool node = strncmp(holder, "node:", 5) == 0;
    const struct object *o = node ? state_find(s, KIND_NODE, holder + 5) : state_find(s, KIND_USER, holder);
    return o ? o->created : 0;
}

static const char *reply_id(const struct request *c, char buf[static OBJECT_KEY_MAX])
{
    unsigned char hash[KEY_HASH_LEN];
    char hex[2 * KEY_HASH_LEN + 1], holder[OBJECT_KEY_MAX];
    const char *key = c->input->idempotency_key;
    (void)crypto_generichash(hash, sizeof hash, (const unsigned char *)key, strlen(key), NULL, 0);
    int len = snprintf(buf, OBJECT_KEY_MAX, "%s/%s", key_owner(&c->caller, holder),
                       sodium_bin2hex(hex, sizeof hex, hash, sizeof hash));
    assert(len > 0 && len < OBJECT_KEY_MAX);
    return buf;
}

static void hash_add(crypto_generichash_state *h, const char *text, size_t len)
{
    uint64_t length = len; /* hashed before the bytes, so that different lists of parts cannot give the same input */
    (void)crypto_generichash_update(h, (const unsigned char *)&length, sizeof length);
    (void)crypto_generichash_update(h, (const unsigned char *)text, len);
}

/* Hashes the whole request: method, path, the query parameters that the route accepts, and body. */
static const char *request_hash(const struct request *c, char ret[static 2 * BODY_HASH_LEN + 1])
{
    crypto_generichash_state h;
    unsigned char hash[BODY_HASH_LEN];
    const struct request_input *r = c->input;
    (void)crypto_generichash_init(&h, NULL, 0, sizeof hash);
    hash_add(&h, r->method, strlen(r->method));
    hash_add(&h, r->path, strlen(r->path));
    for (const char *at = c->route->query ? c->route->query : ""; *at;) {
        char name[64];
        size_t len = strcspn(at, ",");
        assert(len < sizeof name);
        memcpy(name, at, len);
        name[len] = '\0';
        at += at[len] ? len + 1 : len;
        const char *value = request_query(c, name);
        if (!value)
            continue;
        hash_add(&h, name, len);
        hash_add(&h, value, strlen(value));
    }
    hash_add(&h, r->body ? r->body : "", r->body ? r->body_len : 0);
    (void)crypto_generichash_final(&h, hash, sizeof hash);
    return sodium_bin2hex(ret, 2 * BODY_HASH_LEN + 1, hash, sizeof hash);
}

static int key_check(const char *key, struct berth_err *err)
{
    size_t len = strnlen(key, REPLY_KEY_MAX + 1);
    bool good = len > 0 && len <= REPLY_KEY_MAX;
    for (size_t i = 0; i < len && good; i++)
        good = key[i] >= ' ' && key[i] <= '~';
    if (good)
        return 0;
    return err_set(err, EINVAL, "Idempotency-Key: expected 1 to %d printable ASCII characters", REPLY_KEY_MAX);
}

/* ---- replies of one user ---------------------------------------------------------------------------------------- */

struct replies {
    const struct object *const *at;
    size_t len;
};

/* Returns the first position whose id is not below `text`. */
static size_t lower_bound(const struct replies *all, const char *text)
{
    size_t low = 0, high = all->len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(all->at[mid]->id, text) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct replies replies_all(const struct state *s)
{
    struct replies all;
    all.at = state_list(s, KIND_REPLY, &all.len);
    return all;
}

static struct replies replies_of(const struct state *s, const char *holder)
{
    char text[OBJECT_KEY_MAX + 1];
    struct replies all = replies_all(s);
    (void)snprintf(text, sizeof text, "%s/", holder);
    size_t from = lower_bound(&all, text);
    text[strlen(text) - 1] = '/' + 1; /* greater than every id that starts with "HOLDER/" */
    return (struct replies){all.at + from, lower_bound(&all, text) - from};
}

/* ---- lookup and storage ----------------------------------------------------------------------------------------- */

static bool is_alive(const struct state *s, const json_t *doc, const char *holder, int64_t now_ns)
{
    int64_t expires_ns;
    const json_t *born = json_object_get(doc, "born");
    return timestamp_parse(json_object_get(doc, "expires"), &expires_ns, NULL) == 0 && now_ns < expires_ns &&
           json_is_integer(born) && (uint64_t)json_integer_value(born) == key_owner_created(s, holder);
}

int reply_find(struct request *c, struct reply *ret)
{
    char id[OBJECT_KEY_MAX], holder[OBJECT_KEY_MAX], hash[2 * BODY_HASH_LEN + 1];
    if (!c->input->idempotency_key)
        return 0;
    int rc = key_check(c->input->idempotency_key, &c->err);
    if (rc < 0)
        return rc;
    (void)key_owner(&c->caller, holder);
    const struct object *o = state_find(c->state, KIND_REPLY, reply_id(c, id));
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    if (doc && is_alive(c->state, doc, holder, c->now_ns) && !PLANTED(KEY_FORGOTTEN)) {
        const char *known = json_string_value(json_object_get(doc, "body_hash"));
        if ((!known || strcmp(known, request_hash(c, hash)) != 0) && !PLANTED(KEY_ANYTHING))
            return err_set(&c->err, EEXIST,
                           "Idempotency-Key: was used with another request; use a new key for each request");
        *ret = (struct reply){.status = (int)json_integer_value(json_object_get(doc, "status")),
                              .body = json_incref(json_object_get(doc, "answer")),
                              .revision = o->revision};
        return 1;
    }
    if (replies_of(c->state, holder).len >= (size_t)2 * REPLY_USER_MAX || replies_all(c->state).len >= REPLY_ALL_MAX)
        return err_set(&c->err, EDQUOT,
                       "Idempotency-Key: too many keys are stored; wait, or send the request "
                       "without one");
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const struct object *x = *(const struct object *const *)a, *y = *(const struct object *const *)b;
    return (x->revision > y->revision) - (x->revision < y->revision);
}

/* Deletes the `n` oldest replies of a user, without guards: concurrent requests may delete the same replies, and none
 * of them may fail for it. */
static void delete_oldest(struct change *c, struct replies of, size_t n)
{
    const struct object **sorted = arena_dup(c->arena, of.at, of.len * sizeof *of.at);
    qsort(sorted, of.len, sizeof *sorted, by_age);
    for (size_t i = 0; i < n && i < of.len; i++) {
        size_t items = c->items.len;
        change_delete(c, KIND_REPLY, sorted[i]->id);
        if (c->items.len > items)
            c->items.at[items].guarded = false;
    }
}

/* Finding the oldest replies examines all of them. Therefore this deletes many at once, and only when the key's hash
 * begins with 0 (one request in sixteen). */
static void trim_replies(struct request *c, const char *id)
{
    char holder[OBJECT_KEY_MAX];
    struct replies mine = replies_of(c->state, key_owner(&c->caller, holder));
    size_t over = mine.len > REPLY_USER_MAX ? mine.len - REPLY_USER_MAX : 0;
    if (over && id[strlen(holder) + 1] == '0')
        delete_oldest(&c->change, mine, over < DELETES_MAX ? over : DELETES_MAX);
}

void reply_put(struct request *c)
{
    char id[OBJECT_KEY_MAX], holder[OBJECT_KEY_MAX], hash[2 * BODY_HASH_LEN + 1], when[TIMESTAMP_MAX];
    if (!c->input->idempotency_key || json_object_get(c->answer.body, "token"))
        /* a route that answers with a token rejects keys; if one did not, a repeated change is better than a stored
         * secret */
        return;
    int64_t expires_ns = c->now_ns + (int64_t)REPLY_AGE_S_MAX * SECOND;
    json_t *doc =
        json_pack("{s:s, s:s, s:i, s:s, s:I}", "key", c->input->idempotency_key, "body_hash", request_hash(c, hash),
                  "status", c->answer.status ? c->answer.status : 200, "expires", timestamp_text(expires_ns, when),
                  "born", (json_int_t)key_owner_created(c->state, key_owner(&c->caller, holder)));
    assert(doc);
    if (c->answer.body)
        (void)json_object_set_new(doc, "answer", json_deep_copy(c->answer.body));
    change_put(&c->change, KIND_REPLY, reply_id(c, id), doc);
    trim_replies(c, id);
}

/* ---- expiry ----------------------------------------------------------------------------------------------------- */

/* Collects the REPLY_SWEEP_MAX oldest replies of all users, oldest first, which is the order of expiry. */
static size_t oldest(struct replies all, const struct object *ret[static REPLY_SWEEP_MAX])
{
    size_t len = 0;
    for (size_t i = 0; i < all.len; i++) {
        const struct object *o = all.at[i];
        if (len == REPLY_SWEEP_MAX && ret[len - 1]->revision <= o->revision)
            continue;
        size_t at = len < REPLY_SWEEP_MAX ? len++ : len - 1;
        for (; at > 0 && ret[at - 1]->revision > o->revision; at--)
            ret[at] = ret[at - 1];
        ret[at] = o;
    }
    return len;
}

size_t reply_expire(struct change *c, int64_t now_ns)
{
    const struct object *old[REPLY_SWEEP_MAX];
    size_t len = oldest(replies_all(c->state), old), deleted = 0;
    for (size_t i = 0; i < len; i++) {
        CLEANUP(json) json_t *doc = object_doc(old[i]);
        char holder[OBJECT_KEY_MAX];
        (void)snprintf(holder, sizeof holder, "%.*s", (int)strcspn(old[i]->id, "/"), old[i]->id);
        if (is_alive(c->state, doc, holder, now_ns))
            continue;
        change_delete(c, KIND_REPLY, old[i]->id);
        deleted++;
    }
    return deleted;
}

size_t reply_delete_user(struct change *c, const char *user, size_t max)
{
    struct replies mine = replies_of(c->state, user);
    size_t n = mine.len < max ? mine.len : max;
    for (size_t i = 0; i < n; i++)
        change_delete(c, KIND_REPLY, mine.at[i]->id);
    return n;
}
