/* advice_check.c - checks that every advice of berth_plan_advise holds, on many random clusters within a time bound
 * (bound.h).
 *
 * The advised change is made to the cluster through berth.h. The next plan must place as many pods of the workload as
 * the advice said, the first of them on the node that it named.
 */
/* bed: advice, in part */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bound.h"
#include "world.h"

enum { PENDINGS_MAX = 1000, TRIES = 8, ADVICE_MAX = 3, FAILURES_MAX = 5 };

static struct {
    size_t pendings, advised, advice, wrong;
    size_t by_change[BERTH_CHANGE_PER_NODE + 1];
} totals;

/* ---- making the change ------------------------------------------------------------------------------------------ */

/* A copy of the workload with its own lists where the change edits them. */
struct changed {
    struct berth_workload workload;
    struct berth_amount requests[BERTH_RESOURCES_MAX];
    struct berth_toleration tolerations[64];
    struct berth_spread spread[64];
    struct berth_affinity near[64];
};

static void request_change(struct changed *c, const struct berth_advice *a)
{
    struct berth_shape *shape = &c->workload.shape;
    assert_true(shape->requests_len <= BERTH_RESOURCES_MAX);
    for (size_t i = 0; i < shape->requests_len; i++) {
        c->requests[i] = shape->requests[i];
        if (strcmp(c->requests[i].resource, a->name) == 0)
            c->requests[i].amount = a->amount;
    }
    shape->requests = c->requests;
}

static void toleration_add(struct changed *c, const struct berth_advice *a)
{
    struct berth_shape *shape = &c->workload.shape;
    assert_true(shape->tolerations_len < 64);
    for (size_t i = 0; i < shape->tolerations_len; i++)
        c->tolerations[i] = shape->tolerations[i];
    c->tolerations[shape->tolerations_len++] =
        (struct berth_toleration){.key = a->name, .exists = true, .effect = BERTH_EFFECT_ANY};
    shape->tolerations = c->tolerations;
}

static void spread_drop(struct changed *c)
{
    struct berth_shape *shape = &c->workload.shape;
    size_t len = 0;
    for (size_t i = 0; i < shape->spread_len; i++)
        if (shape->spread[i].soft)
            c->spread[len++] = shape->spread[i];
    shape->spread = c->spread;
    shape->spread_len = len;
}

static void near_drop(struct changed *c, bool apart)
{
    struct berth_shape *shape = &c->workload.shape;
    size_t len = 0;
    for (size_t i = 0; i < shape->near_len; i++)
        if (shape->near[i].select.weight || shape->near[i].apart != apart)
            c->near[len++] = shape->near[i];
    shape->near = c->near;
    shape->near_len = len;
}

static void workload_change(struct changed *c, const struct berth_advice *a)
{
    struct berth_shape *shape = &c->workload.shape;
    switch (a->change) {
    case BERTH_CHANGE_REQUEST: request_change(c, a); break;
    case BERTH_CHANGE_GPUS: shape->gpu.count = (uint32_t)a->amount; break;
    case BERTH_CHANGE_GANG: c->workload.gang_min = (uint32_t)a->amount; break;
    case BERTH_CHANGE_TOLERATION: toleration_add(c, a); break;
    case BERTH_CHANGE_NODE: shape->node = NULL; break;
    case BERTH_CHANGE_LABELS: shape->require_len = 0; break;
    case BERTH_CHANGE_DOMAIN: shape->domains_len = 0; break;
    case BERTH_CHANGE_RUNTIME: shape->runtime = NULL; break;
    case BERTH_CHANGE_ARCH: shape->arch = NULL; break;
    case BERTH_CHANGE_GPU_KIND:
        shape->gpu.models_len = 0;
        shape->gpu.memory_bytes = 0;
        break;
    case BERTH_CHANGE_PORTS: shape->ports_len = 0; break;
    case BERTH_CHANGE_VOLUMES: shape->volumes_len = 0; break;
    case BERTH_CHANGE_SPREAD: spread_drop(c); break;
    case BERTH_CHANGE_AFFINITY: near_drop(c, false); break;
    case BERTH_CHANGE_ANTI_AFFINITY: near_drop(c, true); break;
    case BERTH_CHANGE_PER_NODE: shape->max_per_node = 0; break;
    case BERTH_CHANGE_UNCORDON: fail_msg("not of a workload");
    }
}

static void put_or_fail(int rc, const struct berth_err *err)
{
    if (rc)
        fail_msg("the change is refused: %s", err->text);
}

/* Makes the advised change, or with `back` reverts it. */
static void apply(const struct world *w, struct berth_cluster *cluster, const struct berth_advice *a, size_t workload,
                  bool back)
{
    struct berth_err err = {0};
    if (a->change == BERTH_CHANGE_UNCORDON) {
        struct berth_node node = w->nodes[world_find_node(w, a->name)];
        assert_int_equal(node.state, BERTH_NODE_CORDONED);
        node.state = back ? node.state : BERTH_NODE_READY;
        put_or_fail(berth_node_put(cluster, &node, &err), &err);
        return;
    }
    struct changed *c = calloc(1, sizeof *c);
    c->workload = w->workloads[workload];
    if (!back)
        workload_change(c, a);
    put_or_fail(berth_workload_put(cluster, &c->workload, &err), &err);
    free(c);
}

/* ---- checking an advice ----------------------------------------------------------------------------------------- */

static uint32_t placed(const struct berth_plan *plan, const char *workload, uint32_t *ret_after, const char **ret_node)
{
    uint32_t len = 0;
    *ret_after = 0;
    *ret_node = "";
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        if (a.replaces || strcmp(a.workload, workload) != 0 || (a.op != BERTH_PLACE && a.op != BERTH_RESERVE))
            continue;
        if (len++ == 0)
            *ret_node = a.node;
        *ret_after += a.op == BERTH_RESERVE;
    }
    return len;
}

static bool advice_holds(const struct world *w, struct berth_cluster *cluster, const struct berth_advice *a,
                         size_t workload, uint32_t before)
{
    struct berth_snapshot *snapshot = NULL;
    const char *node, *id = w->workloads[workload].id;
    uint32_t after;
    apply(w, cluster, a, workload, false);
    struct berth_plan *plan = world_plan(w, cluster, &snapshot);
    uint32_t starts = plan ? placed(plan, id, &after, &node) : 0;
    bool good = plan && starts == a->starts && after == a->after && starts > before && strcmp(node, a->node) == 0;
    if (!good)
        fprintf(stderr,
                "seed %" PRIu64 ": %s: \"%s\": told %u on %s (%u after others), %u on %s (%u) started; %u without\n",
                w->seed, id, a->text, a->starts, a->node, a->after, starts, plan ? node : "", plan ? after : 0, before);
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    apply(w, cluster, a, workload, true);
    return good;
}

static void seed_check(uint64_t seed)
{
    struct world w;
    struct berth_snapshot *snapshot = NULL;
    world_random(&w, seed);
    struct berth_policy policy = world_policy(&w);
    struct berth_cluster *cluster = world_load(&w, 0);
    struct berth_plan *plan = cluster ? world_plan(&w, cluster, &snapshot) : NULL;
    size_t len = plan ? berth_plan_pendings(plan) : 0;
    for (size_t i = 0; i < len && i < PENDINGS_MAX; i++) {
        struct berth_advice advice[ADVICE_MAX];
        const char *id = berth_plan_pending_name(plan, i), *node;
        size_t workload = world_find_workload(&w, id);
        uint32_t after, before = placed(plan, id, &after, &node);
        size_t n = workload == NONE ? 0 : berth_plan_advise(plan, &policy, i, TRIES, advice, ADVICE_MAX);
        totals.pendings++;
        totals.advised += n > 0;
        for (size_t k = 0; k < n; k++) {
            totals.advice++;
            totals.by_change[advice[k].change]++;
            totals.wrong += !advice_holds(&w, cluster, &advice[k], workload, before);
        }
    }
    berth_plan_free(plan);
    berth_snapshot_free(snapshot);
    if (cluster)
        berth_cluster_free(cluster);
    world_done(&w);
}

static void seeds_check(uint64_t first, struct bound bound)
{
    const char *one = getenv("BERTH_SEED");
    size_t done = 0;
    bound_begin(&bound);
    if (one)
        seed_check(strtoull(one, NULL, 10));
    for (; !one && bound_goes_on(&bound, done) && totals.wrong < FAILURES_MAX; done++)
        seed_check(first + done);
    printf("# %zu of %zu clusters from %" PRIu64
           ": %zu workloads waited, %zu of them got advice, %zu in all, %zu did not hold\n",
           done, bound.most, first, totals.pendings, totals.advised, totals.advice, totals.wrong);
}

static void every_advice_has_the_stated_effect(void **state)
{
    (void)state;
    seeds_check(3000000, (struct bound){.least = 300, .most = 5000, .seconds = 14});
    seeds_check(PREEMPTION_SEEDS_FROM + 3000000, (struct bound){.least = 300, .most = 5000, .seconds = 14});
    for (size_t i = 0; i <= BERTH_CHANGE_PER_NODE; i++)
        printf("# change %zu: %zu times\n", i, totals.by_change[i]);
    assert_int_equal(totals.wrong, 0);
    if (!getenv("BERTH_SEED"))
        assert_true(totals.advice > totals.pendings / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_advice_has_the_stated_effect)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
