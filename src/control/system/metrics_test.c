#include "control/system/metrics.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "berth.h"
#include "control/kind/kind.h"

static bool has_line(const struct str *text, const char *line)
{
    size_t len = strlen(line);

    for (const char *at = str_text(text); (at = strstr(at, line)); at++) {
        if ((at == str_text(text) || at[-1] == '\n') && at[len] == '\n')
            return true;
    }
    return false;
}

static void values_are_printed(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    CLEANUP(str) struct str text = {0};

    metric_add(m, METRIC_REQUESTS, 2, 3);
    metric_add(m, METRIC_REQUESTS, 2, 4);
    metric_add(m, METRIC_REQUESTS, 5, 1);
    metric_add(m, METRIC_COMMITS, 1, 2);
    metric_add(m, METRIC_CYCLES, 2, 9);
    metric_add(m, METRIC_ACTIONS, BERTH_STOP, 6);
    metric_add(m, METRIC_AUTH_FAILURES, 0, 1);
    metric_set(m, METRIC_PENDING, 0, 12345678);
    metric_set(m, METRIC_NODES, BERTH_NODE_LOST, 2);
    metric_set(m, METRIC_NODES, BERTH_NODE_LOST, 1);
    metric_set(m, METRIC_OBJECTS, KIND_JOB, 17);
    metric_set(m, METRIC_STORE_BYTES, 0, 0.5);
    metric_add(m, METRIC_REPORTS, 1, 4);
    metrics_write(m, &text);

    assert_true(has_line(&text, "berth_requests_total{class=\"2xx\"} 7"));
    assert_true(has_line(&text, "berth_requests_total{class=\"5xx\"} 1"));
    assert_true(has_line(&text, "berth_requests_total{class=\"1xx\"} 0"));
    assert_true(has_line(&text, "berth_commits_total{result=\"conflict\"} 2"));
    assert_true(has_line(&text, "berth_cycles_total{result=\"unchanged_plan\"} 9"));
    assert_true(has_line(&text, "berth_actions_total{op=\"stop\"} 6"));
    assert_true(has_line(&text, "berth_auth_failures_total 1"));
    assert_true(has_line(&text, "berth_pending_pods 12345678"));
    assert_true(has_line(&text, "berth_nodes{state=\"lost\"} 1"));
    assert_true(has_line(&text, "berth_objects{kind=\"job\"} 17"));
    assert_true(has_line(&text, "berth_store_bytes 0.5"));
    assert_true(has_line(&text, "berth_reports_total{result=\"stale\"} 4"));
    assert_true(has_line(&text, "# TYPE berth_requests_total counter"));
    assert_true(has_line(&text, "# TYPE berth_nodes gauge"));
    metrics_free(m);
}

static void buckets_are_cumulative(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    CLEANUP(str) struct str text = {0};

    metric_observe(m, METRIC_REQUEST_SECONDS, -5); /* a clock that went back */
    metric_observe(m, METRIC_REQUEST_SECONDS, 100000);
    metric_observe(m, METRIC_REQUEST_SECONDS, 100001);
    metric_observe(m, METRIC_REQUEST_SECONDS, INT64_C(3) * 1000000000);
    metric_observe(m, METRIC_REQUEST_SECONDS, INT64_C(3600) * 1000000000);
    metrics_write(m, &text);

    assert_true(has_line(&text, "# TYPE berth_request_seconds histogram"));
    assert_true(has_line(&text, "berth_request_seconds_bucket{le=\"0.0001\"} 2"));
    assert_true(has_line(&text, "berth_request_seconds_bucket{le=\"0.00025\"} 3"));
    assert_true(has_line(&text, "berth_request_seconds_bucket{le=\"2.5\"} 3"));
    assert_true(has_line(&text, "berth_request_seconds_bucket{le=\"5\"} 4"));
    assert_true(has_line(&text, "berth_request_seconds_bucket{le=\"60\"} 4"));
    assert_true(has_line(&text, "berth_request_seconds_bucket{le=\"+Inf\"} 5"));
    assert_true(has_line(&text, "berth_request_seconds_count 5"));
    assert_true(has_line(&text, "berth_request_seconds_sum 3603.000200001"));
    assert_true(has_line(&text, "berth_commit_seconds_count 0"));
    metrics_free(m);
}

/* Every metric appears once, with help and type, and without duplicate labels. */
static void metrics_table_is_complete(void **state)
{
    (void)state;
    struct metrics *m = metrics_new();
    CLEANUP(str) struct str text = {0};
    size_t types = 0, helps = 0;

    metrics_write(m, &text);
    for (const char *at = str_text(&text); *at; at = strchr(at, '\n') + 1) {
        size_t len = strcspn(at, "\n");
        types += strncmp(at, "# TYPE berth_", 13) == 0;
        helps += strncmp(at, "# HELP berth_", 13) == 0;
        assert_true(*at == '#' || strncmp(at, "berth_", 6) == 0);
        CLEANUP(str) struct str name = {0};
        str_add_bytes(&name, at, *at == '#' ? len : strcspn(at, " "));
        str_add_char(&name, *at == '#' ? '\n' : ' ');
        assert_null(strstr(at + len + 1, str_text(&name)));
        assert_null(strstr(at, "(null)"));
    }
    assert_int_equal(types, METRICS + 1); /* one more for berth's build information */
    assert_int_equal(helps, METRICS + 1);
    metrics_free(m);
}

static void promtool_accepts_it(void **state)
{
    (void)state;
    if (system("command -v promtool >/dev/null 2>&1") != 0) {
        print_message("skip: there is no promtool (package prometheus)\n");
        skip();
    }
    struct metrics *m = metrics_new();
    CLEANUP(str) struct str text = {0};

    metric_observe(m, METRIC_CYCLE_SECONDS, 12345);
    metric_set(m, METRIC_STORE_BYTES, 0, 1e300);
    metrics_write(m, &text);
    FILE *to = popen("promtool check metrics", "w");
    assert_non_null(to);
    assert_int_equal(fwrite(text.at, 1, text.len, to), text.len);
    assert_int_equal(pclose(to), 0);
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_printed),
        cmocka_unit_test(buckets_are_cumulative),
        cmocka_unit_test(metrics_table_is_complete),
        cmocka_unit_test(promtool_accepts_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
