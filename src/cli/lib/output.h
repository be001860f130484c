/* output.h - prints JSON and YAML for programs; the choices of -o that verbs share. */
#pragma once

#include <jansson.h>

#include "cli/lib/cli.h"
#include "cli/lib/options.h"

/* Output forms of lists of objects. */
enum output_form { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_NAME };
extern const char *const output_choices[];

/* Output forms of everything else. */
enum view_form { VIEW_TEXT, VIEW_JSON, VIEW_YAML };
extern const char *const view_choices[];

struct view_values {
    unsigned form; /* of enum view_form */
};
extern const struct option view_options[];
extern const size_t view_options_len;

/* Prints a heading after an empty line. */
void section_print(const struct cli *cli, const char *title);
void json_print(const struct cli *cli, const json_t *value);
void yaml_print(const struct cli *cli, const json_t *value);
/* Prints `value` as JSON or YAML and returns true; returns false for VIEW_TEXT. */
bool view_print(const struct cli *cli, unsigned form, const json_t *value);

/* Prints a "TITLE: value" line for each member of an object, nested members below. Escapes control characters. */
void fields_print(const struct cli *cli, const json_t *object, size_t indent);
