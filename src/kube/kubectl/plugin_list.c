#include "kube/kubectl/plugin_list.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "kube/kubectl/plugin_table.h"
#include "kube/kubectl/plugin_why.h"
#include "wire/text/quantity.h"

static void json_print(json_t *root, struct str *to)
{
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS);
    str_addf(to, "%s\n", text ? text : "{}");
    free(text);
    json_decref(root);
}

/* ---- pending pods ----------------------------------------------------------------------------------------------- */

struct queue_row {
    struct cache_workload pod;
    size_t tasks;    /* of a role of a job: number of pending tasks */
    size_t position; /* position among the pending pods, from 1; 0: the plan places it */
    const char *queue, *node, *reason;
};

struct queue_listing {
    struct plugin_view *v;
    const char *namespace; /* NULL: all */
    VEC(struct queue_row) rows;
};

static bool row_begin(struct queue_listing *q, const char *workload, struct queue_row *ret)
{
    *ret = (struct queue_row){.queue = "", .node = "", .reason = ""};
    return cache_workload(q->v->cache, workload, &ret->pod) &&
           (!q->namespace || strcmp(q->namespace, ret->pod.namespace) == 0);
}

static void actions_add(struct queue_listing *q)
{
    const struct berth_plan *plan = q->v->choice.plan;
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        struct queue_row row;
        if ((a.op != BERTH_PLACE && a.op != BERTH_RESERVE) || !row_begin(q, a.workload, &row))
            continue;
        row.tasks = 1;
        row.node = a.node;
        row.reason = a.op == BERTH_PLACE ? arena_fmt(&q->v->arena, "the plan places it on %s now", a.node)
                                         : arena_fmt(&q->v->arena, "waits for preemption on %s: %zu pod%s to stop",
                                                     a.node, a.waits_len, a.waits_len == 1 ? " has" : "s have");
        vec_push(&q->rows, row);
    }
}

/* Returns the first reason, and how many more there are. */
static const char *reason_of(struct plugin_view *v, size_t i, const char *workload)
{
    struct cache_demand demand;
    if (cache_demand(v->cache, workload, CACHE_RELAX_NOTHING, &demand) && demand.why)
        return demand.why;
    struct berth_pending p = berth_plan_pending(v->choice.plan, i);
    if (p.reasons_len < 2)
        return p.reasons_len ? p.reasons[0].text : "";
    return arena_fmt(&v->arena, "%s; %zu more", p.reasons[0].text, p.reasons_len - 1);
}

static void pendings_add(struct queue_listing *q)
{
    struct berth_plan *plan = q->v->choice.plan;
    for (size_t i = 0; i < berth_plan_pendings(plan); i++) {
        const char *workload = berth_plan_pending_name(plan, i);
        struct queue_row row;
        if (!row_begin(q, workload, &row))
            continue;
        struct berth_queue_position s = berth_plan_queue_position(plan, i);
        row.position = s.position;
        row.tasks = berth_plan_pending(plan, i).ordinals_len;
        row.queue = s.queue ? s.queue : "";
        row.node = s.start_ns && s.node ? s.node : "";
        row.reason = reason_of(q->v, i, workload);
        vec_push(&q->rows, row);
    }
}

static void queue_json(const struct queue_listing *q, struct str *to)
{
    json_t *items = json_array();
    for (size_t i = 0; i < q->rows.len; i++) {
        const struct queue_row *r = &q->rows.at[i];
        json_t *item = json_pack("{s:s, s:s, s:i, s:I, s:s, s:s, s:s}", "namespace", r->pod.namespace, "name",
                                 r->pod.name, "priority", (int)r->pod.priority, "waitedSeconds",
                                 (json_int_t)((q->v->now_ns - r->pod.created_ns) / 1000000000), "queue", r->queue,
                                 "node", r->node, "reason", r->reason);
        if (r->pod.tasks)
            (void)json_object_set_new(item, "tasks", json_integer((json_int_t)r->tasks));
        (void)json_object_set_new(item, "position", r->position ? json_integer((json_int_t)r->position) : json_null());
        (void)json_array_append_new(items, item);
    }
    json_print(json_pack("{s:o}", "items", items), to);
}

void plugin_queue(struct plugin_view *v, const char *namespace, bool json, struct str *to)
{
    static const char *const heads[] = {"#", "NAMESPACE", "POD OR JOB:ROLE", "QUEUE", "PRIORITY", "AGE", "WHY"};
    struct queue_listing q = {.v = v, .namespace = namespace};
    struct plugin_table table = {0};
    actions_add(&q);
    pendings_add(&q);
    if (json) {
        queue_json(&q, to);
    } else if (q.rows.len == 0) {
        str_add(to, "No pending workloads.\n");
    } else {
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
            plugin_cell(&table, "%s", heads[i]);
        plugin_row(&table);
        for (size_t i = 0; i < q.rows.len; i++) {
            const struct queue_row *r = &q.rows.at[i];
            plugin_cell(&table, "%s", r->position ? arena_fmt(&v->arena, "%zu", r->position) : "-");
            plugin_cell(&table, "%s", r->pod.namespace);
            plugin_cell(&table, "%s%s", r->pod.name,
                        r->pod.tasks ? arena_fmt(&v->arena, " (%zu tasks)", r->tasks) : "");
            plugin_cell(&table, "%s", *r->queue ? r->queue : "-");
            plugin_cell(&table, "%" PRId32, r->pod.priority);
            plugin_cell(&table, "%s", plugin_age(&v->arena, v->now_ns - r->pod.created_ns));
            plugin_cell(&table, "%s", r->reason);
            plugin_row(&table);
        }
        plugin_table_print(&table, false, to);
    }
    vec_done(&q.rows);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static const char *const gpus[] = {"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"};

struct node_row {
    struct cache_node_view node;
    struct berth_node_use cpu, memory, pods, gpu;
};

struct nodes {
    struct plugin_view *v;
    VEC(struct node_row) rows;
    bool gpus; /* any node has GPUs */
};

static void node_add(void *ctx, const struct cache_node_view *node)
{
    struct nodes *n = ctx;
    struct node_row row = {.node = *node};
    (void)berth_node_use(n->v->cluster, node->name, "cpu", &row.cpu);
    (void)berth_node_use(n->v->cluster, node->name, "memory", &row.memory);
    (void)berth_node_use(n->v->cluster, node->name, "pods", &row.pods);
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        struct berth_node_use use = {0};
        (void)berth_node_use(n->v->cluster, node->name, gpus[i], &use);
        row.gpu.there += use.there;
        row.gpu.held += use.held;
    }
    n->gpus |= row.gpu.there > 0;
    vec_push(&n->rows, row);
}

static int by_name(const void *a, const void *b)
{
    const struct node_row *x = a, *y = b;
    return strcmp(x->node.name, y->node.name);
}

/* Prints capacity, requested and free amounts; an overcommitted resource has 0 free. */
static void use_cells(struct plugin_table *table, const char *resource, const struct berth_node_use *use)
{
    char buf[QUANTITY_TEXT_MAX];
    int64_t left = use->there - use->held;
    plugin_cell(table, "%s", quantity_print(resource, use->there, buf));
    plugin_cell(table, "%s", quantity_print(resource, use->held, buf));
    plugin_cell(table, "%s", quantity_print(resource, left > 0 ? left : 0, buf));
}

static json_t *use_json(const char *resource, const struct berth_node_use *use)
{
    char there[QUANTITY_TEXT_MAX], held[QUANTITY_TEXT_MAX], free_text[QUANTITY_TEXT_MAX];
    int64_t left = use->there - use->held;
    return json_pack("{s:s, s:s, s:s}", "allocatable", quantity_print(resource, use->there, there), "requested",
                     quantity_print(resource, use->held, held), "free",
                     quantity_print(resource, left > 0 ? left : 0, free_text));
}

static void nodes_json(const struct nodes *n, struct str *to)
{
    json_t *items = json_array();
    for (size_t i = 0; i < n->rows.len; i++) {
        const struct node_row *r = &n->rows.at[i];
        (void)json_array_append_new(items,
                                    json_pack("{s:s, s:b, s:o, s:o, s:o, s:o}", "name", r->node.name, "unschedulable",
                                              (int)r->node.unschedulable, "cpu", use_json("cpu", &r->cpu), "memory",
                                              use_json("memory", &r->memory), "pods", use_json("pods", &r->pods), "gpu",
                                              use_json("gpu", &r->gpu)));
    }
    json_print(json_pack("{s:o}", "items", items), to);
}

void plugin_nodes(struct plugin_view *v, bool json, struct str *to)
{
    static const char *const heads[] = {"NODE", "CPU",  "REQUESTED", "FREE", "MEMORY",    "REQUESTED", "FREE",
                                        "PODS", "USED", "FREE",      "GPUS", "REQUESTED", "FREE"};
    enum { HEADS = sizeof heads / sizeof *heads };
    struct nodes n = {.v = v};
    struct plugin_table table = {0};
    cache_nodes(v->cache, node_add, &n);
    if (n.rows.len)
        qsort(n.rows.at, n.rows.len, sizeof *n.rows.at, by_name);
    if (json) {
        nodes_json(&n, to);
        vec_done(&n.rows);
        return;
    }
    for (size_t i = 0; i < HEADS - (n.gpus ? 0 : 3); i++)
        plugin_cell(&table, "%s", heads[i]);
    plugin_row(&table);
    for (size_t i = 0; i < n.rows.len; i++) {
        const struct node_row *r = &n.rows.at[i];
        plugin_cell(&table, "%s%s", r->node.name, r->node.unschedulable ? " (cordoned)" : "");
        use_cells(&table, "cpu", &r->cpu);
        use_cells(&table, "memory", &r->memory);
        use_cells(&table, "pods", &r->pods);
        if (n.gpus)
            use_cells(&table, "gpu", &r->gpu);
        plugin_row(&table);
    }
    plugin_table_print(&table, true, to);
    vec_done(&n.rows);
}
