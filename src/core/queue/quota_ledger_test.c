/* quota_ledger_test.c - the ledger of committed instances: usage, limits, and trials that leave no trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/queue/quota_ledger.h"
#include "core/scene/scene_test.h"

static const struct berth_amount one_core[] = {
    {"cpu", 1000}
};
static const char *const ann[] = {"user/ann"}, *const bob[] = {"user/bob"};

static void put_quota(struct scene *s, const char *id, const char *parent, int64_t cpu, int64_t jobs)
{
    const struct berth_amount limits[] = {
        {"cpu",  cpu },
        {"jobs", jobs}
    };
    struct berth_quota q = {.id = id, .parent = parent, .limits = limits, .limits_len = jobs ? 2 : cpu ? 1 : 0};
    scene_check(s, berth_quota_put(s->c, &q, &s->err));
}

static void put_work(struct scene *s, const char *id, const char *const *quota)
{
    struct berth_workload w = {
        .id = id, .replicas = 9, .quotas = quota, .quotas_len = 1, .shape = {.requests = one_core, .requests_len = 1}
    };
    scene_put(s, w);
}

static struct quota_row row_of(struct scene *s, uint64_t id, const char *workload, enum berth_state state,
                               uint64_t replaces)
{
    const struct workload *w = cluster_workload(s->c, cluster_workload_find(s->c, workload));
    return (struct quota_row){.id = id, .replaces = replaces, .workload = w->id, .class = w->class.v, .state = state};
}

static bool exceeds(struct quota_ledger *l, struct scene *s, uint64_t id)
{
    struct quota_excess over;
    return quota_ledger_exceeds(l, s->c, id, &over);
}

/* Rows: the existing instances, one more instance, and whether that exceeds the limit of two cores. */
static void limits_apply_to_held_and_reserved_amounts(void **state)
{
    static const struct {
        const char *label;
        enum berth_state first, second, more;
        uint64_t replaces;
        int64_t limit;
        bool over;
    } rows[] = {
        {"within",                          BERTH_RUNNING,  BERTH_ENDED,    BERTH_ASSIGNED, 0, 2000, false},
        {"one more",                        BERTH_RUNNING,  BERTH_RUNNING,  BERTH_ASSIGNED, 0, 2000, true },
        {"beside one that stops",           BERTH_RUNNING,  BERTH_STOPPING, BERTH_ASSIGNED, 0, 2000, true },
        {"promised when that has stopped",  BERTH_RUNNING,  BERTH_STOPPING, BERTH_RESERVED, 0, 2000, false},
        {"promised beside a promise",       BERTH_RUNNING,  BERTH_RESERVED, BERTH_RESERVED, 0, 2000, true },
        {"assigned beside a promise",       BERTH_RUNNING,  BERTH_RESERVED, BERTH_ASSIGNED, 0, 2000, true },
        {"a move, though too much is held", BERTH_RUNNING,  BERTH_RUNNING,  BERTH_ASSIGNED, 1, 1000, false},
        {"a move from what is gone",        BERTH_ENDED,    BERTH_RUNNING,  BERTH_ASSIGNED, 1, 1000, true },
        {"a move from what stops",          BERTH_STOPPING, BERTH_RUNNING,  BERTH_ASSIGNED, 1, 1000, true },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(scene) struct scene s = scene_new();
        struct quota_ledger *l = quota_ledger_new();
        put_quota(&s, "group/all", "", rows[i].limit, 0);
        put_quota(&s, "user/ann", "group/all", 0, 0);
        put_work(&s, "web", ann);
        struct quota_row first = row_of(&s, 1, "web", rows[i].first, 0),
                         second = row_of(&s, 2, "web", rows[i].second, 0);
        struct quota_row more = row_of(&s, 3, "web", rows[i].more, rows[i].replaces);
        (void)quota_ledger_put(l, s.c, 1, first.state == BERTH_ENDED ? NULL : &first);
        (void)quota_ledger_put(l, s.c, 2, second.state == BERTH_ENDED ? NULL : &second);
        (void)quota_ledger_put(l, s.c, 3, &more);
        if (exceeds(l, &s, 3) != rows[i].over)
            fail_msg("%s", rows[i].label);
        (void)quota_ledger_put(l, s.c, 3, NULL);
        (void)quota_ledger_put(l, s.c, 3, &more); /* now the usage is counted already */
        if (exceeds(l, &s, 3) != rows[i].over)
            fail_msg("%s, counted step by step", rows[i].label);
        quota_ledger_free(l);
    }
}

/* The first instance of a workload adds a job to the limit of jobs; further instances add none. */
static void jobs_count_once(void **state)
{
    CLEANUP(scene) struct scene s = scene_new();
    struct quota_ledger *l = quota_ledger_new();
    (void)state;
    put_quota(&s, "user/ann", "", 9000, 1);
    put_work(&s, "web", ann);
    put_work(&s, "db", ann);
    struct quota_row web = row_of(&s, 1, "web", BERTH_RUNNING, 0), more = row_of(&s, 2, "web", BERTH_ASSIGNED, 0);
    struct quota_row db = row_of(&s, 3, "db", BERTH_ASSIGNED, 0);
    more.fresh = db.fresh = true;
    (void)quota_ledger_put(l, s.c, 1, &web);
    (void)quota_ledger_put(l, s.c, 2, &more);
    assert_false(exceeds(l, &s, 2));
    (void)quota_ledger_put(l, s.c, 3, &db);
    assert_true(exceeds(l, &s, 3));
    assert_false(exceeds(l, &s, 2));
    (void)quota_ledger_put(l, s.c, 1, NULL);
    (void)quota_ledger_put(l, s.c, 2, NULL);
    assert_false(exceeds(l, &s, 3));
    quota_ledger_free(l);
}

/* Instances are added, removed and changed, workloads change their quotas or are removed, the quota tree changes: the
 * usage always equals a recount, and a trial that is undone leaves the usage as it was. */
static void usage_equals_recount_after_random_changes(void **state)
{
    static const enum berth_state states[] = {BERTH_RESERVED, BERTH_ASSIGNED, BERTH_RUNNING, BERTH_STOPPING};
    static const char *const works[] = {"w0", "w1", "w2"};
    CLEANUP(scene) struct scene s = scene_new();
    struct quota_ledger *l = quota_ledger_new();
    uint64_t seed = 7;
    (void)state;
    put_quota(&s, "group/g", "", 5000, 2);
    put_quota(&s, "group/h", "", 3000, 0);
    put_quota(&s, "user/ann", "group/g", 4000, 0);
    put_quota(&s, "user/bob", "", 4000, 0);
    for (size_t i = 0; i < ROWS(works); i++)
        put_work(&s, works[i], i % 2 ? bob : ann);
    for (int i = 0; i < 20000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint32_t draw = (uint32_t)(seed >> 33);
        uint64_t id = 1 + draw % 8, replaces = draw / 8 % 10;
        const char *work = works[draw / 80 % 3];
        struct quota_row now = row_of(&s, id, work, states[draw / 240 % 4], replaces == id ? 0 : replaces);
        switch (draw / 960 % 16) {
        case 0: put_quota(&s, "user/bob", draw / 15360 % 2 ? "group/g" : "group/h", 4000, 0); break;
        case 1:
            put_work(&s, work, draw / 15360 % 2 ? ann : bob);
            quota_ledger_claim(l, s.c, work);
            break;
        case 2:
        case 3:
        case 4: (void)quota_ledger_put(l, s.c, id, NULL); break;
        case 5: { /* a trial */
            struct quota_row was = quota_ledger_put(l, s.c, id, &now), back;
            (void)exceeds(l, &s, id);
            back = quota_ledger_put(l, s.c, id, was.id ? &was : NULL);
            assert_int_equal(back.id, id);
            assert_int_equal(quota_ledger_row(l, id).id, was.id);
            break;
        }
        default: (void)quota_ledger_put(l, s.c, id, &now);
        }
        (void)exceeds(l, &s, id);
        scene_check(&s, quota_ledger_audit(l, s.c, &s.err));
    }
    quota_ledger_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_apply_to_held_and_reserved_amounts),
        cmocka_unit_test(jobs_count_once),
        cmocka_unit_test(usage_equals_recount_after_random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
