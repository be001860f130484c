/* join_test.c - machines are invited, join, renew their certificates, shrink, grow, and are released. */
#include "control/node/join_kit_test.h"

#define ALICE "user:alice"

static int open_kit(void **state)
{
    struct kit *k = mem_alloc(sizeof *k);
    kit_open(k);
    kit_add_users(k);
    kit_agents(k);
    *state = k;
    return 0;
}

static int close_kit(void **state)
{
    kit_done(*state);
    mem_free(*state);
    return 0;
}

/* ---- invitations ------------------------------------------------------------------------------------------------ */

static void invitation_is_one_shell_line(void **state)
{
    struct kit *k = *state;
    char line[512];
    CALL(k, 201, ADMIN, "POST", "/v1/nodes/Cellar-1/invite", "{labels: {disk: ssd}, zone: east, expires: 10m}");
    assert_string_equal(kit_text(k, "node"), "cellar-1");
    assert_string_equal(kit_text(k, "expires"), "2026-03-01T12:10:00Z");
    assert_string_equal(kit_text(k, "pin"), "sha256//pin=");
    assert_string_equal(kit_text(k, "addresses/0"), "https://head:3981");
    (void)snprintf(line, sizeof line,
                   "echo %s | berth-agent join --control https://head:3981 --pin sha256//pin= --token-file -",
                   kit_text(k, "token"));
    assert_string_equal(kit_text(k, "command"), line);
    assert_int_equal(strncmp(kit_text(k, "token"), "berth_join_", 11), 0);
    CALL(k, 200, ALICE, "GET", "/v1/nodes/cellar-1", NULL);
    assert_string_equal(kit_text(k, "state"), "joining");
    assert_string_equal(kit_text(k, "labels/disk"), "ssd");
    assert_string_equal(kit_text(k, "display"), "Cellar-1");
    CALL(k, 200, ADMIN, "PATCH", "/v1/system/settings",
         "{agent_addresses: 'https://a:3981,https://b:3981', invitation_life_s: 60}");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes/cellar-1/invite", "{}");
    assert_string_equal(kit_text(k, "expires"), "2026-03-01T12:01:00Z");
    assert_string_equal(kit_text(k, "addresses/1"), "https://b:3981");
    CALL(k, 200, ADMIN, "GET", "/v1/tokens?node=cellar-1", NULL); /* only the later invitation is left */
    assert_int_equal(json_array_size(kit_at(k, "items")), 1);
    assert_null(kit_at(k, "items/0/hash"));
}

static void invalid_invitations_are_rejected(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *who, *url, *body;
        int status;
        const char *words;
    } rows[] = {
        {ALICE, "/v1/nodes/n1/invite",              "{}",              403, "lacks the permission"    },
        {"",    "/v1/nodes/n1/invite",              "{}",              401, "no valid token"          },
        {ADMIN, "/v1/nodes/n1/invite",              "{expires: 0s}",   400, "expires: expected a time"},
        {ADMIN, "/v1/nodes/n1/invite",              "{expires: 31d}",  400, "expires: "               },
        {ADMIN, "/v1/nodes/n1/invite",              "{expires: soon}", 400, "expires: "               },
        {ADMIN, "/v1/nodes/n1/invite",              "{colour: red}",   400, "unknown key"             },
        {ADMIN, "/v1/nodes/n1/invite",              "{id: n2}",        400, "id and state"            },
        {ADMIN, "/v1/nodes/all/invite",             "{}",              400, "reserved word"           },
        {ADMIN, "/v1/nodes/there/invite",           "{zone: x}",       409, "already exists"          },
        {ADMIN, "/v1/nodes/n1/invite?dry_run=true", "{}",              200, "dry_run"                 },
    };
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: there}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        CALL(k, rows[i].status, rows[i].who, "POST", rows[i].url, rows[i].body);
        SAYS(k, rows[i].words);
        assert_null(strstr(k->text, "berth_join_"));
    }
    CALL(k, 404, ADMIN, "GET", "/v1/nodes/n1", NULL);
    k->key = "again";
    CALL(k, 400, ADMIN, "POST", "/v1/nodes/n1/invite", "{}");
    static const char *const addresses[] = {"http://a:1",    "https://",           "https://a:1,", "https://a b",
                                            "https://$(id)", "https://a:1;reboot", "https://a'"};
    for (size_t i = 0; i < COUNT(addresses); i++) {
        char body[128];
        (void)snprintf(body, sizeof body, "{agent_addresses: \"%s\"}", addresses[i]);
        CALL(k, 400, ADMIN, "PATCH", "/v1/system/settings", body);
        SAYS(k, "agent_addresses");
    }
    control_set_agents(k->control, &(struct control_agents){0});
    CALL(k, 503, ADMIN, "POST", "/v1/nodes/n1/invite", "{}");
    SAYS(k, "--agents");
    assert_int_equal(join_with(k, "berth_join_x", "request: KEY, " PROBED), 503);
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

static void joined_node_is_ready_after_first_report(void **state)
{
    struct kit *k = *state;
    const struct machine m = joined(k, "n1", "{labels: {disk: ssd, os: mine}, zone: east}");
    assert_string_equal(m.peer, "node:n1");
    assert_string_equal(kit_text(k, "node"), "n1");
    assert_string_equal(kit_text(k, "ca"), "AUTHORITY");
    assert_int_equal(kit_number(k, "lease_ns"), 30000000000);
    assert_int_equal(m.until_ns, k->now_ns + INT64_C(604800) * 1000000000);
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(k, "state"), "joining");
    assert_string_equal(kit_text(k, "allocatable/memory"), "16Gi");
    assert_string_equal(kit_text(k, "ceiling/storage"), "100Gi");
    assert_string_equal(kit_text(k, "arch"), "amd64");
    assert_string_equal(kit_text(k, "address"), "10.0.0.7");
    assert_string_equal(kit_text(k, "runtimes/0"), "process");
    assert_string_equal(kit_text(k, "labels/os"), "mine"); /* the administrator's label stays */
    assert_string_equal(kit_text(k, "labels/kernel"), "6.1.0");
    assert_string_equal(kit_text(k, "probed/numa/0/cpus"), "0-7");
    CALL(k, 200, ADMIN, "GET", "/v1/tokens?node=n1", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 0);
    ASK(k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1, instances: []}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(k, "state"), "ready");
    CALL(k, 200, ADMIN, "GET", "/v1/audit", NULL);
    SAYS(k, "\"kind\":\"POST /v1/join\"");
    SAYS(k, "\"who\":\"node:n1\",\"subject\":\"nodes/n1\"");
    assert_null(strstr(k->text, "berth_join_"));
}

/* For every invalid token the answer is the same, and nothing changes. */
static void invalid_tokens_get_one_answer(void **state)
{
    struct kit *k = *state;
    char good[128], late[128], used[128], agent[128], plain[128], changed[128], first[sizeof k->text];
    CALL(k, 201, ADMIN, "POST", "/v1/roles",
         "{id: join, permissions: {report: own}}"); /* a role of that name grants nothing */
    (void)invited(k, "n3", "{}", used);
    assert_int_equal(join_with(k, used, "request: KEY, " PROBED), 200);
    (void)invited(k, "n2", "{expires: 1s}", late);
    (void)invited(k, "n1", "{}", good);
    (void)snprintf(changed, sizeof changed, "%s", good);
    changed[strlen(changed) - 2] = changed[strlen(changed) - 2] == 'A' ? 'B' : 'A';
    CALL(k, 201, ADMIN, "POST", "/v1/tokens", "{node: n3}");
    (void)snprintf(agent, sizeof agent, "berth_join_%s", kit_text(k, "token") + 6);
    (void)snprintf(plain, sizeof plain, "berth_%s", good + 11);
    k->now_ns += 2000000000;
    k->steady_ns += 2000000000;
    const char *const bad[] = {"nonsense", late, used, agent, plain, changed, "berth_join_", "''"};
    uint64_t revision = store_revision(k->store);
    first[0] = '\0';
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (join_with(k, bad[i], "request: KEY, " PROBED) != 401)
            fail_msg("%zu: %s", i, k->text);
        if (i == 0)
            (void)snprintf(first, sizeof first, "%s", k->text);
        assert_string_equal(k->text, first);
    }
    /* An invitation does not authenticate other requests. */
    assert_int_equal(kit_ask(k, NULL, good, "GET", "/v1/whoami", NULL), 401);
    assert_int_equal(kit_ask(k, NULL, plain, "GET", "/v1/whoami", NULL), 401);
    static const char *const bodies[] = {"request: KEY",
                                         "request: KEY, probed: 5",
                                         "request: KEY, probed: {}",
                                         "request: nonsense, " PROBED,
                                         "request: 5, " PROBED,
                                         PROBED,
                                         "request: KEY, extra: 1, " PROBED,
                                         "request: KEY, probed: {allocatable: {cpu: -1}}",
                                         "request: KEY, probed: {allocatable: {cpu: 1}, arch: 5.5}",
                                         "request: KEY, probed: {allocatable: {cpu: 1}, gpus: {count: 9999}}"};
    for (size_t i = 0; i < COUNT(bodies); i++)
        if (join_with(k, good, bodies[i]) != 400)
            fail_msg("%s: %d %s", bodies[i], k->status, k->text);
    assert_int_equal(store_revision(k->store), revision);
    assert_int_equal(join_with(k, good, "request: KEY, " PROBED), 200); /* the invitation was still valid */
    assert_int_equal(join_with(k, good, "request: KEY, " PROBED), 401);
    k->key = "x";
}

/* ---- certificates ----------------------------------------------------------------------------------------------- */

static void certificate_is_valid_for_one_node_and_join(void **state)
{
    struct kit *k = *state;
    const struct machine first = joined(k, "n1", "{}"), other = joined(k, "n2", "{}");
    struct machine expired = first, forged = other, nameless = first;
    const char *renew = "/v1/nodes/n1/certificate", *body = "{request: KEY2}";
    ASK(k, 200, &first, "POST", renew, body);
    const struct machine renewed = machine_of(k);
    assert_string_equal(renewed.serial, first.serial); /* same join */
    ASK(k, 404, &other, "POST", renew, body);
    ASK(k, 404, &other, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1, instances: []}");
    ASK(k, 404, &other, "GET", "/v1/nodes/n1/config", NULL);
    CALL(k, 403, ADMIN, "POST", renew, body);
    CALL(k, 403, ALICE, "POST", renew, body);
    ASK(k, 401, NULL, "POST", renew, body);
    ASK(k, 400, &first, "POST", renew, "{request: nonsense}");
    ASK(k, 400, &first, "POST", renew, "{}");
    (void)snprintf(forged.peer, sizeof forged.peer, "node:n1"); /* the number of another join */
    ASK(k, 401, &forged, "GET", "/v1/nodes/n1/config", NULL);
    nameless.serial[0] = '\0';
    ASK(k, 401, &nameless, "GET", "/v1/nodes/n1/config", NULL);
    ASK(k, 200, &first, "GET", "/v1/nodes/n1/config", NULL);

    /* An expired certificate can be renewed for a month. */
    expired.until_ns = k->now_ns - 1;
    ASK(k, 401, &expired, "GET", "/v1/nodes/n1/config", NULL);
    ASK(k, 401, &expired, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1, instances: []}");
    ASK(k, 200, &expired, "POST", renew, body);
    expired.until_ns = k->now_ns - INT64_C(31) * 86400 * 1000000000;
    ASK(k, 401, &expired, "POST", renew, body);

    /* Another join of the node, its release, and a new node of that name each invalidate earlier certificates. */
    const struct machine second = joined(k, "n1", "{}");
    ASK(k, 401, &first, "GET", "/v1/nodes/n1/config", NULL);
    ASK(k, 401, &first, "POST", renew, body);
    ASK(k, 200, &second, "GET", "/v1/nodes/n1/config", NULL);
    CALL(k, 204, ADMIN, "DELETE", "/v1/nodes/n1", NULL);
    ASK(k, 401, &second, "GET", "/v1/nodes/n1/config", NULL);
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1}");
    ASK(k, 401, &second, "GET", "/v1/nodes/n1/config", NULL);
    ASK(k, 401, &second, "POST", renew, body);
    const struct machine third = joined(k, "n1", "{}");
    ASK(k, 401, &second, "GET", "/v1/nodes/n1/config", NULL);
    ASK(k, 200, &third, "GET", "/v1/nodes/n1/config", NULL);
    kit_restart(k);
    kit_agents(k);
    ASK(k, 200, &third, "GET", "/v1/nodes/n1/config", NULL);
    ASK(k, 401, &second, "GET", "/v1/nodes/n1/config", NULL);
}

static void agent_may_only_act_for_its_node(void **state)
{
    struct kit *k = *state;
    const struct machine m = joined(k, "n1", "{}");
    static const struct {
        const char *method, *path, *body;
    } rows[] = {
        {"GET",    "/v1/nodes",                 NULL                      },
        {"GET",    "/v1/nodes/n1",              NULL                      },
        {"PATCH",  "/v1/nodes/n1",              "{labels: {a: b}}"        },
        {"PUT",    "/v1/nodes/n1/capabilities", "{allocatable: {cpu: 64}}"},
        {"POST",   "/v1/nodes/n1/accept",       "{}"                      },
        {"POST",   "/v1/nodes/n1/invite",       "{}"                      },
        {"POST",   "/v1/nodes/n2/invite",       "{}"                      },
        {"POST",   "/v1/nodes/n1/drain",        "{}"                      },
        {"DELETE", "/v1/nodes/n1",              NULL                      },
        {"GET",    "/v1/tokens",                NULL                      },
        {"GET",    "/v1/users",                 NULL                      },
        {"POST",   "/v1/jobs",                  "{command: [\"true\"]}"   },
    };
    uint64_t revision = store_revision(k->store);
    for (size_t i = 0; i < COUNT(rows); i++) {
        int status = kit_ask(k, &m, NULL, rows[i].method, rows[i].path, rows[i].body);
        bool nothing = status == 200 && json_array_size(kit_at(k, "items")) == 0 && kit_at(k, "items");
        if (status != 403 && status != 404 && !nothing)
            fail_msg("%s %s: %d %s", rows[i].method, rows[i].path, status, k->text);
    }
    assert_int_equal(store_revision(k->store), revision);
}

/* ---- resources of a machine ------------------------------------------------------------------------------------- */

static void said(struct kit *k, const struct machine *m, int seq, const char *probed)
{
    char body[1024];
    (void)snprintf(body, sizeof body, "{epoch: 1, seq: %d, instances: [], node: {probed: %s}}", seq, probed);
    ASK(k, 200, m, "POST", "/v1/nodes/n1/report", body);
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
}

static void decrease_applies_at_once_increase_when_accepted(void **state)
{
    struct kit *k = *state;
    const struct machine m = joined(k, "n1", "{}");
    said(k, &m, 1, "{allocatable: {cpu: 8, memory: 8Gi, storage: 100Gi}}");
    assert_string_equal(kit_text(k, "allocatable/memory"), "8Gi");
    assert_string_equal(kit_text(k, "ceiling/memory"), "16Gi");
    assert_null(kit_at(k, "status/grown"));
    said(k, &m, 2, "{allocatable: {cpu: 8, memory: 12Gi, storage: 100Gi}}"); /* up again, at most to the ceiling */
    assert_string_equal(kit_text(k, "allocatable/memory"), "12Gi");
    said(k, &m, 3,
         "{allocatable: {cpu: 32, memory: 64Gi, storage: 100Gi, fpga: 2}, labels: {tenant: red, os: bsd}, arch: arm64, "
         "address: 10.9.9.9}");
    assert_string_equal(kit_text(k, "allocatable/memory"), "16Gi");
    assert_int_equal(kit_number(k, "allocatable/cpu"), 8);
    assert_null(kit_at(k, "allocatable/fpga"));
    assert_string_equal(kit_text(k, "status/grown/memory"), "64Gi");
    assert_int_equal(kit_number(k, "status/grown/fpga"), 2);
    assert_null(kit_at(k, "status/grown/storage"));
    assert_string_equal(kit_text(k, "labels/os"), "linux");
    assert_null(kit_at(k, "labels/tenant"));
    assert_string_equal(kit_text(k, "arch"), "amd64");
    assert_string_equal(kit_text(k, "address"), "10.0.0.7");
    said(k, &m, 4, "{allocatable: {cpu: 32, memory: 64Gi, fpga: 2}}"); /* a disk was removed */
    assert_int_equal(kit_number(k, "allocatable/storage"), 0);
    CALL(k, 403, ALICE, "POST", "/v1/nodes/n1/accept", "{}");
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n1/accept", "{}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(k, "allocatable/memory"), "64Gi");
    assert_int_equal(kit_number(k, "allocatable/fpga"), 2);
    assert_null(kit_at(k, "status/grown"));
    uint64_t revision = store_revision(k->store);
    said(k, &m, 5, "{allocatable: {cpu: 32, memory: 64Gi, fpga: 2}}"); /* nothing new, nothing written */
    assert_int_equal(store_revision(k->store), revision);
}

#define ROOM "allocatable: {cpu: 8}"
static void only_accepted_gpus_are_listed(void **state)
{
    struct kit *k = *state;
    const struct machine m = joined(k, "n1", "{}");
    said(k, &m, 1, "{" ROOM ", gpus: [{uuid: A, model: X, memory: 8Gi, minor: 0}, {uuid: B, model: X}]}");
    assert_null(kit_at(k, "gpus")); /* the node joined without GPUs */
    assert_int_equal(kit_number(k, "status/grown/gpu"), 2);
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n1/accept", "{}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(k, "gpus/0/uuid"), "A");
    assert_string_equal(kit_text(k, "gpus/0/memory"), "8Gi");
    assert_null(kit_at(k, "gpus/0/minor"));
    assert_null(kit_at(k, "status/grown"));
    said(k, &m, 2, "{" ROOM ", gpus: [{uuid: C}, {uuid: B, unhealthy: gone}, {uuid: D}]}");
    assert_string_equal(kit_text(k, "gpus/0/uuid"), "A"); /* the GPU is lost, but its index stays its own */
    assert_int_equal(json_array_size(kit_at(k, "gpus")), 2);
    assert_int_equal(kit_number(k, "status/grown/gpu"), 3);
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n1/accept", "{}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_string_equal(kit_text(k, "gpus/0/uuid"), "C");
    assert_string_equal(kit_text(k, "gpus/1/uuid"), "B");
    assert_string_equal(kit_text(k, "gpus/2/uuid"), "D");
}

static void administrator_sets_the_ceiling(void **state)
{
    struct kit *k = *state;
    const struct machine m = joined(k, "n1", "{allocatable: {cpu: 4, memory: 32Gi, licence: 3}}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_int_equal(kit_number(k, "allocatable/cpu"), 4);
    assert_string_equal(kit_text(k, "allocatable/memory"), "16Gi"); /* the machine has no more */
    assert_int_equal(kit_number(k, "allocatable/licence"), 3);      /* unknown to the machine */
    assert_null(kit_at(k, "allocatable/storage"));
    CALL(k, 200, ADMIN, "PUT", "/v1/nodes/n1/capabilities", "{allocatable: {cpu: 6, memory: 8Gi}}");
    said(k, &m, 1, "{allocatable: {cpu: 8, memory: 16Gi, storage: 100Gi}}");
    assert_int_equal(kit_number(k, "allocatable/cpu"), 6);
    assert_string_equal(kit_text(k, "allocatable/memory"), "8Gi");
    static const struct {
        const char *method, *url, *body;
    } above[] = {
        {"PATCH", "/v1/nodes/n1",              "{allocatable: {cpu: 99}}"             },
        {"PUT",   "/v1/nodes/n1",              "{allocatable: {cpu: 99}}"             },
        {"PUT",   "/v1/nodes/n1/capabilities", "{allocatable: {cpu: 99, memory: 1Gi}}"},
    };
    for (size_t i = 0; i < COUNT(above); i++) {
        CALL(k, 400, ADMIN, above[i].method, above[i].url, above[i].body);
        SAYS(k, "allocatable: cpu: 99 is more than the 8 that the machine has");
    }
    CALL(k, 200, ADMIN, "PATCH", "/v1/nodes/n1", "{allocatable: {cpu: 8, licence: 99}}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_int_equal(kit_number(k, "allocatable/cpu"), 8);
    assert_int_equal(kit_number(k, "allocatable/licence"), 99);
    CALL(k, 200, ADMIN, "PATCH", "/v1/nodes/n1", "{overcommit: {cpu: 4}}"); /* overcommitment is the way to use more */
    static const char *const not_theirs[] = {"{ceiling: {cpu: 100}}", "{probed: {arch: vax}}", "{joined: 5}"};
    for (size_t i = 0; i < COUNT(not_theirs); i++) {
        CALL(k, 400, ADMIN, "PATCH", "/v1/nodes/n1", not_theirs[i]);
        SAYS(k, "is set by the daemon");
    }
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2, joined: 5, ceiling: {cpu: 1}}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n2", NULL);
    assert_null(kit_at(k, "joined"));
    CALL(k, 409, ADMIN, "POST", "/v1/nodes/n2/accept", "{}");
}

/* An amount declared before the join may be written again, even if the machine has less. */
static void earlier_ceiling_may_be_written_again(void **state)
{
    struct kit *k = *state;
    (void)joined(k, "n1", "{allocatable: {cpu: 4, memory: 32Gi}}");
    CALL(k, 200, ADMIN, "PUT", "/v1/nodes/n1/capabilities", "{allocatable: {cpu: 2, memory: 32Gi}}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_int_equal(kit_number(k, "allocatable/cpu"), 2);
    assert_string_equal(kit_text(k, "allocatable/memory"), "16Gi");
    assert_string_equal(kit_text(k, "ceiling/memory"), "32Gi");
    CALL(k, 400, ADMIN, "PUT", "/v1/nodes/n1/capabilities", "{allocatable: {cpu: 2, memory: 33Gi}}");
    SAYS(k, "memory: 33Gi is more than the 16Gi");
}

static void explicit_address_replaces_the_stored_one(void **state)
{
    struct kit *k = *state;
    char token[128];
    static const struct {
        const char *probed, *want;
    } rows[] = {
        {"address: 10.0.0.9",                      "10.0.0.7"}, /* detected address: the document's stays */
        {"address: 10.0.0.9, address_given: true", "10.0.0.9"},
        {"address: 10.0.0.8",                      "10.0.0.9"},
    };
    (void)joined(k, "n1", "{}");
    for (size_t i = 0; i < COUNT(rows); i++) {
        char rest[200];
        (void)invited(k, "n1", "{}", token);
        (void)snprintf(rest, sizeof rest, "request: KEY2, probed: {allocatable: {cpu: 8}, %s}", rows[i].probed);
        assert_int_equal(join_with(k, token, rest), 200);
        CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
        assert_string_equal(kit_text(k, "address"), rows[i].want);
    }
}

static void names_differing_in_case_only_are_rejected(void **state)
{
    struct kit *k = *state;
    char token[128];
    (void)invited(k, "n1", "{}", token);
    CALL(k, 409, ADMIN, "POST", "/v1/nodes/N1/invite", "{}");
    SAYS(k, "node n1 already exists, and \\\"N1\\\" differs only in upper and lower case");
    CALL(k, 409, ADMIN, "POST", "/v1/nodes", "{id: N1}");
    if (join_with(k, token, "request: KEY1, " PROBED) != 200) /* the invitation is still valid */
        fail_msg("%s", k->text);
    /* A node created with capitals is invited again by either spelling. */
    CALL(k, 201, ADMIN, "POST", "/v1/nodes/Cellar/invite", "{}");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes/Cellar/invite", "{}");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes/cellar/invite", "{}");
    CALL(k, 409, ADMIN, "POST", "/v1/nodes/CELLAR/invite", "{}");
}

/* A machine that reports invalid values is not lost; the values are ignored. */
static void invalid_probed_values_are_ignored(void **state)
{
    struct kit *k = *state;
    const struct machine m = joined(k, "n1", "{}");
    said(k, &m, 1, "{allocatable: {cpu: -5, memory: lots, storage: 100Gi}}");
    assert_int_equal(kit_number(k, "allocatable/cpu"), 8);
    assert_string_equal(kit_text(k, "allocatable/memory"), "16Gi");
    static const char *const bad[] = {"{epoch: 1, seq: 2, node: {probed: 5}}",
                                      "{epoch: 1, seq: 2, node: {probed: {allocatable: 5}}}"};
    for (size_t i = 0; i < COUNT(bad); i++)
        ASK(k, 400, &m, "POST", "/v1/nodes/n1/report", bad[i]);
}

/* ---- two agents with one node ID -------------------------------------------------------------------------------- */

static void newer_agent_wins(void **state)
{
    struct kit *k = *state;
    const struct machine m = joined(k, "n1", "{}");
    ASK(k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 5, seq: 1, instances: []}");
    CALL(k, 200, "node:n1", "GET", "/v1/nodes/n1/config?epoch=5", NULL);
    CALL(k, 200, "node:n1", "GET", "/v1/nodes/n1/config?epoch=6", NULL);
    CALL(k, 409, "node:n1", "GET", "/v1/nodes/n1/config?epoch=4", NULL);
    SAYS(k, "newer agent");
    CALL(k, 400, "node:n1", "GET", "/v1/nodes/n1/config?epoch=x", NULL);
    char token[128];
    (void)invited(k, "n1", "{}", token);
    assert_int_equal(join_with(k, token, "request: KEY, " PROBED), 200);
    assert_int_equal(kit_number(k, "epoch"), 5); /* the new agent starts above this epoch */
}

/* A stream of a node's configuration, as its agent reads it. */
struct config_stream {
    struct stream *stream; /* NULL: the stream has ended */
    int status;
    struct str heard;
};

static bool config_stream_send(void *ctx, const char *at, size_t len)
{
    str_add_bytes(&((struct config_stream *)ctx)->heard, at, len);
    return true;
}

static void config_stream_end(void *ctx)
{
    ((struct config_stream *)ctx)->stream = NULL;
}

static void config_stream_answered(void *ctx, struct answer *answer)
{
    struct config_stream *config_stream = ctx;
    const struct stream_sink sink = {.ctx = config_stream, .send = config_stream_send, .end = config_stream_end};
    config_stream->status = answer->status;
    config_stream->stream = take_ptr(&answer->stream);
    if (config_stream->stream)
        stream_start(config_stream->stream, &sink);
}

static const char *config_stream_query(const void *from, const char *name)
{
    return strcmp(name, "watch") == 0 ? "" : strcmp(name, "epoch") == 0 ? from : NULL;
}

static void listen_as(struct kit *k, const struct machine *m, const char *epoch, struct config_stream *config_stream)
{
    const struct request_input request = {.method = "GET",
                                          .path = "/v1/nodes/n1/config",
                                          .peer = m->peer,
                                          .peer_serial = m->serial,
                                          .peer_until_ns = m->until_ns,
                                          .remote = "192.0.2.9",
                                          .body = "",
                                          .query = config_stream_query,
                                          .query_from = epoch};
    *config_stream = (struct config_stream){0};
    control_handle(k->control, &request, config_stream_answered, config_stream);
    control_pump(k->control);
    assert_int_equal(config_stream->status, 200);
    assert_non_null(config_stream->stream);
}

static void config_stream_done(struct config_stream *config_stream)
{
    if (config_stream->stream)
        stream_stop(config_stream->stream);
    str_done(&config_stream->heard);
}

static void older_agents_streams_end(void **state)
{
    struct kit *k = *state;
    struct config_stream older, newer, silent;
    const struct machine m = joined(k, "n1", "{}");
    ASK(k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 5, seq: 1, instances: []}");
    listen_as(k, &m, "5", &older);
    listen_as(k, &m, "6", &newer);
    listen_as(k, &m, NULL, &silent); /* passes no epoch */
    ASK(k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 5, seq: 2, instances: []}");
    kit_plan(k);
    assert_non_null(older.stream);
    ASK(k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 6, seq: 1, instances: []}");
    kit_plan(k);
    assert_null(older.stream);
    assert_non_null(strstr(older.heard.at, "unauthenticated"));
    assert_non_null(newer.stream);
    assert_non_null(silent.stream);
    (void)joined(k, "n1", "{}"); /* another machine is this node now */
    kit_plan(k);
    assert_null(newer.stream);
    assert_null(silent.stream);
    config_stream_done(&older);
    config_stream_done(&newer);
    config_stream_done(&silent);
}

/* ---- release ---------------------------------------------------------------------------------------------------- */

struct trace {
    const char *word;
    size_t found;
    char key[256];
};

static int look(void *ctx, const struct store_entry *entry)
{
    struct trace *t = ctx;
    if (strstr(entry->key, t->word) || memmem(entry->value.at, entry->value.len, t->word, strlen(t->word))) {
        t->found++;
        (void)snprintf(t->key, sizeof t->key, "%s", entry->key);
    }
    return 0;
}

static size_t traces(struct kit *k, struct trace *t)
{
    t->found = 0;
    assert_int_equal(store_range(k->store, "", 0, look, t, NULL), 0);
    return t->found;
}

static void released_node_leaves_nothing(void **state)
{
    struct kit *k = *state;
    struct trace t = {.word = "zebra-7"};
    char token[128];
    const struct machine m = joined(k, "zebra-7", "{}");
    ASK(k, 200, &m, "POST", "/v1/nodes/zebra-7/report",
        "{epoch: 1, seq: 1, instances: [], node: {usage: {cpu: 1}, probed: {allocatable: {cpu: 4}}}}");
    (void)invited(k, "zebra-7", "{}", token);
    CALL(k, 201, ADMIN, "POST", "/v1/tokens", "{node: zebra-7}");
    CALL(k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 2, requests: {cpu: 1}}");
    kit_plan(k);
    CALL(k, 409, ADMIN, "DELETE", "/v1/nodes/zebra-7", NULL);
    SAYS(k, "still runs instances");
    SAYS(k, "web.admin");
    assert_true(traces(k, &t) > 3);
    CALL(k, 200, ADMIN, "POST", "/v1/apps/web/stop", "{}");
    CALL(k, 204, ADMIN, "DELETE", "/v1/nodes/zebra-7?force=true", NULL);
    kit_plan(k);
    if (traces(k, &t))
        fail_msg("%zu keys are left, such as %s", t.found, t.key);
    assert_int_equal(join_with(k, token, "request: KEY, " PROBED), 401);
}

static void drain_status_names_the_blocker(void **state)
{
    struct kit *k = *state;
    const struct machine m = joined(k, "n1", "{}");
    ASK(k, 200, &m, "POST", "/v1/nodes/n1/report", "{epoch: 1, seq: 1, instances: []}");
    CALL(k, 201, ADMIN, "POST", "/v1/apps", "{name: web, replicas: 1, requests: {cpu: 1}}");
    CALL(k, 201, ADMIN, "POST", "/v1/jobs", "{name: sum, command: [\"true\"], requests: {cpu: 1}}");
    kit_plan(k);
    ASK(k, 200, &m, "POST", "/v1/nodes/n1/report",
        "{epoch: 1, seq: 2, instances: [{id: 1, state: running, ready: true}, {id: 2, state: running, ready: true}]}");
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_null(kit_at(k, "status/drain"));
    CALL(k, 200, ADMIN, "POST", "/v1/nodes/n1/drain", "{}");
    kit_plan(k);
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    assert_int_equal(kit_number(k, "status/drain/left"), 2);
    SAYS(k, "\"for\":\"own end\"");
    SAYS(k, "\"for\":\"place\"");
    CALL(k, 201, ADMIN, "POST", "/v1/nodes", "{id: n2, allocatable: {cpu: 4, memory: 4Gi}}");
    kit_plan(k);
    CALL(k, 200, ADMIN, "GET", "/v1/nodes/n1", NULL);
    SAYS(k, "\"for\":\"min_available\"");
}

/* A thousand invitations and joins, each independent; the cost grows no faster than the lists. */
static void thousand_nodes_join(void **state)
{
    struct kit *k = *state;
    for (int i = 0; i < 1000; i++) {
        char node[32];
        (void)snprintf(node, sizeof node, "n%d", i);
        k->steady_ns += 1000000000; /* unauthenticated requests are rate-limited */
        const struct machine m = joined(k, node, "{}");
        assert_string_equal(m.peer + 5, node);
    }
    CALL(k, 200, ADMIN, "GET", "/v1/nodes?limit=10000", NULL);
    assert_int_equal(json_array_size(kit_at(k, "items")), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_kit, close_kit)
        TEST(invitation_is_one_shell_line),
        TEST(invalid_invitations_are_rejected),
        TEST(joined_node_is_ready_after_first_report),
        TEST(invalid_tokens_get_one_answer),
        TEST(certificate_is_valid_for_one_node_and_join),
        TEST(agent_may_only_act_for_its_node),
        TEST(decrease_applies_at_once_increase_when_accepted),
        TEST(only_accepted_gpus_are_listed),
        TEST(administrator_sets_the_ceiling),
        TEST(earlier_ceiling_may_be_written_again),
        TEST(explicit_address_replaces_the_stored_one),
        TEST(names_differing_in_case_only_are_rejected),
        TEST(invalid_probed_values_are_ignored),
        TEST(newer_agent_wins),
        TEST(older_agents_streams_end),
        TEST(released_node_leaves_nothing),
        TEST(drain_status_names_the_blocker),
        TEST(thousand_nodes_join),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
