/* permissions_test.c - every route, requested by every built-in role on its own, its group's and others' objects.
 *
 * The expected result is computed from two tables of this test: what each role may do, and what each route needs.
 * Nothing of it is taken from the daemon. So the test fails for a route without a row, a row without a route, and a
 * permission that is too wide or too narrow. A refused request must change nothing, and the answer for an object that
 * the user may not see must be the same as for an object that does not exist.
 *
 * To add a route: a row in `rows` (permissions_rows.h).
 */
#include "control/tenant/user_kit_test.h"

#include <errno.h>

#include "control/api/routes.h"
#include "control/tenant/archive.h"
#include "permissions_rows.h"
#include "wire/text/document.h"

enum relation { OWN, GROUP, OTHER, RELATIONS };
static const char *const relation_names[] = {"own", "group", "other"};

static const char *permission_reach(const struct role_rights *m, const char *permission)
{
    static const char *const names[] = {"read",  "cluster", "submit", "manage", "nodes",
                                        "users", "system",  "audit",  "report"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], permission) == 0)
            return (&m->read)[i];
    assert_true(strcmp(permission, "self") == 0 || strcmp(permission, "public") == 0);
    return "ogx";
}

static bool role_rights(const struct role_rights *m, const char *permission, enum relation r)
{
    return permission_reach(m, permission)[r] != '-';
}

static bool is_agent(const struct role_rights *m)
{
    return strcmp(m->role, "agent") == 0;
}

static bool has_rule(const struct row *row, const char *rule)
{
    return strcmp(row->rule, rule) == 0;
}

static bool is_unowned(enum about about)
{
    return about == NODE || about == SHARED_OBJECT || about == SYSTEM_SERVICE;
}

/* Returns true if the role may know of the object. Every role may read groups and roles; for other PLAIN objects the
 * route's own permission decides. */
static bool may_see(const struct role_rights *m, enum about about, enum relation r)
{
    switch (about) {
    case USER: return (r == OWN && !is_agent(m)) || role_rights(m, "read", r);
    case TOKEN: return (r == OWN && !is_agent(m)) || role_rights(m, "users", r);
    case NODE: return role_rights(m, "cluster", OTHER);
    case OWN_NODE: return role_rights(m, "report", r);
    case SYSTEM_SERVICE: return role_rights(m, "system", OTHER);
    case SESSION: return false; /* this cluster has no open session: session_test.c and secret_test.c test those */
    case NOTHING:
    case SHARED_OBJECT: return true;
    default: return role_rights(m, "read", r);
    }
}

enum verdict { ALLOWED, FORBIDDEN, HIDDEN };

static enum verdict expected_of(const struct row *row, const struct role_rights *m, enum relation r)
{
    enum relation of = is_unowned(row->about) ? OTHER : r;
    if (strcmp(permission_reach(m, row->gate), "---") == 0)
        return FORBIDDEN;
    if (has_rule(row, "table"))
        return is_agent(m) || role_rights(m, "users", OTHER) ? ALLOWED : FORBIDDEN;
    if (has_rule(row, "for-nodes") && (role_rights(m, "nodes", OTHER) || role_rights(m, "report", r)))
        return ALLOWED;
    if (has_rule(row, "makes"))
        return role_rights(m, row->then, of) ? ALLOWED : FORBIDDEN;
    if (!may_see(m, row->about, of))
        return HIDDEN;
    if (has_rule(row, "for-nodes") || (has_rule(row, "own-agent") && !is_agent(m)))
        return FORBIDDEN;
    if (has_rule(row, "exports"))
        return role_rights(m, "manage", r) && (r == OWN || role_rights(m, "users", r)) ? ALLOWED : FORBIDDEN;
    if (has_rule(row, "not-self") && r == OWN)
        return FORBIDDEN;
    bool own_token = strcmp(row->path, "/v1/tokens") == 0 && r == OWN;
    if (row->then[0] && !own_token && !role_rights(m, row->then, of))
        return FORBIDDEN;
    return ALLOWED;
}

/* ---- the cluster ------------------------------------------------------------------------------------------------ */

/* one of each role except agent, and two more as owners of other objects */
enum { OWNERS = ROLES - 1 + 2, NAME_MAX_ = 64 };

struct owner {
    char id[NAME_MAX_], token[TOKEN_TEXT_MAX], spare[TOKEN_ID_LEN + 1]; /* spare: the id of a second token */
    const char *group;
    char job[24], instance[24];
};

struct cluster {
    struct kit kit;
    struct owner owners[OWNERS];
    char agent[TOKEN_TEXT_MAX];
};

static const struct owner *owner_in(const struct cluster *c, const char *id)
{
    for (size_t i = 0; i < OWNERS; i++)
        if (strcmp(c->owners[i].id, id) == 0)
            return &c->owners[i];
    fail_msg("no owner %s", id);
    return NULL;
}

static void make_owner(struct cluster *c, struct owner *o, const char *id, const char *role, const char *group)
{
    struct kit *k = &c->kit;
    char body[256];
    (void)snprintf(o->id, sizeof o->id, "%s", id);
    o->group = group;
    kit_user(k, id, group, role, o->token);
    kit_token(k, id, body);
    memcpy(o->spare, body + strlen("berth_"), TOKEN_ID_LEN);
    (void)snprintf(body, sizeof body, "{\"id\": \"vol-%s\", \"owner\": \"%s\"}", id, id);
    asked(k, k->admin, "POST", "/v1/volumes", body, 201);
    (void)snprintf(body, sizeof body, "{\"name\": \"web\", \"owner\": \"%s\", \"requests\": {\"cpu\": \"10m\"}}", id);
    asked(k, k->admin, "POST", "/v1/apps", body, 201);
    (void)snprintf(body, sizeof body, "{\"name\": \"box\", \"owner\": \"%s\"}", id);
    asked(k, k->admin, "POST", "/v1/vms", body, 201);
    (void)snprintf(body, sizeof body, "{\"name\": \"key\", \"owner\": \"%s\", \"data\": {\"a\": \"b\"}}", id);
    asked(k, k->admin, "POST", "/v1/secrets", body, 201);
    (void)snprintf(body, sizeof body,
                   "{\"name\": \"daily\", \"owner\": \"%s\", \"schedule\": \"0 0 1 1 *\", \"job\": {}}", id);
    asked(k, k->admin, "POST", "/v1/crons", body, 201);
    (void)snprintf(body, sizeof body, "{\"owner\": \"%s\"}", id);
    asked(k, k->admin, "POST", "/v1/jobs", body, 201);
    (void)snprintf(o->job, sizeof o->job, "%d", (int)json_integer_value(json_object_get(k->body, "id")));
}

/* Users cannot make system services, so this one is written to the store, like an installation does. */
static void make_service(struct cluster *c)
{
    static const char text[] = "{\"v\":1,\"id\":\"gw.system\",\"name\":\"gw\",\"owner\":\"system\",\"system\":true,"
                               "\"generation\":1,\"created\":\"2026-01-01T00:00:00Z\"}";
    const struct store_op op = {
        .key = "apps/gw.system", .value = {text, strlen(text)}
    };
    const struct store_txn txn = {.ops = &op, .ops_len = 1};
    assert_int_equal(store_submit(c->kit.store, &txn, NULL, NULL, NULL), 0);
    control_pump(c->kit.control);
}

static void place_instances(struct cluster *c)
{
    struct kit *k = &c->kit;
    for (int i = 0; i < 20; i++) {
        k->now_ns += KIT_SECOND;
        control_tick(k->control);
    }
    asked(k, k->admin, "GET", "/v1/instances", NULL, 200);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(k->body, "items"), i, item)
    {
        const char *workload = kit_text(item, "workload");
        if (strncmp(workload, "web.", 4) == 0)
            (void)snprintf(((struct owner *)owner_in(c, workload + 4))->instance, sizeof c->owners[0].instance, "%d",
                           (int)json_integer_value(json_object_get(item, "id")));
    }
    for (i = 0; i < OWNERS; i++)
        assert_true(c->owners[i].instance[0]); /* each owner has a running instance */
}

static void cluster_make(struct cluster *c)
{
    struct kit *k = &c->kit;
    *c = (struct cluster){0};
    kit_open(k);
    asked(k, k->admin, "POST", "/v1/groups", "{\"id\": \"red\"}", 201);
    asked(k, k->admin, "POST", "/v1/groups", "{\"id\": \"blue\"}", 201);
    asked(k, k->admin, "POST", "/v1/groups", "{\"id\": \"spare\"}", 201);
    asked(k, k->admin, "POST", "/v1/roles", "{\"id\": \"spare\", \"permissions\": {\"read\": \"own\"}}", 201);
    asked(k, k->admin, "POST", "/v1/resources", "{\"name\": \"spare\"}", 201);
    asked(k, k->admin, "POST", "/v1/profiles", "{\"id\": \"spare\", \"name\": \"spare\"}", 201);
    asked(k, k->admin, "POST", "/v1/queues", "{\"id\": \"spare\"}", 201);
    asked(k, k->admin, "POST", "/v1/policies", "{\"id\": \"spare\"}", 201);
    asked(k, k->admin, "POST", "/v1/domains", "{\"id\": \"spare\"}", 201);
    static const char node[] = "{\"id\": \"n%d\", \"allocatable\": {\"cpu\": 16, \"memory\": \"64Gi\"}}";
    for (int i = 1; i <= 2; i++) {
        char body[128];
        (void)snprintf(body, sizeof body, node, i);
        asked(k, k->admin, "POST", "/v1/nodes", body, 201);
    }
    asked(k, k->admin, "POST", "/v1/windows", WINDOW("\"id\": \"spare\", "), 201);
    asked(k, k->admin, "POST", "/v1/optasks", OPTASK("\"id\": \"spare\", "), 201);
    for (size_t i = 0; i + 1 < ROLES; i++) {
        char id[NAME_MAX_];
        (void)snprintf(id, sizeof id, "the-%s", roles[i].role);
        make_owner(c, &c->owners[i], id, roles[i].role, "red");
    }
    make_owner(c, &c->owners[OWNERS - 2], "mate", "user", "red");
    make_owner(c, &c->owners[OWNERS - 1], "stranger", "user", "blue");
    kit_token(k, ":n1", c->agent);
    make_service(c);
    place_instances(c);
}

/* Makes a copy of the cluster, in the state in which a restart would find it. */
static void cluster_copy(const struct cluster *from, struct cluster *to)
{
    struct berth_err err = {0};
    *to = *from;
    struct kit *k = &to->kit;
    k->body = NULL;
    k->text = NULL;
    k->store = store_memory_crash(from->kit.store);
    struct control_env env = {.ctx = k,
                              .clock_ns = kit_clock,
                              .steady_ns = kit_clock,
                              .random = kit_random,
                              .run = kit_run,
                              .wake_at = kit_wake_at,
                              .log = &k->log};
    static const struct control_options options = {.secret_key_given = true, .secret_key = "for tests"};
    if (control_new(&env, &options, k->store, &k->control, &err) < 0)
        fail_msg("%s", err.text);
}

/* Lets agents join, but refuses to sign every certificate request. */
static int refuse_to_sign(void *ctx, const struct agent_grant *grant, const char *request, char **ret,
                          struct berth_err *err)
{
    (void)ctx;
    (void)request;
    (void)ret;
    return err_set(err, EINVAL, "not for %s", grant->name);
}

static void enable_agents(struct cluster *c)
{
    static const struct control_agents agents = {
        .sign = refuse_to_sign, .ca_pem = "", .pin = "sha256//", .addresses = "https://a:1"};
    control_set_agents(c->kit.control, &agents);
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

static const struct owner *owner_for(const struct cluster *c, size_t role, enum relation r)
{
    return r == OWN ? &c->owners[role] : owner_in(c, r == GROUP ? "mate" : "stranger");
}

static const char *id_for(const struct row *row, const struct owner *o, enum relation r, char buf[static 96])
{
    switch (row->about) {
    case APP: (void)snprintf(buf, 96, "web.%s", o->id); break;
    case VM: (void)snprintf(buf, 96, "box.%s", o->id); break;
    case SECRET: (void)snprintf(buf, 96, "key.%s", o->id); break;
    case CRON: (void)snprintf(buf, 96, "daily.%s", o->id); break;
    case VOLUME: (void)snprintf(buf, 96, "vol-%s", o->id); break;
    case JOB: return o->job;
    case INSTANCE: return o->instance;
    case USER: return o->id;
    case TOKEN: return o->spare;
    case NODE:
    case OWN_NODE: return r == OWN ? "n1" : "n2";
    case SYSTEM_SERVICE: return "gw";
    default: return "spare";
    }
    return buf;
}

/* Returns a well-formed id that does not exist. */
static const char *missing_for(const struct row *row)
{
    switch (row->about) {
    case APP:
    case SECRET:
    case CRON:
    case VM: return "web.no-such-user";
    case JOB:
    case INSTANCE: return "999999";
    case TOKEN: return "aaaaaaaaaaaa";
    default: return "no-such-thing";
    }
}

static void path_for(const struct row *row, const char *id, char buf[static 256])
{
    size_t len = 0;
    for (const char *at = row->path; *at && len < 200;) {
        if (strncmp(at, "{kind}", 6) == 0) {
            len += (size_t)snprintf(buf + len, 256 - len, "app");
            at += 6;
        } else if (strncmp(at, "{id}", 4) == 0) {
            len += (size_t)snprintf(buf + len, 256 - len, "%s", id);
            at += 4;
        } else {
            buf[len++] = *at++;
        }
    }
    buf[len] = '\0';
}

static char *body_for(const struct row *row, const struct owner *o)
{
    if (!row->body)
        return NULL;
    if (strcmp(row->body, "archive") == 0) {
        char sum[ARCHIVE_CHECKSUM_MAX];
        json_t *a = json_pack("{s:i, s:{s:s, s:s}}", "berth_archive", 1, "user", "id", "new", "group", o->group);
        (void)json_object_set_new(a, "checksum", json_string(archive_checksum(a, sum)));
        char *text = json_dumps(a, 0);
        json_decref(a);
        return text;
    }
    struct str s = {0};
    for (const char *at = row->body; *at; at++) {
        if (*at == '%')
            str_add(&s, o->id);
        else if (*at == '&')
            str_add(&s, o->group);
        else
            str_add_char(&s, *at);
    }
    return str_take(&s);
}

/* Returns the text with every `from` replaced by `to`, to compare the answers about two objects. */
static char *renamed(const char *text, const char *from, const char *to)
{
    struct str s = {0};
    size_t len = strlen(from);
    while (*text) {
        bool here = strncmp(text, from, len) == 0;
        if (here)
            str_add(&s, to);
        else
            str_add_char(&s, *text);
        text += here ? len : 1;
    }
    return str_take(&s);
}

/* ---- one case --------------------------------------------------------------------------------------------------- */

struct permission_case {
    const struct row *row;
    const struct role_rights *role;
    enum relation relation;
    const char *token;
    const struct owner *owner;
};

static void fail_case(const struct permission_case *q, const struct kit *k, const char *what)
{
    fail_msg("%s %s as %s about %s: %s: %d %s", q->row->method, q->row->path, q->role->role,
             relation_names[q->relation], what, k->status, k->text);
}

/* Checks that the answer is the same as for an object that does not exist, so that it reveals nothing. */
static void expect_same_as_missing(const struct permission_case *q, struct kit *k, const char *id, const char *body)
{
    char path[256];
    const char *missing = missing_for(q->row);
    if (q->row->about == VOLUME && strcmp(q->row->method, "PUT") == 0)
        return; /* volume ids have no owner, so a PUT of an unknown volume creates it */
    CLEANUP(mem) char *said = mem_strdup(k->text);
    CLEANUP(mem) char *other_body = body ? renamed(body, strstr(body, id) ? id : q->owner->id, missing) : NULL;
    const char *named = strstr(said, id) || !body ? id : q->owner->id;
    path_for(q->row, missing, path);
    (void)ask(k, q->token, q->row->method, path, other_body);
    CLEANUP(mem) char *one = renamed(said, named, "IT");
    CLEANUP(mem) char *two = renamed(k->text, missing, "IT");
    if (strcmp(one, two) != 0)
        fail_msg("%s %s as %s: %s is hidden as %s, but what is missing is %s", q->row->method, q->row->path,
                 q->role->role, id, said, k->text);
}

/* Checks that a list has exactly the objects that the role may see. */
static void expect_full_list(const struct permission_case *q, const struct cluster *c)
{
    static const struct {
        const char *path, *key; /* key: the field with the owner */
        enum about about;
    } lists[] = {
        {"/v1/apps",    "owner", APP   },
        {"/v1/jobs",    "owner", JOB   },
        {"/v1/vms",     "owner", VM    },
        {"/v1/volumes", "owner", VOLUME},
        {"/v1/secrets", "owner", SECRET},
        {"/v1/users",   "id",    USER  },
        {"/v1/tokens",  "user",  TOKEN },
    };
    const struct kit *k = &c->kit;
    const json_t *items = json_object_get(k->body, "items");
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        if (strcmp(q->row->path, lists[l].path) != 0 || strcmp(q->row->method, "GET") != 0)
            continue;
        for (size_t o = 0; o < OWNERS; o++) {
            const struct owner *owner = &c->owners[o];
            enum relation r = !is_agent(q->role) && strcmp(owner->token, q->token) == 0 ? OWN
                              : strcmp(owner->group, "red") == 0                        ? GROUP
                                                                                        : OTHER;
            bool there = false;
            for (size_t i = 0; i < json_array_size(items) && !there; i++)
                there = strcmp(kit_text(json_array_get(items, i), lists[l].key), owner->id) == 0;
            if (there != may_see(q->role, lists[l].about, r))
                fail_msg("%s as %s: %s is %s", q->row->path, q->role->role, owner->id, there ? "listed" : "not listed");
        }
    }
}

static void run_case(const struct cluster *base, const struct permission_case *q)
{
    struct cluster c;
    char path[256], id_buf[96];
    cluster_copy(base, &c);
    enable_agents(&c);
    const char *id = id_for(q->row, q->owner, q->relation, id_buf);
    CLEANUP(mem) char *body = body_for(q->row, q->owner);
    path_for(q->row, id, path);
    uint64_t before = store_revision(c.kit.store);
    enum verdict want = expected_of(q->row, q->role, q->relation);
    (void)ask(&c.kit, q->token, q->row->method, path, body);
    bool refused = c.kit.status == 401 || c.kit.status == 403 || c.kit.status == 404;
    if (want == ALLOWED && (refused || c.kit.status >= 500))
        fail_case(q, &c.kit, "expected to be allowed");
    if (want == FORBIDDEN && c.kit.status != 403)
        fail_case(q, &c.kit, "expected 403");
    if (want == HIDDEN && c.kit.status != 404)
        fail_case(q, &c.kit, "expected 404");
    if (refused && store_revision(c.kit.store) != before)
        fail_case(q, &c.kit, "refused, but something was written");
    if (want == HIDDEN)
        expect_same_as_missing(q, &c.kit, id, body);
    if (want == ALLOWED)
        expect_full_list(q, &c);
    kit_close(&c.kit);
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static int open_cluster(void **state)
{
    struct cluster *c = mem_alloc(sizeof *c);
    cluster_make(c);
    *state = c;
    return 0;
}

static int close_cluster(void **state)
{
    struct cluster *c = *state;
    kit_close(&c->kit);
    mem_free(c);
    return 0;
}

static const struct row *row_of(const char *method, const char *path)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].method, method) == 0 && strcmp(rows[i].path, path) == 0)
            return &rows[i];
    return NULL;
}

static void every_route_has_a_row(void **state)
{
    (void)state;
    size_t routes = 0;
    for (size_t t = 0; t < route_tables_len; t++)
        for (size_t i = 0; i < *route_tables[t].len; i++, routes++)
            if (!row_of(route_tables[t].routes[i].method, route_tables[t].routes[i].path))
                fail_msg("%s %s has no row: who may use it?", route_tables[t].routes[i].method,
                         route_tables[t].routes[i].path);
    assert_int_equal(routes, ROWS); /* no row without a route, and no row twice */
}

static void every_route_answers_every_role_as_expected(void **state)
{
    const struct cluster *base = *state;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t m = 0; m < ROLES; m++)
            for (int r = OWN; r < RELATIONS; r++) {
                bool agent = is_agent(&roles[m]), of_node = rows[i].about == NODE || rows[i].about == OWN_NODE;
                if (agent && r == OWN && !of_node)
                    continue; /* an agent owns nothing */
                if (r == OWN && rows[i].about == USER && has_rule(&rows[i], "makes"))
                    continue; /* the user exists already */
                struct permission_case q = {.row = &rows[i], .role = &roles[m], .relation = (enum relation)r};
                q.token = agent ? base->agent : base->owners[m].token;
                q.owner = owner_for(base, agent ? 0 : m, (enum relation)r);
                run_case(base, &q);
            }
}

static void invalid_tokens_get_401_on_every_route(void **state)
{
    const struct cluster *base = *state;
    struct cluster c;
    cluster_copy(base, &c);
    enable_agents(&c);
    char forged[TOKEN_TEXT_MAX], disabled[TOKEN_TEXT_MAX];
    (void)snprintf(forged, sizeof forged, "%s", base->owners[0].token);
    forged[strlen(forged) - 2] ^= 1;
    (void)snprintf(disabled, sizeof disabled, "%s", owner_in(base, "mate")->token);
    asked(&c.kit, c.kit.admin, "POST", "/v1/users/mate/disable", NULL, 200);
    /* no limit per address */
    asked(&c.kit, c.kit.admin, "PATCH", "/v1/system/settings", "{\"requests_per_s\": 0}", 200);
    uint64_t before = store_revision(c.kit.store);
    const char *const tokens[] = {NULL, "", "nonsense", forged, disabled};
    CLEANUP(mem) char *said = NULL;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
            char path[256], id[96];
            path_for(&rows[i], id_for(&rows[i], &base->owners[0], OWN, id), path);
            CLEANUP(mem) char *body = body_for(&rows[i], &base->owners[0]);
            bool public = strcmp(rows[i].gate, "public") == 0;
            asked(&c.kit, tokens[t], rows[i].method, path, body,
                  !public                         ? 401
                  : has_rule(&rows[i], "invited") ? 400
                                                  : 200);
            if (public)
                continue;
            if (!said)
                said = mem_strdup(c.kit.text);
            assert_string_equal(c.kit.text, said); /* the same text for all routes and all reasons */
        }
    asked(&c.kit, NULL, "GET", "/v1/nothing-like-it", NULL, 401);
    asked(&c.kit, NULL, "BREW", "/v1/apps", NULL, 401);
    assert_int_equal(store_revision(c.kit.store), before);
    kit_close(&c.kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_has_a_row),
        cmocka_unit_test(every_route_answers_every_role_as_expected),
        cmocka_unit_test(invalid_tokens_get_401_on_every_route),
    };
    return cmocka_run_group_tests(tests, open_cluster, close_cluster);
}
