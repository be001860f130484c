/* meta.h - stripping and parsing of protobuf objects of the API server: the parts common to all kinds.
 *
 * An object is first stripped (kube_strip): of a pod's five kilobytes, a few hundred bytes affect where it may run.
 * Only these are kept, and they are compared with the previous version, so that an irrelevant change costs nothing.
 * They are then parsed (pod.h, node.h, ...) into plain structs with texts and lists in the caller's arena. Parsers
 * reject only malformed objects.
 *
 * To parse another field: add its number to the kind's table of kept fields, and a case to its parser.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "berth_model.h"
#include "kube/client/proto.h"

/* ---- stripping -------------------------------------------------------------------------------------------------- */

/* Which fields of a message are kept: whole fields below 64, and parts of nested messages. */
struct kube_field_filter {
    uint64_t whole; /* bit set of field numbers */
    const struct kube_nested_filter *inside;
    size_t inside_len;
    bool (*wanted)(const struct proto_field *f); /* for a nested message: whether to keep any of it; NULL: yes */
};
/* A nested field of which a part is kept, or all if `matters` says so. */
struct kube_nested_filter {
    uint32_t number;
    const struct kube_field_filter *keep;
    bool (*matters)(const struct proto_field *f); /* NULL: always by `keep` */
};
#define KUBE_FIELD(number) ((uint64_t)1 << (number))
#define KUBE_INSIDE(rows) .inside = (rows), .inside_len = sizeof(rows) / sizeof *(rows)

/* Appends the kept fields in their order. False if the bytes are malformed, with some of them appended. */
bool kube_strip(struct proto_reader from, const struct kube_field_filter *keep, struct str *to);

/* For metav1.ObjectMeta: name, namespace, uid, both times, labels, and the annotations a scheduler needs; the same with
 * owners; only labels and annotations, which many pods share. */
extern const struct kube_field_filter kube_keep_meta, kube_keep_meta_owned, kube_keep_meta_shared;

/* ---- reading ---------------------------------------------------------------------------------------------------- */

struct kube_decoder {
    struct arena *arena;
    bool bad; /* something was malformed */
};

/* Lists in an arena: `KUBE_LIST(struct x) xs = {0}; kube_push(in->arena, &xs, x);` */
#define KUBE_LIST(type)                                                                                                \
    struct {                                                                                                           \
        type *at;                                                                                                      \
        size_t len, cap;                                                                                               \
    }
#define kube_push(arena, list, x)                                                                                      \
    do {                                                                                                               \
        if ((list)->len == (list)->cap) {                                                                              \
            void *old_ = (list)->at;                                                                                   \
            (list)->cap = (list)->cap ? (list)->cap * 2 : 4;                                                           \
            (list)->at = arena_alloc((arena), arena_product((list)->cap, sizeof *(list)->at));                         \
            if (old_)                                                                                                  \
                memcpy((list)->at, old_, (list)->len * sizeof *(list)->at);                                            \
        }                                                                                                              \
        (list)->at[(list)->len++] = (x);                                                                               \
    } while (0)

struct kube_labels {
    struct berth_label *at;
    size_t len, cap;
};
struct kube_texts {
    const char **at;
    size_t len, cap;
};
struct kube_amounts {
    struct berth_amount *at;
    size_t len, cap;
};

/* Returns a NUL-terminated copy, never NULL. A text that contains a NUL is malformed. */
const char *kube_text(struct kube_decoder *in, const struct proto_field *f);
/* Adds an entry of a map of texts. */
void kube_label(struct kube_decoder *in, const struct proto_field *f, struct kube_labels *to);
/* Adds an entry of a map of quantities: `cpu` in thousandths, everything else in units; limited to 0 ...
 * BERTH_AMOUNT_MAX. */
void kube_amount(struct kube_decoder *in, const struct proto_field *f, struct kube_amounts *to);
/* Parses resource.Quantity in units of 1/scale, rounded up; negative amounts become 0. */
int64_t kube_quantity(struct kube_decoder *in, const struct proto_field *f, int64_t scale);
/* Parses the effect of a taint or toleration; an unknown one is BERTH_EFFECT_ANY. */
enum berth_effect kube_effect(const struct proto_field *f);
/* Parses metav1.Time to nanoseconds; 0: not set. */
int64_t kube_time_ns(struct kube_decoder *in, const struct proto_field *f);

/* Returns the label's value; NULL: no such label. */
const char *kube_labels_find(const struct kube_labels *labels, const char *key);
int64_t kube_amounts_find(const struct kube_amounts *amounts, const char *resource); /* 0: no such resource */

struct kube_meta {
    const char *namespace, *name, *uid; /* never NULL */
    const char *controller;             /* uid of the controlling owner; "" */
    int64_t created_ns, deleted_ns;     /* 0: not set */
    struct kube_labels labels, notes;
};
#define KUBE_META_NONE                                                                                                 \
    {                                                                                                                  \
        .namespace = "", .name = "", .uid = "", .controller = ""                                                       \
    }
struct kube_meta kube_meta_read(struct kube_decoder *in, const struct proto_field *f);
/* Parses the field if it is one of the two times of ObjectMeta. */
void kube_meta_times(struct kube_decoder *in, const struct proto_field *x, int64_t *created_ns, int64_t *deleted_ns);
