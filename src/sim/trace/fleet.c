/* fleet.c - nodes from a short description, or from a cluster file. */
#include "sim/trace/fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/text/quantity.h"

#define GIB ((int64_t)1 << 30)

enum { GPU_CORES = 16, GPU_GIB = 64, CORE_GIB = 4, CORES_MAX = 1000000 };

void sim_fleet_init(struct sim_fleet *f)
{
    *f = (struct sim_fleet){0};
    arena_init(&f->arena);
}

void sim_fleet_done(struct sim_fleet *f)
{
    arena_done(&f->arena);
    vec_done(&f->nodes);
    cluster_nodes_done(&f->file);
}

/* ---- a node ----------------------------------------------------------------------------------------------------- */

struct has {
    int64_t cores, gpus, memory_bytes; /* -1: not given */
};

static void node_add(struct sim_fleet *f, const char *id, const struct has *has)
{
    struct berth_amount *amounts = ARENA_ARRAY(&f->arena, struct berth_amount, 2);
    struct berth_node node = {
        .id = id,
        .rank = (uint32_t)f->nodes.len,
        .gpus = ARENA_ARRAY(&f->arena, struct berth_gpu, (size_t)has->gpus + 1),
        .gpus_len = (size_t)has->gpus,
        .allocatable = amounts,
    };
    amounts[node.allocatable_len++] = (struct berth_amount){"cpu", has->cores * 1000};
    if (has->memory_bytes > 0)
        amounts[node.allocatable_len++] = (struct berth_amount){"memory", has->memory_bytes};
    vec_push(&f->nodes, node);
}

void sim_fleet_machine(struct sim_fleet *f, int64_t procs)
{
    node_add(f, "machine", &(struct has){procs, 0, 0});
}

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

static bool number(const char *text, int64_t low, int64_t high, int64_t *ret)
{
    int64_t n;
    if (!str_parse_i64(text, &n) || n < low || n > high)
        return false;
    *ret = n;
    return true;
}

/* Parses a resource: "gpu8", "cpu64", "mem512Gi". */
static int part_read(const char *part, struct has *has, struct berth_err *err)
{
    struct berth_err why;
    if (strncmp(part, "gpu", 3) == 0 && number(part + 3, 1, BERTH_NODE_GPUS_MAX, &has->gpus))
        return 0;
    if (strncmp(part, "cpu", 3) == 0 && number(part + 3, 1, CORES_MAX, &has->cores))
        return 0;
    if (strncmp(part, "mem", 3) == 0 && quantity_parse_text("memory", part + 3, &has->memory_bytes, &why) == 0 &&
        has->memory_bytes > 0)
        return 0;
    return err_set(err, EINVAL, "\"%s\": expected gpuN (1 to %d), cpuN or memSIZE, like gpu8, cpu64 or mem512Gi", part,
                   BERTH_NODE_GPUS_MAX);
}

/* Parses a kind of node: "4xgpu8+cpu96". */
static int kind_read(char *text, int64_t *ret_count, struct has *has, struct berth_err *err)
{
    char *x = strchr(text, 'x'), *save = NULL;
    *ret_count = 1;
    if (x && text[0] >= '0' && text[0] <= '9') {
        *x = '\0';
        if (!number(text, 1, SIM_FLEET_NODES_MAX, ret_count))
            return err_set(err, EINVAL, "\"%s\": expected how many nodes, 1 to %d", text, SIM_FLEET_NODES_MAX);
        text = x + 1;
    }
    *has = (struct has){-1, -1, -1};
    char *part = strtok_r(text, "+", &save);
    if (!part)
        return err_set(err, EINVAL, "expected what the nodes have, like 4xgpu8 or 10xcpu64");
    for (; part; part = strtok_r(NULL, "+", &save)) {
        int rc = part_read(part, has, err);
        if (rc)
            return rc;
    }
    has->gpus = has->gpus > 0 ? has->gpus : 0;
    if (has->cores < 0)
        has->cores = has->gpus ? has->gpus * GPU_CORES : 1;
    if (has->memory_bytes < 0)
        has->memory_bytes = (has->gpus ? has->gpus * GPU_GIB : has->cores * CORE_GIB) * GIB;
    return 0;
}

int sim_fleet_add(struct sim_fleet *f, const char *text, struct berth_err *err)
{
    CLEANUP(mem) char *copy = mem_strdup(text);
    char *save = NULL;
    int rc = *text ? 0 : err_set(err, EINVAL, "expected nodes, like 4xgpu8,10xcpu64");
    for (char *kind = strtok_r(copy, ",", &save); kind && rc == 0; kind = strtok_r(NULL, ",", &save)) {
        struct has has = {0};
        int64_t count = 0;
        rc = kind_read(kind, &count, &has, err);
        if (rc == 0 && (int64_t)f->nodes.len + count > SIM_FLEET_NODES_MAX)
            rc = err_set(err, EINVAL, "more than %d nodes", SIM_FLEET_NODES_MAX);
        for (int64_t i = 0; i < count && rc == 0; i++)
            node_add(f, arena_fmt(&f->arena, "%s-%06zu", has.gpus ? "gpu" : "cpu", f->nodes.len + 1), &has);
    }
    return rc;
}

int sim_fleet_file(struct sim_fleet *f, const char *path, struct berth_err *err)
{
    int rc = cluster_nodes_read(path, &f->file, err);
    for (size_t i = 0; i < f->file.nodes_len && rc == 0; i++)
        vec_push(&f->nodes, f->file.nodes[i]);
    if (rc == 0 && f->nodes.len == 0)
        rc = err_set(err, EINVAL, "%s: there are no nodes in it", path);
    return rc;
}

/* ---- description ------------------------------------------------------------------------------------------------ */

struct sim_fleet_total sim_fleet_total(const struct sim_fleet *f)
{
    struct sim_fleet_total t = {0};
    for (size_t i = 0; i < f->nodes.len; i++) {
        const struct berth_node *node = &f->nodes.at[i];
        t.gpus += (int64_t)node->gpus_len;
        for (size_t k = 0; k < node->allocatable_len; k++) {
            const struct berth_amount *a = &node->allocatable[k];
            t.cpu_milli += strcmp(a->resource, "cpu") == 0 ? a->amount : 0;
            t.memory_bytes += strcmp(a->resource, "memory") == 0 ? a->amount : 0;
        }
    }
    return t;
}

void sim_fleet_describe(const struct sim_fleet *f, struct str *s)
{
    struct sim_fleet_total t = sim_fleet_total(f);
    str_addf(s, "%zu node%s: ", f->nodes.len, f->nodes.len == 1 ? "" : "s");
    if (t.gpus)
        str_addf(s, "%" PRId64 " GPU%s, ", t.gpus, t.gpus == 1 ? "" : "s");
    str_addf(s, "%" PRId64 " core%s", t.cpu_milli / 1000, t.cpu_milli == 1000 ? "" : "s");
    if (t.memory_bytes)
        str_addf(s, ", %.4g %s of memory",
                 (double)t.memory_bytes / (double)(t.memory_bytes >= 1024 * GIB ? 1024 * GIB : GIB),
                 t.memory_bytes >= 1024 * GIB ? "TiB" : "GiB");
}

const struct berth_profile *sim_fleet_profile(const struct sim_fleet *f, const char *name)
{
    for (size_t i = 0; i < f->file.profiles_len; i++)
        if (strcmp(f->file.profiles[i].name, name) == 0)
            return &f->file.profiles[i];
    return berth_profile_find(name);
}
