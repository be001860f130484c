/* generate.c - generates traces from a seed: first sizes and run times, then arrival times that give the load. */
#include "sim/trace/generate.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/math.h"
#include "base/mem.h"
#include "base/str.h"
#include "sim/trace/distributions.h"

enum {
    PROGRAMS = 6, /* per user */
    HOURS = 24,
    DAYS = 7,
    RUN_MAX_S = 5 * 86400,
    TASK_GPUS_MAX = 8,
    GPU_PROCS = 4, /* per GPU */
};

/* Streams of the random number generator. */
enum { STREAM_JOBS = 1, STREAM_GAPS, STREAM_USERS };

/* ---- arrival times ---------------------------------------------------------------------------------------------- */

static double gap_poisson(struct random_stream *c)
{
    return draw_exponential(c);
}

/* The logarithm of the interarrival time is gamma-distributed: bursts and pauses. */
static double gap_lublin(struct random_stream *c)
{
    return math_exp(draw_gamma(c, 10.2303, 0.4871));
}

/* Activity of each hour of a working day, from midnight, in percent of the busiest hour. */
static const unsigned char day_flat[HOURS] = {100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
                                              100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100};
static const unsigned char day_office[HOURS] = {18, 13, 10,  9,  9,  11, 17, 32, 58, 85, 98, 96,
                                                82, 90, 100, 98, 94, 82, 60, 46, 40, 36, 30, 24};
/* The density of gamma(8.1737, 3.9631) over the half hours from 5:30 on, as given by Lublin and Feitelson. */
static const unsigned char day_lublin[HOURS] = {28, 22, 18,  14, 11, 10, 18, 30, 45, 60, 74, 86,
                                                95, 99, 100, 97, 92, 85, 76, 67, 58, 49, 41, 34};

/* ---- sizes and run times ---------------------------------------------------------------------------------------- */

struct user_program {
    double run_s; /* median */
    uint32_t tasks, gpus, gpu_milli;
    int64_t procs; /* of all tasks */
};

static int64_t within(double x, int64_t low, int64_t high)
{
    return x <= (double)low ? low : x >= (double)high ? high : (int64_t)x;
}

/* After Lublin and Feitelson: a quarter of the jobs is serial. For others the logarithm of the size is two-stage
 * uniform, and is mostly rounded to a whole number. */
static int64_t size_lublin(struct random_stream *c, int64_t procs)
{
    double high = math_log2((double)procs), low = 0.8, middle = high - 2.5 > low ? high - 2.5 : low;
    if (draw_uniform(c) < 0.244 || procs == 1)
        return 1;
    double log =
        draw_uniform(c) < 0.86 ? low + (middle - low) * draw_uniform(c) : middle + (high - middle) * draw_uniform(c);
    bool power = draw_uniform(c) < 0.576 / (1 - 0.244);
    return within(math_pow(2, power ? (double)(int64_t)(log + 0.5) : log) + 0.5, 1, procs);
}

/* The logarithm of the run time has one of two gamma distributions; larger jobs more often have the longer one. */
static double run_lublin(struct random_stream *c, int64_t size)
{
    double p = -0.0054 * (double)size + 0.78;
    bool first = draw_uniform(c) < (p < 0.05 ? 0.05 : p);
    return math_exp(first ? draw_gamma(c, 4.2, 0.94) : draw_gamma(c, 312, 0.03));
}

static struct user_program program_lublin(struct random_stream *c, const struct sim_generate *g)
{
    int64_t size = size_lublin(c, g->procs);
    return (struct user_program){.run_s = run_lublin(c, size), .tasks = 1, .procs = size};
}

static struct user_program program_usual(struct random_stream *c, const struct sim_generate *g)
{
    struct user_program p = {.run_s = math_exp(7 + 1.6 * draw_normal(c)), .tasks = 1};
    p.procs =
        within(math_pow(2, (double)(int64_t)(draw_uniform(c) * draw_uniform(c) * (math_log2((double)g->procs) + 1))), 1,
               g->procs);
    return p;
}

/* Requests a share of one GPU, one to eight GPUs on a node, or several nodes with eight. */
static void program_on_gpus(struct random_stream *c, const struct sim_generate *g, struct user_program *p)
{
    static const struct {
        unsigned percent;
        uint32_t tasks, gpus, milli;
    } mix[] = {
        {15, 1, 1, 250},
        {15, 1, 1, 500},
        {30, 1, 1, 0  },
        {12, 1, 2, 0  },
        {12, 1, 4, 0  },
        {10, 1, 8, 0  },
        {4,  2, 8, 0  },
        {2,  4, 8, 0  },
    };
    size_t i = 0;
    for (size_t at = random_below(c, 100); at >= mix[i].percent; i++)
        at -= mix[i].percent;
    while (i > 2 && (int64_t)mix[i].tasks * mix[i].gpus > g->gpus)
        i--;
    p->tasks = mix[i].tasks;
    p->gpus = mix[i].gpus;
    p->gpu_milli = mix[i].milli;
    p->procs = (int64_t)p->tasks * p->gpus * GPU_PROCS;
}

/* ---- kinds ------------------------------------------------------------------------------------------------------ */

/* clang-format off */
static const struct trace_kind {
    const char *name, *sentence;
    double (*gap)(struct random_stream *c);
    const unsigned char *day;
    unsigned weekend; /* percent of a working day */
    struct user_program (*program)(struct random_stream *c, const struct sim_generate *g);
    bool each; /* every job is drawn separately; otherwise from its user's programs */
} kinds[] = {
    {"lublin",  "sizes, run times and bursts after Lublin and Feitelson, with their daily cycle",
     gap_lublin,  day_lublin, 100, program_lublin, true },
    {"poisson", "submissions at any time with equal probability",
     gap_poisson, day_flat,   100, program_usual,  false},
    {"diurnal", "more by day than by night, fewer at the weekend",
     gap_poisson, day_office, 35,  program_usual,  false},
};
/* clang-format on */
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *sim_generate_at(size_t i, const char **ret_sentence)
{
    if (i >= KINDS)
        return NULL;
    if (ret_sentence)
        *ret_sentence = kinds[i].sentence;
    return kinds[i].name;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

struct trace_users {
    struct user_program *programs; /* indexed by [user][PROGRAMS] */
    double *shares;                /* cumulative share of each user, 0 to 1 */
};

/* Draws the users. The k-th user submits 1/k times as many jobs as the first. */
static struct trace_users users_draw(const struct sim_generate *g, const struct trace_kind *kind)
{
    struct random_stream c = random_stream_new(g->seed, STREAM_USERS);
    struct trace_users p = {mem_zarray(g->users * PROGRAMS, sizeof *p.programs),
                            mem_zarray(g->users, sizeof *p.shares)};
    double sum = 0;
    for (size_t i = 0; i < g->users; i++)
        p.shares[i] = sum += 1 / (double)(i + 1);
    for (size_t i = 0; i < g->users; i++)
        p.shares[i] /= sum;
    for (size_t i = 0; i < g->users * PROGRAMS; i++) {
        p.programs[i] = kind->program(&c, g);
        if (g->gpus)
            program_on_gpus(&c, g, &p.programs[i]);
    }
    return p;
}

static size_t user_draw(struct random_stream *c, const struct trace_users *p, size_t users)
{
    double x = draw_uniform(c);
    size_t low = 0, high = users - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->shares[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns a requested time: the next round time above the user's estimate, which is up to four times the run time. */
static int64_t request_s(struct random_stream *c, double run_s)
{
    static const int64_t round_s[] = {300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 345600};
    double thought = run_s * (1 + 3 * draw_uniform(c) * draw_uniform(c));
    for (size_t i = 0; i < sizeof round_s / sizeof *round_s; i++)
        if ((double)round_s[i] >= thought)
            return round_s[i];
    return 7 * 86400;
}

static struct sim_job job_draw(struct random_stream *c, const struct sim_generate *g, const struct trace_kind *kind,
                               const struct trace_users *people, struct intern *words)
{
    char user[32], name[48];
    size_t who = user_draw(c, people, g->users), what = random_below(c, PROGRAMS);
    struct user_program p = people->programs[who * PROGRAMS + what];
    double run_s = p.run_s * math_exp(0.4 * draw_normal(c));
    if (kind->each) {
        p = kind->program(c, g);
        run_s = p.run_s;
        if (g->gpus)
            program_on_gpus(c, g, &p);
    }
    (void)snprintf(user, sizeof user, "user%zu", who + 1);
    (void)snprintf(name, sizeof name, "user%zu-program%zu", who + 1, what + 1);
    struct sim_job job = {
        .run_ns = within(run_s + 0.5, 1, RUN_MAX_S) * SIM_SECOND_NS,
        .user = intern_put(words, user),
        .group = intern_put(words, who % 2 ? "group2" : "group1"),
        .name = intern_put(words, kind->each ? "" : name),
        .tasks = p.tasks,
        .cpu_milli = p.procs * 1000 / p.tasks,
        .gpus = p.gpus,
        .gpu_milli = p.gpu_milli,
    };
    job.request_ns = request_s(c, (double)job.run_ns / (double)SIM_SECOND_NS) * SIM_SECOND_NS;
    return job;
}

/* Returns the work of a job, in seconds of the whole machine. */
static double work_of(const struct sim_generate *g, const struct sim_job *job)
{
    double size = (double)job->tasks * (double)job->cpu_milli / 1000 / (double)g->procs;
    if (g->gpus)
        size = job->tasks * (job->gpu_milli ? job->gpu_milli / 1000.0 : job->gpus) / (double)g->gpus;
    return size * (double)job->run_ns / (double)SIM_SECOND_NS;
}

/* ---- arrivals --------------------------------------------------------------------------------------------------- */

/* Maps the x-th hour of uniform activity to an hour of a real week. */
static double hour_of(const struct trace_kind *kind, double x)
{
    double weights[DAYS * HOURS], sum = 0;
    for (size_t i = 0; i < DAYS * HOURS; i++)
        sum += weights[i] = kind->day[i % HOURS] * (i / HOURS >= 5 ? kind->weekend : 100);
    double weeks = (double)(int64_t)(x / (DAYS * HOURS)), left = (x - weeks * DAYS * HOURS) * sum / (DAYS * HOURS);
    size_t hour = 0;
    while (hour + 1 < DAYS * HOURS && left >= weights[hour])
        left -= weights[hour++];
    return weeks * DAYS * HOURS + (double)hour + left / weights[hour];
}

/* Sets arrival times that give the requested load: exactly for whole weeks, approximately for a part of a week. */
static void arrive(const struct sim_generate *g, const struct trace_kind *kind, struct sim_trace *t)
{
    struct random_stream c = random_stream_new(g->seed, STREAM_GAPS);
    double work = 0, sum = 0, at = 0;
    double *gaps = mem_zarray(t->len + 1, sizeof *gaps);
    for (size_t i = 0; i < t->len; i++) {
        work += work_of(g, &t->jobs[i]);
        gaps[i] = i ? kind->gap(&c) : 0;
        sum += gaps[i];
    }
    double hours = work / g->load / 3600;
    for (size_t i = 0; i < t->len; i++) {
        at += gaps[i];
        double x = sum > 0 ? at / sum * hours : 0;
        t->jobs[i].submit_ns = (int64_t)(hour_of(kind, x) * 3600) * SIM_SECOND_NS;
        t->jobs[i].id = (int64_t)i + 1;
    }
    mem_free(gaps);
}

static const struct trace_kind *kind_find(const char *name, struct berth_err *err)
{
    CLEANUP(str) struct str known = {0};
    for (size_t i = 0; i < KINDS; i++) {
        str_addf(&known, "%s%s", i ? ", " : "", kinds[i].name);
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    }
    (void)err_set(err, EINVAL, "there is no kind of trace \"%s\"; there are %s", name, str_text(&known));
    return NULL;
}

static int check(const struct sim_generate *g, struct berth_err *err)
{
    if (g->jobs == 0 || g->jobs > SIM_GENERATE_JOBS_MAX)
        return err_set(err, EINVAL, "%zu jobs; expected 1 to %d", g->jobs, SIM_GENERATE_JOBS_MAX);
    if (!(g->load > 0) || !(g->load <= 100))
        return err_set(err, EINVAL, "a load of %g; expected more than 0 and at most 100", g->load);
    if (g->procs < 1 || g->gpus < 0 || g->users < 1)
        return err_set(err, EINVAL, "a machine needs processors, and jobs users");
    return 0;
}

int sim_generate(const struct sim_generate *g, struct sim_trace *t, struct berth_err *err)
{
    const struct trace_kind *kind = kind_find(g->kind, err);
    int rc = kind ? check(g, err) : -EINVAL;
    if (rc || !kind)
        return rc;
    struct random_stream c = random_stream_new(g->seed, STREAM_JOBS);
    struct trace_users people = users_draw(g, kind);
    for (size_t i = 0; i < g->jobs; i++) {
        struct sim_job job = job_draw(&c, g, kind, &people, &t->words);
        sim_trace_add(t, &job);
    }
    arrive(g, kind, t);
    t->procs = g->procs;
    sim_trace_sort(t);
    mem_free(people.programs);
    mem_free(people.shares);
    return 0;
}
