/* listing.h - objects of one kind as rows of a table, by the columns of collection.h.
 *
 * A listing may be printed in parts, as a watch does: each column keeps the width of the earlier parts.
 */
#pragma once

#include "base/str.h"
#include "cli/show/collection.h"

enum { LISTING_COLUMNS_MAX = 16 };

struct listing {
    const struct cli *cli;
    const struct collection *collection;
    bool wide;
    int64_t now_ns;
    json_t *rows; /* lists of cells: [text, colour] */
    size_t width[LISTING_COLUMNS_MAX];
    bool headed; /* the header has been printed */
};

void listing_init(struct listing *l, const struct cli *cli, const struct collection *collection, bool wide);
void listing_done(struct listing *l);
static inline void listing_cleanup(struct listing *l)
{
    listing_done(l);
}
void listing_add(struct listing *l, const json_t *object);
/* Adds a row with only an id and one word. */
void listing_add_word(struct listing *l, const char *id, const char *word);
/* Prints the rows and removes them from the listing. */
void listing_print(struct listing *l);

/* Prints a heading and the first `most` instances; nothing for an empty list. */
void instances_print(const struct cli *cli, const char *title, const json_t *instances, size_t most);

/* Writes the text of one cell; sets *ret_color. */
void column_text(const struct column *column, const json_t *object, int64_t now_ns, struct str *to,
                 enum color *ret_color);
/* Returns the colour of a state such as "running". */
enum color state_color(const char *state);

/* Sorts objects by a column's title (case ignored): numbers by value, times from the oldest. Returns -1 if there is no
 * such column. */
int objects_sort(const struct collection *c, json_t *items, const char *title);

/* Returns the nanoseconds since 1970, for ages. */
int64_t wall_clock_ns(void);
