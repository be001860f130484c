/* proto.h - protobuf's wire format: a reader over bytes in memory, and a writer that appends to a text. No schema, no
 * heap.
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
 * Fields that are not read are skipped at the cost of their header. A field of another wire type than requested reads
 * as empty or 0. Results point into the bytes. Groups, which are obsolete, count as malformed. An object of the API
 * server must be taken out of its envelope first: proto_object_read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

struct proto_reader {
    const uint8_t *at, *end;
    bool bad; /* malformed or truncated: nothing more is read */
};

enum proto_kind { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

struct proto_field {
    uint32_t number;
    enum proto_kind kind;
    uint64_t value;    /* of a number; 0 for bytes */
    const uint8_t *at; /* of bytes: points into the reader's bytes; otherwise NULL */
    size_t len;
};

/* Text or bytes in place: not NUL-terminated, not checked for UTF-8. */
struct proto_text {
    const char *at; /* NULL only when len is 0 */
    size_t len;
};

/* p may be NULL when len is 0. */
static inline struct proto_reader proto_reader(const void *p, size_t len)
{
    return (struct proto_reader){.at = p, .end = p ? (const uint8_t *)p + len : NULL};
}

/* Reads the next field into *f. False at the end, with r->bad set if the bytes are malformed. */
bool proto_next(struct proto_reader *r, struct proto_field *f);

/* Reports whether the message is well-formed at this level, to check it before using any of it. */
bool proto_valid(struct proto_reader r);

static inline struct proto_text proto_text(const struct proto_field *f)
{
    return (struct proto_text){(const char *)f->at, f->len};
}

/* Returns a nested message; a field of another wire type yields an empty one. */
static inline struct proto_reader proto_sub(const struct proto_field *f)
{
    return proto_reader(f->at, f->len);
}

/* For int32, int64, uint32 and enums; negative numbers are encoded as ten bytes. */
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

/* ---- API server objects ----------------------------------------------------------------------------------------- */

/* The envelope: "k8s", a NUL, then a runtime.Unknown with the kind and the object's bytes. */
struct proto_object {
    struct proto_text api_version, kind; /* "v1", "Pod" */
    struct proto_reader raw;             /* the object itself */
};
/* Returns false, with *ret untouched, if the envelope is missing or malformed. */
bool proto_object_read(const void *p, size_t len, struct proto_object *ret);

/* Field 1 of every object. */
struct proto_meta {
    struct proto_text namespace, name, uid, version; /* resourceVersion */
    struct proto_reader meta;                        /* the whole metav1.ObjectMeta, for labels and the rest */
};
/* Reads an object without its envelope. Returns false, with *ret untouched, if it is malformed. Missing fields are
 * empty. */
bool proto_meta_read(struct proto_reader object, struct proto_meta *ret);

/* ---- writing, appended to a text (base/str.h) ------------------------------------------------------------------- */

void proto_add_int(struct str *to, uint32_t number, int64_t value);
void proto_add_bytes(struct str *to, uint32_t number, const void *p, size_t len);
void proto_add_text(struct str *to, uint32_t number, const char *text);
/* Begin and end a nested message: fields added in between belong to it. Calls may nest. */
size_t proto_begin(struct str *to, uint32_t number);
void proto_end(struct str *to, size_t begun);
/* The same for the envelope of an object. */
size_t proto_object_begin(struct str *to, const char *api_version, const char *kind);
void proto_object_end(struct str *to, size_t begun);
