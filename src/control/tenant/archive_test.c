/* archive_test.c - export and import of a user, into the same or another cluster: complete or not at all, without
 * secrets.
 */
#include "control/tenant/archive.h"

#include "control/tenant/user_kit_test.h"

struct people {
    struct kit k;
    char boss[TOKEN_TEXT_MAX], ann[TOKEN_TEXT_MAX], bob[TOKEN_TEXT_MAX];
};

static void people_open(struct people *p)
{
    kit_open(&p->k);
    asked(&p->k, p->k.admin, "POST", "/v1/groups", "{\"id\": \"red\"}", 201);
    asked(&p->k, p->k.admin, "POST", "/v1/groups", "{\"id\": \"blue\"}", 201);
    kit_user(&p->k, "boss", "red", "manager", p->boss);
    kit_user(&p->k, "ann", "red", "user", p->ann);
    kit_user(&p->k, "bob", "blue", "user", p->bob);
}

/* Creates the user ann's objects. */
static void ann_objects_create(struct people *p)
{
    asked(&p->k, p->ann, "POST", "/v1/volumes", "{\"id\": \"maps\", \"driver\": \"disk\"}", 201);
    asked(&p->k, p->ann, "POST", "/v1/apps",
          "{\"name\": \"Web\", \"replicas\": 2, \"requests\": {\"cpu\": 0.1}, \"volumes\": [\"maps\"],"
          " \"endpoints\": [{\"name\": \"http\"}], \"settings\": {\"size\": 3}, \"install\": {\"from\": \"disk\"},"
          " \"env\": {\"TEXT\": \"\\u0001 \\u00e4 \\ud83d\\ude00 \\\"\"},"
          " \"settings_schema\": {\"size\": {\"type\": \"integer\"}}}",
          201);
    asked(&p->k, p->ann, "POST", "/v1/vms", "{\"name\": \"box\", \"stopped\": true}", 201);
    asked(&p->k, p->ann, "POST", "/v1/jobs", "{\"name\": \"one\", \"gang\": \"pair\", \"volumes\": \"maps\"}", 201);
    asked(&p->k, p->ann, "POST", "/v1/jobs", "{\"name\": \"two\", \"gang\": \"pair.ann\", \"hold\": true}", 201);
    asked(&p->k, p->ann, "POST", "/v1/jobs", "{\"name\": \"over\"}", 201);
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/jobs/%d/cancel", (int)json_integer_value(json_object_get(p->k.body, "id")));
    asked(&p->k, p->ann, "POST", path, NULL, 200);
}

static char *export_of(struct people *p, const char *who, const char *user)
{
    char path[96];
    (void)snprintf(path, sizeof path, "/v1/users/%s/export", user);
    asked(&p->k, who, "GET", path, NULL, 200);
    return mem_strdup(p->k.text);
}

static size_t objects(struct people *p)
{
    size_t all = 0;
    static const enum kind shown[] = {KIND_USER, KIND_APP, KIND_VM, KIND_JOB, KIND_VOLUME};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        size_t len;
        (void)state_list(control_state(p->k.control), shown[i], &len);
        all += len;
    }
    return all;
}

static void archive_has_the_users_objects(void **state)
{
    (void)state;
    struct people p;
    char sum[ARCHIVE_CHECKSUM_MAX];
    people_open(&p);
    ann_objects_create(&p);
    asked(&p.k, p.bob, "POST", "/v1/apps", "{\"name\": \"web\"}", 201);
    CLEANUP(mem) char *text = export_of(&p, p.ann, "ann");
    const json_t *a = p.k.body;
    assert_int_equal(archive_check(a, NULL), 0);
    assert_string_equal(kit_text(a, "checksum"), archive_checksum(a, sum));
    assert_string_equal(kit_text(json_object_get(a, "user"), "id"), "ann");
    assert_int_equal(json_array_size(json_object_get(a, "volumes")), 1);
    assert_int_equal(json_array_size(json_object_get(a, "vms")), 1);
    assert_int_equal(json_array_size(json_object_get(a, "apps")), 1);
    assert_int_equal(json_array_size(json_object_get(a, "jobs")), 2); /* the cancelled job has ended */
    assert_int_equal(json_array_size(json_object_get(a, "data")), 0);
    const json_t *app = json_array_get(json_object_get(a, "apps"), 0);
    assert_string_equal(kit_text(json_object_get(app, "install"), "from"), "disk");
    static const char *const never[] = {"hash",           "token",   "bob",    "\"index\"", "\"revision\"",
                                        "\"generation\"", "created", "status", "\"owner\""};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(text, never[i]))
            fail_msg("%s stands in %s", never[i], text);
    CLEANUP(mem) char *again = export_of(&p, p.k.admin, "ann");
    assert_string_equal(text, again); /* the same for every permitted caller */
    kit_close(&p.k);
}

static void import_under_another_name_keeps_the_original(void **state)
{
    (void)state;
    struct people p;
    people_open(&p);
    ann_objects_create(&p);
    CLEANUP(mem) char *text = export_of(&p, p.ann, "ann");
    size_t before = objects(&p);
    uint64_t at = store_revision(p.k.store);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", text, 409);
    assert_non_null(strstr(kit_message(&p.k), "ann already exists; import the archive under another name (--as"));
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?dry_run=true", text, 409);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=ann-2&dry_run=true", text, 200);
    assert_int_equal(store_revision(p.k.store), at);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=ann-2", text, 201);
    assert_int_equal(store_revision(p.k.store), at + 1);
    assert_int_equal(objects(&p), before + 6);
    assert_string_equal(kit_text(p.k.body, "id"), "ann-2");
    const json_t *renamed = json_object_get(p.k.body, "renamed");
    assert_int_equal(json_object_size(renamed), 6);
    assert_string_equal(kit_text(renamed, "users/ann"), "users/ann-2");
    assert_string_equal(kit_text(renamed, "volumes/maps"), "volumes/maps-2");
    assert_string_equal(kit_text(renamed, "apps/web.ann"), "apps/web.ann-2");
    assert_string_equal(kit_text(renamed, "vms/box.ann"), "vms/box.ann-2");
    char one[64], two[64];
    (void)snprintf(one, sizeof one, "/v1/%s", kit_text(renamed, "jobs/1"));
    (void)snprintf(two, sizeof two, "/v1/%s", kit_text(renamed, "jobs/2"));
    assert_string_not_equal(one, two);

    asked(&p.k, p.k.admin, "GET", "/v1/apps/web.ann", NULL, 200);
    json_int_t index = json_integer_value(json_object_get(p.k.body, "index"));
    asked(&p.k, p.k.admin, "GET", "/v1/apps/web.ann-2", NULL, 200);
    assert_int_not_equal(json_integer_value(json_object_get(p.k.body, "index")), index);
    assert_string_equal(kit_text(p.k.body, "owner"), "ann-2");
    assert_string_equal(kit_text(p.k.body, "group"), "red");
    assert_string_equal(kit_text(p.k.body, "display"), "Web");
    assert_string_equal(json_string_value(json_array_get(json_object_get(p.k.body, "volumes"), 0)), "maps-2");
    asked(&p.k, p.k.admin, "GET", one, NULL, 200);
    assert_string_equal(kit_text(p.k.body, "gang"), "pair.ann-2");
    asked(&p.k, p.k.admin, "GET", two, NULL, 200);
    assert_string_equal(kit_text(p.k.body, "gang"), "pair.ann-2");
    assert_true(json_is_true(json_object_get(p.k.body, "hold")));

    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=ANNA&group=blue&role=viewer", text, 201);
    assert_string_equal(kit_text(p.k.body, "id"), "anna");
    asked(&p.k, p.k.admin, "GET", "/v1/users/anna", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "group"), "blue");
    assert_string_equal(kit_text(p.k.body, "role"), "viewer");
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=anna", text, 409);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=system", text, 400);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=a/b", text, 400);

    /* With an idempotency key it happens once. */
    p.k.idempotency_key = "import-1";
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=once", text, 201);
    p.k.idempotency_key = "import-1";
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=once", text, 201);
    assert_string_equal(kit_text(p.k.body, "id"), "once");
    p.k.idempotency_key = "import-1";
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?as=twice", text, 409);
    kit_close(&p.k);
}

/* A merge keeps the objects that the user has, and adds those that are missing. */
static void merge_keeps_existing_objects(void **state)
{
    (void)state;
    struct people p;
    people_open(&p);
    ann_objects_create(&p);
    CLEANUP(mem) char *text = export_of(&p, p.ann, "ann");
    asked(&p.k, p.k.admin, "PATCH", "/v1/users/ann", "{\"display\": \"Ann of now\"}", 200);
    asked(&p.k, p.ann, "PATCH", "/v1/apps/web.ann", "{\"replicas\": 7}", 200);
    asked(&p.k, p.ann, "DELETE", "/v1/vms/box.ann", NULL, 204);
    size_t before = objects(&p);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?merge=perhaps", text, 400);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?merge=true&group=blue", text, 400);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?merge=true", text, 201);
    assert_string_equal(kit_text(p.k.body, "id"), "ann");
    const json_t *renamed = json_object_get(p.k.body, "renamed"), *kept = json_object_get(p.k.body, "kept");
    assert_int_equal(json_object_size(renamed), 2); /* the jobs */
    assert_int_equal(json_array_size(kept), 2);
    assert_string_equal(json_string_value(json_array_get(kept, 0)), "volumes/maps");
    assert_string_equal(json_string_value(json_array_get(kept, 1)), "apps/web.ann");
    assert_int_equal(objects(&p), before + 3); /* the VM and two jobs */
    asked(&p.k, p.k.admin, "GET", "/v1/users/ann", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "display"), "Ann of now");
    asked(&p.k, p.k.admin, "GET", "/v1/apps/web.ann", NULL, 200);
    assert_int_equal(json_integer_value(json_object_get(p.k.body, "replicas")), 7);
    asked(&p.k, p.k.admin, "GET", "/v1/vms/box.ann", NULL, 200);
    /* If the user does not exist, a merge is an ordinary import. */
    asked(&p.k, p.k.admin, "POST", "/v1/users/import?merge=true&as=new", text, 201);
    assert_string_equal(kit_text(p.k.body, "id"), "new");
    assert_int_equal(json_array_size(json_object_get(p.k.body, "kept")), 0);
    kit_close(&p.k);
}

/* After export, deletion and import the user's objects are the same. */
static void export_delete_import_restores_objects(void **state)
{
    (void)state;
    struct people p;
    people_open(&p);
    ann_objects_create(&p);
    asked(&p.k, p.k.admin, "POST", "/v1/users/ann/disable", NULL, 200);
    CLEANUP(mem) char *text = export_of(&p, p.k.admin, "ann");
    asked(&p.k, p.k.admin, "DELETE", "/v1/users/ann?force=true", NULL, 204);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", text, 201);
    assert_string_equal(kit_text(p.k.body, "id"), "ann");
    assert_int_equal(json_object_size(json_object_get(p.k.body, "renamed")), 2); /* numbers are never reused */
    asked(&p.k, p.ann, "GET", "/v1/whoami", NULL, 401);                          /* tokens are not imported */
    asked(&p.k, p.k.admin, "GET", "/v1/users/ann", NULL, 200);
    assert_true(json_is_true(json_object_get(p.k.body, "disabled")));

    asked(&p.k, p.k.admin, "GET", "/v1/users/ann/export", NULL, 200);
    json_t *first = json_loads(text, 0, NULL), *second = json_incref(p.k.body);
    static const char *const differ[] = {"checksum", "exported", "jobs"};
    for (size_t i = 0; i < sizeof differ / sizeof *differ; i++) {
        (void)json_object_del(first, differ[i]);
        (void)json_object_del(second, differ[i]);
    }
    assert_true(json_equal(first, second));
    json_decref(first);
    json_decref(second);
    kit_close(&p.k);
}

static void permissions_of_export_and_import(void **state)
{
    (void)state;
    struct people p;
    char viewer[TOKEN_TEXT_MAX], op[TOKEN_TEXT_MAX];
    people_open(&p);
    ann_objects_create(&p);
    kit_user(&p.k, "vic", "red", "viewer", viewer);
    kit_user(&p.k, "op", "", "operator", op);
    asked(&p.k, viewer, "GET", "/v1/users/ann/export", NULL, 403);
    asked(&p.k, op, "GET", "/v1/users/ann/export", NULL, 403);
    asked(&p.k, p.bob, "GET", "/v1/users/ann/export", NULL, 404);
    asked(&p.k, p.k.admin, "GET", "/v1/users/no-one/export", NULL, 404);
    CLEANUP(mem) char *text = export_of(&p, p.boss, "ann");
    asked(&p.k, p.bob, "GET", "/v1/users/bob/export", NULL, 200);
    CLEANUP(mem) char *blue = mem_strdup(p.k.text);

    asked(&p.k, p.ann, "POST", "/v1/users/import", text, 403);
    asked(&p.k, op, "POST", "/v1/users/import", text, 403);
    asked(&p.k, p.boss, "POST", "/v1/users/import?as=ann-2", text, 201);
    asked(&p.k, p.boss, "POST", "/v1/users/import", blue, 403); /* another group, whether bob exists or not */
    asked(&p.k, p.boss, "POST", "/v1/users/import?as=bob-2", blue, 403);
    asked(&p.k, p.boss, "POST", "/v1/users/import?merge=true", blue, 404);
    asked(&p.k, p.boss, "POST", "/v1/users/import?as=bob-2&group=red", blue, 201);
    asked(&p.k, p.boss, "POST", "/v1/users/import?as=ann-3&role=admin", text, 403);
    asked(&p.k, p.boss, "POST", "/v1/users/import?merge=true", text, 201);
    asked(&p.k, p.ann, "POST", "/v1/users/import?merge=true", text, 403);
    CLEANUP(mem) char *admin = export_of(&p, p.k.admin, "admin");
    asked(&p.k, p.boss, "POST", "/v1/users/import?as=admin-2&group=red", admin, 403);
    kit_close(&p.k);
}

/* Returns the archive with a checksum of its changed content. */
static char *resealed(const json_t *archive)
{
    char sum[ARCHIVE_CHECKSUM_MAX];
    (void)json_object_set_new((json_t *)archive, "checksum", json_string(archive_checksum(archive, sum)));
    return json_dumps(archive, JSON_COMPACT);
}

static void invalid_archive_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value; /* value set in the archive; NULL: deleted */
        int want;
        const char *says;
    } rows[] = {
        {"berth_archive", "2",                                                 400, "version 2"               },
        {"berth_archive", "\"1\"",                                             400, "not an archive"          },
        {"berth_archive", NULL,                                                400, "not an archive"          },
        {"extra",         "1",                                                 400, "extra"                   },
        {"user",          "[]",                                                400, "user: expected an object"},
        {"user",          NULL,                                                400, "user: expected an object"},
        {"user",          "{}",                                                400, "user: id: missing"       },
        {"user",          "{\"id\": \"a b\"}",                                 400, "user: id"                },
        {"user",          "{\"id\": \"x\", \"group\": \"green\"}",             400, "no group green"          },
        {"user",          "{\"id\": \"x\", \"role\": \"king\"}",               400, "no role king"            },
        {"user",          "{\"id\": \"x\", \"shoe\": 1}",                      400, "shoe"                    },
        {"apps",          "{}",                                                400, "apps: expected a list"   },
        {"apps",          "[1]",                                               400, "apps[0]"                 },
        {"apps",          "[{\"name\": \"a\"}]",                               400, "apps[0]"                 },
        {"apps",          "[{\"id\": \"a.ann\", \"replicas\": -1}]",           400, "apps[0]: replicas"       },
        {"apps",          "[{\"id\": \"a.ann\"}, {\"id\": \"A.ann\"}]",        409, "apps[1]"                 },
        {"apps",          "[{\"id\": \"../x.ann\"}]",                          400, "apps[0]"                 },
        {"apps",          "[{\"id\": \"a.ann\", \"volumes\": [\"nothing\"]}]", 400, "no volume"               },
        {"jobs",          "[{\"id\": 1, \"stopped\": true}]",                  400, "jobs[0]: stopped"        },
        {"volumes",       "[{\"id\": \"v v\"}]",                               400, "volumes[0]"              },
        {"settings",      "{\"a\": 1}",                                        400, "settings"                },
        {"data",          "[{}]",                                              400, "data"                    },
    };
    struct people p;
    people_open(&p);
    ann_objects_create(&p);
    CLEANUP(mem) char *text = export_of(&p, p.ann, "ann");
    uint64_t at = store_revision(p.k.store);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *a = json_loads(text, 0, NULL);
        if (rows[i].value)
            (void)json_object_set_new(a, rows[i].path, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        else
            (void)json_object_del(a, rows[i].path);
        CLEANUP(mem) char *sealed = resealed(a);
        json_decref(a);
        bool whom = strcmp(rows[i].path, "user") == 0; /* otherwise the archive's user exists already */
        int got = ask(&p.k, p.k.admin, "POST", whom ? "/v1/users/import" : "/v1/users/import?as=copy", sealed);
        if (got != rows[i].want || !strstr(kit_message(&p.k), rows[i].says))
            fail_msg("%s = %s: expected %d %s, got %d %s", rows[i].path, rows[i].value, rows[i].want, rows[i].says, got,
                     p.k.text);
    }
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", "{}", 400);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", "[]", 400);
    /* The checksum covers every byte. */
    CLEANUP(mem) char *damaged = mem_strdup(text);
    char *digit = strstr(damaged, "\"replicas\":2");
    assert_non_null(digit);
    digit[strlen("\"replicas\":")] = '3';
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", damaged, 400);
    assert_non_null(strstr(kit_message(&p.k), "checksum"));
    json_t *a = json_loads(text, 0, NULL);
    (void)json_object_del(a, "checksum");
    CLEANUP(mem) char *bare = json_dumps(a, 0);
    json_decref(a);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", bare, 400);
    assert_int_equal(store_revision(p.k.store), at);
    kit_close(&p.k);
}

/* Members that only the daemon sets are ignored in an archive. */
static void daemon_members_of_an_archive_are_ignored(void **state)
{
    (void)state;
    struct people p;
    people_open(&p);
    json_t *a = json_loads("{\"berth_archive\": 1, \"user\": {\"id\": \"eve\", \"revision\": 9},"
                           "\"apps\": [{\"id\": \"a.eve\", \"owner\": \"admin\", \"group\": \"red\","
                           " \"system\": true, \"generation\": 77, \"index\": 5, \"status\": {}}]}",
                           0, NULL);
    CLEANUP(mem) char *made = resealed(a);
    json_decref(a);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", made, 201);
    asked(&p.k, p.k.admin, "GET", "/v1/apps/a.eve", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "owner"), "eve");
    assert_null(json_object_get(p.k.body, "group"));
    assert_null(json_object_get(p.k.body, "system"));
    assert_null(json_object_get(p.k.body, "index"));
    assert_int_equal(json_integer_value(json_object_get(p.k.body, "generation")), 1);
    kit_close(&p.k);
}

static void oversized_archive_is_rejected(void **state)
{
    (void)state;
    struct people p;
    char sum[ARCHIVE_CHECKSUM_MAX];
    people_open(&p);
    json_t *a = json_pack("{s:i, s:{s:s}, s:[]}", "berth_archive", 1, "user", "id", "many", "jobs");
    for (int i = 0; i < ARCHIVE_OBJECTS_MAX; i++)
        (void)json_array_append_new(json_object_get(a, "jobs"), json_pack("{s:i}", "id", i + 1));
    (void)json_object_set_new(a, "checksum", json_string(archive_checksum(a, sum)));
    CLEANUP(mem) char *most = json_dumps(a, JSON_COMPACT);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", most, 201);
    asked(&p.k, p.k.admin, "GET", "/v1/users/many/export", NULL, 200);
    (void)json_array_append_new(json_object_get(a, "jobs"), json_pack("{s:i}", "id", 1));
    CLEANUP(mem) char *more = resealed(a);
    json_decref(a);
    asked(&p.k, p.k.admin, "POST", "/v1/users/import", more, 413);
    asked(&p.k, p.k.admin, "POST", "/v1/jobs", "{\"owner\": \"many\"}", 201);
    asked(&p.k, p.k.admin, "GET", "/v1/users/many/export", NULL, 413);
    /* a user with that many objects cannot be deleted in one transaction, either */
    asked(&p.k, p.k.admin, "DELETE", "/v1/users/many?force=true", NULL, 409);
    kit_close(&p.k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archive_has_the_users_objects),
        cmocka_unit_test(import_under_another_name_keeps_the_original),
        cmocka_unit_test(merge_keeps_existing_objects),
        cmocka_unit_test(export_delete_import_restores_objects),
        cmocka_unit_test(permissions_of_export_and_import),
        cmocka_unit_test(invalid_archive_changes_nothing),
        cmocka_unit_test(daemon_members_of_an_archive_are_ignored),
        cmocka_unit_test(oversized_archive_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
