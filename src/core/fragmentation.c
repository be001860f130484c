/* fragmentation.c - the fragmentation gradient. */
#include "core/fragmentation.h"

#include <assert.h>

#include "base/sort.h"
#include "core/future.h"
#include "core/gpu.h"

struct typical_pod {
    int64_t cpu;
    struct gpu_need gpu;
    double share; /* of all pods */
};

struct typical {
    const struct typical_pod *at;
    uint32_t len;
};

/* ---- typical pods ----------------------------------------------------------------------------------------------- */

static int64_t cpu_need(const struct class *k)
{
    for (uint32_t i = 0; i < k->needs_len; i++)
        if (k->needs[i].resource == RESOURCE_CPU)
            return k->needs[i].amount;
    return 0;
}

struct demand {
    const struct cycle *c;
    const uint64_t *pods; /* [class] */
};

static int compare_models(const struct cycle *c, struct syms a, struct syms b)
{
    for (uint32_t i = 0; i < a.len && i < b.len; i++) {
        if (a.at[i] == b.at[i])
            continue;
        const char *x = snapshot_text(c->s, a.at[i]), *y = snapshot_text(c->s, b.at[i]);
        for (; *x && *x == *y; x++, y++)
            ;
        return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
    }
    return (a.len > b.len) - (a.len < b.len);
}

static int compare_request(const void *ctx, uint32_t x, uint32_t y)
{
    const struct demand *d = ctx;
    const struct class *a = snapshot_class(d->c->s, (struct class_ix){x});
    const struct class *b = snapshot_class(d->c->s, (struct class_ix){y});
    int64_t pairs[][2] = {
        {cpu_need(a),  cpu_need(b) },
        {a->gpu.milli, b->gpu.milli},
        {a->gpu.count, b->gpu.count}
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i][0] != pairs[i][1])
            return pairs[i][0] < pairs[i][1] ? -1 : 1;
    return compare_models(d->c, a->gpu.models, b->gpu.models);
}

static int compare_count(const void *ctx, uint32_t x, uint32_t y)
{
    const struct demand *d = ctx;
    if (d->pods[x] != d->pods[y])
        return d->pods[x] > d->pods[y] ? -1 : 1;
    return compare_request(ctx, x, y);
}

static const struct typical *typical_of(struct cycle *c)
{
    if (c->typical)
        return c->typical;
    uint32_t classes = c->s->classes.len, len = 0;
    uint64_t *pods = ARENA_ARRAY(c->arena, uint64_t, classes + 1), all = 0, covered = 0;
    uint32_t *order = ARENA_ARRAY(c->arena, uint32_t, 2 * (size_t)classes + 1);
    struct demand d = {c, pods};

    for (uint32_t w = 0; w < c->s->workloads.len; w++) {
        const struct workload *of = snapshot_workload(c->s, w);
        if (of->live && !of->gone)
            pods[of->class.v] += of->replicas;
    }
    for (uint32_t k = 0; k < classes; k++)
        if (pods[k]) {
            all += pods[k];
            order[len++] = k;
        }
    /* Classes that differ only in what does not matter here are one request. */
    sort_indices(order, order + classes, len, compare_request, &d);
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < len; i++) {
        if (kinds && compare_request(&d, order[kinds - 1], order[i]) == 0)
            pods[order[kinds - 1]] += pods[order[i]];
        else
            order[kinds++] = order[i];
    }
    sort_indices(order, order + classes, kinds, compare_count, &d);
    struct typical_pod *at = ARENA_ARRAY(c->arena, struct typical_pod, kinds + 1);
    struct typical *t = ARENA_NEW(c->arena, struct typical);
    for (uint32_t i = 0; i < kinds && covered * 100 < all * 95; i++) {
        const struct class *k = snapshot_class(c->s, (struct class_ix){order[i]});
        at[t->len++] = (struct typical_pod){cpu_need(k), k->gpu, (double)pods[order[i]]};
        covered += pods[order[i]];
    }
    for (uint32_t i = 0; i < t->len; i++)
        at[i].share /= (double)covered;
    t->at = at;
    c->typical = t;
    return t;
}

/* ---- one node --------------------------------------------------------------------------------------------------- */

/* The node as it would be. */
struct sight {
    int64_t cpu;
    uint32_t first, len;
    uint64_t may; /* devices that the pod may hold, as far as reservations go */
    int32_t milli[BERTH_NODE_GPUS_MAX];
};

static double useless(const struct cycle *c, const struct sight *n, const struct typical_pod *m)
{
    int64_t idle = 0, stuck = 0;
    uint32_t usable = 0;
    for (uint32_t i = 0; i < n->len; i++) {
        bool fits = m->gpu.count && n->milli[i] >= (int32_t)m->gpu.milli &&
                    gpu_device_suits(c->l, &(struct gpu_need){.models = m->gpu.models}, n->first + i);
        idle += n->milli[i];
        stuck += fits ? 0 : n->milli[i];
        usable += fits;
    }
    bool none = m->gpu.count == 0 || usable < m->gpu.count || n->cpu < m->cpu;
    return (double)(none ? idle : stuck);
}

static double fragmentation(struct cycle *c, const struct sight *n)
{
    const struct typical *t = typical_of(c);
    double f = 0;
    for (uint32_t i = 0; i < t->len; i++)
        f += t->at[i].share * useless(c, n, &t->at[i]);
    return f;
}

static struct sight see(const struct turn *t, uint32_t p)
{
    const struct cycle *c = t->c;
    const int64_t *cpu = cycle_column(c, RESOURCE_CPU, t->later);
    struct sight n = {.cpu = cpu ? cpu[p] : 0, .first = c->l->device[p], .len = c->l->device[p + 1] - c->l->device[p]};
    n.may = future_devices(t, p);
    for (uint32_t i = 0; i < n.len; i++) {
        const struct device_free *f = &c->devices[n.first + i];
        n.milli[i] = t->later || f->later < f->now ? f->later : f->now;
    }
    return n;
}

/* The best placement on this node: what F becomes, and on which device of a share. */
static double best_after(const struct turn *t, struct sight n, uint32_t *ret_device)
{
    double least = 0;
    uint32_t best = NONE, left = t->k->gpu.count;

    n.cpu -= cpu_need(t->k);
    if (t->k->gpu.count == 0 || t->k->gpu.milli == BERTH_GPU_MILLI) {
        for (uint32_t i = 0; i < n.len && left; i++)
            if (n.may >> i & 1 && gpu_device_fits(t, n.first + i)) {
                n.milli[i] = 0;
                left--;
            }
        return fragmentation(t->c, &n);
    }
    for (uint32_t i = 0; i < n.len; i++) {
        if (!(n.may >> i & 1) || !gpu_device_fits(t, n.first + i))
            continue;
        struct sight with = n;
        with.milli[i] -= (int32_t)t->k->gpu.milli;
        double f = fragmentation(t->c, &with);
        if (best == NONE || f < least) {
            least = f;
            best = i;
        }
    }
    assert(best != NONE);
    *ret_device = best;
    return least;
}

double fragmentation_gain(const struct turn *t, uint32_t position)
{
    uint32_t device;
    struct sight n = see(t, position);
    return n.len ? fragmentation(t->c, &n) - best_after(t, n, &device) : 0;
}

uint32_t fragmentation_pick(const struct turn *t, uint32_t position)
{
    uint32_t device = 0;
    (void)best_after(t, see(t, position), &device);
    return device;
}
