/* generate_test.c - tests generated traces: reproducible from the seed, with the requested load and distributions. */
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
#include "sim/trace/distributions.h"
#include "sim/trace/generate.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

static struct sim_trace generate(const char *kind, uint64_t seed, size_t jobs, double load, int64_t gpus)
{
    struct sim_generate g = {
        .kind = kind, .seed = seed, .jobs = jobs, .load = load, .procs = 128, .gpus = gpus, .users = 10};
    struct sim_trace t;
    struct berth_err err;
    sim_trace_init(&t);
    if (sim_generate(&g, &t, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t.len, jobs);
    return t;
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)SIM_SECOND_NS;
}

static void between(const char *what, double got, double low, double high)
{
    if (!(got >= low && got <= high))
        fail_msg("%s: %g, not %g to %g", what, got, low, high);
}

/* ---- one seed, one trace ---------------------------------------------------------------------------------------- */

static bool same(const struct sim_trace *a, const struct sim_trace *b)
{
    bool equal = a->len == b->len;
    for (size_t i = 0; equal && i < a->len; i++) {
        const struct sim_job *x = &a->jobs[i], *y = &b->jobs[i];
        equal = x->submit_ns == y->submit_ns && x->run_ns == y->run_ns && x->request_ns == y->request_ns &&
                x->cpu_milli == y->cpu_milli && x->user == y->user && x->gpus == y->gpus;
    }
    return equal;
}

static void same_seed_gives_same_trace(void **state)
{
    (void)state;
    const char *kind;
    for (size_t i = 0; (kind = sim_generate_at(i, NULL)); i++) {
        CLEANUP(sim_trace) struct sim_trace a = generate(kind, 7, 500, 0.8, 0), b = generate(kind, 7, 500, 0.8, 0);
        CLEANUP(sim_trace) struct sim_trace c = generate(kind, 8, 500, 0.8, 0);
        if (!same(&a, &b))
            fail_msg("%s: two traces of one seed differ", kind);
        if (same(&a, &c))
            fail_msg("%s: two seeds give one trace", kind);
    }
}

/* ---- load and sizes --------------------------------------------------------------------------------------------- */

static void trace_has_the_requested_load(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        double load;
        int64_t gpus;
        double within; /* tolerance: the last week is incomplete */
    } rows[] = {
        {"poisson", 0.7, 0,  0.001},
        {"poisson", 1.3, 64, 0.001},
        {"lublin",  0.9, 0,  0.02 },
        {"diurnal", 0.5, 0,  0.05 },
        {"diurnal", 0.8, 64, 0.05 },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(sim_trace) struct sim_trace t = generate(rows[i].kind, i, 20000, rows[i].load, rows[i].gpus);
        double work = 0;
        for (size_t k = 0; k < t.len; k++) {
            const struct sim_job *job = &t.jobs[k];
            double size = (double)job->tasks * (double)job->cpu_milli / 1000 / 128;
            if (rows[i].gpus)
                size = job->tasks * (job->gpu_milli ? job->gpu_milli / 1000.0 : job->gpus) / (double)rows[i].gpus;
            work += size * seconds(job->run_ns);
        }
        double load = work / seconds(t.jobs[t.len - 1].submit_ns);
        between(rows[i].kind, load / rows[i].load, 1 - rows[i].within, 1 + rows[i].within);
    }
}

static void every_job_fits_the_machine(void **state)
{
    (void)state;
    const char *kind;
    for (size_t i = 0; (kind = sim_generate_at(i, NULL)); i++)
        for (int64_t gpus = 0; gpus <= 4; gpus += 2) {
            CLEANUP(sim_trace) struct sim_trace t = generate(kind, i, 2000, 0.8, gpus);
            for (size_t k = 0; k < t.len; k++) {
                const struct sim_job *job = &t.jobs[k];
                assert_true(job->run_ns >= SIM_SECOND_NS && job->request_ns >= job->run_ns);
                assert_true(k == 0 || job->submit_ns >= t.jobs[k - 1].submit_ns);
                assert_true((int64_t)job->tasks * job->gpus <= gpus);
                assert_true(gpus || (int64_t)job->tasks * job->cpu_milli <= 128000);
                assert_true(job->gpu_milli == 0 || job->gpus == 1);
            }
        }
}

/* ---- distributions ---------------------------------------------------------------------------------------------- */

/* Returns the coefficient of variation of the interarrival times. */
static double variation(const struct sim_trace *t)
{
    double sum = 0, squares = 0, n = (double)(t->len - 1);
    for (size_t i = 1; i < t->len; i++) {
        double gap = seconds(t->jobs[i].submit_ns - t->jobs[i - 1].submit_ns);
        sum += gap;
        squares += gap * gap;
    }
    double mean = sum / n, var = squares / n - mean * mean;
    return var / (mean * mean);
}

static void arrivals_have_their_distributions(void **state)
{
    (void)state;
    CLEANUP(sim_trace) struct sim_trace poisson = generate("poisson", 1, 20000, 0.5, 0);
    CLEANUP(sim_trace) struct sim_trace lublin = generate("lublin", 1, 20000, 0.5, 0);
    CLEANUP(sim_trace) struct sim_trace diurnal = generate("diurnal", 1, 20000, 0.5, 0);
    double day = 0, night = 0, weekend = 0, weekdays = 0;
    between("poisson", variation(&poisson), 0.93, 1.07);
    between("lublin", variation(&lublin), 3, 100);
    int64_t week_s = INT64_C(7) * 86400, weeks = diurnal.jobs[diurnal.len - 1].submit_ns / SIM_SECOND_NS / week_s;
    assert_true(weeks >= 1);
    for (size_t i = 0; i < diurnal.len; i++) {
        int64_t s = diurnal.jobs[i].submit_ns / SIM_SECOND_NS, hour = s / 3600 % 24;
        if (s >= weeks * week_s)
            break;
        day += hour >= 10 && hour < 16;
        night += hour < 6;
        *(s / 86400 % 7 >= 5 ? &weekend : &weekdays) += 1;
    }
    between("day over night", day / night, 6, 10); /* 564 over 70 percent of the busiest hour */
    between("weekend", weekend / 2 / (weekdays / 5), 0.3, 0.4);
}

static void lublin_job_sizes_match_the_model(void **state)
{
    (void)state;
    CLEANUP(sim_trace) struct sim_trace t = generate("lublin", 3, 20000, 0.5, 0);
    double serial = 0, powers = 0, large = 0;
    for (size_t i = 0; i < t.len; i++) {
        int64_t procs = t.jobs[i].cpu_milli / 1000;
        serial += procs == 1;
        powers += procs > 1 && (procs & (procs - 1)) == 0;
        large += procs > 64;
    }
    between("serial", serial / 20000, 0.23, 0.27);
    between("powers of two", powers / 20000, 0.56, 0.75);
    between("large", large / 20000, 0.01, 0.12);
}

static void jobs_of_a_program_have_one_size(void **state)
{
    (void)state;
    CLEANUP(sim_trace) struct sim_trace t = generate("poisson", 5, 20000, 0.5, 0);
    size_t first = 0, second = 0;
    sym user1 = intern_find(&t.words, "user1"), user2 = intern_find(&t.words, "user2");
    for (size_t i = 0; i < t.len; i++) {
        first += t.jobs[i].user == user1;
        second += t.jobs[i].user == user2;
    }
    between("busy over next", (double)first / (double)second, 1.9, 2.1);
    for (size_t i = 1; i < t.len; i++) /* a program always has the same size */
        for (size_t k = i; k-- > 0 && i - k < 50;)
            if (t.jobs[i].name == t.jobs[k].name)
                assert_int_equal(t.jobs[i].cpu_milli, t.jobs[k].cpu_milli);
}

static void draws_have_their_moments(void **state)
{
    (void)state;
    enum { N = 200000 };
    struct random_stream c = random_stream_new(1, 1);
    double sum[4] = {0}, squares[4] = {0};
    for (size_t i = 0; i < N; i++) {
        double x[4] = {draw_uniform(&c), draw_exponential(&c), draw_normal(&c), draw_gamma(&c, 4.2, 0.94)};
        for (size_t k = 0; k < 4; k++) {
            sum[k] += x[k];
            squares[k] += x[k] * x[k];
        }
    }
    static const struct {
        double mean, variance;
    } want[4] = {
        {0.5,        1.0 / 12         },
        {1,          1                },
        {0,          1                },
        {4.2 * 0.94, 4.2 * 0.94 * 0.94},
    };
    for (size_t k = 0; k < 4; k++) {
        double mean = sum[k] / N;
        between("mean", mean, want[k].mean - 0.02, want[k].mean + 0.02);
        between("variance", squares[k] / N - mean * mean, want[k].variance * 0.97, want[k].variance * 1.03);
    }
}

/* ---- the Standard Workload Format ------------------------------------------------------------------------------- */

static void swf_reads_back(void **state)
{
    (void)state;
    CLEANUP(sim_trace) struct sim_trace t = generate("lublin", 9, 300, 0.7, 0), back;
    struct berth_err err;
    char path[] = "/tmp/generate_test.XXXXXX";
    int fd = mkstemp(path);
    FILE *to = fdopen(fd, "w");
    sim_trace_swf_write(&t, to);
    assert_int_equal(fclose(to), 0);
    sim_trace_init(&back);
    if (sim_trace_swf_read(path, &back, &err))
        fail_msg("%s", err.text);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(back.len, t.len);
    assert_int_equal(back.procs, 128);
    for (size_t i = 0; i < t.len; i++) {
        const struct sim_job *x = &t.jobs[i], *y = &back.jobs[i];
        assert_int_equal(x->id, y->id);
        assert_int_equal(x->submit_ns, y->submit_ns);
        assert_int_equal(x->run_ns, y->run_ns);
        assert_int_equal(x->request_ns, y->request_ns);
        assert_int_equal(x->cpu_milli, y->cpu_milli);
    }
}

static void invalid_options_are_rejected(void **state)
{
    (void)state;
    static const struct {
        struct sim_generate g;
        const char *want;
    } rows[] = {
        {{"tidal", 1, 10, 0.5, 8, 0, 1},  "there is no kind of trace \"tidal\"; there are lublin, poisson"},
        {{"lublin", 1, 0, 0.5, 8, 0, 1},  "0 jobs"                                                        },
        {{"lublin", 1, 10, 0, 8, 0, 1},   "a load of 0"                                                   },
        {{"lublin", 1, 10, 0.5, 0, 0, 1}, "a machine needs processors"                                    },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(sim_trace) struct sim_trace t;
        struct berth_err err = {0};
        sim_trace_init(&t);
        int rc = sim_generate(&rows[i].g, &t, &err);
        if (rc != -EINVAL || !strstr(err.text, rows[i].want))
            fail_msg("row %zu: %d, \"%s\"", i, rc, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_gives_same_trace),       cmocka_unit_test(trace_has_the_requested_load),
        cmocka_unit_test(every_job_fits_the_machine),       cmocka_unit_test(arrivals_have_their_distributions),
        cmocka_unit_test(lublin_job_sizes_match_the_model), cmocka_unit_test(jobs_of_a_program_have_one_size),
        cmocka_unit_test(draws_have_their_moments),         cmocka_unit_test(swf_reads_back),
        cmocka_unit_test(invalid_options_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
