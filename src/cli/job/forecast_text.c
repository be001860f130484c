#include "cli/job/forecast_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "wire/text/moment.h"

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

enum { ESTIMATE_STEP_S = 60 }; /* estimates are rounded to minutes, and are never "now" */

/* ---- short texts ------------------------------------------------------------------------------------------------ */

bool when_seconds(const json_t *time, int64_t now_ns, int64_t *ret_s)
{
    int64_t ns;

    if (!time || timestamp_parse(time, &ns, NULL) < 0)
        return false;
    *ret_s = (ns - now_ns) / 1000000000;
    return true;
}

static struct human_text span_text(int64_t s, bool guess)
{
    struct human_text text = show_age(s);

    if (guess && s < 2 * ESTIMATE_STEP_S)
        snprintf(text.text, sizeof text.text, "~1m");
    else if (guess)
        snprintf(text.text, sizeof text.text, "~%.32s", show_age(s).text);
    return text;
}

/* Formats a time in the future. */
static void future_text(int64_t s, bool guess, char buf[static WHEN_TEXT_MAX])
{
    if (s >= 3600 && s < 86400)
        snprintf(buf, WHEN_TEXT_MAX, "in %s%" PRId64 "h%02" PRId64 "m", guess ? "~" : "", s / 3600, s % 3600 / 60);
    else
        snprintf(buf, WHEN_TEXT_MAX, "in %s", span_text(s, guess).text);
}

const char *when_text(const json_t *time, int64_t now_ns, char buf[static WHEN_TEXT_MAX])
{
    int64_t s;

    buf[0] = '\0';
    if (!when_seconds(time, now_ns, &s))
        return buf;
    if (s >= -1 && s <= 1)
        snprintf(buf, WHEN_TEXT_MAX, "now");
    else if (s > 0)
        future_text(s, false, buf);
    else
        snprintf(buf, WHEN_TEXT_MAX, "%s ago", show_age(-s).text);
    return buf;
}

/* Returns whether the time of that key is an estimate. */
static bool is_estimate(const json_t *of, const char *key)
{
    char name[32];

    snprintf(name, sizeof name, "%s_guess", key);
    return json_is_true(json_object_get(of, name));
}

const char *expected_text(const json_t *of, const char *key, int64_t now_ns, char buf[static WHEN_TEXT_MAX])
{
    const json_t *time = json_object_get(of, key);
    int64_t s;

    if (!is_estimate(of, key) || !when_seconds(time, now_ns, &s))
        return when_text(time, now_ns, buf);
    future_text(s, true, buf);
    return buf;
}

const char *time_left_text(const json_t *of, const char *key, int64_t now_ns, char buf[static WHEN_TEXT_MAX])
{
    int64_t ns, s;

    buf[0] = '\0';
    if (timestamp_parse(json_object_get(of, key), &ns, NULL) < 0)
        return buf;
    s = (ns - now_ns + 999999999) / 1000000000;
    snprintf(buf, WHEN_TEXT_MAX, "%s", span_text(s, is_estimate(of, key)).text);
    return buf;
}

const char *requested_text(const json_t *asked, char *buf, size_t size)
{
    CLEANUP(str) struct str text = {0};
    const json_t *gpu = json_object_get(asked, "gpu");
    json_int_t pods = number(asked, "pods");
    const char *key;
    json_t *value;

    if (pods != 1)
        str_addf(&text, "%" JSON_INTEGER_FORMAT " x ", pods);
    size_t start = text.len;
    if (gpu)
        str_addf(&text, "%g gpu", json_number_value(gpu));
    json_object_foreach((json_t *)asked, key, value)
    {
        if (strcmp(key, "pods") == 0 || strcmp(key, "gpu") == 0 || !json_is_string(value))
            continue;
        str_addf(&text, "%s%s", text.len > start ? ", " : "", json_string_value(value));
        if (strcmp(key, "memory") != 0)
            str_addf(&text, " %s", key);
    }
    if (text.len == start)
        str_add(&text, pods == 1 ? "1 pod" : "pods");
    snprintf(buf, size, "%s", str_text(&text));
    return buf;
}

const char *tier_text(const json_t *standing)
{
    const char *tier = member(standing, "tier");

    return strcmp(tier, "by-right") == 0 ? "guaranteed" : tier;
}

/* Returns whether the job waits only for the limit of concurrent tasks of its own array. */
static bool only_array_limit(const json_t *why)
{
    return strcmp(member(why, "reason"), "quota") == 0 && strncmp(member(why, "what"), "job/", strlen("job/")) == 0;
}

const char *reason_text(const json_t *why, char *buf, size_t size)
{
    static const struct {
        const char *reason, *words;
    } rows[] = {
        {"after",    "dependency"            },
        {"begin",    "begin time"            },
        {"behind",   "behind other jobs"     },
        {"domain",   "wrong domain"          },
        {"gang",     "no room for all tasks" },
        {"gpu",      "too few GPUs"          },
        {"gpu-kind", "no matching GPUs"      },
        {"labels",   "no matching node"      },
        {"name",     "other node requested"  },
        {"no-nodes", "no nodes"              },
        {"reserved", "reserved"              },
        {"spare",    "gang minimum first"    },
        {"state",    "no node is ready"      },
        {"starting", "your other jobs first" },
        {"stopping", "waits for pods to stop"},
        {"total",    "quota used up"         },
        {"window",   "reserved for a window" },
    };
    const char *reason = member(why, "reason"), *what = member(why, "what");

    if (strcmp(reason, "short") == 0 && *what)
        return snprintf(buf, size, "insufficient %s", what), buf;
    if (only_array_limit(why))
        return snprintf(buf, size, "array task limit"), buf;
    if (strcmp(reason, "quota") == 0 && *what)
        return snprintf(buf, size, "quota %s", what), buf;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].reason, reason) == 0)
            reason = rows[i].words;
    snprintf(buf, size, "%s", reason);
    return buf;
}

const char *holder_text(const json_t *holder, char *buf, size_t size)
{
    const char *owner = member(holder, "owner"), *group = member(holder, "group");

    if (*owner)
        snprintf(buf, size, "%s", owner);
    else if (*group)
        snprintf(buf, size, "a user of group %s", group);
    else
        snprintf(buf, size, "another user");
    return buf;
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

void sentence_print(const struct cli *cli, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fputs("  ", cli->out);
    cli_wrap(cli, text, 2, 2);
}

void queue_position_print(const struct cli *cli, const json_t *standing, int64_t now_ns)
{
    char start[WHEN_TEXT_MAX], end[WHEN_TEXT_MAX];
    const char *tier = member(standing, "tier"), *node = member(standing, "node");
    json_int_t nodes = number(standing, "nodes");

    sentence_print(cli, "Position %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " pending workloads; queue: %s.",
                   number(standing, "position"), number(standing, "of"), member(standing, "queue"));
    sentence_print(cli, "%s Priority: %" JSON_INTEGER_FORMAT ".",
                   strcmp(tier, "by-right") == 0 ? "Its requests are within the guarantees of its quotas."
                   : strcmp(tier, "borrowed") == 0
                       ? "Its requests exceed a guarantee of its quotas, so it borrows: guaranteed jobs are "
                         "placed first and can preempt it."
                       : "Its minimum is placed; the remaining pods come last.",
                   number(standing, "priority"));
    if (json_is_true(json_object_get(standing, "overdue")))
        sentence_print(cli, "It has waited longer than the limit and is placed before all other jobs of its tier.");
    expected_text(standing, "start", now_ns, start);
    when_text(json_object_get(standing, "end"), now_ns, end);
    if (!*start)
        sentence_print(cli, "Its start time cannot be estimated.");
    else
        sentence_print(cli, "Estimated start: %s%s%s%s%s.%s", start, *end ? "; estimated end: " : "", end,
                       *node ? nodes > 1 ? "; on several nodes, first: " : "; node: " : "", node,
                       is_estimate(standing, "start")
                           ? " Rough estimate: it depends on jobs without a time limit or estimate."
                           : "");
}

void factors_print(const struct cli *cli, const json_t *factors, bool all)
{
    const struct table_column columns[] = {
        {"  FACTOR",    TABLE_PLAIN,                      0},
        {"VALUE",       TABLE_RIGHT,                      0},
        {"WEIGHT",      all ? TABLE_HIDDEN : TABLE_RIGHT, 0},
        {"PRODUCT",     all ? TABLE_HIDDEN : TABLE_RIGHT, 0},
        {"DESCRIPTION", TABLE_WRAP,                       0},
    };
    struct table table;
    json_t *item;
    size_t i, shown = 0;

    json_array_foreach(factors, i, item) shown += all || json_number_value(json_object_get(item, "weight")) != 0;
    if (shown == 0)
        return;
    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(factors, i, item)
    {
        if (all ? json_number_value(json_object_get(item, "value")) == 0
                : json_number_value(json_object_get(item, "weight")) == 0)
            continue;
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "  %s", member(item, "name"));
        table_cell(&table, 1, COLOR_NONE, "%.3f", json_number_value(json_object_get(item, "value")));
        table_cell(&table, 2, COLOR_NONE, "%g", json_number_value(json_object_get(item, "weight")));
        table_cell(&table, 3, COLOR_NONE, "%.3f", json_number_value(json_object_get(item, "product")));
        table_cell(&table, 4, COLOR_DIM, "%s", member(item, "text"));
    }
    table_print(&table);
    table_done(&table);
}

void reasons_print(const struct cli *cli, const json_t *reasons)
{
    json_t *item;
    size_t i;

    json_array_foreach(reasons, i, item)
    {
        json_int_t only = number(item, "only"), nodes = number(item, "nodes");
        char more[64] = "";
        if (only && only < nodes)
            snprintf(more, sizeof more, " (for %" JSON_INTEGER_FORMAT " of them this is the only reason)", only);
        sentence_print(cli, "- %s%s",
                       only_array_limit(item) ? "the limit of concurrent tasks of its array is reached"
                                              : member(item, "text"),
                       more);
    }
}

void blockers_print(const struct cli *cli, const json_t *blockers, int64_t now_ns)
{
    static const struct table_column columns[] = {
        {"  USED BY", TABLE_PLAIN, 0},
        {"WHAT",      TABLE_PLAIN, 0},
        {"NODE",      TABLE_PLAIN, 0},
        {"DEVICES",   TABLE_WRAP,  0},
        {"ENDS",      TABLE_PLAIN, 0},
    };
    struct table table;
    json_t *item, *device;
    size_t i, j;
    char who[160], when[WHEN_TEXT_MAX];

    table_init(&table, cli, columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(blockers, i, item)
    {
        CLEANUP(str) struct str devices = {0};
        json_array_foreach(json_object_get(item, "devices"), j, device)
            str_addf(&devices, "%s%s", j ? "," : "", json_is_string(device) ? json_string_value(device) : "");
        table_row(&table);
        table_cell(&table, 0, COLOR_NONE, "  %s", holder_text(item, who, sizeof who));
        table_cell(&table, 1, COLOR_NONE, "%s%s%s", member(item, "kind"), *member(item, "workload") ? " " : "",
                   member(item, "workload"));
        table_cell(&table, 2, COLOR_NONE, "%s", member(item, "node"));
        table_cell(&table, 3, COLOR_NONE, "%s", str_text(&devices));
        expected_text(item, "until", now_ns, when);
        table_cell(&table, 4, COLOR_NONE, "%s", *when ? when : "unknown");
    }
    if (i > 0)
        table_print(&table);
    table_done(&table);
}

void sooner_print(const struct cli *cli, const json_t *sooner, int64_t now_ns)
{
    json_t *item;
    size_t i;
    char when[WHEN_TEXT_MAX];

    json_array_foreach(sooner, i, item)
    {
        json_int_t s = number(item, "sooner_s");
        char gain[64] = "";
        if (s > 0)
            snprintf(gain, sizeof gain, ", %s sooner", show_age(s).text);
        when_text(json_object_get(item, "start"), now_ns, when);
        if (json_object_get(item, "starts"))
            sentence_print(cli,
                           "- %s %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " pods would start immediately",
                           member(item, "change"), number(item, "starts"), number(item, "waiting"));
        else
            sentence_print(cli, "- %s it would start %s%s", member(item, "change"),
                           json_is_true(json_object_get(item, "now")) ? "immediately" : when, gain);
    }
}

void forecast_label_print(const struct cli *cli, const json_t *forecast, int64_t now_ns)
{
    char when[WHEN_TEXT_MAX];

    fprintf(cli->out, "%sEstimated by a plan of revision %" JSON_INTEGER_FORMAT ", made %s.%s\n",
            cli_paint(cli, COLOR_DIM), number(forecast, "revision"),
            when_text(json_object_get(forecast, "at"), now_ns, when), cli_paint(cli, COLOR_NONE));
}

void draft_print(const struct cli *cli, const json_t *forecast, int64_t now_ns)
{
    const json_t *sooner = json_object_get(forecast, "sooner");

    if (!json_is_object(forecast))
        return;
    if (json_is_true(json_object_get(forecast, "now"))) {
        json_int_t stops = number(forecast, "stops");
        if (stops)
            fprintf(cli->out, "It would start when %" JSON_INTEGER_FORMAT " pods of a lower tier %s been preempted.\n",
                    stops, stops == 1 ? "has" : "have");
        else
            fputs("It would start immediately.\n", cli->out);
    } else if (json_object_get(forecast, "position")) {
        fputs("It would wait:\n", cli->out);
        queue_position_print(cli, forecast, now_ns);
        reasons_print(cli, json_object_get(forecast, "reasons"));
    } else {
        fputs("It would not be considered yet: it is on hold, or waits for another job or its begin "
              "time.\n",
              cli->out);
    }
    if (json_array_size(sooner)) {
        section_print(cli, "Ways to start sooner");
        sooner_print(cli, sooner, now_ns);
    }
    forecast_label_print(cli, forecast, now_ns);
}
