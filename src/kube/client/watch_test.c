/* watch_test.c - a fake server that produces everything a watch may meet: ends, gaps, garbage, partial frames; in both
 * formats.
 */
#include "kube/client/watch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/client/server_kit_test.h"

struct stage {
    struct fake f;
    enum kube_format format;
    struct kube_watch *w;
    struct http_request *stream; /* stream that the test writes to */
    struct str heard; /* "+a@3" put, "-a" dropped with its object, "~a" dropped without, "synced", "refused" */
    unsigned troubles;
};

static void put(void *ctx, const struct kube_object *o)
{
    struct stage *s = ctx;
    assert_string_equal(o->namespace, "ns");
    assert_true(o->uid[0] == 'u');
    assert_true(s->format == KUBE_JSON ? o->json != NULL : o->raw.at < o->raw.end);
    str_addf(&s->heard, "+%s@%llu ", o->name, (unsigned long long)o->version);
}

static void drop(void *ctx, const struct kube_object *o)
{
    struct stage *s = ctx;
    bool whole = s->format == KUBE_JSON ? o->json != NULL : o->raw.at < o->raw.end;
    str_addf(&s->heard, "%s%s ", whole ? "-" : "~", o->name);
}

static void synced(void *ctx)
{
    struct stage *s = ctx;
    assert_true(kube_watch_synced(s->w));
    str_add(&s->heard, "synced ");
}

static void trouble(void *ctx, const char *text)
{
    struct stage *s = ctx;
    assert_non_null(strstr(text, "watching /api/v1/pods: "));
    s->troubles++;
}

static void refused(void *ctx, int status, const char *text)
{
    struct stage *s = ctx;
    assert_true(status == 403 || status == 404);
    assert_non_null(strstr(text, "(40"));
    str_add(&s->heard, "refused ");
}

static void stage_begin(struct stage *s, enum kube_format format, bool pages, bool optional)
{
    s->format = format;
    fake_start(&s->f, (struct http_config){0});
    struct kube_watch_config config = {.api = s->f.api,
                                       .loop = s->f.kit.loop,
                                       .path = "/api/v1/pods",
                                       .query = "fieldSelector=a%3Db",
                                       .format = format,
                                       .put = put,
                                       .drop = drop,
                                       .synced = synced,
                                       .trouble = trouble,
                                       .refused = optional ? refused : NULL,
                                       .refused_ns = KIT_MS,
                                       .ctx = s,
                                       .pages = pages,
                                       .page_len = 2,
                                       .pause_ns = KIT_MS};
    s->w = kube_watch_new(&config);
}

static void stage_start(struct stage *s, enum kube_format format, bool pages)
{
    stage_begin(s, format, pages, false);
}

static void stage_cleanup(struct stage *s)
{
    kube_watch_free(s->w);
    fake_cleanup(&s->f);
    str_done(&s->heard);
}

/* ---- server output ---------------------------------------------------------------------------------------------- */

static void add_object(struct str *to, const char *name, const char *uid, unsigned version)
{
    size_t meta = proto_begin(to, 1);
    char text[24];
    proto_add_text(to, 1, name);
    proto_add_text(to, 3, "ns");
    proto_add_text(to, 5, uid);
    proto_add_text(to, 6, str_u64(version, text));
    proto_end(to, meta);
}

static void add_complete(struct str *to, unsigned version)
{
    char text[24];
    size_t meta = proto_begin(to, 1);
    proto_add_text(to, 6, str_u64(version, text));
    size_t annotation = proto_begin(to, 12);
    proto_add_text(to, 1, "k8s.io/initial-events-end");
    proto_add_text(to, 2, "true");
    proto_end(to, annotation);
    proto_end(to, meta);
}

static void add_status(struct str *to, unsigned code)
{
    proto_add_text(to, 3, "too old");
    proto_add_text(to, 4, "Expired");
    proto_add_int(to, 6, code);
}

/* "ADDED", "MODIFIED", "DELETED"; "BOOKMARK" with a version; "COMPLETE", a bookmark that ends the initial state;
 * "ERROR", whose version is the code. */
static void add_event(struct str *to, const struct stage *s, const char *type, const char *name, const char *uid,
                      unsigned version)
{
    bool complete = strcmp(type, "COMPLETE") == 0, error = strcmp(type, "ERROR") == 0;
    const char *wire = complete ? "BOOKMARK" : type;
    if (s->format == KUBE_JSON) {
        str_addf(to, "{\"type\":\"%s\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%s\",",
                 wire, name, uid);
        str_addf(to, "\"resourceVersion\":\"%u\"%s}, \"code\":%u}}\n", version,
                 complete ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "", version);
        return;
    }
    CLEANUP(str) struct str frame = {0};
    proto_add_text(&frame, 1, wire);
    size_t extension = proto_begin(&frame, 2), raw = proto_begin(&frame, 1);
    size_t object = proto_object_begin(&frame, "v1", error ? "Status" : "Pod");
    if (complete)
        add_complete(&frame, version);
    else if (error)
        add_status(&frame, version);
    else
        add_object(&frame, name, uid, version);
    proto_object_end(&frame, object);
    proto_end(&frame, raw);
    proto_end(&frame, extension);
    const unsigned char head[4] = {(unsigned char)(frame.len >> 24), (unsigned char)(frame.len >> 16),
                                   (unsigned char)(frame.len >> 8), (unsigned char)frame.len};
    str_add_bytes(to, head, sizeof head);
    str_add_bytes(to, frame.at, frame.len);
}

static void say(struct stage *s, const char *type, const char *name, const char *uid, unsigned version)
{
    CLEANUP(str) struct str bytes = {0};
    add_event(&bytes, s, type, name, uid, version);
    assert_true(http_stream_send(s->stream, bytes.at, bytes.len));
}

/* Expects a watch as the next request: from this version, or with the initial state if it is 0. */
static void expect_watch(struct stage *s, unsigned version)
{
    struct http_request *x = s->stream = fake_next(&s->f);
    char text[24];
    assert_string_equal(http_path(x), "/api/v1/pods");
    assert_string_equal(http_query(x, "fieldSelector"), "a=b");
    assert_string_equal(http_query(x, "watch"), "true");
    assert_string_equal(http_query(x, "allowWatchBookmarks"), "true");
    if (version) {
        assert_string_equal(http_query(x, "resourceVersion"), str_u64(version, text));
        assert_null(http_query(x, "sendInitialEvents"));
    } else {
        assert_null(http_query(x, "resourceVersion"));
        assert_string_equal(http_query(x, "sendInitialEvents"), "true");
        assert_string_equal(http_query(x, "resourceVersionMatch"), "NotOlderThan");
    }
}

static void begin_watch(struct stage *s, unsigned version)
{
    expect_watch(s, version);
    fake_stream(&s->f, s->stream);
}

/* Expects these reports since the last call. */
static void hears(struct stage *s, const char *want)
{
    KIT_UNTIL(&s->f.kit, s->heard.len >= strlen(want));
    assert_string_equal(str_text(&s->heard), want);
    str_clear(&s->heard);
}

/* Loads a, b and c with versions 1 to 3; the version of the view is 10. */
static void load(struct stage *s)
{
    begin_watch(s, 0);
    say(s, "ADDED", "a", "ua", 1);
    say(s, "ADDED", "b", "ub", 2);
    say(s, "ADDED", "c", "uc", 3);
    hears(s, "+a@1 +b@2 +c@3 ");
    assert_false(kube_watch_synced(s->w));
    say(s, "COMPLETE", "", "", 10);
    hears(s, "synced ");
    assert_true(kube_watch_follows(s->w));
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void follows(struct stage *s)
{
    load(s);
    say(s, "MODIFIED", "b", "ub", 11);
    say(s, "ADDED", "d", "ud", 12);
    say(s, "DELETED", "a", "ua", 13);
    say(s, "DELETED", "nobody", "un", 14);
    say(s, "SOMETHING", "x", "ux", 15); /* an event type of a newer server is skipped */
    say(s, "MODIFIED", "c", "uc", 16);
    hears(s, "+b@11 +d@12 -a +c@16 ");
    assert_int_equal(kube_watch_len(s->w), 3);
    assert_int_equal(s->troubles, 0);
}

/* After a clean end the watch resumes at once; a bookmark counts too. */
static void resumes(struct stage *s)
{
    load(s);
    say(s, "MODIFIED", "b", "ub", 11);
    hears(s, "+b@11 ");
    http_stream_end(s->stream);
    begin_watch(s, 11);
    say(s, "BOOKMARK", "", "", 50);
    KIT_UNTIL(&s->f.kit, kube_watch_stats(s->w).bookmarks == 2);
    http_stream_end(s->stream);
    begin_watch(s, 50);
    http_stream_end(s->stream); /* without data there is a pause, then the same request */
    begin_watch(s, 50);
    say(s, "ADDED", "d", "ud", 51);
    hears(s, "+d@51 ");
    assert_int_equal(kube_watch_stats(s->w).relists, 0);
}

static void in_halves(struct stage *s)
{
    CLEANUP(str) struct str bytes = {0};
    load(s);
    add_event(&bytes, s, "ADDED", "d", "ud", 11);
    add_event(&bytes, s, "MODIFIED", "a", "ua", 12);
    add_event(&bytes, s, "DELETED", "d", "ud", 13);
    for (size_t i = 0; i < bytes.len; i++) {
        assert_true(http_stream_send(s->stream, bytes.at + i, 1));
        KIT_UNTIL(&s->f.kit, http_stream_backlog(s->stream) == 0);
        kit_round(&s->f.kit);
    }
    hears(s, "+d@11 +a@12 -d ");
    /* Half a frame before the end is ignored. */
    str_clear(&bytes);
    add_event(&bytes, s, "ADDED", "e", "ue", 14);
    assert_true(http_stream_send(s->stream, bytes.at, bytes.len / 2));
    http_stream_end(s->stream);
    begin_watch(s, 13);
    say(s, "ADDED", "f", "uf", 15);
    hears(s, "+f@15 ");
}

/* The server has forgotten the version: after the new listing only differences are reported. */
static void relists(struct stage *s)
{
    load(s);
    say(s, "ERROR", "", "", 410);
    begin_watch(s, 0);
    assert_int_equal(s->troubles, 1);
    say(s, "ADDED", "a", "ua", 1);  /* unchanged */
    say(s, "ADDED", "b", "ub", 20); /* changed */
    say(s, "ADDED", "d", "ud", 21); /* new */
    say(s, "COMPLETE", "", "", 30);
    hears(s, "+b@20 +d@21 ~c ");
    say(s, "MODIFIED", "a", "ua", 31);
    hears(s, "+a@31 "); /* `synced` is called once */
    assert_int_equal(kube_watch_stats(s->w).relists, 1);

    http_stream_end(s->stream);
    expect_watch(s, 31);
    fake_answer(s->stream, 410, "{\"reason\":\"Expired\"}"); /* as an answer instead of an event in the stream */
    begin_watch(s, 0);
    say(s, "COMPLETE", "", "", 40);
    hears(s, "~d ~b ~a ");
    assert_int_equal(kube_watch_len(s->w), 0);
}

static void made_again(struct stage *s)
{
    load(s);
    say(s, "ERROR", "", "", 410);
    begin_watch(s, 0);
    say(s, "ADDED", "a", "ua2", 20);
    say(s, "ADDED", "b", "ub", 2);
    say(s, "ADDED", "c", "uc", 3);
    say(s, "COMPLETE", "", "", 30);
    hears(s, "~a +a@20 ");
    say(s, "DELETED", "a", "ua", 31); /* of the previous stream: ignored */
    say(s, "MODIFIED", "b", "ub", 32);
    hears(s, "+b@32 ");
}

/* The initial state breaks off: `synced` is not called, and objects are not reported twice. */
static void interrupted_initial_state(struct stage *s)
{
    begin_watch(s, 0);
    say(s, "ADDED", "a", "ua", 1);
    hears(s, "+a@1 ");
    http_stream_end(s->stream);
    expect_watch(s, 0);
    assert_false(kube_watch_synced(s->w));
    fake_answer(s->stream, 500, "{}");
    begin_watch(s, 0);
    say(s, "ADDED", "b", "ub", 2);
    say(s, "COMPLETE", "", "", 10);
    hears(s, "+b@2 ~a synced ");
}

static void garbage(struct stage *s)
{
    static const char *const junk[] = {
        "\xff\xff\xff\xff of a frame that would be larger than any\n",
        "{\"type\":\"ADDED\",\"object\":\n",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"x\"}}}\n",
    };
    static const char no_event[] = "\0\0\0\4\xff\xff\xff\xff";
    load(s);
    for (size_t i = 0; i < ROWS(junk); i++) {
        if (s->format == KUBE_JSON || i == 0)
            assert_true(http_stream_send(s->stream, junk[i], strlen(junk[i])));
        else if (i == 1)
            assert_true(http_stream_send(s->stream, no_event, sizeof no_event - 1));
        else
            say(s, "ADDED", "", "", 1);
        begin_watch(s, 0); /* unknown what was lost with it */
        assert_int_equal(s->troubles, i + 1);
        say(s, "ADDED", "a", "ua", 1);
        say(s, "ADDED", "b", "ub", 2);
        say(s, "ADDED", "c", "uc", 3);
        say(s, "COMPLETE", "", "", 10);
        KIT_UNTIL(&s->f.kit, kube_watch_follows(s->w));
    }
    say(s, "ADDED", "d", "ud", 11);
    hears(s, "+d@11 ");
}

/* The server answers but rejects our version: after some tries everything is listed anew. */
static void rejected_version_relists(struct stage *s)
{
    load(s);
    http_stream_end(s->stream);
    for (int i = 0; i < 3; i++) {
        expect_watch(s, 10);
        fake_answer(s->stream, 504, "{\"message\":\"Too large resource version\"}");
    }
    begin_watch(s, 0);
    say(s, "COMPLETE", "", "", 5);
    hears(s, "~c ~b ~a ");
    assert_int_equal(kube_watch_stats(s->w).relists, 1);
}

/* ---- pages ------------------------------------------------------------------------------------------------------ */

static void add_item(struct str *to, const struct stage *s, const char *name, unsigned version)
{
    char uid[8];
    (void)snprintf(uid, sizeof uid, "u%s", name);
    if (s->format == KUBE_JSON) {
        str_addf(to,
                 "%s{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%u\"}}",
                 to->at[to->len - 1] == '[' ? "" : ",", name, uid, version);
        return;
    }
    size_t item = proto_begin(to, 2);
    add_object(to, name, uid, version);
    proto_end(to, item);
}

/* Answers a request for a page with these objects, all of version 1. */
static void page(struct stage *s, const char *asked, const char *names, const char *next)
{
    CLEANUP(str) struct str body = {0};
    struct http_request *x = fake_next(&s->f);
    size_t object = 0;
    assert_null(http_query(x, "watch"));
    assert_string_equal(http_query(x, "limit"), "2");
    if (asked)
        assert_string_equal(http_query(x, "continue"), asked);
    else
        assert_null(http_query(x, "continue"));
    if (s->format == KUBE_JSON)
        str_addf(&body, "{\"metadata\":{\"resourceVersion\":\"10\",\"continue\":\"%s\"},\"items\":[", next);
    else {
        object = proto_object_begin(&body, "v1", "PodList");
        size_t meta = proto_begin(&body, 1);
        proto_add_text(&body, 2, "10");
        proto_add_text(&body, 3, next);
        proto_end(&body, meta);
    }
    for (; *names; names++)
        add_item(&body, s, (const char[]){*names, '\0'}, 1);
    if (s->format == KUBE_JSON)
        str_add(&body, "]}");
    else
        proto_object_end(&body, object);
    http_answer(x, 200, NULL, "x/y", body.at, body.len);
}

static void in_pages(struct stage *s)
{
    expect_watch(s, 0);
    fake_answer(s->stream, 422, "{\"reason\":\"Invalid\"}");
    page(s, NULL, "ab", "go+on/=");
    hears(s, "+a@1 +b@1 ");
    assert_false(kube_watch_synced(s->w));
    page(s, "go+on/=", "c", "");
    hears(s, "+c@1 synced ");
    begin_watch(s, 10);
    say(s, "ERROR", "", "", 410);
    page(s, NULL, "ab", "x"); /* the watch remembers that streamed lists are rejected */
    fake_answer(fake_next(&s->f), 410, "{\"reason\":\"Expired\"}"); /* the continue token has expired: from the start */
    page(s, NULL, "bd", "");
    hears(s, "+d@1 ~c ~a ");
    begin_watch(s, 10);
}

/* An old server that ignores sendInitialEvents sends an ordinary bookmark. */
static void old_server_without_initial_events(struct stage *s)
{
    begin_watch(s, 0);
    say(s, "ADDED", "a", "ua", 1);
    say(s, "BOOKMARK", "a", "ua", 5);
    page(s, NULL, "a", "");
    hears(s, "+a@1 synced ");
    begin_watch(s, 10);
}

static void watch_reads_json_and_protobuf(void **state)
{
    static const struct {
        const char *label;
        void (*play)(struct stage *s);
    } rows[] = {
        {"follows",       follows                          },
        {"resumes",       resumes                          },
        {"in halves",     in_halves                        },
        {"relists",       relists                          },
        {"made again",    made_again                       },
        {"half loaded",   interrupted_initial_state        },
        {"garbage",       garbage                          },
        {"refuses",       rejected_version_relists         },
        {"in pages",      in_pages                         },
        {"an old server", old_server_without_initial_events},
    };
    (void)state;
    for (size_t i = 0; i < 2 * ROWS(rows); i++) {
        CLEANUP(stage) struct stage s = {0};
        print_message("%s, %s\n", rows[i / 2].label, i % 2 ? "JSON" : "protobuf");
        stage_start(&s, i % 2 ? KUBE_JSON : KUBE_PROTOBUF, false);
        rows[i / 2].play(&s);
    }
}

#define FORBIDDEN "{\"reason\":\"Forbidden\",\"message\":\"cannot list\"}"

/* An optional resource that is denied counts as empty, is reported once, and is retried. */
static void denied_optional_resource_counts_as_empty(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        CLEANUP(stage) struct stage s = {0};
        bool pages = i % 2;
        stage_begin(&s, KUBE_JSON, pages, true);
        for (int k = 0; k < 3; k++)
            fake_answer(fake_next(&s.f), i < 2 ? 403 : 404, FORBIDDEN);
        hears(&s, "refused synced ");
        assert_true(kube_watch_synced(s.w));
        assert_int_equal(s.troubles, 0);
        if (pages) {
            page(&s, NULL, "a", "");
            hears(&s, "+a@1 ");
            begin_watch(&s, 10);
        } else {
            begin_watch(&s, 0);
            say(&s, "ADDED", "a", "ua", 1);
            say(&s, "COMPLETE", "", "", 10);
            hears(&s, "+a@1 ");
        }
        http_stream_end(s.stream);
        for (unsigned k = 0; k < 3; k++) { /* a server that is starting may deny access */
            fake_answer(fake_next(&s.f), 403, FORBIDDEN);
            KIT_UNTIL(&s.f.kit, s.troubles == k + 1);
        }
        assert_string_equal(str_text(&s.heard), "");
        fake_answer(fake_next(&s.f), 403, FORBIDDEN); /* denied later: known objects stay */
        hears(&s, "refused ");
        assert_int_equal(kube_watch_len(s.w), 1);
        assert_int_equal(s.troubles, 3);
    }
}

/* A required resource is retried, and each denial is reported as trouble. */
static void denied_required_resource_is_retried(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        CLEANUP(stage) struct stage s = {0};
        stage_begin(&s, KUBE_JSON, i == 1, false);
        for (int k = 0; k < 3; k++)
            fake_answer(fake_next(&s.f), 403, FORBIDDEN);
        KIT_UNTIL(&s.f.kit, s.troubles == 3);
        assert_false(kube_watch_synced(s.w));
        assert_string_equal(str_text(&s.heard), "");
    }
}

/* An optional resource is not given up for other errors. */
static void other_errors_do_not_count_as_denial(void **state)
{
    static const int statuses[] = {401, 500, 503};
    (void)state;
    for (size_t i = 0; i < ROWS(statuses); i++) {
        CLEANUP(stage) struct stage s = {0};
        stage_begin(&s, KUBE_JSON, false, true);
        fake_answer(fake_next(&s.f), statuses[i], "{}");
        KIT_UNTIL(&s.f.kit, s.troubles == 1);
        assert_false(kube_watch_synced(s.w));
    }
}

/* A watch may be freed in any of its states. */
static void freed_in_any_state(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        CLEANUP(stage) struct stage s = {0};
        stage_start(&s, KUBE_PROTOBUF, i == 1);
        if (i == 1)
            (void)fake_next(&s.f);
        if (i == 2)
            load(&s);
        if (i == 3) {
            expect_watch(&s, 0);
            fake_answer(s.stream, 500, "{}");
            KIT_UNTIL(&s.f.kit, s.troubles == 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watch_reads_json_and_protobuf),
        cmocka_unit_test(denied_optional_resource_counts_as_empty),
        cmocka_unit_test(denied_required_resource_is_retried),
        cmocka_unit_test(other_errors_do_not_count_as_denial),
        cmocka_unit_test(freed_in_any_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
