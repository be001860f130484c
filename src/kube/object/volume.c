/* volume.c - parses volumes, claims and classes, and matches volumes to claims. */
#include "kube/object/volume.h"

#include "kube/object/driver.h"
#include "kube/object/quantity.h"

/* ---- kept fields ------------------------------------------------------------------------------------------------ */

enum {
    META = 1,
    SPEC = 2,
    STATUS = 3,

    VOLUME_CAPACITY = 1,
    VOLUME_SOURCE = 2,
    VOLUME_MODES = 3,
    VOLUME_CLAIM = 4,
    VOLUME_CLASS = 6,
    VOLUME_MODE = 8,
    VOLUME_AFFINITY = 9,
    VOLUME_ATTRIBUTES = 10,
    VOLUME_PHASE = 1,
    SOURCE_GCE = 1,
    SOURCE_AWS = 2,
    SOURCE_CINDER = 8,
    SOURCE_AZURE = 16,
    SOURCE_PORTWORX = 18,
    SOURCE_CSI = 22,

    CLAIM_MODES = 1,
    CLAIM_RESOURCES = 2,
    CLAIM_VOLUME = 3,
    CLAIM_SELECTOR = 4,
    CLAIM_CLASS = 5,
    CLAIM_MODE = 6,
    CLAIM_ATTRIBUTES = 9,

    CLASS_PROVISIONER = 2,
    CLASS_BINDING = 7,
    CLASS_TOPOLOGIES = 8,
};

#define F KUBE_FIELD
static const struct kube_field_filter keep_csi = {.whole = F(1) | F(2)};
static const struct kube_nested_filter source_inside[] = {
    {SOURCE_CSI,      &keep_csi},
    {SOURCE_GCE,      &keep_csi},
    {SOURCE_AWS,      &keep_csi},
    {SOURCE_CINDER,   &keep_csi},
    {SOURCE_AZURE,    &keep_csi},
    {SOURCE_PORTWORX, &keep_csi},
};
static const struct kube_field_filter keep_source = {
    KUBE_INSIDE(source_inside)}; /* the names are in the first two fields */
static const struct kube_field_filter keep_reference = {.whole = F(2) | F(3) | F(4)};
static const struct kube_nested_filter volume_spec_inside[] = {
    {VOLUME_SOURCE, &keep_source   },
    {VOLUME_CLAIM,  &keep_reference}
};
static const struct kube_field_filter keep_volume_spec = {
    .whole = F(VOLUME_CAPACITY) | F(VOLUME_MODES) | F(VOLUME_CLASS) | F(VOLUME_MODE) | F(VOLUME_AFFINITY) |
             F(VOLUME_ATTRIBUTES),
    KUBE_INSIDE(volume_spec_inside),
};
static const struct kube_field_filter keep_phase = {.whole = F(VOLUME_PHASE)};
static const struct kube_nested_filter volume_inside[] = {
    {META,   &kube_keep_meta  },
    {SPEC,   &keep_volume_spec},
    {STATUS, &keep_phase      }
};
const struct kube_field_filter kube_keep_volume = {KUBE_INSIDE(volume_inside)};

static const struct kube_field_filter keep_claim_spec = {.whole = F(CLAIM_MODES) | F(CLAIM_RESOURCES) |
                                                                  F(CLAIM_VOLUME) | F(CLAIM_SELECTOR) | F(CLAIM_CLASS) |
                                                                  F(CLAIM_MODE) | F(CLAIM_ATTRIBUTES)};
static const struct kube_nested_filter claim_inside[] = {
    {META, &kube_keep_meta_owned},
    {SPEC, &keep_claim_spec     }
};
const struct kube_field_filter kube_keep_claim = {KUBE_INSIDE(claim_inside)};

static const struct kube_nested_filter class_inside[] = {
    {META, &kube_keep_meta}
};
const struct kube_field_filter kube_keep_class = {.whole =
                                                      F(CLASS_PROVISIONER) | F(CLASS_BINDING) | F(CLASS_TOPOLOGIES),
                                                  KUBE_INSIDE(class_inside)};
#undef F

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

static unsigned mode_of(struct proto_text word)
{
    return proto_is(word, "ReadWriteOnce")      ? KUBE_RWO
           : proto_is(word, "ReadOnlyMany")     ? KUBE_ROX
           : proto_is(word, "ReadWriteMany")    ? KUBE_RWX
           : proto_is(word, "ReadWriteOncePod") ? KUBE_RWOP
                                                : 0;
}

static void driver_read(struct kube_decoder *in, const struct proto_field *f, struct kube_volume *v)
{
    struct proto_reader source = proto_sub(f);
    struct proto_field x, y;
    while (proto_next(&source, &x)) {
        const struct kube_in_tree *kind = kube_in_tree_of_volume(x.number);
        struct proto_reader r = proto_sub(&x);
        if (x.number != SOURCE_CSI && !kind)
            continue;
        while (proto_next(&r, &y)) {
            if (y.number == (kind ? kind->name : 2))
                v->handle = kube_text(in, &y);
            else if (y.number == 1 && !kind)
                v->driver = kube_text(in, &y);
        }
        in->bad |= r.bad;
        v->in_tree = kind;
    }
    in->bad |= source.bad;
}

static void reference_read(struct kube_decoder *in, const struct proto_field *f, struct kube_volume *v)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case 2: v->claim_namespace = kube_text(in, &x); break;
        case 3: v->claim_name = kube_text(in, &x); break;
        case 4: v->claim_uid = kube_text(in, &x); break;
        default: break;
        }
    in->bad |= r.bad;
}

static void volume_spec_read(struct kube_decoder *in, const struct proto_field *f, struct kube_volume *v)
{
    struct kube_amounts capacity = {0};
    struct proto_reader r = proto_sub(f), sub;
    struct proto_field x, y;
    while (proto_next(&r, &x))
        switch (x.number) {
        case VOLUME_CAPACITY: kube_amount(in, &x, &capacity); break;
        case VOLUME_SOURCE: driver_read(in, &x, v); break;
        case VOLUME_MODES: v->modes |= mode_of(proto_text(&x)); break;
        case VOLUME_CLAIM: reference_read(in, &x, v); break;
        case VOLUME_CLASS: v->class_name = kube_text(in, &x); break;
        case VOLUME_MODE: v->block = proto_is(proto_text(&x), "Block"); break;
        case VOLUME_AFFINITY:
            sub = proto_sub(&x);
            while (proto_next(&sub, &y))
                if (y.number == 1)
                    kube_terms_read(in, &y, &v->affinity);
            in->bad |= sub.bad;
            break;
        case VOLUME_ATTRIBUTES: v->attributes_class = kube_text(in, &x); break;
        default: break;
        }
    in->bad |= r.bad;
    v->size_bytes = kube_amounts_find(&capacity, "storage");
}

bool kube_volume_read(struct arena *arena, struct proto_reader object, struct kube_volume *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_volume v = {
        .meta = KUBE_META_NONE, .class_name = "", .attributes_class = "", .driver = "", .handle = ""};
    v.claim_namespace = v.claim_name = v.claim_uid = "";
    struct proto_field f, x;
    while (proto_next(&object, &f)) {
        struct proto_reader status = proto_sub(&f);
        if (f.number == META) {
            v.meta = kube_meta_read(&in, &f);
        } else if (f.number == SPEC) {
            volume_spec_read(&in, &f, &v);
        } else if (f.number == STATUS) {
            while (proto_next(&status, &x))
                if (x.number == VOLUME_PHASE)
                    v.available = proto_is(proto_text(&x), "Available");
            in.bad |= status.bad;
        }
    }
    if (object.bad || in.bad)
        return false;
    const char *old = kube_labels_find(&v.meta.notes, "volume.beta.kubernetes.io/storage-class");
    v.class_name = old ? old : v.class_name;
    if (v.in_tree) {
        const char *zones = kube_labels_find(&v.meta.labels, "failure-domain.beta.kubernetes.io/zone");
        zones = zones ? zones : kube_labels_find(&v.meta.labels, "topology.kubernetes.io/zone");
        v.handle = kube_in_tree_handle(arena, v.in_tree, v.handle, zones ? zones : "");
        v.driver = v.in_tree->driver;
    }
    *ret = v;
    return true;
}

static int64_t storage_read(struct kube_decoder *in, const struct proto_field *f)
{
    struct kube_amounts requests = {0};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == 2)
            kube_amount(in, &x, &requests);
    in->bad |= r.bad;
    return kube_amounts_find(&requests, "storage");
}

void kube_claim_spec_read(struct kube_decoder *in, const struct proto_field *f, struct kube_claim *c)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case CLAIM_MODES: c->modes |= mode_of(proto_text(&x)); break;
        case CLAIM_RESOURCES: c->size_bytes = storage_read(in, &x); break;
        case CLAIM_VOLUME: c->volume = kube_text(in, &x); break;
        case CLAIM_SELECTOR: c->selector = kube_selector_read(in, &x); break;
        case CLAIM_CLASS: c->class_name = kube_text(in, &x); break;
        case CLAIM_MODE: c->block = proto_is(proto_text(&x), "Block"); break;
        case CLAIM_ATTRIBUTES: c->attributes_class = kube_text(in, &x); break;
        default: break;
        }
    in->bad |= r.bad;
}

bool kube_claim_read(struct arena *arena, struct proto_reader object, struct kube_claim *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_claim c = KUBE_CLAIM_NONE;
    struct proto_field f;
    while (proto_next(&object, &f)) {
        if (f.number == META)
            c.meta = kube_meta_read(&in, &f);
        else if (f.number == SPEC)
            kube_claim_spec_read(&in, &f, &c);
    }
    if (object.bad || in.bad)
        return false;
    const char *old = kube_labels_find(&c.meta.notes, "volume.beta.kubernetes.io/storage-class");
    const char *selected = kube_labels_find(&c.meta.notes, "volume.kubernetes.io/selected-node");
    c.class_name = old ? old : c.class_name;
    c.selected = selected ? selected : "";
    c.bound = *c.volume && kube_labels_find(&c.meta.notes, "pv.kubernetes.io/bind-completed");
    *ret = c;
    return true;
}

/* Parses v1.TopologySelectorTerm: every label must have one of its values; a term without labels matches nothing. */
static void topology_read(struct kube_decoder *in, const struct proto_field *f, struct kube_terms *to)
{
    struct kube_exprs exprs = {0};
    struct proto_reader r = proto_sub(f);
    struct proto_field x, y;
    while (proto_next(&r, &x)) {
        struct berth_expr e = {.key = "", .match = BERTH_IN};
        struct kube_texts values = {0};
        struct proto_reader sub = proto_sub(&x);
        if (x.number != 1)
            continue;
        while (proto_next(&sub, &y)) {
            if (y.number == 1)
                e.key = kube_text(in, &y);
            else if (y.number == 2)
                kube_push(in->arena, &values, kube_text(in, &y));
        }
        in->bad |= sub.bad || !*e.key || values.len == 0;
        e.values = values.at;
        e.values_len = values.len;
        kube_push(in->arena, &exprs, e);
    }
    in->bad |= r.bad;
    kube_push(in->arena, to, ((struct berth_term){exprs.at, exprs.len, 0}));
}

bool kube_class_read(struct arena *arena, struct proto_reader object, struct kube_class *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_class c = {.meta = KUBE_META_NONE, .provisioner = ""};
    struct proto_field f;
    while (proto_next(&object, &f))
        switch (f.number) {
        case META: c.meta = kube_meta_read(&in, &f); break;
        case CLASS_PROVISIONER: c.provisioner = kube_text(&in, &f); break;
        case CLASS_BINDING: c.waits = proto_is(proto_text(&f), "WaitForFirstConsumer"); break;
        case CLASS_TOPOLOGIES: topology_read(&in, &f, &c.topologies); break;
        default: break;
        }
    if (object.bad || in.bad)
        return false;
    *ret = c;
    return true;
}

/* ---- matching --------------------------------------------------------------------------------------------------- */

bool kube_class_provisions(const struct kube_class *c)
{
    return *c->provisioner && strcmp(c->provisioner, "kubernetes.io/no-provisioner") != 0;
}

bool kube_volume_is_for(const struct kube_volume *v, const struct kube_claim *c)
{
    return *v->claim_name && strcmp(v->claim_name, c->meta.name) == 0 &&
           strcmp(v->claim_namespace, c->meta.namespace) == 0 &&
           (!*v->claim_uid || strcmp(v->claim_uid, c->meta.uid) == 0);
}

bool kube_volume_suits(const struct kube_volume *v, const struct kube_claim *c)
{
    bool meant = kube_volume_is_for(v, c);
    if ((*v->claim_name && !meant) || v->size_bytes < c->size_bytes || v->block != c->block || v->meta.deleted_ns ||
        strcmp(v->attributes_class, c->attributes_class) != 0)
        return false;
    if (meant)
        return true;
    return v->available && strcmp(v->class_name, c->class_name) == 0 && (c->modes & ~v->modes) == 0 &&
           (!c->selector.present || kube_selector_matches(&c->selector, &v->meta.labels));
}

/* "a__b" means either of two zones. */
static struct berth_expr zone_expr(struct arena *arena, const char *key, const char *value)
{
    struct kube_texts values = {0};
    for (const char *at = value;;) {
        const char *end = strstr(at, "__");
        kube_push(arena, &values, arena_strndup(arena, at, end ? (size_t)(end - at) : strlen(at)));
        if (!end)
            break;
        at = end + 2;
    }
    return (struct berth_expr){key, BERTH_IN, values.at, values.len};
}

struct kube_terms kube_volume_zones(struct arena *arena, const struct kube_volume *v)
{
    static const struct {
        const char *key, *newer; /* label that a node may have instead */
    } rows[] = {
        {"topology.kubernetes.io/zone",              NULL                           },
        {"topology.kubernetes.io/region",            NULL                           },
        {"failure-domain.beta.kubernetes.io/zone",   "topology.kubernetes.io/zone"  },
        {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    struct kube_terms zones = {0};
    for (size_t i = 0; i < ROWS; i++) {
        const char *value = kube_labels_find(&v->meta.labels, rows[i].key);
        if (!value)
            continue;
        struct kube_terms either = {0}, both;
        struct berth_expr *old = ARENA_ARRAY(arena, struct berth_expr, 1);
        *old = zone_expr(arena, rows[i].key, value);
        kube_push(arena, &either, ((struct berth_term){old, 1, 0}));
        if (rows[i].newer) {
            struct berth_expr *new = ARENA_ARRAY(arena, struct berth_expr, 2);
            new[0] = (struct berth_expr){rows[i].key, BERTH_NOT_EXISTS, NULL, 0};
            new[1] = zone_expr(arena, rows[i].newer, value);
            kube_push(arena, &either, ((struct berth_term){new, 2, 0}));
        }
        (void)kube_terms_both(arena, &zones, &either, &both); /* at most four terms */
        zones = both;
    }
    if (zones.len == 0)
        return zones;
    struct berth_expr *none = ARENA_ARRAY(arena, struct berth_expr, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        none[i] = (struct berth_expr){rows[i].key, BERTH_NOT_EXISTS, NULL, 0};
    kube_push(arena, &zones, ((struct berth_term){none, ROWS, 0}));
    return zones;
}
