/* event_test.c - events as received by the server: their fields, series of repeated events, a queue that drops. */
#include "kube/client/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/client/server_kit_test.h"

#define PATH "/apis/events.k8s.io/v1/namespaces/shop/events"

static int64_t noon(void *ctx)
{
    (void)ctx;
    return INT64_C(1800000000250000000);
}

static struct kube_events *events_start(struct fake *f, size_t queue_max, size_t under_way_max, int64_t series_ns)
{
    fake_start(f, (struct http_config){0});
    const struct kube_events_config config = {.api = f->api,
                                              .loop = f->kit.loop,
                                              .controller = "berth",
                                              .instance = "berth-host",
                                              .queue_max = queue_max,
                                              .under_way_max = under_way_max,
                                              .series_ns = series_ns,
                                              .wall_ns = noon};
    return kube_events_new(&config);
}

static struct kube_event about(const char *name, const char *note)
{
    return (struct kube_event){.kind = "Pod",
                               .api_version = "v1",
                               .namespace = "shop",
                               .name = name,
                               .uid = name,
                               .version = "7",
                               .warning = true,
                               .reason = "FailedScheduling",
                               .action = "Scheduling",
                               .note = note};
}

static struct proto_field last_of(struct proto_reader r, uint32_t number)
{
    struct proto_field f = {0}, found = {0};
    while (proto_next(&r, &f))
        if (f.number == number)
            found = f;
    return found;
}

/* Returns field `outer`, or field `inner` within it unless that is 0. */
static struct proto_field at(const struct proto_object *o, uint32_t outer, uint32_t inner)
{
    struct proto_field f = last_of(o->raw, outer);
    return inner ? last_of(proto_sub(&f), inner) : f;
}

static void says(const struct proto_object *o, uint32_t outer, uint32_t inner, const char *text)
{
    struct proto_field f = at(o, outer, inner);
    if (!proto_is(proto_text(&f), text))
        fail_msg("field %u.%u is \"%.*s\"", outer, inner, (int)f.len, (const char *)f.at);
}

static struct proto_object object_of(struct http_request *x)
{
    struct proto_object o = {0};
    size_t len;
    const char *body = http_body(x, &len);
    assert_string_equal(http_method(x), "POST");
    assert_string_equal(http_path(x), PATH);
    assert_string_equal(http_header(x, "Content-Type"), "application/vnd.kubernetes.protobuf");
    assert_true(proto_object_read(body, len, &o));
    return o;
}

static void event_fields(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct kube_events *e = events_start(&f, 0, 0, 0);
    struct kube_event v = about("web-0", "0/5 nodes are available");
    (void)state;
    v.related_kind = "Node";
    v.related_name = "n1";
    kube_events_add(e, &v);
    struct http_request *x = fake_next(&f);
    struct proto_object o = object_of(x);
    assert_true(proto_is(o.api_version, "events.k8s.io/v1") && proto_is(o.kind, "Event"));
    says(&o, 1, 3, "shop");
    says(&o, 4, 0, "berth");
    says(&o, 5, 0, "berth-host");
    says(&o, 6, 0, "Scheduling");
    says(&o, 7, 0, "FailedScheduling");
    says(&o, 8, 1, "Pod");
    says(&o, 8, 2, "shop");
    says(&o, 8, 3, "web-0");
    says(&o, 8, 4, "web-0");
    says(&o, 8, 5, "v1");
    says(&o, 8, 6, "7");
    says(&o, 9, 1, "Node");
    says(&o, 9, 3, "n1");
    says(&o, 10, 0, "0/5 nodes are available");
    says(&o, 11, 0, "Warning");
    struct proto_field name = at(&o, 1, 1), seconds = at(&o, 2, 1), nanos = at(&o, 2, 2);
    assert_int_equal(name.len, strlen("web-0.0123456789abcdef"));
    assert_memory_equal(name.at, "web-0.", 6);
    assert_int_equal(proto_int(&seconds), 1800000000);
    assert_int_equal(proto_int(&nanos), 250000000);
    fake_answer(x, 201, "{}");
    KIT_UNTIL(&f.kit, kube_events_stats(e).written == 1);
    kube_events_free(e);
}

/* One process may report under several controller names. */
static void controller_name_per_event(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct kube_events *e = events_start(&f, 0, 0, 0);
    struct kube_event v = about("web-0", "0/5 nodes are available");
    (void)state;
    v.controller = "berth-pack";
    kube_events_add(e, &v);
    struct http_request *x = fake_next(&f);
    struct proto_object o = object_of(x);
    says(&o, 4, 0, "berth-pack");
    says(&o, 5, 0, "berth-host");
    fake_answer(x, 201, "{}");
    KIT_UNTIL(&f.kit, kube_events_stats(e).written == 1);
    kube_events_free(e);
}

/* Long notes are cut at a character boundary, and marked as cut. */
static void long_notes_are_cut(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct kube_events *e = events_start(&f, 0, 0, 0);
    (void)state;
    for (size_t before = 0; before < 4; before++) {
        CLEANUP(str) struct str note = {0};
        str_add_bytes(&note, "xyz", before);
        while (note.len < 2000)
            str_add(&note, "\xf0\x9f\x98\x80");
        struct kube_event v = about("web-0", note.at);
        kube_events_add(e, &v);
        struct http_request *x = fake_next(&f);
        struct proto_object o = object_of(x);
        struct proto_field said = at(&o, 10, 0);
        assert_true(said.len <= 1024 && said.len > 1000);
        assert_true(str_utf8_valid((const char *)said.at, said.len));
        assert_memory_equal(said.at + said.len - 3, "...", 3);
        fake_answer(x, 201, "{}");
    }
    kube_events_free(e);
}

static void repeats_become_series(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct kube_events *e = events_start(&f, 0, 0, 1); /* a repeated event is written at once */
    struct kube_event v = about("web-0", "full"), other = about("web-0", "fuller");
    (void)state;
    kube_events_add(e, &v);
    struct http_request *x = fake_next(&f);
    struct proto_object o = object_of(x);
    struct proto_field name = at(&o, 1, 1);
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/%.*s", PATH, (int)name.len, (const char *)name.at);
    fake_answer(x, 201, "{}");
    KIT_UNTIL(&f.kit, kube_events_stats(e).written == 1);

    kube_events_add(e, &v);
    x = fake_next(&f);
    size_t len;
    assert_string_equal(http_method(x), "PATCH");
    assert_string_equal(http_path(x), path.at);
    assert_string_equal(http_header(x, "Content-Type"), KUBE_MERGE_PATCH);
    assert_string_equal(http_body(x, &len),
                        "{\"series\":{\"count\":2,\"lastObservedTime\":\"2027-01-15T08:00:00.250000Z\"}}");
    fake_answer(x, 200, "{}");
    kube_events_add(e, &other); /* another event */
    x = fake_next(&f);
    (void)object_of(x);
    fake_answer(x, 201, "{}");
    KIT_UNTIL(&f.kit, kube_events_stats(e).written == 3);
    assert_int_equal(kube_events_stats(e).repeated, 1);
    kube_events_free(e);
}

static void series_writes_are_limited(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct kube_events *e = events_start(&f, 0, 0, INT64_C(3600) * 1000 * KIT_MS);
    struct kube_event v = about("web-0", "full");
    (void)state;
    for (int i = 0; i < 100; i++)
        kube_events_add(e, &v);
    fake_answer(fake_next(&f), 201, "{}");
    KIT_UNTIL(&f.kit, kube_events_stats(e).written == 1);
    assert_int_equal(kube_events_stats(e).repeated, 99);
    assert_int_equal(f.kit.handled, 1);
    kube_events_free(e);
}

static void full_queue_drops_oldest(void **state)
{
    CLEANUP(fake) struct fake f = {0};
    struct kube_events *e = events_start(&f, 3, 2, 0);
    static const char *const left[] = {"p0", "p1", "p7", "p8", "p9"};
    (void)state;
    for (int i = 0; i < 10; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "p%d", i);
        struct kube_event v = about(name, "full");
        kube_events_add(e, &v);
    }
    assert_int_equal(kube_events_stats(e).under_way, 2);
    assert_int_equal(kube_events_stats(e).waiting, 3);
    assert_int_equal(kube_events_stats(e).dropped, 5);
    bool seen[ROWS(left)] = {false};
    for (size_t i = 0; i < ROWS(left); i++) {
        struct http_request *x = fake_next(&f);
        struct proto_object o = object_of(x);
        struct proto_field name = at(&o, 8, 3);
        for (size_t k = 0; k < ROWS(left); k++)
            seen[k] = seen[k] || proto_is(proto_text(&name), left[k]);
        fake_answer(x, i ? 201 : 403, "{}");
    }
    KIT_UNTIL(&f.kit, kube_events_stats(e).written == 4 && kube_events_stats(e).failed == 1);
    for (size_t k = 0; k < ROWS(left); k++)
        assert_true(seen[k]);
    struct kube_event last = about("z", "full");
    kube_events_add(e, &last);
    kube_events_free(e); /* with a request in progress */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_fields),
        cmocka_unit_test(controller_name_per_event),
        cmocka_unit_test(long_notes_are_cut),
        cmocka_unit_test(repeats_become_series),
        cmocka_unit_test(series_writes_are_limited),
        cmocka_unit_test(full_queue_drops_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
