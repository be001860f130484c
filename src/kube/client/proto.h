/* proto.h - protobuf's wire format: a reader over bytes that are there, a writer at the end of a text. No schema, no heap.
 *
 *     struct proto_reader r = proto_reader(bytes, len);
 *     struct proto_field f;
 *     while (proto_next(&r, &f))
 *         switch (f.number) {
 *         case 1: name = proto_text(&f); break;
 *         case 3: meta = proto_sub(&f); break;
 *         }
 *     if (r.bad) ...
 *
 * What is not asked for is skipped at the cost of its header. A field of another wire type than is asked for reads as empty
 * or 0, and what was read points into the bytes. Groups, which nobody writes any more, count as malformed. To read an object of the API
 * server, take it out of its envelope first: proto_object_read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

struct proto_reader {
    const uint8_t *at, *end;
    bool bad; /* malformed or cut off: nothing more is read */
};

enum proto_kind { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

struct proto_field {
    uint32_t number;
    enum proto_kind kind;
    uint64_t value;    /* of a number; 0 for bytes */
    const uint8_t *at; /* of bytes: within the reader's; otherwise NULL */
    size_t len;
};

/* Text or bytes in place: not ended by a NUL, not checked to be UTF-8. */
struct proto_text {
    const char *at; /* NULL only when len is 0 */
    size_t len;
};

/* p may be NULL when len is 0. */
static inline struct proto_reader proto_reader(const void *p, size_t len)
{
    return (struct proto_reader){.at = p, .end = p ? (const uint8_t *)p + len : NULL};
}

/* The next field in *f. False at the end, and with r->bad where the bytes are not protobuf. */
bool proto_next(struct proto_reader *r, struct proto_field *f);

/* Is all of it well-formed at this level? For deciding before anything is taken from it. */
bool proto_valid(struct proto_reader r);

static inline struct proto_text proto_text(const struct proto_field *f)
{
    return (struct proto_text){(const char *)f->at, f->len};
}

/* A nested message. One of another wire type is empty. */
static inline struct proto_reader proto_sub(const struct proto_field *f)
{
    return proto_reader(f->at, f->len);
}

/* int32, int64, uint32, enums; what is negative was written as ten bytes and comes back negative. */
static inline int64_t proto_int(const struct proto_field *f)
{
    return (int64_t)f->value;
}

static inline bool proto_bool(const struct proto_field *f)
{
    return f->value != 0;
}

static inline bool proto_is(struct proto_text t, const char *text)
{
    return t.len == strlen(text) && (t.len == 0 || memcmp(t.at, text, t.len) == 0);
}

/* ---- an object of the API server ---- */

/* "k8s", a NUL, then a runtime.Unknown: what kind it is, and its bytes. */
struct proto_object {
    struct proto_text api_version, kind; /* "v1", "Pod" */
    struct proto_reader raw;             /* the object itself */
};
/* False, with *ret untouched, for anything without that envelope or malformed in it. */
bool proto_object_read(const void *p, size_t len, struct proto_object *ret);

/* What every object begins with: its field 1. */
struct proto_meta {
    struct proto_text namespace, name, uid, version; /* resourceVersion */
    struct proto_reader meta;                        /* all of metav1.ObjectMeta, for labels and the rest */
};
/* Of an object without its envelope. False, with *ret untouched, when it is malformed. What is missing is empty. */
bool proto_meta_read(struct proto_reader object, struct proto_meta *ret);

/* ---- writing, at the end of a text (base/str.h) ---- */

void proto_add_int(struct str *to, uint32_t number, int64_t value);
void proto_add_bytes(struct str *to, uint32_t number, const void *p, size_t len);
void proto_add_text(struct str *to, uint32_t number, const char *text);
/* A nested message: what is added between the two belongs to it. They nest. */
size_t proto_begin(struct str *to, uint32_t number);
void proto_end(struct str *to, size_t begun);
/* The same for an object's envelope: the object's fields go between. */
size_t proto_object_begin(struct str *to, const char *api_version, const char *kind);
void proto_object_end(struct str *to, size_t begun);
