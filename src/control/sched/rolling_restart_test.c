/* rolling_restart_test.c - rolling restarts through the API keep the pods of an app evenly spread over zones. */
#include "control/api/kit_test.h"

#define ALICE "user:alice"

enum { ZONES = 3, PODS = 3, ROUNDS_MAX = 60 };

/* Three zones with one node each, in ascending node size. web.alice has one pod in each zone. */
static void cluster(struct kit *k)
{
    char body[160];
    kit_open(k);
    kit_add_users(k);
    for (int i = 0; i < ZONES; i++) {
        (void)snprintf(body, sizeof body, "{id: n%d, zone: z%d, allocatable: {cpu: %d, memory: 64Gi}}", i, i,
                       4 << 2 * i);
        CALL(k, 201, ADMIN, "POST", "/v1/nodes", body);
    }
    CALL(k, 201, ALICE, "POST", "/v1/apps",
         "{name: web, replicas: 3, requests: {cpu: 1}, spread: zone, min_available: 2}");
}

/* Reports as agents: starting pods run, stopping pods have ended. Returns how many pods run with the newest spec;
 * *ret_even: each zone has one of them. */
static int agents_report(struct kit *k, unsigned seq, uint64_t newer_than, bool *ret_even)
{
    struct said {
        int64_t id;
        char node[8], state[16];
    } at[64];
    size_t len = 0;
    int running = 0, in[ZONES] = {0};
    CALL(k, 200, ADMIN, "GET", "/v1/instances", NULL);
    size_t items = json_array_size(kit_at(k, "items"));
    for (size_t i = 0; i < items && len < 64; i++) {
        const json_t *x = json_array_get(kit_at(k, "items"), i);
        struct said s = {.id = json_integer_value(json_object_get(x, "id"))};
        (void)snprintf(s.node, sizeof s.node, "%s", json_string_value(json_object_get(x, "node")));
        (void)snprintf(s.state, sizeof s.state, "%s", json_string_value(json_object_get(x, "state")));
        bool runs = strcmp(s.state, "running") == 0;
        running += runs && (uint64_t)s.id > newer_than;
        in[s.node[1] - '0'] += runs;
        at[len++] = s;
    }
    *ret_even = in[0] == 1 && in[1] == 1 && in[2] == 1;
    for (int n = 0; n < ZONES; n++) {
        char body[1024], who[16], url[64];
        int used = snprintf(body, sizeof body, "{epoch: 1, seq: %u, instances: [", seq);
        bool any = false;
        for (size_t i = 0; i < len; i++) {
            bool starts = strcmp(at[i].state, "assigned") == 0, stops = strcmp(at[i].state, "stopping") == 0;
            if (at[i].node[1] - '0' != n || (!starts && !stops))
                continue;
            used += snprintf(body + used, sizeof body - (size_t)used, "%s{id: %lld, state: %s}", any ? ", " : "",
                             (long long)at[i].id, starts ? "running" : "ended");
            any = true;
        }
        (void)snprintf(body + used, sizeof body - (size_t)used, "]}");
        (void)snprintf(who, sizeof who, "node:n%d", n);
        (void)snprintf(url, sizeof url, "/v1/nodes/n%d/report", n);
        CALL(k, 200, who, "POST", url, body);
    }
    return running;
}

/* Plans and reports until all pods are newer than `newer_than` and nothing changes. Returns whether they are evenly
 * spread. */
static bool settles(struct kit *k, unsigned *seq, uint64_t newer_than)
{
    bool even = false;
    int calm = 0;
    for (int round = 0; round < ROUNDS_MAX && calm < 3; round++) {
        kit_plan(k);
        int running = agents_report(k, ++*seq, newer_than, &even);
        calm = running == PODS ? calm + 1 : 0;
        kit_sleep(k, 5);
    }
    assert_int_equal(calm, 3);
    return even;
}

static void rolling_restart_keeps_the_spread(void **state)
{
    (void)state;
    struct kit k;
    unsigned seq = 0;
    cluster(&k);
    assert_true(settles(&k, &seq, 0));
    for (uint64_t restart = 0; restart < 3; restart++) {
        uint64_t last = 0;
        CALL(&k, 200, ADMIN, "GET", "/v1/instances", NULL);
        for (size_t i = 0; i < json_array_size(kit_at(&k, "items")); i++) {
            uint64_t id = (uint64_t)json_integer_value(json_object_get(json_array_get(kit_at(&k, "items"), i), "id"));
            last = id > last ? id : last;
        }
        CALL(&k, 200, ALICE, "POST", "/v1/apps/web.alice/restart", NULL);
        assert_true(settles(&k, &seq, last));
    }
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rolling_restart_keeps_the_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
