/* metrics.c - the table of metrics, their values and the output format. */
#include "control/system/metrics.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"
#include "berth.h"
#include "control/kind/kind.h"
#include "control/system/alarm.h"

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };

struct metric_row {
    const char *name;
    enum metric_kind kind;
    const char *help;
    const char *label; /* NULL: a single value */
    const char *(*label_text)(unsigned label);
    unsigned labels_len, labels_from; /* labels are labels_from and up */
};

/* Upper bounds in ns; the last bucket has none. */
static const int64_t bounds_ns[] = {100000,     250000,     500000,     1000000,     2500000,    5000000,
                                    10000000,   25000000,   50000000,   100000000,   250000000,  500000000,
                                    1000000000, 2500000000, 5000000000, 10000000000, 60000000000};
enum { BOUNDS = sizeof bounds_ns / sizeof *bounds_ns, LABELS_MAX = 32 };

struct histogram {
    uint64_t buckets[BOUNDS + 1], count;
    uint64_t sum_ns;
};

struct metrics {
    uint64_t counters[METRICS][LABELS_MAX];
    double gauges[METRICS][LABELS_MAX];
    struct histogram histograms[METRICS];
};

static const char *class_text(unsigned label)
{
    static const char *const texts[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
    return texts[label - 1];
}

static const char *commit_text(unsigned label)
{
    static const char *const texts[] = {"ok", "conflict", "failed"};
    return texts[label];
}

static const char *cycle_text(unsigned label)
{
    static const char *const texts[] = {"planned", "unchanged_state", "unchanged_plan"};
    return texts[label];
}

static const char *report_text(unsigned label)
{
    static const char *const texts[] = {"taken", "stale"};
    return texts[label];
}

static const char *op_text(unsigned label)
{
    return berth_op_name((enum berth_op)label);
}

static const char *state_text(unsigned label)
{
    return berth_state_name((enum berth_state)label);
}

static const char *node_state_text(unsigned label)
{
    return berth_node_state_name((enum berth_node_state)label);
}

static const char *kind_text(unsigned label)
{
    return kinds[label].name;
}

static const struct metric_row rows[METRICS] = {
    [METRIC_REQUESTS] = {"berth_requests_total",                        COUNTER,                               "Requests answered, by status class.",                                "class", class_text, 5,
                         1},
    [METRIC_REQUEST_SECONDS] = {"berth_request_seconds",                                   HISTOGRAM,
                         "Time from the arrival of a request to its response."                                                                                                                                                         },
    [METRIC_COMMITS] = {"berth_commits_total",                       COUNTER,
                         "Transactions "
                        "submitted to "
                        "the store, by "
                        "result.",                                                                                                      "result", commit_text, 3},
    [METRIC_COMMIT_SECONDS] = {"berth_commit_seconds",                         HISTOGRAM,
                         "Time from the submission of a transaction until it is durable."                                                                                                                                                  },
    [METRIC_CYCLES] = {"berth_cycles_total",                                  COUNTER,
                         "Rounds of the scheduling loop; unchanged ones stopped before or after planning.",                                                                                                                                          "result",
                         cycle_text, 3},
    [METRIC_CYCLE_SECONDS] = {"berth_cycle_seconds",            HISTOGRAM,                     "Time of one snapshot and one plan."},
    [METRIC_ACTIONS] = {"berth_actions_total",     COUNTER,    "Actions of plans that were committed.","op", op_text,
                         BERTH_ADJUST + 1},
    [METRIC_PLACE_SECONDS] = {"berth_place_seconds",                                            HISTOGRAM,
                         "Time from the submission of a workload until the placement of a pod is durable."                                                                                                                                },
    [METRIC_UNITS_CONFLICT] = {"berth_unit_conflicts_total",         COUNTER,
                         "Commit batches of plans that met a conflict and were planned again."                                                                                                                                   },
    [METRIC_PENDING] = {"berth_pending_pods",      GAUGE,
                         "Pending pods "
                        "after the last "
                        "plan."                                                                                                                                                                          },
    [METRIC_NODES] = {"berth_nodes",                                             GAUGE,                                                              "Nodes, by state.",                                                                              "state", node_state_text, BERTH_NODE_LOST + 1},
    [METRIC_INSTANCES] = {"berth_instances",                                             GAUGE,                                                       "Instances, by state.","state", state_text, BERTH_ENDED + 1},
    [METRIC_OBJECTS] = {"berth_objects",                                             GAUGE,                                                               "Objects in the store, by kind.","kind", kind_text, KINDS},
    [METRIC_REVISION] = {"berth_store_revision",                                             GAUGE,                                                                      "Revision of the last change."},
    [METRIC_STORE_BYTES] = {"berth_store_bytes",                                      GAUGE,                                                            "Size of the store."                               },
    [METRIC_WATCHERS] = {"berth_watchers",                             GAUGE,                 "Open watches."        },
    [METRIC_REPORTS] = {"berth_reports_total",                                   COUNTER,                                                         "Reports of agents; stale ones are ignored.",                                                                                                                             "result",
                         report_text, 2},
    [METRIC_CLOCK_AHEAD] = {"berth_clock_ahead_seconds",GAUGE,
                         "How far the system clock is ahead of the time that berthd uses."           },
    [METRIC_ALARM] = {"berth_alarm",                                        GAUGE,                                                                             "1 while this alarm is active.",                                                                                                                            "alarm", alarm_name, ALARMS},
    [METRIC_AUTH_FAILURES] = {"berth_auth_failures_total",               COUNTER,"Requests without a valid token."                                                                                                                  },
    [METRIC_RATE_LIMITED] = {"berth_rate_limited_total",                         COUNTER,
                         "Requests rejected "
                             "by rate limits."                        },
    [METRIC_JOURNAL_SEGMENTS] = {"berth_journal_segments_total",                              COUNTER,                                                   "Segments of the journal that were created."                                                                                          },
    [METRIC_JOURNAL_SECONDS] = {"berth_journal_seconds", HISTOGRAM,
                         "Processor time spent on creating segments, per run."                                                                                                                                               },
};
static_assert((int)KINDS <= (int)LABELS_MAX, "every kind needs a place");

struct metrics *metrics_new(void)
{
    return mem_zalloc(sizeof(struct metrics));
}

void metrics_free(struct metrics *m)
{
    mem_free(m);
}

/* Returns the index of a label's value. A label that is not in the table is a bug of the caller. */
static unsigned label_slot(enum metric metric, enum metric_kind kind, unsigned label)
{
    const struct metric_row *row = &rows[metric];

    assert(row->kind == kind);
    assert(row->label ? label >= row->labels_from && label - row->labels_from < row->labels_len : label == 0);
    return label - row->labels_from;
}

void metric_add(struct metrics *m, enum metric metric, unsigned label, uint64_t n)
{
    m->counters[metric][label_slot(metric, COUNTER, label)] += n;
}

void metric_set(struct metrics *m, enum metric metric, unsigned label, double value)
{
    m->gauges[metric][label_slot(metric, GAUGE, label)] = value;
}

void metric_observe(struct metrics *m, enum metric metric, int64_t ns)
{
    struct histogram *h = &m->histograms[metric];
    size_t bucket = 0;

    assert(rows[metric].kind == HISTOGRAM);
    if (ns < 0) /* a clock that jumped; the event still counts */
        ns = 0;
    while (bucket < BOUNDS && ns > bounds_ns[bucket])
        bucket++;
    h->buckets[bucket]++;
    h->count++;
    h->sum_ns += (uint64_t)ns;
}

/* Writes whole numbers without an exponent, for readability. */
static void value_write(struct str *to, double value)
{
    if (fabs(value) < 9007199254740992.0 && value == (double)(int64_t)value)
        str_addf(to, "%lld\n", (long long)value);
    else
        str_addf(to, "%.17g\n", value);
}

static void seconds_write(struct str *to, uint64_t ns)
{
    str_addf(to, "%llu.%09llu", (unsigned long long)(ns / 1000000000), (unsigned long long)(ns % 1000000000));
}

static void histogram_write(struct str *to, const char *name, const struct histogram *h)
{
    uint64_t below = 0;

    for (size_t i = 0; i < BOUNDS; i++) {
        below += h->buckets[i];
        str_addf(to, "%s_bucket{le=\"%g\"} %llu\n", name, (double)bounds_ns[i] / 1e9, (unsigned long long)below);
    }
    str_addf(to, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum ", name, (unsigned long long)h->count, name);
    seconds_write(to, h->sum_ns);
    str_addf(to, "\n%s_count %llu\n", name, (unsigned long long)h->count);
}

static void values_write(const struct metrics *m, enum metric metric, struct str *to)
{
    const struct metric_row *row = &rows[metric];

    for (unsigned i = 0; i < (row->label ? row->labels_len : 1); i++) {
        str_add(to, row->name);
        if (row->label)
            str_addf(to, "{%s=\"%s\"}", row->label, row->label_text(i + row->labels_from));
        str_add_char(to, ' ');
        if (row->kind == COUNTER)
            str_addf(to, "%llu\n", (unsigned long long)m->counters[metric][i]);
        else
            value_write(to, m->gauges[metric][i]);
    }
}

void metrics_write(const struct metrics *m, struct str *to)
{
    static const char *const kind_names[] = {"counter", "gauge", "histogram"};

    str_add(to, "# HELP berth_build_info The version that runs.\n# TYPE berth_build_info gauge\n");
    str_addf(to, "berth_build_info{version=\"%s\"} 1\n", berth_version());
    for (enum metric i = 0; i < METRICS; i++) {
        str_addf(to, "# HELP %s %s\n# TYPE %s %s\n", rows[i].name, rows[i].help, rows[i].name,
                 kind_names[rows[i].kind]);
        if (rows[i].kind == HISTOGRAM)
            histogram_write(to, rows[i].name, &m->histograms[i]);
        else
            values_write(m, i, to);
    }
}
