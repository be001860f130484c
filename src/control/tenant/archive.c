#include "control/tenant/archive.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "control/explain/status.h"
#include "control/tenant/user.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

enum { HASH_LEN = 32 };

const struct archive_part archive_parts[] = {
    {"volumes", KIND_VOLUME},
    {"apps",    KIND_APP   },
    {"vms",     KIND_VM    },
    {"jobs",    KIND_JOB   },
};
const size_t archive_parts_len = sizeof archive_parts / sizeof *archive_parts;

/* ---- checksum --------------------------------------------------------------------------------------------------- */

static int hash_some(const char *text, size_t len, void *hash)
{
    return crypto_generichash_update(hash, (const unsigned char *)text, len);
}

const char *archive_checksum(const json_t *archive, char buf[static ARCHIVE_CHECKSUM_MAX])
{
    unsigned char hash[HASH_LEN];
    char hex[2 * HASH_LEN + 1];
    crypto_generichash_state h;
    CLEANUP(json) json_t *content = json_copy((json_t *)archive);
    (void)json_object_del(content, "checksum");
    (void)crypto_generichash_init(&h, NULL, 0, sizeof hash);
    (void)json_dump_callback(content, hash_some, &h, JSON_COMPACT | JSON_SORT_KEYS);
    (void)crypto_generichash_final(&h, hash, sizeof hash);
    (void)snprintf(buf, ARCHIVE_CHECKSUM_MAX, "blake2b:%s", sodium_bin2hex(hex, sizeof hex, hash, sizeof hash));
    return buf;
}

/* ---- export ----------------------------------------------------------------------------------------------------- */

/* Returns what the user requested, without members that follow from its place in the archive. */
static json_t *part_doc(const struct object *o)
{
    json_t *doc = object_doc(o);
    doc_strip(doc);
    (void)json_object_del(doc, "owner");
    (void)json_object_del(doc, "group");
    return doc;
}

/* Ended jobs are left out: an import would run them again. */
static bool is_finished(const struct state *s, const struct object *o, int64_t now_ns)
{
    if (o->kind != KIND_JOB)
        return false;
    CLEANUP(json) json_t *doc = object_doc(o);
    return json_is_true(json_object_get(doc, "cancelled")) || json_is_true(json_object_get(doc, "failed")) ||
           strcmp(work_state_word(s, o, now_ns), "ended") == 0;
}

int archive_make(const struct state *s, const struct object *user, int64_t now_ns, json_t **ret, struct berth_err *err)
{
    char when[TIMESTAMP_MAX], sum[ARCHIVE_CHECKSUM_MAX];
    size_t objects = 0;
    json_t *who = object_doc(user);
    doc_strip(who);
    CLEANUP(json)
    json_t *archive = json_pack("{s:i, s:s, s:o}", "berth_archive", ARCHIVE_VERSION, "exported",
                                timestamp_text(now_ns, when), "user", who);
    for (size_t p = 0; p < archive_parts_len; p++) {
        size_t len;
        const struct object *const *list = state_list(s, archive_parts[p].kind, &len);
        json_t *items = json_array();
        (void)json_object_set_new(archive, archive_parts[p].name, items);
        for (size_t i = 0; i < len; i++) {
            if (strcmp(list[i]->owner, user->id) != 0 || is_finished(s, list[i], now_ns))
                continue;
            (void)json_array_append_new(items, part_doc(list[i]));
            if (++objects > ARCHIVE_OBJECTS_MAX)
                return err_set(err, E2BIG, "user %s has more than %d objects; delete jobs that are not needed",
                               user->id, ARCHIVE_OBJECTS_MAX);
        }
    }
    (void)json_object_set_new(archive, "settings", json_object());
    (void)json_object_set_new(archive, "data", json_array());
    size_t bytes = json_dumpb(archive, NULL, 0, JSON_COMPACT);
    if (bytes > ARCHIVE_BYTES_MAX - ARCHIVE_CHECKSUM_MAX - 32)
        return err_set(err, E2BIG, "the archive of user %s would have %zu bytes, more than %d", user->id, bytes,
                       ARCHIVE_BYTES_MAX);
    (void)json_object_set_new(archive, "checksum", json_string(archive_checksum(archive, sum)));
    *ret = take_ptr(&archive);
    return 0;
}

/* Allowed for the user itself, and for callers that manage the user and its workloads, because install configuration is
 * included. */
int user_export(struct request *c)
{
    const struct object *o = request_object(c, KIND_USER, c->args[0], PERMIT_READ);
    if (!o)
        return -c->err.code;
    bool self = strcmp(o->id, c->caller.user) == 0;
    if (!permit(&c->caller, PERMIT_MANAGE, o->id, o->group) ||
        !(self || permit(&c->caller, PERMIT_USERS, o->id, o->group)))
        return err_set(&c->err, EACCES, "role %s may not export user %s", c->caller.role, o->id);
    return archive_make(c->state, o, c->now_ns, &c->answer.body, &c->err);
}

/* ---- check ------------------------------------------------------------------------------------------------------ */

static const char *known_key(const void *ctx, size_t i)
{
    static const char *const others[] = {"berth_archive", "exported", "user", "settings", "data", "checksum"};
    (void)ctx;
    if (i < archive_parts_len)
        return archive_parts[i].name;
    i -= archive_parts_len;
    return i < sizeof others / sizeof *others ? others[i] : NULL;
}

static int keys_check(const json_t *archive, struct berth_err *err)
{
    const char *name, *known = NULL;
    json_t *value;
    json_object_foreach((json_t *)archive, name, value)
    {
        char quoted[QUOTE_MAX];
        size_t i = 0;
        while ((known = known_key(NULL, i)) && strcmp(known, name) != 0)
            i++;
        if (!known)
            return err_set(err, EINVAL, "unknown key %s; see docs/user-archive.md", quote(name, quoted));
    }
    return 0;
}

static int parts_check(const json_t *archive, struct berth_err *err)
{
    size_t objects = 0;
    for (size_t p = 0; p < archive_parts_len; p++) {
        const json_t *items = json_object_get(archive, archive_parts[p].name);
        if (items && !json_is_array(items))
            return err_set(err, EINVAL, "%s: expected a list", archive_parts[p].name);
        objects += json_array_size(items);
    }
    if (objects > ARCHIVE_OBJECTS_MAX)
        return err_set(err, E2BIG, "the archive has %zu objects, more than %d", objects, ARCHIVE_OBJECTS_MAX);
    if (!json_is_object(json_object_get(archive, "user")))
        return err_set(err, EINVAL, "user: expected an object");
    const json_t *settings = json_object_get(archive, "settings"), *data = json_object_get(archive, "data");
    if (settings && (!json_is_object(settings) || json_object_size(settings)))
        return err_set(err, EINVAL, "settings: user settings are not supported by this version; expected {}");
    if (data && (!json_is_array(data) || json_array_size(data)))
        return err_set(err, EINVAL, "data: importing data is not supported by this version; expected []");
    return 0;
}

int archive_check(const json_t *archive, struct berth_err *err)
{
    char sum[ARCHIVE_CHECKSUM_MAX];
    const json_t *version = json_object_get(archive, "berth_archive");
    const char *given = json_string_value(json_object_get(archive, "checksum"));
    if (!json_is_object(archive) || !json_is_integer(version))
        return err_set(err, EINVAL, "berth_archive: missing; this is not an archive of a user");
    if (json_integer_value(version) != ARCHIVE_VERSION)
        return err_set(err, EINVAL, "berth_archive: version %" JSON_INTEGER_FORMAT " is not supported; expected %d",
                       json_integer_value(version), ARCHIVE_VERSION);
    int rc = keys_check(archive, err);
    if (rc == 0)
        rc = parts_check(archive, err);
    if (rc < 0)
        return rc;
    if (!given || strcmp(given, archive_checksum(archive, sum)) != 0)
        return err_set(err, EINVAL, "checksum: %s; the archive was changed or damaged after its export",
                       given ? "does not match" : "missing");
    return 0;
}
