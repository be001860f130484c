/* trace_csv_test.c - tests traces in CSV: reading, errors with their positions, writing. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <string.h>

#include "sim/report/side.h"
#include "sim/trace/generate.h"
#include "sim/trace/trace_csv.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

/* Creates a file with this text. */
static const char *file_of(const char *text)
{
    static char path[64];
    (void)strcpy(path, "/tmp/trace_csv_test.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    return path;
}

static int read_text(const char *text, struct sim_trace *t, struct berth_err *err)
{
    const char *path = file_of(text);
    sim_trace_init(t);
    int rc = sim_trace_csv_read(path, t, err);
    assert_int_equal(unlink(path), 0);
    return rc;
}

static void columns_may_have_any_order_or_be_missing(void **state)
{
    (void)state;
    struct sim_trace t;
    struct berth_err err;
    static const char text[] = "# made by hand\n"
                               "run,submit,user,cpu,memory,gpus,gpu_milli,tasks,queue,priority,request,id\n"
                               "60.5,20,ann,500m,2Gi,1,250,3,fast,-2,120,7\r\n"
                               "\n"
                               "0.25,3.000000001,\"smith, \"\"bob\"\"\",,,,,,,,,\n";
    if (read_text(text, &t, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t.len, 2);
    const struct sim_job *bob = &t.jobs[0], *ann = &t.jobs[1];
    assert_int_equal(bob->submit_ns, 3000000001);
    assert_int_equal(bob->run_ns, 250000000);
    assert_int_equal(bob->id, 2);
    assert_int_equal(bob->tasks, 1);
    assert_int_equal(bob->cpu_milli, 1000);
    assert_int_equal(bob->request_ns, 0);
    assert_string_equal(sim_trace_text(&t, bob->user), "smith, \"bob\"");
    assert_string_equal(sim_trace_text(&t, bob->queue), "");
    assert_int_equal(ann->id, 7);
    assert_int_equal(ann->cpu_milli, 500);
    assert_int_equal(ann->memory_bytes, (int64_t)2 << 30);
    assert_int_equal(ann->gpus, 1);
    assert_int_equal(ann->gpu_milli, 250);
    assert_int_equal(ann->tasks, 3);
    assert_int_equal(ann->priority, -2);
    assert_int_equal(ann->request_ns, 120 * SIM_SECOND_NS);
    assert_string_equal(sim_trace_text(&t, ann->queue), "fast");
    sim_trace_done(&t);
}

static void errors_have_line_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"",                                       "line 0: the file is empty"                      },
        {"submit,run\n",                           "line 1: the file has no jobs"                   },
        {"submit,user\n1,a\n",                     "line 1: the column \"run\" is missing"          },
        {"submit,run,walltime\n",                  "line 1: there is no column \"walltime\""        },
        {"submit,run,submit\n",                    "line 1: the column \"submit\" stands twice"     },
        {"submit,run\n1,2\n1,2,3\n",               "line 3: 3 fields, but the first line names 2"   },
        {"submit,run\n1\n",                        "line 2: 1 fields"                               },
        {"# x\n\nsubmit,run\n1,-2\n",              "line 4: run: expected seconds"                  },
        {"submit,run\n1,2s\n",                     "line 2: run: expected seconds"                  },
        {"submit,run\n,2\n",                       "line 2: submit: is empty"                       },
        {"submit,run\n1,9100000000\n",             "line 2: run: expected 0 to 9000000000"          },
        {"submit,run,tasks\n1,2,0\n",              "line 2: tasks: expected 1 to 10000000"          },
        {"submit,run,tasks\n1,2,two\n",            "line 2: tasks: expected a whole number"         },
        {"submit,run,cpu\n1,2,-1\n",               "line 2: cpu: expected an amount of 0 or more"   },
        {"submit,run,memory\n1,2,much\n",          "line 2: memory: "                               },
        {"submit,run,gpus,gpu_milli\n1,2,2,500\n", "line 2: gpu_milli: a share is a part of one GPU"},
        {"submit,run,user\n1,2,\"ann\n",           "line 2: a quote is not closed"                  },
        {"submit,run,user\n1,2,\"ann\"x\n",        "line 2: a quote is not closed"                  },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct sim_trace t;
        struct berth_err err = {0};
        int rc = read_text(rows[i].text, &t, &err);
        if (rc != -EINVAL || !strstr(err.text, rows[i].want))
            fail_msg("row %zu: %d, \"%s\", not \"%s\"", i, rc, err.text, rows[i].want);
        sim_trace_done(&t);
    }
}

static void written_trace_reads_back(void **state)
{
    (void)state;
    static const char text[] = "id,submit,run,request,user,group,name,queue,priority,tasks,cpu,memory,gpus,gpu_milli\n"
                               "1,0,1.5,0,\"a,b\",\"say \"\"hi\"\"\",\"#x\",q,3,2,1500m,1000,2,0\n"
                               "2,10,0.000000001,5,,,,,0,1,4,16Gi,1,10\n";
    struct sim_trace t;
    struct berth_err err;
    if (read_text(text, &t, &err))
        fail_msg("%s", err.text);
    char *got = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&got, &len);
    sim_trace_csv_write(&t, to);
    assert_int_equal(fclose(to), 0);
    sim_trace_done(&t);
    if (read_text(got, &t, &err))
        fail_msg("%s in %s", err.text, got);
    assert_int_equal(t.len, 2);
    assert_string_equal(sim_trace_text(&t, t.jobs[0].user), "a,b");
    assert_string_equal(sim_trace_text(&t, t.jobs[0].group), "say \"hi\"");
    assert_string_equal(sim_trace_text(&t, t.jobs[0].name), "#x");
    assert_int_equal(t.jobs[0].cpu_milli, 1500);
    assert_int_equal(t.jobs[0].run_ns, 1500000000);
    assert_int_equal(t.jobs[1].run_ns, 1);
    assert_int_equal(t.jobs[1].gpu_milli, 10);
    assert_int_equal(t.jobs[1].memory_bytes, (int64_t)16 << 30);
    char *again = NULL;
    to = open_memstream(&again, &len);
    sim_trace_csv_write(&t, to);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(again, got);
    free(again);
    free(got);
    sim_trace_done(&t);
}

static void seconds_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns; /* -1: rejected */
        const char *printed;
    } rows[] = {
        {"0",                    0,           "0"          },
        {"90",                   90000000000, "90"         },
        {"0.25",                 250000000,   "0.25"       },
        {".5",                   500000000,   "0.5"        },
        {"7.",                   7000000000,  "7"          },
        {"1.0000000010",         1000000001,  "1.000000001"},
        {"1.0000000001",         -1,          NULL         },
        {"",                     -1,          NULL         },
        {".",                    -1,          NULL         },
        {"1e3",                  -1,          NULL         },
        {" 1",                   -1,          NULL         },
        {"-1",                   -1,          NULL         },
        {"99999999999999999999", -1,          NULL         },
        {"9999999999999",        -1,          NULL         },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t ns = -1;
        char buf[32];
        bool ok = sim_seconds_parse(rows[i].text, &ns);
        if (ok != (rows[i].ns >= 0) || ns != rows[i].ns)
            fail_msg("\"%s\": %d, %lld", rows[i].text, ok, (long long)ns);
        if (ok)
            assert_string_equal(sim_seconds_print(ns, buf), rows[i].printed);
    }
}

/* ---- reference documentation ------------------------------------------------------------------------------------ */

static char *text_of(const char *name)
{
    const char *root = getenv("BERTH_SOURCE");
    char path[4096];
    char *text = NULL;
    size_t len = 0;
    (void)snprintf(path, sizeof path, "%s/%s", root ? root : ".", name);
    FILE *from = fopen(path, "r");
    if (!from)
        return NULL;
    FILE *to = open_memstream(&text, &len);
    for (int c; (c = fgetc(from)) != EOF;)
        (void)fputc(c, to);
    (void)fclose(from);
    (void)fclose(to);
    return text;
}

static void must_have(const char *text, const char *name, const char *sentence)
{
    char row[512];
    (void)snprintf(row, sizeof row, "\n| `%s` | %s |\n", name, sentence);
    if (!strstr(text, row))
        fail_msg("docs/sim.md lacks:%s", row);
}

static void reference_documents_every_column(void **state)
{
    (void)state;
    char *text = text_of("docs/sim.md");
    const char *name, *sentence;
    struct sim_number n;
    if (!text) {
        print_message("skip: there is no docs/sim.md; set BERTH_SOURCE to the tree\n");
        skip();
        return;
    }
    for (size_t i = 0; (name = sim_trace_csv_column(i, &sentence)); i++)
        must_have(text, name, sentence);
    for (size_t i = 0; (name = sim_generate_at(i, &sentence)); i++)
        must_have(text, name, sentence);
    for (size_t i = 0; (n = sim_side_number(&(struct sim_side){0}, i)).key; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "`%s`", n.key);
        if (!strstr(text, key))
            fail_msg("docs/sim.md lacks the number %s", key);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_may_have_any_order_or_be_missing),
        cmocka_unit_test(errors_have_line_numbers),
        cmocka_unit_test(written_trace_reads_back),
        cmocka_unit_test(seconds_are_exact),
        cmocka_unit_test(reference_documents_every_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
