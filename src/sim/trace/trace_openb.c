/* trace_openb.c - reads the files of the openb cluster. */
#include "sim/trace/trace_openb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "berth.h"
#include "sim/trace/trace_csv.h"

enum { ROWS_MAX = 10000000, MEMORY_MIB_MAX = 1 << 30, CPU_MILLI_MAX = 1 << 30 };

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static const struct sim_column node_columns[] = {
    {"sn",         SIM_CELL_WORD,  offsetof(struct openb_node, name),       true,  0, 0                  },
    {"cpu_milli",  SIM_CELL_WHOLE, offsetof(struct openb_node, cpu_milli),  true,  0, CPU_MILLI_MAX      },
    {"memory_mib", SIM_CELL_WHOLE, offsetof(struct openb_node, memory_mib), true,  0, MEMORY_MIB_MAX     },
    {"gpu",        SIM_CELL_WHOLE, offsetof(struct openb_node, gpus),       true,  0, BERTH_NODE_GPUS_MAX},
    {"model",      SIM_CELL_WORD,  offsetof(struct openb_node, model),      false, 0, 0                  },
};

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct openb_node *)a)->name, ((const struct openb_node *)b)->name);
}

static int read_nodes(struct openb_trace *t, const char *path, struct berth_err *err)
{
    CLEANUP(sim_csv) struct sim_csv csv = {0};
    VEC(struct openb_node) nodes = {0};
    int rc = sim_csv_open(&csv, path, node_columns, sizeof node_columns / sizeof *node_columns, false, err);
    while (rc == 0) {
        struct openb_node node = {.name = "", .model = ""};
        int more = sim_csv_next(&csv, &node, err);
        if (more <= 0) {
            rc = more;
            break;
        }
        if (!*node.name)
            rc = sim_lines_error(&csv.lines, err, "a node without a name");
        node.name = arena_strdup(&t->arena, node.name);
        node.model = arena_strdup(&t->arena, node.model);
        vec_push(&nodes, node);
    }
    t->nodes = arena_dup(&t->arena, nodes.at, nodes.len * sizeof *nodes.at);
    t->nodes_len = nodes.len;
    vec_done(&nodes);
    qsort(t->nodes, t->nodes_len, sizeof *t->nodes, compare_nodes);
    for (size_t i = 1; rc == 0 && i < t->nodes_len; i++)
        if (strcmp(t->nodes[i - 1].name, t->nodes[i].name) == 0)
            rc = err_set(err, EINVAL, "%s: duplicate node %s", path, t->nodes[i].name);
    return rc;
}

/* ---- pods ------------------------------------------------------------------------------------------------------- */

static const struct sim_column pod_columns[] = {
    {"name",       SIM_CELL_WORD,  offsetof(struct openb_pod, name),       true,  0, 0                  },
    {"cpu_milli",  SIM_CELL_WHOLE, offsetof(struct openb_pod, cpu_milli),  true,  0, CPU_MILLI_MAX      },
    {"memory_mib", SIM_CELL_WHOLE, offsetof(struct openb_pod, memory_mib), true,  0, MEMORY_MIB_MAX     },
    {"num_gpu",    SIM_CELL_WHOLE, offsetof(struct openb_pod, gpus),       true,  0, BERTH_NODE_GPUS_MAX},
    {"gpu_milli",  SIM_CELL_WHOLE, offsetof(struct openb_pod, gpu_milli),  true,  0, BERTH_GPU_MILLI    },
    {"gpu_spec",   SIM_CELL_WORD,  offsetof(struct openb_pod, spec),       false, 0, 0                  },
};

static int compare_pods(const void *a, const void *b)
{
    return strcmp(((const struct openb_pod *)a)->name, ((const struct openb_pod *)b)->name);
}

/* Splits "A|B" to a list; a repeated model is added once. */
static void list_models(struct openb_trace *t, struct openb_pod *pod)
{
    size_t most = 1;
    for (const char *p = pod->spec; *p; p++)
        most += *p == '|';
    const char **models = ARENA_ARRAY(&t->arena, const char *, most);
    for (const char *p = pod->spec; *p;) {
        size_t len = strcspn(p, "|"), known = 0;
        while (known < pod->models_len && (strlen(models[known]) != len || strncmp(models[known], p, len) != 0))
            known++;
        if (len && known == pod->models_len)
            models[pod->models_len++] = arena_strndup(&t->arena, p, len);
        p += len + (p[len] == '|');
    }
    pod->models = models;
}

static int check_pod(const struct sim_csv *csv, struct openb_pod *pod, struct berth_err *err)
{
    if (!*pod->name)
        return sim_lines_error(&csv->lines, err, "a pod without a name");
    if (pod->gpus == 0)
        pod->gpu_milli = 0;
    else if (pod->gpu_milli == 0)
        return sim_lines_error(&csv->lines, err, "pod %s requests 0 thousandths of a GPU; expected 1 to %d", pod->name,
                               BERTH_GPU_MILLI);
    if (pod->gpus > 1 && pod->gpu_milli != BERTH_GPU_MILLI)
        return sim_lines_error(&csv->lines, err, "pod %s requests shares of several GPUs; a share is a part of one GPU",
                               pod->name);
    return 0;
}

static int read_pods(struct openb_trace *t, const char *path, struct berth_err *err)
{
    CLEANUP(sim_csv) struct sim_csv csv = {0};
    VEC(struct openb_pod) pods = {0};
    int rc = sim_csv_open(&csv, path, pod_columns, sizeof pod_columns / sizeof *pod_columns, false, err);
    while (rc == 0) {
        struct openb_pod pod = {.name = "", .spec = ""};
        int more = sim_csv_next(&csv, &pod, err);
        if (more <= 0) {
            rc = more;
            break;
        }
        rc = check_pod(&csv, &pod, err);
        pod.name = arena_strdup(&t->arena, pod.name);
        pod.spec = arena_strdup(&t->arena, pod.gpus ? pod.spec : "");
        list_models(t, &pod);
        vec_push(&pods, pod);
    }
    t->pods = arena_dup(&t->arena, pods.at, pods.len * sizeof *pods.at);
    t->pods_len = pods.len;
    vec_done(&pods);
    qsort(t->pods, t->pods_len, sizeof *t->pods, compare_pods);
    for (size_t i = 1; rc == 0 && i < t->pods_len; i++)
        if (strcmp(t->pods[i - 1].name, t->pods[i].name) == 0)
            rc = err_set(err, EINVAL, "%s: duplicate pod %s", path, t->pods[i].name);
    return rc;
}

/* ---- arrivals --------------------------------------------------------------------------------------------------- */

/* Reads "# WHAT N ..." and N numbers below `below`. */
static int read_part(struct sim_lines *l, const char *what, size_t below, uint32_t **ret, size_t *ret_len,
                     struct openb_trace *t, struct berth_err *err)
{
    char word[16] = "";
    size_t len = 0;
    int64_t number;
    int rc = sim_lines_next(l, err);
    if (rc < 0)
        return rc;
    if (rc == 0 || sscanf(l->text, "# %15s %zu", word, &len) != 2 || strcmp(word, what) != 0 || len > ROWS_MAX)
        return sim_lines_error(l, err, "expected \"# %s\" and a number", what);
    uint32_t *at = ARENA_ARRAY(&t->arena, uint32_t, len);
    for (size_t i = 0; i < len; i++) {
        rc = sim_lines_next(l, err);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return sim_lines_error(l, err, "the file ends after %zu of %zu %s", i, len, what);
        if (!str_parse_i64(l->text, &number) || number < 0 || (uint64_t)number >= below)
            return sim_lines_error(l, err, "\"%.40s\" is not a number from 0 to %zu", l->text, below - 1);
        at[i] = (uint32_t)number;
    }
    *ret = at;
    *ret_len = len;
    return 0;
}

static int read_arrivals(struct openb_trace *t, const char *path, struct berth_err *err)
{
    CLEANUP(sim_lines) struct sim_lines l = {0};
    uint32_t *ranks = NULL;
    size_t len = 0;
    int rc = sim_lines_open(&l, path, err);
    if (rc == 0)
        rc = read_part(&l, "pods", t->pods_len, &t->arrivals, &t->arrivals_len, t, err);
    if (rc == 0)
        rc = read_part(&l, "nodes", t->nodes_len, &ranks, &len, t, err);
    if (rc)
        return rc;
    if (len != t->nodes_len)
        return sim_lines_error(&l, err, "ranks of %zu nodes; there are %zu", len, t->nodes_len);
    for (size_t i = 0; i < len; i++)
        t->nodes[i].rank = ranks[i];
    return 0;
}

int openb_trace_read(struct openb_trace *t, const char *nodes, const char *pods, const char *arrivals,
                     struct berth_err *err)
{
    *t = (struct openb_trace){0};
    arena_init(&t->arena);
    int rc = read_nodes(t, nodes, err);
    if (rc == 0)
        rc = read_pods(t, pods, err);
    return rc ? rc : read_arrivals(t, arrivals, err);
}

void openb_trace_done(struct openb_trace *t)
{
    arena_done(&t->arena);
    *t = (struct openb_trace){0};
}
