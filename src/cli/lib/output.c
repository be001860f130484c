#include "cli/lib/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/text/yaml_write.h"

const char *const output_choices[] = {"table", "wide", "json", "yaml", "name", NULL};
const char *const view_choices[] = {"text", "json", "yaml", NULL};

const struct option view_options[] = {
    OPTION_CHOICE_ROW("output", 'o', view_values, form, view_choices, "Output format."),
};
const size_t view_options_len = sizeof view_options / sizeof view_options[0];

void json_print(const struct cli *cli, const json_t *value)
{
    json_dumpf(value, cli->out, JSON_INDENT(2) | JSON_ENCODE_ANY);
    fputc('\n', cli->out);
}

void yaml_print(const struct cli *cli, const json_t *value)
{
    CLEANUP(str) struct str text = {0};

    yaml_write(&text, value);
    fwrite(text.at, 1, text.len, cli->out);
}

bool view_print(const struct cli *cli, unsigned form, const json_t *value)
{
    if (form == VIEW_JSON)
        json_print(cli, value);
    if (form == VIEW_YAML)
        yaml_print(cli, value);
    return form != VIEW_TEXT;
}

void fields_print(const struct cli *cli, const json_t *object, size_t indent)
{
    CLEANUP(str) struct str text = {0};

    if (json_object_size(object) == 0) {
        fprintf(cli->out, "%*snone\n", (int)indent, "");
        return;
    }
    yaml_write(&text, object);
    for (char *line = text.at, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        char *colon = strstr(line, ":");
        bool key = colon && line[0] != ' ' && line[0] != '-';
        fprintf(cli->out, "%*s%s%.*s%s%s\n", (int)indent, "", key ? cli_paint(cli, COLOR_BOLD) : "",
                key ? (int)(colon - line) : 0, line, key ? cli_paint(cli, COLOR_NONE) : "", key ? colon : line);
    }
}

void section_print(const struct cli *cli, const char *title)
{
    fprintf(cli->out, "\n%s%s%s\n", cli_paint(cli, COLOR_BOLD), title, cli_paint(cli, COLOR_NONE));
}
