/* meta.h - objects of the API server, as protobuf, made smaller and read: what all kinds have in common.
 *
 * An object is first stripped (kube_strip): of a pod's five kilobytes a few hundred bytes say where it may run. What is left
 * is compared with what was known, so that a change that changes nothing costs nothing, and is all that is kept. Then it is
 * read (pod.h, node.h, ...) into plain structs whose texts and lists live in the caller's arena. Nothing here judges: a reader refuses
 * only what is malformed.
 *
 * To read one more field: its number in the kind's table of what is kept, and a case in its reader.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "berth_model.h"
#include "kube/client/proto.h"

/* ---- stripping ---------------------------------------------------------------------------------------------------- */

/* What is kept of a message: fields below 64 as they are, and some of what is inside others. */
struct kube_keep {
    uint64_t whole; /* a bit for each number */
    const struct kube_inside *inside;
    size_t inside_len;
    bool (*wanted)(const struct proto_field *f); /* of a message inside another: keep any of it at all? NULL: yes */
};
/* Inside one field: some of it, or all of it where it matters. */
struct kube_inside {
    uint32_t number;
    const struct kube_keep *keep;
    bool (*matters)(const struct proto_field *f); /* NULL: by `keep` */
};
#define KUBE_FIELD(number) ((uint64_t)1 << (number))
#define KUBE_INSIDE(rows) .inside = (rows), .inside_len = sizeof(rows) / sizeof *(rows)

/* Appends what is kept. False, with some of it appended, where the bytes are malformed. Fields keep their order. */
bool kube_strip(struct proto_reader from, const struct kube_keep *keep, struct str *to);

/* Of metav1.ObjectMeta: name, namespace, uid, the two times, labels, and annotations that say something to a scheduler; the same with its
 * owners; and labels and annotations alone, which many pods have in common. */
extern const struct kube_keep kube_keep_meta, kube_keep_meta_owned, kube_keep_meta_shared;

/* ---- reading ------------------------------------------------------------------------------------------------------ */

struct kube_in {
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

/* A text of its own, never NULL. One with a NUL inside is malformed. */
const char *kube_text(struct kube_in *in, const struct proto_field *f);
/* An entry of a map of texts. */
void kube_label(struct kube_in *in, const struct proto_field *f, struct kube_labels *to);
/* An entry of a map of quantities: `cpu` in thousandths, everything else in units, at most BERTH_AMOUNT_MAX and not below 0. */
void kube_amount(struct kube_in *in, const struct proto_field *f, struct kube_amounts *to);
/* resource.Quantity, in scale-ths, rounded up; what is negative is 0. */
int64_t kube_quantity(struct kube_in *in, const struct proto_field *f, int64_t scale);
/* Of a taint or a toleration, by its name; one that is not known is BERTH_EFFECT_ANY. */
enum berth_effect kube_effect(const struct proto_field *f);
/* metav1.Time in nanoseconds; 0 for none. */
int64_t kube_time_ns(struct kube_in *in, const struct proto_field *f);

/* NULL: no such label. */
const char *kube_labels_find(const struct kube_labels *labels, const char *key);
int64_t kube_amounts_find(const struct kube_amounts *amounts, const char *resource); /* 0: none */

struct kube_meta {
    const char *namespace, *name, *uid; /* never NULL */
    const char *controller;             /* uid of the owner that made it; "" */
    int64_t created_ns, deleted_ns;     /* 0: not */
    struct kube_labels labels, notes;
};
#define KUBE_META_NONE                                                                                                 \
    {                                                                                                                  \
        .namespace = "", .name = "", .uid = "", .controller = ""                                                       \
    }
struct kube_meta kube_meta_read(struct kube_in *in, const struct proto_field *f);
/* If the field of ObjectMeta is one of its two times, that one. */
void kube_meta_times(struct kube_in *in, const struct proto_field *x, int64_t *created_ns, int64_t *deleted_ns);
