/* work_test.c - apps, jobs and VMs through the API. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"
#define BOB "user:bob"
#define CAROL "user:carol"

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

static void job_is_submitted_and_read(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/jobs",
         "{name: k, command: [/bin/true], hold: true, resources: {cpu: '1', memory: 16Mi}}");
    assert_int_equal(kit_number(k, "id"), 1);
    assert_int_equal(kit_number(k, "revision"), (int64_t)k->revision);
    int64_t revision = kit_number(k, "revision");
    CALL(k, 200, ALICE, "GET", "/v1/jobs/1", NULL);
    assert_int_equal(kit_number(k, "id"), 1);
    assert_int_equal(kit_number(k, "revision"), revision);
    assert_int_equal(kit_number(k, "generation"), 1);
    assert_int_equal(kit_number(k, "v"), 1);
    assert_string_equal(kit_text(k, "owner"), "alice");
    assert_string_equal(kit_text(k, "group"), "red");
    assert_string_equal(kit_text(k, "created"), "2026-03-01T12:00:00Z");
    assert_string_equal(kit_text(k, "requests/cpu"), "1");
    assert_null(kit_at(k, "resources"));
    assert_string_equal(kit_text(k, "status/state"), "held");
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{}");
    assert_int_equal(kit_number(k, "id"), 2);
}

static void job_numbers_are_never_reused(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{}");
    CALL(k, 400, ALICE, "POST", "/v1/jobs", "{replicas: -1}");
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{}");
    int64_t last = kit_number(k, "id");
    CALL(k, 204, ALICE, "DELETE", "/v1/jobs/1", NULL);
    char url[64];
    (void)snprintf(url, sizeof url, "/v1/jobs/%lld", (long long)last);
    CALL(k, 204, ALICE, "DELETE", url, NULL);
    kit_restart(k);
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{}");
    assert_true(kit_number(k, "id") > last);
    CALL(k, 404, ALICE, "GET", url, NULL);
}

static void apps_are_identified_by_name_and_owner(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *who, *method, *url, *body;
        int status;
        const char *words; /* part of the answer */
    } rows[] = {
        {ALICE, "POST",   "/v1/apps",             "{name: Web}",                    201, "\"id\":\"web.alice\""          },
        {ALICE, "POST",   "/v1/apps",             "{name: web}",                    409, "web.alice already exists"      },
        {ALICE, "POST",   "/v1/apps",             "{name: WEB}",                    409, "web.alice already exists"      },
        {ALICE, "POST",   "/v1/vms",              "{name: web}",                    409, "an app and a vm cannot"        },
        {BOB,   "POST",   "/v1/apps",             "{name: web}",                    201, "\"id\":\"web.bob\""            },
        {ALICE, "GET",    "/v1/apps/web",         NULL,                             200, "\"display\":\"Web\""           },
        {ALICE, "GET",    "/v1/apps/WEB.Alice",   NULL,                             200, "\"name\":\"web\""              },
        {ALICE, "GET",    "/v1/apps/web.bob",     NULL,                             404, "no app"                        },
        {ALICE, "GET",    "/v1/apps/nothing.bob", NULL,                             404, "no app"                        },
        {ALICE, "POST",   "/v1/apps",             "{id: shop, kind: service}",      201, "shop.alice"                    },
        {ALICE, "POST",   "/v1/apps",             "{id: pad.alice}",                201, "pad.alice"                     },
        {ALICE, "POST",   "/v1/apps",             "{id: pad.alice, owner: bob}",    400, "owner: bob does not match"     },
        {ALICE, "POST",   "/v1/apps",             "{id: pad, name: other}",         400, "name: other does not match"    },
        {ALICE, "POST",   "/v1/apps",             "{}",                             400, "name: missing"                 },
        {ALICE, "POST",   "/v1/apps",             "{name: 5}",                      400, "name: missing"                 },
        {ALICE, "POST",   "/v1/apps",             "{name: a_b}",                    400, "name: "                        },
        {ALICE, "POST",   "/v1/apps",             "{name: -a}",                     400, "may not start or end"          },
        {ALICE, "POST",   "/v1/apps",             "{name: system}",                 400, "reserved word"                 },
        {ALICE, "POST",   "/v1/apps",             "{name: ../x}",                   400, "may have only"                 },
        {ALICE, "POST",   "/v1/apps",             "{name: a, kind: job}",           400, "kind: \\\"job\\\" is not of"   },
        {ALICE, "POST",   "/v1/apps",             "{name: a, owner: bob}",          403, "may not create apps for bob"   },
        {ALICE, "POST",   "/v1/apps",             "{name: a, owner: nobody-there}", 403, "may not create apps for nobody"},
        {ALICE, "POST",   "/v1/apps",             "{name: a, owner: carol}",        403, "may not create apps for carol" },
        {CAROL, "POST",   "/v1/apps",             "{name: a, owner: Alice}",        201, "a.alice"                       },
        {CAROL, "POST",   "/v1/apps",             "{name: a, owner: bob}",          403, "may not create apps for bob"   },
        {ADMIN, "POST",   "/v1/apps",             "{name: a, owner: bob}",          201, "a.bob"                         },
        {ADMIN, "POST",   "/v1/apps",             "{name: a, owner: nobody-there}", 400, "owner: there is no user"       },
        {ADMIN, "POST",   "/v1/apps",             "{name: a, owner: system}",       403, "cannot be created"             },
        {ADMIN, "PUT",    "/v1/apps/a.system",    "{}",                             403, "cannot be created"             },
        {ADMIN, "POST",   "/v1/apps",             "{name: a, owner: 5}",            400, "owner: expected the id"        },
        {ALICE, "PUT",    "/v1/apps/a.bob",       "{}",                             404, "no app"                        },
        {ALICE, "PUT",    "/v1/apps/zz.bob",      "{}",                             404, "no app"                        },
        {ALICE, "PATCH",  "/v1/apps/a.bob",       "{replicas: 2}",                  404, "no app"                        },
        {ALICE, "DELETE", "/v1/apps/a.bob",       NULL,                             404, "no app"                        },
        {ALICE, "DELETE", "/v1/apps/zz.bob",      NULL,                             404, "no app"                        },
        {ALICE, "POST",   "/v1/apps/a.bob/stop",  "{}",                             404, "no app"                        },
        {"",    "POST",   "/v1/apps",             "{name: b}",                      401, "no valid token"                },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, rows[i].method, rows[i].url, rows[i].body);
        SAYS(k, rows[i].words);
    }
}

static void bad_fields_are_named_and_nothing_changes(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *url, *body, *field, *words;
    } rows[] = {
        {"/v1/jobs", "{command: /bin/true}",                                                               "command",                "expected a list"                     },
        {"/v1/jobs", "{id: 5}",                                                                            "id",                     "set by the daemon"                   },
        {"/v1/jobs", "{resources: {cpu: 1}, requests: {cpu: 2}}",                                          "resources",              "give only one"                       },
        {"/v1/jobs", "{requests: {cpu: 1x}}",                                                              "requests.cpu",           "unit"                                },
        {"/v1/jobs", "{requests: {attach-disk: 1}}",                                                       "",                       "list volumes instead"                },
        {"/v1/jobs", "{replicas: 10000001}",                                                               "",                       "at most 10000000"                    },
        {"/v1/jobs", "{replicas: 99999999999}",                                                            "replicas",               "expected a whole number"             },
        {"/v1/jobs", "{gang_min: 2}",                                                                      "",                       "the gang needs"                      },
        {"/v1/jobs", "{stopped: true}",                                                                    "stopped",                "is only for apps and vms"            },
        {"/v1/jobs", "{endpoints: [a]}",                                                                   "endpoints",              "are only for apps"                   },
        {"/v1/jobs", "{suspended: true}",                                                                  "suspended",              "use \\\"hold\\\" for a job"          },
        {"/v1/jobs", "{volumes: [none]}",                                                                  "volumes[0]",             "there is no volume"                  },
        {"/v1/jobs", "{colour: red}",                                                                      "",                       "unknown key"                         },
        {"/v1/jobs", "{count: 3}",                                                                         "count",                  "is only for cluster files"           },
        {"/v1/jobs", "{requests: {hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 28Mi}}",                    "limits.hugepages-2Mi",
         "must equal the request, which is 2Mi"                                                                                                                            },
        {"/v1/jobs", "{limits: {hugepages-2Mi: 28Mi}}",                                                    "limits.hugepages-2Mi",   "must equal the request, which is 0"  },
        {"/v1/jobs", "{requests: {hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: {amount: 2Mi, max: 8Mi}}}",
         "limits.hugepages-2Mi",                                                                                                     "must equal the request, which is 2Mi"},
        {"/v1/jobs", "{requests: {hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: {weight: 5}}}",             "limits.hugepages-2Mi",
         "must equal the request, which is 2Mi"                                                                                                                            },
        {"/v1/apps", "{name: a, hold: true}",                                                              "hold",                   "is only for jobs"                    },
        {"/v1/apps", "{name: a, settings_schema: {x: {type: y}}}",                                         "settings_schema.x.type", "expected one of"                     },
        {"/v1/apps", "{name: a, settings: {x: [1]}}",                                                      "settings.x",             "expected text, a number"             },
        {"/v1/apps", "{name: a, settings_schema: {x: {type: text}}, settings: {x: 1}}",                    "settings.x",             "expected text"                       },
        {"/v1/apps", "{name: a, weight: 1000}",                                                            "weight",                 "from 0 to 100"                       },
        {"/v1/vms",  "{name: a, endpoints: [x]}",                                                          "endpoints",              "are only for apps"                   },
    };
    CALL(k, 200, ADMIN, "GET", "/v1/apps", NULL);
    int64_t before = kit_number(k, "revision");
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, 400, ALICE, "POST", rows[i].url, rows[i].body);
        SAYS(k, rows[i].words);
        assert_string_equal(kit_text(k, "error/code"), "invalid");
        if (strcmp(kit_text(k, "error/field"), rows[i].field) != 0)
            fail_msg("field %s: %s", rows[i].field, k->text);
    }
    CALL(k, 200, ADMIN, "GET", "/v1/apps", NULL);
    assert_int_equal(kit_number(k, "revision"), before);
}

static void generation_counts_changes_of_the_spec(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *method, *url, *body;
        int status, generation;
    } rows[] = {
        {"PUT",   "/v1/apps/web",          "{replicas: 2, endpoints: [http]}",               201, 1 },
        {"PUT",   "/v1/apps/web",          "{endpoints: [http], replicas: 2}",               200, 1 },
        {"PUT",   "/v1/apps/web",          "{replicas: 3, endpoints: [http]}",               200, 2 },
        {"POST",  "/v1/apps/web/stop",     "{}",                                             200, 2 },
        {"PUT",   "/v1/apps/web",          "{replicas: 3, endpoints: [http]}",               200, 2 },
        {"POST",  "/v1/apps/web/start",    NULL,                                             200, 2 },
        {"POST",  "/v1/apps/web/restart",  NULL,                                             200, 3 },
        {"POST",  "/v1/apps/web/scale",    "{replicas: 3}",                                  200, 3 },
        {"POST",  "/v1/apps/web/scale",    "{replicas: 5}",                                  200, 4 },
        {"PATCH", "/v1/apps/web",          "{replicas: 5}",                                  200, 4 },
        {"PATCH", "/v1/apps/web",          "{labels: {a: b}}",                               200, 5 },
        {"PATCH", "/v1/apps/web",          "{labels: {a: null, c: d}}",                      200, 6 },
        {"PATCH", "/v1/apps/web",          "{generation: 99, created: 5, status: {}, v: 7}", 200, 6 },
        {"PUT",   "/v1/apps/web/settings", "{colour: red}",                                  200, 7 },
        {"PATCH", "/v1/apps/web/settings", "{size: 5, colour: null}",                        200, 8 },
        {"PUT",   "/v1/apps/web/install",  "{disk: sda}",                                    200, 9 },
        {"PATCH", "/v1/apps/web/install",  "{cache: sdb}",                                   200, 10},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, ALICE, rows[i].method, rows[i].url, rows[i].body);
        CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
        if (kit_number(k, "generation") != rows[i].generation)
            fail_msg("row %zu: %s", i, k->text);
    }
    assert_int_equal(kit_number(k, "restart"), 1);
    assert_int_equal(kit_number(k, "index"), 0);
    assert_string_equal(kit_text(k, "created"), "2026-03-01T12:00:00Z");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web/settings", NULL);
    assert_string_equal(k->text, "{\"size\":5}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web/install", NULL);
    assert_string_equal(k->text, "{\"disk\":\"sda\",\"cache\":\"sdb\"}");
}

static void settings_follow_the_schema(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps",
         "{name: web, settings_schema: {port: {type: integer, default: 80, max: 90}, name: {type: text}}}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web/settings", NULL);
    assert_string_equal(k->text, "{\"port\":80}");
    CALL(k, 400, ALICE, "PUT", "/v1/apps/web/settings", "{port: 99}");
    SAYS(k, "settings: port: is above");
    CALL(k, 400, ALICE, "PATCH", "/v1/apps/web/settings", "{prot: 9}");
    SAYS(k, "did you mean");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/web/settings", "{port: 85}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web/settings", NULL);
    assert_string_equal(k->text, "{\"port\":85}");
    CALL(k, 404, BOB, "GET", "/v1/apps/web.alice/settings", NULL);
    CALL(k, 404, BOB, "PUT", "/v1/apps/web.alice/settings", "{port: 81}");
}

static void install_configuration_needs_manage(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/users", "{id: vera, group: red, role: viewer}");
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, install: {disk: sda}}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_string_equal(kit_text(k, "install/disk"), "sda");
    CALL(k, 200, "user:vera", "GET", "/v1/apps/web.alice", NULL);
    assert_null(kit_at(k, "install"));
    CALL(k, 200, "user:vera", "GET", "/v1/apps", NULL);
    assert_null(strstr(k->text, "sda"));
    CALL(k, 403, "user:vera", "GET", "/v1/apps/web.alice/install", NULL);
    CALL(k, 403, "user:vera", "POST", "/v1/apps/web.alice/stop", NULL);
}

static void replace_keeps_the_stopped_flag(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, stopped: true}");
    CALL(k, 200, ALICE, "PUT", "/v1/apps/web", "{replicas: 2}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_true(json_is_true(kit_at(k, "stopped")));
    CALL(k, 409, ALICE, "POST", "/v1/apps/web/restart", NULL);
    SAYS(k, "is stopped; start it instead");
    CALL(k, 200, ALICE, "PUT", "/v1/apps/web", "{replicas: 2, stopped: false}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_true(json_is_false(kit_at(k, "stopped")));
    CALL(k, 400, ALICE, "PUT", "/v1/apps/web", "{owner: bob}");
    SAYS(k, "owner: cannot be changed");
    CALL(k, 400, ALICE, "PATCH", "/v1/apps/web", "{name: other}");
    SAYS(k, "name: cannot be changed");
    CALL(k, 400, ALICE, "PUT", "/v1/apps/web", "{id: other}");
    SAYS(k, "id: web.alice cannot be renamed to other.alice");
    CALL(k, 400, ALICE, "POST", "/v1/apps/web/scale", "{}");
    SAYS(k, "replicas: missing");
    CALL(k, 400, ALICE, "POST", "/v1/apps/web/scale", "{replicas: 2, now: true}");
    CALL(k, 400, ALICE, "POST", "/v1/apps/web/scale", "{replicas: 20000000}");
}

static void read_document_can_be_put_back(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: Web, endpoints: [http], resources: {cpu: 1}, settings: {a: 1}}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    CLEANUP(mem) char *text = mem_strdup(k->text);
    uint64_t revision = (uint64_t)kit_number(k, "revision");
    CALL(k, 200, ALICE, "PUT", "/v1/apps/web", text);
    assert_int_equal(kit_number(k, "revision"), (int64_t)revision); /* nothing to write */
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_int_equal(kit_number(k, "revision"), (int64_t)revision);
}

static void jobs_are_held_released_and_cancelled(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *method, *url;
        int status;
        const char *shown; /* state afterwards */
    } rows[] = {
        {"POST",  "/v1/jobs/1/hold",    200, "held"   },
        {"POST",  "/v1/jobs/1/hold",    200, "held"   },
        {"POST",  "/v1/jobs/1/release", 200, "pending"},
        {"POST",  "/v1/jobs/1/release", 200, "pending"},
        {"POST",  "/v1/jobs/1/cancel",  200, "ended"  },
        {"POST",  "/v1/jobs/1/cancel",  200, "ended"  },
        {"POST",  "/v1/jobs/1/release", 409, "ended"  },
        {"POST",  "/v1/jobs/1/hold",    409, "ended"  },
        {"PATCH", "/v1/jobs/1",         409, "ended"  },
        {"POST",  "/v1/jobs/7/hold",    404, "ended"  },
        {"POST",  "/v1/jobs/x/hold",    404, "ended"  },
        {"POST",  "/v1/jobs/01/hold",   404, "ended"  },
    };
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, ALICE, rows[i].method, rows[i].url, "{}");
        CALL(k, 200, ALICE, "GET", "/v1/jobs/1", NULL);
        if (strcmp(kit_text(k, "status/state"), rows[i].shown) != 0)
            fail_msg("row %zu: %s", i, k->text);
        assert_int_equal(kit_number(k, "generation"), 1);
    }
    CALL(k, 404, BOB, "POST", "/v1/jobs/1/cancel", NULL);
    CALL(k, 200, CAROL, "POST", "/v1/jobs/1/cancel", NULL);
    CALL(k, 404, ALICE, "PUT", "/v1/jobs/99", "{}");
}

static size_t page_text_bytes(struct kit *k)
{
    return json_dumpb(k->body, NULL, 0, JSON_COMPACT);
}

/* Jobs of 100 KB each; the limit alone would allow all of them on one page. */
static void list_pages_are_bounded_in_bytes(void **state)
{
    enum { JOBS = 40, VALUES = 32, VALUE_BYTES = 3000, PAGE_MAX = 1200000 };
    struct kit *k = *state;
    CLEANUP(str) struct str body = {0};
    unsigned pages = 0, seen = 0;
    char url[64] = "/v1/jobs?limit=10000";
    str_add(&body, "{env: {");
    for (int i = 0; i < VALUES; i++) {
        str_addf(&body, "%sV%d: ", i ? ", " : "", i);
        for (int j = 0; j < VALUE_BYTES; j++)
            str_add_char(&body, 'x');
    }
    str_add(&body, "}}");
    for (int i = 0; i < JOBS; i++)
        CALL(k, 201, ALICE, "POST", "/v1/jobs", body.at);
    for (bool more = true; more; pages++) {
        CALL(k, 200, ALICE, "GET", url, NULL);
        assert_true(page_text_bytes(k) < PAGE_MAX);
        const json_t *items = kit_at(k, "items");
        for (size_t i = 0; i < json_array_size(items); i++)
            assert_int_equal(json_integer_value(json_object_get(json_array_get(items, i), "id")), ++seen);
        const char *after = json_string_value(kit_at(k, "continue"));
        more = after;
        if (more)
            (void)snprintf(url, sizeof url, "/v1/jobs?limit=10000&after=%s", after);
    }
    assert_int_equal(seen, JOBS);
    assert_in_range(pages, 4, 6);
    CALL(k, 200, ALICE, "GET", "/v1/jobs?order=desc", NULL); /* descending order, too */
    assert_true(page_text_bytes(k) < PAGE_MAX);
    const json_t *items = kit_at(k, "items");
    json_int_t last = json_integer_value(json_object_get(json_array_get(items, json_array_size(items) - 1), "id"));
    assert_int_equal(last, atoll(kit_text(k, "continue")));
}

static void lists_are_paged_and_filtered(void **state)
{
    struct kit *k = *state;
    for (int i = 0; i < 12; i++)
        CALL(k, 201, i % 3 ? ALICE : BOB, "POST", "/v1/jobs", i == 4 ? "{hold: true}" : "{}");
    static const struct {
        const char *who, *url;
        const char *ids, *more;
    } rows[] = {
        {ALICE, "/v1/jobs",                    "2,3,5,6,8,9,11,12", "" },
        {BOB,   "/v1/jobs",                    "1,4,7,10",          "" },
        {ALICE, "/v1/jobs?limit=3",            "2,3,5",             "5"},
        {ALICE, "/v1/jobs?limit=3&after=5",    "6,8,9",             "9"},
        {ALICE, "/v1/jobs?limit=3&after=9",    "11,12",             "" },
        {ALICE, "/v1/jobs?limit=2&after=9",    "11,12",             "" },
        {ALICE, "/v1/jobs?after=100",          "",                  "" },
        {ALICE, "/v1/jobs?owner=bob",          "",                  "" },
        {ADMIN, "/v1/jobs?owner=bob",          "1,4,7,10",          "" },
        {ADMIN, "/v1/jobs?group=blue&limit=2", "1,4",               "4"},
        {ALICE, "/v1/jobs?state=held",         "5",                 "" },
        {CAROL, "/v1/jobs?state=held",         "5",                 "" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char ids[256] = "";
        CALL(k, 200, rows[i].who, "GET", rows[i].url, NULL);
        for (size_t j = 0; j < json_array_size(kit_at(k, "items")); j++) {
            const json_t *item = json_array_get(kit_at(k, "items"), j);
            (void)snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%lld", j ? "," : "",
                           (long long)json_integer_value(json_object_get(item, "id")));
        }
        assert_string_equal(ids, rows[i].ids);
        assert_string_equal(kit_text(k, "continue"), rows[i].more);
        assert_true(kit_number(k, "revision") > 0);
    }
    CALL(k, 400, ALICE, "GET", "/v1/jobs?limit=0", NULL);
    CALL(k, 400, ALICE, "GET", "/v1/jobs?limit=10001", NULL);
    CALL(k, 400, ALICE, "GET", "/v1/jobs?limit=x", NULL);
    CALL(k, 200, ALICE, "GET", "/v1/jobs?watch=0", NULL);
    assert_true(k->streamed);
}

static void a_dry_run_changes_nothing(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web}");
    int64_t revision = kit_number(k, "revision");
    static const struct {
        const char *method, *url, *body;
    } rows[] = {
        {"POST",   "/v1/jobs?dry_run=true",          "{}"           },
        {"POST",   "/v1/apps?dry_run=true",          "{name: other}"},
        {"PUT",    "/v1/apps/web?dry_run=true",      "{replicas: 9}"},
        {"PATCH",  "/v1/apps/web?dry_run=true",      "{replicas: 9}"},
        {"DELETE", "/v1/apps/web?dry_run=true",      NULL           },
        {"POST",   "/v1/apps/web/stop?dry_run=true", NULL           },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, 200, ALICE, rows[i].method, rows[i].url, rows[i].body);
        assert_true(json_is_true(kit_at(k, "dry_run")));
        assert_int_equal(json_array_size(kit_at(k, "changes")), 1);
    }
    CALL(k, 400, ALICE, "POST", "/v1/jobs?dry_run=true", "{replicas: x}");
    CALL(k, 200, ALICE, "GET", "/v1/apps", NULL);
    assert_int_equal(kit_number(k, "revision"), revision);
    assert_int_equal(json_array_size(kit_at(k, "items")), 1);
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{}");
    assert_int_equal(kit_number(k, "id"), 1);
}

static void if_match_rejects_changed_documents(void **state)
{
    struct kit *k = *state;
    char match[24];
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web}");
    (void)snprintf(match, sizeof match, "%lld", (long long)kit_number(k, "revision"));
    k->if_match = match;
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/web", "{replicas: 2}");
    static const struct {
        const char *method, *url, *body;
    } rows[] = {
        {"PUT",    "/v1/apps/web",          "{replicas: 3}"},
        {"PATCH",  "/v1/apps/web",          "{replicas: 3}"},
        {"POST",   "/v1/apps/web/scale",    "{replicas: 3}"},
        {"POST",   "/v1/apps/web/stop",     "{}"           },
        {"PUT",    "/v1/apps/web/settings", "{a: 1}"       },
        {"DELETE", "/v1/apps/web",          NULL           },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        k->if_match = match;
        CALL(k, 412, ALICE, rows[i].method, rows[i].url, rows[i].body);
    }
    k->if_match = "0";
    CALL(k, 201, ALICE, "PUT", "/v1/apps/fresh", "{}");
    k->if_match = "0";
    CALL(k, 412, ALICE, "PUT", "/v1/apps/fresh", "{replicas: 4}");
    k->if_match = "x";
    CALL(k, 400, ALICE, "PUT", "/v1/apps/fresh", "{replicas: 4}");
}

static void request_with_a_key_runs_once(void **state)
{
    struct kit *k = *state;
    k->key = "k1";
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{name: a}");
    int64_t id = kit_number(k, "id");
    k->key = "k1";
    CALL(k, 201, ALICE, "POST", "/v1/jobs", "{name: a}");
    assert_int_equal(kit_number(k, "id"), id);
    k->key = "k1";
    CALL(k, 409, ALICE, "POST", "/v1/jobs", "{name: b}");
    CALL(k, 200, ALICE, "GET", "/v1/jobs", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 1);
}

static void generations_with_instances_are_kept(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, requests: {cpu: 1}}");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/web", "{requests: {cpu: 2}}");
    assert_null(state_find(control_state(k->control), KIND_SPEC, "web.alice/1"));
    kit_plan(k);
    CALL(k, 200, ALICE, "GET", "/v1/instances?workload=web.alice", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 1);
    assert_int_equal(kit_number(k, "items/0/of"), 2);
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/web", "{requests: {cpu: 3}}");
    assert_non_null(state_find(control_state(k->control), KIND_SPEC, "web.alice/2"));
    CALL(k, 200, ALICE, "POST", "/v1/apps/web/stop", NULL);
    assert_null(state_find(control_state(k->control), KIND_SPEC, "web.alice/3"));
    CALL(k, 204, ALICE, "DELETE", "/v1/apps/web", NULL);
    assert_non_null(state_find(control_state(k->control), KIND_SPEC, "web.alice/3"));
    /* A new workload of that name starts above the remaining generations of the first. */
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/web", NULL);
    assert_int_equal(kit_number(k, "generation"), 4);
    CALL(k, 404, BOB, "GET", "/v1/instances/1", NULL);
}

static void mounted_volumes_must_exist(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/volumes", "{id: Data, shared: true}");
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web, volumes: [data]}");
    CALL(k, 400, BOB, "POST", "/v1/apps", "{name: web, volumes: [data]}");
    SAYS(k, "there is no volume");
    CALL(k, 404, BOB, "DELETE", "/v1/volumes/data", NULL);
    CALL(k, 404, BOB, "PUT", "/v1/volumes/data", "{}");
    CALL(k, 409, BOB, "POST", "/v1/volumes", "{id: data}");
    CALL(k, 409, ALICE, "DELETE", "/v1/volumes/data", NULL);
    SAYS(k, "is mounted by web.alice");
    CALL(k, 200, ALICE, "PATCH", "/v1/volumes/data", "{zone: a}");
    CALL(k, 400, ALICE, "PATCH", "/v1/volumes/data", "{owner: bob}");
    CALL(k, 200, ALICE, "PATCH", "/v1/apps/web", "{volumes: null}");
    CALL(k, 204, ALICE, "DELETE", "/v1/volumes/data", NULL);
}

static void apps_with_endpoints_have_their_own_ports(void **state)
{
    struct kit *k = *state;
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: a, endpoints: [http]}");
    CALL(k, 201, BOB, "POST", "/v1/apps", "{name: b, endpoints: http}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/a", NULL);
    assert_int_equal(kit_number(k, "index"), 0);
    CALL(k, 200, BOB, "GET", "/v1/apps/b", NULL);
    assert_int_equal(kit_number(k, "index"), 1);
    CALL(k, 200, ALICE, "PUT", "/v1/apps/a", "{index: 1, endpoints: [http, dns]}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/a", NULL);
    assert_int_equal(kit_number(k, "index"), 0);
    CALL(k, 200, ALICE, "PUT", "/v1/apps/a", "{endpoints: []}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/a", NULL);
    assert_null(kit_at(k, "index"));
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: c, endpoints: [http]}");
    CALL(k, 200, ALICE, "GET", "/v1/apps/c", NULL);
    assert_int_equal(kit_number(k, "index"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(job_is_submitted_and_read),
        TEST(job_numbers_are_never_reused),
        TEST(apps_are_identified_by_name_and_owner),
        TEST(bad_fields_are_named_and_nothing_changes),
        TEST(generation_counts_changes_of_the_spec),
        TEST(settings_follow_the_schema),
        TEST(install_configuration_needs_manage),
        TEST(replace_keeps_the_stopped_flag),
        TEST(read_document_can_be_put_back),
        TEST(jobs_are_held_released_and_cancelled),
        TEST(list_pages_are_bounded_in_bytes),
        TEST(lists_are_paged_and_filtered),
        TEST(a_dry_run_changes_nothing),
        TEST(if_match_rejects_changed_documents),
        TEST(request_with_a_key_runs_once),
        TEST(generations_with_instances_are_kept),
        TEST(mounted_volumes_must_exist),
        TEST(apps_with_endpoints_have_their_own_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
