/* work_spec.c - earlier generations of workloads from which instances were placed, kept while they are needed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "control/kind/work.h"

static void count_one(void *ctx, const struct berth_instance_view *instance)
{
    (void)instance;
    ++*(size_t *)ctx;
}

void work_keep_spec(struct request *c, const char *id, const json_t *doc)
{
    size_t instances = 0;
    /* The cluster also has assumed instances that no commit has confirmed yet. */
    berth_instances(state_cluster(c->state), id, count_one, &instances);
    if (instances == 0)
        return;
    json_int_t generation = json_integer_value(json_object_get(doc, "generation"));
    change_put(&c->change, KIND_SPEC, arena_fmt(&c->arena, "%s/%" JSON_INTEGER_FORMAT, id, generation),
               json_deep_copy(doc));
}

/* Returns the generation in a spec's ID; 0: the spec belongs to another workload. */
static uint64_t spec_generation(const char *spec, const char *id, size_t id_len)
{
    int64_t generation;
    if (strncmp(spec, id, id_len) != 0 || spec[id_len] != '/' || !str_parse_i64(spec + id_len + 1, &generation))
        return 0;
    return generation > 0 ? (uint64_t)generation : 0;
}

uint64_t work_first_generation(struct request *c, const char *id)
{
    size_t len = 0, id_len = strlen(id), low = 0;
    uint64_t last = 0;
    const struct object *const *specs = state_list(c->state, KIND_SPEC, &len);
    const char *prefix = arena_fmt(&c->arena, "%s/", id);
    for (size_t high = len; low < high;) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(specs[mid]->id, prefix) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < len && strncmp(specs[low]->id, prefix, id_len + 1) == 0; low++) {
        uint64_t generation = spec_generation(specs[low]->id, id, id_len);
        last = generation > last ? generation : last;
    }
    for (size_t i = 0; i < c->change.items.len; i++) { /* specs that an earlier part of this transaction deletes */
        const struct change_item *item = &c->change.items.at[i];
        uint64_t generation = item->kind == KIND_SPEC ? spec_generation(item->id, id, id_len) : 0;
        last = generation > last ? generation : last;
    }
    return last + 1;
}
