#include "control/node/port.h"

#include <errno.h>

#include "base/mem.h"
#include "control/api/permit_kit_test.h"
#include "wire/doc/api.h"

enum { INDEXES = (PORT_END - PORT_BASE) / PORT_BLOCK };

static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);

    world_open(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world_done(*state);
    mem_free(*state);
    return 0;
}

static void app_put(struct world *w, int number, int index)
{
    char id[32], text[160];

    (void)snprintf(id, sizeof id, "a%d.alice", number);
    (void)snprintf(text, sizeof text,
                   "{\"v\":1,\"id\":\"%s\",\"name\":\"a%d\",\"owner\":\"alice\",\"index\":%d,\"endpoints\":[\"x\"]}",
                   id, number, index);
    world_put(w, KIND_APP, id, text);
}

/* Takes `n` indexes in one transaction; *ret: the last one. */
static int take(struct world *w, size_t n, int32_t *ret)
{
    struct arena arena;
    struct change change;
    int rc = 0;

    arena_init(&arena);
    change_init(&change, w->state, &arena);
    for (size_t i = 0; i < n && rc == 0; i++) {
        char id[32];
        rc = port_index_take(&change, ret, NULL);
        (void)snprintf(id, sizeof id, "new%zu.alice", i);
        if (rc == 0)
            change_put(&change, KIND_APP, id, json_pack("{s:i}", "index", (int)*ret));
    }
    change_done(&change);
    arena_done(&arena);
    return rc;
}

static void lowest_free_index_is_taken(void **state)
{
    struct world *w = *state;
    int32_t index = -1;

    assert_int_equal(take(w, 1, &index), 0);
    assert_int_equal(index, 0);
    app_put(w, 1, 0);
    app_put(w, 2, 1);
    app_put(w, 3, 3);
    assert_int_equal(take(w, 1, &index), 0);
    assert_int_equal(index, 2);
    world_drop(w, KIND_APP, "a1.alice"); /* used again */
    assert_int_equal(take(w, 1, &index), 0);
    assert_int_equal(index, 0);
}

static void one_transaction_may_take_several(void **state)
{
    struct world *w = *state;
    int32_t index = -1;

    app_put(w, 1, 1);
    assert_int_equal(take(w, 3, &index), 0);
    assert_int_equal(index, 3); /* 0, 2, 3 */
}

/* Indexes that the transaction itself frees are free for it. */
static void index_freed_by_the_transaction_is_free(void **state)
{
    struct world *w = *state;
    struct arena arena;
    struct change change;
    int32_t index = -1;

    app_put(w, 1, 0);
    arena_init(&arena);
    change_init(&change, w->state, &arena);
    change_delete(&change, KIND_APP, "a1.alice");
    assert_int_equal(port_index_take(&change, &index, NULL), 0);
    assert_int_equal(index, 0);
    change_done(&change);
    arena_done(&arena);
}

static void running_instance_keeps_its_ports(void **state)
{
    struct world *w = *state;
    int32_t index = -1;

    world_put(w, KIND_SPEC, "old.alice/1",
              "{\"v\":1,\"id\":\"old.alice\",\"owner\":\"alice\",\"index\":0,"
              "\"endpoints\":[\"x\"]}");
    assert_int_equal(take(w, 1, &index), 0);
    assert_int_equal(index, 1);
}

/* Two concurrent transactions that take an index must not both succeed. */
static void concurrent_transactions_conflict(void **state)
{
    struct world *w = *state;
    struct arena arena;
    struct change change;
    int32_t index;
    bool guarded = false;

    arena_init(&arena);
    change_init(&change, w->state, &arena);
    assert_int_equal(port_index_take(&change, &index, NULL), 0);
    for (size_t i = 0; i < change.items.len; i++) {
        const struct change_item *item = &change.items.at[i];
        guarded |= item->kind == KIND_COUNTER && strcmp(item->id, "ports") == 0 && item->write && item->guarded;
    }
    assert_true(guarded);
    change_done(&change);
    arena_done(&arena);
}

static void exhausted_indexes_return_edquot(void **state)
{
    struct world *w = *state;
    int32_t index = -7;

    for (int i = 0; i < INDEXES; i++)
        app_put(w, i, i);
    assert_int_equal(take(w, 1, &index), -EDQUOT);
    assert_int_equal(index, -7);
    world_drop(w, KIND_APP, "a1422.alice"); /* the last block: 32752 to 32767 */
    assert_int_equal(take(w, 1, &index), 0);
    assert_int_equal(index, INDEXES - 1);
    assert_true(PORT_BASE + PORT_BLOCK * index + PORT_BLOCK <= PORT_END);
}

static void system_ports_are_unique_and_in_no_block(void **state)
{
    (void)state;
    const struct system_port *a, *b;

    for (size_t i = 0; (a = system_port_at(i)); i++) {
        for (size_t j = 0; j < i && (b = system_port_at(j)); j++)
            assert_false(a->port == b->port && a->protocol == b->protocol);
        assert_true(a->port < PORT_BASE || a->port >= PORT_END);
        assert_true(*a->name);
    }
    assert_int_equal(system_port_at(0)->port, 3980);
    assert_null(system_port_at(1000));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(lowest_free_index_is_taken),
        CASE(one_transaction_may_take_several),
        CASE(index_freed_by_the_transaction_is_free),
        CASE(running_instance_keeps_its_ports),
        CASE(concurrent_transactions_conflict),
        CASE(exhausted_indexes_return_edquot),
        CASE(system_ports_are_unique_and_in_no_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
