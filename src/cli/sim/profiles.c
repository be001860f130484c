/* profiles.c - `berth profiles`: lists the built-in profiles, filters, scores and reasons. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "berth.h"
#include "cli/lib/command.h"

static void heading(const struct cli *cli, const char *text, const char *note)
{
    fprintf(cli->out, "%s%s%s", cli_paint(cli, COLOR_BOLD), text, cli_paint(cli, COLOR_NONE));
    cli_wrap(cli, note, 2, strlen(text));
}

static void entry(const struct cli *cli, size_t column, const char *name, const char *text)
{
    fprintf(cli->out, "  %s%s%s", cli_paint(cli, COLOR_GREEN), name, cli_paint(cli, COLOR_NONE));
    cli_wrap(cli, text, column, 2 + strlen(name));
}

static size_t widest(const char *(*at)(size_t i, const char **ret_sentence))
{
    size_t width = 0;
    const char *name, *text;

    for (size_t i = 0; (name = at(i, &text)); i++)
        width = strlen(name) > width ? strlen(name) : width;
    return width;
}

static void list(const struct cli *cli, const char *(*at)(size_t i, const char **ret_sentence))
{
    size_t column = 2 + widest(at) + 2;
    const char *name, *text;

    for (size_t i = 0; (name = at(i, &text)); i++)
        entry(cli, column, name, text);
}

static void profiles_list(const struct cli *cli)
{
    size_t width = 0;

    for (size_t i = 0; berth_profile_at(i); i++) {
        size_t len = strlen(berth_profile_at(i)->name);
        width = len > width ? len : width;
    }
    for (size_t i = 0; berth_profile_at(i); i++) {
        const struct berth_profile *profile = berth_profile_at(i);
        char text[1024];
        size_t at = 0;
        for (size_t j = 0; j < profile->scores_len && at < sizeof text; j++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s=%" PRId32, j ? ", " : "",
                                   profile->scores[j].score, profile->scores[j].weight);
        for (size_t j = 0; j < profile->filters_len && at < sizeof text; j++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", j ? ", " : "; only the filters ",
                                   profile->filters[j]);
        if (profile->steps && at < sizeof text)
            (void)snprintf(text + at, sizeof text - at, "; in %" PRIu32 " steps", profile->steps);
        if (at == 0)
            snprintf(text, sizeof text, "no scores: selects the first node that passes the filters");
        entry(cli, 2 + width + 2, profile->name, text);
    }
}

static int run(struct cli *cli, const void *values, const struct operands *operands)
{
    (void)values;
    (void)operands;
    heading(cli, "Profiles", ": scores with weights; the first profile is the default");
    profiles_list(cli);
    fputc('\n', cli->out);
    heading(cli, "Filters", ": select the nodes that can run a pod; a profile uses all filters unless it names some");
    list(cli, berth_filter_at);
    fputc('\n', cli->out);
    heading(cli, "Scores", ": rank these nodes");
    list(cli, berth_score_at);
    fputc('\n', cli->out);
    heading(cli, "Reasons", ": why nodes reject a pod, or why a pod waits");
    list(cli, berth_reason_at);
    return EXIT_OK;
}

const struct command profiles_command = {
    .name = "profiles",
    .operands = "",
    .summary = "List the built-in profiles, filters, scores and reasons.",
    .text = "A cluster file can define its own profiles from these filters and scores; 'berth plan "
            "--profile NAME' selects one.",
    .section = SECTION_FILES,
    .run = run,
};
