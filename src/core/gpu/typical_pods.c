/* typical_pods.c - finds the typical pods, and computes the idle GPUs that are useless to them. */
#include "core/gpu/typical_pods.h"

#include <string.h>

#include "base/sort.h"

enum { COVERED_PERCENT = 95 };

/* ---- requests --------------------------------------------------------------------------------------------------- */

struct typical_request {
    int64_t cpu;
    uint64_t pods;
    struct typical_gpu gpu;
};

struct typical_requests {
    struct typical_request *at;
    uint32_t *order; /* with room for sorting behind it */
    uint32_t len;    /* of the order */
    uint64_t pods;
};

static int compare_models(const struct typical_gpu *a, const struct typical_gpu *b)
{
    for (uint32_t i = 0; i < a->models_len && i < b->models_len; i++) {
        int by = strcmp(a->models[i], b->models[i]);
        if (by)
            return by < 0 ? -1 : 1;
    }
    return (a->models_len > b->models_len) - (a->models_len < b->models_len);
}

static int compare_gpu(const struct typical_gpu *a, const struct typical_gpu *b)
{
    if (a->milli != b->milli)
        return a->milli < b->milli ? -1 : 1;
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    return compare_models(a, b);
}

static int compare_request(const void *ctx, uint32_t x, uint32_t y)
{
    const struct typical_request *a = (const struct typical_request *)ctx + x,
                                 *b = (const struct typical_request *)ctx + y;
    if (a->cpu != b->cpu)
        return a->cpu < b->cpu ? -1 : 1;
    return compare_gpu(&a->gpu, &b->gpu);
}

static int compare_pods(const void *ctx, uint32_t x, uint32_t y)
{
    const struct typical_request *a = (const struct typical_request *)ctx + x,
                                 *b = (const struct typical_request *)ctx + y;
    return (a->pods < b->pods) - (a->pods > b->pods);
}

static const char *const *model_texts(const struct berth_snapshot *s, struct syms models, struct arena *arena)
{
    const char **texts = ARENA_ARRAY(arena, const char *, models.len);
    for (uint32_t i = 0; i < models.len; i++)
        texts[i] = snapshot_text(s, models.at[i]);
    return texts;
}

static int64_t class_cpu(const struct class *k)
{
    for (uint32_t i = 0; i < k->needs_len; i++)
        if (k->needs[i].resource == RESOURCE_CPU)
            return k->needs[i].amount;
    return 0;
}

/* Reads the requests of the snapshot's workloads; classes that differ only in other properties are one request. */
static struct typical_requests requests_of(const struct berth_snapshot *s, struct arena *arena)
{
    uint32_t classes = s->classes.len, kinds = 0;
    struct typical_requests r = {.at = ARENA_ARRAY(arena, struct typical_request, classes + 1),
                                 .order = ARENA_ARRAY(arena, uint32_t, 2 * (size_t)classes + 1)};

    for (uint32_t w = 0; w < s->workloads.len; w++) {
        const struct workload *of = snapshot_workload(s, w);
        if (of->live && !of->gone)
            r.at[of->class.v].pods += of->replicas;
    }
    for (uint32_t k = 0; k < classes; k++) {
        if (!r.at[k].pods)
            continue;
        const struct class *of = snapshot_class(s, (struct class_ix){k});
        r.at[k].cpu = class_cpu(of);
        r.at[k].gpu = (struct typical_gpu){of->gpu.count, of->gpu.count ? of->gpu.milli : 0,
                                           model_texts(s, of->gpu.models, arena), of->gpu.models.len};
        r.pods += r.at[k].pods;
        r.order[r.len++] = k;
    }
    sort_indices(r.order, r.order + classes, r.len, compare_request, r.at);
    for (uint32_t i = 0; i < r.len; i++) {
        if (kinds && compare_request(r.at, r.order[kinds - 1], r.order[i]) == 0)
            r.at[r.order[kinds - 1]].pods += r.at[r.order[i]].pods;
        else
            r.order[kinds++] = r.order[i];
    }
    r.len = kinds;
    return r;
}

/* Reads the requests that the policy lists. */
static struct typical_requests requests_of_policy(const struct berth_typical_pod *demand, size_t len,
                                                  struct arena *arena)
{
    struct typical_requests r = {.at = ARENA_ARRAY(arena, struct typical_request, len),
                                 .order = ARENA_ARRAY(arena, uint32_t, 2 * len),
                                 .len = (uint32_t)len};
    for (uint32_t i = 0; i < len; i++) {
        const struct berth_shape *shape = &demand[i].shape;
        const struct berth_gpu_need *gpu = &shape->gpu;
        r.order[i] = i;
        r.at[i].pods = demand[i].pods;
        r.pods += demand[i].pods;
        for (size_t n = 0; n < shape->requests_len; n++)
            if (strcmp(shape->requests[n].resource, "cpu") == 0)
                r.at[i].cpu = shape->requests[n].amount;
        r.at[i].gpu = (struct typical_gpu){gpu->count,
                                           gpu->count == 0 ? 0
                                           : gpu->milli    ? gpu->milli
                                                           : BERTH_GPU_MILLI,
                                           gpu->models, (uint32_t)gpu->models_len};
    }
    return r;
}

/* ---- typical pods ----------------------------------------------------------------------------------------------- */

static struct typical_gpu gpu_copy(const struct typical_gpu *from, struct arena *arena)
{
    const char **models = ARENA_ARRAY(arena, const char *, from->models_len);
    for (uint32_t i = 0; i < from->models_len; i++)
        models[i] = arena_strdup(arena, from->models[i]);
    return (struct typical_gpu){from->count, from->milli, models, from->models_len};
}

const struct typical_pods *typical_pods_new(const struct berth_snapshot *s, const struct berth_typical_pod *demand,
                                            size_t demand_len, struct arena *arena)
{
    struct typical_requests r = demand_len ? requests_of_policy(demand, demand_len, arena) : requests_of(s, arena);
    sort_indices(r.order, r.order + r.len, r.len, compare_pods, r.at);
    struct typical_pod *at = ARENA_ARRAY(arena, struct typical_pod, r.len);
    struct typical_gpu *gpus = ARENA_ARRAY(arena, struct typical_gpu, r.len);
    struct typical_pods *t = ARENA_NEW(arena, struct typical_pods);
    uint64_t covered = 0;

    for (uint32_t i = 0; i < r.len && covered * 100 < r.pods * COVERED_PERCENT; i++) {
        const struct typical_request *of = &r.at[r.order[i]];
        uint32_t gpu = 0;
        while (gpu < t->gpus_len && compare_gpu(&gpus[gpu], &of->gpu) != 0)
            gpu++;
        if (gpu == t->gpus_len)
            gpus[t->gpus_len++] = gpu_copy(&of->gpu, arena);
        at[t->len++] = (struct typical_pod){of->cpu, gpu, (double)of->pods / (double)r.pods};
        covered += of->pods;
    }
    for (uint32_t i = 0; i < t->len && covered < r.pods; i++)
        at[i].share /= (double)covered / (double)r.pods;
    t->at = at;
    t->gpus = gpus;
    return t;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

/* Compares a model with `kind`, which is in capitals, ignoring case. */
static bool model_matches(const char *model, const char *kind)
{
    for (; *model && *kind; model++, kind++)
        if ((*model >= 'a' && *model <= 'z' ? *model - 'a' + 'A' : *model) != *kind)
            return false;
    return *model == *kind;
}

static uint64_t devices_for(const struct berth_snapshot *s, const struct typical_gpu *gpu, const struct device *devices,
                            uint32_t len)
{
    uint64_t suits = 0;
    for (uint32_t d = 0; d < len; d++) {
        bool any = gpu->models_len == 0;
        if (d && devices[d].model == devices[d - 1].model && devices[d].unhealthy == devices[d - 1].unhealthy)
            any = suits >> (d - 1) & 1;
        else
            for (uint32_t i = 0; i < gpu->models_len; i++)
                any |= model_matches(gpu->models[i], snapshot_text(s, devices[d].kind));
        suits |= (uint64_t)(any && !devices[d].unhealthy) << d;
    }
    return suits;
}

static bool same_models(const struct typical_kind *k, const struct device *devices, uint32_t len)
{
    bool same = k->len == len;
    for (uint32_t d = 0; d < len && same; d++)
        same = k->devices[d].model == devices[d].model && k->devices[d].unhealthy == devices[d].unhealthy;
    return same;
}

const struct typical_kind *typical_kind_of(struct typical_kind **list, const struct berth_snapshot *s,
                                           const struct typical_pods *t, const struct device *devices, uint32_t len,
                                           struct arena *arena)
{
    for (const struct typical_kind *k = *list; k; k = k->next)
        if (same_models(k, devices, len))
            return k;
    uint64_t *suits = ARENA_ARRAY(arena, uint64_t, t->gpus_len);
    for (uint32_t g = 0; g < t->gpus_len; g++)
        suits[g] = devices_for(s, &t->gpus[g], devices, len);
    struct typical_kind *k = ARENA_NEW(arena, struct typical_kind);
    *k = (struct typical_kind){devices, len, suits, *list};
    *list = k;
    return k;
}

/* Why idle GPUs are useless to a pod. */
enum gpu_mismatch { LACKS_BOTH, LACKS_GPU, LACKS_CPU, WANTS_NONE, WANTS_NONE_LACKS_CPU, WANTS_OTHERS, USELESS };

enum { SERVED_MAX = 64 }; /* requests computed once per node; the first ones are the most frequent */

/* Whether the devices can serve a request, and the idle milli-GPU on devices that are too full for it. */
struct request_fit {
    bool fits;
    int64_t stuck;
};

static struct request_fit serve(const struct typical_gpu *gpu, uint64_t suits, const int32_t *milli, uint32_t len)
{
    struct request_fit to = {0};
    uint32_t usable = 0;
    for (uint32_t d = 0; d < len; d++) {
        bool fits = milli[d] >= (int32_t)gpu->milli && suits >> d & 1;
        to.stuck += fits ? 0 : milli[d];
        usable += fits;
    }
    to.fits = usable >= gpu->count;
    return to;
}

double typical_pods_useless_milli(const struct typical_pods *t, const struct typical_kind *kind, int64_t cpu,
                                  const int32_t *milli)
{
    double by[USELESS] = {0}, sum = 0;
    int64_t idle = 0;
    uint64_t known = 0;
    struct request_fit first[SERVED_MAX], to;

    for (uint32_t d = 0; d < kind->len; d++)
        idle += milli[d];
    if (idle == 0)
        return 0;
    for (uint32_t i = 0; i < t->len; i++) {
        const struct typical_pod *m = &t->at[i];
        const struct typical_gpu *gpu = &t->gpus[m->gpu];
        bool enough = cpu >= m->cpu;
        if (gpu->count == 0) {
            by[enough ? WANTS_NONE : WANTS_NONE_LACKS_CPU] += m->share * (double)idle;
        } else if (kind->suits[m->gpu] == 0) {
            by[WANTS_OTHERS] += m->share * (double)idle;
        } else {
            if (m->gpu < SERVED_MAX && known >> m->gpu & 1) {
                to = first[m->gpu];
            } else {
                to = serve(gpu, kind->suits[m->gpu], milli, kind->len);
                if (m->gpu < SERVED_MAX) {
                    first[m->gpu] = to;
                    known |= (uint64_t)1 << m->gpu;
                }
            }
            if (to.fits && enough)
                by[LACKS_GPU] += m->share * (double)to.stuck;
            else
                by[to.fits ? LACKS_CPU : enough ? LACKS_GPU : LACKS_BOTH] += m->share * (double)idle;
        }
    }
    for (int why = 0; why < USELESS; why++)
        sum += by[why];
    return sum;
}
