#include "kube/object/driver.h"

enum {
    META = 1,
    SPEC = 2,
    DRIVER_ATTACHES = 1,
    DRIVER_CAPACITY = 4,
    CAPACITY_NODES = 2,
    CAPACITY_CLASS = 3,
    CAPACITY_LEFT = 4,
    CAPACITY_MOST = 5,
    ATTACHMENT_DRIVER = 1,
    ATTACHMENT_SOURCE = 2,
    ATTACHMENT_NODE = 3,
    SOURCE_VOLUME = 1,
};

#define F KUBE_FIELD
static const struct kube_field_filter keep_driver_spec = {.whole = F(DRIVER_ATTACHES) | F(DRIVER_CAPACITY)};
static const struct kube_nested_filter driver_inside[] = {
    {META, &kube_keep_meta  },
    {SPEC, &keep_driver_spec}
};
const struct kube_field_filter kube_keep_driver = {KUBE_INSIDE(driver_inside)};
static const struct kube_nested_filter capacity_inside[] = {
    {META, &kube_keep_meta}
};
const struct kube_field_filter kube_keep_capacity = {.whole = F(CAPACITY_NODES) | F(CAPACITY_CLASS) | F(CAPACITY_LEFT) |
                                                              F(CAPACITY_MOST),
                                                     KUBE_INSIDE(capacity_inside)};
static const struct kube_field_filter keep_source = {.whole = F(SOURCE_VOLUME)};
static const struct kube_nested_filter source_inside[] = {
    {ATTACHMENT_SOURCE, &keep_source}
};
static const struct kube_field_filter keep_attachment_spec = {.whole = F(ATTACHMENT_DRIVER) | F(ATTACHMENT_NODE),
                                                              KUBE_INSIDE(source_inside)};
static const struct kube_nested_filter attachment_inside[] = {
    {SPEC, &keep_attachment_spec}
};
const struct kube_field_filter kube_keep_attachment = {KUBE_INSIDE(attachment_inside)};
#undef F

bool kube_driver_read(struct arena *arena, struct proto_reader object, struct kube_driver *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_driver d = {.meta = KUBE_META_NONE, .attaches = true};
    struct proto_field f, x;
    while (proto_next(&object, &f)) {
        struct proto_reader spec = f.number == SPEC ? proto_sub(&f) : proto_reader(NULL, 0);
        if (f.number == META)
            d.meta = kube_meta_read(&in, &f);
        while (proto_next(&spec, &x)) {
            if (x.number == DRIVER_ATTACHES)
                d.attaches = proto_bool(&x);
            else if (x.number == DRIVER_CAPACITY)
                d.capacity = proto_bool(&x);
        }
        in.bad |= spec.bad;
    }
    if (object.bad || in.bad)
        return false;
    *ret = d;
    return true;
}

bool kube_capacity_read(struct arena *arena, struct proto_reader object, struct kube_capacity *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_capacity c = {.meta = KUBE_META_NONE, .class_name = "", .most_bytes = -1};
    bool most = false; /* maximumVolumeSize takes precedence over capacity */
    struct proto_field f;
    while (proto_next(&object, &f))
        switch (f.number) {
        case META: c.meta = kube_meta_read(&in, &f); break;
        case CAPACITY_NODES: c.nodes = kube_selector_read(&in, &f); break;
        case CAPACITY_CLASS: c.class_name = kube_text(&in, &f); break;
        case CAPACITY_LEFT: c.most_bytes = most ? c.most_bytes : kube_quantity(&in, &f, 1); break;
        case CAPACITY_MOST:
            c.most_bytes = kube_quantity(&in, &f, 1);
            most = true;
            break;
        default: break;
        }
    if (object.bad || in.bad)
        return false;
    *ret = c;
    return true;
}

bool kube_attachment_read(struct arena *arena, struct proto_reader object, struct kube_attachment *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_attachment a = {.driver = "", .node = "", .volume = ""};
    struct proto_field f, x, y;
    while (proto_next(&object, &f)) {
        struct proto_reader spec = f.number == SPEC ? proto_sub(&f) : proto_reader(NULL, 0);
        while (proto_next(&spec, &x)) {
            struct proto_reader source = x.number == ATTACHMENT_SOURCE ? proto_sub(&x) : proto_reader(NULL, 0);
            if (x.number == ATTACHMENT_DRIVER)
                a.driver = kube_text(&in, &x);
            else if (x.number == ATTACHMENT_NODE)
                a.node = kube_text(&in, &x);
            while (proto_next(&source, &y))
                if (y.number == SOURCE_VOLUME)
                    a.volume = kube_text(&in, &y);
            in.bad |= source.bad;
        }
        in.bad |= spec.bad;
    }
    if (object.bad || in.bad)
        return false;
    *ret = a;
    return true;
}

static const struct kube_in_tree in_tree[] = {
    {"kubernetes.io/gce-pd",          "pd.csi.storage.gke.io",    3,  1,  1},
    {"kubernetes.io/aws-ebs",         "ebs.csi.aws.com",          4,  2,  1},
    {"kubernetes.io/cinder",          "cinder.csi.openstack.org", 13, 8,  1},
    {"kubernetes.io/azure-disk",      "disk.csi.azure.com",       22, 16, 2},
    {"kubernetes.io/portworx-volume", "pxd.portworx.com",         24, 18, 1},
};
enum { IN_TREE = sizeof in_tree / sizeof *in_tree, GCE = 0, AWS = 1 };

const struct kube_in_tree *kube_in_tree_of_pod(uint32_t source)
{
    for (size_t i = 0; i < IN_TREE; i++)
        if (in_tree[i].of_pod == source)
            return &in_tree[i];
    return NULL;
}

const struct kube_in_tree *kube_in_tree_of_volume(uint32_t source)
{
    for (size_t i = 0; i < IN_TREE; i++)
        if (in_tree[i].of_volume == source)
            return &in_tree[i];
    return NULL;
}

const char *kube_in_tree_handle(struct arena *arena, const struct kube_in_tree *kind, const char *name,
                                const char *zones)
{
    static const char aws[] = "aws://"; /* "aws://", a zone, and the name after the last slash */
    if (kind == &in_tree[GCE])
        return arena_fmt(arena, "projects/UNSPECIFIED/zones/%s/disks/%s", *zones ? zones : "UNSPECIFIED", name);
    const char *last = kind == &in_tree[AWS] && strncmp(name, aws, strlen(aws)) == 0 ? strrchr(name, '/') : NULL;
    return last ? last + 1 : name;
}

const char *kube_provisioner_driver(const char *provisioner)
{
    for (size_t i = 0; i < IN_TREE; i++)
        if (strcmp(in_tree[i].provisioner, provisioner) == 0)
            return in_tree[i].driver;
    return provisioner;
}
