/* trace_csv_row.c - reads rows of CSV files with a table of columns. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sim/trace/trace_csv.h"
#include "wire/text/quantity.h"

/* ---- seconds ---------------------------------------------------------------------------------------------------- */

bool sim_seconds_parse(const char *text, int64_t *ret_ns)
{
    int64_t whole = 0, part = 0, unit = SIM_SECOND_NS;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *p - '0', &whole))
            return false;
    bool digits = p > text;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9' && unit > 1; p++) {
            unit /= 10;
            part += (*p - '0') * unit;
            digits = true;
        }
    while (*p == '0' && unit == 1)
        p++;
    if (*p || !digits || __builtin_mul_overflow(whole, SIM_SECOND_NS, &whole) ||
        __builtin_add_overflow(whole, part, &whole))
        return false;
    *ret_ns = whole;
    return true;
}

const char *sim_seconds_print(int64_t ns, char buf[static 32])
{
    int len = snprintf(buf, 32, "%" PRId64 ".%09" PRId64, ns / SIM_SECOND_NS, ns % SIM_SECOND_NS);
    while (buf[len - 1] == '0')
        len--;
    buf[buf[len - 1] == '.' ? len - 1 : len] = '\0';
    return buf;
}

/* ---- splitting a line ------------------------------------------------------------------------------------------- */

/* Removes the quotes of a field in place; *ret_next is the start of the next field, or NULL. Returns false if the quote
 * is not closed, or if other text follows it. */
static bool unquote(char *field, char **ret_next)
{
    char *to = field, *p = field + 1;
    for (; *p && (*p != '"' || p[1] == '"'); p++) {
        p += *p == '"';
        *to++ = *p;
    }
    if (!*p || (p[1] && p[1] != ','))
        return false;
    *ret_next = p[1] ? p + 2 : NULL;
    *to = '\0';
    return true;
}

/* Splits the line in place. Returns the number of fields, of which at most `max` are stored; SIZE_MAX: invalid
 * quotes. */
static size_t split(char *line, char **fields, size_t max)
{
    size_t len = 0;
    for (char *p = line; p; len++) {
        char *field = p;
        if (*p == '"') {
            if (!unquote(field, &p))
                return SIZE_MAX;
        } else {
            p = strchr(field, ',');
            if (p)
                *p++ = '\0';
        }
        if (len < max)
            fields[len] = field;
    }
    return len;
}

static size_t commas(const char *line)
{
    size_t n = 0;
    for (; *line; line++)
        n += *line == ',';
    return n;
}

/* Reads the next line with content, and removes a carriage return at its end. */
static int next_line(struct sim_csv *c, struct berth_err *err)
{
    int rc;
    while ((rc = sim_lines_next(&c->lines, err)) > 0) {
        size_t len = strlen(c->lines.text);
        if (len && c->lines.text[len - 1] == '\r')
            c->lines.text[len - 1] = '\0';
        if (c->lines.text[0] && c->lines.text[0] != '#')
            break;
    }
    return rc;
}

/* ---- the first line --------------------------------------------------------------------------------------------- */

static uint32_t column_find(const struct sim_csv *c, const char *name)
{
    for (uint32_t i = 0; i < c->columns_len; i++)
        if (strcmp(c->columns[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

static bool is_bound(const struct sim_csv *c, uint32_t column, size_t before)
{
    for (size_t i = 0; i < before; i++)
        if (c->bound[i] == column)
            return true;
    return false;
}

static int bind(struct sim_csv *c, bool strict, struct berth_err *err)
{
    CLEANUP(str) struct str known = {0};
    for (uint32_t i = 0; i < c->columns_len; i++)
        str_addf(&known, "%s%s", i ? ", " : "", c->columns[i].name);
    for (size_t i = 0; i < c->fields_len; i++) {
        c->bound[i] = column_find(c, c->fields[i]);
        if (c->bound[i] == UINT32_MAX && strict)
            return sim_lines_error(&c->lines, err, "there is no column \"%s\"; columns are %s", c->fields[i],
                                   str_text(&known));
        if (c->bound[i] != UINT32_MAX && is_bound(c, c->bound[i], i))
            return sim_lines_error(&c->lines, err, "the column \"%s\" stands twice", c->fields[i]);
    }
    for (uint32_t i = 0; i < c->columns_len; i++)
        if (c->columns[i].required && !is_bound(c, i, c->fields_len))
            return sim_lines_error(&c->lines, err,
                                   "the column \"%s\" is missing; the first line must name the columns of the file",
                                   c->columns[i].name);
    return 0;
}

int sim_csv_open(struct sim_csv *c, const char *path, const struct sim_column *columns, size_t len, bool strict,
                 struct berth_err *err)
{
    *c = (struct sim_csv){.columns = columns, .columns_len = len};
    int rc = sim_lines_open(&c->lines, path, err);
    if (rc)
        return rc;
    rc = next_line(c, err);
    if (rc == 0)
        rc = sim_lines_error(&c->lines, err, "the file is empty; its first line must name the columns");
    if (rc > 0) {
        size_t max = commas(c->lines.text) + 1;
        c->fields = mem_zarray(max, sizeof *c->fields);
        c->bound = mem_zarray(max, sizeof *c->bound);
        c->fields_len = split(c->lines.text, c->fields, max);
        rc =
            c->fields_len == SIZE_MAX ? sim_lines_error(&c->lines, err, "a quote is not closed") : bind(c, strict, err);
    }
    if (rc)
        sim_csv_close(c);
    return rc;
}

void sim_csv_close(struct sim_csv *c)
{
    sim_lines_close(&c->lines);
    mem_free(c->bound);
    mem_free(c->fields);
    *c = (struct sim_csv){0};
}

/* ---- a row ------------------------------------------------------------------------------------------------------ */

static int bad_cell(const struct sim_csv *c, const struct sim_column *column, const char *text, const char *expected,
                    struct berth_err *err)
{
    return sim_lines_error(&c->lines, err, "%s: expected %s, found \"%.40s\"", column->name, expected, text);
}

static int bad_range(const struct sim_csv *c, const struct sim_column *column, const char *text, struct berth_err *err)
{
    if (column->max >= 9e15)
        return sim_lines_error(&c->lines, err, "%s: expected at least %g, found \"%.40s\"", column->name, column->min,
                               text);
    return sim_lines_error(&c->lines, err, "%s: expected %.17g to %.17g, found \"%.40s\"", column->name, column->min,
                           column->max, text);
}

static int quantity_cell(const struct sim_csv *c, const struct sim_column *column, const char *text, int64_t *ret,
                         struct berth_err *err)
{
    struct berth_err why = {0};
    bool cpu = column->cell == SIM_CELL_CPU;
    int64_t amount;
    if (quantity_parse_text(cpu ? "cpu" : "memory", text, &amount, &why) != 0)
        return sim_lines_error(&c->lines, err, "%s: %s", column->name, why.text);
    if (amount < 0 || amount > ((int64_t)1 << 53))
        return bad_cell(c, column, text, "an amount of 0 or more", err);
    *ret = amount;
    return 0;
}

static int number_cell(const struct sim_csv *c, const struct sim_column *column, const char *text, double *ret,
                       struct berth_err *err)
{
    char *end;
    double x = strtod(text, &end);
    if (*end || end == text || !(x >= -DBL_MAX && x <= DBL_MAX))
        return bad_cell(c, column, text, "a number", err);
    if (x < column->min || x > column->max)
        return bad_range(c, column, text, err);
    *ret = x;
    return 0;
}

static int read_cell(const struct sim_csv *c, const struct sim_column *column, char *text, char *row,
                     struct berth_err *err)
{
    void *to = row + column->offset;
    int64_t whole;
    switch (column->cell) {
    case SIM_CELL_WORD: *(const char **)to = text; return 0;
    case SIM_CELL_SECONDS:
        if (!sim_seconds_parse(text, &whole))
            return bad_cell(c, column, text, "seconds, like 90 or 0.25", err);
        if ((double)whole < column->min * 1e9 || (double)whole > column->max * 1e9)
            return bad_range(c, column, text, err);
        break;
    case SIM_CELL_WHOLE:
        if (!str_parse_i64(text, &whole))
            return bad_cell(c, column, text, "a whole number", err);
        if ((double)whole < column->min || (double)whole > column->max)
            return bad_range(c, column, text, err);
        break;
    case SIM_CELL_NUMBER: return number_cell(c, column, text, to, err);
    default: return quantity_cell(c, column, text, to, err);
    }
    *(int64_t *)to = whole;
    return 0;
}

int sim_csv_next(struct sim_csv *c, void *row, struct berth_err *err)
{
    int rc = next_line(c, err);
    if (rc <= 0)
        return rc;
    size_t len = split(c->lines.text, c->fields, c->fields_len);
    if (len == SIZE_MAX)
        return sim_lines_error(&c->lines, err, "a quote is not closed");
    if (len != c->fields_len)
        return sim_lines_error(&c->lines, err, "%zu fields, but the first line names %zu columns", len, c->fields_len);
    for (size_t i = 0; i < len; i++) {
        if (c->bound[i] == UINT32_MAX)
            continue;
        const struct sim_column *column = &c->columns[c->bound[i]];
        if (!*c->fields[i] && column->required)
            return sim_lines_error(&c->lines, err, "%s: is empty", column->name);
        rc = *c->fields[i] ? read_cell(c, column, c->fields[i], row, err) : 0;
        if (rc)
            return rc;
    }
    return 1;
}
