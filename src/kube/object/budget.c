/* budget.c - parses policy/v1 PodDisruptionBudget and v1alpha2 PodGroup. */
#include "kube/object/budget.h"

enum {
    META = 1,
    SPEC = 2,
    STATUS = 3,
    BUDGET_SELECTOR = 2,
    BUDGET_ALLOWED = 3,
    GROUP_POLICY = 2,
    POLICY_GANG = 2,
    GANG_MIN = 1,
};

static const struct kube_field_filter keep_budget_spec = {.whole = KUBE_FIELD(BUDGET_SELECTOR)};
static const struct kube_field_filter keep_budget_status = {.whole = KUBE_FIELD(BUDGET_ALLOWED)};
static const struct kube_nested_filter budget_inside[] = {
    {META,   &kube_keep_meta    },
    {SPEC,   &keep_budget_spec  },
    {STATUS, &keep_budget_status}
};
const struct kube_field_filter kube_keep_budget = {KUBE_INSIDE(budget_inside)};

static const struct kube_field_filter keep_group_spec = {.whole = KUBE_FIELD(GROUP_POLICY)};
static const struct kube_nested_filter group_inside[] = {
    {META, &kube_keep_meta },
    {SPEC, &keep_group_spec}
};
const struct kube_field_filter kube_keep_group = {KUBE_INSIDE(group_inside)};

bool kube_budget_read(struct arena *arena, struct proto_reader object, struct kube_budget *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_budget b = {.meta = KUBE_META_NONE};
    struct proto_field f, x;
    while (proto_next(&object, &f)) {
        struct proto_reader r = proto_sub(&f);
        if (f.number == META) {
            b.meta = kube_meta_read(&in, &f);
            continue;
        }
        while (proto_next(&r, &x)) {
            if (f.number == SPEC && x.number == BUDGET_SELECTOR)
                b.select = kube_selector_read(&in, &x);
            else if (f.number == STATUS && x.number == BUDGET_ALLOWED)
                b.allowed = (int32_t)proto_int(&x);
        }
        in.bad |= r.bad;
    }
    if (object.bad || in.bad)
        return false;
    *ret = b;
    return true;
}

static int64_t min_read(struct kube_decoder *in, const struct proto_field *policy)
{
    struct proto_reader r = proto_sub(policy);
    struct proto_field x, y;
    int64_t min = 0;
    while (proto_next(&r, &x)) {
        struct proto_reader gang = proto_sub(&x);
        while (x.number == POLICY_GANG && proto_next(&gang, &y))
            if (y.number == GANG_MIN)
                min = proto_int(&y);
        in->bad |= gang.bad;
    }
    in->bad |= r.bad;
    return min;
}

bool kube_group_read(struct arena *arena, struct proto_reader object, struct kube_group *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_group g = {.meta = KUBE_META_NONE};
    struct proto_field f, x;
    while (proto_next(&object, &f)) {
        struct proto_reader r = proto_sub(&f);
        if (f.number == META)
            g.meta = kube_meta_read(&in, &f);
        while (f.number == SPEC && proto_next(&r, &x))
            if (x.number == GROUP_POLICY) {
                int64_t min = min_read(&in, &x);
                in.bad |= min < 0 || min > BERTH_REPLICAS_MAX;
                g.min = (uint32_t)min;
            }
        in.bad |= r.bad;
    }
    if (object.bad || in.bad)
        return false;
    *ret = g;
    return true;
}
