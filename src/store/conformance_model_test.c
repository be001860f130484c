/* conformance_model_test.c - compares random operations on every kind of store with a simple model.
 *
 * The model is a list of all changes; every query walks the list. A failure prints its seed; BERTH_SEED=seed repeats
 * that run.
 */
#include "store/store_test.h"

#include "base/hash.h"
#include "base/vec.h"

enum { SEEDS = 4, STEPS = 400, KEYS = 9, WATCHES = 4, FLIGHT = 6 };

static const char *const names[KEYS] = {"a", "a/1", "a/2", "a/2/x", "b", "b/1", "b~", "c", "d/e"};
static const char *const prefixes[] = {"", "a", "a/", "a/2", "b", "b/", "c", "d/e", "none"};

struct model_change {
    uint64_t revision, created;
    size_t key;
    char value[24];
    bool gone;
};

struct model {
    VEC(struct model_change) changes;
    struct str log;
    uint64_t revision, compacted, records;
};

struct flight {
    struct outcome outcome;
    struct store_result want;
};

struct watching {
    struct store_watch *watch;
    const char *prefix;
    uint64_t from;
    struct str heard;
};

struct world {
    struct fixture *f;
    struct model model;
    struct flight flights[FLIGHT];
    size_t flights_len;
    struct watching watches[WATCHES];
    uint64_t seed, dice;
    unsigned step;
};

static uint64_t roll(struct world *w, uint64_t sides)
{
    w->dice = hash_u64(w->dice + 0x9e3779b97f4a7c15u);
    return w->dice % sides;
}

#define CHECK(w, ok, ...)                                                                                              \
    do {                                                                                                               \
        if (!(ok)) {                                                                                                   \
            print_error("%s, BERTH_SEED=%" PRIu64 ", step %u\n", (w)->f->kind->name, (w)->seed, (w)->step);            \
            fail_msg(__VA_ARGS__);                                                                                     \
        }                                                                                                              \
    } while (0)

static void check_text(struct world *w, const char *what, char *found, struct str *want)
{
    CHECK(w, strcmp(found, str_text(want)) == 0, "%s:\n  %s\ninstead of\n  %s", what, found, str_text(want));
    mem_free(found);
    str_done(want);
}

/* ---- model ------------------------------------------------------------------------------------------------------ */

/* Returns the last change of a key up to a revision; NULL: the key is absent. */
static const struct model_change *model_at(const struct model *m, size_t key, uint64_t revision)
{
    const struct model_change *last = NULL;
    for (size_t i = 0; i < m->changes.len && m->changes.at[i].revision <= revision; i++)
        if (m->changes.at[i].key == key)
            last = &m->changes.at[i];
    return last && !last->gone ? last : NULL;
}

static void model_add(struct str *to, const struct model_change *c)
{
    add_event(to, &(struct store_event){names[c->key], TEXT(c->value), c->gone, c->created, c->revision});
}

static void model_range(const struct model *m, const char *prefix, uint64_t revision, struct str *to)
{
    for (size_t key = 0; key < KEYS; key++) { /* the key names are in byte order */
        const struct model_change *c = model_at(m, key, revision);
        if (c && strncmp(names[key], prefix, strlen(prefix)) == 0)
            model_add(to, c);
    }
}

static void model_history(const struct model *m, const char *prefix, uint64_t from, uint64_t to_revision,
                          struct str *to)
{
    for (size_t i = 0; i < m->changes.len; i++) {
        const struct model_change *c = &m->changes.at[i];
        if (c->revision > from && c->revision <= to_revision && strncmp(names[c->key], prefix, strlen(prefix)) == 0)
            model_add(to, c);
    }
}

static struct store_result model_apply(struct model *m, const struct store_txn *txn, const size_t *op_keys,
                                       const size_t *guard_keys)
{
    struct store_result r = {.revision = m->revision};
    for (size_t i = 0; i < txn->guards_len; i++) {
        const struct model_change *c = model_at(m, guard_keys[i], m->revision);
        if ((c ? c->revision : 0) != txn->guards[i].revision) {
            r.rc = -EAGAIN;
            r.guard = i;
            return r;
        }
    }
    uint64_t next = m->revision + 1;
    bool changed = txn->record.len > 0;
    for (size_t i = 0; i < txn->ops_len; i++) {
        const struct model_change *c = model_at(m, op_keys[i], m->revision);
        if (txn->ops[i].gone && !c)
            continue;
        struct model_change made = {next, c ? c->created : next, op_keys[i], "", txn->ops[i].gone};
        if (!made.gone)
            memcpy(made.value, txn->ops[i].value.at, txn->ops[i].value.len);
        vec_push(&m->changes, made);
        changed = true;
    }
    if (changed)
        r.revision = m->revision = next;
    if (txn->record.len) {
        r.log_seq = ++m->records;
        (void)visit_record(&m->log, &(struct store_record){r.log_seq, next, 0, txn->record});
    }
    return r;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void submit_random(struct world *w)
{
    struct store_op ops[4];
    struct store_guard guards[3];
    size_t op_keys[4], guard_keys[3], ops_len = roll(w, 5), guards_len = roll(w, 4);
    char values[4][24], record[24];

    size_t key = roll(w, KEYS);
    for (size_t i = 0; i < ops_len; i++) {
        key = (key + 1 + roll(w, 2)) % KEYS; /* 4 steps of at most 2 never reach the same key */
        op_keys[i] = key;
        (void)snprintf(values[i], sizeof values[i], "%" PRIu64, roll(w, 1000000));
        if (roll(w, 8) == 0)
            values[i][0] = 0;
        ops[i] = roll(w, 3) == 0 ? DROP(names[key]) : PUT(names[key], values[i]);
    }
    for (size_t i = 0; i < guards_len; i++) {
        guard_keys[i] = roll(w, KEYS);
        const struct model_change *c = model_at(&w->model, guard_keys[i], w->model.revision);
        guards[i] = (struct store_guard){names[guard_keys[i]], c ? c->revision : 0};
        if (roll(w, 6) == 0)
            guards[i].revision = roll(w, w->model.revision + 2);
    }
    (void)snprintf(record, sizeof record, "r%" PRIu64, roll(w, 1000));
    struct store_txn txn = {guards, guards_len, ops, ops_len, roll(w, 3) == 0 ? TEXT(record) : (struct bytes){0}};
    struct flight *flight = &w->flights[w->flights_len++];
    flight->want = model_apply(&w->model, &txn, op_keys, guard_keys);
    submit(w->f->store, &txn, &flight->outcome);
}

static void deliver_all(struct world *w)
{
    store_drain(w->f->store);
    for (size_t i = 0; i < w->flights_len; i++) {
        const struct store_result *want = &w->flights[i].want, *found = &w->flights[i].outcome.result;
        CHECK(w, w->flights[i].outcome.calls == 1, "told %u times", w->flights[i].outcome.calls);
        CHECK(w,
              found->rc == want->rc && found->revision == want->revision && found->log_seq == want->log_seq &&
                  found->guard == want->guard,
              "result %d/%" PRIu64 "/%" PRIu64 " instead of %d/%" PRIu64 "/%" PRIu64, found->rc, found->revision,
              found->log_seq, want->rc, want->revision, want->log_seq);
    }
    w->flights_len = 0;
    CHECK(w, store_revision(w->f->store) == w->model.revision, "revision");
}

static void check_watches(struct world *w)
{
    for (size_t i = 0; i < WATCHES; i++) {
        struct watching *each = &w->watches[i];
        struct str want = {0};
        if (!each->watch)
            continue;
        model_history(&w->model, each->prefix, each->from, w->model.revision, &want);
        check_text(w, "a watch heard", mem_strdup(str_text(&each->heard)), &want);
    }
}

static void end_watch(struct watching *each)
{
    store_unwatch(each->watch);
    each->watch = NULL;
    str_clear(&each->heard);
}

static void change_watch(struct world *w)
{
    struct watching *each = &w->watches[roll(w, WATCHES)];
    end_watch(each);
    each->prefix = prefixes[roll(w, sizeof prefixes / sizeof *prefixes)];
    each->from = roll(w, w->model.revision + 2);
    int rc = store_watch(w->f->store, each->prefix, each->from, add_event, &each->heard, &each->watch, NULL);
    int want = each->from < w->model.compacted ? -ESTALE : 0;
    CHECK(w, rc == want, "watch from %" PRIu64 ": %d", each->from, rc);
}

/* Compares only delivered transactions, because a read may or may not include unfinished ones. */
static void read_random(struct world *w)
{
    struct store *s = w->f->store;
    struct model *m = &w->model;
    const char *prefix = prefixes[roll(w, sizeof prefixes / sizeof *prefixes)];
    uint64_t from = roll(w, m->revision + 1), to = from + roll(w, 8);
    struct str want = {0};

    deliver_all(w);
    if (from > 0 && from < m->compacted)
        str_addf(&want, "!%d", ESTALE);
    else
        model_range(m, prefix, from ? from : m->revision, &want);
    check_text(w, "range", range_text(s, prefix, from), &want);
    if (from < m->compacted)
        str_addf(&want, "!%d", ESTALE);
    else
        model_history(m, prefix, from, to ? to : m->revision, &want);
    check_text(w, "history", history_text(s, prefix, from, to), &want);
    str_add(&want, str_text(&m->log));
    check_text(w, "log", log_text(s, 0), &want);
    CHECK(w, store_compacted(s) == m->compacted, "compacted");
}

static void compact_random(struct world *w)
{
    deliver_all(w);
    uint64_t to = w->model.compacted + roll(w, w->model.revision - w->model.compacted + 1);
    CHECK(w, store_compact(w->f->store, to, NULL) == 0, "compact");
    w->model.compacted = to;
}

static void restart(struct world *w)
{
    deliver_all(w);
    check_watches(w);
    for (size_t i = 0; i < WATCHES; i++)
        end_watch(&w->watches[i]);
    w->f->store = w->f->kind->restart(w->f->store, w->f->dir);
    CHECK(w, store_revision(w->f->store) == w->model.revision, "revision after a restart");
}

static void step(struct world *w)
{
    uint64_t what = roll(w, 100);
    if (what < 60 && w->flights_len < FLIGHT)
        submit_random(w);
    else if (what < 70)
        deliver_all(w);
    else if (what < 80)
        change_watch(w);
    else if (what < 94)
        read_random(w);
    else if (what < 97)
        compact_random(w);
    else if (what < 98)
        restart(w);
    else
        (void)store_pump(w->f->store);
}

static void run(const struct store_kind *kind, uint64_t seed)
{
    void *state = (void *)kind;
    assert_int_equal(fixture_setup(&state), 0);
    struct world w = {.f = state, .seed = seed, .dice = seed};
    for (w.step = 0; w.step < STEPS; w.step++)
        step(&w);
    deliver_all(&w);
    check_watches(&w);
    restart(&w);
    read_random(&w);
    for (size_t i = 0; i < WATCHES; i++)
        str_done(&w.watches[i].heard);
    vec_done(&w.model.changes);
    str_done(&w.model.log);
    (void)fixture_teardown(&state);
}

static void stores_behave_as_the_model(void **state)
{
    const char *only = getenv("BERTH_SEED");
    int64_t seed = 0;
    for (uint64_t i = 1; i <= (only ? 1 : SEEDS); i++)
        run(*state, only && str_parse_i64(only, &seed) ? (uint64_t)seed : i);
}

int main(void)
{
    struct CMUnitTest all[KINDS_LEN];
    for (size_t i = 0; i < KINDS_LEN; i++)
        all[i] = (struct CMUnitTest){kinds[i].name, stores_behave_as_the_model, NULL, NULL, (void *)&kinds[i]};
    return cmocka_run_group_tests_name("model", all, NULL, NULL);
}
