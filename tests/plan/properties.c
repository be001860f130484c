/* properties.c - checks the properties, one world at a time. */
#include "properties.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules.h"
#include "world_evolve.h"

enum { STEPS_MAX = 4, FAILURES_SHOWN = 5 };

/* A plan with the snapshot and the cluster from which it was made. */
struct planned {
    struct berth_cluster *cluster; /* NULL: owned by the caller */
    struct berth_snapshot *snapshot;
    struct berth_plan *plan;
};

static void planned_done(struct planned *m)
{
    berth_plan_free(m->plan);
    berth_snapshot_free(m->snapshot);
    if (m->cluster)
        berth_cluster_free(m->cluster);
    memset(m, 0, sizeof *m);
}

static bool planned_from(struct planned *ret, const struct world *world, struct berth_cluster *cluster,
                         struct verdict *v)
{
    struct planned m = {0};
    m.plan = world_plan(world, cluster, &m.snapshot);
    if (!m.plan)
        return verdict_bad(v, "no plan");
    *ret = m;
    return true;
}

static bool planned_loaded(struct planned *ret, const struct world *world, uint64_t shuffle, struct verdict *v)
{
    struct planned m = {0};
    struct berth_cluster *cluster = world_load(world, shuffle);
    if (!cluster)
        return verdict_bad(v, "the world was refused");
    if (!planned_from(&m, world, cluster, v)) {
        berth_cluster_free(cluster);
        return false;
    }
    m.cluster = cluster;
    *ret = m;
    return true;
}

static bool actions_same(const struct berth_action *a, const struct berth_action *b)
{
    return a->op == b->op && a->cause == b->cause && text_same(a->workload, b->workload) && a->ordinal == b->ordinal &&
           text_same(a->node, b->node) && a->instance == b->instance && a->replaces == b->replaces &&
           a->gpus == b->gpus && a->waits_len == b->waits_len &&
           (!a->waits_len || memcmp(a->waits, b->waits, a->waits_len * sizeof *a->waits) == 0) &&
           text_same(a->resource, b->resource) && a->limit == b->limit;
}

static bool plans_same(const struct berth_plan *a, const struct berth_plan *b, const char *what, struct verdict *v)
{
    if (berth_plan_actions(a) != berth_plan_actions(b) || berth_plan_facts(a) != berth_plan_facts(b))
        return verdict_bad(v, "%s: %zu actions and %zu facts against %zu and %zu", what, berth_plan_actions(a),
                           berth_plan_facts(a), berth_plan_actions(b), berth_plan_facts(b));
    for (size_t i = 0; i < berth_plan_actions(a); i++) {
        struct berth_action x = berth_plan_action(a, i), y = berth_plan_action(b, i);
        if (!actions_same(&x, &y))
            return verdict_bad(v, "%s: action %zu is %s %s/%u on %s against %s %s/%u on %s", what, i,
                               berth_op_name(x.op), x.workload, x.ordinal, x.node, berth_op_name(y.op), y.workload,
                               y.ordinal, y.node);
    }
    if (berth_plan_recheck_ns(a) != berth_plan_recheck_ns(b))
        return verdict_bad(v, "%s: recheck at %" PRId64 " against %" PRId64, what, berth_plan_recheck_ns(a),
                           berth_plan_recheck_ns(b));
    if (berth_plan_alarm(a) != berth_plan_alarm(b))
        return verdict_bad(v, "%s: alarm in one only", what);
    if (berth_plan_hash(a) != berth_plan_hash(b))
        return verdict_bad(v, "%s: the hashes differ", what);
    return true;
}

static bool plan_empty(const struct berth_plan *plan, const char *what, struct verdict *v)
{
    if (berth_plan_actions(plan)) {
        struct berth_action a = berth_plan_action(plan, 0);
        return verdict_bad(v, "%s: still %zu actions, the first: %s (%s) %s/%u on %s", what, berth_plan_actions(plan),
                           berth_op_name(a.op), berth_cause_name(a.cause), a.workload, a.ordinal, a.node);
    }
    if (berth_plan_facts(plan))
        return verdict_bad(v, "%s: still %zu facts", what, berth_plan_facts(plan));
    return true;
}

static bool audited(const struct berth_cluster *cluster, const char *when, struct verdict *v)
{
    struct berth_err err = {0};
    return berth_audit(cluster, &err) == 0 ? true : verdict_bad(v, "audit %s: %s", when, err.text);
}

/* Compares the plan of a live cluster with a second plan of the same snapshot and with the plan of a cluster that was
 * loaded in another order. */
static bool order_check(const struct world *world, const struct planned *live, struct verdict *v)
{
    struct planned other = {0};
    struct berth_policy policy = world_policy(world);
    struct berth_plan *again = NULL;
    bool good = true;

    if (berth_plan_make(live->snapshot, &policy, &again, NULL) != 0)
        return verdict_bad(v, "no second plan");
    good = plans_same(live->plan, again, "deterministic", v);
    berth_plan_free(again);
    good = good && planned_loaded(&other, world, world->seed * 7 + 1, v);
    good = good && plans_same(live->plan, other.plan, "order-free", v);
    if (!good && other.plan && getenv("BERTH_SEED")) {
        fprintf(stderr, "as it is: ");
        plan_dump(live->plan, stderr);
        fprintf(stderr, "told anew: ");
        plan_dump(other.plan, stderr);
    }
    planned_done(&other);
    return good;
}

static size_t pods_pending(struct berth_plan *plan, const char *workload)
{
    size_t len = 0;
    for (size_t i = 0; i < berth_plan_pendings(plan); i++)
        if (text_same(berth_plan_pending_name(plan, i), workload))
            len += berth_plan_pending(plan, i).ordinals_len;
    return len;
}

/* A plan may break a budget only if some pod would otherwise have to wait. */
static bool budgets_check(const struct world *world, const struct planned *live, struct verdict *v)
{
    struct berth_policy policy = world_policy(world);
    struct berth_plan *kept = NULL;
    bool good = false;

    if (!policy.preemption.break_budgets || !plan_breaks_budgets(world, live->plan))
        return true;
    policy.preemption.break_budgets = false;
    if (berth_plan_make(live->snapshot, &policy, &kept, NULL) != 0)
        return verdict_bad(v, "budgets: no plan that keeps them");
    for (size_t i = 0; i < world->workloads_len && !good; i++)
        good = pods_pending(kept, world->workloads[i].id) > pods_pending(live->plan, world->workloads[i].id);
    berth_plan_free(kept);
    return good ? true : verdict_bad(v, "budgets: broken, and nobody has to wait where they are kept");
}

/* Applies the plan with the library; `after` has it applied naively. Both must give an empty next plan, and the same
 * one. */
static bool fixpoint_check(const struct world *before, const struct world *after, struct berth_cluster *cluster,
                           const struct planned *live, struct verdict *v)
{
    struct planned next = {0}, naive = {0};
    struct berth_err err = {0};

    if (berth_apply(cluster, live->plan, before->next_id, &err) != 0)
        return verdict_bad(v, "apply: %s", err.text);
    bool good = audited(cluster, "after the plan", v) && planned_from(&next, after, cluster, v) &&
                plan_empty(next.plan, "fixpoint", v) && planned_loaded(&naive, after, after->seed * 11 + 3, v) &&
                plan_empty(naive.plan, "naively applied", v) &&
                plans_same(next.plan, naive.plan, "applied against naively applied", v);
    planned_done(&next);
    planned_done(&naive);
    return good;
}

/* Makes and checks one plan of a live cluster, which must match `world`. *ret_after is the world with the plan applied;
 * it is initialised also on failure. */
static bool step_check(const struct world *world, struct berth_cluster *cluster, struct world *ret_after,
                       struct verdict *v)
{
    struct planned live = {0};
    bool good = (world->broken || audited(cluster, "before the plan", v)) && planned_from(&live, world, cluster, v) &&
                order_check(world, &live, v) && budgets_check(world, &live, v);

    if (!good) {
        world_copy(ret_after, world);
    } else {
        good = plan_check(world, live.plan, ret_after, v) && fixpoint_check(world, ret_after, cluster, &live, v);
    }
    if (live.plan)
        planned_done(&live);
    return good;
}

bool world_check(const struct world *world, struct verdict *v)
{
    struct world after;
    struct berth_cluster *cluster = world_load(world, 0);

    if (!cluster)
        return verdict_bad(v, "the world was refused");
    bool good = step_check(world, cluster, &after, v);
    world_done(&after);
    berth_cluster_free(cluster);
    return good;
}

/* An old snapshot must give the old plan, whatever changed in its cluster since. */
static bool frozen_check(struct planned *old, const struct world *world, uint64_t hash, struct verdict *v)
{
    struct berth_policy policy = world_policy(world);
    struct berth_plan *plan = NULL;

    if (berth_plan_make(old->snapshot, &policy, &plan, NULL) != 0)
        return verdict_bad(v, "frozen: no plan");
    bool good = berth_plan_hash(plan) == hash ? true : verdict_bad(v, "frozen: the snapshot has changed");
    berth_plan_free(plan);
    return good;
}

static bool history_check(struct world *worlds, struct berth_cluster *cluster, struct rng *r, size_t *ret_step,
                          struct verdict *v)
{
    size_t steps = (size_t)rng_range(r, 1, STEPS_MAX);

    for (size_t i = 0; i < steps; i++) {
        struct planned old = {0};
        *ret_step = i;
        if (!step_check(&worlds[i], cluster, &worlds[i + 1], v))
            return false;
        if (!planned_from(&old, &worlds[i + 1], cluster, v))
            return false;
        uint64_t hash = berth_plan_hash(old.plan);
        bool good = world_evolve(&worlds[i + 1], cluster, r, v) && frozen_check(&old, &worlds[i + 1], hash, v);
        planned_done(&old);
        if (!good)
            return false;
    }
    *ret_step = steps;
    return rest_check(&worlds[steps], v);
}

/* Prints the world of the failing step, or the smallest world that fails like it. */
static void failure_show(struct world *world, const struct verdict *v)
{
    struct verdict alone = {0};
    struct planned planned = {0};

    if (!getenv("BERTH_SEED"))
        return;
    if (world_check(world, &alone))
        fprintf(stderr, "(loaded afresh, this world passes: what came before it matters)\n");
    else if (getenv("BERTH_SHRINK"))
        world_shrink(world);
    world_dump(world, stderr);
    alone.bad = false;
    if (planned_loaded(&planned, world, 0, &alone)) {
        plan_dump(planned.plan, stderr);
        planned_done(&planned);
    }
    fprintf(stderr, "verdict: %s\n", v->text);
}

bool seed_check(uint64_t seed, struct verdict *v)
{
    struct world worlds[STEPS_MAX + 1];
    struct rng r = {seed ^ 0xbe47};
    size_t step = 0;
    bool good = false;

    memset(worlds, 0, sizeof worlds);
    world_random(&worlds[0], seed);
    struct berth_cluster *cluster = world_load(&worlds[0], 0);
    if (!cluster)
        verdict_bad(v, "the world was refused");
    else
        good = history_check(worlds, cluster, &r, &step, v);
    if (!good) {
        fprintf(stderr, "seed %" PRIu64 ", step %zu: %s\n", seed, step, v->text);
        failure_show(&worlds[step], v);
    }
    if (cluster)
        berth_cluster_free(cluster);
    for (size_t i = STEPS_MAX + 1; i-- > 0;)
        world_done(&worlds[i]);
    return good;
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* The present seed, printed when an assertion ends the process. */
static volatile uint64_t current_seed;

static void print_seed_and_abort(int sig)
{
    char text[] = "ended by seed 00000000000000000000\n";
    size_t at = sizeof text - 2;

    for (uint64_t rest = current_seed; rest; rest /= 10)
        text[--at] = (char)('0' + rest % 10);
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    signal(sig, SIG_DFL);
    raise(sig);
}

size_t seeds_check(uint64_t first, size_t len)
{
    return seeds_check_within(first, (struct bound){.least = len, .most = len});
}

size_t seeds_check_within(uint64_t first, struct bound bound)
{
    size_t failures = 0, most = (size_t)env_number("BERTH_FAILURES", FAILURES_SHOWN), done = 0;

    first = env_number("BERTH_SEED", first);
    if (getenv("BERTH_SEED") || getenv("BERTH_WORLDS"))
        bound.least = bound.most = (size_t)env_number("BERTH_WORLDS", getenv("BERTH_SEED") ? 1 : bound.most);
    bound_begin(&bound);
    signal(SIGABRT, print_seed_and_abort);
    signal(SIGSEGV, print_seed_and_abort);
    for (; bound_goes_on(&bound, done); done++) {
        struct verdict v = {0};
        current_seed = first + done;
        if (seed_check(first + done, &v))
            continue;
        if (++failures == most) {
            fprintf(stderr, "and so on; run one with BERTH_SEED=n\n");
            break;
        }
    }
    if (bound.least < bound.most)
        printf("# %zu of %zu seeds from %llu\n", done, bound.most, (unsigned long long)first);
    return failures;
}
