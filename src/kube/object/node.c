/* node.c - parses v1.Node and storage.k8s.io/v1 CSINode. */
#include "kube/object/node.h"

enum {
    NODE_META = 1,
    NODE_SPEC = 2,
    NODE_STATUS = 3,
    SPEC_UNSCHEDULABLE = 4,
    SPEC_TAINTS = 5,
    STATUS_ALLOCATABLE = 2,
    STATUS_IMAGES = 8,
};

static const struct kube_field_filter keep_taint = {.whole = KUBE_FIELD(1) | KUBE_FIELD(2) | KUBE_FIELD(3)};
static const struct kube_nested_filter spec_inside[] = {
    {SPEC_TAINTS, &keep_taint}
};
static const struct kube_field_filter keep_spec = {.whole = KUBE_FIELD(SPEC_UNSCHEDULABLE), KUBE_INSIDE(spec_inside)};
static const struct kube_field_filter keep_status = {.whole =
                                                         KUBE_FIELD(STATUS_ALLOCATABLE) | KUBE_FIELD(STATUS_IMAGES)};
static const struct kube_nested_filter node_inside[] = {
    {NODE_META,   &kube_keep_meta},
    {NODE_SPEC,   &keep_spec     },
    {NODE_STATUS, &keep_status   }
};
const struct kube_field_filter kube_keep_node = {KUBE_INSIDE(node_inside)};
static const struct kube_field_filter keep_status_bare = {.whole = KUBE_FIELD(STATUS_ALLOCATABLE)};
static const struct kube_nested_filter node_inside_bare[] = {
    {NODE_META,   &kube_keep_meta  },
    {NODE_SPEC,   &keep_spec       },
    {NODE_STATUS, &keep_status_bare}
};
const struct kube_field_filter kube_keep_node_bare = {KUBE_INSIDE(node_inside_bare)};

static const struct kube_nested_filter csi_inside[] = {
    {1, &kube_keep_meta}
};
const struct kube_field_filter kube_keep_csi_node = {.whole = KUBE_FIELD(2), KUBE_INSIDE(csi_inside)};

static void taint_read(struct kube_decoder *in, const struct proto_field *f, struct kube_node *node)
{
    struct berth_taint t = {"", "", BERTH_EFFECT_ANY};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case 1: t.key = kube_text(in, &x); break;
        case 2: t.value = kube_text(in, &x); break;
        case 3: t.effect = kube_effect(&x); break;
        default: break;
        }
    in->bad |= r.bad;
    if (t.effect != BERTH_EFFECT_ANY && *t.key) /* an unknown effect is ignored */
        kube_push(in->arena, &node->taints, t);
}

static void image_read(struct kube_decoder *in, const struct proto_field *f, struct kube_node *node)
{
    size_t first = node->images.len;
    int64_t size = 0;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == 1 && x.len > 0 && x.len <= BERTH_NAME_MAX)
            kube_push(in->arena, &node->images, ((struct berth_image){kube_text(in, &x), 0}));
        else if (x.number == 2)
            size = proto_int(&x);
    }
    in->bad |= r.bad;
    size = size < 0 ? 0 : size > BERTH_AMOUNT_MAX ? BERTH_AMOUNT_MAX : size;
    for (size_t i = first; i < node->images.len; i++)
        node->images.at[i].size_bytes = size;
}

static void spec_read(struct kube_decoder *in, const struct proto_field *f, struct kube_node *node)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == SPEC_UNSCHEDULABLE)
            node->unschedulable = proto_bool(&x);
        else if (x.number == SPEC_TAINTS)
            taint_read(in, &x, node);
    }
    in->bad |= r.bad;
}

static void status_read(struct kube_decoder *in, const struct proto_field *f, struct kube_node *node)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == STATUS_ALLOCATABLE)
            kube_amount(in, &x, &node->allocatable);
        else if (x.number == STATUS_IMAGES)
            image_read(in, &x, node);
    }
    in->bad |= r.bad;
}

bool kube_node_read(struct arena *arena, struct proto_reader object, struct kube_node *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_node node = {.meta = KUBE_META_NONE};
    struct proto_field f;
    while (proto_next(&object, &f))
        switch (f.number) {
        case NODE_META: node.meta = kube_meta_read(&in, &f); break;
        case NODE_SPEC: spec_read(&in, &f, &node); break;
        case NODE_STATUS: status_read(&in, &f, &node); break;
        default: break;
        }
    if (object.bad || in.bad)
        return false;
    *ret = node;
    return true;
}

/* ---- v1.CSINode ------------------------------------------------------------------------------------------------- */

static int64_t count_read(struct kube_decoder *in, const struct proto_field *f)
{
    int64_t count = -1;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == 1)
            count = proto_int(&x);
    in->bad |= r.bad;
    return count;
}

static void driver_read(struct kube_decoder *in, const struct proto_field *f, struct kube_csi_node *node)
{
    struct kube_attach a = {"", -1};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == 1)
            a.driver = kube_text(in, &x);
        else if (x.number == 4)
            a.count = count_read(in, &x);
    }
    in->bad |= r.bad;
    if (*a.driver)
        kube_push(in->arena, &node->drivers, a);
}

bool kube_csi_node_read(struct arena *arena, struct proto_reader object, struct kube_csi_node *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_csi_node node = {.meta = KUBE_META_NONE};
    struct proto_field f, x;
    while (proto_next(&object, &f)) {
        if (f.number == 1) {
            node.meta = kube_meta_read(&in, &f);
        } else if (f.number == 2) {
            struct proto_reader r = proto_sub(&f);
            while (proto_next(&r, &x))
                if (x.number == 1)
                    driver_read(&in, &x, &node);
            in.bad |= r.bad;
        }
    }
    if (object.bad || in.bad)
        return false;
    *ret = node;
    return true;
}
