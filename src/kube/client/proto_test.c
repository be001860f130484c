/* proto_test.c - the wire format byte by byte: what is read, what is rejected, and that written fields can be read. */
#include "kube/client/proto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define BYTES(text) (text), sizeof(text) - 1

static void single_field_is_read(void **state)
{
    static const struct {
        const char *label, *bytes;
        size_t len;
        uint32_t number;
        enum proto_kind kind;
        uint64_t value;
        const char *text;
    } rows[] = {
        {"small number",       BYTES("\x08\x05"),                                     1,  PROTO_VARINT,  5,                  ""   },
        {"two bytes",          BYTES("\x08\x96\x01"),                                 1,  PROTO_VARINT,  150,                ""   },
        {"minus one",          BYTES("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 2,  PROTO_VARINT,  UINT64_MAX,         ""   },
        {"text",
         BYTES("\x1a\x03"
               "abc"),
         3,                                                                               PROTO_BYTES,   0,                  "abc"},
        {"empty text",         BYTES("\x1a\x00"),                                     3,  PROTO_BYTES,   0,                  ""   },
        {"large field number", BYTES("\xfa\x01\x01x"),                                31, PROTO_BYTES,   0,                  "x"  },
        {"fixed32",            BYTES("\x25\x01\x02\x03\x04"),                         4,  PROTO_FIXED32, 0x04030201,         ""   },
        {"fixed64",            BYTES("\x29\x01\x02\x03\x04\x05\x06\x07\x08"),         5,  PROTO_FIXED64, 0x0807060504030201, ""   },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct proto_reader r = proto_reader(rows[i].bytes, rows[i].len);
        struct proto_field f = {0};
        if (!proto_next(&r, &f))
            fail_msg("%s: nothing", rows[i].label);
        assert_int_equal(f.number, rows[i].number);
        assert_int_equal(f.kind, rows[i].kind);
        assert_true(f.value == rows[i].value);
        if (!proto_is(proto_text(&f), rows[i].text))
            fail_msg("%s: another text", rows[i].label);
        assert_false(proto_next(&r, &f));
        assert_false(r.bad);
    }
}

static void malformed_messages_are_rejected(void **state)
{
    static const struct {
        const char *label, *bytes;
        size_t len;
    } rows[] = {
        {"tag without a value",        BYTES("\x08")                                            },
        {"number cut off",             BYTES("\x08\x96")                                        },
        {"number of eleven bytes",     BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
        {"number beyond 64 bits",      BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")    },
        {"text longer than the bytes", BYTES("\x1a\x04"
                                             "abc")       },
        {"length near 2^64",           BYTES("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")    },
        {"fixed32 cut off",            BYTES("\x25\x01\x02\x03")                                },
        {"fixed64 cut off",            BYTES("\x29\x01\x02\x03\x04\x05\x06\x07")                },
        {"field 0",                    BYTES("\x00\x01")                                        },
        {"field beyond 29 bits",       BYTES("\x80\x80\x80\x80\x10\x01")                        },
        {"a group",                    BYTES("\x0b\x0c")                                        },
        {"wire type 6",                BYTES("\x0e\x01")                                        },
        {"after a good field",         BYTES("\x08\x05\x08")                                    },
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct proto_reader r = proto_reader(rows[i].bytes, rows[i].len);
        struct proto_field f;
        if (proto_valid(r))
            fail_msg("%s: taken for good", rows[i].label);
        while (proto_next(&r, &f))
            assert_true(!f.at || f.at + f.len <= r.end);
        assert_true(r.bad);
        assert_false(proto_next(&r, &f));
    }
    assert_true(proto_valid(proto_reader(NULL, 0)));
}

/* A field of another wire type than requested reads as empty. */
static void field_of_another_type_is_empty(void **state)
{
    struct proto_reader r = proto_reader("\x08\x7f\x12\x01x", 5), sub;
    struct proto_field f;
    (void)state;
    assert_true(proto_next(&r, &f));
    assert_int_equal(proto_text(&f).len, 0);
    sub = proto_sub(&f);
    assert_false(proto_next(&sub, &(struct proto_field){0}));
    assert_true(proto_next(&r, &f));
    assert_int_equal(proto_int(&f), 0);
    assert_false(proto_bool(&f));
}

/* Lengths on both sides of the limits where they take another byte. */
static void nested_lengths_are_encoded(void **state)
{
    static const size_t lens[] = {0, 1, 124, 125, 126, 127, 128, 129, 16380, 16383, 16384, 70000};
    (void)state;
    for (size_t i = 0; i < ROWS(lens); i++) {
        CLEANUP(str) struct str s = {0};
        CLEANUP(mem) char *filler = mem_zalloc(lens[i] + 1);
        memset(filler, 'x', lens[i]);
        proto_add_int(&s, 7, -3);
        size_t outer = proto_begin(&s, 1), inner = proto_begin(&s, 2);
        proto_add_text(&s, 3, filler);
        proto_end(&s, inner);
        proto_add_int(&s, 4, 9);
        proto_end(&s, outer);
        proto_add_text(&s, 5, "end");

        struct proto_reader r = proto_reader(s.at, s.len), sub, subsub;
        struct proto_field f;
        assert_true(proto_next(&r, &f) && f.number == 7 && proto_int(&f) == -3);
        assert_true(proto_next(&r, &f) && f.number == 1);
        sub = proto_sub(&f);
        assert_true(proto_next(&r, &f) && f.number == 5 && proto_is(proto_text(&f), "end"));
        assert_false(proto_next(&r, &f));
        assert_true(proto_next(&sub, &f) && f.number == 2);
        subsub = proto_sub(&f);
        assert_true(proto_next(&sub, &f) && f.number == 4 && proto_int(&f) == 9);
        assert_false(proto_next(&sub, &f));
        assert_true(proto_next(&subsub, &f) && f.number == 3 && proto_is(proto_text(&f), filler));
        assert_false(r.bad || sub.bad || subsub.bad);
    }
}

static void protobuf_objects_are_read(void **state)
{
    CLEANUP(str) struct str s = {0};
    struct proto_object o = {0};
    struct proto_meta m = {0};
    (void)state;
    size_t object = proto_object_begin(&s, "v1", "Pod"), meta = proto_begin(&s, 1);
    proto_add_text(&s, 1, "web-0");
    proto_add_text(&s, 3, "shop");
    proto_add_text(&s, 5, "u-1");
    proto_add_text(&s, 6, "42");
    proto_end(&s, meta);
    proto_object_end(&s, object);
    assert_true(proto_object_read(s.at, s.len, &o));
    assert_true(proto_is(o.api_version, "v1") && proto_is(o.kind, "Pod"));
    assert_true(proto_meta_read(o.raw, &m));
    assert_true(proto_is(m.name, "web-0") && proto_is(m.namespace, "shop") && proto_is(m.uid, "u-1"));
    assert_true(proto_is(m.version, "42"));
    /* Truncated anywhere, the message is rejected or shorter, and never read beyond its end. */
    for (size_t len = 0; len < s.len; len++) {
        CLEANUP(mem) char *cut = mem_alloc(len ? len : 1);
        memcpy(cut, s.at, len);
        if (proto_object_read(cut, len, &o) && proto_meta_read(o.raw, &m))
            assert_true(m.name.len <= 5);
    }
    assert_false(proto_object_read("{\"kind\":1}", 10, &o));
    assert_false(proto_object_read("k8s", 3, &o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_field_is_read),           cmocka_unit_test(malformed_messages_are_rejected),
        cmocka_unit_test(field_of_another_type_is_empty), cmocka_unit_test(nested_lengths_are_encoded),
        cmocka_unit_test(protobuf_objects_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
