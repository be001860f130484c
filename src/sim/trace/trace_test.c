/* trace_test.c - tests reading of the Standard Workload Format: accepted logs, and errors with their lines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/trace/trace.h"

/* A temporary file of the test. */
struct scratch {
    char path[64];
};

static struct scratch scratch_new(const void *bytes, size_t len)
{
    struct scratch s = {"/tmp/berth-trace-XXXXXX"};
    int fd = mkstemp(s.path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
    return s;
}

static void scratch_cleanup(struct scratch *s)
{
    (void)unlink(s->path);
}

static int read_text(const char *text, struct sim_trace *t, struct berth_err *err)
{
    CLEANUP(scratch) struct scratch s = scratch_new(text, strlen(text));
    int rc = sim_trace_swf_read(s.path, t, err);
    char *at = rc ? strstr(err->text, s.path) : NULL;
    if (at) /* the rest of the text is the same in every run */
        memmove(at, at + strlen(s.path), strlen(at + strlen(s.path)) + 1);
    return rc;
}

static const char two[] = "; Version: 2\n"
                          ";  MaxNodes: 64\n"
                          "; MaxProcs: 128\n"
                          "\n"
                          " 7  100 -1  50  4 -1 -1  8  60 -1 1 3 2 9 1 -1 -1 -1\n"
                          "5\t20 3 40.5 2 -1 -1 -1 -1 -1 1 3 -1 -1 -1 -1 -1 -1\r\n";

static void see_two(const struct sim_trace *t)
{
    assert_int_equal(t->len, 2);
    assert_int_equal(t->procs, 128);
    const struct sim_job *a = &t->jobs[0], *b = &t->jobs[1];
    assert_int_equal(a->id, 5); /* ordered by submission */
    assert_int_equal(a->submit_ns, 20 * SIM_SECOND_NS);
    assert_int_equal(a->run_ns, 40 * SIM_SECOND_NS);
    assert_int_equal(a->request_ns, 40 * SIM_SECOND_NS); /* not given: the run time */
    assert_int_equal(a->cpu_milli, 2000);                /* not given: as allocated */
    assert_int_equal(a->tasks, 1);
    assert_int_equal(b->id, 7);
    assert_int_equal(b->request_ns, 60 * SIM_SECOND_NS);
    assert_int_equal(b->cpu_milli, 8000);
    assert_int_equal(a->user, b->user);
    assert_string_equal(sim_trace_text(t, a->user), "3");
    assert_string_equal(sim_trace_text(t, a->group), "");
    assert_string_equal(sim_trace_text(t, b->group), "2");
    assert_string_equal(sim_trace_text(t, b->name), "9");
    assert_string_equal(sim_trace_text(t, b->queue), "1");
}

static void a_log_is_read(void **state)
{
    CLEANUP(sim_trace) struct sim_trace t;
    struct berth_err err = {0};
    (void)state;
    sim_trace_init(&t);
    assert_int_equal(read_text(two, &t, &err), 0);
    see_two(&t);
}

static void a_compressed_log_is_read(void **state)
{
    CLEANUP(sim_trace) struct sim_trace t;
    struct berth_err err = {0};
    (void)state;
    sim_trace_init(&t);
    CLEANUP(scratch) struct scratch s = scratch_new("", 0);
    gzFile f = gzopen(s.path, "wb");
    assert_int_equal(gzwrite(f, two, sizeof two - 1), sizeof two - 1);
    assert_int_equal(gzclose(f), Z_OK);
    assert_int_equal(sim_trace_swf_read(s.path, &t, &err), 0);
    see_two(&t);
    /* The end is missing. */
    CLEANUP(sim_trace) struct sim_trace cut;
    sim_trace_init(&cut);
    assert_int_equal(truncate(s.path, 60), 0);
    assert_int_equal(sim_trace_swf_read(s.path, &cut, &err), -EIO);
    assert_non_null(strstr(err.text, "damaged or cut off"));
}

static void jobs_that_never_ran_are_left_out(void **state)
{
    CLEANUP(sim_trace) struct sim_trace t;
    struct berth_err err = {0};
    (void)state;
    sim_trace_init(&t);
    assert_int_equal(read_text("1 0 0 -1 4 -1 -1 4 60\n"   /* cancelled */
                               "2 0 0 10 -1 -1 -1 -1 60\n" /* no processors */
                               "3 -1 0 10 1 -1 -1 1 60\n"  /* no submission */
                               "4 0 0 0 1 -1 -1 1 60\n",   /* ended at once: it ran */
                               &t, &err),
                     0);
    assert_int_equal(t.len, 1);
    assert_int_equal(t.jobs[0].id, 4);
    assert_int_equal(t.procs, 0);
}

static void equal_times_are_in_order_of_numbers(void **state)
{
    CLEANUP(sim_trace) struct sim_trace t;
    struct berth_err err = {0};
    (void)state;
    sim_trace_init(&t);
    assert_int_equal(read_text("9 5 0 1 1 -1 -1 1 1\n3 5 0 1 1 -1 -1 1 1\n7 4 0 1 1 -1 -1 1 1\n", &t, &err), 0);
    assert_int_equal(t.jobs[0].id, 7);
    assert_int_equal(t.jobs[1].id, 3);
    assert_int_equal(t.jobs[2].id, 9);
}

static void errors_have_line_numbers(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"1 0 0 1 1 -1 -1 1 1\n1 0 0 x 1 -1 -1 1 1\n",        ", line 2: column 4, run time: \"x 1 -1 -1 1 1\" is no number"     },
        {"; a\n\n1 0 0 1 1\n",                                ", line 3: 5 numbers; a job of the Standard Workload Format has 18"},
        {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n", ", line 1: more than 18 numbers"                                   },
        {"1 0 0 1z 1 -1 -1 1 1\n",                            ", line 1: column 4, run time: \"1z 1 -1 -1 1 1\" is no number"    },
        {"1 99999999999 0 1 1 -1 -1 1 1\n",                   ", line 1: a time of more than 8589934592 seconds"                 },
        {"1 0 0 1 9999999999999 -1 -1 1 1\n",                 ", line 1: more than 1099511627776 processors"                     },
        {"; nothing\n",                                       ": there is no job in it that ran"                                 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(sim_trace) struct sim_trace t;
        struct berth_err err = {0};
        sim_trace_init(&t);
        assert_int_equal(read_text(rows[i].text, &t, &err), -EINVAL);
        assert_string_equal(err.text, rows[i].want);
    }
}

static void binary_data_is_rejected(void **state)
{
    CLEANUP(sim_trace) struct sim_trace t;
    struct berth_err err = {0};
    (void)state;
    sim_trace_init(&t);
    CLEANUP(scratch) struct scratch s = scratch_new("1 0 0 1 1\0 -1 -1 1 1\n", 21);
    assert_int_equal(sim_trace_swf_read(s.path, &t, &err), -EINVAL);
    assert_non_null(strstr(err.text, "line 1: a NUL byte"));
    assert_int_equal(sim_trace_swf_read("/nowhere/log.swf", &t, &err), -ENOENT);
    assert_string_equal(err.text, "/nowhere/log.swf: No such file or directory");
}

/* Lines of any length, also without a line end. */
static void long_lines_are_whole(void **state)
{
    CLEANUP(sim_lines) struct sim_lines l = {0};
    struct berth_err err = {0};
    enum { LONG = 100000 };
    (void)state;
    char *text = mem_alloc(LONG + 3);
    memset(text, 'a', LONG);
    memcpy(text + LONG, "\nb", 3);
    CLEANUP(scratch) struct scratch s = scratch_new(text, LONG + 2);
    assert_int_equal(sim_lines_open(&l, s.path, &err), 0);
    assert_int_equal(sim_lines_next(&l, &err), 1);
    assert_int_equal(strlen(l.text), LONG);
    assert_int_equal(sim_lines_next(&l, &err), 1);
    assert_string_equal(l.text, "b");
    assert_int_equal(sim_lines_next(&l, &err), 0);
    assert_int_equal(l.number, 2);
    mem_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_is_read),
        cmocka_unit_test(a_compressed_log_is_read),
        cmocka_unit_test(jobs_that_never_ran_are_left_out),
        cmocka_unit_test(equal_times_are_in_order_of_numbers),
        cmocka_unit_test(errors_have_line_numbers),
        cmocka_unit_test(binary_data_is_rejected),
        cmocka_unit_test(long_lines_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
