/* muri_test.c - tests training jobs by the Muri protocol: tiny traces with results calculated by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sim/protocol/muri.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define HEAD "job_id,num_gpu,submit_time,iterations,model_name,iteration_time\n"

static int read_text(const char *text, struct muri_trace *t, struct berth_err *err)
{
    char path[] = "/tmp/muri_test.XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    *t = (struct muri_trace){0};
    int rc = muri_trace_read(path, t, err);
    assert_int_equal(unlink(path), 0);
    return rc;
}

static void near(const char *what, double got, double want)
{
    if (got < want - 1e-6 || got > want + 1e-6)
        fail_msg("%s: %.9f, not %.9f", what, got, want);
}

/* An iteration of 100 ms takes 101.5 ms; an unknown model loses 10 s at each event. */
static void traces_give_known_results(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct {
        const char *label, *policy, *jobs;
        size_t nodes, gpus;
        double average, makespan, p99;
        uint64_t events, starts;
    } rows[] = {
        {"one job: its own end costs it nothing", "srtf", "0,1,0,1000,x,100\n",
         1, 1, 101.5, 101.5, 101.5, 2, 1},
        /* The first job makes no progress in its first 10 s, waits for 10.15 s, and starts again. */
        {"a short one goes first", "srtf", "0,1,0,1000,x,100\n1,1,10000,100,x,100\n",
         1, 1, (121.65 + 10.15) / 2, 121.65, 121.65, 4, 3},
        /* In 30 s the first job has done 20 s; the other runs until 40.15; then the first has 81.5 s left. */
        {"what an event costs is lost", "srtf", "0,1,0,1000,x,100\n1,1,30000,100,x,100\n",
         1, 1, (121.65 + 10.15) / 2, 121.65, 121.65, 4, 3},
        /* Both run in parallel: the second arrival costs the first job 10 s of 30, the second end 10 s of 10.15. */
        {"also of those that go on", "srtf", "0,1,0,1000,x,100\n1,1,30000,100,x,100\n",
         1, 2, (121.5 + 10.15) / 2, 121.5, 121.5, 4, 2},
        /* The other arrival costs the first job 10 s. */
        {"who comes first keeps its place", "fifo", "0,1,0,1000,x,100\n1,1,10000,100,x,100\n",
         1, 1, (111.5 + 111.65) / 2, 121.65, 111.65, 4, 2},
        /* One event: the ending job makes room for the arriving one. */
        {"an end and a coming at once", "srtf", "0,1,0,1000,x,100\n1,1,101500,100,x,100\n",
         1, 1, (101.5 + 10.15) / 2, 111.65, 101.5, 3, 2},
        {"by time", "srtf", "0,2,0,100,x,100\n1,1,0,150,x,100\n",
         1, 2, (10.15 + 25.375) / 2, 25.375, 25.375, 3, 2},
        {"by time and GPUs", "srsf", "0,2,0,100,x,100\n1,1,0,150,x,100\n",
         1, 2, (15.225 + 25.375) / 2, 25.375, 25.375, 3, 2},
        /* Three GPUs are one whole node and one GPU of the other, which has one left. */
        {"large and small together", "srtf", "0,3,0,100,x,100\n1,1,0,100,x,100\n",
         2, 2, 10.15, 10.15, 10.15, 2, 2},
        /* The small job is on the first node, so there are no two free nodes. */
        {"large ones need whole nodes", "srtf", "0,1,0,100,x,100\n1,4,0,200,x,100\n",
         2, 2, (10.15 + 30.45) / 2, 30.45, 30.45, 3, 2},
        {"what runs stays", "berth", "0,1,0,1000,x,100\n1,1,10000,100,x,100\n",
         1, 1, (111.5 + 111.65) / 2, 121.65, 111.65, 4, 2},
    };
    /* clang-format on */
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(muri_trace) struct muri_trace t;
        struct muri_options o = {.policy = rows[i].policy, .nodes = rows[i].nodes, .gpus = rows[i].gpus};
        struct muri_result r = {0};
        struct berth_err err;
        char text[512];
        (void)snprintf(text, sizeof text, "%s%s", HEAD, rows[i].jobs);
        if (read_text(text, &t, &err) || muri_run(&t, &o, &r, &err))
            fail_msg("%s: %s", rows[i].label, err.text);
        near(rows[i].label, r.average_s, rows[i].average);
        near(rows[i].label, r.makespan_s, rows[i].makespan);
        near(rows[i].label, r.p99_s, rows[i].p99);
        if (r.events != rows[i].events || r.starts != rows[i].starts)
            fail_msg("%s: %d events, %d starts", rows[i].label, (int)r.events, (int)r.starts);
    }
}

static void restarts_by_model_and_size(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int64_t gpus;
        double want;
    } rows[] = {
        {"vgg16",    1,  7 },
        {"vgg19",    16, 10},
        {"resnet18", 8,  7 },
        {"a2c",      2,  39},
        {"dqn",      32, 8 },
        {"dqn",      64, 8 },
        {"dqn",      3,  6 },
        {"gpt2",     8,  10},
        {"other",    1,  10},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        near(rows[i].model, muri_restart_s(rows[i].model, rows[i].gpus), rows[i].want);
}

static void invalid_options_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *policy, *want;
    } rows[] = {
        {"job_id,num_gpu\n",                "srtf", "line 1: the column \"submit_time\" is missing"},
        {HEAD,                              "srtf", "the file has no jobs"                         },
        {HEAD "0,0,0,1,x,1\n",              "srtf", "line 2: num_gpu: expected 1 to 1000000"       },
        {HEAD "0,1,0,1,x,fast\n",           "srtf", "line 2: iteration_time: expected a number"    },
        {HEAD "0,1,0,1,x,1\n1,5,0,1,x,1\n", "srtf", "job 1 wants 5 GPUs"                           },
        {HEAD "0,1,0,1,x,1\n",              "sjff", "there is no policy \"sjff\"; there are berth" },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(muri_trace) struct muri_trace t;
        struct muri_options o = {.policy = rows[i].policy, .nodes = 2, .gpus = 2};
        struct muri_result r = {0};
        struct berth_err err = {0};
        int rc = read_text(rows[i].text, &t, &err);
        if (rc == 0)
            rc = muri_run(&t, &o, &r, &err);
        if (rc != -EINVAL || !strstr(err.text, rows[i].want))
            fail_msg("row %zu: %d, \"%s\"", i, rc, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traces_give_known_results),
        cmocka_unit_test(restarts_by_model_and_size),
        cmocka_unit_test(invalid_options_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
