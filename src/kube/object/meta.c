/* meta.c - stripping by tables of field numbers; parsing of texts, maps and times. */
#include "kube/object/meta.h"

#include "kube/object/quantity.h"

enum { SECOND_NS = 1000000000 };

/* ---- stripping -------------------------------------------------------------------------------------------------- */

/* Annotations that a scheduler needs. */
static bool note_matters(const struct proto_field *entry)
{
    static const char *const prefixes[] = {"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/",
                                           "pod-group.scheduling.", "berth.dev/gpu-"};
    struct proto_reader r = proto_sub(entry);
    struct proto_field f;
    while (proto_next(&r, &f))
        for (size_t i = 0; f.number == 1 && i < sizeof prefixes / sizeof *prefixes; i++)
            if (f.len > strlen(prefixes[i]) && memcmp(f.at, prefixes[i], strlen(prefixes[i])) == 0)
                return true;
    return false;
}

static void keep_field(const struct proto_field *f, struct str *to)
{
    if (f->kind == PROTO_BYTES)
        proto_add_bytes(to, f->number, f->at, f->len);
    else if (f->kind == PROTO_VARINT)
        proto_add_int(to, f->number, (int64_t)f->value);
}

bool kube_strip(struct proto_reader from, const struct kube_field_filter *keep, struct str *to)
{
    struct proto_field f;
    while (proto_next(&from, &f)) {
        if (f.number < 64 && keep->whole >> f.number & 1) {
            keep_field(&f, to);
            continue;
        }
        for (size_t i = 0; i < keep->inside_len; i++) {
            const struct kube_nested_filter *in = &keep->inside[i];
            if (in->number != f.number)
                continue;
            if (in->matters) {
                if (in->matters(&f))
                    keep_field(&f, to);
                break;
            }
            if (in->keep->wanted && !in->keep->wanted(&f))
                break;
            size_t begun = proto_begin(to, f.number);
            bool ok = kube_strip(proto_sub(&f), in->keep, to);
            proto_end(to, begun);
            if (!ok)
                return false;
            break;
        }
    }
    return !from.bad;
}

enum {
    META_NAME = 1,
    META_NAMESPACE = 3,
    META_UID = 5,
    META_CREATED = 8,
    META_DELETED = 9,
    META_LABELS = 11,
    META_NOTES = 12,
    META_OWNERS = 13,
    OWNER_UID = 4,
    OWNER_CONTROLS = 6,
};

#define META_WHOLE                                                                                                     \
    (KUBE_FIELD(META_NAME) | KUBE_FIELD(META_NAMESPACE) | KUBE_FIELD(META_UID) | KUBE_FIELD(META_CREATED) |            \
     KUBE_FIELD(META_DELETED) | KUBE_FIELD(META_LABELS))
static const struct kube_nested_filter meta_inside[] = {
    {META_NOTES, NULL, note_matters}
};
const struct kube_field_filter kube_keep_meta = {.whole = META_WHOLE, KUBE_INSIDE(meta_inside)};
const struct kube_field_filter kube_keep_meta_shared = {.whole = KUBE_FIELD(META_LABELS), KUBE_INSIDE(meta_inside)};
const struct kube_field_filter kube_keep_meta_owned = {.whole = META_WHOLE | KUBE_FIELD(META_OWNERS),
                                                       KUBE_INSIDE(meta_inside)};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

const char *kube_text(struct kube_decoder *in, const struct proto_field *f)
{
    if (f->len == 0)
        return "";
    in->bad |= memchr(f->at, 0, f->len) != NULL;
    return arena_strndup(in->arena, (const char *)f->at, f->len);
}

void kube_label(struct kube_decoder *in, const struct proto_field *f, struct kube_labels *to)
{
    struct berth_label label = {"", ""};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == 1)
            label.key = kube_text(in, &x);
        else if (x.number == 2)
            label.value = kube_text(in, &x);
    }
    in->bad |= r.bad;
    kube_push(in->arena, to, label);
}

int64_t kube_quantity(struct kube_decoder *in, const struct proto_field *f, int64_t scale)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    int64_t value = 0;
    while (proto_next(&r, &x))
        if (x.number == 1 && x.len > 0)
            in->bad |= !kube_quantity_parse((const char *)x.at, x.len, scale, &value);
    in->bad |= r.bad;
    return value < 0 ? 0 : value > BERTH_AMOUNT_MAX ? BERTH_AMOUNT_MAX : value;
}

void kube_amount(struct kube_decoder *in, const struct proto_field *f, struct kube_amounts *to)
{
    struct berth_amount amount = {"", 0};
    struct proto_field quantity = {0};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == 1)
            amount.resource = kube_text(in, &x);
        else if (x.number == 2)
            quantity = x;
    }
    in->bad |= r.bad;
    amount.amount = kube_quantity(in, &quantity, strcmp(amount.resource, "cpu") == 0 ? 1000 : 1);
    kube_push(in->arena, to, amount);
}

enum berth_effect kube_effect(const struct proto_field *f)
{
    static const struct {
        const char *name;
        enum berth_effect effect;
    } rows[] = {
        {"NoSchedule",       BERTH_NO_SCHEDULE       },
        {"PreferNoSchedule", BERTH_PREFER_NO_SCHEDULE},
        {"NoExecute",        BERTH_NO_EXECUTE        },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (proto_is(proto_text(f), rows[i].name))
            return rows[i].effect;
    return BERTH_EFFECT_ANY;
}

int64_t kube_time_ns(struct kube_decoder *in, const struct proto_field *f)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    int64_t seconds = 0, nanos = 0, ns;
    while (proto_next(&r, &x)) {
        if (x.number == 1)
            seconds = proto_int(&x);
        else if (x.number == 2)
            nanos = proto_int(&x);
    }
    in->bad |= r.bad;
    if (__builtin_mul_overflow(seconds, SECOND_NS, &ns) || __builtin_add_overflow(ns, nanos, &ns) || ns < 0)
        return 0; /* Go's zero time, or out of range */
    return ns;
}

const char *kube_labels_find(const struct kube_labels *labels, const char *key)
{
    for (size_t i = 0; i < labels->len; i++)
        if (strcmp(labels->at[i].key, key) == 0)
            return labels->at[i].value;
    return NULL;
}

int64_t kube_amounts_find(const struct kube_amounts *amounts, const char *resource)
{
    for (size_t i = 0; i < amounts->len; i++)
        if (strcmp(amounts->at[i].resource, resource) == 0)
            return amounts->at[i].amount;
    return 0;
}

static void owner_read(struct kube_decoder *in, const struct proto_field *f, struct kube_meta *meta)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    const char *uid = "";
    bool controls = false;
    while (proto_next(&r, &x)) {
        if (x.number == OWNER_UID)
            uid = kube_text(in, &x);
        else if (x.number == OWNER_CONTROLS)
            controls = proto_bool(&x);
    }
    in->bad |= r.bad;
    if (controls)
        meta->controller = uid;
}

struct kube_meta kube_meta_read(struct kube_decoder *in, const struct proto_field *f)
{
    struct kube_meta meta = KUBE_META_NONE;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case META_NAME: meta.name = kube_text(in, &x); break;
        case META_NAMESPACE: meta.namespace = kube_text(in, &x); break;
        case META_UID: meta.uid = kube_text(in, &x); break;
        case META_CREATED: meta.created_ns = kube_time_ns(in, &x); break;
        case META_DELETED: meta.deleted_ns = kube_time_ns(in, &x); break;
        case META_LABELS: kube_label(in, &x, &meta.labels); break;
        case META_NOTES: kube_label(in, &x, &meta.notes); break;
        case META_OWNERS: owner_read(in, &x, &meta); break;
        default: break;
        }
    in->bad |= r.bad;
    return meta;
}

void kube_meta_times(struct kube_decoder *in, const struct proto_field *x, int64_t *created_ns, int64_t *deleted_ns)
{
    if (x->number == META_CREATED)
        *created_ns = kube_time_ns(in, x);
    else if (x->number == META_DELETED)
        *deleted_ns = kube_time_ns(in, x);
}
