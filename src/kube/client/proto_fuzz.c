/* proto_fuzz.c - arbitrary bytes as protobuf: every field lies within them, and written fields can be read again. */
#include "kube/client/proto.h"

#include <assert.h>

#include "base/mem.h"

enum { DEPTH_MAX = 8 };

static void walk(struct proto_reader r, const uint8_t *from, const uint8_t *to, unsigned depth)
{
    struct proto_field f;
    while (proto_next(&r, &f)) {
        assert(f.number > 0);
        assert(f.kind == PROTO_BYTES ? f.at >= from && f.at + f.len <= to && f.value == 0 : !f.at && f.len == 0);
        if (f.kind == PROTO_BYTES && depth < DEPTH_MAX)
            walk(proto_sub(&f), f.at, f.at + f.len, depth + 1);
    }
    assert(r.at <= to && (r.bad || r.at == to));
}

static void again(struct proto_reader r)
{
    CLEANUP(str) struct str s = {0};
    struct proto_reader from = r;
    struct proto_field f, g;
    while (proto_next(&from, &f)) {
        if (f.kind == PROTO_BYTES)
            proto_add_bytes(&s, f.number, f.at, f.len);
        else
            proto_add_int(&s, f.number, proto_int(&f));
    }
    struct proto_reader copy = proto_reader(s.at, s.len);
    while (proto_next(&r, &f)) {
        assert(proto_next(&copy, &g));
        assert(f.number == g.number && f.value == g.value && f.len == g.len);
        assert(f.len == 0 || memcmp(f.at, g.at, f.len) == 0);
    }
    assert(!proto_next(&copy, &g) && !copy.bad);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proto_object o;
    struct proto_meta m;
    walk(proto_reader(data, size), data, data + size, 0);
    again(proto_reader(data, size));
    if (proto_object_read(data, size, &o) && proto_meta_read(o.raw, &m)) {
        assert(m.name.len == 0 || ((const uint8_t *)m.name.at >= data && (const uint8_t *)m.name.at < data + size));
        walk(m.meta, m.meta.at, m.meta.end, 0);
    }
    return 0;
}
