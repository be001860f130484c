#include "control/api/routes.h"

#include "control/api/openapi.h"
#include "control/watch/derived.h"
#include "control/watch/watch_kit_test.h"

struct scene {
    struct kit kit;
    char alice[TOKEN_TEXT_MAX], bob[TOKEN_TEXT_MAX], operator[TOKEN_TEXT_MAX], agent[TOKEN_TEXT_MAX];
};

static void node_put(struct kit *k, const char *id, const char *more)
{
    char key[64];
    CLEANUP(str) struct str text = {0};

    (void)snprintf(key, sizeof key, "nodes/%s", id);
    str_addf(&text, "{\"v\":1,\"id\":\"%s\",\"state\":\"cordoned\",\"allocatable\":{\"cpu\":4}%s}", id, more);
    (void)kit_put(k, key, text.at);
}

/* The planner changes none of these instances: the node is cordoned and the app has as many instances as desired. */
static void instance_put(struct kit *k, unsigned number, const char *node, const char *more)
{
    char key[64];
    CLEANUP(str) struct str text = {0};

    (void)snprintf(key, sizeof key, "instances/%u", number);
    str_addf(
        &text,
        "{\"v\":1,\"id\":%u,\"workload\":\"web.alice\",\"ordinal\":%u,\"node\":\"%s\",\"state\":\"running\",\"of\":1%s}",
        number, number, node, more);
    (void)kit_put(k, key, text.at);
}

static void app_put(struct kit *k, const char *more)
{
    CLEANUP(str) struct str text = {0};

    str_addf(&text,
             "{\"v\":1,\"id\":\"web.alice\",\"name\":\"web\",\"owner\":\"alice\",\"group\":\"lab\",\"generation\":1,"
             "\"replicas\":2,\"index\":0,\"endpoints\":[{\"name\":\"http\"}]%s}",
             more);
    (void)kit_put(k, "apps/web.alice", text.at);
}

static int setup(void **state)
{
    struct scene *s = mem_zalloc(sizeof *s);
    const struct control_options options = {0};

    kit_open(&s->kit, &options);
    kit_user(&s->kit, "alice", "lab", "user", BERTH_NEVER_NS, s->alice, NULL);
    kit_user(&s->kit, "bob", "", "user", BERTH_NEVER_NS, s->bob, NULL);
    kit_user(&s->kit, "oscar", "", "operator", BERTH_NEVER_NS, s->operator, NULL);
    node_put(&s->kit, "n1", "");
    node_put(&s->kit, "n2", "");
    kit_agent(&s->kit, "n1", s->agent);
    app_put(&s->kit, "");
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;
    kit_done(&s->kit);
    mem_free(s);
    return 0;
}

static void derived_documents_need_permission(void **state)
{
    struct scene *s = *state;
    enum { NOBODY, ADMIN, OPERATOR, ALICE, BOB, AGENT, CALLERS };
    const char *const tokens[CALLERS] = {NULL, s->kit.admin, s->operator, s->alice, s->bob, s->agent};
    static const struct {
        const char *path;
        int want[CALLERS];
    } rows[] = {
        {"/v1/nodes/n1/config",    {401, 200, 200, 403, 403, 200}},
        {"/v1/nodes/n1/gateway",   {401, 200, 200, 403, 403, 200}},
        {"/v1/nodes/n2/config",    {401, 200, 200, 403, 403, 404}},
        {"/v1/nodes/n2/gateway",   {401, 200, 200, 403, 403, 404}},
        {"/v1/nodes/n9/config",    {401, 404, 404, 404, 404, 404}},
        {"/v1/nodes/..%/config",   {401, 404, 404, 404, 404, 404}},
        {"/v1/services",           {401, 200, 200, 200, 200, 403}},
        {"/v1/services/web.alice", {401, 200, 200, 200, 404, 403}},
        {"/v1/services/web",       {401, 404, 404, 200, 404, 403}},
        {"/v1/services/no.alice",  {401, 404, 404, 404, 404, 403}},
        {"/v1/rbac",               {401, 200, 403, 403, 403, 200}},
        {"/metrics",               {401, 200, 200, 403, 403, 403}},
        {"/healthz",               {200, 200, 200, 200, 200, 200}},
        {"/readyz",                {200, 200, 200, 200, 200, 200}},
        {"/version",               {200, 200, 200, 200, 200, 200}},
        {"/openapi.json",          {200, 200, 200, 200, 200, 200}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t c = 0; c < CALLERS; c++) {
            struct reader_end e;
            kit_get(&s->kit, tokens[c], rows[i].path, NULL, NULL, &e);
            if (e.status != rows[i].want[c])
                fail_msg("%s for caller %zu: %d, not %d: %s", rows[i].path, c, e.status, rows[i].want[c],
                         str_text(&e.body));
            end_done(&e);
        }
}

/* A service of another user gives the same answer as a missing service. */
static void hidden_service_looks_like_missing_service(void **state)
{
    struct scene *s = *state;
    struct reader_end hidden, absent;

    kit_get(&s->kit, s->bob, "/v1/services/web.alice", NULL, NULL, &hidden);
    kit_get(&s->kit, s->bob, "/v1/services/wob.alice", NULL, NULL, &absent);
    for (char *at = absent.body.at; (at = strstr(at, "wob")); at++)
        at[1] = 'e';
    assert_string_equal(hidden.body.at, absent.body.at);
    end_done(&hidden);
    end_done(&absent);
}

static void documents_carry_their_hash(void **state)
{
    struct scene *s = *state;
    struct reader_end a, b;
    char hash[DERIVED_HASH_MAX];

    instance_put(&s->kit, 5, "n1", "");
    kit_get(&s->kit, s->agent, "/v1/nodes/n1/config", NULL, NULL, &a);
    assert_string_equal(a.etag, derived_hash(&a.body, hash));
    assert_non_null(strstr(a.body.at, "\"id\":5"));
    (void)kit_put(&s->kit, "settings/other", "{\"v\":1}"); /* a new revision with the same content */
    kit_get(&s->kit, s->agent, "/v1/nodes/n1/config", NULL, NULL, &b);
    assert_string_equal(a.body.at, b.body.at);
    assert_string_equal(a.etag, b.etag);
    end_done(&a);
    end_done(&b);
}

static void expect_config(struct reader_end *e, size_t instances, char ret_hash[static DERIVED_HASH_MAX])
{
    CLEANUP(json) json_t *line = end_next(e);
    const json_t *object = json_object_get(line, "object");

    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "type")), "put");
    assert_int_equal(json_array_size(json_object_get(object, "instances")), instances);
    (void)snprintf(ret_hash, DERIVED_HASH_MAX, "%s", json_string_value(json_object_get(line, "hash")));
}

static void watch_sends_every_new_version(void **state)
{
    struct scene *s = *state;
    struct kit *k = &s->kit;
    struct reader_end e, same;
    char first[DERIVED_HASH_MAX], second[DERIVED_HASH_MAX], third[DERIVED_HASH_MAX];

    kit_get(k, s->agent, "/v1/nodes/n1/config", "", NULL, &e);
    assert_int_equal(e.status, 200);
    end_start(&e);
    expect_config(&e, 0, first);
    kit_get(k, s->agent, "/v1/nodes/n1/config", first, NULL, &same);
    end_start(&same);
    end_expect_nothing(&same); /* the client has this version */

    instance_put(k, 5, "n1", "");
    expect_config(&e, 1, second);
    expect_config(&same, 1, second);
    assert_string_not_equal(first, second);
    instance_put(k, 6, "n2", ""); /* an instance of another node */
    node_put(k, "n1", ",\"rack\":\"r\"");
    (void)kit_job(k, 1, "alice", "lab", "");
    end_expect_nothing(&e);
    app_put(k, ",\"command\":[\"/bin/x\"]"); /* changes what the instance runs */
    expect_config(&e, 1, third);
    (void)kit_put(k, "instances/5", NULL);
    expect_config(&e, 0, third);
    assert_string_equal(first, third);
    end_expect_nothing(&e);

    (void)kit_put(k, "instances/6", NULL);
    struct reader_end admin;
    kit_get(k, k->admin, "/v1/nodes/n2/config", "", NULL, &admin);
    end_start(&admin);
    expect_config(&admin, 0, first);
    (void)kit_put(k, "nodes/n2", NULL);
    end_expect(&admin, "gone", "id", "n2");
    node_put(k, "n2", "");
    expect_config(&admin, 0, first);
    (void)kit_put(k, "nodes/n1", NULL); /* removes its agent too */
    end_expect_end(&e, "unauthenticated");
    end_done(&e);
    end_done(&same);
    end_done(&admin);
}

/* A large document is not sent at each change: changes within a short time are sent once, at its end. */
static void large_document_is_sent_with_pauses(void **state)
{
    enum { LARGE_BYTES = 20000 };
    struct scene *s = *state;
    struct kit *k = &s->kit;
    struct reader_end e, late;
    char hash[DERIVED_HASH_MAX], last[DERIVED_HASH_MAX];
    CLEANUP(str) struct str more = {0};

    str_add(&more, ",\"command\":[\"");
    for (size_t i = 0; i < LARGE_BYTES; i++)
        str_add_char(&more, 'x');
    str_add(&more, "\"]");
    app_put(k, more.at);
    kit_get(k, s->agent, "/v1/nodes/n1/config", "", NULL, &e);
    end_start(&e);
    expect_config(&e, 0, hash);
    instance_put(k, 5, "n1", "");
    expect_config(&e, 1, hash); /* sent at once: the document was small until now */
    for (unsigned i = 6; i < 9; i++) {
        instance_put(k, i, "n1", "");
        end_expect_nothing(&e);
    }
    kit_get(k, s->agent, "/v1/nodes/n1/config", hash, NULL, &late); /* a new reader waits as well */
    end_start(&late);
    end_expect_nothing(&late);
    k->steady_ns += INT64_C(1000000000);
    watch_hub_flush(control_hub(k->control));
    expect_config(&e, 4, last);
    expect_config(&late, 4, last);
    assert_string_not_equal(hash, last);
    k->steady_ns += INT64_C(1000000000);
    watch_hub_flush(control_hub(k->control));
    end_expect_nothing(&e);
    instance_put(k, 9, "n1", ""); /* after a long pause, sent at once again */
    expect_config(&e, 5, last);
    instance_put(k, 10, "n1", "");
    end_done(&e); /* leaves while a document is delayed */
    end_done(&late);
    watch_hub_flush(control_hub(k->control));
}

static void services_and_gateways_follow_instances(void **state)
{
    struct scene *s = *state;
    struct kit *k = &s->kit;
    struct reader_end service, list, gateway, rbac;

    kit_get(k, s->alice, "/v1/services/web", "", NULL, &service);
    kit_get(k, s->alice, "/v1/services", "", NULL, &list);
    kit_get(k, s->agent, "/v1/nodes/n1/gateway", "", NULL, &gateway);
    kit_get(k, k->admin, "/v1/rbac", "", NULL, &rbac);
    struct reader_end *all[] = {&service, &list, &gateway, &rbac};
    for (size_t i = 0; i < 4; i++) {
        end_start(all[i]);
        json_decref(end_next(all[i]));
        end_expect_nothing(all[i]);
    }
    static const char ports[] = ",\"ready\":true,\"ports\":[{\"endpoint\":\"http\",\"port\":10001}]";
    instance_put(k, 5, "n2", ports);
    node_put(k, "n2", ",\"address\":\"10.9.8.7\"");
    instance_put(k, 5, "n2", ports); /* no change */
    for (size_t i = 0; i < 3; i++) {
        CLEANUP(json) json_t *line = end_next(all[i]);
        CLEANUP(json) json_t *moved = end_next(all[i]);
        CLEANUP(mem) char *before = json_dumps(line, 0), *after = json_dumps(moved, 0);
        assert_non_null(strstr(before, "10001"));
        assert_null(strstr(before, "10.9.8.7"));
        assert_non_null(strstr(after, "10.9.8.7"));
        end_expect_nothing(all[i]);
    }
    end_expect_nothing(&rbac);
    (void)kit_put(k, "users/dora", "{\"v\":1,\"id\":\"dora\",\"role\":\"user\"}");
    json_decref(end_next(&rbac));
    end_expect_nothing(&service);
    (void)kit_put(k, "instances/5", NULL);
    (void)kit_put(k, "apps/web.alice", NULL);
    json_decref(end_next(&service));
    end_expect(&service, "gone", "id", "web.alice");
    for (size_t i = 0; i < 4; i++)
        end_done(all[i]);
    assert_int_equal(watch_hub_len(control_hub(k->control)), 0);

    /* A document that had no reader during a change is derived again. */
    app_put(k, "");
    instance_put(k, 7, "n1", ports);
    kit_get(k, s->agent, "/v1/nodes/n1/gateway", "", NULL, &gateway);
    end_start(&gateway);
    assert_non_null(strstr(gateway.text.at, "\"instance\":7"));
    end_done(&gateway);
}

static void invalid_hash_is_refused(void **state)
{
    struct scene *s = *state;
    struct reader_end e;

    kit_get(&s->kit, s->alice, "/v1/services", "0123456789012345678901234567890123456789", NULL, &e);
    assert_int_equal(e.status, 400);
    end_done(&e);
}

static void metrics_count_objects(void **state)
{
    struct scene *s = *state;
    struct reader_end e, watch;

    kit_watch(&s->kit, s->kit.admin, "/v1/jobs", 1, &watch);
    kit_get(&s->kit, s->kit.admin, "/metrics", NULL, NULL, &e);
    assert_non_null(strstr(e.body.at, "\nberth_nodes{state=\"cordoned\"} 2\n"));
    assert_non_null(strstr(e.body.at, "\nberth_objects{kind=\"app\"} 1\n"));
    assert_non_null(strstr(e.body.at, "\nberth_watchers 1\n"));
    assert_null(strstr(e.body.at, "alice"));
    end_done(&e);
    end_done(&watch);
}

/* ---- the OpenAPI reference -------------------------------------------------------------------------------------- */

static const json_t *member(const json_t *of, const char *key)
{
    const json_t *found = json_object_get(of, key);
    if (!found)
        fail_msg("there is no '%s'", key);
    return found;
}

static void check_operation(const json_t *operation, const struct route *r)
{
    const json_t *parameters = member(operation, "parameters");
    size_t holes = 0, i;
    json_t *parameter;
    bool dry_run = false, watch = false;

    for (const char *p = r->path; *p; p++)
        holes += *p == '{';
    json_array_foreach(parameters, i, parameter)
    {
        const char *name = json_string_value(member(parameter, "name"));
        holes -= strcmp(json_string_value(member(parameter, "in")), "path") == 0;
        dry_run |= strcmp(name, "dry_run") == 0;
        watch |= strcmp(name, "watch") == 0;
    }
    assert_int_equal(holes, 0);
    assert_int_equal(dry_run, (r->flags & ROUTE_CHANGES) != 0);
    assert_int_equal(watch, (r->flags & ROUTE_STREAMS) != 0);
    assert_string_equal(json_string_value(member(operation, "summary")), r->summary);
    assert_int_equal(json_object_get(operation, "requestBody") != NULL, r->body_max > 0);
    assert_int_equal(json_object_get(operation, "security") != NULL, r->need == PERMIT_PUBLIC);
}

static void every_route_is_in_openapi(void **state)
{
    (void)state;
    CLEANUP(str) struct str text = {0};
    CLEANUP(str) struct str again = {0};

    openapi_write(&text);
    openapi_write(&again);
    assert_string_equal(text.at, again.at);
    CLEANUP(json) json_t *doc = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(doc);
    const json_t *paths = member(doc, "paths");
    size_t routes = 0, operations = 0;
    for (size_t t = 0; t < route_tables_len; t++)
        for (size_t i = 0; i < *route_tables[t].len; i++, routes++) {
            const struct route *r = &route_tables[t].routes[i];
            char method[16] = "";
            for (size_t c = 0; r->method[c]; c++)
                method[c] = (char)(r->method[c] | 0x20);
            check_operation(member(member(paths, r->path), method), r);
        }
    const char *path;
    json_t *methods;
    json_object_foreach((json_t *)paths, path, methods) operations += json_object_size(methods);
    assert_int_equal(operations, routes); /* no duplicates */
}

/* Checks that every "$ref" has a target. */
static void check_refs(const json_t *doc, const json_t *at)
{
    const char *key;
    size_t i;
    json_t *value;

    json_object_foreach((json_t *)at, key, value)
    {
        if (strcmp(key, "$ref") == 0) {
            CLEANUP(mem) char *text = mem_strdup(json_string_value(value));
            const json_t *target = doc;
            assert_int_equal(strncmp(text, "#/", 2), 0);
            char *rest = text + 2;
            for (char *word; (word = strsep(&rest, "/"));)
                target = member(target, word);
        }
        check_refs(doc, value);
    }
    json_array_foreach(at, i, value) check_refs(doc, value);
}

static void openapi_references_resolve(void **state)
{
    (void)state;
    CLEANUP(str) struct str text = {0};

    openapi_write(&text);
    CLEANUP(json) json_t *doc = json_loadb(text.at, text.len, 0, NULL);
    check_refs(doc, doc);
    const json_t *schemas = member(member(doc, "components"), "schemas");
    static const struct {
        const char *component, *key, *type;
    } rows[] = {
        {"job",    "command",     "array"  },
        {"job",    "hold",        "boolean"},
        {"job",    "env",         "object" },
        {"app",    "weight",      "integer"},
        {"node",   "allocatable", "object" },
        {"node",   "zone",        "string" },
        {"node",   "taints",      "array"  },
        {"report", "instances",   "array"  },
        {"user",   "disabled",    "boolean"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const json_t *key = member(member(member(schemas, rows[i].component), "properties"), rows[i].key);
        assert_string_equal(json_string_value(member(key, "type")), rows[i].type);
    }
    const json_t *taints = member(member(member(schemas, "node"), "properties"), "taints");
    assert_string_equal(json_string_value(member(member(taints, "items"), "$ref")), "#/components/schemas/taint");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(derived_documents_need_permission),
        CASE(hidden_service_looks_like_missing_service),
        CASE(documents_carry_their_hash),
        CASE(watch_sends_every_new_version),
        CASE(large_document_is_sent_with_pauses),
        CASE(services_and_gateways_follow_instances),
        CASE(invalid_hash_is_refused),
        CASE(metrics_count_objects),
        cmocka_unit_test(every_route_is_in_openapi),
        cmocka_unit_test(openapi_references_resolve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
