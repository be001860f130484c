/* queue.c - `berth bench queue`: a long queue on a full cluster, ranked, admitted and backfilled in one plan.
 *
 * Generated from the seed: nodes of 64 cores and 512 GiB, every third with 8 GPUs, filled with running jobs with known
 * ends; then the queue: single jobs, GPU jobs and gangs of 2 to 64 pods, with a thousand shapes, run times from ten
 * minutes to a day, of 200 users in 20 groups with limits and guarantees, in three queues. The measured time covers
 * what the daemon does for one planning cycle: berth_freeze, berth_plan_make, reading every action, and the reasons of
 * all pending work.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "bench/plan/event.h"
#include "berth.h"
#include "cli/lib/command.h"
#include "cli/lib/human.h"
#include "cli/lib/table.h"

#define GIB ((int64_t)1 << 30)
#define SECOND_NS ((int64_t)1000000000)
#define NOW_NS ((int64_t)1767225600 * SECOND_NS) /* 2026-01-01 */

enum { CORES = 64, GPUS = 8, MEMORY_GIB = 512, USERS = 200, GROUPS = 20, QUEUES = 3, ID_MAX = 24, RUNS_MAX = 100 };

struct queue_values {
    struct option_count nodes, jobs, runs, seed, only, events;
};

static const struct queue_values defaults = {.nodes = {.n = 5000},
                                             .jobs = {.n = 100000},
                                             .runs = {.n = 5},
                                             .events = {.n = 20000},
                                             .seed = {.n = 1}};

static const struct option options[] = {
    OPTION_COUNT_ROW("nodes", 0, queue_values, nodes, 1, 1000000, "Number of nodes. Default: 5,000."),
    OPTION_COUNT_ROW("jobs", 0, queue_values, jobs, 1, 10000000, "Number of pending jobs. Default: 100,000."),
    OPTION_COUNT_ROW("runs", 'r', queue_values, runs, 1, RUNS_MAX, "Number of plans; the median counts. Default: 5."),
    OPTION_COUNT_ROW("only", 0, queue_values, only, 1, 100, "Run only this row of the table."),
    OPTION_COUNT_ROW("events", 0, queue_values, events, 0, 100000000,
                     "Number of small decisions to time (jobs that start and end on one node); 0 for none. "
                     "Default: 20,000."),
    OPTION_COUNT_ROW("seed", 0, queue_values, seed, 0, INT64_MAX, "Random seed. Default: 1."),
};

struct bench_queue {
    struct cli *cli;
    const struct queue_values *values;
    struct berth_cluster *cluster;
    uint64_t dice, running, next;
    struct berth_err err;
};

static int64_t roll(struct bench_queue *b, int64_t low, int64_t high)
{
    b->dice += 0x9e3779b97f4a7c15u;
    return low + (int64_t)(hash_u64(b->dice) % (uint64_t)(high - low + 1));
}

/* ---- the synthetic cluster -------------------------------------------------------------------------------------- */

static int put_nodes(struct bench_queue *b)
{
    static const struct berth_amount has[] = {
        {"cpu",    CORES * 1000    },
        {"memory", MEMORY_GIB * GIB}
    };
    struct berth_gpu gpus[GPUS];
    int rc = 0;
    for (size_t g = 0; g < GPUS; g++)
        gpus[g] = (struct berth_gpu){"A100", 80 * GIB};
    for (uint64_t i = 0; i < b->values->nodes.n && rc == 0; i++) {
        char id[ID_MAX];
        (void)snprintf(id, sizeof id, "n%06" PRIu64, i);
        struct berth_node n = {.id = id, .allocatable = has, .allocatable_len = 2};
        n.gpus = gpus;
        n.gpus_len = i % 3 == 0 ? GPUS : 0;
        rc = berth_node_put(b->cluster, &n, &b->err);
    }
    return rc;
}

/* Sets limits that some users reach and most do not, and guarantees of half of the cluster. */
static int put_quotas(struct bench_queue *b)
{
    int64_t cores = (int64_t)b->values->nodes.n * CORES * 1000;
    int rc = 0;
    for (unsigned i = 0; i < GROUPS + USERS && rc == 0; i++) {
        char id[ID_MAX], parent[ID_MAX] = "";
        bool group = i < GROUPS;
        struct berth_amount limit = {"cpu", cores / roll(b, group ? 4 : 20, group ? 12 : 80)};
        struct berth_amount guarantee = {"cpu", cores / (2 * GROUPS)};
        (void)snprintf(id, sizeof id, group ? "group/%u" : "user/%u", group ? i : i - GROUPS);
        if (!group)
            (void)snprintf(parent, sizeof parent, "group/%u", i % GROUPS);
        struct berth_quota q = {.id = id,
                                .parent = parent,
                                .weight = (uint32_t)roll(b, 1, 9),
                                .limits = &limit,
                                .limits_len = 1,
                                .guarantees = &guarantee,
                                .guarantees_len = group};
        rc = berth_quota_put(b->cluster, &q, &b->err);
    }
    for (unsigned i = 0; i < USERS && rc == 0; i++) {
        char key[ID_MAX];
        (void)snprintf(key, sizeof key, "user/%u", i);
        struct berth_fact use = {
            .kind = BERTH_FACT_USAGE, .key = key, .value = roll(b, 0, 1000000000), .at_ns = NOW_NS};
        rc = berth_fact_put(b->cluster, &use, &b->err);
    }
    return rc;
}

/* Adds a job with one of a thousand shapes; one in seven has GPUs. */
static int put_job(struct bench_queue *b, const char *id, int64_t cores, uint32_t gpus, uint32_t pods)
{
    char user[ID_MAX];
    const char *quotas[] = {user};
    static const char *const queues[] = {"long", "short", "gpu"};
    (void)snprintf(user, sizeof user, "user/%u", (unsigned)roll(b, 0, USERS - 1));
    struct berth_amount needs[] = {
        {"cpu", cores * 1000},
        { "memory", cores * roll(b,        1, 6) * GIB}
    };
    int64_t estimate = roll(b, 10, 24 * 60) * 60 * SECOND_NS;
    struct berth_workload w = {
        .id = id,
        .kind = BERTH_JOB,
        .replicas = pods,
        .priority = roll(b, 0, 9) == 0,
        .created_ns = NOW_NS - roll(b, 1, 3 * 24 * 3600) * SECOND_NS,
        .gang = pods > 1 ? id : NULL,
        .shape = {.requests = needs,           .requests_len = 2, .gpu = {.count = gpus}},
        .quotas = quotas,
        .quotas_len = 1,
        .queue = queues[gpus ? 2 : roll(b, 0, 1)],
        .estimate_ns = estimate,
        .limit_ns = 2 * estimate,
        .traits = { .user_level = (int32_t)roll(b, 0, 100),                                .urgency = (int32_t)roll(b, -100, 100)},
    };
    return berth_workload_put(b->cluster, &w, &b->err);
}

/* Adds running jobs, node by node, until little is free. */
static int put_running(struct bench_queue *b)
{
    int rc = 0;
    for (uint64_t n = 0; n < b->values->nodes.n && rc == 0; n++) {
        char node[ID_MAX];
        uint32_t gpus_left = n % 3 == 0 ? GPUS : 0;
        (void)snprintf(node, sizeof node, "n%06" PRIu64, n);
        for (int64_t left = CORES - roll(b, 0, 6); left > 0 && rc == 0;) {
            int64_t cores = roll(b, 1, left < 16 ? left : 16);
            uint32_t gpus = gpus_left ? (uint32_t)roll(b, 1, gpus_left < 4 ? gpus_left : 4) : 0;
            char id[ID_MAX];
            (void)snprintf(id, sizeof id, "r%" PRIu64, b->running++);
            rc = put_job(b, id, cores, gpus, 1);
            struct berth_instance i = {.id = b->next++,
                                       .workload = id,
                                       .node = node,
                                       .state = BERTH_RUNNING,
                                       .ready = true,
                                       .since_ns = NOW_NS - roll(b, 1, 3600) * SECOND_NS,
                                       .gpus = gpus ? ((UINT64_C(1) << gpus) - 1) << (gpus_left - gpus) : 0};
            if (rc == 0)
                rc = berth_instance_put(b->cluster, &i, &b->err);
            left -= cores;
            gpus_left -= gpus;
        }
    }
    return rc;
}

static int put_waiting(struct bench_queue *b)
{
    static const int64_t cores[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    int rc = 0;
    for (uint64_t i = 0; i < b->values->jobs.n && rc == 0; i++) {
        char id[ID_MAX];
        int64_t kind = roll(b, 0, 99);
        (void)snprintf(id, sizeof id, "%" PRIu64, i + 1);
        rc = put_job(b, id, cores[roll(b, 0, 9)], kind < 15 ? (uint32_t)roll(b, 1, GPUS) : 0,
                     kind >= 85 ? (uint32_t)roll(b, 2, 64) : 1);
    }
    return rc;
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

struct measured {
    double freeze, plan, actions, reasons, all;
    uint64_t placed, waiting, reserved;
    uint64_t hash; /* of the plan and of all reasons */
};

static double since(int64_t *clock_ns)
{
    int64_t now = cli_clock_ns();
    double seconds = (double)(now - *clock_ns) / 1e9;
    *clock_ns = now;
    return seconds;
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
    return text ? hash_bytes(text, strlen(text), seed) : seed;
}

/* Hashes actions, facts, and every reason: a faster planner must give the same hash. */
static uint64_t fingerprint(struct berth_plan *plan)
{
    uint64_t h = berth_plan_hash(plan);
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        struct berth_pending p = berth_plan_pending(plan, i);
        h = hash_text(p.workload, h);
        h = hash_bytes(p.ordinals, p.ordinals_len * sizeof *p.ordinals, h);
        for (size_t r = 0; r < p.reasons_len; r++) {
            uint64_t words[] = {p.reasons[r].nodes, p.reasons[r].only};
            h = hash_text(p.reasons[r].text, hash_text(p.reasons[r].what, hash_text(p.reasons[r].reason, h)));
            h = hash_bytes(words, sizeof words, h);
        }
    }
    return h;
}

static int measure(struct bench_queue *b, const struct berth_policy *policy, bool hashed, struct measured *ret)
{
    struct berth_plan *plan = NULL;
    int64_t clock_ns = cli_clock_ns();
    struct berth_snapshot *s = berth_freeze(b->cluster, NOW_NS, 0);
    ret->freeze = since(&clock_ns);
    int rc = berth_plan_make(s, policy, &plan, &b->err);
    ret->plan = since(&clock_ns);
    size_t reasons = 0, actions = 0;
    for (size_t i = 0; rc == 0 && i < berth_plan_actions(plan); i++)
        actions += *berth_plan_action(plan, i).node != 0;
    ret->actions = since(&clock_ns);
    for (size_t i = 0; rc == 0 && i < berth_plan_pendings(plan); i++)
        reasons += berth_plan_pending(plan, i).reasons_len;
    ret->reasons = since(&clock_ns);
    ret->all = ret->freeze + ret->plan + ret->actions + ret->reasons;
    if (rc == 0) {
        ret->placed = berth_plan_stats(plan).placed;
        ret->waiting = berth_plan_pendings(plan);
        ret->reserved = 0;
        for (size_t i = 0; i < berth_plan_facts(plan); i++)
            ret->reserved += berth_plan_fact(plan, i).kind == BERTH_FACT_RESERVATION;
        ret->hash = hashed ? fingerprint(plan) : 0;
    }
    berth_plan_free(plan);
    berth_snapshot_free(s);
    return rc == 0 && reasons + actions == 0 ? err_set(&b->err, ENODATA, "an empty plan") : rc;
}

static int by_all(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    return x->all < y->all ? -1 : x->all > y->all;
}

static int measure_median(struct bench_queue *b, const struct berth_policy *policy, struct measured *ret)
{
    CLEANUP(mem) struct measured *runs = mem_array(b->values->runs.n, sizeof *runs);
    int rc = 0;
    for (uint64_t i = 0; i < b->values->runs.n && rc == 0; i++)
        rc = measure(b, policy, i == 0, &runs[i]);
    uint64_t hash = runs[0].hash;
    qsort(runs, b->values->runs.n, sizeof *runs, by_all);
    *ret = runs[b->values->runs.n / 2];
    ret->hash = hash;
    return rc;
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

struct queue_row_spec {
    const char *what, *ranking;
    uint32_t reservations;
    bool no_preemption;
    double goal; /* seconds; 0: none */
};

static const struct queue_row_spec rows[] = {
    {"multifactor, 100 reservations, preemption", "multifactor", 100,  false, 0.250},
    {"the same without preemption",               "multifactor", 100,  true,  0.250},
    {"fair-share, 100 reservations",              "fair-share",  100,  false, 0    },
    {"drf, 100 reservations",                     "drf",         100,  false, 0    },
    {"fifo, 1 reservation (EASY as published)",   "fifo",        1,    false, 0    },
    {"fifo, no reservations",                     "fifo",        0,    false, 0    },
    {"fifo, 1,000 reservations (conservative)",   "fifo",        1000, false, 0    },
};

static int measure_row(struct bench_queue *b, const struct queue_row_spec *row, struct measured *ret)
{
    struct berth_policy policy = berth_policy_usual();
    struct berth_queue queues[QUEUES] = {
        {.id = "long"  },
        { .id = "short", .priority = 1},
        { .id = "gpu", .priority = 1}
    };
    for (size_t i = 0; i < QUEUES; i++)
        queues[i].ranking.name = row->ranking;
    policy.order =
        (struct berth_order){.queues = queues, .queues_len = QUEUES, .max_wait_ns = 7 * 24 * 3600 * SECOND_NS};
    policy.order.ranking.name = row->ranking;
    policy.backfill.reservations = row->reservations;
    policy.preemption.on = !row->no_preemption;
    return measure_median(b, &policy, ret);
}

static int print(struct bench_queue *b)
{
    static const struct table_column columns[] = {
        {"POLICY",      TABLE_PLAIN},
        {"GOAL",        TABLE_RIGHT},
        {"MEASURED",    TABLE_RIGHT},
        {"",            TABLE_PLAIN},
        {"FREEZE",      TABLE_RIGHT},
        {"PLAN",        TABLE_RIGHT},
        {"REASONS",     TABLE_RIGHT},
        {"PLACED",      TABLE_RIGHT},
        {"WAITING",     TABLE_RIGHT},
        {"RESERVED",    TABLE_RIGHT},
        {"FINGERPRINT", TABLE_RIGHT},
    };
    struct table t;
    int rc = 0;
    table_init(&t, b->cli, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && rc == 0; i++) {
        struct measured m = {0};
        if (b->values->only.n && b->values->only.n != i + 1)
            continue;
        rc = measure_row(b, &rows[i], &m);
        table_row(&t);
        table_cell(&t, 0, COLOR_NONE, "%s", rows[i].what);
        table_cell(&t, 1, COLOR_NONE, "%s", rows[i].goal > 0 ? show_seconds(rows[i].goal).text : "");
        table_cell(&t, 2, COLOR_NONE, "%s", show_seconds(m.all).text);
        if (rows[i].goal > 0)
            table_cell(&t, 3, m.all <= rows[i].goal ? COLOR_GREEN : COLOR_RED, "%s",
                       m.all <= rows[i].goal ? "met" : "missed");
        table_cell(&t, 4, COLOR_NONE, "%s", show_seconds(m.freeze).text);
        table_cell(&t, 5, COLOR_NONE, "%s", show_seconds(m.plan).text);
        table_cell(&t, 6, COLOR_NONE, "%s", show_seconds(m.reasons).text);
        table_cell(&t, 7, COLOR_NONE, "%s", show_count(m.placed).text);
        table_cell(&t, 8, COLOR_NONE, "%s", show_count(m.waiting).text);
        table_cell(&t, 9, COLOR_NONE, "%s", show_count(m.reserved).text);
        table_cell(&t, 10, COLOR_NONE, "%016" PRIx64, m.hash);
    }
    if (rc == 0)
        table_print(&t);
    table_done(&t);
    return rc;
}

/* Measures the fixed cost of a planning cycle. */
static int print_events(struct bench_queue *b)
{
    struct bench_event m = {0};
    if (b->values->events.n == 0 || b->values->only.n)
        return 0;
    int rc = bench_event(b->values->events.n, b->values->seed.n, &m, &b->err);
    double n = (double)m.events, all = (m.freeze + m.plan + m.apply + m.free) / n;
    if (rc == 0)
        (void)fprintf(
            b->cli->out,
            "One node, 100 jobs run, 100 wait, fifo, 1 reservation: %s a decision (freeze %s, plan %s, apply %s, "
            "free %s), %s a second; fingerprint %016" PRIx64 "\n",
            show_seconds(all).text, show_seconds(m.freeze / n).text, show_seconds(m.plan / n).text,
            show_seconds(m.apply / n).text, show_seconds(m.free / n).text, show_count((uint64_t)(1 / all)).text,
            m.hash);
    return rc;
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    struct bench_queue b = {.cli = cli, .values = values, .next = 1};
    (void)operands;
    b.dice = b.values->seed.n;
    b.cluster = berth_cluster_new();
    int rc = put_nodes(&b);
    if (rc == 0)
        rc = put_quotas(&b);
    if (rc == 0)
        rc = put_running(&b);
    if (rc == 0)
        rc = put_waiting(&b);
    if (rc == 0) {
        (void)fprintf(cli->out, "%s jobs wait, %s run, %s nodes; median of %s plans each\n",
                      show_count(b.values->jobs.n).text, show_count(b.running).text, show_count(b.values->nodes.n).text,
                      show_count(b.values->runs.n).text);
        rc = print(&b);
    }
    if (rc == 0)
        rc = print_events(&b);
    berth_cluster_free(b.cluster);
    return rc == 0 ? EXIT_OK : cli_fail(cli, EXIT_FAILED, "%s", b.err.text);
}

const struct command bench_queue_command = {
    .name = "bench queue",
    .operands = "",
    .summary = "Benchmark plans with a long queue: order, quotas, backfilling, preemption, reasons.",
    .text = "Uses one core. A missed goal is not an error.",
    .section = SECTION_FILES,
    .options = options,
    .options_len = sizeof options / sizeof options[0],
    .defaults = &defaults,
    .values_size = sizeof defaults,
    .run = run,
};
