#include "bench/plan/case.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli/lib/cli.h"

enum { BENCH_KEEP = 32 << 20 }; /* like a program that plans repeatedly */

/* One timed run, with its plan and snapshot. */
struct lap {
    double freeze, plan, actions;
    uint64_t checksum;
    struct berth_snapshot *snapshot;
    struct berth_plan *made;
};

static void lap_done(struct lap *lap)
{
    berth_plan_free(lap->made);
    berth_snapshot_free(lap->snapshot);
    *lap = (struct lap){0};
}

static void lap_cleanup(struct lap *lap)
{
    lap_done(lap);
}

static void cluster_cleanup(struct berth_cluster **cluster)
{
    berth_cluster_free(*cluster);
}

static double seconds_since(int64_t *from_ns)
{
    int64_t now_ns = cli_clock_ns();
    double seconds = (double)(now_ns - *from_ns) / 1e9;
    *from_ns = now_ns;
    return seconds;
}

static uint64_t actions_read(const struct berth_plan *plan)
{
    size_t len = berth_plan_actions(plan);
    uint64_t sum = len;

    for (size_t i = 0; i < len; i++) {
        struct berth_action action = berth_plan_action(plan, i);
        sum = hash_pair(sum, action.ordinal + ((uint64_t)action.op << 32) + (uint64_t)(unsigned char)action.node[0] +
                                 (uint64_t)(unsigned char)action.workload[0]);
    }
    return sum;
}

static int lap_run(struct berth_cluster *cluster, const struct bench_size *size, struct lap *ret, struct berth_err *err)
{
    struct berth_policy policy = {0};
    int64_t clock_ns = cli_clock_ns();

    lap_done(ret);
    ret->snapshot = berth_freeze(cluster, BENCH_NOW_NS, size->seed);
    ret->freeze = seconds_since(&clock_ns);
    int rc = berth_plan_make(ret->snapshot, &policy, &ret->made, err);
    if (rc != 0)
        return rc;
    ret->plan = seconds_since(&clock_ns);
    ret->checksum = actions_read(ret->made);
    ret->actions = seconds_since(&clock_ns);
    return 0;
}

static struct bench_times times_of(double *at, size_t len)
{
    struct bench_times times = {.first = at[0]};

    for (size_t i = 1; i < len; i++) {
        double x = at[i];
        size_t j = i;
        for (; j > 0 && at[j - 1] > x; j--)
            at[j] = at[j - 1];
        at[j] = x;
    }
    times.min = at[0];
    times.max = at[len - 1];
    times.median = len % 2 ? at[len / 2] : (at[len / 2 - 1] + at[len / 2]) / 2;
    return times;
}

static uint64_t rss_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* Plans `runs` times; *lap is the last run, and *cluster its cluster. */
static int plan_runs(const struct bench_case *c, struct berth_cluster **cluster, struct lap *lap,
                     struct bench_result *ret, struct berth_err *err)
{
    CLEANUP(mem) double *all = mem_array(4 * c->runs, sizeof *all);
    double *freeze = all + c->runs, *plan = freeze + c->runs, *actions = plan + c->runs;

    for (size_t i = 0; i < c->runs; i++) {
        if (!*cluster || c->fresh) {
            lap_done(lap);
            berth_cluster_free(take_ptr(cluster));
            int rc = bench_cluster_make(&c->size, cluster, err);
            if (rc != 0)
                return rc;
        }
        int rc = lap_run(*cluster, &c->size, lap, err);
        if (rc != 0)
            return rc;
        freeze[i] = lap->freeze;
        plan[i] = lap->plan;
        actions[i] = lap->actions;
        all[i] = lap->freeze + lap->plan + lap->actions;
    }
    ret->all = times_of(all, c->runs);
    ret->freeze = times_of(freeze, c->runs);
    ret->plan = times_of(plan, c->runs);
    ret->actions = times_of(actions, c->runs);
    ret->stats = berth_plan_stats(lap->made);
    ret->hash = berth_plan_hash(lap->made);
    ret->checksum = lap->checksum;
    ret->rss_bytes = rss_peak();
    return 0;
}

/* Adds `len` pods to a cluster whose other pods are all placed; removes them before the next run. */
static int more_runs(const struct bench_case *c, struct berth_cluster *cluster, uint64_t len, struct bench_times *ret,
                     struct berth_err *err)
{
    CLEANUP(mem) double *seconds = mem_array(c->runs, sizeof *seconds);
    CLEANUP(lap) struct lap lap = {0};

    for (size_t i = 0; i < c->runs; i++) {
        int rc = bench_more_put(cluster, len, err);
        if (rc == 0)
            rc = lap_run(cluster, &c->size, &lap, err);
        if (rc != 0)
            return rc;
        seconds[i] = lap.freeze + lap.plan + lap.actions;
        size_t actions = berth_plan_actions(lap.made);
        if (actions != len || berth_plan_action(lap.made, 0).op != BERTH_PLACE)
            return err_set(err, ENOSPC, "%" PRIu64 " more pods should be as many placements, not %zu actions", len,
                           actions);
        rc = bench_more_remove(cluster, len, err);
        if (rc != 0)
            return rc;
    }
    *ret = times_of(seconds, c->runs);
    return 0;
}

/* Checks the invariants of the applied plan, and that a second plan is empty. */
static int check(const struct bench_case *c, struct berth_cluster *cluster, struct bench_result *ret,
                 struct berth_err *err)
{
    CLEANUP(lap) struct lap lap = {0};
    struct berth_err breach;

    size_t over = berth_nodes_over_capacity(cluster);
    snprintf(ret->audit, sizeof ret->audit, "%s", berth_audit(cluster, &breach) == 0 ? "ok" : breach.text);
    if (over)
        snprintf(ret->audit, sizeof ret->audit, "%zu nodes are over-allocated", over);
    int rc = lap_run(cluster, &c->size, &lap, err);
    if (rc != 0)
        return rc;
    ret->fixpoint = berth_plan_actions(lap.made) == 0;
    ret->audited = true;
    return 0;
}

int bench_case_run(const struct bench_case *c, struct bench_result *ret, struct berth_err *err)
{
    __attribute__((cleanup(cluster_cleanup))) struct berth_cluster *cluster = NULL;
    CLEANUP(lap) struct lap lap = {0};
    struct bench_result result = {.audit = "skipped"};

    int rc = plan_runs(c, &cluster, &lap, &result, err);
    if (rc == 0 && (c->one_more || c->many_more || !c->no_audit))
        rc = berth_apply(cluster, lap.made, 1, err);
    lap_done(&lap);
    if (rc == 0 && c->one_more)
        rc = more_runs(c, cluster, 1, &result.one_more, err);
    if (rc == 0 && c->many_more)
        rc = more_runs(c, cluster, BENCH_MANY, &result.many_more, err);
    if (rc == 0 && !c->no_audit)
        rc = check(c, cluster, &result, err);
    result.rss_total_bytes = rss_peak();
    if (rc == 0)
        *ret = result;
    return rc;
}

/* The result that a child process sends. */
struct child_result {
    int rc;
    struct bench_result result;
    struct berth_err err;
};

static ssize_t child_result_read(int fd, struct child_result *child_result)
{
    size_t have = 0;

    while (have < sizeof *child_result) {
        ssize_t n = read(fd, (char *)child_result + have, sizeof *child_result - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

int bench_case_fork(const struct bench_case *c, struct bench_result *ret, struct berth_err *err)
{
    CLEANUP(mem) struct child_result *child_result = mem_zalloc(sizeof *child_result);
    int fds[2], status;

    if (pipe(fds) != 0)
        return err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        int code = errno;
        close(fds[0]);
        close(fds[1]);
        return err_set(err, code, "cannot start a process: %s", strerror(code));
    }
    if (child == 0) {
        mem_keep_freed(BENCH_KEEP);
        child_result->rc = bench_case_run(c, &child_result->result, &child_result->err);
        bool sent = write(fds[1], child_result, sizeof *child_result) == (ssize_t)sizeof *child_result;
        _exit(sent ? 0 : 1);
    }
    close(fds[1]);
    bool whole = child_result_read(fds[0], child_result) == (ssize_t)sizeof *child_result;
    close(fds[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!whole && WIFSIGNALED(status))
        return err_set(err, ECHILD, "the measuring process was killed by signal %d (%s); is there enough memory?",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (!whole)
        return err_set(err, ECHILD, "the measuring process exited with status %d", WEXITSTATUS(status));
    if (child_result->rc == 0)
        *ret = child_result->result;
    else if (err)
        *err = child_result->err;
    return child_result->rc;
}

bool bench_result_sound(const struct bench_result *r)
{
    return !r->audited || (strcmp(r->audit, "ok") == 0 && r->fixpoint);
}

static void times_json(json_t *object, const char *prefix, const struct bench_times *times)
{
    const struct {
        const char *name;
        double seconds;
    } fields[] = {
        {"median", times->median},
        {"min",    times->min   },
        {"max",    times->max   },
        {"first",  times->first }
    };
    char key[64];

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        snprintf(key, sizeof key, "%sseconds_%s", prefix, fields[i].name);
        json_object_set_new(object, key, json_real(fields[i].seconds));
    }
}

json_t *bench_case_json(const struct bench_case *c, const struct bench_result *r)
{
    char hash[20];
    json_t *object = json_object();

    snprintf(hash, sizeof hash, "%016" PRIx64, r->hash);
    times_json(object, "", &r->all);
    json_object_set_new(object, "freeze_seconds_median", json_real(r->freeze.median));
    json_object_set_new(object, "plan_seconds_median", json_real(r->plan.median));
    json_object_set_new(object, "actions_seconds_median", json_real(r->actions.median));
    if (c->one_more)
        times_json(object, "one_more_", &r->one_more);
    if (c->many_more)
        times_json(object, "many_more_", &r->many_more);
    const struct {
        const char *key;
        uint64_t n;
    } counts[] = {
        {"rss_bytes",       r->rss_bytes          },
        {"rss_total_bytes", r->rss_total_bytes    },
        {"placed",          r->stats.placed       },
        {"unplaced",        r->stats.unplaced     },
        {"nodes",           c->size.nodes         },
        {"pods",            c->size.pods          },
        {"workloads",       c->size.workloads     },
        {"shapes",          c->size.shapes        },
        {"seed",            c->size.seed          },
        {"runs",            c->runs               },
        {"searches",        r->stats.searches     },
        {"blocks_opened",   r->stats.blocks_opened},
        {"blocks",          r->stats.blocks       },
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        json_object_set_new(object, counts[i].key, json_integer((json_int_t)counts[i].n));
    json_object_set_new(object, "gpu", json_boolean(c->size.gpu));
    json_object_set_new(object, "constraints", json_boolean(c->size.constraints));
    json_object_set_new(object, "hash", json_string(hash));
    json_object_set_new(object, "audit", json_string(r->audit));
    if (r->audited)
        json_object_set_new(object, "fixpoint", json_boolean(r->fixpoint));
    return object;
}
