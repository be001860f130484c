/* cluster_test.c - runs a few clusters from seeds, compares two runs of one seed, and tests the invariant checks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/mem.h"
#include "base/str.h"
#include "journal/record.h"
#include "sim/cluster/cluster.h"

#define HOURS 0.2

static void no_invariant_breaks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct sim_options options = {.seed = seed, .hours = HOURS};
        struct sim_result result = {0};
        struct berth_err err = {0};
        if (sim_cluster_run(&options, &result, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(result.invariant, 0);
        assert_true(result.events > 1000 && result.checks > 100 && result.refused > 0);
        assert_true(result.plans > 0 && result.replayed > 0 && result.placements > 0 && result.watched > 0);
    }
}

/* Many users, many faults, few nodes: more conflicts than in any real cluster. */
static void no_invariant_breaks_under_high_load(void **state)
{
    (void)state;
    struct sim_options options = {
        .seed = 7, .hours = HOURS, .nodes = 4, .users = 12, .rates = {.people = 300, .faults = 400}
    };
    struct sim_result result = {0};
    struct berth_err err = {0};
    if (sim_cluster_run(&options, &result, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(result.crashes > 1 && result.store_failures > 0 && result.double_agents > 0);
}

/* Enables one fault at a time, so that each one happens. */
static void every_fault_happens(void **state)
{
    (void)state;
    const struct sim_fault *fault;
    for (size_t i = 0; (fault = sim_fault_at(i)); i++) {
        struct sim_options options = {
            .seed = 11, .hours = HOURS, .nodes = 4, .users = 3, .rates = {.faults = 300}, .faults = fault->name};
        struct sim_result result = {0};
        struct berth_err err = {0};
        if (sim_cluster_run(&options, &result, &err) < 0)
            fail_msg("%s", err.text);
        for (size_t k = 0; k < SIM_FAULTS; k++)
            assert_true(k == i || result.faults[k] == 0);
        assert_true(result.faults[i] > 0 || i >= FAULT_LOST); /* faults of messages are not counted */
    }
}

static void faults_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        int rc;
        uint64_t bits;
    } rows[] = {
        {"none",              0,       0                                                                },
        {"all",               0,       (UINT64_C(1) << SIM_FAULTS) - 1                                  },
        {"clock",             0,       UINT64_C(1) << FAULT_CLOCK                                       },
        {"clock,agent-kill",  0,       UINT64_C(1) << FAULT_CLOCK | UINT64_C(1) << FAULT_AGENT_KILL     },
        {"-clock",            0,       ((UINT64_C(1) << SIM_FAULTS) - 1) & ~(UINT64_C(1) << FAULT_CLOCK)},
        {"all,-clock,clock",  0,       (UINT64_C(1) << SIM_FAULTS) - 1                                  },
        {"clocks",            -EINVAL, 0                                                                },
        {"clock,,agent-kill", -EINVAL, 0                                                                },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t bits = 0;
        struct berth_err err = {0};
        assert_int_equal(sim_faults_parse(rows[i].list, &bits, &err), rows[i].rc);
        assert_int_equal(bits, rows[i].bits);
    }
}

static void same_seed_gives_same_run(void **state)
{
    (void)state;
    struct sim_options options = {.seed = 42, .hours = HOURS};
    struct sim_result first = {0}, second = {0}, other = {0};
    assert_int_equal(sim_cluster_run(&options, &first, NULL), 0);
    assert_int_equal(sim_cluster_run(&options, &second, NULL), 0);
    assert_memory_equal(&first, &second, sizeof first);
    options.seed = 43;
    assert_int_equal(sim_cluster_run(&options, &other, NULL), 0);
    assert_int_not_equal(first.hash, other.hash);
}

/* ---- forgery: writes a document without the daemon, with a valid record ----------------------------------------- */

enum forgery_kind {
    ONCE,
    TWICE,   /* deleted, then written again */
    COPIES,  /* written many times at once, with new numbers */
    UNTOLD,  /* the record lists no change */
    DECIDED, /* as if by a plan based on the current state */
};

struct forgery {
    const char *label;
    const char *prefix;        /* prefix of the documents to try */
    bool (*edit)(json_t *doc); /* false: try the next document. NULL: delete the document */
    const char *who, *verb;    /* for the record */
    enum forgery_kind kind;
    int invariant;
};

struct forger {
    const struct forgery *row;
    bool done;
    char *key;
    json_t *doc;
};

enum { BEGIN_AT = 300, COPIES_LEN = 200, COPY_ID = 900000 };

static bool state_is(const json_t *doc, const char *state)
{
    const char *has = json_string_value(json_object_get(doc, "state"));
    return has && strcmp(has, state) == 0;
}

static bool steps_back(json_t *doc)
{
    return state_is(doc, "running") && json_object_set_new(doc, "state", json_string("assigned")) == 0;
}

static bool runs_again(json_t *doc)
{
    return state_is(doc, "ended") && json_object_set_new(doc, "state", json_string("running")) == 0;
}

static bool moves(json_t *doc)
{
    const char *node = json_string_value(json_object_get(doc, "node"));
    return state_is(doc, "running") &&
           json_object_set_new(doc, "node", json_string(strcmp(node, "n1") == 0 ? "n2" : "n1")) == 0;
}

static bool is_noted(json_t *doc)
{
    return state_is(doc, "running") && json_object_set_new(doc, "error", json_string("says somebody else")) == 0;
}

static bool forgets_its_agent(json_t *doc)
{
    return json_integer_value(json_object_get(doc, "epoch")) > 1 &&
           json_object_set_new(doc, "epoch", json_integer(1)) == 0;
}

static bool gets_another_owner(json_t *doc)
{
    return json_object_set_new(doc, "owner", json_string("somebody")) == 0;
}

static bool gives_way(json_t *doc)
{
    const char *workload = json_string_value(json_object_get(doc, "workload"));
    return state_is(doc, "running") && workload && !strchr(workload, '.') &&
           json_object_set_new(doc, "state", json_string("stopping")) == 0;
}

static bool as_it_is(json_t *doc)
{
    return doc != NULL;
}

static bool fills_the_node(json_t *doc)
{
    return state_is(doc, "running") && json_object_set_new(doc, "state", json_string("assigned")) == 0 &&
           json_object_set(doc, "replaces", json_object_get(doc, "id")) == 0;
}

static const struct forgery forgeries[] = {
    {"an instance steps back",              "instances/", steps_back,         "berth",       "unit", ONCE,    13},
    {"a task that was done runs again",     "instances/", runs_again,         "berth",       "unit", ONCE,    13},
    {"an instance changes its node",        "instances/", moves,              "berth",       "unit", ONCE,    13},
    {"an agent writes of another's",        "instances/", is_noted,           "node:nobody", "x",    ONCE,    22},
    {"a plan forgets what runs",            "instances/", NULL,               "berth",       "unit", ONCE,    5 },
    {"a node goes back to an older agent",  "nodes/",     forgets_its_agent,  "berth",       "x",    ONCE,    14},
    {"an app gets another owner",           "apps/",      gets_another_owner, "admin",       "x",    ONCE,    21},
    {"a job comes back under its number",   "jobs/",      as_it_is,           "admin",       "x",    TWICE,   8 },
    {"somebody places what no plan placed", "instances/", fills_the_node,     "mallory",     "x",    COPIES,  12},
    {"a plan fills a node beyond its end",  "instances/", fills_the_node,     "berth",       "unit", COPIES,  1 },
    {"a task is stopped for nobody",        "instances/", gives_way,          "berth",       "unit", DECIDED, 19},
    {"a record leaves something out",       "apps/",      as_it_is,           "admin",       "x",    UNTOLD,  26},
};

/* Commits one transaction: the document once, or many copies. */
static void commit(struct store *store, const struct forgery *row, const char *key, json_t *doc)
{
    static const char decision[] = "{\"cycle\":{\"n\":1,\"revision\":1000000000,\"now\":0,\"plan\":\"0\"}}";
    CLEANUP(str) struct str record = {0};
    struct journal_head head = {.kind = row->verb, .at_ns = 1, .who = row->who};
    struct store_op ops[COPIES_LEN];
    char keys[COPIES_LEN][32], *texts[COPIES_LEN];
    size_t len = row->kind == COPIES ? COPIES_LEN : 1;
    journal_begin(&record, &head);
    for (size_t i = 0; i < len; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "instances/%zu", COPY_ID + i);
        if (row->kind == COPIES)
            (void)json_object_set_new(doc, "id", json_integer((json_int_t)COPY_ID + (json_int_t)i));
        texts[i] = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
        ops[i] = (struct store_op){
            .key = row->kind == COPIES ? keys[i] : key, .value = {texts[i], doc ? strlen(texts[i]) : 0},
                       .gone = !doc
        };
        if (row->kind != UNTOLD)
            journal_change(&record, ops[i].key, texts[i], ops[i].value.len, ops[i].gone);
    }
    journal_end(&record, row->kind == DECIDED ? decision : NULL, row->kind == DECIDED ? strlen(decision) : 0);
    struct store_txn txn = {
        .ops = ops, .ops_len = len, .record = {record.at, record.len}
    };
    assert_int_equal(store_submit(store, &txn, NULL, NULL, NULL), 0);
    (void)store_pump(store);
    for (size_t i = 0; i < len; i++)
        free(texts[i]);
}

static int try_document(void *ctx, const struct store_entry *entry)
{
    struct forger *f = ctx;
    json_t *doc = json_loadb(entry->value.at, entry->value.len, 0, NULL);
    if (f->row->edit ? !f->row->edit(doc) : !state_is(doc, "running")) {
        json_decref(doc);
        return 0;
    }
    f->key = mem_strdup(entry->key);
    f->doc = doc;
    return 1;
}

static void commit_forgery(void *ctx, struct store *store, uint64_t event)
{
    struct forger *f = ctx;
    if (f->done || event < BEGIN_AT || store_range(store, f->row->prefix, 0, try_document, f, NULL) != 1)
        return;
    f->done = true;
    if (f->row->kind == TWICE)
        commit(store, f->row, f->key, NULL);
    commit(store, f->row, f->key, f->row->edit ? f->doc : NULL);
    mem_free(f->key);
    json_decref(f->doc);
}

static void forged_changes_are_detected(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        struct forger forger = {.row = &forgeries[i]};
        struct sim_sabotage sabotage = {.ctx = &forger, .after_event = commit_forgery};
        struct sim_options options = {.seed = 2, .hours = 1, .rates = {.people = 300}, .sabotage = &sabotage};
        struct sim_result result = {0};
        struct berth_err err = {0};
        int rc = sim_cluster_run(&options, &result, &err);
        if (!forger.done)
            fail_msg("%s: nothing to forge was found", forgeries[i].label);
        if (rc != -EBADMSG || result.invariant != forgeries[i].invariant)
            fail_msg("%s: expected a breach of %d, not of %d: %s", forgeries[i].label, forgeries[i].invariant,
                     result.invariant, err.text);
        assert_non_null(strstr(err.text, "seed 2"));
    }
}

/* ---- other sabotage --------------------------------------------------------------------------------------------- */

static void write_past(void *ctx, struct store *store, uint64_t event)
{
    static const char doc[] = "{\"v\":1,\"id\":\"ghosts\"}";
    struct store_op op = {
        .key = "groups/ghosts", .value = {doc, sizeof doc - 1}
    };
    struct store_txn txn = {.ops = &op, .ops_len = 1};
    (void)ctx;
    if (event == BEGIN_AT) {
        (void)store_submit(store, &txn, NULL, NULL, NULL);
        (void)store_pump(store);
    }
}

static void change_without_a_record_is_detected(void **state)
{
    (void)state;
    struct sim_sabotage sabotage = {.after_event = write_past};
    struct sim_options options = {.seed = 2, .hours = HOURS, .sabotage = &sabotage};
    struct sim_result result = {0};
    assert_int_equal(sim_cluster_run(&options, &result, NULL), -EBADMSG);
    assert_int_equal(result.invariant, 26);
}

static bool lose_a_line(void *ctx, const char *line, size_t len)
{
    unsigned *told = ctx;
    (void)line;
    (void)len;
    return ++*told != 20;
}

static void lost_watch_event_is_detected(void **state)
{
    (void)state;
    unsigned told = 0;
    struct sim_sabotage sabotage = {.ctx = &told, .watched = lose_a_line};
    struct sim_options options = {.seed = 1, .hours = HOURS, .sabotage = &sabotage};
    struct sim_result result = {0};
    assert_int_equal(sim_cluster_run(&options, &result, NULL), -EBADMSG);
    assert_int_equal(result.invariant, 28);
}

/* A crash loses the last acknowledged data, because the disk had wrongly confirmed the write. */
struct lying_disk {
    struct store *older;
};

static void remember(void *ctx, struct store *store, uint64_t event)
{
    struct lying_disk *lying_disk = ctx;
    if (event % 50)
        return;
    store_close(lying_disk->older);
    lying_disk->older = store_memory_crash(store);
}

static struct store *lose_the_last(void *ctx, struct store *store)
{
    struct lying_disk *lying_disk = ctx;
    if (!lying_disk->older || store_revision(lying_disk->older) == store_revision(store))
        return store;
    store_close(store);
    return take_ptr(&lying_disk->older);
}

static void lost_acknowledged_data_is_detected(void **state)
{
    (void)state;
    struct lying_disk lying_disk = {0};
    struct sim_sabotage sabotage = {.ctx = &lying_disk, .after_event = remember, .crashed = lose_the_last};
    struct sim_options options = {.seed = 3, .hours = 2, .rates = {.faults = 400}, .sabotage = &sabotage};
    struct sim_result result = {0};
    assert_int_equal(sim_cluster_run(&options, &result, NULL), -EBADMSG);
    assert_int_equal(result.invariant, 7);
    store_close(lying_disk.older);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_invariant_breaks),
        cmocka_unit_test(no_invariant_breaks_under_high_load),
        cmocka_unit_test(every_fault_happens),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(same_seed_gives_same_run),
        cmocka_unit_test(forged_changes_are_detected),
        cmocka_unit_test(change_without_a_record_is_detected),
        cmocka_unit_test(lost_watch_event_is_detected),
        cmocka_unit_test(lost_acknowledged_data_is_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
