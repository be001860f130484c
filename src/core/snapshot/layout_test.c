/* layout_test.c - the order of nodes does not depend on the order of puts; kinds, segments and levels cover each node
 * once.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"
#include "core/snapshot/layout.h"

enum { NODES = 700 };

static uint32_t kind_of(uint32_t i)
{
    return i * 7 % 5;
}

static void put_numbered(struct scene *s, uint32_t i)
{
    static const char *const zones[] = {"z1", "z2", "z3"}, *const racks[] = {"r1", "r2"};
    static const struct berth_gpu gpus[] = {
        {"x", 1},
        {"x", 1}
    };
    uint32_t kind = kind_of(i);
    char id[16];
    (void)snprintf(id, sizeof id, "n%03u", i);
    scene_put_node(s, (struct berth_node){.id = id,
                                          .zone = zones[i % 3],
                                          .rack = racks[i / 3 % 2],
                                          .rank = i % 11 == 0,
                                          .gpus = gpus,
                                          .gpus_len = kind == 4 ? 2 : 0,
                                          HAS(1000 + 1000 * (int64_t)kind, 64)});
}

/* Writes the ids of the nodes in order, joined. */
static void order_of(struct scene *s, char *to)
{
    struct layout *l = layout_new(s->c);
    size_t len = 0;
    for (uint32_t p = 0; p < l->len; p++)
        len += (size_t)sprintf(to + len, "%s ", intern_text(&s->c->names, l->id[p]));
    layout_unref(l);
}

static void order_does_not_depend_on_put_order(void **state)
{
    (void)state;
    char first[NODES * 6 + 1], other[NODES * 6 + 1];
    uint64_t seed = scene_seed();
    struct scene s = scene_new();
    for (uint32_t i = 0; i < NODES; i++)
        put_numbered(&s, i);
    order_of(&s, first);
    scene_cleanup(&s);
    for (int round = 0; round < 4; round++) {
        uint32_t at[NODES];
        for (uint32_t i = 0; i < NODES; i++)
            at[i] = i;
        for (uint32_t i = NODES - 1; i > 0; i--) {
            uint32_t j = scene_random_below(&seed, i + 1), swap = at[i];
            at[i] = at[j];
            at[j] = swap;
        }
        s = scene_new();
        (void)cluster_resource_put(s.c, "first"); /* changes the numbers of resources, too */
        scene_node(&s, "gone", 5, 5);
        for (uint32_t i = 0; i < NODES; i++)
            put_numbered(&s, at[i]);
        scene_check(&s, berth_node_remove(s.c, "gone", &s.err));
        order_of(&s, other);
        assert_string_equal(first, other);
        scene_cleanup(&s);
    }
}

static void order_is_as_documented(void **state)
{
    (void)state;
    static const struct berth_gpu gpu = {"x", 1};
    char got[64];
    struct scene s = scene_new();
    scene_put_node(&s, (struct berth_node){.id = "late", .rank = 1, HAS(9, 9)});
    scene_put_node(&s, (struct berth_node){.id = "gpu", .gpus = &gpu, .gpus_len = 1, HAS(9, 9)});
    scene_put_node(&s, (struct berth_node){.id = "small", HAS(1, 9)});
    scene_put_node(&s, (struct berth_node){.id = "b", .zone = "z1", .rack = "r1", HAS(5, 5)});
    scene_put_node(&s, (struct berth_node){.id = "a", .zone = "z1", .rack = "r1", HAS(5, 5)});
    scene_put_node(&s, (struct berth_node){.id = "c", .zone = "z1", .rack = "r0", HAS(5, 5)});
    scene_put_node(&s, (struct berth_node){.id = "d", .zone = "z0", .rack = "r9", HAS(5, 5)});
    order_of(&s, got);
    assert_string_equal(got, "d c a b small gpu late ");
    scene_cleanup(&s);
}

static void every_node_is_in_one_segment(void **state)
{
    (void)state;
    struct scene s = scene_new();
    for (uint32_t i = 0; i < NODES; i++)
        put_numbered(&s, i);
    struct layout *l = layout_new(s.c);
    assert_int_equal(l->len, NODES);
    assert_int_equal(l->blocks, (NODES + BLOCK - 1) / BLOCK);
    assert_int_equal(l->segment[0], 0);
    assert_int_equal(l->segment[l->segments], NODES);
    assert_int_equal(l->block_segment[l->blocks], l->segments);
    uint32_t seen = 0;
    for (uint32_t e = 0; e < l->segments; e++) {
        uint64_t lanes = layout_lanes(l, e);
        struct span of = layout_below(l, 1, e);
        assert_true(of.from < of.to);
        assert_int_equal(of.from / BLOCK, (of.to - 1) / BLOCK); /* within one block */
        assert_int_equal(__builtin_popcountll(lanes), of.to - of.from);
        for (uint32_t p = of.from; p < of.to; p++, seen++) {
            assert_int_equal(layout_segment(l, p), e);
            assert_int_equal(l->kind[p], l->kind[of.from]);
            assert_true(lanes >> p % BLOCK & 1);
            assert_int_equal(l->position[l->slot[p]], p);
            assert_int_equal(l->capacity[RESOURCE_CPU][p], l->capacity[RESOURCE_CPU][of.from]);
            assert_int_equal(l->device[p + 1] - l->device[p], l->device[of.from + 1] - l->device[of.from]);
        }
    }
    assert_int_equal(seen, NODES);
    assert_true((l->len ? l->kind[l->len - 1] + 1 : 0) >= 5);
    layout_unref(l);
    scene_cleanup(&s);
}

static void levels_bound_lower_levels(void **state)
{
    (void)state;
    struct scene s = scene_new();
    for (uint32_t i = 0; i < NODES; i++)
        put_numbered(&s, i);
    struct layout *l = layout_new(s.c);
    assert_int_equal(l->level[1].len, l->segments);
    for (uint32_t n = 1; n <= l->levels; n++) {
        uint32_t next = 0;
        for (uint32_t e = 0; e < l->level[n].len; e++) {
            struct span below = layout_below(l, n, e);
            assert_int_equal(below.from, next);
            next = below.to;
            uint32_t from = l->level[n].first[e], to = e + 1 < l->level[n].len ? l->level[n].first[e + 1] : l->len;
            bool alike = true;
            for (uint32_t p = from; p < to; p++) {
                assert_true(l->inverse[RESOURCE_CPU][p] >= l->level[n].inverse_min[RESOURCE_CPU][e]);
                assert_true(l->inverse[RESOURCE_CPU][p] <= l->level[n].inverse_max[RESOURCE_CPU][e]);
                alike &= l->kind[p] == l->kind[from];
            }
            assert_true((l->level[n].kind[e] != NONE) == alike);
        }
        assert_int_equal(next, n == 1 ? l->len : l->level[n - 1].len);
    }
    assert_true(l->level[l->levels].len <= FANOUT || l->levels == LEVELS_MAX);
    layout_unref(l);
    scene_cleanup(&s);
}

static void shares_round_down(void **state)
{
    static const struct {
        int64_t amount, capacity;
        int32_t least, most;
    } rows[] = {
        {0,                0x10000,          0,      0      },
        {-5,               0x10000,          0,      0      },
        {1,                2,                0x7fff, 0x8000 },
        {1,                1,                0xffff, 0x10000},
        {BERTH_AMOUNT_MAX, BERTH_AMOUNT_MAX, 0xffe0, 0x10000}, /* the inverse has only 11 bits there */
        {1,                BERTH_AMOUNT_MAX, 0,      0      },
        {3000,             4000,             0xbfff, 0xc000 },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        int32_t share = share_of(rows[i].amount, UINT64_MAX / (uint64_t)rows[i].capacity);
        if (share < rows[i].least || share > rows[i].most)
            fail_msg("row %zu: %d", i, share);
    }
}

static void empty_layout(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct layout *l = layout_new(s.c), *again = layout_ref(l);
    assert_int_equal(l->len + l->blocks + l->segments + (l->len ? l->kind[l->len - 1] + 1 : 0), 0);
    layout_unref(l);
    assert_int_equal(again->len, 0);
    layout_unref(again);
    layout_unref(NULL);
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_does_not_depend_on_put_order),
        cmocka_unit_test(order_is_as_documented),
        cmocka_unit_test(every_node_is_in_one_segment),
        cmocka_unit_test(levels_bound_lower_levels),
        cmocka_unit_test(shares_round_down),
        cmocka_unit_test(empty_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
