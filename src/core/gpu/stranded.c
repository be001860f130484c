/* stranded.c - reports how much of the idle GPUs is useless to typical pods. */
#include <errno.h>
#include <string.h>

#include "core/gpu/typical_pods.h"
#include "core/plan/policy.h"

struct stranded_report {
    const struct berth_snapshot *s;
    const struct typical_pods *typical;
    struct typical_kind *kinds;
    struct arena arena;
};

static void add_node(struct stranded_report *t, uint32_t p, struct berth_fragmentation *to)
{
    const struct layout *l = t->s->layout;
    uint32_t first = l->device[p], len = l->device[p + 1] - first;
    int64_t *const *cpu = t->s->later ? t->s->later : t->s->now;
    int32_t milli[BERTH_NODE_GPUS_MAX];

    for (uint32_t d = 0; d < len; d++) {
        const struct device_free *f = &t->s->devices[first + d];
        milli[d] = f->later < f->now ? f->later : f->now;
        to->idle_milli += milli[d];
    }
    if (len)
        to->useless_milli += typical_pods_useless_milli(
            t->typical, typical_kind_of(&t->kinds, t->s, t->typical, l->devices + first, len, &t->arena),
            cpu[RESOURCE_CPU] ? cpu[RESOURCE_CPU][p] : 0, milli);
}

int berth_fragmentation(const struct berth_snapshot *s, const struct berth_policy *policy, const char *node,
                        struct berth_fragmentation *ret, struct berth_err *err)
{
    struct berth_fragmentation sum = {0};
    uint32_t from = 0, to = s->layout->len;
    int rc = policy ? policy_check(policy, err) : 0;
    if (rc)
        return rc;
    if (node && *node) {
        while (from < to && strcmp(snapshot_text(s, s->layout->id[from]), node) != 0)
            from++;
        if (from == to)
            return err_set(err, ENOENT, "there is no node \"%s\"", node);
        to = from + 1;
    }
    struct stranded_report t = {.s = s};
    arena_init(&t.arena);
    t.typical = typical_pods_new(s, policy ? policy->demand : NULL, policy ? policy->demand_len : 0, &t.arena);
    for (uint32_t p = from; p < to; p++)
        add_node(&t, p, &sum);
    arena_done(&t.arena);
    *ret = sum;
    return 0;
}
