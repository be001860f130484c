/* history_test.c - tests extraction of jobs, nodes and waiting times from a journal. */
#include <errno.h>

#include "base/mem.h"
#include "sim/trace/history.h"
#include "store/store_test.h"

#define S SIM_SECOND_NS
#define T0 INT64_C(1767225600) /* 2026-01-01 */

/* Commits one change at T0 + at_s. */
static void say(struct store *s, int64_t at_s, const char *key, const char *doc)
{
    CLEANUP(str) struct str text = {0};
    str_addf(&text, "{\"j\":2,\"kind\":\"t\",\"at\":%" PRId64 ",\"changes\":[[\"%s\",%s]]}", (T0 + at_s) * S, key, doc);
    assert_int_equal(COMMIT(s, OPS(PUT("k", "v")), .record = {text.at, text.len}).rc, 0);
}

#define TIME(minute) "\"2026-01-01T00:" minute ":00Z\""
#define JOB(id, owner, rest)                                                                                           \
    "{\"id\":" id ",\"name\":\"j" id "\",\"command\":[\"/bin/true\"],\"owner\":\"" owner                               \
    "\",\"generation\":1,\"v\":1,\"created\":" TIME("00") "," rest "}"
#define INSTANCE(id, job, ordinal, node, state, since, started)                                                        \
    "{\"id\":" id ",\"workload\":\"" job "\",\"ordinal\":" ordinal ",\"node\":\"" node "\",\"state\":\"" state         \
    "\",\"ready\":false,\"since\":" since ",\"started\":" started ",\"of\":1,\"v\":1}"

static struct store *journal_written(void)
{
    struct store *s = store_memory_new();
    say(s, 0, "nodes/n1", "{\"id\":\"n1\",\"allocatable\":{\"cpu\":4},\"state\":\"ready\",\"generation\":1,\"v\":1}");
    say(s, 0, "nodes/n2", "{\"id\":\"n2\",\"allocatable\":{\"cpu\":4},\"state\":\"drained\",\"generation\":1,\"v\":1}");
    say(s, 0, "nodes/n2", "{\"id\":\"n2\",\"allocatable\":{\"cpu\":8},\"state\":\"ready\",\"generation\":1,\"v\":1}");
    say(s, 0, "nodes/n3", "{\"id\":\"n3\",\"allocatable\":{\"cpu\":4},\"state\":\"ready\",\"generation\":1,\"v\":1}");
    say(s, 1, "nodes/n3", "null");
    /* Waited for two minutes, ran for three, and was deleted afterwards. */
    say(s, 2, "jobs/1", JOB("1", "ann", "\"requests\":{\"cpu\":\"4\"},\"time_limit\":\"1h\""));
    say(s, 120, "instances/1", INSTANCE("1", "1", "0", "n1", "running", TIME("02"), TIME("02")));
    say(s, 300, "jobs/1",
        JOB("1", "ann",
            "\"requests\":{\"cpu\":\"4\"},\"time_limit\":\"1h\",\"started\":" TIME("02") ",\"finished\":" TIME("05")));
    say(s, 301, "instances/1", "null");
    say(s, 302, "jobs/1", "null");
    /* Two tasks that need not start together: each becomes a job. */
    say(s, 303, "jobs/2", JOB("2", "bob", "\"requests\":{\"cpu\":\"2\"},\"replicas\":2"));
    say(s, 304, "instances/2", INSTANCE("2", "2", "0", "n1", "ended", TIME("07"), TIME("06")));
    say(s, 305, "instances/3", INSTANCE("3", "2", "1", "n2", "running", TIME("08"), TIME("08")));
    /* Never ran. */
    say(s, 306, "jobs/3", JOB("3", "bob", "\"requests\":{\"cpu\":\"2\"}"));
    say(s, 600, "jobs/4", JOB("4", "eve", "\"requests\":{\"cpu\":\"2\"}"));
    return s;
}

static int read_history(struct store *s, const struct sim_exclusion *drops, size_t len, struct sim_history *h,
                        struct berth_err *err)
{
    struct journal *j = journal_of_store(s);
    struct sim_history_options o = {.drops = drops, .drops_len = len};
    int rc = sim_history_read(j, &o, h, err);
    journal_close(j);
    return rc;
}

static void jobs_and_nodes_are_found(void **state)
{
    (void)state;
    struct store *s = journal_written();
    struct sim_history h;
    struct berth_err err = {0};
    if (read_history(s, NULL, 0, &h, &err))
        fail_msg("%s", err.text);
    assert_int_equal(h.fleet.nodes.len, 2);
    assert_int_equal(sim_fleet_total(&h.fleet).cpu_milli, 12000);
    assert_int_equal(h.fleet.nodes.at[1].state, BERTH_NODE_READY);
    assert_int_equal(h.unrun, 2);
    assert_int_equal(h.running, 1);
    assert_int_equal(h.trace.len, 3);
    static const struct {
        int64_t id, wait_s, run_s;
        uint32_t node;
    } want[] = {
        {1, 120, 180, 0},
        {2, 360, 60,  0},
        {2, 480, 120, 1}, /* until the end of the journal */
    };
    for (size_t i = 0; i < 3; i++) {
        const struct sim_job *job = &h.trace.jobs[i];
        assert_int_equal(job->id, want[i].id);
        assert_int_equal(job->submit_ns, T0 * S);
        assert_int_equal(h.runs[i].start_ns - job->submit_ns, want[i].wait_s * S);
        assert_int_equal(job->run_ns, want[i].run_s * S);
        assert_int_equal(h.places.at[h.runs[i].places].node, want[i].node);
        assert_int_equal(job->tasks, 1);
    }
    assert_int_equal(h.trace.jobs[0].request_ns, 3600 * S);
    assert_int_equal(h.trace.jobs[0].cpu_milli, 4000);
    assert_string_equal(sim_trace_text(&h.trace, h.trace.jobs[1].user), "bob");
    sim_history_done(&h);
    store_close(s);
}

static void recorded_past_is_a_side(void **state)
{
    (void)state;
    struct store *s = journal_written();
    struct sim_history h;
    struct sim_side side, other;
    struct berth_err err = {0};
    assert_int_equal(read_history(s, NULL, 0, &h, &err), 0);
    sim_history_side(&h, &side);
    assert_string_equal(side.label, "recorded");
    assert_true(side.done);
    assert_int_equal(side.summary.jobs, 3);
    assert_true(side.summary.mean_wait_s > 319.999 && side.summary.mean_wait_s < 320.001);
    /* 4 cores for 180 s, 2 for 60 s and 2 for 120 s, of 12 over 600 s. */
    assert_true(side.summary.utilisation > 1080.0 / 7200 - 1e-9 && side.summary.utilisation < 1080.0 / 7200 + 1e-9);
    assert_int_equal(side.out.capacity, 12000);
    assert_true(side.samples.len > 3);
    int64_t most = 0;
    for (size_t i = 0; i < side.out.points_len; i++)
        most = side.out.points[i].held > most ? side.out.points[i].held : most;
    assert_int_equal(most, 4000);
    assert_int_equal(side.out.points[side.out.points_len - 1].held, 0);
    assert_int_equal(side.out.points[0].waiting, 3);
    /* With the whole cluster no job had to wait. */
    struct sim_side_options p = {.trace = &h.trace, .fleet = &h.fleet, .seed = 1};
    if (sim_side_init(&other, "fcfs/easy", &h.fleet, &err) || sim_side_run(&other, &p, &err))
        fail_msg("%s", err.text);
    assert_int_equal(other.summary.jobs, 3);
    assert_true(other.summary.max_wait_s < 1e-9);
    sim_side_done(&side);
    sim_side_done(&other);
    sim_history_done(&h);
    store_close(s);
}

static void excluded_jobs_and_nodes_are_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *drop;
        size_t jobs, nodes, dropped;
    } rows[] = {
        {"user=ann", 2, 2, 1},
        {"user=bob", 1, 2, 2},
        {"name=j1",  2, 2, 1},
        {"node=n1",  3, 1, 0},
        {"queue=x",  3, 2, 0},
    };
    struct store *s = journal_written();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sim_history h;
        struct sim_exclusion drop;
        struct berth_err err = {0};
        char buf[256];
        assert_int_equal(sim_exclusion_parse(rows[i].drop, &drop, buf, &err), 0);
        if (read_history(s, &drop, 1, &h, &err))
            fail_msg("%s: %s", rows[i].drop, err.text);
        assert_int_equal(h.trace.len, rows[i].jobs);
        assert_int_equal(h.fleet.nodes.len, rows[i].nodes);
        assert_int_equal(h.dropped, rows[i].dropped);
        sim_history_done(&h);
    }
    store_close(s);
}

/* Tasks that start together are one job from the first start on; of a task that ran twice the last attempt counts. */
static void a_gang_is_one_job(void **state)
{
    (void)state;
    struct store *s = store_memory_new();
    struct sim_history h;
    struct berth_err err = {0};
    say(s, 0, "nodes/n1", "{\"id\":\"n1\",\"allocatable\":{\"cpu\":4},\"state\":\"ready\",\"generation\":1,\"v\":1}");
    say(s, 1, "jobs/5",
        JOB("5", "ann", "\"requests\":{\"cpu\":\"2\"},\"replicas\":2,\"gang\":true,\"finished\":" TIME("09")));
    say(s, 2, "instances/6", INSTANCE("6", "5", "0", "n1", "ended", TIME("02"), TIME("01")));
    say(s, 3, "instances/7", INSTANCE("7", "5", "0", "n1", "ended", TIME("09"), TIME("04")));
    say(s, 4, "instances/8", INSTANCE("8", "5", "1", "gone", "ended", TIME("08"), TIME("05")));
    if (read_history(s, NULL, 0, &h, &err))
        fail_msg("%s", err.text);
    assert_int_equal(h.trace.len, 1);
    assert_int_equal(h.trace.jobs[0].tasks, 2);
    assert_int_equal(h.runs[0].start_ns, (T0 + 240) * S);
    assert_int_equal(h.runs[0].end_ns, (T0 + 540) * S);
    assert_int_equal(h.runs[0].places_len, 2);
    assert_int_equal(h.places.at[0].node, 0);
    assert_int_equal(h.places.at[1].node, UINT32_MAX);
    sim_history_done(&h);
    store_close(s);
}

/* An elastic job with at most six tasks ran with two, later with four, on a cluster without room for more. */
static void elastic_jobs_are_replayed(void **state)
{
    (void)state;
    struct store *s = store_memory_new();
    struct sim_history h;
    struct sim_side recorded, other;
    struct berth_err err = {0};
    const char *const policies[] = {"berth", "fcfs/easy", "fcfs/none"};
    say(s, 0, "nodes/n1", "{\"id\":\"n1\",\"allocatable\":{\"cpu\":4},\"state\":\"ready\",\"generation\":1,\"v\":1}");
    say(s, 1, "jobs/5", JOB("5", "ann", "\"requests\":{\"cpu\":\"1\"},\"min\":2,\"max\":6,\"finished\":" TIME("11")));
    say(s, 2, "instances/6", INSTANCE("6", "5", "0", "n1", "ended", TIME("11"), TIME("01")));
    say(s, 3, "instances/7", INSTANCE("7", "5", "1", "n1", "ended", TIME("11"), TIME("01")));
    say(s, 4, "instances/8", INSTANCE("8", "5", "2", "n1", "ended", TIME("11"), TIME("05")));
    say(s, 5, "instances/9", INSTANCE("9", "5", "3", "n1", "ended", TIME("10"), TIME("05")));
    if (read_history(s, NULL, 0, &h, &err))
        fail_msg("%s", err.text);
    assert_int_equal(h.trace.len, 1);
    assert_int_equal(h.trace.jobs[0].tasks, 6);
    assert_int_equal(sim_job_min_tasks(&h.trace.jobs[0]), 2);
    sim_history_side(&h, &recorded);
    int64_t most = 0;
    for (size_t i = 0; i < recorded.out.points_len; i++)
        most = recorded.out.points[i].held > most ? recorded.out.points[i].held : most;
    assert_int_equal(most, 4000);
    assert_int_equal(recorded.out.points[recorded.out.points_len - 1].held, 0);
    /* 10, 10, 6 and 5 processor minutes, of 4 processors over 11 minutes. */
    assert_true(recorded.summary.utilisation > 31.0 / 44 - 1e-9 && recorded.summary.utilisation < 31.0 / 44 + 1e-9);
    struct sim_side_options p = {.trace = &h.trace, .fleet = &h.fleet, .seed = 1};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        if (sim_side_init(&other, policies[i], &h.fleet, &err) || sim_side_run(&other, &p, &err))
            fail_msg("%s: %s", policies[i], err.text);
        assert_int_equal(other.summary.jobs, 1);
        assert_true(other.summary.max_wait_s < 1e-9);
        /* Four tasks from start to end. */
        assert_true(other.summary.utilisation > 1 - 1e-9 && other.summary.utilisation < 1 + 1e-9);
        sim_side_done(&other);
    }
    sim_side_done(&recorded);
    sim_history_done(&h);
    store_close(s);
}

static void empty_journal_is_reported(void **state)
{
    (void)state;
    struct store *s = store_memory_new();
    struct sim_history h;
    struct sim_exclusion drop;
    struct berth_err err = {0};
    char buf[256];
    say(s, 0, "nodes/n1", "{\"id\":\"n1\",\"allocatable\":{\"cpu\":4},\"state\":\"ready\",\"generation\":1,\"v\":1}");
    assert_int_equal(read_history(s, NULL, 0, &h, &err), -ENOENT);
    assert_non_null(strstr(err.text, "no job that ran"));
    assert_int_equal(sim_exclusion_parse("ann", &drop, buf, &err), -EINVAL);
    assert_int_equal(sim_exclusion_parse("use=ann", &drop, buf, &err), -EINVAL);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_and_nodes_are_found),
        cmocka_unit_test(recorded_past_is_a_side),
        cmocka_unit_test(excluded_jobs_and_nodes_are_left_out),
        cmocka_unit_test(a_gang_is_one_job),
        cmocka_unit_test(elastic_jobs_are_replayed),
        cmocka_unit_test(empty_journal_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
