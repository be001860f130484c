/* idle.c - CPU time and memory of an idle agent, and of an agent with a thousand instances. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/agent/agent.h"
#include "wire/text/document.h"

#define MEMORY_GOAL (10.0 * 1000 * 1000)
#define CPU_S_GOAL 0.005 /* per second: half a percent of a core */
#define INSTANCES_GOAL 1000
#define PATIENCE_NS (600 * SECOND_NS)

static void memory_rows(struct bench_agent *b, const struct bench_node *n, const char *what, double goal)
{
    struct bench_memory m = bench_node_memory(n);

    bench_row_add(
        &b->daemon,
        (struct bench_row){
            .unit = UNIT_BYTES, .measured = m.rss_bytes, .bound = goal > 0 ? BOUND_AT_MOST : BOUND_NONE, .goal = goal},
        "%s: resident memory, shared libraries included", what);
    bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_BYTES, .measured = m.pss_bytes},
                  "%s: the same, what is shared counted in part (PSS)", what);
    bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_BYTES, .measured = m.private_bytes},
                  "%s: the same, its own alone", what);
}

/* Measures the CPU time during `seconds`. */
static void cpu_row(struct bench_agent *b, const struct bench_node *n, unsigned seconds, const char *what, bool goal)
{
    double before_s = bench_node_cpu_s(n);
    int64_t began_ns = cli_clock_ns();

    (void)sleep(seconds);
    double took_s = (double)(cli_clock_ns() - began_ns) / (double)SECOND_NS;
    bench_row_add(&b->daemon,
                  (struct bench_row){.unit = UNIT_SECONDS,
                                     .measured = (bench_node_cpu_s(n) - before_s) / took_s,
                                     .bound = goal ? BOUND_AT_MOST : BOUND_NONE,
                                     .goal = CPU_S_GOAL},
                  "%s: processor time in each second, over %u s", what, seconds);
}

int bench_agent_idle(struct bench_agent *b, struct berth_err *err)
{
    static const unsigned seconds[SIZES] = {10, 30, 120};
    CLEANUP(bench_node) struct bench_node n = {0};
    int rc = bench_node_start(b, "idle", &n, err);

    if (rc < 0)
        return rc;
    (void)sleep(3); /* the start-up is not measured */
    cpu_row(b, &n, seconds[b->size], "idle", true);
    memory_rows(b, &n, "idle", MEMORY_GOAL);
    return 0;
}

/* ---- many ------------------------------------------------------------------------------------------------------- */

static int count_running(const struct bench_node *n, size_t *ret, struct berth_err *err)
{
    CLEANUP(json) json_t *items = bench_run_list(&n->run, "instances", err);

    if (!items)
        return -err->code;
    *ret = 0;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *one = json_array_get(items, i);
        const char *state = json_string_value(json_object_get(json_object_get(one, "status"), "state"));
        if (!state)
            state = json_string_value(json_object_get(one, "state"));
        *ret += state && strcmp(state, "running") == 0;
    }
    return 0;
}

static int start_many(const struct bench_node *n, size_t wanted, size_t *ret, struct berth_err *err)
{
    char body[256];
    int64_t end_ns = cli_clock_ns() + PATIENCE_NS;

    (void)snprintf(body, sizeof body,
                   "{\"id\":\"many\",\"replicas\":%zu,\"command\":[\"/bin/sleep\",\"86400\"],"
                   "\"resources\":{\"cpu\":\"1m\",\"memory\":\"100Ki\"}}",
                   wanted);
    json_t *answer = bench_run_ask(&n->run, "POST", "/v1/apps", body, 201, err);
    int rc = answer ? 0 : -err->code;
    json_decref(answer);
    for (*ret = 0; rc == 0 && *ret < wanted && cli_clock_ns() < end_ns;) {
        (void)usleep(500 * 1000);
        rc = count_running(n, ret, err);
    }
    return rc;
}

/* The time of the document sent to the agent on each change, and of a list of instances. */
static int answers_rows(struct bench_agent *b, const struct bench_node *n, struct berth_err *err)
{
    json_t *config = bench_run_ask(&n->run, "GET", "/v1/nodes/bench/config", NULL, 200, err);
    size_t running;

    if (!config)
        return -err->code;
    size_t bytes = json_dumpb(config, NULL, 0, JSON_COMPACT);
    json_decref(config);
    bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_BYTES, .measured = (double)bytes},
                  "many: the node's configuration, sent to the agent at each change");
    int64_t began_ns = cli_clock_ns();
    int rc = count_running(n, &running, err);
    bench_row_add(
        &b->daemon,
        (struct bench_row){.unit = UNIT_SECONDS, .measured = (double)(cli_clock_ns() - began_ns) / (double)SECOND_NS},
        "many: a list of all instances is there after");
    return rc;
}

int bench_agent_many(struct bench_agent *b, struct berth_err *err)
{
    size_t wanted = b->size == SIZE_QUICK ? INSTANCES_GOAL / 10 : INSTANCES_GOAL, running = 0;
    CLEANUP(bench_node) struct bench_node n = {0};
    int rc = bench_node_start(b, "many", &n, err);

    if (rc < 0)
        return rc;
    double agent_s = bench_node_cpu_s(&n), daemon_s = bench_run_cpu_s(&n.run);
    int64_t began_ns = cli_clock_ns();
    rc = start_many(&n, wanted, &running, err);
    if (rc < 0)
        return rc;
    bench_row_add(&b->daemon,
                  (struct bench_row){
                      .unit = UNIT_COUNT, .measured = (double)running, .bound = BOUND_AT_LEAST, .goal = (double)wanted},
                  "many: instances that run at once");
    bench_row_add(
        &b->daemon,
        (struct bench_row){.unit = UNIT_SECONDS, .measured = (double)(cli_clock_ns() - began_ns) / (double)SECOND_NS},
        "many: from the request until the daemon knows that all run");
    bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_node_cpu_s(&n) - agent_s},
                  "many: processor time of the agent until then");
    bench_row_add(&b->daemon, (struct bench_row){.unit = UNIT_SECONDS, .measured = bench_run_cpu_s(&n.run) - daemon_s},
                  "many: processor time of the daemon until then");
    cpu_row(b, &n, b->size == SIZE_QUICK ? 10 : 30, "many: then the agent", false);
    memory_rows(b, &n, "many: then the agent", 0);
    return answers_rows(b, &n, err);
}
