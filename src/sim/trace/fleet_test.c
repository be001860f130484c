/* fleet_test.c - tests parsing of node descriptions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/trace/fleet.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

static void descriptions_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"cpu64",                 "1 node: 64 cores, 256 GiB of memory"             },
        {"4xgpu8,10xcpu64",       "14 nodes: 32 GPUs, 1152 cores, 4.5 TiB of memory"},
        {"2xgpu8+cpu96+mem768Gi", "2 nodes: 16 GPUs, 192 cores, 1.5 TiB of memory"  },
        {"1xmem1Ti",              "1 node: 1 core, 1 TiB of memory"                 },
        {"gpu1",                  "1 node: 1 GPU, 16 cores, 64 GiB of memory"       },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(sim_fleet) struct sim_fleet f;
        CLEANUP(str) struct str got = {0};
        struct berth_err err;
        sim_fleet_init(&f);
        if (sim_fleet_add(&f, rows[i].text, &err))
            fail_msg("%s: %s", rows[i].text, err.text);
        sim_fleet_describe(&f, &got);
        assert_string_equal(str_text(&got), rows[i].want);
    }
}

static void node_ids_are_unique_and_valid(void **state)
{
    (void)state;
    CLEANUP(sim_fleet) struct sim_fleet f;
    struct berth_err err;
    struct berth_cluster *cluster = berth_cluster_new();
    sim_fleet_init(&f);
    assert_int_equal(sim_fleet_add(&f, "2xgpu2,2xcpu4", &err), 0);
    assert_int_equal(sim_fleet_add(&f, "gpu2", &err), 0);
    for (size_t i = 0; i < f.nodes.len; i++)
        if (berth_node_put(cluster, &f.nodes.at[i], &err))
            fail_msg("%s", err.text);
    assert_int_equal(berth_nodes(cluster), 5);
    berth_cluster_free(cluster);
}

static void invalid_descriptions_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"",             "expected nodes, like 4xgpu8"            },
        {"4x",           "expected what the nodes have"           },
        {"0xgpu8",       "\"0\": expected how many nodes"         },
        {"4xtpu8",       "\"tpu8\": expected gpuN (1 to 64), cpuN"},
        {"gpu65",        "\"gpu65\": expected gpuN"               },
        {"gpu",          "\"gpu\": expected gpuN"                 },
        {"cpu8+memx",    "\"memx\": expected gpuN"                },
        {"2000000xcpu1", "expected how many nodes, 1 to 1000000"  },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(sim_fleet) struct sim_fleet f;
        struct berth_err err = {0};
        sim_fleet_init(&f);
        int rc = sim_fleet_add(&f, rows[i].text, &err);
        if (rc != -EINVAL || !strstr(err.text, rows[i].want))
            fail_msg("%s: %d, \"%s\"", rows[i].text, rc, err.text);
    }
}

static void cluster_file_gives_nodes_and_profiles(void **state)
{
    (void)state;
    static const char text[] = "{\"nodes\": [{\"id\": \"big\", \"allocatable\": {\"cpu\": 8}, \"count\": 3},"
                               " {\"id\": \"small\", \"allocatable\": {\"cpu\": 1}, \"gpus\": [{\"model\": \"A\"}]}],"
                               " \"profiles\": [{\"name\": \"mine\", \"scores\": {\"random\": 1}}]}";
    char path[] = "/tmp/fleet_test.XXXXXX";
    CLEANUP(sim_fleet) struct sim_fleet f;
    CLEANUP(str) struct str got = {0};
    struct berth_err err;
    int fd = mkstemp(path);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    sim_fleet_init(&f);
    if (sim_fleet_file(&f, path, &err))
        fail_msg("%s", err.text);
    assert_int_equal(unlink(path), 0);
    sim_fleet_describe(&f, &got);
    assert_string_equal(str_text(&got), "4 nodes: 1 GPU, 25 cores");
    assert_string_equal(f.nodes.at[2].id, "big-3");
    assert_string_equal(f.nodes.at[3].gpus[0].model, "A");
    assert_non_null(sim_fleet_profile(&f, "mine"));
    assert_non_null(sim_fleet_profile(&f, "default"));
    assert_null(sim_fleet_profile(&f, "nobodys"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptions_are_parsed),
        cmocka_unit_test(node_ids_are_unique_and_valid),
        cmocka_unit_test(invalid_descriptions_are_rejected),
        cmocka_unit_test(cluster_file_gives_nodes_and_profiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
