#include "bench/plan/suite.h"

#define ROWS(a) (sizeof(a) / sizeof((a)[0]))

/* nodes, pods, workloads, shapes */
#define CASE(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__, .gpu = false                                                                                      \
    }
#define CASE_RICH(...)                                                                                                 \
    {                                                                                                                  \
        __VA_ARGS__, .gpu = true, .constraints = true                                                                  \
    }

/* ---- the full suite --------------------------------------------------------------------------------------------- */

enum {
    LARGE,
    LARGE_RICH,
    ONES,
    SMALL,
    SMALL_RICH,
    SMALL_WIDE,
    SINGLES,
    GROW_NODES,
    GROW_PODS = GROW_NODES + 4,
    GROW_WORKLOADS = GROW_PODS + 4,
    GROW_SHAPES = GROW_WORKLOADS + 4,
    CASES = GROW_SHAPES + 4,
};

static const struct bench_size full_cases[CASES] = {
    [LARGE] = CASE(100000, 1000000, 10000, 1000),
    [LARGE_RICH] = CASE_RICH(100000, 1000000, 10000, 1000),
    [ONES] = CASE(100000, 1000000, 1000000, 1000),
    [SMALL] = CASE(5000, 100000, 10000, 1000),
    [SMALL_RICH] = CASE_RICH(5000, 100000, 10000, 1000),
    [SMALL_WIDE] = CASE(5000, 100000, 1000, 1000),
    [SINGLES] = CASE(5000, 50000, 50000, 1000),
    [GROW_NODES] = CASE(12500, 500000, 10000, 1000),
    CASE(25000, 500000, 10000, 1000),
    CASE(50000, 500000, 10000, 1000),
    CASE(100000, 500000, 10000, 1000),
    [GROW_PODS] = CASE(25000, 125000, 10000, 1000),
    CASE(25000, 250000, 10000, 1000),
    CASE(25000, 500000, 10000, 1000),
    CASE(25000, 1000000, 10000, 1000),
    [GROW_WORKLOADS] = CASE(12500, 62500, 6250, 1000),
    CASE(12500, 125000, 12500, 1000),
    CASE(12500, 250000, 25000, 1000),
    CASE(12500, 500000, 50000, 1000),
    [GROW_SHAPES] = CASE(50000, 500000, 10000, 250),
    CASE(50000, 500000, 10000, 500),
    CASE(50000, 500000, 10000, 1000),
    CASE(50000, 500000, 10000, 2000),
};

static const struct bench_goal full_goals[] = {
    {"1M pods of 10k workloads, 1k shapes, 100k nodes", LARGE,      0,     MEASURE_SECONDS,   0.3   },
    {"  peak memory",                                   LARGE,      0,     MEASURE_BYTES,     1e9   },
    {"  one more pod",                                  LARGE,      0,     MEASURE_ONE_MORE,  0.050 },
    {"  with GPUs, spread and anti-affinity",           LARGE_RICH, LARGE, MEASURE_RATIO,     3     },
    {"1M workloads of one pod, 100k nodes",             ONES,       0,     MEASURE_SECONDS,   3     },
    {"100k pods of 1k workloads, 5k nodes",             SMALL_WIDE, 0,     MEASURE_SECONDS,   0.025 },
    {"100k pods of 10k workloads, 5k nodes",            SMALL,      0,     MEASURE_SECONDS,   0.025 },
    {"  one more pod",                                  SMALL,      0,     MEASURE_ONE_MORE,  0.005 },
    {"  with GPUs, spread and anti-affinity",           SMALL_RICH, SMALL, MEASURE_RATIO,     3     },
    {"50k workloads of one pod, 5k nodes: one more",    SINGLES,    0,     MEASURE_ONE_MORE,  0.0003},
    {"  5k more",                                       SINGLES,    0,     MEASURE_MANY_MORE, 0.060 },
};

static const struct bench_curve curves[] = {
    {"nodes",                      GROW_NODES,     4},
    {"pods, in as many workloads", GROW_PODS,      4},
    {"pods, ten to each workload", GROW_WORKLOADS, 4},
    {"shapes",                     GROW_SHAPES,    4},
};

/* ---- the quick suite: a tenth of the size and of the time ------------------------------------------------------- */

static const struct bench_size quick_cases[CASES] = {
    [LARGE] = CASE(10000, 100000, 1000, 100),
    [LARGE_RICH] = CASE_RICH(10000, 100000, 1000, 100),
    [ONES] = CASE(10000, 100000, 100000, 100),
    [SMALL] = CASE(5000, 100000, 10000, 1000),
    [SMALL_RICH] = CASE_RICH(5000, 100000, 10000, 1000),
    [SMALL_WIDE] = CASE(5000, 100000, 1000, 1000),
    [SINGLES] = CASE(5000, 50000, 50000, 1000),
    [GROW_NODES] = CASE(2500, 100000, 1000, 100),
    CASE(5000, 100000, 1000, 100),
    CASE(10000, 100000, 1000, 100),
    CASE(20000, 100000, 1000, 100),
    [GROW_PODS] = CASE(2500, 12500, 1000, 100),
    CASE(2500, 25000, 1000, 100),
    CASE(2500, 50000, 1000, 100),
    CASE(2500, 100000, 1000, 100),
    [GROW_WORKLOADS] = CASE(1250, 6250, 625, 100),
    CASE(1250, 12500, 1250, 100),
    CASE(1250, 25000, 2500, 100),
    CASE(1250, 50000, 5000, 100),
    [GROW_SHAPES] = CASE(5000, 50000, 1000, 50),
    CASE(5000, 50000, 1000, 100),
    CASE(5000, 50000, 1000, 200),
    CASE(5000, 50000, 1000, 400),
};

static const struct bench_goal quick_goals[] = {
    {"100k pods of 1k workloads, 100 shapes, 10k nodes", LARGE,      0,     MEASURE_SECONDS,   0.030 },
    {"  peak memory",                                    LARGE,      0,     MEASURE_BYTES,     1e8   },
    {"  one more pod",                                   LARGE,      0,     MEASURE_ONE_MORE,  0.005 },
    {"  with GPUs, spread and anti-affinity",            LARGE_RICH, LARGE, MEASURE_RATIO,     3     },
    {"100k workloads of one pod, 10k nodes",             ONES,       0,     MEASURE_SECONDS,   0.300 },
    {"100k pods of 1k workloads, 5k nodes",              SMALL_WIDE, 0,     MEASURE_SECONDS,   0.025 },
    {"100k pods of 10k workloads, 5k nodes",             SMALL,      0,     MEASURE_SECONDS,   0.025 },
    {"  one more pod",                                   SMALL,      0,     MEASURE_ONE_MORE,  0.005 },
    {"  with GPUs, spread and anti-affinity",            SMALL_RICH, SMALL, MEASURE_RATIO,     3     },
    {"50k workloads of one pod, 5k nodes: one more",     SINGLES,    0,     MEASURE_ONE_MORE,  0.0003},
    {"  5k more",                                        SINGLES,    0,     MEASURE_MANY_MORE, 0.060 },
};

static const struct bench_suite suites[] = {
    {full_cases,  CASES, full_goals,  ROWS(full_goals),  curves, ROWS(curves)},
    {quick_cases, CASES, quick_goals, ROWS(quick_goals), curves, ROWS(curves)},
};

const struct bench_suite *bench_suite_get(bool quick)
{
    return &suites[quick];
}

static bool same_size(const struct bench_size *a, const struct bench_size *b)
{
    return a->nodes == b->nodes && a->pods == b->pods && a->workloads == b->workloads && a->shapes == b->shapes &&
           a->gpu == b->gpu && a->constraints == b->constraints;
}

const struct bench_goal *bench_goal_find(const struct bench_size *size, enum bench_measure measure)
{
    for (size_t s = 0; s < ROWS(suites); s++) {
        for (size_t i = 0; i < suites[s].goals_len; i++) {
            const struct bench_goal *goal = &suites[s].goals[i];
            if (goal->measure == measure && same_size(&suites[s].cases[goal->of], size))
                return goal;
        }
    }
    return NULL;
}

bool bench_suite_asks(const struct bench_suite *suite, size_t i, enum bench_measure measure)
{
    for (size_t g = 0; g < suite->goals_len; g++) {
        if (suite->goals[g].of == i && suite->goals[g].measure == measure)
            return true;
    }
    return false;
}
