/* yaml_write.h - a tree of JSON values becomes a YAML document that people read and edit.
 *
 * Block style, two spaces a level, keys in their order. What is written reads back as the same tree by yaml.h, and by
 * other readers of YAML 1.1 and 1.2: a text that one of them would take for a number, a date, a truth or nothing is
 * quoted. Not for large data: the API speaks JSON.
 */
#pragma once

#include <jansson.h>

#include "base/str.h"

/* Appends the value as a whole document, ending in a newline, without a `---`. */
void yaml_write(struct str *to, const json_t *value);

/* Appends a text as one line that reads back as a text: plain where that is safe, else in quotes. */
void yaml_write_text(struct str *to, const char *text, size_t len);
