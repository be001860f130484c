#include "cli/show/listing.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cli/lib/human.h"
#include "cli/lib/output.h"
#include "cli/lib/table.h"
#include "wire/text/moment.h"
#include "wire/text/quantity.h"

int64_t wall_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

enum color state_color(const char *state)
{
    static const struct {
        const char *state;
        enum color color;
    } rows[] = {
        {"running",       COLOR_GREEN },
        {"ready",         COLOR_GREEN },
        {"enabled",       COLOR_GREEN },
        {"pending",       COLOR_YELLOW},
        {"starting",      COLOR_YELLOW},
        {"assigned",      COLOR_YELLOW},
        {"reserved",      COLOR_YELLOW},
        {"stopping",      COLOR_YELLOW},
        {"joining",       COLOR_YELLOW},
        {"cordoned",      COLOR_YELLOW},
        {"draining",      COLOR_YELLOW},
        {"preempted",     COLOR_YELLOW},
        {"lost",          COLOR_RED   },
        {"failed",        COLOR_RED   },
        {"timed-out",     COLOR_RED   },
        {"out-of-memory", COLOR_RED   },
        {"node-lost",     COLOR_RED   },
        {"held",          COLOR_DIM   },
        {"suspended",     COLOR_DIM   },
        {"stopped",       COLOR_DIM   },
        {"disabled",      COLOR_DIM   },
        {"ended",         COLOR_DIM   },
        {"succeeded",     COLOR_DIM   },
        {"cancelled",     COLOR_DIM   },
        {"gone",          COLOR_DIM   },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].state, state) == 0)
            return rows[i].color;
    return COLOR_NONE;
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

static void scalar_add(struct str *to, const json_t *value)
{
    if (json_is_string(value)) {
        str_add(to, json_string_value(value));
    } else if (value && !json_is_null(value)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
        str_add(to, text);
        free(text);
    }
}

/* Writes an object in its usual short form, such as a taint. */
static void word_add(struct str *to, const json_t *value)
{
    const char *key = json_string_value(json_object_get(value, "key"));
    const char *text = json_string_value(json_object_get(value, "value"));
    const char *effect = json_string_value(json_object_get(value, "effect"));

    if (!key) {
        scalar_add(to, value);
        return;
    }
    str_addf(to, "%s%s%s", key, text && *text ? "=" : "", text ? text : "");
    if (effect)
        str_addf(to, ":%s", effect);
}

static void words_add(struct str *to, const json_t *list, const char *between)
{
    json_t *item;
    size_t i;

    if (!json_is_array(list)) {
        word_add(to, list);
        return;
    }
    json_array_foreach(list, i, item)
    {
        str_add(to, i ? between : "");
        word_add(to, item);
    }
}

static void pairs_add(struct str *to, const json_t *object)
{
    const char *key;
    json_t *value;
    bool first = true;

    if (!json_is_object(object)) {
        words_add(to, object, ",");
        return;
    }
    json_object_foreach((json_t *)object, key, value)
    {
        str_addf(to, "%s%s=", first ? "" : ",", key);
        scalar_add(to, value);
        first = false;
    }
}

static void amount_add(struct str *to, const json_t *value, const char *path)
{
    const char *dot = strrchr(path, '.');
    const char *resource = dot ? dot + 1 : path;
    char buf[QUANTITY_TEXT_MAX];
    int64_t amount;

    if (!value)
        return;
    if (quantity_parse(resource, value, &amount, NULL) == 0)
        str_add(to, quantity_print(resource, amount, buf));
    else
        scalar_add(to, value);
}

static void count_add(struct str *to, const json_t *value)
{
    json_int_t n = json_is_integer(value) ? json_integer_value(value) : json_is_object(value) ? 1 : 0;
    json_t *item;
    size_t i;

    if (json_is_object(value) && json_object_get(value, "count"))
        n = json_integer_value(json_object_get(value, "count"));
    json_array_foreach(value, i, item)
    {
        const json_t *count = json_object_get(item, "count");
        n += count ? json_integer_value(count) : 1;
    }
    if (n)
        str_addf(to, "%" JSON_INTEGER_FORMAT, n);
}

static void time_add(struct str *to, const json_t *value, int64_t now_ns, bool until)
{
    int64_t at_ns;

    if (!value || timestamp_parse(value, &at_ns, NULL) != 0)
        return;
    int64_t seconds = (until ? at_ns - now_ns : now_ns - at_ns) / 1000000000;
    if (until && seconds <= 0)
        str_add(to, "expired");
    else
        str_addf(to, "%s%s", until ? "in " : "", show_age(seconds).text);
}

void column_text(const struct column *column, const json_t *object, int64_t now_ns, struct str *to,
                 enum color *ret_color)
{
    const json_t *value = value_at(object, column->path);

    *ret_color = COLOR_NONE;
    switch (column->form) {
    case COLUMN_TEXT: scalar_add(to, value); break;
    case COLUMN_STATE:
        scalar_add(to, value);
        *ret_color = state_color(str_text(to));
        break;
    case COLUMN_AGE: time_add(to, value, now_ns, false); break;
    case COLUMN_UNTIL: time_add(to, value, now_ns, true); break;
    case COLUMN_PART:
        if (value_at(object, column->of)) {
            if (value)
                scalar_add(to, value);
            else
                str_add(to, "0");
            str_add_char(to, '/');
            scalar_add(to, value_at(object, column->of));
        }
        break;
    case COLUMN_AMOUNT: amount_add(to, value, column->path); break;
    case COLUMN_COUNT: count_add(to, value); break;
    case COLUMN_YES: str_add(to, json_is_true(value) ? "yes" : ""); break;
    case COLUMN_MILLI:
        if (value)
            str_addf(to, "%" JSON_INTEGER_FORMAT "%%", json_integer_value(value) / 10);
        break;
    case COLUMN_WORDS: words_add(to, value, strcmp(column->title, "COMMAND") == 0 ? " " : ","); break;
    case COLUMN_PAIRS: pairs_add(to, value); break;
    }
}

/* ---- rows ------------------------------------------------------------------------------------------------------- */

void listing_init(struct listing *l, const struct cli *cli, const struct collection *collection, bool wide)
{
    *l = (struct listing){
        .cli = cli,
        .collection = collection,
        .wide = wide,
        .now_ns = wall_clock_ns(),
        .rows = json_array(),
    };
}

void listing_done(struct listing *l)
{
    json_decref(l->rows);
    l->rows = NULL;
}

/* Counts the columns of UTF-8 text: bytes that are not continuation bytes. */
static size_t columns_of(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void cell_add(struct listing *l, json_t *row, size_t column, const char *text, enum color color)
{
    size_t width = columns_of(text), title = columns_of(l->collection->columns[column].title);

    json_array_append_new(row, json_pack("[s, i]", text, (int)color));
    width = width > title ? width : title;
    if (width > l->width[column])
        l->width[column] = width;
}

void listing_add(struct listing *l, const json_t *object)
{
    json_t *row = json_array();

    for (size_t i = 0; i < l->collection->columns_len; i++) {
        CLEANUP(str) struct str text = {0};
        enum color color;
        column_text(&l->collection->columns[i], object, l->now_ns, &text, &color);
        cell_add(l, row, i, str_text(&text), color);
    }
    json_array_append_new(l->rows, row);
}

void listing_add_word(struct listing *l, const char *id, const char *word)
{
    json_t *row = json_array();

    for (size_t i = 0; i < l->collection->columns_len; i++)
        cell_add(l, row, i, i == 0 ? id : i == 1 ? word : "", i == 1 ? state_color(word) : COLOR_NONE);
    json_array_append_new(l->rows, row);
}

/* Prints a cell padded to the width of the rows above. */
static void cell_print(const struct listing *l, struct table *table, size_t column, const char *text, enum color color)
{
    unsigned flags = l->collection->columns[column].flags;
    size_t have = columns_of(text), want = l->headed && !(flags & TABLE_WRAP) ? l->width[column] : 0;
    int pad = (int)(have < want ? want - have : 0);

    table_cell(table, column, color, "%*s%s%*s", flags & TABLE_RIGHT ? pad : 0, "", text, flags & TABLE_RIGHT ? 0 : pad,
               "");
}

static void row_print(const struct listing *l, struct table *table, const json_t *row)
{
    json_t *cell;
    size_t i;

    table_row(table);
    json_array_foreach(row, i, cell)
    {
        if (l->wide || !l->collection->columns[i].wide)
            cell_print(l, table, i, json_string_value(json_array_get(cell, 0)),
                       (enum color)json_integer_value(json_array_get(cell, 1)));
    }
}

void listing_print(struct listing *l)
{
    struct table_column columns[LISTING_COLUMNS_MAX];
    size_t columns_len = l->collection->columns_len;
    struct table table;
    json_t *row;
    size_t i;

    for (i = 0; i < columns_len; i++) {
        const struct column *column = &l->collection->columns[i];
        bool hidden = column->wide && !l->wide;
        columns[i] = (struct table_column){
            .name = column->title,
            .flags = column->flags | (hidden ? TABLE_HIDDEN : 0),
        };
    }
    table_init(&table, l->cli, columns, columns_len);
    if (l->headed)
        table_headless(&table);
    json_array_foreach(l->rows, i, row) row_print(l, &table, row);
    table_print(&table);
    table_done(&table);
    l->headed = true;
    json_array_clear(l->rows);
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

struct sort_item {
    json_t *object;
    char *text;
    double number;
    bool is_number;
    size_t at;
};

static int item_compare(const void *a_, const void *b_)
{
    const struct sort_item *a = a_, *b = b_;
    int order = 0;

    if (a->is_number && b->is_number)
        order = (a->number > b->number) - (a->number < b->number);
    else if (a->is_number != b->is_number)
        order = a->is_number ? -1 : 1;
    else
        order = strcmp(a->text, b->text);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

static void item_key(const struct column *column, const json_t *object, struct sort_item *item)
{
    const json_t *value = value_at(object, column->path);
    CLEANUP(str) struct str text = {0};
    enum color color;
    int64_t number;

    column_text(column, object, 0, &text, &color);
    item->text = str_take(&text);
    if (column->form == COLUMN_AGE || column->form == COLUMN_UNTIL)
        item->is_number = value && timestamp_parse(value, &number, NULL) == 0;
    else if (column->form == COLUMN_AMOUNT)
        item->is_number = value && quantity_parse(strrchr(column->path, '.') + 1, value, &number, NULL) == 0;
    else
        item->is_number = str_parse_i64(item->text, &number);
    if (item->is_number)
        item->number = (double)number;
}

int objects_sort(const struct collection *c, json_t *items, const char *title)
{
    const struct column *column = NULL;
    size_t len = json_array_size(items);

    for (size_t i = 0; i < c->columns_len; i++)
        if (strcasecmp(c->columns[i].title, title) == 0)
            column = &c->columns[i];
    if (!column)
        return -1;
    CLEANUP(mem) struct sort_item *sorted = mem_zarray(len + 1, sizeof *sorted);
    for (size_t i = 0; i < len; i++) {
        sorted[i] = (struct sort_item){.object = json_incref(json_array_get(items, i)), .at = i};
        item_key(column, sorted[i].object, &sorted[i]);
    }
    qsort(sorted, len, sizeof *sorted, item_compare);
    json_array_clear(items);
    for (size_t i = 0; i < len; i++) {
        json_array_append_new(items, sorted[i].object);
        mem_free(sorted[i].text);
    }
    return 0;
}

void instances_print(const struct cli *cli, const char *title, const json_t *instances, size_t most)
{
    CLEANUP(listing) struct listing listing = {0};
    size_t len = json_array_size(instances);

    if (len == 0)
        return;
    section_print(cli, title);
    listing_init(&listing, cli, collection_find("instance"), false);
    for (size_t i = 0; i < len && i < most; i++)
        listing_add(&listing, json_array_get(instances, i));
    listing_print(&listing);
    if (len > most)
        fputs("... more: 'berth get instances'\n", cli->out);
}
