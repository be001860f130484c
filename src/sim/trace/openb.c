/* openb.c - fills a cluster with the pods of openb, and measures fragmentation. */
#include "sim/trace/openb.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "berth.h"

enum { ID_MAX = 32, PROGRESS_EVERY = 64, MIB_BITS = 20 };

/* ---- policies --------------------------------------------------------------------------------------------------- */

static const struct policy_row {
    const char *name, *profile, *text;
    bool foresees; /* knows all pods of the trace in advance, as in the published runs */
} rows[] = {
    {"random",     "random",         "any node where it fits",                                                false},
    {"dotprod",    "dot-product",    "the node whose free resources are least aligned with the request",      false},
    {"clustering", "gpu-clustering", "nodes with pods of the same kind of GPU request",                       false},
    {"packing",    "gpu-packing",    "the fullest shared GPU, then a node in use, then an empty one",         false},
    {"bestfit",    "best-fit",       "the node that would have the least left",                               false},
    {"fgd",        "fragmentation",  "the node where the fewest idle GPUs become useless; knows all pods",    true },
    {"berth",      "default",        "the daemon's default: the lowest GPU cost for pods like the past ones", false},
};

const char *openb_policy_at(size_t i, const char **ret_sentence)
{
    if (i >= sizeof rows / sizeof *rows)
        return NULL;
    if (ret_sentence)
        *ret_sentence = rows[i].text;
    return rows[i].name;
}

static int policy_find(const char *name, struct policy_row *ret, struct berth_err *err)
{
    CLEANUP(str) struct str known = {0};
    const struct berth_profile *profile = berth_profile_find(name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *ret = rows[i];
            return 0;
        }
        str_addf(&known, "%s, ", rows[i].name);
    }
    if (profile) {
        *ret = (struct policy_row){.name = name, .profile = name};
        return 0;
    }
    for (size_t i = 0; (profile = berth_profile_at(i)); i++)
        str_addf(&known, "%s%s", i ? ", " : "", profile->name);
    return err_set(err, EINVAL, "there is no policy \"%s\"; there are %s", name, str_text(&known));
}

/* ---- typical pods ----------------------------------------------------------------------------------------------- */

/* Orders larger requests first: among equally frequent ones the first is used. */
static int compare_requests(const void *a, const void *b)
{
    const struct openb_pod *x = *(const struct openb_pod *const *)a, *y = *(const struct openb_pod *const *)b;
    const int64_t pairs[][2] = {
        {x->cpu_milli, y->cpu_milli},
        {x->gpu_milli, y->gpu_milli},
        {x->gpus,      y->gpus     }
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] > pairs[i][1] ? -1 : 1;
    return strcmp(y->spec, x->spec);
}

struct typical_demand {
    struct berth_typical_pod *at;
    struct berth_amount *cpu;
    size_t len;
};

static struct typical_demand demand_of(const struct openb_trace *t)
{
    const struct openb_pod **order = mem_array(t->pods_len + 1, sizeof *order);
    struct typical_demand d = {.at = mem_zarray(t->pods_len + 1, sizeof *d.at),
                               .cpu = mem_zarray(t->pods_len + 1, sizeof *d.cpu)};
    for (size_t i = 0; i < t->pods_len; i++)
        order[i] = &t->pods[i];
    qsort(order, t->pods_len, sizeof *order, compare_requests);
    for (size_t i = 0; i < t->pods_len; i++) {
        const struct openb_pod *pod = order[i];
        if (i && compare_requests(&order[i - 1], &order[i]) == 0) {
            d.at[d.len - 1].pods++;
            continue;
        }
        d.cpu[d.len] = (struct berth_amount){"cpu", pod->cpu_milli};
        d.at[d.len] = (struct berth_typical_pod){.pods = 1};
        d.at[d.len].shape = (struct berth_shape){
            .requests = &d.cpu[d.len],
            .requests_len = 1,
            .gpu = {.count = (uint32_t)pod->gpus,
                    .milli = (uint32_t)pod->gpu_milli,
                    .models = pod->models,
                    .models_len = pod->models_len},
        };
        d.len++;
    }
    mem_free(order);
    return d;
}

/* ---- run -------------------------------------------------------------------------------------------------------- */

struct openb_run {
    const struct openb_trace *trace;
    struct berth_cluster *cluster;
    struct typical_demand demand;
    struct berth_policy policy;  /* for plans */
    struct berth_policy measure; /* for measuring fragmentation */
    uint64_t seed, instances;
    int64_t arrived_milli;
    double useless_milli;
    char *node; /* node of the last pod; NULL: it was dropped */
    double node_before;
    struct openb_result result;
};

static int put_nodes(struct openb_run *r, struct berth_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < r->trace->nodes_len && rc == 0; i++) {
        const struct openb_node *n = &r->trace->nodes[i];
        struct berth_gpu gpus[BERTH_NODE_GPUS_MAX];
        for (int64_t g = 0; g < n->gpus; g++)
            gpus[g] = (struct berth_gpu){.model = n->model};
        const struct berth_amount has[] = {
            {"cpu",    n->cpu_milli             },
            {"memory", n->memory_mib << MIB_BITS}
        };
        struct berth_node node = {.id = n->name, .rank = n->rank, .gpus = gpus, .gpus_len = (size_t)n->gpus};
        node.allocatable = has;
        node.allocatable_len = sizeof has / sizeof *has;
        rc = berth_node_put(r->cluster, &node, err);
        r->result.gpu_milli += n->gpus * BERTH_GPU_MILLI;
    }
    return rc;
}

static int put_pod(struct openb_run *r, size_t i, const char *id, struct berth_err *err)
{
    const struct openb_pod *pod = &r->trace->pods[r->trace->arrivals[i]];
    const struct berth_amount needs[] = {
        {"cpu",    pod->cpu_milli             },
        {"memory", pod->memory_mib << MIB_BITS}
    };
    struct berth_amount asked[2];
    struct berth_workload w = {.id = id, .replicas = 1, .created_ns = (int64_t)i};
    for (size_t n = 0; n < 2; n++)
        if (needs[n].amount > 0)
            asked[w.shape.requests_len++] = needs[n];
    w.shape.requests = asked;
    w.shape.gpu = (struct berth_gpu_need){.count = (uint32_t)pod->gpus,
                                          .milli = (uint32_t)pod->gpu_milli,
                                          .models = pod->models,
                                          .models_len = pod->models_len};
    return berth_workload_put(r->cluster, &w, err);
}

static double to_cents(double value)
{
    return rint(value * 100) / 100;
}

/* Records the state after a pod. The published means are of values rounded to two digits, except for fragmentation. */
static void note(struct openb_run *r)
{
    struct openb_result *to = &r->result;
    double all = (double)to->gpu_milli, idle = (double)(to->gpu_milli - to->used_milli);
    double load = rint(100 * (double)r->arrived_milli / all);
    if (load >= OPENB_LOADS)
        return;
    size_t at = (size_t)load;
    to->at[at].pods++;
    to->at[at].allocated += to_cents(100 * (double)to->used_milli / all);
    to->at[at].fragmented += 100 * r->useless_milli / all;
    to->at[at].fragmented_share += idle > 0 ? to_cents(100 * r->useless_milli / idle) : 0;
}

/* Measures the change by the last pod, in the snapshot that is made for the next pod. */
static int settle(struct openb_run *r, const struct berth_snapshot *s, struct berth_err *err)
{
    struct berth_fragmentation now;
    int rc = 0;
    if (r->node) {
        rc = berth_fragmentation(s, &r->measure, r->node, &now, err);
        r->useless_milli += rc ? 0 : now.useless_milli - r->node_before;
        mem_free(r->node);
        r->node = NULL;
    }
    if (rc == 0)
        note(r);
    return rc;
}

static int take(struct openb_run *r, const struct berth_snapshot *s, const struct berth_plan *p,
                const struct openb_pod *pod, struct berth_err *err)
{
    struct berth_action a = berth_plan_action(p, 0);
    struct berth_fragmentation before;
    if (berth_plan_actions(p) != 1 || a.op != BERTH_PLACE)
        return err_set(err, EINVAL, "a plan does more than to place the one pod that came");
    int rc = berth_fragmentation(s, &r->measure, a.node, &before, err);
    if (rc == 0)
        rc = berth_apply(r->cluster, p, ++r->instances, err);
    if (rc)
        return rc;
    r->node = mem_strdup(a.node);
    r->node_before = before.useless_milli;
    r->result.placed++;
    r->result.used_milli += pod->gpus * pod->gpu_milli;
    return 0;
}

/* Handles the arrival of one pod. */
static int step(struct openb_run *r, size_t i, struct berth_err *err)
{
    const struct openb_pod *pod = &r->trace->pods[r->trace->arrivals[i]];
    struct berth_plan *p = NULL;
    char id[ID_MAX];
    (void)snprintf(id, sizeof id, "pod-%08zu", i);
    int rc = put_pod(r, i, id, err);
    if (rc)
        return rc;
    struct berth_snapshot *s = berth_freeze(r->cluster, (int64_t)i, r->seed);
    struct berth_fragmentation all = {0};
    if (i)
        rc = settle(r, s, err);
    else
        rc = berth_fragmentation(s, &r->measure, "", &all, err);
    r->useless_milli += all.useless_milli;
    r->arrived_milli += pod->gpus * pod->gpu_milli;
    if (rc == 0)
        rc = berth_plan_make(s, &r->policy, &p, err);
    if (rc == 0 && berth_plan_actions(p))
        rc = take(r, s, p, pod, err);
    else if (rc == 0)
        rc = berth_workload_remove(r->cluster, id, err);
    berth_plan_free(p);
    berth_snapshot_free(s);
    return rc;
}

static int steps(struct openb_run *r, const struct openb_options *o, struct berth_err *err)
{
    size_t len = r->trace->arrivals_len;
    int rc = put_nodes(r, err);
    if (rc == 0 && r->result.gpu_milli == 0)
        rc = err_set(err, EINVAL, "none of the nodes has a GPU");
    for (size_t i = 0; i < len && rc == 0; i++) {
        rc = step(r, i, err);
        if (o->progress && i % PROGRESS_EVERY == 0)
            o->progress(o->ctx, i, len);
    }
    if (rc == 0 && len) {
        struct berth_snapshot *s = berth_freeze(r->cluster, (int64_t)len, r->seed);
        rc = settle(r, s, err);
        berth_snapshot_free(s);
    }
    return rc;
}

static void sum_up(struct openb_result *to, size_t arrived)
{
    to->dropped = arrived - to->placed;
    for (size_t i = 0; i < OPENB_LOADS; i++) {
        double pods = to->at[i].pods ? (double)to->at[i].pods : 1;
        to->at[i].allocated /= pods;
        to->at[i].fragmented /= pods;
        to->at[i].fragmented_share /= pods;
    }
}

int openb_run(const struct openb_trace *t, const struct openb_options *o, struct openb_result *ret,
              struct berth_err *err)
{
    struct policy_row policy = {0};
    int rc = policy_find(o->policy, &policy, err);
    if (rc)
        return rc;
    struct openb_run r = {.trace = t, .seed = o->seed, .cluster = berth_cluster_new(), .demand = demand_of(t)};
    r.measure = (struct berth_policy){.demand = r.demand.at, .demand_len = r.demand.len};
    r.policy = policy.foresees ? r.measure : (struct berth_policy){0};
    r.policy.profile = berth_profile_find(policy.profile);
    rc = steps(&r, o, err);
    if (rc == 0) {
        sum_up(&r.result, t->arrivals_len);
        *ret = r.result;
    }
    mem_free(r.node);
    mem_free(r.demand.at);
    mem_free(r.demand.cpu);
    berth_cluster_free(r.cluster);
    return rc;
}
