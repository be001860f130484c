/* user_test.c - the rules of users, groups and roles, through the API. */
#include "control/tenant/user.h"

#include "control/tenant/user_kit_test.h"

struct people {
    struct kit k;
    char red[TOKEN_TEXT_MAX], blue[TOKEN_TEXT_MAX]; /* managers */
    char ann[TOKEN_TEXT_MAX], bob[TOKEN_TEXT_MAX];  /* users of red and blue */
};

static void people_open(struct people *p)
{
    kit_open(&p->k);
    asked(&p->k, p->k.admin, "POST", "/v1/groups", "{\"id\": \"red\"}", 201);
    asked(&p->k, p->k.admin, "POST", "/v1/groups", "{\"id\": \"blue\"}", 201);
    kit_user(&p->k, "red-boss", "red", "manager", p->red);
    kit_user(&p->k, "blue-boss", "blue", "manager", p->blue);
    kit_user(&p->k, "ann", "red", "user", p->ann);
    kit_user(&p->k, "bob", "blue", "user", p->bob);
}

static uint64_t revision(struct people *p)
{
    return store_revision(p->k.store);
}

/* One request; a rejected one writes nothing. */
struct row {
    const char *who; /* one of the tokens in struct people: "admin", "red", "blue", "ann", "bob" */
    const char *method, *path, *body;
    int want;
    const char *says; /* part of the message; NULL: any */
};

static const char *token_of(struct people *p, const char *who)
{
    return strcmp(who, "red") == 0    ? p->red
           : strcmp(who, "blue") == 0 ? p->blue
           : strcmp(who, "ann") == 0  ? p->ann
           : strcmp(who, "bob") == 0  ? p->bob
                                      : p->k.admin;
}

static void run_rows(struct people *p, const struct row *rows, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct row *r = &rows[i];
        uint64_t before = revision(p);
        int got = ask(&p->k, token_of(p, r->who), r->method, r->path, r->body);
        if (got != r->want)
            fail_msg("row %zu: %s: %s %s %s: expected %d, got %d %s", i, r->who, r->method, r->path,
                     r->body ? r->body : "", r->want, got, p->k.text);
        if (r->says && !strstr(kit_message(&p->k), r->says))
            fail_msg("row %zu: %s %s: expected \"%s\" in %s", i, r->method, r->path, r->says, p->k.text);
        if (got >= 400)
            assert_int_equal(revision(p), before);
    }
}

#define ROWS(p, rows) run_rows(p, rows, sizeof(rows) / sizeof *(rows))

static void users_are_created(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"admin", "POST",   "/v1/users",             "{\"id\": \"Carl\", \"group\": \"Red\"}",           201, NULL            },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"cARL\"}",                               409, "carl"          },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"system\"}",                             400, "reserved"      },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"a b\"}",                                400, "letters"       },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"../x\"}",                               400, "letters"       },
        {"admin", "POST",   "/v1/users",             "{}",                                               400, "id: missing"   },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"dora\", \"group\": \"green\"}",         400, "no group green"},
        {"admin", "POST",   "/v1/users",             "{\"id\": \"dora\", \"role\": \"king\"}",           400, "no role king"  },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"dora\", \"role\": \"agent\"}",          400, "agent"         },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"dora\", \"role\": \"\"}",               400, "role"          },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"dora\", \"level\": 5000}",              400, "level"         },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"dora\", \"quota\": 1}",                 400, "quota"         },
        {"admin", "POST",   "/v1/users",             "{\"id\": \"dora\", \"level\": 3, \"role\": null}", 201, NULL            },
        {"admin", "PATCH",  "/v1/users/dora",        "{\"group\": \"red\"}",                             200, NULL            },
        {"admin", "PATCH",  "/v1/users/dora",        "{\"id\": \"emil\"}",                               400, "id"            },
        {"admin", "PUT",    "/v1/users/emil",        "{\"display\": \"Emil\"}",                          201, NULL            },
        {"admin", "PUT",    "/v1/users/emil",        "{\"display\": \"E.\"}",                            200, NULL            },
        {"admin", "PATCH",  "/v1/users/nobody-here", "{\"level\": 1}",                                   404, NULL            },
        {"admin", "DELETE", "/v1/users/nobody-here", NULL,                                               404, NULL            },
    };
    struct people p;
    people_open(&p);
    ROWS(&p, rows);
    asked(&p.k, p.k.admin, "GET", "/v1/users/CARL", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "id"), "carl");
    assert_string_equal(kit_text(p.k.body, "group"), "red");
    assert_string_equal(kit_text(p.k.body, "role"), "user");
    assert_string_equal(kit_text(p.k.body, "display"), "Carl");
    kit_close(&p.k);
}

/* A manager manages the users of one group and grants only permissions that it has. */
static void managers_stay_in_their_group(void **state)
{
    (void)state;
    static const struct row rows[] = {
  /* into its own group */
        {"red",   "POST",   "/v1/users",             "{\"id\": \"rita\"}",                                          201, NULL                         },
        {"red",   "POST",   "/v1/users",             "{\"id\": \"ron\", \"group\": \"red\", \"role\": \"viewer\"}", 201, NULL                         },
        {"red",   "POST",   "/v1/users",             "{\"id\": \"rex\", \"role\": \"manager\"}",                    201, NULL                         },
        {"red",   "POST",   "/v1/users",             "{\"id\": \"x\", \"group\": \"blue\"}",                        403, NULL                         },
        {"red",   "PUT",    "/v1/users/x",           "{\"group\": \"blue\"}",                                       404, NULL                         },
        {"red",   "POST",   "/v1/users",             "{\"id\": \"x\", \"role\": \"admin\"}",                        403, "admin"                      },
        {"red",   "POST",   "/v1/users",             "{\"id\": \"x\", \"role\": \"operator\"}",                     403, "operator"                   },
        {"red",   "POST",   "/v1/users",             "{\"id\": \"x\", \"role\": \"auditor\"}",                      403, "auditor"                    },
        {"red",   "PATCH",  "/v1/users/ann",         "{\"role\": \"admin\"}",                                       403, NULL                         },
        {"red",   "PATCH",  "/v1/users/ann",         "{\"group\": \"blue\"}",                                       403, NULL                         },
        {"red",   "PATCH",  "/v1/users/ann",         "{\"group\": null}",                                           403, NULL                         },
        {"red",   "PATCH",  "/v1/users/bob",         "{\"group\": \"red\"}",                                        404, NULL                         },
        {"red",   "PATCH",  "/v1/users/ann",         "{\"level\": 7}",                                              200, NULL                         },
        {"red",   "POST",   "/v1/users/ann/disable", NULL,                                                          200, NULL                         },
        {"red",   "POST",   "/v1/users/ann/enable",  NULL,                                                          200, NULL                         },
        {"red",   "POST",   "/v1/users/bob/disable", NULL,                                                          404, NULL                         },
        {"red",   "DELETE", "/v1/users/bob",         NULL,                                                          404, NULL                         },
        {"red",   "PATCH",  "/v1/users/red-boss",    "{\"role\": \"admin\"}",                                       403, NULL                         },
        {"red",   "PATCH",  "/v1/users/red-boss",    "{\"group\": \"blue\"}",                                       403, NULL                         },
        {"red",   "DELETE", "/v1/users/rita",        NULL,                                                          204, NULL                         },
 /* A manager has no power over an administrator in its group. */
        {"admin", "POST",   "/v1/users",             "{\"id\": \"top\", \"group\": \"red\", \"role\": \"admin\"}",  201, NULL                         },
        {"red",   "POST",   "/v1/users/top/disable", NULL,                                                          403, "more permissions than yours"},
        {"red",   "PATCH",  "/v1/users/top",         "{\"role\": \"user\"}",                                        403, NULL                         },
        {"red",   "DELETE", "/v1/users/top",         NULL,                                                          403, NULL                         },
        {"red",   "POST",   "/v1/tokens",            "{\"user\": \"top\"}",                                         403, NULL                         },
        {"red",   "POST",   "/v1/tokens",            "{\"user\": \"top\", \"role\": \"user\"}",                     403, NULL                         },
 /* Only administrators change groups. */
        {"red",   "POST",   "/v1/groups",            "{\"id\": \"green\"}",                                         403, NULL                         },
        {"red",   "PATCH",  "/v1/groups/red",        "{\"display\": \"Reds\"}",                                     403, NULL                         },
        {"red",   "DELETE", "/v1/groups/red",        NULL,                                                          403, NULL                         },
        {"red",   "PATCH",  "/v1/groups/blue",       "{\"display\": \"x\"}",                                        403, NULL                         },
 /* Users see only themselves. */
        {"ann",   "PATCH",  "/v1/users/ann",         "{\"level\": 9}",                                              403, NULL                         },
        {"ann",   "POST",   "/v1/users",             "{\"id\": \"x\"}",                                             403, NULL                         },
        {"ann",   "GET",    "/v1/users/ann",         NULL,                                                          200, NULL                         },
        {"ann",   "GET",    "/v1/users/red-boss",    NULL,                                                          404, NULL                         },
    };
    struct people p;
    people_open(&p);
    ROWS(&p, rows);
    asked(&p.k, p.red, "GET", "/v1/users", NULL, 200);
    json_t *user;
    size_t i;
    assert_true(json_array_size(json_object_get(p.k.body, "items")) >= 4);
    json_array_foreach(json_object_get(p.k.body, "items"), i, user) assert_string_equal(kit_text(user, "group"), "red");
    kit_close(&p.k);
}

static void last_administrator_stays(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"admin", "POST",   "/v1/users/admin/disable",    NULL,                                                            403, "yourself"    },
        {"admin", "DELETE", "/v1/users/admin",            NULL,                                                            403, "yourself"    },
        {"admin", "DELETE", "/v1/users/admin?force=true", NULL,                                                            403, "yourself"    },
        {"admin", "PATCH",  "/v1/users/admin",            "{\"disabled\": true}",                                          403, "yourself"    },
        {"admin", "PATCH",  "/v1/users/admin",            "{\"role\": \"user\"}",                                          409, "last enabled"},
        {"admin", "POST",   "/v1/users",                  "{\"id\": \"second\", \"role\": \"admin\", \"disabled\": true}", 201, NULL          },
 /* a disabled administrator does not count */
        {"admin", "PATCH",  "/v1/users/admin",            "{\"role\": \"user\"}",                                          409, "last enabled"},
        {"admin", "POST",   "/v1/users/second/enable",    NULL,                                                            200, NULL          },
        {"admin", "POST",   "/v1/users/second/disable",   NULL,                                                            200, NULL          },
        {"admin", "DELETE", "/v1/users/second",           NULL,                                                            204, NULL          },
        {"admin", "POST",   "/v1/users",                  "{\"id\": \"third\", \"role\": \"admin\"}",                      201, NULL          },
        {"admin", "PATCH",  "/v1/users/admin",            "{\"role\": \"user\"}",                                          200, NULL          },
 /* no way back without another administrator */
        {"admin", "PATCH",  "/v1/users/admin",            "{\"role\": \"admin\"}",                                         403, NULL          },
    };
    struct people p;
    people_open(&p);
    ROWS(&p, rows);
    kit_close(&p.k);
}

/* If two administrators delete each other at the same time, one of them stays. */
static void two_administrators_cannot_delete_each_other(void **state)
{
    (void)state;
    struct people p;
    char other[TOKEN_TEXT_MAX];
    people_open(&p);
    kit_user(&p.k, "other", "", "admin", other);
    struct kit second = {.answered = false}; /* receives the second answer */
    struct request_input one = {.method = "DELETE", .path = "/v1/users/other", .token = p.k.admin, .body = ""};
    struct request_input two = {.method = "DELETE", .path = "/v1/users/admin", .token = other, .body = ""};
    free(p.k.text);
    json_decref(p.k.body);
    p.k.text = NULL;
    p.k.body = NULL;
    p.k.answered = false;
    control_handle(p.k.control, &one, kit_answered, &p.k);
    control_handle(p.k.control, &two, kit_answered, &second);
    for (int i = 0; i < 100 && !(p.k.answered && second.answered); i++)
        control_pump(p.k.control);
    assert_int_equal(p.k.status, 204);
    assert_int_equal(second.status, 401); /* its own user was gone when the request was repeated */
    json_decref(second.body);
    free(second.text);
    asked(&p.k, p.k.admin, "GET", "/v1/whoami", NULL, 200);
    kit_close(&p.k);
}

static void user_is_disabled_and_enabled(void **state)
{
    (void)state;
    struct people p;
    people_open(&p);
    asked(&p.k, p.ann, "POST", "/v1/apps", "{\"name\": \"web\"}", 201);
    const struct object *web = state_find(control_state(p.k.control), KIND_APP, "web.ann");
    assert_true(state_work_should_run(control_state(p.k.control), web));
    asked(&p.k, p.k.admin, "GET", "/v1/users/ann", NULL, 200);
    CLEANUP(mem) char *before = mem_strdup(p.k.text);
    uint64_t at = revision(&p);

    asked(&p.k, p.k.admin, "POST", "/v1/users/ann/disable", NULL, 200);
    assert_int_equal(revision(&p), at + 1);
    assert_false(state_work_should_run(control_state(p.k.control), web));
    asked(&p.k, p.ann, "GET", "/v1/whoami", NULL, 401);
    asked(&p.k, p.k.admin, "POST", "/v1/users/ann/disable", NULL, 200); /* disabled already */
    assert_int_equal(revision(&p), at + 1);
    /* replacing the document does not enable the user */
    asked(&p.k, p.k.admin, "PUT", "/v1/users/ann", "{\"group\": \"red\"}", 200);
    asked(&p.k, p.ann, "GET", "/v1/whoami", NULL, 401);

    asked(&p.k, p.k.admin, "POST", "/v1/users/ann/enable", NULL, 200);
    asked(&p.k, p.ann, "GET", "/v1/whoami", NULL, 200);
    assert_true(state_work_should_run(control_state(p.k.control), web));
    asked(&p.k, p.k.admin, "GET", "/v1/users/ann", NULL, 200);
    CLEANUP(mem) char *after = mem_strdup(p.k.text);
    char *cut = strstr(before, "\"revision\""), *cut_after = strstr(after, "\"revision\"");
    assert_true(cut && cut_after);
    *cut = *cut_after = '\0';
    assert_string_equal(before, after);
    kit_close(&p.k);
}

static void users_with_workloads(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"ann",   "POST",   "/v1/volumes",                           "{\"id\": \"maps\"}",                           201, NULL         },
        {"ann",   "POST",   "/v1/apps",                              "{\"name\": \"web\", \"volumes\": [\"maps\"]}", 201, NULL         },
        {"ann",   "POST",   "/v1/vms",                               "{\"name\": \"box\"}",                          201, NULL         },
        {"ann",   "POST",   "/v1/jobs",                              "{}",                                           201, NULL         },
        {"ann",   "POST",   "/v1/jobs",                              "{}",                                           201, NULL         },
        {"bob",   "POST",   "/v1/jobs",                              "{}",                                           201, NULL         },
        {"ann",   "POST",   "/v1/tokens",                            "{}",                                           201, NULL         },
        {"admin", "DELETE", "/v1/users/ann",                         NULL,                                           409, "app web.ann"},
        {"admin", "DELETE", "/v1/users/ann?force=false",             NULL,                                           409, "and more"   },
        {"admin", "DELETE", "/v1/users/ann?force=true&dry_run=true", NULL,                                           200, NULL         },
        {"admin", "GET",    "/v1/users/ann",                         NULL,                                           200, NULL         },
        {"blue",  "DELETE", "/v1/users/ann?force=true",              NULL,                                           404, NULL         },
    };
    struct people p;
    people_open(&p);
    p.k.idempotency_key = "k"; /* and one stored answer */
    asked(&p.k, p.ann, "POST", "/v1/jobs", "{}", 201);
    ROWS(&p, rows);
    uint64_t at = revision(&p);
    asked(&p.k, p.red, "DELETE", "/v1/users/ann?force=true", NULL, 204);
    assert_int_equal(revision(&p), at + 1); /* one transaction */
    static const enum kind gone[] = {KIND_USER, KIND_APP, KIND_VM, KIND_JOB, KIND_VOLUME};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        size_t len;
        const struct object *const *list = state_list(control_state(p.k.control), gone[i], &len);
        for (size_t n = 0; n < len; n++)
            assert_string_not_equal(list[n]->owner, "ann");
    }
    size_t len;
    (void)state_list(control_state(p.k.control), KIND_REPLY, &len);
    assert_int_equal(len, 0);
    const struct object *const *tokens = state_list(control_state(p.k.control), KIND_TOKEN, &len);
    for (size_t n = 0; n < len; n++)
        assert_string_not_equal(tokens[n]->token->user, "ann");
    asked(&p.k, p.ann, "GET", "/v1/whoami", NULL, 401);
    asked(&p.k, p.bob, "GET", "/v1/jobs", NULL, 200);
    assert_int_equal(json_array_size(json_object_get(p.k.body, "items")), 1);

    /* A new user ann has nothing of the first one. */
    asked(&p.k, p.k.admin, "POST", "/v1/users", "{\"id\": \"ann\", \"group\": \"red\"}", 201);
    asked(&p.k, p.ann, "GET", "/v1/whoami", NULL, 401);
    kit_close(&p.k);
}

/* Volumes that instances still use cannot be deleted at the same time. */
static void users_with_volumes_in_use(void **state)
{
    (void)state;
    struct people p;
    char node[TOKEN_TEXT_MAX], report[256];
    people_open(&p);
    asked(&p.k, p.k.admin, "POST", "/v1/nodes", "{\"id\": \"n1\", \"allocatable\": {\"cpu\": 4, \"memory\": \"4Gi\"}}",
          201);
    kit_token(&p.k, ":n1", node);
    asked(&p.k, p.ann, "POST", "/v1/volumes", "{\"id\": \"maps\"}", 201);
    asked(&p.k, p.ann, "POST", "/v1/apps", "{\"name\": \"web\", \"volumes\": [\"maps\"]}", 201);
    for (int i = 0; i < 5; i++)
        control_tick(p.k.control);
    asked(&p.k, p.ann, "GET", "/v1/instances", NULL, 200);
    const json_t *instance = json_array_get(json_object_get(p.k.body, "items"), 0);
    assert_string_equal(kit_text(instance, "workload"), "web.ann");
    (void)snprintf(report, sizeof report,
                   "{\"epoch\": 1, \"seq\": 2, \"instances\": [{\"id\": %d, \"state\": \"stopped\"}]}",
                   (int)json_integer_value(json_object_get(instance, "id")));

    uint64_t at = revision(&p);
    asked(&p.k, p.k.admin, "DELETE", "/v1/users/ann?force=true", NULL, 409);
    assert_non_null(strstr(kit_message(&p.k), "maps is mounted"));
    assert_int_equal(revision(&p), at);
    asked(&p.k, p.k.admin, "POST", "/v1/users/ann/disable", NULL, 200);
    for (int i = 0; i < 5; i++)
        control_tick(p.k.control);
    asked(&p.k, node, "POST", "/v1/nodes/n1/report", report, 200);
    asked(&p.k, p.k.admin, "DELETE", "/v1/users/ann?force=true", NULL, 204);
    kit_close(&p.k);
}

/* Two concurrent requests with one key: one job, one answer. */
static void concurrent_requests_with_one_key_run_once(void **state)
{
    (void)state;
    struct people p;
    size_t len;
    people_open(&p);
    struct kit other = {.answered = false};
    struct request_input r = {
        .method = "POST", .path = "/v1/jobs", .token = p.ann, .idempotency_key = "k", .body = "{}"};
    r.body_len = 2;
    mem_free(p.k.text);
    json_decref(p.k.body);
    p.k.text = NULL;
    p.k.body = NULL;
    p.k.answered = false;
    control_handle(p.k.control, &r, kit_answered, &p.k);
    control_handle(p.k.control, &r, kit_answered, &other);
    for (int i = 0; i < 100 && !(p.k.answered && other.answered); i++)
        control_pump(p.k.control);
    assert_int_equal(p.k.status, 201);
    assert_int_equal(other.status, 201);
    assert_string_equal(p.k.text, other.text); /* number and revision, too */
    json_decref(other.body);
    CLEANUP(mem) char *first = other.text;
    (void)state_list(control_state(p.k.control), KIND_JOB, &len);
    assert_int_equal(len, 1);

    p.k.idempotency_key = "k";
    asked(&p.k, p.ann, "POST", "/v1/jobs", "{}", 201);
    assert_string_equal(p.k.text, first);
    p.k.idempotency_key = "k";
    asked(&p.k, p.ann, "POST", "/v1/jobs", "{\"hold\": true}", 409);
    p.k.idempotency_key = "k";
    asked(&p.k, p.bob, "POST", "/v1/jobs", "{\"hold\": true}", 201); /* keys are separate per user */
    p.k.idempotency_key = "bad\tkey";
    asked(&p.k, p.ann, "POST", "/v1/jobs", "{}", 400);
    p.k.idempotency_key = "refused"; /* a rejected request may be repeated */
    asked(&p.k, p.ann, "POST", "/v1/jobs", "{\"replicas\": -1}", 400);
    p.k.idempotency_key = "refused";
    asked(&p.k, p.ann, "POST", "/v1/jobs", "{\"replicas\": 1}", 201);
    p.k.now_ns += 24 * 3600 * (int64_t)KIT_SECOND;
    p.k.idempotency_key = "k";
    asked(&p.k, p.ann, "POST", "/v1/jobs", "{}", 201);
    assert_string_not_equal(p.k.text, first);
    kit_close(&p.k);
}

static void groups_move_with_their_users(void **state)
{
    (void)state;
    struct people p;
    people_open(&p);
    asked(&p.k, p.ann, "POST", "/v1/apps", "{\"name\": \"web\"}", 201);
    asked(&p.k, p.red, "GET", "/v1/apps/web.ann", NULL, 200);
    asked(&p.k, p.blue, "GET", "/v1/apps/web.ann", NULL, 404);
    asked(&p.k, p.k.admin, "PATCH", "/v1/users/ann", "{\"group\": \"blue\"}", 200);
    asked(&p.k, p.red, "GET", "/v1/apps/web.ann", NULL, 404);
    asked(&p.k, p.blue, "GET", "/v1/apps/web.ann", NULL, 200);
    asked(&p.k, p.k.admin, "PATCH", "/v1/users/ann", "{\"group\": null}", 200);
    asked(&p.k, p.blue, "GET", "/v1/apps/web.ann", NULL, 404);
    asked(&p.k, p.ann, "GET", "/v1/apps/web", NULL, 200);
    kit_close(&p.k);
}

static void groups_and_roles_in_use(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"admin", "POST",   "/v1/groups",       "{\"id\": \"Green\", \"display\": \"G\"}",                      201, NULL                 },
        {"admin", "POST",   "/v1/groups",       "{\"id\": \"green\"}",                                          409, NULL                 },
        {"admin", "POST",   "/v1/groups",       "{\"id\": \"me\"}",                                             400, "reserved"           },
        {"admin", "POST",   "/v1/groups",       "{\"id\": \"g\", \"role\": \"x\"}",                             400, "role"               },
        {"admin", "PATCH",  "/v1/groups/green", "{\"display\": \"Greens\"}",                                    200, NULL                 },
        {"admin", "DELETE", "/v1/groups/red",   NULL,                                                           409, "ann is in group red"},
        {"admin", "DELETE", "/v1/groups/green", NULL,                                                           204, NULL                 },
        {"admin", "DELETE", "/v1/groups/green", NULL,                                                           404, NULL                 },
        {"ann",   "GET",    "/v1/groups/red",   NULL,                                                           200, NULL                 },

        {"admin", "POST",   "/v1/roles",        "{\"id\": \"helper\", \"permissions\": {\"read\": \"group\"}}", 201, NULL                 },
        {"admin", "POST",   "/v1/roles",        "{\"id\": \"bad\", \"permissions\": {\"fly\": \"all\"}}",       400, "fly"                },
        {"admin", "POST",   "/v1/roles",        "{\"id\": \"bad\", \"permissions\": {\"read\": \"most\"}}",     400, "most"               },
        {"admin", "POST",   "/v1/roles",        "{\"id\": \"admin\", \"permissions\": {}}",                     409, "built in"           },
        {"admin", "PUT",    "/v1/roles/Admin",  "{\"permissions\": {}}",                                        409, "built in"           },
        {"admin", "PATCH",  "/v1/roles/user",   "{\"permissions\": {\"nodes\": \"all\"}}",                      409, "built in"           },
        {"admin", "DELETE", "/v1/roles/viewer", NULL,                                                           409, "built in"           },
        {"ann",   "GET",    "/v1/roles/viewer", NULL,                                                           200, NULL                 },
        {"ann",   "GET",    "/v1/roles/helper", NULL,                                                           200, NULL                 },
        {"ann",   "POST",   "/v1/roles",        "{\"id\": \"mine\"}",                                           403, NULL                 },
        {"admin", "PATCH",  "/v1/users/ann",    "{\"role\": \"helper\"}",                                       200, NULL                 },
        {"admin", "DELETE", "/v1/roles/helper", NULL,                                                           409, "user ann"           },
        {"ann",   "POST",   "/v1/apps",         "{\"name\": \"a\"}",                                            403, NULL                 },
        {"admin", "PATCH",  "/v1/roles/helper", "{\"permissions\": {\"submit\": \"own\"}}",                     200, NULL                 },
 /* takes effect at once */
        {"ann",   "POST",   "/v1/apps",         "{\"name\": \"a\"}",                                            201, NULL                 },
        {"admin", "PATCH",  "/v1/users/ann",    "{\"role\": \"user\"}",                                         200, NULL                 },
        {"admin", "POST",   "/v1/tokens",       "{\"user\": \"ann\", \"role\": \"helper\"}",                    201, NULL                 },
        {"admin", "DELETE", "/v1/roles/helper", NULL,                                                           409, "token"              },
    };
    struct people p;
    people_open(&p);
    ROWS(&p, rows);
    asked(&p.k, p.ann, "GET", "/v1/roles", NULL, 200);
    const json_t *items = json_object_get(p.k.body, "items");
    assert_int_equal(json_array_size(items), 8); /* seven built-in roles, and helper */
    assert_string_equal(kit_text(json_array_get(items, 0), "id"), "admin");
    assert_string_equal(kit_text(json_array_get(items, 7), "id"), "helper");
    kit_close(&p.k);
}

/* A caller that may define roles cannot get more permissions. */
static void roles_grant_no_more_than_their_creator_has(void **state)
{
    (void)state;
    struct people p;
    char op[TOKEN_TEXT_MAX];
    people_open(&p);
    kit_user(&p.k, "op", "", "operator", op);
    asked(&p.k, op, "POST", "/v1/roles", "{\"id\": \"few\", \"permissions\": {\"read\": \"all\"}}", 201);
    asked(&p.k, op, "POST", "/v1/roles", "{\"id\": \"many\", \"permissions\": {\"users\": \"own\"}}", 403);
    asked(&p.k, op, "PATCH", "/v1/roles/few", "{\"permissions\": {\"users\": \"all\"}}", 403);
    asked(&p.k, p.k.admin, "POST", "/v1/roles",
          "{\"id\": \"many\", \"permissions\": {\"users\": \"all\", \"read\": \"all\"}}", 201);
    asked(&p.k, op, "PATCH", "/v1/roles/many", "{\"permissions\": {\"users\": null}}", 403);
    asked(&p.k, op, "DELETE", "/v1/roles/many", NULL, 403);
    asked(&p.k, op, "DELETE", "/v1/roles/few", NULL, 204);
    /* Users with the role `many` may only grant what `many` has. */
    char many[TOKEN_TEXT_MAX];
    kit_user(&p.k, "mona", "", "many", many);
    asked(&p.k, many, "POST", "/v1/users", "{\"id\": \"x\", \"role\": \"user\"}", 403);
    asked(&p.k, many, "POST", "/v1/users", "{\"id\": \"x\", \"role\": \"many\"}", 201);
    asked(&p.k, many, "PATCH", "/v1/users/mona", "{\"role\": \"admin\"}", 403);
    asked(&p.k, many, "PATCH", "/v1/users/ann", "{\"disabled\": true}", 403);
    asked(&p.k, many, "POST", "/v1/tokens", "{\"user\": \"admin\"}", 403);
    kit_close(&p.k);
}

/* The same rules apply in a transaction, also between its parts. */
static void rules_apply_in_transactions(void **state)
{
    (void)state;
    struct people p;
    people_open(&p);
    uint64_t at = revision(&p);
    asked(&p.k, p.red, "POST", "/v1/txn",
          "{\"changes\": [{\"op\": \"put\", \"kind\": \"user\", \"id\": \"ann\", \"object\": {\"role\": \"admin\"}}]}",
          403);
    asked(&p.k, p.k.admin, "POST", "/v1/txn",
          "{\"changes\": [{\"op\": \"delete\", \"kind\": \"group\", \"id\": \"red\"}]}", 409);
    assert_int_equal(revision(&p), at);
    asked(
        &p.k, p.k.admin, "POST", "/v1/txn",
        "{\"changes\": [{\"op\": \"put\", \"kind\": \"group\", \"id\": \"green\", \"object\": {}},"
        "{\"op\": \"put\", \"kind\": \"role\", \"id\": \"r\", \"object\": {\"permissions\": {\"read\": \"own\"}}},"
        "{\"op\": \"put\", \"kind\": \"user\", \"id\": \"gil\", \"object\": {\"group\": \"green\", \"role\": \"r\"}}]}",
        200);
    asked(&p.k, p.k.admin, "GET", "/v1/users/gil", NULL, 200);
    asked(&p.k, p.k.admin, "POST", "/v1/txn",
          "{\"changes\": [{\"op\": \"delete\", \"kind\": \"user\", \"id\": \"gil\"},"
          "{\"op\": \"delete\", \"kind\": \"role\", \"id\": \"r\"},"
          "{\"op\": \"delete\", \"kind\": \"group\", \"id\": \"green\"}]}",
          200);
    asked(&p.k, p.k.admin, "GET", "/v1/groups/green", NULL, 404);
    kit_close(&p.k);
}

static void whoami_shows_the_caller(void **state)
{
    (void)state;
    struct people p;
    char token[TOKEN_TEXT_MAX];
    people_open(&p);
    asked(&p.k, p.red, "GET", "/v1/whoami", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "user"), "red-boss");
    assert_string_equal(kit_text(p.k.body, "group"), "red");
    assert_string_equal(kit_text(p.k.body, "role"), "manager");
    const json_t *permissions = json_object_get(p.k.body, "permissions");
    assert_int_equal(json_object_size(permissions), 5);
    assert_string_equal(kit_text(permissions, "users"), "group");
    assert_string_equal(kit_text(permissions, "cluster"), "all");
    assert_int_equal(strlen(kit_text(json_object_get(p.k.body, "token"), "id")), TOKEN_ID_LEN);
    asked(&p.k, p.red, "POST", "/v1/tokens", "{\"ttl\": \"1h\", \"role\": \"viewer\"}", 201);
    (void)snprintf(token, sizeof token, "%s", kit_text(p.k.body, "token"));
    asked(&p.k, token, "GET", "/v1/whoami", NULL, 200);
    assert_string_equal(kit_text(p.k.body, "role"), "viewer");
    assert_string_equal(kit_text(json_object_get(p.k.body, "token"), "expires"), "1970-01-12T14:46:40Z");
    asked(&p.k, NULL, "GET", "/v1/whoami", NULL, 401);
    kit_close(&p.k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_are_created),
        cmocka_unit_test(managers_stay_in_their_group),
        cmocka_unit_test(last_administrator_stays),
        cmocka_unit_test(two_administrators_cannot_delete_each_other),
        cmocka_unit_test(user_is_disabled_and_enabled),
        cmocka_unit_test(users_with_workloads),
        cmocka_unit_test(users_with_volumes_in_use),
        cmocka_unit_test(concurrent_requests_with_one_key_run_once),
        cmocka_unit_test(groups_move_with_their_users),
        cmocka_unit_test(groups_and_roles_in_use),
        cmocka_unit_test(roles_grant_no_more_than_their_creator_has),
        cmocka_unit_test(rules_apply_in_transactions),
        cmocka_unit_test(whoami_shows_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
