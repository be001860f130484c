/* proto.c - every read is checked against the end of the bytes before it is made. */
#include "kube/client/proto.h"

#include <assert.h>

enum {
    VARINT_BYTES_MAX = 10,
    ENVELOPE_LEN = 4,
    META_NAME = 1,
    META_NAMESPACE = 3,
    META_UID = 5,
    META_VERSION = 6,
};
static const char envelope[ENVELOPE_LEN] = {'k', '8', 's', '\0'};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool varint_long(struct proto_reader *r, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_BYTES_MAX && r->at < r->end; i++) {
        uint8_t byte = *r->at++;
        if (i == VARINT_BYTES_MAX - 1 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *ret = value;
            return true;
        }
    }
    r->bad = true;
    return false;
}

static inline bool varint(struct proto_reader *r, uint64_t *ret)
{
    if (r->at < r->end && *r->at < 0x80) {
        *ret = *r->at++;
        return true;
    }
    return varint_long(r, ret);
}

static bool fixed(struct proto_reader *r, unsigned bytes, uint64_t *ret)
{
    uint64_t value = 0;
    if ((size_t)(r->end - r->at) < bytes) {
        r->bad = true;
        return false;
    }
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)r->at[i] << (8 * i);
    r->at += bytes;
    *ret = value;
    return true;
}

static bool bytes(struct proto_reader *r, struct proto_field *f)
{
    uint64_t len;
    if (!varint(r, &len))
        return false;
    if (len > (size_t)(r->end - r->at)) {
        r->bad = true;
        return false;
    }
    f->value = 0;
    f->at = r->at;
    f->len = (size_t)len;
    r->at += len;
    return true;
}

bool proto_next(struct proto_reader *r, struct proto_field *f)
{
    uint64_t tag;
    if (r->bad || r->at == r->end || !varint(r, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 32) {
        r->bad = true;
        return false;
    }
    f->number = (uint32_t)(tag >> 3);
    f->at = NULL;
    f->len = 0;
    switch (tag & 7) {
    case PROTO_VARINT: f->kind = PROTO_VARINT; return varint(r, &f->value);
    case PROTO_BYTES: f->kind = PROTO_BYTES; return bytes(r, f);
    case PROTO_FIXED64: f->kind = PROTO_FIXED64; return fixed(r, 8, &f->value);
    case PROTO_FIXED32: f->kind = PROTO_FIXED32; return fixed(r, 4, &f->value);
    default: r->bad = true; return false;
    }
}

bool proto_valid(struct proto_reader r)
{
    struct proto_field f;
    while (proto_next(&r, &f))
        ;
    return !r.bad;
}

static bool type_read(struct proto_reader r, struct proto_object *o)
{
    struct proto_field f;
    while (proto_next(&r, &f)) {
        if (f.number == 1)
            o->api_version = proto_text(&f);
        else if (f.number == 2)
            o->kind = proto_text(&f);
    }
    return !r.bad;
}

bool proto_object_read(const void *p, size_t len, struct proto_object *ret)
{
    struct proto_object o = {0};
    struct proto_field f;
    if (len < ENVELOPE_LEN || memcmp(p, envelope, ENVELOPE_LEN) != 0)
        return false;
    struct proto_reader r = proto_reader((const uint8_t *)p + ENVELOPE_LEN, len - ENVELOPE_LEN);
    while (proto_next(&r, &f)) {
        if (f.number == 1 && !type_read(proto_sub(&f), &o))
            return false;
        if (f.number == 2)
            o.raw = proto_sub(&f);
    }
    if (r.bad)
        return false;
    *ret = o;
    return true;
}

bool proto_meta_read(struct proto_reader object, struct proto_meta *ret)
{
    struct proto_meta m = {0};
    struct proto_field f;
    bool found = false;
    while (!found && proto_next(&object, &f)) { /* metadata comes first: the rest need not be parsed */
        found = f.number == 1;
        if (found)
            m.meta = proto_sub(&f);
    }
    if (object.bad)
        return false;
    struct proto_reader r = m.meta;
    while (proto_next(&r, &f))
        switch (f.number) {
        case META_NAME: m.name = proto_text(&f); break;
        case META_NAMESPACE: m.namespace = proto_text(&f); break;
        case META_UID: m.uid = proto_text(&f); break;
        case META_VERSION: m.version = proto_text(&f); break;
        default: break;
        }
    if (r.bad)
        return false;
    *ret = m;
    return true;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static size_t varint_put(uint64_t value, uint8_t to[VARINT_BYTES_MAX])
{
    size_t len = 0;
    for (; value >= 0x80; value >>= 7)
        to[len++] = (uint8_t)(value | 0x80);
    to[len++] = (uint8_t)value;
    return len;
}

static void add_varint(struct str *to, uint64_t value)
{
    uint8_t buf[VARINT_BYTES_MAX];
    str_add_bytes(to, buf, varint_put(value, buf));
}

static void add_tag(struct str *to, uint32_t number, enum proto_kind kind)
{
    assert(number > 0 && number < UINT32_C(1) << 29);
    add_varint(to, (uint64_t)number << 3 | kind);
}

void proto_add_int(struct str *to, uint32_t number, int64_t value)
{
    add_tag(to, number, PROTO_VARINT);
    add_varint(to, (uint64_t)value);
}

void proto_add_bytes(struct str *to, uint32_t number, const void *p, size_t len)
{
    add_tag(to, number, PROTO_BYTES);
    add_varint(to, len);
    str_add_bytes(to, p, len);
}

void proto_add_text(struct str *to, uint32_t number, const char *text)
{
    proto_add_bytes(to, number, text, strlen(text));
}

size_t proto_begin(struct str *to, uint32_t number)
{
    add_tag(to, number, PROTO_BYTES);
    str_add_char(to, '\0'); /* placeholder for the length, if one byte is enough */
    return to->len;
}

void proto_end(struct str *to, size_t begun)
{
    static const char room[VARINT_BYTES_MAX] = {0};
    uint8_t buf[VARINT_BYTES_MAX];
    assert(begun > 0 && begun <= to->len);
    size_t len = to->len - begun, head = varint_put(len, buf);
    str_add_bytes(to, room, head - 1);
    memmove(to->at + begun - 1 + head, to->at + begun, len);
    memcpy(to->at + begun - 1, buf, head);
}

size_t proto_object_begin(struct str *to, const char *api_version, const char *kind)
{
    str_add_bytes(to, envelope, ENVELOPE_LEN);
    size_t type = proto_begin(to, 1);
    proto_add_text(to, 1, api_version);
    proto_add_text(to, 2, kind);
    proto_end(to, type);
    return proto_begin(to, 2);
}

void proto_object_end(struct str *to, size_t begun)
{
    proto_end(to, begun);
}
