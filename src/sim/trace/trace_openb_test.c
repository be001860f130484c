/* trace_openb_test.c - tests reading the openb files, and errors with their lines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/trace/trace_openb.h"

static const char good_nodes[] = "sn,cpu_milli,memory_mib,gpu,model\nnode-b,64000,262144,2,P100\nnode-a,8000,1024,0,\n";
static const char good_pods[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
                                "pod-2,12000,16384,1,460,T4|P100|T4,LS\npod-1,500,100,0,0,,BE\npod-3,1,1,2,1000,,LS\n";
static const char good_arrivals[] = "# pods 4 (rows)\n2\n0\n0\n1\n# nodes 2 (ranks)\n1\n0\n";

static void file_put(char *path, const char *name, const char *text)
{
    (void)sprintf(path, "/tmp/trace_openb_test.%s.XXXXXX", name);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static int read_texts(struct openb_trace *t, const char *nodes, const char *pods, const char *arrivals,
                      struct berth_err *err)
{
    char paths[3][64];
    file_put(paths[0], "nodes", nodes);
    file_put(paths[1], "pods", pods);
    file_put(paths[2], "arrivals", arrivals);
    int rc = openb_trace_read(t, paths[0], paths[1], paths[2], err);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(unlink(paths[i]), 0);
    return rc;
}

static void sorted_by_name(void **state)
{
    (void)state;
    CLEANUP(openb_trace) struct openb_trace t;
    struct berth_err err;
    if (read_texts(&t, good_nodes, good_pods, good_arrivals, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t.nodes_len, 2);
    assert_string_equal(t.nodes[0].name, "node-a");
    assert_string_equal(t.nodes[0].model, "");
    assert_int_equal(t.nodes[0].gpus, 0);
    assert_int_equal(t.nodes[0].rank, 1);
    assert_string_equal(t.nodes[1].model, "P100");
    assert_int_equal(t.nodes[1].cpu_milli, 64000);
    assert_int_equal(t.nodes[1].memory_mib, 262144);
    assert_int_equal(t.nodes[1].rank, 0);
    assert_int_equal(t.pods_len, 3);
    assert_int_equal(t.pods[0].gpus, 0);
    assert_int_equal(t.pods[0].models_len, 0);
    assert_int_equal(t.pods[1].gpu_milli, 460);
    assert_string_equal(t.pods[1].spec, "T4|P100|T4");
    assert_int_equal(t.pods[1].models_len, 2); /* a repeated model counts once */
    assert_string_equal(t.pods[1].models[1], "P100");
    assert_int_equal(t.arrivals_len, 4);
    assert_int_equal(t.arrivals[0], 2);
    assert_int_equal(t.arrivals[3], 1);
}

static void models_column_is_optional(void **state)
{
    (void)state;
    CLEANUP(openb_trace) struct openb_trace t;
    struct berth_err err;
    if (read_texts(&t, good_nodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod-1,1,1,1,1000\n",
                   "# pods 1\n0\n# nodes 2\n0\n1", &err))
        fail_msg("%s", err.text);
    assert_int_equal(t.pods[0].models_len, 0);
}

static void errors_have_line_numbers(void **state)
{
    (void)state;
#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define PODS "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
    static const struct {
        const char *nodes, *pods, *arrivals, *says[2];
    } rows[] = {
        {"sn,cpu_milli\n",             NULL,                          NULL,                                {"nodes", "memory_mib"}                    },
        {NODES "a,1,1,65,\n",          NULL,                          NULL,                                {"line 2", "gpu"}                          },
        {NODES "a,1,1,1,\nb,x,1,1,\n", NULL,                          NULL,                                {"line 3", "cpu_milli"}                    },
        {NODES ",1,1,1,\n",            NULL,                          NULL,                                {"line 2", "sn"}                           },
        {NODES "a,1,1,1,\na,1,1,1,\n", NULL,                          NULL,                                {"nodes", "duplicate node a"}              },
        {NULL,                         PODS "p,1,1,1,0\n",            NULL,                                {"line 2", "expected 1 to 1000"}           },
        {NULL,                         PODS "p,1,1,1,1001\n",         NULL,                                {"line 2", "gpu_milli"}                    },
        {NULL,                         PODS "p,1,1,2,500\n",          NULL,                                {"line 2", "shares of several"}            },
        {NULL,                         PODS "p,-1,1,2,500\n",         NULL,                                {"line 2", "cpu_milli"}                    },
        {NULL,                         PODS "p,1,1,0,0\np,1,1,0,0\n", NULL,                                {"pods", "duplicate pod p"}                },
        {NULL,                         NULL,                          "",                                  {"arrivals", "# pods"}                     },
        {NULL,                         NULL,                          "# nodes 2\n0\n1\n",                 {"line 1", "# pods"}                       },
        {NULL,                         NULL,                          "# pods 1\n3\n# nodes 2\n0\n1\n",    {"line 2", "0 to 2"}                       },
        {NULL,                         NULL,                          "# pods 2\n1\n# nodes 2\n0\n1\n",    {"line 3", "0 to 2"}                       },
        {NULL,                         NULL,                          "# pods 2\n1\n",                     {"line 2", "after 1 of 2 pods"}            },
        {NULL,                         NULL,                          "# pods 1\n1\n2\n# nodes 2\n0\n1\n", {"line 3", "# nodes"}                      },
        {NULL,                         NULL,                          "# pods 1\n1\n# nodes 1\n0\n",       {"line 4", "ranks of 1 nodes; there are 2"}},
        {NULL,                         NULL,                          "# pods 99999999\n",                 {"line 1", "# pods"}                       },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(openb_trace) struct openb_trace t;
        struct berth_err err = {0};
        int rc = read_texts(&t, rows[i].nodes ? rows[i].nodes : good_nodes, rows[i].pods ? rows[i].pods : good_pods,
                            rows[i].arrivals ? rows[i].arrivals : good_arrivals, &err);
        if (rc != -EINVAL || !strstr(err.text, rows[i].says[0]) || !strstr(err.text, rows[i].says[1]))
            fail_msg("row %zu: %d, \"%s\" does not say \"%s\" and \"%s\"", i, rc, err.text, rows[i].says[0],
                     rows[i].says[1]);
    }
}

static void missing_file_is_an_error(void **state)
{
    (void)state;
    CLEANUP(openb_trace) struct openb_trace t;
    struct berth_err err = {0};
    assert_int_equal(openb_trace_read(&t, "/no/such/file", "", "", &err), -ENOENT);
    assert_non_null(strstr(err.text, "/no/such/file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorted_by_name),
        cmocka_unit_test(models_column_is_optional),
        cmocka_unit_test(errors_have_line_numbers),
        cmocka_unit_test(missing_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
