/* yaml_write.h - prints a tree of JSON values as a readable YAML document.
 *
 * Block style, two spaces per level, keys in their order. The output parses to the same tree with yaml.h and with other
 * parsers of YAML 1.1 and 1.2: strings that a parser would take for a number, date, boolean or null are quoted. Not for
 * large data: the API uses JSON.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"

/* Appends the value as a whole document that ends in a newline, without `---`. */
void yaml_write(struct str *to, const json_t *value);

/* Appends a string as one line that parses as a string: plain if that is safe, otherwise quoted. */
void yaml_write_text(struct str *to, const char *text, size_t len);
