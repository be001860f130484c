/* shape_test.c - equal descriptions share a class and different ones do not; semantics of terms and expressions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/scene/scene_test.h"

/* ---- classes ---------------------------------------------------------------------------------------------------- */

#define ONE_OF(of, ...)                                                                                                \
    LIST(exprs, struct berth_expr,                                                                                     \
         {of, BERTH_IN, (const char *const[]){__VA_ARGS__},                                                            \
          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)})

static uint32_t class_of(struct scene *s, struct berth_shape shape)
{
    return class_put(s->c, &shape).v;
}

/* Each shape here differs from every other one in one field. */
static size_t distinct(struct scene *s, uint32_t *to)
{
    const struct berth_term web = {ONE_OF("app", "web")}, db = {ONE_OF("app", "db")},
                            like = {ONE_OF("app", "web"), .weight = 5};
    const struct berth_term both = {ONE_OF("app", "web", "db")};
    const struct berth_shape shapes[] = {
        {0                                  },
        {NEEDS(1,                             1)},
        {NEEDS(1,                                   2)},
        {NEEDS(2,1)},
        {.gpu = {.count = 1}                            },
        {.gpu = {.count = 2}                                  },
        {.gpu = {.count = 1, .milli = 500}      },
        {.gpu = {.count = 1, .memory_bytes = 1}},
        {.gpu = {.count = 1, NAMES(models, "a")}                            },
        {LIST(limits,                                   struct berth_limit, {"cpu", BERTH_ABSOLUTE, 1, 2})},
        {LIST(limits,       struct berth_limit, {"cpu", BERTH_ABSOLUTE, 1, 3})},
        {LIST(limits,struct berth_limit, {"cpu", BERTH_WEIGHTED, 1, 2})},
        {.node = "a"                                  },
        {.arch = "a"          },
        {.runtime = "a"                                  },
        {.near_zone = "a"                                  },
        {.profile = "a"                                  },
        {NAMES(domains, "a")},
        {NAMES(images,                         "a")},
        {NAMES(volumes, "disk")},
        {.require = &web, .require_len = 1},
        {.require = &db, .require_len = 1},
        {.require = &both,                               .require_len = 1},
        {.prefer = &like,                        .prefer_len = 1},
        {LIST(tolerations,                                   struct berth_toleration, {"a", "", true, BERTH_EFFECT_ANY})},
        {LIST(tolerations,                            struct berth_toleration, {"a", "", true, BERTH_NO_EXECUTE})},
        {LIST(ports,                     struct berth_port, {BERTH_TCP, 80, 1})},
        {LIST(ports,                                   struct berth_port, {BERTH_UDP, 80, 1})},
        {LIST(ports,                   struct berth_port, {BERTH_TCP, 80, 2})},
        {LIST(spread,                    struct berth_spread, {"zone", web, 1, false})},
        {LIST(spread,                                   struct berth_spread, {"zone", web, 2, false})},
        {LIST(spread,struct berth_spread, {"zone", web, 1, true})},
        {LIST(spread,                    struct berth_spread, {"rack", web, 1, false})},
        {LIST(near, struct berth_affinity, {"zone", web, false})},
        {LIST(near,                    struct berth_affinity, {"zone", web, true})},
        {LIST(near, struct berth_affinity, {"zone", like, false})},
        {.max_per_node = 1                         },
    };
    for (size_t i = 0; i < ROWS(shapes); i++)
        to[i] = class_of(s, shapes[i]);
    return ROWS(shapes);
}

static void unequal_shapes_are_unequal_classes(void **state)
{
    (void)state;
    struct scene s = scene_new();
    uint32_t once[64], again[64];
    struct berth_volume v = {.id = "disk"};
    scene_check(&s, berth_volume_put(s.c, &v, &s.err));
    size_t len = distinct(&s, once);
    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; j < i; j++)
            if (once[i] == once[j])
                fail_msg("shapes %zu and %zu share a class", i, j);
    assert_int_equal(distinct(&s, again), len);
    for (size_t i = 0; i < len; i++)
        assert_int_equal(once[i], again[i]);
    scene_cleanup(&s);
}

static void equal_descriptions_share_a_class(void **state)
{
    (void)state;
    struct scene s = scene_new();
    /* Strings are compared by content, not by address. */
    char text[] = "amd64";
    assert_int_equal(class_of(&s, (struct berth_shape){.arch = text}),
                     class_of(&s, (struct berth_shape){.arch = "amd64"}));
    assert_int_equal(class_of(&s, (struct berth_shape){.arch = ""}), class_of(&s, (struct berth_shape){0}));
    assert_int_equal(class_of(&s, (struct berth_shape){LIST(requests, struct berth_amount, {"cpu", 0})}),
                     class_of(&s, (struct berth_shape){0}));
    assert_int_equal(class_of(&s, (struct berth_shape){LIST(requests, struct berth_amount, {"pods", 1})}),
                     class_of(&s, (struct berth_shape){0}));
    assert_int_equal(class_of(&s,
                              (struct berth_shape){
                                  .gpu = {.count = 1}
    }),
                     class_of(&s, (struct berth_shape){.gpu = {.count = 1, .milli = BERTH_GPU_MILLI}}));
    assert_int_equal(
        class_of(&s, (struct berth_shape){LIST(ports, struct berth_port, {BERTH_TCP, 80, 2})}),
        class_of(&s, (struct berth_shape){LIST(ports, struct berth_port, {BERTH_TCP, 80, 0}, {BERTH_TCP, 81, 1})}));
    scene_cleanup(&s);
}

/* A required term that occurs twice counts once, also for other workloads; a preferred one counts twice. */
static void duplicate_requirements_count_once(void **state)
{
    (void)state;
    struct scene s = scene_new();
    const struct berth_term web = {ONE_OF("app", "web")}, like = {ONE_OF("app", "web"), .weight = 5};
    const struct berth_affinity apart[] = {
        {"zone", web, true},
        {"zone", web, true}
    };
    const struct berth_affinity prefers[] = {
        {"zone", like, true},
        {"zone", like, true}
    };
    const struct berth_spread even[] = {
        {"zone", web, 1, false},
        {"zone", web, 1, false}
    };
    assert_int_equal(class_of(&s, (struct berth_shape){.near = apart, .near_len = 2}),
                     class_of(&s, (struct berth_shape){.near = apart, .near_len = 1}));
    assert_int_equal(class_of(&s, (struct berth_shape){.spread = even, .spread_len = 2}),
                     class_of(&s, (struct berth_shape){.spread = even, .spread_len = 1}));
    assert_int_not_equal(class_of(&s, (struct berth_shape){.near = prefers, .near_len = 2}),
                         class_of(&s, (struct berth_shape){.near = prefers, .near_len = 1}));
    scene_cleanup(&s);
}

static void parts_are_shared_between_classes(void **state)
{
    (void)state;
    struct scene s = scene_new();
    const struct class *a =
        cluster_class(s.c, (struct class_ix){class_of(&s, (struct berth_shape){NEEDS(1, 1), .arch = "x"})});
    const struct class *b =
        cluster_class(s.c, (struct class_ix){class_of(&s, (struct berth_shape){NEEDS(2, 2), .arch = "x"})});
    const struct class *c =
        cluster_class(s.c, (struct class_ix){class_of(&s, (struct berth_shape){NEEDS(1, 1), .near_zone = "z"})});
    assert_int_equal(a->constraints.v, b->constraints.v);
    assert_int_equal(a->preferences.v, b->preferences.v);
    assert_true(a->constraints.v != c->constraints.v);
    assert_true(a->preferences.v != c->preferences.v);
    scene_cleanup(&s);
}

static void class_contains_the_requests(void **state)
{
    (void)state;
    struct scene s = scene_new();
    struct berth_shape shape = {NEEDS(7, 0), LIST(limits, struct berth_limit, {"cpu", BERTH_ABSOLUTE, 8, 9})};
    const struct class *k = cluster_class(s.c, class_put(s.c, &shape));
    assert_int_equal(k->needs_len, 2); /* no memory is requested; a pod needs one of "pods" */
    assert_int_equal(k->needs[0].resource, RESOURCE_CPU);
    assert_int_equal(k->needs[0].amount, 7);
    assert_int_equal(k->needs[1].resource, RESOURCE_PODS);
    assert_int_equal(k->needs[1].amount, 1);
    assert_true(k->adjustable);
    struct berth_shape fixed = {LIST(limits, struct berth_limit, {"cpu", BERTH_ABSOLUTE, 8, 8})};
    assert_false(cluster_class(s.c, class_put(s.c, &fixed))->adjustable);
    scene_cleanup(&s);
}

/* ---- expressions ------------------------------------------------------------------------------------------------ */

/* Returns whether a requirement of this one expression holds for a node whose label k has this value; NULL: no
 * label. */
static bool holds(enum berth_match match, const char *const *values, size_t len, const char *value)
{
    struct scene s = scene_new();
    const struct berth_expr e = {"k", match, values, len};
    const struct berth_term t = {&e, 1, 0};
    struct berth_shape shape = {.require = &t, .require_len = 1};
    const struct class *k = cluster_class(s.c, class_put(s.c, &shape));
    const struct constraints *r =
        ((const struct pool_entry *)pages_at(&s.c->shapes.constraints.items, k->constraints.v))->object;
    struct label to[2];
    const struct berth_label from[] = {
        {"other", "v"  },
        {"k",     value},
    };
    size_t n = value ? 2 : 1;
    labels_fill(&s.c->names, from, n, to);
    bool yes = term_holds(&s.c->names, &r->require.at[0], (struct labels){to, (uint32_t)n});
    scene_cleanup(&s);
    return yes;
}

static void label_operators_match(void **state)
{
    static const char *const ab[] = {"a", "b"}, *const five[] = {"5"}, *const minus[] = {"-5"}, *const none[] = {""};
    static const struct {
        const char *const *values;
        size_t len;
        const char *value;
        enum berth_match match;
        bool want;
    } rows[] = {
        {ab,    2, "a",                   BERTH_IN,         true },
        {ab,    2, "b",                   BERTH_IN,         true },
        {ab,    2, "c",                   BERTH_IN,         false},
        {ab,    2, "",                    BERTH_IN,         false},
        {ab,    2, NULL,                  BERTH_IN,         false},
        {none,  1, "",                    BERTH_IN,         true },
        {none,  1, NULL,                  BERTH_IN,         false},
        {ab,    2, "a",                   BERTH_NOT_IN,     false},
        {ab,    2, "c",                   BERTH_NOT_IN,     true },
        {ab,    2, NULL,                  BERTH_NOT_IN,     true },
        {NULL,  0, "a",                   BERTH_EXISTS,     true },
        {NULL,  0, "",                    BERTH_EXISTS,     true },
        {NULL,  0, NULL,                  BERTH_EXISTS,     false},
        {NULL,  0, "",                    BERTH_NOT_EXISTS, false},
        {NULL,  0, NULL,                  BERTH_NOT_EXISTS, true },
        {five,  1, "6",                   BERTH_GT,         true },
        {five,  1, "5",                   BERTH_GT,         false},
        {five,  1, "10",                  BERTH_GT,         true },
        {minus, 1, "-4",                  BERTH_GT,         true },
        {five,  1, "six",                 BERTH_GT,         false},
        {five,  1, "6 ",                  BERTH_GT,         false},
        {five,  1, "9223372036854775807", BERTH_GT,         true },
        {five,  1, "9223372036854775808", BERTH_GT,         false},
        {five,  1, NULL,                  BERTH_GT,         false},
        {five,  1, "4",                   BERTH_LT,         true },
        {five,  1, "5",                   BERTH_LT,         false},
        {five,  1, "-10",                 BERTH_LT,         true },
        {five,  1, "",                    BERTH_LT,         false},
        {five,  1, NULL,                  BERTH_LT,         false},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        if (holds(rows[i].match, rows[i].values, rows[i].len, rows[i].value) != rows[i].want)
            fail_msg("row %zu", i);
}

static void term_holds_if_all_expressions_hold(void **state)
{
    (void)state;
    struct scene s = scene_new();
    sym a = intern_put(&s.c->names, "a"), b = intern_put(&s.c->names, "b"), v = intern_put(&s.c->names, "v");
    struct expr has_a = {.key = a, .match = BERTH_EXISTS}, has_b = {.key = b, .match = BERTH_EXISTS};
    struct expr both[] = {has_a, has_b};
    struct label one[] = {
        {a, v}
    };
    struct label two[] = {
        {a, v},
        {b, v}
    };
    struct labels only_a = {one, 1}, each = {two, 2}, none = {NULL, 0};
    struct term of_both = {both, 2, 0}, of_a = {both, 1, 0}, empty = {NULL, 0, 0};
    assert_true(term_holds(&s.c->names, &of_both, each));
    assert_false(term_holds(&s.c->names, &of_both, only_a));
    assert_true(term_holds(&s.c->names, &of_a, only_a));
    assert_false(term_holds(&s.c->names, &of_a, none));
    assert_false(term_holds(&s.c->names, &empty, each)); /* an empty term never holds */
    scene_cleanup(&s);
}

static void labels_are_found_in_any_order(void **state)
{
    (void)state;
    struct scene s = scene_new();
    char text[40][8];
    struct berth_label from[40];
    struct label to[40];
    uint64_t seed = scene_seed();
    for (size_t round = 0; round < 20; round++) {
        for (size_t i = 0; i < 40; i++) {
            (void)snprintf(text[i], sizeof text[i], "k%zu", i);
            from[i] = (struct berth_label){text[i], text[i]};
        }
        for (uint32_t i = 39; i > 0; i--) {
            uint32_t j = scene_random_below(&seed, i + 1);
            struct berth_label swap = from[i];
            from[i] = from[j];
            from[j] = swap;
        }
        labels_fill(&s.c->names, from, 40, to);
        for (size_t i = 0; i < 40; i++) {
            sym key = intern_put(&s.c->names, text[i]);
            assert_int_equal(labels_find((struct labels){to, 40}, key), key);
        }
        assert_int_equal(labels_find((struct labels){to, 40}, intern_put(&s.c->names, "else")), MAP_NONE);
    }
    scene_cleanup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unequal_shapes_are_unequal_classes), cmocka_unit_test(equal_descriptions_share_a_class),
        cmocka_unit_test(duplicate_requirements_count_once),  cmocka_unit_test(parts_are_shared_between_classes),
        cmocka_unit_test(class_contains_the_requests),        cmocka_unit_test(label_operators_match),
        cmocka_unit_test(term_holds_if_all_expressions_hold), cmocka_unit_test(labels_are_found_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
