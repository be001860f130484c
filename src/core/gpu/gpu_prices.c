/* gpu_prices.c - counts requests, prices them, and makes the tables of earnings. */
#include "core/gpu/gpu_prices.h"

#include <string.h>

#include "base/bits.h"
#include "base/sort.h"
#include "core/gpu/gpu.h"

/* A request with GPUs. */
struct gpu_request {
    const struct class *class;
    double pods, value;
    uint32_t size; /* hundredths of one GPU; 0: several whole GPUs */
};

struct prices_draft {
    struct cycle *c;
    struct gpu_prices *m;
    struct gpu_request *gpu_requests;
    uint32_t gpu_requests_len, words;
    const uint64_t **suits; /* [kind]: requests that may use it, a bit each */
    double *gpus;           /* [kind]: number of GPUs */
    struct gpu_kind_prices *kinds;
    uint32_t kinds_len;
};

/* Prices in GPUs for the amount of a resource that one GPU has if the cluster's amount is divided evenly among all
 * GPUs. */
static const double prices[GPU_PRICES_PER_RESOURCE] = {
    0,       1.0 / 24, 1.0 / 12, 1.0 / 6, 1.0 / 4, 1.0 / 3, 1.0 / 2, 2.0 / 3, 5.0 / 6, 1,
    5.0 / 4, 3.0 / 2,  7.0 / 4,  2,       5.0 / 2, 3,       4,       5,       6,       9,
};

/* ---- requests --------------------------------------------------------------------------------------------------- */

static int compare_amounts(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_models(const struct berth_snapshot *s, const struct syms *a, const struct syms *b)
{
    for (uint32_t i = 0; i < a->len && i < b->len; i++) {
        int by = strcmp(snapshot_text(s, a->at[i]), snapshot_text(s, b->at[i]));
        if (by)
            return by;
    }
    return compare_amounts(a->len, b->len);
}

/* Compares by all properties that matter here; equal ones are one request. */
static int compare_requests(const void *ctx, uint32_t x, uint32_t y)
{
    const struct prices_draft *k = ctx;
    const struct class *a = k->gpu_requests[x].class, *b = k->gpu_requests[y].class;
    int by = compare_amounts(a->gpu.count, b->gpu.count);
    by = by ? by : compare_amounts(a->gpu.milli, b->gpu.milli);
    by = by ? by : compare_amounts(a->gpu.memory_bytes, b->gpu.memory_bytes);
    for (uint32_t i = 0; by == 0 && i < k->c->profile.resources_len; i++) {
        uint32_t r = k->c->profile.resources[i];
        by = compare_amounts(class_need(a, r), class_need(b, r));
    }
    return by ? by : compare_models(k->c->s, &a->gpu.models, &b->gpu.models);
}

/* Classes are numbered in the order of their creation; sums of doubles must not depend on it. */
static void sort_requests(struct prices_draft *k)
{
    uint32_t len = k->gpu_requests_len;
    uint32_t *order = ARENA_ARRAY(k->c->arena, uint32_t, 2 * (size_t)len + 1);
    struct gpu_request *sorted = ARENA_ARRAY(k->c->arena, struct gpu_request, len + 1);
    for (uint32_t i = 0; i < len; i++)
        order[i] = i;
    sort_indices(order, order + len, len, compare_requests, k);
    k->gpu_requests_len = 0;
    for (uint32_t i = 0; i < len; i++)
        if (i && compare_requests(k, order[i - 1], order[i]) == 0)
            sorted[k->gpu_requests_len - 1].pods += k->gpu_requests[order[i]].pods;
        else
            sorted[k->gpu_requests_len++] = k->gpu_requests[order[i]];
    k->gpu_requests = sorted;
}

static bool has_gpu_prices(const struct berth_snapshot *s)
{
    for (uint32_t i = 0; i < s->classes.len; i++)
        if (snapshot_class(s, (struct class_ix){i})->gpu.count)
            return true;
    return false;
}

static void find_requests(struct prices_draft *k)
{
    const struct berth_snapshot *s = k->c->s;
    if (!has_gpu_prices(s))
        return;
    double *pods = ARENA_ARRAY(k->c->arena, double, s->classes.len + 1);
    k->gpu_requests = ARENA_ARRAY(k->c->arena, struct gpu_request, s->classes.len + 1);
    k->m->asked = ARENA_ARRAY(k->c->arena, uint64_t, bits_words(s->classes.len) + 1);
    for (uint32_t w = 0; w < s->workloads.len; w++) {
        const struct workload *of = snapshot_workload(s, w);
        if (of->live && !of->gone)
            pods[of->class.v] += of->replicas;
    }
    for (uint32_t i = 0; i < s->classes.len; i++) {
        const struct class *of = snapshot_class(s, (struct class_ix){i});
        if (of->gpu.count == 0 || !(pods[i] > 0))
            continue;
        bits_add(k->m->asked, i);
        struct gpu_request *a = &k->gpu_requests[k->gpu_requests_len++];
        *a = (struct gpu_request){.class = of, .pods = pods[i]};
        if (of->gpu.count == 1)
            a->size =
                (of->gpu.milli + BERTH_GPU_MILLI / CUTTING_STOCK_PARTS - 1) / (BERTH_GPU_MILLI / CUTTING_STOCK_PARTS);
    }
    sort_requests(k);
    k->words = k->gpu_requests_len / 64 + 1;
}

static void price_requests(struct prices_draft *k)
{
    double demand[CUTTING_STOCK_PARTS + 1] = {0}, price[CUTTING_STOCK_PARTS + 1];
    for (uint32_t i = 0; i < k->gpu_requests_len; i++)
        demand[k->gpu_requests[i].size] += k->gpu_requests[i].size ? k->gpu_requests[i].pods : 0;
    cutting_stock_prices(demand, k->c->arena, price);
    for (uint32_t i = 0; i < k->gpu_requests_len; i++) {
        struct gpu_request *a = &k->gpu_requests[i];
        a->value = a->size ? price[a->size] : a->class->gpu.count;
    }
}

/* ---- kinds of GPUs ---------------------------------------------------------------------------------------------- */

static const uint64_t *suits_of(const struct prices_draft *k, uint32_t device)
{
    uint64_t *bits = ARENA_ARRAY(k->c->arena, uint64_t, k->words);
    for (uint32_t i = 0; i < k->gpu_requests_len; i++)
        if (gpu_device_suits(k->c->l, &k->gpu_requests[i].class->gpu, device))
            bits[i / 64] |= (uint64_t)1 << i % 64;
    return bits;
}

/* Computes each model once; models that suit the same requests are one kind. */
static uint32_t kind_of(struct prices_draft *k, const uint32_t *kind, uint32_t *models, uint32_t *models_len,
                        uint32_t device)
{
    const struct device *of = &k->c->l->devices[device];
    for (uint32_t i = 0; i < *models_len; i++) {
        const struct device *seen = &k->c->l->devices[models[i]];
        if (seen->model == of->model && seen->memory_bytes == of->memory_bytes && seen->unhealthy == of->unhealthy)
            return kind[models[i]];
    }
    const uint64_t *suits = suits_of(k, device);
    models[(*models_len)++] = device;
    for (uint32_t i = 0; i < k->kinds_len; i++)
        if (memcmp(k->suits[i], suits, k->words * sizeof *suits) == 0)
            return i;
    k->suits[k->kinds_len] = suits;
    return k->kinds_len++;
}

static void find_kinds(struct prices_draft *k)
{
    const struct layout *l = k->c->l;
    struct arena *arena = k->c->arena;
    uint32_t len = l->device[l->len], models_len = 0;
    uint32_t *kind = ARENA_ARRAY(arena, uint32_t, len + 1), *models = ARENA_ARRAY(arena, uint32_t, len + 1);

    k->suits = ARENA_ARRAY(arena, const uint64_t *, len + 1);
    k->gpus = ARENA_ARRAY(arena, double, len + 1);
    for (uint32_t d = 0; d < len; d++) {
        kind[d] = kind_of(k, kind, models, &models_len, d);
        k->gpus[kind[d]] += 1;
    }
    k->kinds = ARENA_ARRAY(arena, struct gpu_kind_prices, k->kinds_len + 1);
    for (uint32_t d = 0; d < len; d++)
        k->kinds[kind[d]].device = d;
    for (uint32_t p = 0; p < l->len; p++) {
        uint32_t first = l->device[p], gpus = l->device[p + 1] - first;
        k->m->gpus_max = gpus > k->m->gpus_max ? gpus : k->m->gpus_max;
        for (uint32_t i = 1; i < gpus; i++)
            k->m->mixed |= kind[first + i] != kind[first];
    }
    k->m->kinds = k->kinds;
    k->m->kinds_len = k->kinds_len;
    k->m->kind = kind;
}

/* Scales the requests until all of them together need as many GPUs as there are, and computes the scarcity of each
 * kind. */
static void find_scarcity(struct prices_draft *k)
{
    double asked = 0, all = 0;
    for (uint32_t i = 0; i < k->gpu_requests_len; i++)
        asked += k->gpu_requests[i].pods * k->gpu_requests[i].class->gpu.count * k->gpu_requests[i].class->gpu.milli;
    for (uint32_t i = 0; i < k->kinds_len; i++)
        all += k->gpus[i];
    for (uint32_t a = 0; a < k->gpu_requests_len; a++) {
        const struct gpu_need *need = &k->gpu_requests[a].class->gpu;
        double usable = 0;
        for (uint32_t i = 0; i < k->kinds_len; i++)
            usable += k->suits[i][a / 64] >> a % 64 & 1 ? k->gpus[i] : 0;
        if (!(usable > 0) || usable >= all)
            continue;
        for (uint32_t i = 0; i < k->kinds_len; i++)
            if (k->suits[i][a / 64] >> a % 64 & 1)
                k->kinds[i].scarcity += k->gpu_requests[a].pods * need->count * need->milli / asked * all / usable;
    }
}

/* ---- tables ----------------------------------------------------------------------------------------------------- */

static void find_prices(struct prices_draft *k)
{
    const struct cycle *c = k->c;
    struct gpu_prices *m = k->m;
    double gpus = c->l->device[c->l->len];
    for (uint32_t i = 0; i < c->profile.resources_len; i++) {
        uint32_t r = c->profile.resources[i];
        double has = 0;
        for (uint32_t p = 0; r != RESOURCE_GPU && p < c->l->len; p++)
            has += c->l->device[p + 1] > c->l->device[p] ? (double)snapshot_capacity(c->s, r, p) : 0;
        for (uint32_t q = 0; q < GPU_PRICES_PER_RESOURCE && has > 0; q++) {
            m->resource[m->steps] = r;
            m->price[m->steps++] = prices[q] * gpus / has;
        }
    }
    if (m->steps == 0)
        m->steps = 4; /* no other resource is scarce */
}

/* Adds the earnings of the pods of one request at each step. */
static void add_earnings(const struct gpu_prices *m, const struct gpu_request *a, double *sum)
{
    int64_t need = 0;
    for (uint32_t s = 0; s < m->steps; s++) {
        if (s % GPU_PRICES_PER_RESOURCE == 0)
            need = class_need(a->class, m->resource[s]);
        double left = a->value - m->price[s] * (double)need;
        sum[s] += left > 0 ? a->pods * left : 0;
    }
}

/* Returns the mean earnings over requests for each index up to `len`: a size, or (blocks) a number of GPUs. */
static double **mean_earnings(const struct prices_draft *k, uint32_t kind, bool blocks, uint32_t len,
                              struct arena *arena)
{
    double **mean = ARENA_ARRAY(arena, double *, len + 1), *pods = ARENA_ARRAY(arena, double, len + 1);
    for (uint32_t i = 0; i < k->gpu_requests_len; i++) {
        const struct gpu_request *a = &k->gpu_requests[i];
        uint32_t at = blocks ? a->class->gpu.count : a->size;
        if ((a->size == 0) != blocks || at > len || !(k->suits[kind][i / 64] >> i % 64 & 1))
            continue;
        if (!mean[at])
            mean[at] = ARENA_ARRAY(arena, double, k->m->steps);
        pods[at] += a->pods;
        add_earnings(k->m, a, mean[at]);
    }
    for (uint32_t at = 1; at <= len; at++)
        for (uint32_t s = 0; mean[at] && s < k->m->steps; s++)
            mean[at][s] /= pods[at];
    return mean;
}

/* Computes the best filling of 1 to `len` units by these earnings; `alone` is what one more unit earns by itself. */
static double *fill(const struct prices_draft *k, double *const *mean, uint32_t len, const double *alone,
                    struct arena *arena)
{
    uint32_t steps = k->m->steps;
    double *best = ARENA_ARRAY(arena, double, (size_t)(len + 1) * steps);
    for (uint32_t n = 1; n <= len; n++) {
        double *to = best + (size_t)n * steps, *less = to - steps;
        for (uint32_t s = 0; s < steps; s++)
            to[s] = less[s] + (alone ? alone[s] : 0);
        for (uint32_t at = 1; at <= n; at++) {
            const double *rest = best + (size_t)(n - at) * steps, *with = mean[at];
            for (uint32_t s = 0; with && s < steps; s++) {
                double sum = rest[s] + with[s];
                to[s] = sum > to[s] ? sum : to[s];
            }
        }
    }
    return best;
}

static void fill_kind(const struct prices_draft *k, uint32_t kind)
{
    struct arena *arena = k->c->arena;
    struct gpu_kind_prices *of = &k->kinds[kind];
    double **mean = mean_earnings(k, kind, false, CUTTING_STOCK_PARTS, arena);
    of->part = fill(k, mean, CUTTING_STOCK_PARTS, NULL, arena);
    mean = mean_earnings(k, kind, true, k->m->gpus_max, arena);
    of->block = fill(k, mean, k->m->gpus_max, of->part + (size_t)CUTTING_STOCK_PARTS * k->m->steps, arena);
}

const struct gpu_prices *gpu_prices_new(struct cycle *c)
{
    struct prices_draft k = {.c = c, .m = ARENA_NEW(c->arena, struct gpu_prices)};
    find_requests(&k);
    if (k.gpu_requests_len == 0)
        return NULL;
    price_requests(&k);
    find_kinds(&k);
    find_scarcity(&k);
    find_prices(&k);
    for (uint32_t i = 0; i < k.kinds_len; i++)
        fill_kind(&k, i);
    return k.m;
}
