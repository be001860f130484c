/* output.h - what is printed for programs: JSON and YAML; and the choices of -o that verbs share. */
#pragma once

#include <jansson.h>

#include "cli/lib/cli.h"
#include "cli/lib/options.h"

/* Of lists of objects. */
enum output_form { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_NAME };
extern const char *const output_choices[];

/* Of everything else. */
enum view_form { VIEW_TEXT, VIEW_JSON, VIEW_YAML };
extern const char *const view_choices[];

struct view_values {
    unsigned form; /* of enum view_form */
};
extern const struct option view_options[];
extern const size_t view_options_len;

/* A heading, after an empty line. */
void section_print(const struct cli *cli, const char *title);
void json_print(const struct cli *cli, const json_t *value);
void yaml_print(const struct cli *cli, const json_t *value);
/* Prints it unless the form is VIEW_TEXT; then false. */
bool view_print(const struct cli *cli, unsigned form, const json_t *value);

/* Prints "TITLE: value" lines for the members of an object, nested ones below. Control characters are escaped. */
void fields_print(const struct cli *cli, const json_t *object, size_t indent);
