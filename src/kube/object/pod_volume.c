/* pod_volume.c - parses v1.Volume. Field numbers are those of k8s.io/api core/v1. */
#include "kube/object/pod_volume.h"

#include "kube/object/driver.h"
#include "kube/object/volume.h"

enum {
    VOLUME_NAME = 1,
    VOLUME_SOURCE = 2,
    SOURCE_GCE = 3,
    SOURCE_AWS = 4,
    SOURCE_ISCSI = 8,
    SOURCE_CLAIM = 10,
    SOURCE_RBD = 11,
    SOURCE_CINDER = 13,
    SOURCE_AZURE = 22,
    SOURCE_PORTWORX = 24,
    SOURCE_EPHEMERAL = 29,
    SOURCE_IMAGE = 30,
    CLAIM_NAME = 1,
    IMAGE_NAME = 1,
    EPHEMERAL_CLAIM = 1,
    EPHEMERAL_SPEC = 2,
};

/* In-tree disks that several pods on a node may share only for reading. Field numbers; 0: no such field. */
static const struct disk_kind {
    uint32_t source;
    const char *word;
    /* list: each entry counts as a disk, as sharing one entry means the same disk */
    uint32_t name, more, list, read_only;
} disk_kinds[] = {
    {SOURCE_GCE,   "gce",   1, 0, 0, 4},
    {SOURCE_AWS,   "aws",   1, 0, 0, 0},
    {SOURCE_ISCSI, "iscsi", 2, 0, 0, 6},
    {SOURCE_RBD,   "rbd",   2, 4, 1, 8},
};
enum { DISK_KINDS = sizeof disk_kinds / sizeof *disk_kinds };

static const struct disk_kind *disk_kind(uint32_t source)
{
    for (size_t i = 0; i < DISK_KINDS; i++)
        if (disk_kinds[i].source == source)
            return &disk_kinds[i];
    return NULL;
}

/* ---- kept fields ------------------------------------------------------------------------------------------------ */

/* Most volumes do not affect placement, and their names would make each pod a template of its own. */
static bool volume_wanted(const struct proto_field *f)
{
    struct proto_reader volume = proto_sub(f);
    struct proto_field x, y;
    while (proto_next(&volume, &x)) {
        struct proto_reader source = proto_sub(&x);
        while (x.number == VOLUME_SOURCE && proto_next(&source, &y))
            if (y.number == SOURCE_CLAIM || y.number == SOURCE_EPHEMERAL || y.number == SOURCE_IMAGE ||
                disk_kind(y.number) || kube_in_tree_of_pod(y.number))
                return true;
    }
    return volume.bad; /* keep a malformed volume, so that the parser rejects it */
}

#define F KUBE_FIELD
static const struct kube_field_filter keep_spec = {.whole = F(EPHEMERAL_SPEC)};
static const struct kube_nested_filter ephemeral_inside[] = {
    {EPHEMERAL_CLAIM, &keep_spec}
};
static const struct kube_field_filter keep_ephemeral = {KUBE_INSIDE(ephemeral_inside)};
static const struct kube_field_filter keep_gce = {.whole = F(1) | F(4)};
static const struct kube_field_filter keep_aws = {.whole = F(1)};
static const struct kube_field_filter keep_named = {.whole = F(1) | F(2)};
static const struct kube_field_filter keep_iscsi = {.whole = F(2) | F(6)};
static const struct kube_field_filter keep_rbd = {.whole = F(1) | F(2) | F(4) | F(8)};
static const struct kube_nested_filter source_inside[] = {
    {SOURCE_EPHEMERAL, &keep_ephemeral},
    {SOURCE_GCE,       &keep_gce      },
    {SOURCE_AWS,       &keep_aws      },
    {SOURCE_ISCSI,     &keep_iscsi    },
    {SOURCE_RBD,       &keep_rbd      },
    {SOURCE_CINDER,    &keep_named    },
    {SOURCE_AZURE,     &keep_named    },
    {SOURCE_PORTWORX,  &keep_named    },
};
static const struct kube_field_filter keep_source = {.whole = F(SOURCE_CLAIM) | F(SOURCE_IMAGE),
                                                     KUBE_INSIDE(source_inside)};
static const struct kube_nested_filter volume_inside[] = {
    {VOLUME_SOURCE, &keep_source}
};
const struct kube_field_filter kube_keep_pod_volume = {.whole = F(VOLUME_NAME),
                                                       .wanted = volume_wanted,
                                                       KUBE_INSIDE(volume_inside)};
#undef F

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

static void claim_read(struct kube_decoder *in, const struct proto_field *f, const char *volume, struct kube_pod *pod)
{
    struct kube_mount mount = {.volume = volume, .claim = ""};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == CLAIM_NAME)
            mount.claim = kube_text(in, &x);
    in->bad |= r.bad;
    kube_push(in->arena, &pod->mounts, mount);
}

static void ephemeral_read(struct kube_decoder *in, const struct proto_field *f, const char *volume,
                           struct kube_pod *pod)
{
    struct kube_claim *made = ARENA_NEW(in->arena, struct kube_claim);
    struct proto_reader r = proto_sub(f);
    struct proto_field x, y;
    *made = (struct kube_claim)KUBE_CLAIM_NONE;
    while (proto_next(&r, &x)) {
        struct proto_reader template = x.number == EPHEMERAL_CLAIM ? proto_sub(&x) : proto_reader(NULL, 0);
        while (proto_next(&template, &y))
            if (y.number == EPHEMERAL_SPEC)
                kube_claim_spec_read(in, &y, made);
        in->bad |= template.bad;
    }
    in->bad |= r.bad;
    kube_push(in->arena, &pod->mounts, ((struct kube_mount){volume, "", made}));
}

static void image_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == IMAGE_NAME)
            kube_pod_image_add(in, &x, pod);
    in->bad |= r.bad;
}

/* Adds a disk once; read-only only if all its mounts in the pod are. */
static void disk_add(struct kube_decoder *in, const char *id, bool reads, struct kube_pod *pod)
{
    for (size_t i = 0; i < pod->disks.len; i++)
        if (strcmp(pod->disks.at[i].id, id) == 0) {
            pod->disks.at[i].reads &= reads;
            return;
        }
    kube_push(in->arena, &pod->disks, ((struct kube_disk){id, reads}));
}

static void disk_read(struct kube_decoder *in, const struct proto_field *f, const struct disk_kind *kind,
                      struct kube_pod *pod)
{
    const char *name = "", *more = "";
    struct kube_texts list = {0};
    bool reads = false;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == kind->name)
            name = kube_text(in, &x);
        else if (x.number == kind->more)
            more = kube_text(in, &x);
        else if (x.number == kind->list)
            kube_push(in->arena, &list, kube_text(in, &x));
        else if (x.number == kind->read_only)
            reads = proto_bool(&x);
    }
    in->bad |= r.bad;
    if (!kind->list)
        disk_add(in, arena_fmt(in->arena, "%s:%s", kind->word, name), reads, pod);
    for (size_t i = 0; i < list.len; i++)
        disk_add(in, arena_fmt(in->arena, "%s:%s:%s:%s", kind->word, list.at[i], more, name), reads, pod);
}

static void attached_read(struct kube_decoder *in, const struct proto_field *f, const struct kube_in_tree *kind,
                          struct kube_pod *pod)
{
    const char *name = "";
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == kind->name)
            name = kube_text(in, &x);
    in->bad |= r.bad;
    kube_push(in->arena, &pod->attached,
              ((struct kube_attached){kind->driver, kube_in_tree_handle(in->arena, kind, name, "")}));
}

void kube_pod_volume_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    const char *name = "";
    struct proto_field source = {0};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == VOLUME_NAME)
            name = kube_text(in, &x);
        else if (x.number == VOLUME_SOURCE)
            source = x;
    }
    in->bad |= r.bad;
    r = proto_sub(&source);
    while (proto_next(&r, &x)) {
        const struct disk_kind *kind = disk_kind(x.number);
        const struct kube_in_tree *driven = kube_in_tree_of_pod(x.number);
        if (driven)
            attached_read(in, &x, driven, pod);
        if (x.number == SOURCE_CLAIM)
            claim_read(in, &x, name, pod);
        else if (x.number == SOURCE_EPHEMERAL)
            ephemeral_read(in, &x, name, pod);
        else if (x.number == SOURCE_IMAGE)
            image_read(in, &x, pod);
        else if (kind)
            disk_read(in, &x, kind, pod);
    }
    in->bad |= r.bad;
}
