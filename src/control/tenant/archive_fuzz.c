/* archive_fuzz.c - any archive is either rejected with a message and without effect, or gives documents that the state
 * can hold.
 */
#include "control/tenant/archive.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "control/api/crud.h"
#include "wire/text/document.h"

static void state_put(struct state *s, enum kind kind, const char *id, const json_t *doc)
{
    static uint64_t revision;
    char key[OBJECT_KEY_MAX];
    struct berth_err err = {0};
    char *text = json_dumps(doc, JSON_COMPACT);
    struct store_event event = {
        .key = object_key(kind, id, key), .value = {text, strlen(text)}
    };
    event.created = event.revision = ++revision;
    int rc = state_apply(s, &event, &err);
    assert(rc == 0);
    free(text);
}

/* Fills a cluster with objects whose names clash. */
static void neighbours(struct state *s)
{
    static const struct {
        enum kind kind;
        const char *id, *text;
    } rows[] = {
        {KIND_GROUP,  "lab",       "{\"v\":1,\"id\":\"lab\"}"                                                            },
        {KIND_USER,   "admin",     "{\"v\":1,\"id\":\"admin\",\"role\":\"admin\"}"                                       },
        {KIND_USER,   "alice",     "{\"v\":1,\"id\":\"alice\",\"role\":\"user\",\"group\":\"lab\"}"                      },
        {KIND_VOLUME, "photos",    "{\"v\":1,\"id\":\"photos\",\"owner\":\"alice\"}"                                     },
        {KIND_APP,    "web.alice", "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"generation\":1}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *doc = json_loads(rows[i].text, 0, NULL);
        state_put(s, rows[i].kind, rows[i].id, doc);
        json_decref(doc);
    }
}

static const char *no_query(const void *from, const char *name)
{
    (void)from;
    (void)name;
    return NULL;
}

static void import(struct state *s, const json_t *archive)
{
    static const struct request_input input = {.method = "POST", .path = "/v1/users/import", .query = no_query};
    static const struct route route = {.method = "POST", .path = "/v1/users/import"};
    struct request c = {
        .state = s,
        .input = &input,
        .route = &route,
        .caller = {.user = "admin", .group = "", .role = "admin", .node = "", .token = ""},
        .body = archive,
        .now_ns = 1
    };
    memcpy(c.caller.scope, role_find("admin")->scope, sizeof c.caller.scope);
    arena_init(&c.arena);
    change_init(&c.change, s, &c.arena);
    uint64_t before = state_hash(s);
    int rc = archive_import(&c, archive, NULL);
    assert(rc == -c.err.code && (rc == 0 || c.err.text[0]));
    assert(state_hash(s) == before);
    /* Ordered by kind, as a commit writes them. */
    for (unsigned k = 0; k < KINDS && rc == 0; k++)
        for (size_t i = 0; i < c.change.items.len; i++) {
            const struct change_item *item = &c.change.items.at[i];
            assert(!item->write || item->doc); /* nothing is deleted */
            if (item->write && item->kind == k) {
                const struct object *there = state_find(s, item->kind, item->id);
                assert(!there || item->kind == KIND_COUNTER); /* no object of others is overwritten */
                state_put(s, item->kind, item->id, item->doc);
            }
        }
    json_decref(c.answer.body);
    change_done(&c.change);
    arena_done(&c.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *archive = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (!archive || sodium_init() < 0) {
        json_decref(archive);
        return 0;
    }
    struct store *store = store_memory_new();
    struct state *s = NULL;
    struct berth_err err = {0};
    char sum[ARCHIVE_CHECKSUM_MAX];
    int rc = state_load(store, &s, &err);
    assert(rc == 0);
    neighbours(s);
    import(s, archive);
    if (json_is_object(archive)) { /* a fuzzer cannot guess the checksum */
        (void)json_object_set_new(archive, "checksum", json_string(archive_checksum(archive, sum)));
        import(s, archive);
        import(s, archive);
    }
    state_free(s);
    store_close(store);
    json_decref(archive);
    return 0;
}
