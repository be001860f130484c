#include "cli/sim/fold.h"

#include "base/sort.h"

void fold_init(struct fold *f, enum fold_level level)
{
    *f = (struct fold){.level = level};
}

void fold_done(struct fold *f)
{
    vec_done(&f->rows);
    vec_done(&f->ordinals);
    vec_done(&f->pods);
}

static bool same_group(const struct berth_action *a, const struct berth_action *b)
{
    return a->op == b->op && a->cause == b->cause && strcmp(a->workload, b->workload) == 0 && a->waits_len == 0 &&
           b->waits_len == 0 && !(a->resource && *a->resource) && !(b->resource && *b->resource);
}

static int pod_compare_node(const void *ctx, uint32_t a, uint32_t b)
{
    const struct fold_pod *pods = ctx;
    int order = strcmp(pods[a].node, pods[b].node);

    return order ? order : (pods[a].ordinal > pods[b].ordinal) - (pods[a].ordinal < pods[b].ordinal);
}

static int pod_compare_ordinal(const void *ctx, uint32_t a, uint32_t b)
{
    const struct fold_pod *pods = ctx;

    return (pods[a].ordinal > pods[b].ordinal) - (pods[a].ordinal < pods[b].ordinal);
}

/* The node of the pods, and the number of distinct GPUs: a shared GPU counts once. */
struct pod_location {
    const char *node; /* NULL: several nodes */
    uint64_t nodes, gpus;
};

static void row_add(struct fold *f, const uint32_t *order, size_t len, struct pod_location pod_location)
{
    struct fold_row row = {.first = f->open,
                           .pods = len,
                           .nodes = pod_location.nodes,
                           .gpus = pod_location.gpus,
                           .ordinals_at = f->ordinals.len};

    row.first.ordinal = f->pods.at[order[0]].ordinal;
    row.first.gpus = f->pods.at[order[0]].gpus;
    row.first.node = pod_location.node;
    if (len > 1)
        row.first.replaces = 0;
    for (size_t i = 0; i < len; i++)
        vec_push(&f->ordinals, f->pods.at[order[i]].ordinal);
    vec_push(&f->rows, row);
}

/* Converts the collected consecutive actions to rows. */
static void close_rows(struct fold *f)
{
    size_t len = f->pods.len;
    if (len == 0)
        return;
    CLEANUP(mem) uint32_t *order = mem_array(2 * len, sizeof *order);
    struct pod_location all = {0};

    for (uint32_t i = 0; i < len; i++)
        order[i] = i;
    if (f->level != FOLD_NONE)
        sort_indices(order, order + len, len, pod_compare_node, f->pods.at);
    for (size_t i = 0; i < len;) {
        const char *node = f->pods.at[order[i]].node;
        uint64_t held = f->pods.at[order[i]].gpus;
        size_t end = i + 1;
        while (f->level != FOLD_NONE && end < len && strcmp(f->pods.at[order[end]].node, node) == 0)
            held |= f->pods.at[order[end++]].gpus;
        uint64_t gpus = (uint64_t)__builtin_popcountll(held);
        if (f->level != FOLD_WORKLOAD)
            row_add(f, order + i, end - i, (struct pod_location){node, 1, gpus});
        all = (struct pod_location){all.nodes ? NULL : node, all.nodes + 1, all.gpus + gpus};
        i = end;
    }
    if (f->level == FOLD_WORKLOAD) {
        sort_indices(order, order + len, len, pod_compare_ordinal, f->pods.at);
        row_add(f, order, len, all);
    }
    f->pods.len = 0;
}

void fold_add(struct fold *f, const struct berth_action *action)
{
    if (f->pods.len && (f->level == FOLD_NONE || !same_group(&f->open, action)))
        close_rows(f);
    if (f->pods.len == 0)
        f->open = *action;
    vec_push(&f->pods,
             ((struct fold_pod){
                 .node = action->node ? action->node : "", .ordinal = action->ordinal, .gpus = action->gpus}));
}

void fold_end(struct fold *f)
{
    close_rows(f);
}
