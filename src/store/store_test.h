/* store_test.h - shared code of the store tests: the kinds of store, short forms for writing and reading, temporary
 * directories.
 *
 * Contents of a store are compared as text: an entry is `key=value@created/revision`, a deletion
 * `-key@created/revision`. To run every conformance test with a new kind of store, add a row to `kinds`.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/store.h"

/* ---- directories ------------------------------------------------------------------------------------------------ */

static inline void folder_make(char path[static 256])
{
    const char *under = getenv("TMPDIR");
    (void)snprintf(path, 256, "%s/berth-store-XXXXXX", under ? under : "/tmp");
    assert_non_null(mkdtemp(path));
}

static inline int folder_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void folder_remove(const char *path)
{
    (void)nftw(path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

struct fixture;

struct store_kind {
    const char *name;
    struct store *(*open)(const char *dir);
    /* Returns the store after a restart of its process. */
    struct store *(*restart)(struct store *s, const char *dir);
    bool files; /* the store supports backup */
};

static inline struct store *memory_open(const char *dir)
{
    (void)dir;
    return store_memory_new();
}

static inline struct store *memory_restart(struct store *s, const char *dir)
{
    struct store *next = store_memory_crash(s);
    (void)dir;
    store_close(s);
    return next;
}

static inline struct store *sqlite_open_ok(const char *dir)
{
    struct berth_err err = {0};
    struct store *s = NULL;
    if (store_sqlite_open(dir, &(struct store_options){.create = true}, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static inline struct store *sqlite_restart(struct store *s, const char *dir)
{
    store_close(s);
    return sqlite_open_ok(dir);
}

static const struct store_kind kinds[] = {
    {"memory", memory_open,    memory_restart, false},
    {"sqlite", sqlite_open_ok, sqlite_restart, true },
};

enum { KINDS_LEN = sizeof kinds / sizeof *kinds };

struct fixture {
    const struct store_kind *kind;
    char dir[256];
    struct store *store;
};

/* *state: initially the kind, then the fixture. */
static inline int fixture_setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    f->kind = *state;
    folder_make(f->dir);
    f->store = f->kind->open(f->dir);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    folder_remove(f->dir);
    mem_free(f);
    return 0;
}

/* Runs each test with a new store of each kind. */
static inline int run_over_kinds(const char *group, const struct CMUnitTest *tests, size_t len)
{
    CLEANUP(mem) struct CMUnitTest *all = mem_zarray(KINDS_LEN * len, sizeof *all);
    CLEANUP(mem) char *names = mem_alloc(KINDS_LEN * len * 96);
    for (size_t i = 0; i < KINDS_LEN * len; i++) {
        const struct store_kind *kind = &kinds[i / len];
        (void)snprintf(names + 96 * i, 96, "%s: %s", kind->name, tests[i % len].name);
        all[i] = (struct CMUnitTest){names + 96 * i, tests[i % len].test_func, fixture_setup, fixture_teardown,
                                     (void *)kind};
    }
    return _cmocka_run_group_tests(group, all, KINDS_LEN * len, NULL, NULL);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

#define TEXT(text) ((struct bytes){(text), strlen(text)})
#define PUT(k, v) ((struct store_op){.key = (k), .value = TEXT(v)})
#define DROP(k) ((struct store_op){.key = (k), .gone = true})
#define OPS(...)                                                                                                       \
    .ops = (const struct store_op[]){__VA_ARGS__},                                                                     \
    .ops_len = sizeof((const struct store_op[]){__VA_ARGS__}) / sizeof(struct store_op)
#define GUARDS(...)                                                                                                    \
    .guards = (const struct store_guard[]){__VA_ARGS__},                                                               \
    .guards_len = sizeof((const struct store_guard[]){__VA_ARGS__}) / sizeof(struct store_guard)

struct outcome {
    unsigned calls;
    struct store_result result;
    char text[BERTH_ERR_TEXT_MAX];
};

static inline void outcome_note(void *ctx, const struct store_result *result)
{
    struct outcome *o = ctx;
    o->calls++;
    o->result = *result;
    o->result.text = NULL;
    (void)snprintf(o->text, sizeof o->text, "%s", result->text ? result->text : "");
}

static inline void submit(struct store *s, const struct store_txn *txn, struct outcome *o)
{
    struct berth_err err = {0};
    *o = (struct outcome){0};
    if (store_submit(s, txn, outcome_note, o, &err) < 0)
        fail_msg("%s", err.text);
}

/* Submits a transaction, and waits for it and all earlier ones. */
static inline struct store_result commit(struct store *s, const struct store_txn *txn)
{
    struct outcome o;
    submit(s, txn, &o);
    store_drain(s);
    assert_int_equal(o.calls, 1);
    return o.result;
}

#define COMMIT(s, ...) commit((s), &(struct store_txn){__VA_ARGS__})

/* Writes a value and returns the revision. */
static inline uint64_t put(struct store *s, const char *key, const char *value)
{
    struct store_result r = COMMIT(s, OPS(PUT(key, value)));
    assert_int_equal(r.rc, 0);
    return r.revision;
}

static inline uint64_t drop(struct store *s, const char *key)
{
    struct store_result r = COMMIT(s, OPS(DROP(key)));
    assert_int_equal(r.rc, 0);
    return r.revision;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static inline void add_bytes(struct str *to, struct bytes value)
{
    if (value.len <= 64)
        str_add_bytes(to, value.at, value.len);
    else
        str_addf(to, "[%zu]", value.len);
}

static inline void add_event(void *ctx, const struct store_event *e)
{
    struct str *to = ctx;
    str_addf(to, "%s%s%s%s", to->len ? " " : "", e->gone ? "-" : "", e->key, e->gone ? "" : "=");
    add_bytes(to, e->value);
    str_addf(to, "@%" PRIu64 "/%" PRIu64, e->created, e->revision);
}

static inline int visit_event(void *ctx, const struct store_event *e)
{
    add_event(ctx, e);
    return 0;
}

static inline int visit_entry(void *ctx, const struct store_entry *e)
{
    add_event(ctx, &(struct store_event){e->key, e->value, false, e->created, e->revision});
    return 0;
}

static inline int visit_record(void *ctx, const struct store_record *r)
{
    struct str *to = ctx;
    str_addf(to, "%s%" PRIu64 ":", to->len ? " " : "", r->seq);
    add_bytes(to, r->record);
    str_addf(to, "/%" PRIu64, r->revision);
    return 0;
}

static inline int visit_chain(void *ctx, const struct store_record *r)
{
    str_addf(ctx, " %016" PRIx64, r->chain);
    return 0;
}

/* Returns the text of a visit, or its error as `!code`; the caller frees it. */
static inline char *walked(struct str *found, int rc)
{
    if (rc < 0) {
        str_clear(found);
        str_addf(found, "!%d", -rc);
    }
    return str_take(found);
}

static inline char *range_text(struct store *s, const char *prefix, uint64_t revision)
{
    struct str found = {0};
    return walked(&found, store_range(s, prefix, revision, visit_entry, &found, NULL));
}

static inline char *history_text(struct store *s, const char *prefix, uint64_t from, uint64_t to)
{
    struct str found = {0};
    return walked(&found, store_history(s, prefix, from, to, visit_event, &found, NULL));
}

static inline char *log_text(struct store *s, uint64_t from)
{
    struct str found = {0};
    return walked(&found, store_log(s, from, visit_record, &found, NULL));
}

static inline char *chain_text(struct store *s)
{
    struct str found = {0};
    return walked(&found, store_log(s, 0, visit_chain, &found, NULL));
}

/* Compares a text and frees it. */
#define assert_text(made, want)                                                                                        \
    do {                                                                                                               \
        CLEANUP(mem) char *made_ = (made);                                                                             \
        assert_string_equal(made_, (want));                                                                            \
    } while (0)

#define assert_code(rc, code) assert_int_equal((rc), -(code))

/* Returns the whole readable content of a store as text; the caller frees it. */
static inline char *all_text(struct store *s)
{
    CLEANUP(mem) char *entries = range_text(s, "", 0), *log = log_text(s, 0), *chain = chain_text(s);
    CLEANUP(mem) char *past = history_text(s, "", store_compacted(s), 0);
    struct str all = {0};
    str_addf(&all, "%" PRIu64 "\n%s\n%s\n%s%s", store_revision(s), entries, past, log, chain);
    return str_take(&all);
}
