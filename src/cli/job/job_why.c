#include "cli/job/job_why.h"

#include <string.h>

#include "base/mem.h"
#include "berth.h"
#include "cli/job/forecast_text.h"
#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "cli/show/collection.h"
#include "cli/show/listing.h"
#include "cli/show/status_line.h"

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

int job_why_get(struct api *a, const char *id, bool suggest, json_t **ret, struct api_error *trouble)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};

    str_add(&path, "/v1/jobs");
    path_add(&path, id);
    str_add(&path, suggest ? "/why?suggest=1" : "/why");
    int rc = api_try(a, &(struct api_request){.method = "GET", .path = str_text(&path)}, &answer, trouble);
    if (rc == EXIT_OK)
        *ret = take_ptr(&answer.body);
    return rc;
}

/* Returns the state with the right verb: "is " before "running". */
static const char *state_verb(const char *state)
{
    static const struct {
        const char *state, *verb;
    } rows[] = {
        {"ended",         "has "       },
        {"succeeded",     "has "       },
        {"failed",        "has "       },
        {"timed-out",     "has "       },
        {"cancelled",     "was "       },
        {"preempted",     "was "       },
        {"out-of-memory", "has ended: "},
        {"node-lost",     "has ended: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].state, state) == 0)
            return rows[i].verb;
    return "is ";
}

static void heading_print(const struct cli *cli, const json_t *why, int64_t now_ns)
{
    char id[ID_TEXT_MAX], when[WHEN_TEXT_MAX], asked[128];
    const char *name = member(why, "name"), *state = status_word(why);

    fprintf(cli->out, "%sjob %s%s%s%s%s %s%s%s%s", cli_paint(cli, COLOR_BOLD), object_id(why, id),
            cli_paint(cli, COLOR_NONE), *name ? " (" : "", name, *name ? ")" : "", state_verb(state),
            cli_paint(cli, state_color(state)), state, cli_paint(cli, COLOR_NONE));
    fprintf(cli->out, "; it requests %s", requested_text(json_object_get(why, "asked"), asked, sizeof asked));
    when_text(json_object_get(why, "created"), now_ns, when);
    fprintf(cli->out, "%s%s.\n", *when ? ", submitted " : "", when);
}

/* Prints the ranking: "Its queue is ordered by sjf: shortest expected run time." */
static void ranking_print(const struct cli *cli, const json_t *standing)
{
    const char *ranking = member(standing, "ranking"), *name, *text = "";

    for (size_t i = 0; (name = berth_ranking_at(i, &text)) && strcmp(name, ranking) != 0;)
        i++;
    sentence_print(cli, "Its queue is ordered by %s%s%s.", ranking, name ? ": " : "", name ? text : "");
}

/* Prints the terms of a job's rank; the products add up to the sort key. */
static void order_print(const struct cli *cli, const json_t *standing)
{
    const json_t *terms = json_object_get(standing, "terms"), *factors = json_object_get(standing, "factors");
    bool formula = strcmp(member(standing, "ranking"), "formula") == 0;
    const json_t *list = json_array_size(terms) > 0 ? terms : factors;
    json_int_t key = json_integer_value(json_object_get(standing, "key"));
    size_t i, weighed = 0;
    double sum = 0;
    json_t *item;

    factors_print(cli, list, formula);
    json_array_foreach(list, i, item)
    {
        weighed += json_number_value(json_object_get(item, "weight")) != 0;
        sum += json_number_value(json_object_get(item, "product"));
    }
    if (formula)
        sentence_print(cli, "The formula yields %.10g; the highest value is placed first.", (double)key / 1000);
    else if (weighed > 0)
        sentence_print(cli, "The sum of the products is %.3f; the highest is placed first, on a tie the earlier job.",
                       sum);
}

static void position_print(const struct cli *cli, const json_t *why, int64_t now_ns)
{
    const json_t *standing = json_object_get(why, "standing");

    section_print(cli, "Queue position");
    queue_position_print(cli, standing, now_ns);
    ranking_print(cli, standing);
    order_print(cli, standing);
}

static void texts_print(const struct cli *cli, const json_t *list)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item) sentence_print(cli, "- %s", member(item, "text"));
}

static void after_print(const struct cli *cli, const json_t *after)
{
    static const struct {
        const char *when, *words;
    } rows[] = {
        {"ok",      "has succeeded"},
        {"started", "has started"  },
        {"failed",  "has failed"   },
        {"ended",   "has ended"    }
    };
    json_t *item;
    size_t i;

    json_array_foreach(after, i, item)
    {
        const char *words = member(item, "when");
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
            if (strcmp(rows[k].when, words) == 0)
                words = rows[k].words;
        sentence_print(cli, "- until job %" JSON_INTEGER_FORMAT " %s; it is %s",
                       json_integer_value(json_object_get(item, "job")), words, member(item, "state"));
    }
}

static void times_print(const struct cli *cli, const json_t *why, int64_t now_ns)
{
    char start[WHEN_TEXT_MAX], end[WHEN_TEXT_MAX];

    int64_t start_s;
    bool comes = when_seconds(json_object_get(why, "start"), now_ns, &start_s) && start_s > 0;

    expected_text(why, "start", now_ns, start);
    expected_text(why, "end", now_ns, end);
    if (comes)
        sentence_print(cli, "Estimated start: %s.", start);
    else if (*start)
        sentence_print(cli, "Started %s%s%s.", start, *end ? "; estimated end: " : "",
                       strcmp(end, "now") == 0 ? "any moment" : end);
    if (json_is_true(json_object_get(why, "now")) && !comes)
        sentence_print(cli, "Resources are available: the job starts now.");
}

/* Prints the server's sentences for a job that is held, paused, ended or running. */
static void lines_print(const struct cli *cli, const json_t *why)
{
    json_t *line;
    size_t i;

    json_array_foreach(json_object_get(why, "lines"), i, line) if (json_is_string(line))
        sentence_print(cli, "%s", json_string_value(line));
}

void job_why_print(const struct cli *cli, const json_t *why)
{
    int64_t now_ns = wall_clock_ns();
    const json_t *standing = json_object_get(why, "standing"), *sooner = json_object_get(why, "sooner");
    const json_t *quotas = json_object_get(why, "quotas"), *after = json_object_get(why, "after");
    const json_t *blockers = json_object_get(why, "blockers");

    heading_print(cli, why, now_ns);
    if (!standing) {
        lines_print(cli, why);
        times_print(cli, why, now_ns);
    } else {
        position_print(cli, why, now_ns);
        bool partial = strcmp(member(why, "state"), "partial") == 0;
        section_print(cli, partial ? "Reasons for the pending pods" : "Reasons");
        sentence_print(cli, "%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " pods are pending:",
                       json_integer_value(json_object_get(why, "pending")),
                       json_integer_value(value_at(why, "asked.pods")));
        reasons_print(cli, json_object_get(why, "reasons"));
        texts_print(cli, quotas);
    }
    if (json_array_size(after) > 0) {
        section_print(cli, "Dependencies");
        after_print(cli, after);
    }
    if (json_array_size(blockers) > 0) {
        section_print(cli, "Blocked by");
        blockers_print(cli, blockers, now_ns);
    }
    if (standing && json_is_array(sooner)) {
        section_print(cli, "Ways to start sooner");
        if (json_array_size(sooner) > 0)
            sooner_print(cli, sooner, now_ns);
        else
            sentence_print(cli,
                           "None of the changes that were tried: fewer GPUs, cores or pods, a shorter time, another "
                           "queue or domain, and the changes that its reasons suggest.");
    }
    if (standing) {
        fputc('\n', cli->out);
        forecast_label_print(cli, json_object_get(why, "forecast"), now_ns);
    }
}
