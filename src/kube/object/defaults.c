#include "kube/object/defaults.h"

enum {
    META = 1,
    SPEC = 2,
    SPEC_LIMITS = 1,
    LIMIT_TYPE = 1,
    LIMIT_REQUEST = 5,
    CLASS_OVERHEAD = 3,
    OVERHEAD_FIXED = 1,
};

#define F KUBE_FIELD
static const struct kube_field_filter keep_limit = {.whole = F(LIMIT_TYPE) | F(LIMIT_REQUEST)};
static const struct kube_nested_filter limits_inside[] = {
    {SPEC_LIMITS, &keep_limit}
};
static const struct kube_field_filter keep_limits = {KUBE_INSIDE(limits_inside)};
static const struct kube_nested_filter range_inside[] = {
    {SPEC, &keep_limits}
};
const struct kube_field_filter kube_keep_limit_range = {KUBE_INSIDE(range_inside)};
const struct kube_field_filter kube_keep_runtime_class = {.whole = F(CLASS_OVERHEAD)};
#undef F

static bool has(const struct kube_amounts *amounts, const char *resource)
{
    for (size_t i = 0; i < amounts->len; i++)
        if (strcmp(amounts->at[i].resource, resource) == 0)
            return true;
    return false;
}

static void limit_read(struct kube_decoder *in, const struct proto_field *f, struct kube_amounts *to)
{
    struct kube_amounts found = {0};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    bool of_containers = false;
    while (proto_next(&r, &x)) {
        if (x.number == LIMIT_TYPE)
            of_containers = proto_is(proto_text(&x), "Container");
        else if (x.number == LIMIT_REQUEST)
            kube_amount(in, &x, &found);
    }
    in->bad |= r.bad;
    for (size_t i = 0; of_containers && i < found.len; i++)
        if (!has(to, found.at[i].resource))
            kube_push(in->arena, to, found.at[i]);
}

/* Calls `read` for each field `number` within each field `part`. */
static bool fields_read(struct arena *arena, struct proto_reader object, uint32_t part, uint32_t number,
                        void (*read)(struct kube_decoder *in, const struct proto_field *f, struct kube_amounts *to),
                        struct kube_amounts *to)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_amounts all = *to;
    struct proto_field f, x;
    while (proto_next(&object, &f)) {
        struct proto_reader r = f.number == part ? proto_sub(&f) : proto_reader(NULL, 0);
        while (proto_next(&r, &x))
            if (x.number == number)
                read(&in, &x, &all);
        in.bad |= r.bad;
    }
    if (object.bad || in.bad)
        return false;
    *to = all;
    return true;
}

bool kube_limit_range_read(struct arena *arena, struct proto_reader object, struct kube_amounts *to)
{
    return fields_read(arena, object, SPEC, SPEC_LIMITS, limit_read, to);
}

bool kube_runtime_class_read(struct arena *arena, struct proto_reader object, struct kube_amounts *to)
{
    return fields_read(arena, object, CLASS_OVERHEAD, OVERHEAD_FIXED, kube_amount, to);
}
