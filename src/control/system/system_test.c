/* system_test.c - system settings and system services. */
#include "control/api/kit_test.h"

#include "control/system/settings_table.h"
#include "wire/doc/api.h"

#define ALICE "user:alice"

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

static void settings_have_defaults_and_bounds(void **state)
{
    struct kit *k = *state;
    CLEANUP(json) json_t *schema = system_settings_schema(SETTINGS_DEFAULTS);
    assert_int_equal(settings_schema_check(schema, NULL), 0);
    assert_int_equal(json_object_size(schema), SYSTEM_SETTINGS);
    CALL(k, 200, ADMIN, "GET", "/v1/system/settings", NULL);
    assert_int_equal(json_object_size(k->body), SYSTEM_SETTINGS);
    assert_int_equal(kit_number(k, "lease_s"), 30);
    assert_string_equal(kit_text(k, "holder_shown"), "group");
    CALL(k, 200, ADMIN, "GET", "/v1/system/settings?schema=true", NULL);
    assert_true(json_equal(k->body, schema));
}

/* A cluster of an earlier version keeps its defaults until they are changed. */
static void a_cluster_keeps_its_defaults(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *method, *body, *policy, *until_limit;
        int64_t alike;
    } rows[] = {
        {"GET",   NULL,                           "fifo",  "off", 0},
        {"PATCH", "{lease_s: 60}",                "fifo",  "off", 0},
        {"PUT",   "{policy: sjf}",                "sjf",   "off", 0},
        {"PATCH", "{defaults: 2}",                "sjf",   "on",  1},
        {"PUT",   "{lease_s: 60}",                "berth", "on",  1},
        {"PATCH", "{defaults: null}",             "berth", "on",  1},
        {"PATCH", "{defaults: 1, policy: berth}", "berth", "off", 0},
        {"PATCH", "{policy: null}",               "fifo",  "off", 0},
    };
    CALL(k, 200, ADMIN, "GET", "/v1/system/settings", NULL);
    assert_string_equal(kit_text(k, "policy"), "berth"); /* a new cluster */
    kit_put(k, KIND_SETTING, SETTINGS_ID, "{v: 1}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int again = 0; again < 2; again++) {
            CALL(k, 200, ADMIN, again ? "GET" : rows[i].method, "/v1/system/settings", again ? NULL : rows[i].body);
            assert_string_equal(kit_text(k, "policy"), rows[i].policy);
            assert_string_equal(kit_text(k, "backfill_until_limit"), rows[i].until_limit);
            assert_int_equal(kit_number(k, "reservations_alike"), rows[i].alike);
        }
    CALL(k, 400, ADMIN, "PATCH", "/v1/system/settings", "{defaults: 4}");
}

static void settings_are_put_and_patched(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *who, *method, *body;
        int status;
        const char *words;
    } rows[] = {
        {ADMIN, "PATCH", "{lease_s: 60}",            200, "\"lease_s\":60"                  },
        {ADMIN, "PATCH", "{holder_shown: user}",     200, "\"lease_s\":60"                  },
        {ADMIN, "PATCH", "{lease_s: 1}",             400, "lease_s: is below the least"     },
        {ADMIN, "PATCH", "{lease_s: x}",             400, "lease_s: expected a whole number"},
        {ADMIN, "PATCH", "{lease: 60}",              400, "did you mean \\\"lease_s\\\"?"   },
        {ADMIN, "PATCH", "{holder_shown: all}",      400, "holder_shown: expected one of"   },
        {ADMIN, "PATCH", "{profile: none-such}",     400, "profile: there is no profile"    },
        {ADMIN, "PATCH", "{profile: default}",       200, "\"profile\":\"default\""         },
        {ADMIN, "PATCH", "{lease_s: null}",          200, "\"lease_s\":30"                  },
        {ADMIN, "PUT",   "{seed: 7}",                200, "\"holder_shown\":\"group\""      },
        {ALICE, "PATCH", "{seed: 8}",                403, "lacks the permission"            },
        {ALICE, "GET",   NULL,                       403, "lacks the permission"            },
        {ADMIN, "GET",   NULL,                       200, "\"seed\":7"                      },
        {ADMIN, "PATCH", "{seed: 9007199254740993}", 400, "seed: is above"                  },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, rows[i].method, "/v1/system/settings", rows[i].body);
        SAYS(k, rows[i].words);
    }
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings?dry_run=true", "{seed: 8}");
    struct arena arena;
    arena_init(&arena);
    struct state *s = control_state(k->control);
    assert_int_equal(system_setting_number(s, SETTING_SEED), 7);
    assert_int_equal(system_setting_number(s, SETTING_LEASE_S), 30);
    assert_string_equal(system_setting_text(s, SETTING_HOLDER_SHOWN, &arena), "group");
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{holder_shown: nobody}");
    assert_string_equal(system_setting_text(s, SETTING_HOLDER_SHOWN, &arena), "nobody");
    arena_done(&arena);
    kit_restart(k);
    CALL(k, 200, ADMIN, "GET", "/v1/system/settings", NULL);
    assert_int_equal(kit_number(k, "seed"), 7);
}

static void system_services_cannot_be_created(void **state)
{
    struct kit *k = *state;
    kit_put(k, KIND_APP, "dns.system",
            "{v: 1, id: dns.system, name: dns, owner: system, system: true, generation: 1, settings_schema: "
            "{port: {type: integer, default: 53}}}");
    kit_put(k, KIND_APP, "gate.system",
            "{v: 1, id: gate.system, name: gate, owner: system, system: true, stoppable: false, generation: 1}");
    CALL(k, 201, ALICE, "POST", "/v1/apps", "{name: web}");
    static const struct {
        const char *who, *method, *url, *body;
        int status;
        const char *words;
    } rows[] = {
        {ADMIN, "GET",    "/v1/system/services",                   NULL,                       200, "\"dns.system\""            },
        {ADMIN, "GET",    "/v1/system/services/DNS",               NULL,                       200, "\"status\""                },
        {ADMIN, "GET",    "/v1/system/services/web",               NULL,                       404, "no system service"         },
        {ADMIN, "GET",    "/v1/system/services/web.alice",         NULL,                       404, "no system service"         },
        {ALICE, "GET",    "/v1/system/services",                   NULL,                       403, "lacks"                     },
        {ADMIN, "POST",   "/v1/system/services/dns/disable",       NULL,                       200, "dns.system"                },
        {ADMIN, "GET",    "/v1/apps/dns.system",                   NULL,                       200, "\"stopped\":true"          },
        {ADMIN, "POST",   "/v1/system/services/dns/restart",       NULL,                       409, "is stopped"                },
        {ADMIN, "POST",   "/v1/system/services/dns.system/enable", NULL,                       200, "dns.system"                },
        {ADMIN, "POST",   "/v1/system/services/dns/restart",       NULL,                       200, "dns.system"                },
        {ADMIN, "POST",   "/v1/system/services/gate/disable",      NULL,                       409, "cannot be disabled"        },
        {ADMIN, "POST",   "/v1/system/services/none/disable",      NULL,                       404, "no system service"         },
        {ADMIN, "PUT",    "/v1/system/services/dns/settings",      "{port: 54}",               200, "dns.system"                },
        {ADMIN, "PUT",    "/v1/system/services/dns/settings",      "{port: x}",                400, "settings: port: expected"  },
        {ADMIN, "GET",    "/v1/system/services/dns/settings",      NULL,                       200, "{\"port\":54}"             },
        {ALICE, "PUT",    "/v1/system/services/dns/settings",      "{port: 55}",               403, "lacks"                     },
        {ADMIN, "DELETE", "/v1/apps/dns.system",                   NULL,                       403, "is a service of the system"},
        {ADMIN, "PUT",    "/v1/apps/dns.system",                   "{}",                       403, "is a service of the system"},
        {ADMIN, "PATCH",  "/v1/apps/dns.system",                   "{weight: 1}",              403, "is a service of the system"},
        {ADMIN, "POST",   "/v1/apps/dns.system/stop",              NULL,                       403, "is a service of the system"},
        {ADMIN, "POST",   "/v1/apps/dns.system/scale",             "{replicas: 0}",            403, "is a service of the system"},
        {ALICE, "POST",   "/v1/apps/dns.system/stop",              NULL,                       404, "no app"                    },
        {ADMIN, "POST",   "/v1/apps",                              "{name: x, owner: System}", 403, "cannot be created"         },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, rows[i].method, rows[i].url, rows[i].body);
        SAYS(k, rows[i].words);
    }
    CALL(k, 200, ADMIN, "GET", "/v1/system/services", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 2);
    assert_int_equal(kit_number(k, "items/0/restart"), 1);
    assert_int_equal(kit_number(k, "items/0/generation"), 3); /* its settings and the restart */
}

/* An option of berthd overrides its setting, so a setting without effect is refused. */
static void a_setting_behind_an_option_is_refused(void **state)
{
    struct kit *k = *state;
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{lease_s: 60}");
    k->lease_ns = INT64_C(5) * 1000000000;
    kit_restart(k);
    static const struct {
        const char *method, *body;
        int status;
    } rows[] = {
        {"PATCH", "{lease_s: 90}",          409},
        {"PUT",   "{lease_s: 90, seed: 3}", 409},
        {"PATCH", "{lease_s: 60}",          200}, /* unchanged */
        {"PATCH", "{holder_shown: nobody}", 200},
        {"PATCH", "{audit_every: 7}",       200}, /* no option overrides it */
        {"PATCH", "{lease_s: null}",        200},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, ADMIN, rows[i].method, "/v1/system/settings", rows[i].body);
        if (rows[i].status == 409)
            SAYS(k, "lease_s: berthd was started with --lease, which overrides the setting");
    }
    k->lease_ns = 0;
    kit_restart(k);
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings", "{lease_s: 90}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(settings_have_defaults_and_bounds), TEST(a_cluster_keeps_its_defaults),
        TEST(settings_are_put_and_patched),      TEST(a_setting_behind_an_option_is_refused),
        TEST(system_services_cannot_be_created),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
