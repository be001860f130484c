/* profile.c - the built-in profiles, and resolving profile names. */
#include "core/plan/profile.h"

#include <errno.h>
#include <string.h>

#include "core/filter/filter.h"
#include "core/score/scores.h"

#define SCORES(...)                                                                                                    \
    .scores = (const struct berth_weight[]){__VA_ARGS__},                                                              \
    .scores_len = sizeof((const struct berth_weight[]){__VA_ARGS__}) / sizeof(struct berth_weight)
#define CPU_AND_GPU .resources = (const char *const[]){"cpu", "gpu"}, .resources_len = 2
#define PUBLISHED .steps = 100 /* rounded to whole percents, then the lowest rank */

/* Scores for what pods request themselves are part of the general-purpose profiles. Profiles with a single score are
 * for comparisons. */
#define ASKED                                                                                                          \
    {"preferences", 3}, {"spread", 2}, {"affinity", 2}, {"image_locality", 1},                                         \
    {                                                                                                                  \
        "network_zone", 1                                                                                              \
    }

/* clang-format off */
static const struct berth_profile built_in[] = {
    {.name = "default", SCORES({"least_allocated", 1}, {"gpu_spare", 1}, {"gpu_worth", 2}, ASKED)},
    {.name = "pack", SCORES({"most_allocated", 1}, {"gpu_spare", 1}, {"gpu_packing", 2}, ASKED)},
    {.name = "even", SCORES({"least_allocated", 1}, {"balanced", 1}, {"gpu_spare", 1}, {"gpu_packing", 2}, ASKED)},
    {.name = "best-fit", PUBLISHED, CPU_AND_GPU, SCORES({"best_fit", 1})},
    {.name = "dot-product", PUBLISHED, CPU_AND_GPU, SCORES({"dot_product", 1})},
    {.name = "gpu-packing", PUBLISHED, SCORES({"gpu_filling", 1})},
    {.name = "gpu-clustering", PUBLISHED, SCORES({"gpu_clustering", 1})},
    {.name = "fragmentation", PUBLISHED, SCORES({"fragmentation", 1})},
    {.name = "gpu-worth", SCORES({"gpu_worth", 1})},
    {.name = "random", SCORES({"random", 1})},
};
/* clang-format on */

const struct berth_profile *berth_profile_at(size_t i)
{
    return i < sizeof built_in / sizeof *built_in ? &built_in[i] : NULL;
}

const struct berth_profile *berth_profile_find(const char *name)
{
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (strcmp(built_in[i].name, name) == 0)
            return &built_in[i];
    return NULL;
}

static int resolve_filters(const struct berth_profile *from, struct profile *p, struct berth_err *err)
{
    _Static_assert(sizeof p->filters == 4, "a bit for each filter");
    if (from->filters_len == 0)
        p->filters = UINT32_MAX;
    for (size_t i = 0; i < from->filters_len; i++) {
        size_t f = 0;
        while (f < filters_len && strcmp(filter_rows[f]->name, from->filters[i]) != 0)
            f++;
        if (f == filters_len)
            return err_set(err, EINVAL, "profile \"%s\": there is no filter \"%s\"", from->name, from->filters[i]);
        p->filters |= (uint32_t)1 << f;
    }
    for (size_t f = 0; f < filters_len; f++)
        p->filters |= (uint32_t)filter_rows[f]->always << f;
    return 0;
}

static int resolve_resources(const struct berth_profile *from, const struct berth_snapshot *s, struct profile *p,
                             struct berth_err *err)
{
    static const char *const usual[] = {"cpu", "memory"};
    const char *const *names = from->resources_len ? from->resources : usual;
    size_t len = from->resources_len ? from->resources_len : 2;

    if (len > PROFILE_RESOURCES_MAX)
        return err_set(err, EINVAL, "profile \"%s\": %zu resources; at most %d are allowed", from->name, len,
                       PROFILE_RESOURCES_MAX);
    p->uniform = true;
    for (size_t i = 0; i < len; i++) {
        uint32_t r = RESOURCE_GPU;
        for (uint32_t k = 0; k < s->resources_len && strcmp(names[i], "gpu") != 0; k++)
            if (strcmp(snapshot_text(s, s->resources[k].name), names[i]) == 0)
                r = k;
        bool there = r < s->layout->resources && s->layout->capacity[r];
        if (strcmp(names[i], "gpu") != 0 && !there)
            continue; /* no node has any */
        p->uniform &= r < RESOURCES_BUILT_IN;
        p->resources[p->resources_len++] = r;
    }
    return 0;
}

int profile_resolve(const struct berth_profile *from, const struct berth_snapshot *s, struct profile *p,
                    struct berth_err *err)
{
    int64_t total = 0;
    size_t named = from->resources_len ? from->resources_len : 2; /* an absent resource keeps its part of the weight */
    *p = (struct profile){0};
    if (!from->name)
        return err_set(err, EINVAL, "a profile has no name");
    if (from->steps > BERTH_STEPS_MAX)
        return err_set(err, EINVAL, "profile \"%s\": %u steps; at most %d are allowed", from->name, from->steps,
                       BERTH_STEPS_MAX);
    p->steps = from->steps;
    p->over = !from->allow_over;
    int rc = resolve_filters(from, p, err);
    if (!rc)
        rc = resolve_resources(from, s, p, err);
    if (rc)
        return rc;
    if (from->scores_len > sizeof p->scores / sizeof *p->scores)
        return err_set(err, EINVAL, "profile \"%s\": %zu scores are too many", from->name, from->scores_len);
    for (size_t i = 0; i < from->scores_len; i++) {
        const struct berth_weight *w = &from->scores[i];
        const struct score *score = NULL;
        for (size_t k = 0; k < scores_len; k++)
            score = strcmp(score_rows[k]->name, w->score) == 0 ? score_rows[k] : score;
        if (!score)
            return err_set(err, EINVAL, "profile \"%s\": there is no score \"%s\"", from->name, w->score);
        if (w->weight < 1 || w->weight > BERTH_WEIGHT_MAX)
            return err_set(err, EINVAL, "profile \"%s\": weight %d of %s is not between 1 and %d", from->name,
                           w->weight, w->score, BERTH_WEIGHT_MAX);
        if (from->steps && !score->stepped)
            return err_set(err, EINVAL, "profile \"%s\": score %s does not support steps", from->name, w->score);
        total += w->weight;
        p->scores[p->scores_len].score = score;
        p->scores[p->scores_len++].weight = w->weight;
        int32_t sign = score == &score_least_allocated ? 1 : score == &score_most_allocated ? -1 : 0;
        for (uint32_t r = 0; r < p->resources_len; r++)
            if (p->resources[r] != RESOURCE_GPU)
                p->linear[r] += sign * w->weight * (SCORE_SPLIT / (int32_t)named);
        p->spare += score == &score_gpu_spare ? w->weight * SCORE_ONE : 0;
        p->fragmentation |= score == &score_fragmentation;
        p->gpu_cost |= score == &score_gpu_worth;
        p->needs_largest |= score == &score_best_fit || score == &score_dot_product || score == &score_gpu_clustering;
    }
    if (total > PROFILE_WEIGHT_MAX)
        return err_set(err, EINVAL, "profile \"%s\": the weights sum up to %lld; at most %d are allowed", from->name,
                       (long long)total, PROFILE_WEIGHT_MAX);
    return 0;
}
