/* yaml_write.c - prints block style by recursion over the tree; jansson limits the depth of parsed trees. */
#include "wire/text/yaml_write.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "wire/text/document.h"
#include "wire/text/yaml.h"

enum {
    INDENT = 2,
    KEY_SIMPLE_MAX = 128, /* parsers may reject a key of more than 1024 characters without a leading `?` */
};

/* ---- strings ---------------------------------------------------------------------------------------------------- */

/* Returns the character at p, of valid UTF-8, and its length in bytes. */
static unsigned utf8_next(const unsigned char *p, size_t *ret_len)
{
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    unsigned c = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));

    for (size_t i = 1; i < len; i++)
        c = c << 6 | (p[i] & 0x3fu);
    *ret_len = len;
    return c;
}

/* Returns whether a character may be in a document unescaped: neither a control character nor a line break for any
 * parser. */
static bool printable(unsigned c)
{
    return (c >= 0x20 && c < 0x7f) || (c >= 0xa0 && c != 0x2028 && c != 0x2029 && c != 0xfeff && c < 0xfffe) ||
           c >= 0x10000;
}

static bool all_printable(const char *text, size_t len, bool lines)
{
    for (size_t i = 0, step; i < len; i += step) {
        unsigned c = utf8_next((const unsigned char *)text + i, &step);
        if (!printable(c) && !(lines && c == '\n'))
            return false;
    }
    return true;
}

/* Returns whether YAML 1.1 does not parse the text as a string: yes, 0b11, 1_000, 12:30, 007, 2026-03-01. */
static bool yaml11_special(const char *text, size_t len)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off", "<<", "="};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == len && strncasecmp(words[i], text, len) == 0)
            return true;
    if (!isdigit((unsigned char)text[0]) && !(strchr("+-.", text[0]) && len > 1 && isdigit((unsigned char)text[1])))
        return false;
    if (len > 2 && text[0] == '0' && strchr("xbo", text[1]))
        return true;
    for (size_t i = 0; i < len; i++)
        if (!strchr("0123456789+-.:_eETtZz ", text[i]))
            return false;
    return true;
}

static bool plain_safe(const char *text, size_t len)
{
    if (len == 0 || text[0] == ' ' || text[len - 1] == ' ' || text[len - 1] == ':' || !all_printable(text, len, false))
        return false;
    if (strchr("!&*{}[]|>@`\"'#%,~", text[0]))
        return false;
    if (strchr("-?:", text[0]) && (len == 1 || text[1] == ' '))
        return false;
    if (len >= 3 && (memcmp(text, "---", 3) == 0 || memcmp(text, "...", 3) == 0))
        return false;
    for (size_t i = 0; i + 1 < len; i++)
        if ((text[i] == ':' || text[i + 1] == '#') && (text[i] == ' ' || text[i + 1] == ' '))
            return false;
    if (yaml11_special(text, len))
        return false;
    CLEANUP(json) json_t *meaning = NULL;
    return yaml_scalar(text, len, &meaning) == 0 && json_is_string(meaning);
}

static void quoted_write(struct str *to, const char *text, size_t len)
{
    str_add_char(to, '"');
    for (size_t i = 0, step; i < len; i += step) {
        unsigned c = utf8_next((const unsigned char *)text + i, &step);
        if (c == '"' || c == '\\')
            str_addf(to, "\\%c", (char)c);
        else if (printable(c))
            str_add_bytes(to, text + i, step);
        else if (c == '\n' || c == '\t')
            str_add(to, c == '\n' ? "\\n" : "\\t");
        else
            str_addf(to, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
    }
    str_add_char(to, '"');
}

void yaml_write_text(struct str *to, const char *text, size_t len)
{
    if (plain_safe(text, len))
        str_add_bytes(to, text, len);
    else
        quoted_write(to, text, len);
}

/* Returns whether several lines can be written as a literal block `|`: their ends and indents must be ordinary. */
static bool literal_safe(const char *text, size_t len)
{
    size_t newlines = 0;

    if (len < 2 || !memchr(text, '\n', len - 1) || text[0] == ' ' || text[0] == '\n' || !all_printable(text, len, true))
        return false;
    while (newlines < len && text[len - 1 - newlines] == '\n')
        newlines++;
    return newlines <= 1;
}

static void indent_add(struct str *to, size_t indent)
{
    for (size_t i = 0; i < indent; i++)
        str_add_char(to, ' ');
}

static void literal_write(struct str *to, const char *text, size_t len, size_t indent)
{
    bool ended = text[len - 1] == '\n';

    str_add(to, ended ? "|\n" : "|-\n");
    if (ended)
        len--;
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t line = end ? (size_t)(end - text) - at : len - at;
        if (line > 0)
            indent_add(to, indent);
        str_add_bytes(to, text + at, line);
        str_add_char(to, '\n');
        at += line + 1;
    }
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* Prints the fewest digits that parse to the same number, always with a fraction. */
static void real_write(struct str *to, double x)
{
    char text[40];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    str_add(to, text);
    if (!strpbrk(text, ".e"))
        str_add(to, ".0");
}

static bool collection(const json_t *value)
{
    return json_is_array(value) ? json_array_size(value) > 0 : json_object_size(value) > 0;
}

/* Prints a value after a key or dash, with its newline. `indent` is the indent of lines below. */
static void scalar_write(struct str *to, const json_t *value, size_t indent)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: str_add(to, "{}"); break;
    case JSON_ARRAY: str_add(to, "[]"); break;
    case JSON_STRING:
        if (literal_safe(json_string_value(value), json_string_length(value))) {
            literal_write(to, json_string_value(value), json_string_length(value), indent);
            return;
        }
        yaml_write_text(to, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER: str_addf(to, "%" JSON_INTEGER_FORMAT, json_integer_value(value)); break;
    case JSON_REAL: real_write(to, json_real_value(value)); break;
    case JSON_TRUE: str_add(to, "true"); break;
    case JSON_FALSE: str_add(to, "false"); break;
    case JSON_NULL: str_add(to, "null"); break;
    }
    str_add_char(to, '\n');
}

static void block_write(struct str *to, const json_t *value, size_t indent, bool begun);

static void member_write(struct str *to, const char *key, const json_t *value, size_t indent)
{
    size_t key_len = strlen(key);

    if (key_len > KEY_SIMPLE_MAX) {
        str_add(to, "? ");
        yaml_write_text(to, key, key_len);
        str_add_char(to, '\n');
        indent_add(to, indent);
    } else {
        yaml_write_text(to, key, key_len);
    }
    str_add_char(to, ':');
    if (collection(value)) {
        str_add_char(to, '\n');
        block_write(to, value, indent + INDENT, false);
    } else {
        str_add_char(to, ' ');
        scalar_write(to, value, indent + INDENT);
    }
}

/* begun: the first line already has its indent, after a dash. */
static void block_write(struct str *to, const json_t *value, size_t indent, bool begun)
{
    const char *key;
    json_t *item;
    size_t i;

    json_object_foreach((json_t *)value, key, item)
    {
        if (!begun)
            indent_add(to, indent);
        begun = false;
        member_write(to, key, item, indent);
    }
    json_array_foreach(value, i, item)
    {
        if (!begun)
            indent_add(to, indent);
        begun = false;
        str_add(to, "- ");
        if (collection(item))
            block_write(to, item, indent + INDENT, true);
        else
            scalar_write(to, item, indent + INDENT);
    }
}

void yaml_write(struct str *to, const json_t *value)
{
    if (collection(value))
        block_write(to, value, 0, false);
    else
        scalar_write(to, value, INDENT);
}
