/* crud_fuzz.c - feeds arbitrary requests of clients and agents to the daemon: the state stays equal to the store, and
 * changes stay possible.
 *
 * The input is a list of requests, [{who, method, url, body}, ...], in JSON or YAML. The loop plans between the
 * requests.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/control.h"
#include "control/watch/watch.h"
#include "store/store.h"
#include "wire/text/document.h"

enum { REQUESTS_MAX = 24, INPUT_MAX = 16 * 1024, MANY = 40 };

struct world {
    struct store *store;
    struct control *control;
    int64_t now_ns;
    bool answered;
    int status;
};

static int64_t clock_ns(void *ctx)
{
    return ((struct world *)ctx)->now_ns;
}

static void fill(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 7, len);
}

static void run(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    work(arg);
    after(arg);
}

static void wake_at(void *ctx, int64_t steady_ns)
{
    (void)ctx;
    (void)steady_ns;
}

static void answered(void *ctx, struct answer *answer)
{
    struct world *w = ctx;
    assert(!w->answered);
    w->answered = true;
    w->status = answer->status;
}

static const char *query_value(const void *from, const char *name)
{
    const char *query = from;
    return query && strcmp(name, query) == 0 ? "true" : NULL;
}

static int ask(struct world *w, const char *who, const char *method, const char *url, const json_t *body)
{
    char path[256], *text = body ? json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    const char *mark = strchr(url, '?');
    size_t len = mark ? (size_t)(mark - url) : strlen(url);
    len = len < sizeof path ? len : sizeof path - 1;
    memcpy(path, url, len);
    path[len] = 0;
    struct request_input request = {
        .method = method,
        .path = path,
        .peer = who,
        .remote = "192.0.2.1",
        .body = text,
        .body_len = text ? strlen(text) : 0,
        .query = query_value,
        .query_from = mark ? mark + 1 : NULL, /* every parameter is "true" */
    };
    w->answered = false;
    control_handle(w->control, &request, answered, w);
    for (int i = 0; i < 100 && !w->answered; i++)
        control_pump(w->control);
    assert(w->answered);
    free(text);
    return w->status;
}

/* Bounds numbers: a few bytes of input may ask for millions of replicas, which is valid but slow. */
static void shrink(json_t *value)
{
    static const char *const keys[] = {"replicas", "gang_min"};
    const char *key;
    json_t *member;
    size_t i;
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *number = json_object_get(value, keys[i]);
        if (json_is_integer(number) && json_integer_value(number) > MANY)
            (void)json_integer_set(number, json_integer_value(number) % MANY);
    }
    json_array_foreach(value, i, member) shrink(member);
    json_object_foreach(value, key, member) shrink(member);
}

static const char *member(const json_t *request, const char *key, const char *fallback)
{
    const char *text = json_string_value(json_object_get(request, key));
    return text ? text : fallback;
}

static void begin(struct world *w)
{
    static const struct log silent = {0};
    char token[TOKEN_TEXT_MAX];
    struct control_env env = {.ctx = w,
                              .clock_ns = clock_ns,
                              .steady_ns = clock_ns,
                              .random = fill,
                              .run = run,
                              .wake_at = wake_at,
                              .log = &silent};
    struct control_options options = {.seed = 1, .secret_key_given = true, .secret_key = "for tests"};
    *w = (struct world){.store = store_memory_new(), .now_ns = 1772366400000000000};
    int rc = control_new(&env, &options, w->store, &w->control, NULL);
    assert(rc == 0);
    rc = control_init(w->control, token, NULL);
    assert(rc == 0);
    static const char *const users[] = {"{\"id\": \"alice\", \"role\": \"user\"}",
                                        "{\"id\": \"bob\", \"role\": \"user\"}"};
    for (size_t i = 0; i < 2; i++) {
        json_t *user = json_loads(users[i], 0, NULL);
        int status = ask(w, "user:admin", "POST", "/v1/users", user);
        assert(status == 201);
        json_decref(user);
    }
}

static void end(struct world *w)
{
    struct berth_err err = {0};
    int status = ask(w, "user:admin", "GET", "/readyz", NULL);
    assert(status == 200);
    int rc = state_audit(control_state(w->control), &err);
    assert(rc == 0);
    /* The stored documents can be loaded again. */
    struct state *again = NULL;
    rc = state_load(w->store, &again, &err);
    assert(rc == 0);
    state_free(again);
    control_quiesce(w->control);
    control_free(w->control);
    store_close(w->store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *shared = NULL;
    if (size > INPUT_MAX || document_parse((const char *)data, size, "fuzz", &shared, NULL) < 0)
        return 0;
    json_t *requests = json_is_array(shared) && json_array_size(shared) <= REQUESTS_MAX ? json_deep_copy(shared) : NULL;
    json_decref(shared);
    if (!requests)
        return 0;
    shrink(requests);
    struct world w;
    size_t i;
    json_t *request;
    begin(&w);
    json_array_foreach(requests, i, request)
    {
        w.now_ns += 1000000000;
        (void)ask(&w, member(request, "who", "user:admin"), member(request, "method", "POST"),
                  member(request, "url", "/v1/txn"), json_object_get(request, "body"));
        control_tick(w.control);
    }
    end(&w);
    json_decref(requests);
    return 0;
}
