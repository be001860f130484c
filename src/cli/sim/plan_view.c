#include "cli/sim/plan_view.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/job/pods.h"
#include "cli/lib/human.h"
#include "cli/lib/table.h"
#include "cli/sim/fold.h"
#include "wire/text/quantity.h"

enum {
    ROWS_MAX = 40,    /* one screen; more rows are grouped */
    PENDING_MAX = 20, /* workloads printed in full */
    PART_ROWS = 4096, /* rows per part of a long table */
    NOTE_MAX = 160,
    INSTANCE_WIDTH = 10, /* of ids in a long table */
    RANGES_MAX = 24,
    CAUSES_MAX = BERTH_CAUSE_OUTDATED + 1,
    OPS_MAX = BERTH_ADJUST + 1,
};

static enum color op_color(enum berth_op op)
{
    static const enum color colors[OPS_MAX] = {
        [BERTH_PLACE] = COLOR_GREEN, [BERTH_RESERVE] = COLOR_YELLOW, [BERTH_PROMOTE] = COLOR_GREEN,
        [BERTH_STOP] = COLOR_RED,    [BERTH_LOSE] = COLOR_RED,       [BERTH_ADJUST] = COLOR_BLUE,
    };
    return colors[op];
}

const char *action_note(const struct berth_action *action, char *buf, size_t size)
{
    char amount[QUANTITY_TEXT_MAX];
    size_t at = 0;

    buf[0] = '\0';
    if (action->op == BERTH_ADJUST && action->resource)
        at += (size_t)snprintf(buf, size, "%s limit %s", action->resource,
                               quantity_print(action->resource, action->limit, amount));
    if (action->replaces && at < size)
        at += (size_t)snprintf(buf + at, size - at, "replaces #%" PRIu64, action->replaces);
    for (size_t i = 0; i < action->waits_len && at < size; i++) {
        if (i == 4) {
            snprintf(buf + at, size - at, " and %zu more", action->waits_len - i);
            break;
        }
        at += (size_t)snprintf(buf + at, size - at, "%s#%" PRIu64,
                               i    ? ", "
                               : at ? ", waits for "
                                    : "waits for ",
                               action->waits[i]);
    }
    return buf;
}

enum { COLUMN_ACTION, COLUMN_POD, COLUMN_NODE, COLUMN_GPUS, COLUMN_CAUSE, COLUMN_INSTANCE, COLUMNS };

static const struct table_column table_columns[COLUMNS] = {
    [COLUMN_ACTION] = {"ACTION",   TABLE_PLAIN, 0},
      [COLUMN_POD] = {"POD",      TABLE_PLAIN, 0},
    [COLUMN_NODE] = {"NODE",     TABLE_PLAIN, 0},
      [COLUMN_GPUS] = {"GPU IDS",  TABLE_PLAIN, 0},
    [COLUMN_CAUSE] = {"CAUSE",    TABLE_WRAP,  0},
      [COLUMN_INSTANCE] = {"INSTANCE", TABLE_RIGHT, 0},
};

/* Omits the columns of GPUs and instances if no action has any. */
static void columns_init(const struct berth_plan *plan, struct table_column *columns)
{
    size_t len = berth_plan_actions(plan);
    bool gpus = false, instances = false;

    for (size_t i = 0; i < len && !(gpus && instances); i++) {
        struct berth_action action = berth_plan_action(plan, i);
        gpus |= action.gpus != 0;
        instances |= action.instance != 0;
    }
    memcpy(columns, table_columns, sizeof table_columns);
    columns[COLUMN_GPUS].flags |= gpus ? 0 : TABLE_HIDDEN;
    columns[COLUMN_INSTANCE].flags |= instances ? 0 : TABLE_HIDDEN;
}

static void row_print(struct table *table, const struct berth_action *action)
{
    char note[NOTE_MAX];

    table_cell(table, COLUMN_ACTION, op_color(action->op), "%s", berth_op_name(action->op));
    action_note(action, note, sizeof note);
    table_cell(table, COLUMN_CAUSE, COLOR_NONE, "%s%s%s", berth_cause_name(action->cause), *note ? ": " : "", note);
}

static size_t at_least(size_t width, size_t other)
{
    return width > other ? width : other;
}

/* Measures the widths that all parts of one table use. */
static void columns_measure(const struct berth_plan *plan, struct table_column *columns)
{
    size_t len = berth_plan_actions(plan);

    for (size_t i = 0; i < COLUMNS; i++)
        columns[i].width = strlen(columns[i].name) + 1;
    columns[COLUMN_INSTANCE].width = INSTANCE_WIDTH;
    for (size_t i = 0; i < len; i++) {
        struct berth_action action = berth_plan_action(plan, i);
        char text[NOTE_MAX];
        size_t pod = strlen(action.workload) + 1 + (size_t)snprintf(text, sizeof text, "%" PRIu32, action.ordinal);
        columns[COLUMN_ACTION].width = at_least(columns[COLUMN_ACTION].width, strlen(berth_op_name(action.op)));
        columns[COLUMN_POD].width = at_least(columns[COLUMN_POD].width, pod);
        columns[COLUMN_NODE].width = at_least(columns[COLUMN_NODE].width, action.node ? strlen(action.node) : 0);
        if (action.gpus)
            columns[COLUMN_GPUS].width =
                at_least(columns[COLUMN_GPUS].width, strlen(bits_print(action.gpus, text, sizeof text)));
        size_t note = strlen(action_note(&action, text, sizeof text));
        columns[COLUMN_CAUSE].width =
            at_least(columns[COLUMN_CAUSE].width, strlen(berth_cause_name(action.cause)) + (note ? note + 2 : 0));
    }
}

static void actions_print(const struct plan_view *v)
{
    struct table_column columns[COLUMNS];
    struct table table;
    size_t len = berth_plan_actions(v->plan);

    columns_init(v->plan, columns);
    if (len > PART_ROWS)
        columns_measure(v->plan, columns);
    table_init(&table, v->cli, columns, v->all ? COLUMNS : COLUMN_INSTANCE);
    for (size_t i = 0; i < len; i++) {
        struct berth_action action = berth_plan_action(v->plan, i);
        char gpus[64];
        table_row(&table);
        row_print(&table, &action);
        table_cell(&table, COLUMN_POD, COLOR_NONE, "%s/%" PRIu32, action.workload, action.ordinal);
        table_cell(&table, COLUMN_NODE, COLOR_NONE, "%s", action.node ? action.node : "");
        table_cell(&table, COLUMN_GPUS, COLOR_NONE, "%s", bits_print(action.gpus, gpus, sizeof gpus));
        if (v->all && action.instance)
            table_cell(&table, COLUMN_INSTANCE, COLOR_NONE, "#%" PRIu64, action.instance);
        if ((i + 1) % PART_ROWS == 0)
            table_print(&table);
    }
    if (len % PART_ROWS != 0)
        table_print(&table);
    table_done(&table);
}

static void folded_print(const struct plan_view *v, const struct fold *fold)
{
    struct table_column columns[COLUMNS];
    struct table table;
    size_t len = fold->rows.len < ROWS_MAX ? fold->rows.len : ROWS_MAX;
    uint64_t rest = 0;

    columns_init(v->plan, columns);
    columns[COLUMN_POD].name = "PODS";
    columns[COLUMN_GPUS].name = "GPUS";
    columns[COLUMN_NODE].name = fold->level == FOLD_WORKLOAD ? "NODES" : "NODE";
    table_init(&table, v->cli, columns, COLUMN_INSTANCE);
    for (size_t i = 0; i < len; i++) {
        const struct fold_row *row = &fold->rows.at[i];
        char ranges[RANGES_MAX];
        table_row(&table);
        row_print(&table, &row->first);
        ranges_print(fold->ordinals.at + row->ordinals_at, row->pods, ranges, sizeof ranges);
        if (row->pods == 1)
            table_cell(&table, COLUMN_POD, COLOR_NONE, "%s/%s", row->first.workload, ranges);
        else
            table_cell(&table, COLUMN_POD, COLOR_NONE, "%s/%s (%s)", row->first.workload, ranges,
                       show_count(row->pods).text);
        if (row->first.node)
            table_cell(&table, COLUMN_NODE, COLOR_NONE, "%s", row->first.node);
        else
            table_cell(&table, COLUMN_NODE, COLOR_NONE, "%s nodes", show_count(row->nodes).text);
        if (row->gpus)
            table_cell(&table, COLUMN_GPUS, COLOR_NONE, "%s", show_count(row->gpus).text);
    }
    table_print(&table);
    table_done(&table);
    for (size_t i = len; i < fold->rows.len; i++)
        rest += fold->rows.at[i].pods;
    if (rest)
        fprintf(v->cli->out, "... and %s more action%s; -o wide shows all.\n", show_count(rest).text, plural(rest));
}

void plan_view_actions(const struct plan_view *v)
{
    size_t len = berth_plan_actions(v->plan);

    if (len == 0)
        return;
    if (v->all || len <= ROWS_MAX) {
        actions_print(v);
        return;
    }
    for (enum fold_level level = FOLD_NODE; level <= FOLD_WORKLOAD; level++) {
        struct fold fold;
        fold_init(&fold, level);
        for (size_t i = 0; i < len; i++) {
            struct berth_action action = berth_plan_action(v->plan, i);
            fold_add(&fold, &action);
        }
        fold_end(&fold);
        bool last = level == FOLD_WORKLOAD || fold.rows.len <= ROWS_MAX;
        if (last)
            folded_print(v, &fold);
        fold_done(&fold);
        if (last)
            return;
    }
}

void plan_view_counts(const struct plan_view *v)
{
    static const struct table_column columns[] = {
        {"ACTION", 0,           0},
        {"CAUSE",  0,           0},
        {"PODS",   TABLE_RIGHT, 0}
    };
    uint64_t counts[OPS_MAX][CAUSES_MAX] = {0};
    size_t len = berth_plan_actions(v->plan);
    struct table table;

    if (len == 0)
        return;
    for (size_t i = 0; i < len; i++) {
        struct berth_action action = berth_plan_action(v->plan, i);
        counts[action.op][action.cause]++;
    }
    table_init(&table, v->cli, columns, 3);
    for (enum berth_op op = BERTH_PLACE; op <= BERTH_ADJUST; op++) {
        for (enum berth_cause cause = BERTH_CAUSE_PENDING; cause <= BERTH_CAUSE_OUTDATED; cause++) {
            if (!counts[op][cause])
                continue;
            table_row(&table);
            table_cell(&table, 0, op_color(op), "%s", berth_op_name(op));
            table_cell(&table, 1, COLOR_NONE, "%s", berth_cause_name(cause));
            table_cell(&table, 2, COLOR_NONE, "%s", show_count(counts[op][cause]).text);
        }
    }
    table_print(&table);
    table_done(&table);
}

uint64_t plan_pending_pods(struct berth_plan *plan)
{
    /* Avoids berth_plan_pending, which would compute every reason. */
    return berth_plan_stats(plan).unplaced;
}

void plan_view_reasons(const struct plan_view *v, const struct berth_pending *pending, bool full)
{
    for (size_t i = 0; i < pending->reasons_len; i++) {
        const struct berth_reason *reason = &pending->reasons[i];
        char text[1024];
        if (full && reason->only && reason->only != reason->nodes)
            snprintf(text, sizeof text, "%s (the only reason on %s of them)", reason->text,
                     show_count(reason->only).text);
        else
            snprintf(text, sizeof text, "%s", reason->text);
        fprintf(v->cli->out, "    %s-%s ", cli_paint(v->cli, COLOR_YELLOW), cli_paint(v->cli, COLOR_NONE));
        cli_wrap(v->cli, text, 6, 6);
    }
}

void plan_view_pending(const struct plan_view *v)
{
    size_t len = berth_plan_pendings(v->plan);
    size_t shown = v->all || len <= PENDING_MAX ? len : PENDING_MAX;

    if (len == 0)
        return;
    fprintf(v->cli->out, "%s%sPending%s\n", berth_plan_actions(v->plan) ? "\n" : "", cli_paint(v->cli, COLOR_BOLD),
            cli_paint(v->cli, COLOR_NONE));
    for (size_t i = 0; i < shown; i++) {
        struct berth_pending pending = berth_plan_pending(v->plan, i);
        char ranges[64];
        ranges_print(pending.ordinals, pending.ordinals_len, ranges, sizeof ranges);
        fprintf(v->cli->out, "  %s%s/%s%s (%s pod%s)\n", cli_paint(v->cli, COLOR_BOLD), pending.workload, ranges,
                cli_paint(v->cli, COLOR_NONE), show_count(pending.ordinals_len).text, plural(pending.ordinals_len));
        plan_view_reasons(v, &pending, false);
    }
    if (shown < len)
        fprintf(v->cli->out, "  ... and %s more workloads; -o wide shows all.\n", show_count(len - shown).text);
}

static void moment_print(const struct cli *cli, int64_t now_ns, int64_t at_ns)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {
        {86400, "days"   },
        {3600,  "hours"  },
        {60,    "minutes"},
        {1,     "seconds"},
    };
    int64_t seconds = (at_ns - now_ns + 999999999) / 1000000000;
    time_t at = (time_t)(at_ns / 1000000000);
    struct tm tm;
    char text[32];
    size_t i = 0;

    while (units[i].seconds > 1 && seconds < 2 * units[i].seconds)
        i++;
    gmtime_r(&at, &tm);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    fprintf(cli->out, "Without changes, the next plan is due at %s (in %" PRId64 " %s).\n", text,
            seconds / units[i].seconds, units[i].name);
}

void plan_view_summary(const struct plan_view *v, double seconds, int64_t now_ns)
{
    const struct cli *cli = v->cli;
    size_t actions = berth_plan_actions(v->plan);
    uint64_t pending = plan_pending_pods(v->plan);
    int64_t recheck_ns = berth_plan_recheck_ns(v->plan);

    if (berth_plan_alarm(v->plan))
        fprintf(cli->out,
                "%sAlarm:%s more than a third of the nodes are lost. Lost pods are not replaced; check "
                "the network first.\n",
                cli_paint(cli, COLOR_RED), cli_paint(cli, COLOR_NONE));
    if (actions)
        fprintf(cli->out, "Planned %s action%s", show_count(actions).text, plural(actions));
    else
        fputs("Nothing to do", cli->out);
    fprintf(cli->out, " for %s node%s in %s; ", show_count(v->nodes).text, plural(v->nodes),
            show_seconds(seconds).text);
    if (pending)
        fprintf(cli->out, "%s%s pod%s pending%s.\n", cli_paint(cli, COLOR_YELLOW), show_count(pending).text,
                plural(pending), cli_paint(cli, COLOR_NONE));
    else
        fputs("no pending pods.\n", cli->out);
    if (recheck_ns != BERTH_NEVER_NS)
        moment_print(cli, now_ns, recheck_ns);
}
