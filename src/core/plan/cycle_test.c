/* cycle_test.c - books and bounds of a plan: bounds are never too low and exact once refreshed; topologies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/plan/cycle.h"
#include "core/plan/plan.h"
#include "core/scene/scene_test.h"

enum { NODES = 600 };

static struct scene stage(void)
{
    struct scene s = scene_new();
    for (uint32_t i = 0; i < NODES; i++) {
        char id[16], zone[16];
        (void)snprintf(id, sizeof id, "n%03u", i);
        (void)snprintf(zone, sizeof zone, "z%u", i % 7);
        const struct berth_label room = {"room", zone};
        scene_put_node(&s, (struct berth_node){.id = id,
                                               .zone = i % 10 ? zone : NULL,
                                               .labels = &room,
                                               .labels_len = i % 2,
                                               HAS(1000 + 500 * (int64_t)(i % 3), 1000)});
    }
    (void)intern_put(&s.c->names, "zone");
    (void)intern_put(&s.c->names, "node");
    scene_plan(&s);
    return s;
}

/* Checks the bounds of every entry of every level. */
static void check_bounds(const struct cycle *c, bool exact)
{
    for (uint32_t level = 1; level <= c->l->levels; level++) {
        const struct layout_level *l = &c->l->level[level];
        for (uint32_t e = 0; e < l->len; e++) {
            uint32_t to = e + 1 < l->len ? l->first[e + 1] : c->len;
            int32_t key = INT32_MIN;
            int64_t cpu = INT64_MIN;
            for (uint32_t p = l->first[e]; p < to; p++) {
                key = c->key[p] > key ? c->key[p] : key;
                cpu = c->free[RESOURCE_CPU][p] > cpu ? c->free[RESOURCE_CPU][p] : cpu;
            }
            assert_true(c->bounds[level].max[RESOURCE_CPU][e] >= cpu);
            assert_true(c->bounds[level].key[e] >= key);
            if (exact || level == 1)
                assert_int_equal(c->bounds[level].key[e], key);
        }
    }
}

static void bounds_hold_after_random_changes(void **state)
{
    (void)state;
    struct scene s = stage();
    struct cycle *c = &s.p->c;
    struct berth_shape shape = {NEEDS(100, 70)};
    const struct class *k = cluster_class(s.c, class_put(s.c, &shape));
    uint64_t seed = scene_seed();
    uint32_t taken[NODES] = {0};
    check_bounds(c, true);
    for (int round = 0; round < 3000; round++) {
        uint32_t p = scene_random_below(&seed, round % 2 ? NODES : 90);
        bool give = taken[p] && scene_random_below(&seed, 3) == 0;
        if (!give && c->free[RESOURCE_CPU][p] < 100)
            continue;
        cycle_take(c, k, p, 0, false, give ? -1 : 1);
        taken[p] += give ? -1u : 1u;
        assert_int_equal(c->free[RESOURCE_CPU][p], c->l->capacity[RESOURCE_CPU][p] - 100 * (int64_t)taken[p]);
        if (scene_random_below(&seed, 50) == 0) {
            check_bounds(c, false);
            cycle_refresh(c);
            check_bounds(c, true);
        }
    }
    cycle_refresh(c);
    check_bounds(c, true);
    scene_cleanup(&s);
}

static void free_is_minimum_of_now_and_later(void **state)
{
    (void)state;
    struct scene s = stage();
    struct cycle *c = &s.p->c;
    struct berth_shape shape = {NEEDS(100, 70)};
    const struct class *k = cluster_class(s.c, class_put(s.c, &shape));
    int64_t whole = c->free[RESOURCE_CPU][5];
    cycle_take(c, k, 5, 0, true, 1); /* a reserved pod creates the second book */
    assert_int_equal(c->now[RESOURCE_CPU][5], whole);
    assert_int_equal(c->later[RESOURCE_CPU][5], whole - 100);
    assert_int_equal(cycle_column(c, RESOURCE_CPU, false)[5], whole - 100);
    assert_int_equal(cycle_column(c, RESOURCE_CPU, true)[5], whole - 100);
    cycle_take(c, k, 5, 0, false, 1);
    assert_int_equal(c->now[RESOURCE_CPU][5], whole - 100);
    assert_int_equal(c->later[RESOURCE_CPU][5], whole - 200);
    cycle_take(c, k, 5, 0, true, -1);
    cycle_take(c, k, 5, 0, false, -1);
    assert_int_equal(c->free[RESOURCE_CPU][5], whole);
    assert_null(cycle_column(c, c->resources, false)); /* no such resource */
    cycle_refresh(c);
    check_bounds(c, true);
    scene_cleanup(&s);
}

static void topologies_group_nodes(void **state)
{
    (void)state;
    struct scene s = stage();
    struct cycle *c = &s.p->c;
    const struct topology *zone = cycle_topology(c, intern_put(&s.c->names, "zone"));
    const struct topology *node = cycle_topology(c, intern_put(&s.c->names, "node"));
    const struct topology *room = cycle_topology(c, intern_put(&s.c->names, "room"));
    assert_int_equal(zone->domains, 7);
    assert_int_equal(node->domains, NODES);
    assert_null(node->domain);
    assert_int_equal(room->domains, 7);
    for (uint32_t p = 0; p < NODES; p++) {
        assert_true((zone->domain[p] == NONE) == (c->l->zone[p] == 0));
        assert_true((room->domain[p] == NONE) == (c->l->body[p]->labels.len == 0));
        for (uint32_t q = 0; q < p; q++)
            if (c->l->zone[p] && c->l->zone[q])
                assert_true((zone->domain[p] == zone->domain[q]) == (c->l->zone[p] == c->l->zone[q]));
    }
    assert_ptr_equal(cycle_topology(c, intern_put(&s.c->names, "zone")), zone);
    scene_cleanup(&s);
}

static void label_columns(void **state)
{
    (void)state;
    struct scene s = stage();
    sym room = intern_put(&s.c->names, "room");
    const sym *column = cycle_labels(&s.p->c, room);
    for (uint32_t p = 0; p < NODES; p++)
        assert_int_equal(column[p], labels_find(s.p->c.l->body[p]->labels, room));
    assert_ptr_equal(cycle_labels(&s.p->c, room), column);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold_after_random_changes),
        cmocka_unit_test(free_is_minimum_of_now_and_later),
        cmocka_unit_test(topologies_group_nodes),
        cmocka_unit_test(label_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
