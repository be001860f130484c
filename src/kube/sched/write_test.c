/* write_test.c - outcomes of bindings, deletions and conditions for all kinds of answers of the API server. */
#include "kube/sched/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/client/server_kit_test.h"

#define POD "/api/v1/namespaces/ns/pods/web"

struct scene {
    struct fake f; /* first member: handlers get its address */
    struct kube_writer *w;
    unsigned told;
    uint64_t ticket;
    enum kube_write_result fate;
};

static void on_written(void *ctx, uint64_t ticket, enum kube_write_result fate, const char *text)
{
    struct scene *s = ctx;
    (void)text;
    s->told++;
    s->ticket = ticket;
    s->fate = fate;
}

static void scene_start(struct scene *s)
{
    fake_start(&s->f, (struct http_config){0});
    s->w = kube_writer_new(s->f.api, on_written, s);
}

static void scene_cleanup(struct scene *s)
{
    kube_writer_free(s->w);
    fake_cleanup(&s->f);
}

static const struct kube_pod_ref web = {.namespace = "ns", .name = "web", .uid = "u-1"};

static struct http_request *next(struct scene *s, const char *method, const char *path)
{
    struct http_request *x = fake_next(&s->f);
    assert_string_equal(http_method(x), method);
    assert_string_equal(http_path(x), path);
    return x;
}

static void body_has(struct http_request *x, const char *part)
{
    size_t len;
    const char *body = http_body(x, &len);
    if (!strstr(body, part))
        fail_msg("%s is not in %s", part, body);
}

/* Returns text number `part` of the message in field `number`. */
static struct proto_text part_of(struct proto_reader object, uint32_t number, uint32_t part)
{
    struct proto_field f, g;
    struct proto_text found = {0};
    while (proto_next(&object, &f)) {
        struct proto_reader sub = proto_sub(&f);
        while (f.number == number && proto_next(&sub, &g))
            if (g.number == part)
                found = proto_text(&g);
    }
    return found;
}

static void binds(struct http_request *x, const char *name, const char *uid, const char *node)
{
    struct proto_object o;
    size_t len;
    const char *body = http_body(x, &len);
    assert_true(proto_object_read(body, len, &o));
    assert_true(proto_is(o.api_version, "v1") && proto_is(o.kind, "Binding"));
    assert_true(proto_is(part_of(o.raw, 1, 1), name));
    assert_true(proto_is(part_of(o.raw, 1, 5), uid));
    assert_true(proto_is(part_of(o.raw, 2, 1), "Node"));
    assert_true(proto_is(part_of(o.raw, 2, 3), node));
}

/* Answers with the pod as the API server holds it. */
static void answer_pod(struct http_request *x, const char *uid, const char *node)
{
    CLEANUP(str) struct str pod = {0};
    size_t object = proto_object_begin(&pod, "v1", "Pod"), meta = proto_begin(&pod, 1);
    proto_add_text(&pod, 5, uid);
    proto_end(&pod, meta);
    size_t spec = proto_begin(&pod, 2);
    if (node[0])
        proto_add_text(&pod, 10, node);
    proto_end(&pod, spec);
    proto_object_end(&pod, object);
    http_answer(x, 200, NULL, "application/vnd.kubernetes.protobuf", pod.at, pod.len);
}

static void a_pod_is_bound(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = {0};
    scene_start(&s);
    kube_bind(s.w, &web, "n1", 7);
    assert_int_equal(kube_writer_stats(s.w).under_way, 1);
    struct http_request *x = next(&s, "POST", POD "/binding");
    assert_string_equal(http_header(x, "Content-Type"), "application/vnd.kubernetes.protobuf");
    binds(x, "web", "u-1", "n1");
    fake_answer(x, 201, "{}");
    KIT_UNTIL(&s.f.kit, s.told == 1);
    assert_int_equal(s.fate, KUBE_DONE);
    assert_int_equal(s.ticket, 7);
    assert_int_equal(kube_writer_stats(s.w).under_way, 0);
    assert_int_equal(kube_writer_stats(s.w).bound, 1);
}

static void permanent_errors_are_reported_at_once(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum kube_write_result fate;
    } rows[] = {
        {404, KUBE_GONE  },
        {422, KUBE_FAILED},
        {403, KUBE_FAILED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(scene) struct scene s = {0};
        scene_start(&s);
        kube_bind(s.w, &web, "n1", 7);
        fake_answer(next(&s, "POST", POD "/binding"), rows[i].status, "{}");
        KIT_UNTIL(&s.f.kit, s.told == 1);
        assert_int_equal(s.fate, rows[i].fate);
        assert_int_equal(kube_writer_stats(s.w).failed, 1);
    }
}

/* On a conflict, the pod itself shows whether our own earlier try succeeded or another scheduler bound it. */
static void unknown_binding_is_looked_up(void **state)
{
    (void)state;
    static const struct {
        const char *uid, *node;
        enum kube_write_result fate;
    } rows[] = {
        {"u-1", "n1", KUBE_DONE  },
        {"u-1", "n2", KUBE_TAKEN },
        {"u-1", "",   KUBE_FAILED},
        {"u-2", "n1", KUBE_GONE  },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(scene) struct scene s = {0};
        scene_start(&s);
        kube_bind(s.w, &web, "n1", 7);
        fake_answer(next(&s, "POST", POD "/binding"), 409, "{\"reason\":\"Conflict\"}");
        struct http_request *look = next(&s, "GET", POD);
        assert_int_equal(s.told, 0);
        answer_pod(look, rows[i].uid, rows[i].node);
        KIT_UNTIL(&s.f.kit, s.told == 1);
        assert_int_equal(s.fate, rows[i].fate);
        assert_int_equal(kube_writer_stats(s.w).looked_up, 1);
    }
}

static void victim_gets_condition_then_deletion(void **state)
{
    (void)state;
    static const struct {
        int marked, deleted; /* status codes of the answers; 0: no request expected */
        enum kube_write_result fate;
    } rows[] = {
        {200, 200, KUBE_DONE  },
        {404, 0,   KUBE_GONE  },
        {403, 200, KUBE_DONE  },
        {200, 404, KUBE_GONE  },
        {200, 409, KUBE_GONE  },
        {200, 403, KUBE_FAILED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(scene) struct scene s = {0};
        scene_start(&s);
        kube_preempt_pod(s.w, &web, "Preempted by \"x\"", 9);
        struct http_request *mark = next(&s, "PATCH", POD "/status");
        body_has(mark, "\"type\":\"DisruptionTarget\"");
        body_has(mark, "Preempted by \\\"x\\\"");
        body_has(mark, "\"uid\":\"u-1\"");
        fake_answer(mark, rows[i].marked, "{}");
        if (rows[i].deleted) {
            struct http_request *gone = next(&s, "DELETE", POD);
            body_has(gone, "\"preconditions\":{\"uid\":\"u-1\"}");
            fake_answer(gone, rows[i].deleted, "{\"reason\":\"Conflict\"}");
        }
        KIT_UNTIL(&s.f.kit, s.told == 1);
        assert_int_equal(s.fate, rows[i].fate);
        assert_int_equal(s.ticket, 9);
    }
}

static void nominations_and_conditions_are_patches(void **state)
{
    (void)state;
    CLEANUP(scene) struct scene s = {0};
    scene_start(&s);
    kube_nominate(s.w, &web, "n1");
    struct http_request *x = next(&s, "PATCH", POD "/status");
    body_has(x, "\"nominatedNodeName\":\"n1\"");
    fake_answer(x, 200, "{}");
    kube_nominate(s.w, &web, "");
    x = next(&s, "PATCH", POD "/status");
    body_has(x, "\"nominatedNodeName\":null");
    fake_answer(x, 200, "{}");
    kube_mark_unschedulable(s.w, &web, "Unschedulable", "0/1 nodes");
    x = next(&s, "PATCH", POD "/status");
    body_has(x,
             "\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/1 nodes\"");
    fake_answer(x, 404, "{}");
    assert_int_equal(s.told, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_is_bound),
        cmocka_unit_test(permanent_errors_are_reported_at_once),
        cmocka_unit_test(unknown_binding_is_looked_up),
        cmocka_unit_test(victim_gets_condition_then_deletion),
        cmocka_unit_test(nominations_and_conditions_are_patches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
