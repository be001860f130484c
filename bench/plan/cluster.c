#include "bench/plan/cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/mem.h"

#define GIB ((int64_t)1 << 30)
#define KIB ((int64_t)1 << 10)

enum {
    ZONES = 8,
    RACK_NODES = 40,
    DEMAND_PERCENT = 70,
    GPU_DEMAND_PERCENT = 60,
    CPU_MIN = 10,
    CPU_MAX = 16000, /* fits on the smallest node */
    ID_MAX = 32,
};
#define MEMORY_MIN ((int64_t)16 << 20)
#define MEMORY_MAX (60 * GIB)

struct hardware_kind {
    int64_t cores, memory_gib, pods;
    uint32_t gpus;
    struct berth_gpu gpu;
};

static const struct hardware_kind kinds[] = {
    {16,  64,   110, 0, {0}               },
    {16,  128,  110, 0, {0}               },
    {32,  128,  110, 4, {"L4", 24 * GIB}  },
    {32,  256,  110, 0, {0}               },
    {48,  192,  110, 0, {0}               },
    {48,  384,  110, 4, {"A10", 24 * GIB} },
    {64,  256,  250, 0, {0}               },
    {64,  512,  250, 0, {0}               },
    {96,  384,  250, 8, {"A100", 80 * GIB}},
    {96,  768,  250, 0, {0}               },
    {128, 512,  250, 0, {0}               },
    {128, 1024, 250, 8, {"H100", 80 * GIB}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0], KIND_GPUS_MAX = 8 };

/* splitmix64 */
struct bench_rng {
    uint64_t state;
};

static uint64_t rng_next(struct bench_rng *rng)
{
    rng->state += 0x9e3779b97f4a7c15u;
    return hash_u64(rng->state);
}

/* Returns a number below n; the modulo bias is negligible for a benchmark. */
static uint64_t rng_below(struct bench_rng *rng, uint64_t n)
{
    return rng_next(rng) % n;
}

/* Each part of the cluster has its own random sequence, so that --gpu changes no node and no shape. */
static struct bench_rng rng_for(const struct bench_size *size, uint64_t part)
{
    return (struct bench_rng){.state = hash_pair(size->seed, part)};
}

enum { PART_NODES = 1, PART_SHAPES, PART_ORDER, PART_WORKLOADS, PART_GPU, PART_CONSTRAINTS };

struct shape {
    int64_t cpu, memory;
};

struct cluster_builder {
    const struct bench_size *size;
    struct berth_cluster *cluster;
    struct shape *shapes;
    uint32_t *shape_of; /* by workload */
    struct bench_rng workload_dice, gpu_rng, constraint_rng;
    int64_t gpu_milli_left; /* that workloads may still request */
};

static uint64_t replicas_of(const struct bench_size *size, uint64_t workload)
{
    return size->pods / size->workloads + (workload < size->pods % size->workloads);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static int node_put(struct cluster_builder *m, struct bench_rng *rng, uint64_t i, struct berth_err *err)
{
    static const char *const disks[] = {"hdd", "ssd", "nvme"};
    const struct hardware_kind *kind = &kinds[i % KINDS];
    uint64_t zone = rng_below(rng, ZONES);
    uint64_t rack = rng_below(rng, m->size->nodes / ZONES / RACK_NODES + 1);
    char id[ID_MAX], zone_id[ID_MAX], rack_id[ID_MAX], generation[ID_MAX];
    struct berth_gpu gpus[KIND_GPUS_MAX];

    snprintf(id, sizeof id, "node-%06" PRIu64, i);
    snprintf(zone_id, sizeof zone_id, "zone-%" PRIu64, zone);
    snprintf(rack_id, sizeof rack_id, "rack-%" PRIu64 "-%" PRIu64, zone, rack);
    snprintf(generation, sizeof generation, "%" PRIu64, 1 + rng_below(rng, 4));
    for (uint32_t g = 0; g < kind->gpus; g++)
        gpus[g] = kind->gpu;
    struct berth_amount allocatable[] = {
        {"cpu",    kind->cores * 1000    },
        {"memory", kind->memory_gib * GIB},
        {"pods",   kind->pods            },
    };
    struct berth_label labels[] = {
        {"disk", disks[rng_below(rng, 3)]},
        {"generation",      generation             },
    };
    struct berth_node node = {
        .id = id,
        .zone = zone_id,
        .rack = rack_id,
        .arch = "amd64",
        .allocatable = allocatable,
        .allocatable_len = 3,
        .labels = labels,
        .labels_len = 2,
        .gpus = gpus,
        .gpus_len = kind->gpus,
    };
    return berth_node_put(m->cluster, &node, err);
}

static int nodes_put(struct cluster_builder *m, struct berth_err *err)
{
    struct bench_rng rng = rng_for(m->size, PART_NODES);

    for (uint64_t i = 0; i < m->size->nodes; i++) {
        int rc = node_put(m, &rng, i, err);
        if (rc != 0)
            return rc;
        m->gpu_milli_left += (int64_t)kinds[i % KINDS].gpus * BERTH_GPU_MILLI * GPU_DEMAND_PERCENT / 100;
    }
    return 0;
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Returns the part of `total` that corresponds to `factor` of `sum`. */
static int64_t share(int64_t total, int64_t factor, int64_t sum)
{
    return (int64_t)((__int128)total * factor / sum);
}

/* Assigns shapes to workloads, about the same number of workloads to each shape. */
static void shapes_deal(struct cluster_builder *m)
{
    struct bench_rng rng = rng_for(m->size, PART_ORDER);

    for (uint64_t i = 0; i < m->size->workloads; i++)
        m->shape_of[i] = (uint32_t)(i % m->size->shapes);
    for (uint64_t i = m->size->workloads; i > 1; i--) {
        uint64_t j = rng_below(&rng, i);
        uint32_t t = m->shape_of[i - 1];
        m->shape_of[i - 1] = m->shape_of[j];
        m->shape_of[j] = t;
    }
}

/* Draws the shapes' proportions, then scales them to the demand. */
static void shapes_draw(struct cluster_builder *m)
{
    struct bench_rng rng = rng_for(m->size, PART_SHAPES);
    int64_t cpu_total = 0, memory_total = 0, cpu_sum = 0, memory_sum = 0;

    for (uint64_t i = 0; i < m->size->nodes; i++) {
        cpu_total += kinds[i % KINDS].cores * 1000;
        memory_total += kinds[i % KINDS].memory_gib * GIB;
    }
    for (uint64_t s = 0; s < m->size->shapes; s++) {
        /* In thousandths of the median size: one of four octaves, then a position within it; half to double as much
         * memory. */
        int64_t factor = (250 << rng_below(&rng, 4)) * (int64_t)(1000 + rng_below(&rng, 1000)) / 1000;
        m->shapes[s].cpu = factor;
        m->shapes[s].memory = factor * (int64_t)(500 + rng_below(&rng, 1500)) / 1000;
    }
    for (uint64_t w = 0; w < m->size->workloads; w++) {
        const struct shape *shape = &m->shapes[m->shape_of[w]];
        cpu_sum += shape->cpu * (int64_t)replicas_of(m->size, w);
        memory_sum += shape->memory * (int64_t)replicas_of(m->size, w);
    }
    for (uint64_t s = 0; s < m->size->shapes; s++) {
        struct shape *shape = &m->shapes[s];
        int64_t cpu = share(cpu_total / 100 * DEMAND_PERCENT, shape->cpu, cpu_sum);
        int64_t memory = share(memory_total / 100 * DEMAND_PERCENT, shape->memory, memory_sum);
        shape->cpu = clamp(cpu, CPU_MIN, CPU_MAX) / CPU_MIN * CPU_MIN;
        /* The low bits make all shapes distinct. */
        int64_t step = KIB * (int64_t)m->size->shapes;
        shape->memory = clamp(memory, MEMORY_MIN, MEMORY_MAX) / step * step + KIB * (int64_t)(s + 1);
    }
}

/* ---- workloads -------------------------------------------------------------------------------------------------- */

/* Draws a quarter or half of a GPU, one GPU, or two or four; a tenth of one once the target for GPUs is reached. */
static struct berth_gpu_need gpu_draw(struct cluster_builder *m, uint64_t replicas)
{
    uint64_t draw = rng_below(&m->gpu_rng, 10);
    struct berth_gpu_need need = {.count = 1};

    if (draw < 5) {
        need.milli = draw < 3 ? 250 : 500;
        need.memory_bytes = 4 * GIB;
    } else if (draw >= 8) {
        need.count = draw == 8 ? 2 : 4;
    }
    int64_t each = need.milli ? need.milli : (int64_t)need.count * BERTH_GPU_MILLI;
    if (each * (int64_t)replicas > m->gpu_milli_left) {
        need = (struct berth_gpu_need){.count = 1, .milli = 100, .memory_bytes = GIB};
        each = need.milli;
    }
    m->gpu_milli_left -= each * (int64_t)replicas;
    return need;
}

static int workload_put(struct cluster_builder *m, uint64_t w, struct berth_err *err)
{
    static const int32_t priorities[] = {0, 100, 500, 1000, 2000};
    const struct bench_size *size = m->size;
    uint64_t replicas = replicas_of(size, w);
    char id[ID_MAX];

    snprintf(id, sizeof id, "app-%07" PRIu64, w);
    struct berth_amount requests[] = {
        {"cpu",    m->shapes[m->shape_of[w]].cpu   },
        {"memory", m->shapes[m->shape_of[w]].memory},
    };
    struct berth_label label = {"app", id};
    struct berth_workload workload = {
        .id = id,
        .replicas = (uint32_t)replicas,
        .priority = priorities[rng_below(&m->workload_dice, 5)],
        .created_ns = BENCH_NOW_NS - (int64_t)rng_below(&m->workload_dice, 86400) * 1000000000,
        .labels = &label,
        .labels_len = 1,
        .shape = {.requests = requests, .requests_len = 2},
    };
    if (size->gpu && w % (size->constraints ? 20 : 10) == 3)
        workload.shape.gpu = gpu_draw(m, replicas);

    const char *values[] = {id};
    struct berth_expr own = {.key = "app", .match = BERTH_IN, .values = values, .values_len = 1};
    struct berth_term select = {.exprs = &own, .exprs_len = 1};
    struct berth_spread spread = {.topology = "zone", .select = select, .max_skew = 1};
    struct berth_affinity apart = {.topology = "node", .select = select, .apart = true};
    if (size->constraints && w % (size->gpu ? 20 : 10) == 7) {
        uint64_t draw = rng_below(&m->constraint_rng, 3); /* spread, anti-affinity, or both */
        spread.max_skew = 1 + (uint32_t)rng_below(&m->constraint_rng, 2);
        workload.shape.spread = &spread;
        workload.shape.near = &apart;
        workload.shape.near_len = draw != 0 && replicas * 4 <= size->nodes; /* only if enough nodes exist */
        workload.shape.spread_len = draw != 1 || workload.shape.near_len == 0;
    }
    return berth_workload_put(m->cluster, &workload, err);
}

int bench_size_check(const struct bench_size *size, struct berth_err *err)
{
    if (size->nodes == 0 || size->pods == 0 || size->workloads == 0 || size->shapes == 0)
        return err_set(err, EINVAL, "nodes, pods, workloads and shapes must be at least 1");
    if (size->workloads > size->pods)
        return err_set(err, EINVAL, "%" PRIu64 " workloads need at least as many pods, not %" PRIu64, size->workloads,
                       size->pods);
    if (size->shapes > size->workloads)
        return err_set(err, EINVAL, "%" PRIu64 " shapes need at least as many workloads, not %" PRIu64, size->shapes,
                       size->workloads);
    return 0;
}

static int parts_put(struct cluster_builder *m, struct berth_err *err)
{
    int rc = nodes_put(m, err);

    shapes_deal(m);
    shapes_draw(m);
    for (uint64_t w = 0; rc == 0 && w < m->size->workloads; w++)
        rc = workload_put(m, w, err);
    return rc;
}

int bench_cluster_make(const struct bench_size *size, struct berth_cluster **ret, struct berth_err *err)
{
    int rc = bench_size_check(size, err);
    if (rc != 0)
        return rc;
    CLEANUP(mem) struct shape *shapes = mem_array(size->shapes, sizeof *shapes);
    CLEANUP(mem) uint32_t *shape_of = mem_array(size->workloads, sizeof *shape_of);
    struct cluster_builder m = {
        .size = size,
        .cluster = berth_cluster_new(),
        .shapes = shapes,
        .shape_of = shape_of,
        .workload_dice = rng_for(size, PART_WORKLOADS),
        .gpu_rng = rng_for(size, PART_GPU),
        .constraint_rng = rng_for(size, PART_CONSTRAINTS),
    };

    rc = parts_put(&m, err);
    if (rc != 0) {
        berth_cluster_free(m.cluster);
        return rc;
    }
    *ret = m.cluster;
    return 0;
}

static void more_id(uint64_t i, char *to)
{
    snprintf(to, ID_MAX, "more-%07" PRIu64, i);
}

int bench_more_put(struct berth_cluster *cluster, uint64_t len, struct berth_err *err)
{
    struct berth_amount requests[] = {
        {"cpu",    500},
        {"memory", GIB}
    };
    char id[ID_MAX];
    struct berth_label label = {"app", id};
    struct berth_workload workload = {
        .id = id,
        .replicas = 1,
        .priority = 1000,
        .created_ns = BENCH_NOW_NS,
        .labels = &label,
        .labels_len = 1,
        .shape = {.requests = requests, .requests_len = 2},
    };
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < len; i++) {
        more_id(i, id);
        requests[0].amount = 100 + (int64_t)(i % 40) * 10; /* forty different sizes */
        rc = berth_workload_put(cluster, &workload, err);
    }
    return rc;
}

int bench_more_remove(struct berth_cluster *cluster, uint64_t len, struct berth_err *err)
{
    char id[ID_MAX];
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < len; i++) {
        more_id(i, id);
        rc = berth_workload_remove(cluster, id, err);
    }
    return rc;
}
