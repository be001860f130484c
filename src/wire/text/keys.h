/* keys.h - objects of the cluster file, described by tables and read by one loop.
 *
 * A table has a row per key: its name, how its value is written, what it means, and the function that reads it into a
 * field of a C struct. From the same rows unknown keys are refused and the reference is printed. A key whose value is
 * null counts as absent.
 *
 * A reader function returns 0 or a negative errno with the text in r->err; whoever calls it puts the name of the key
 * before the text. Strings it stores point into the document, or into r->arena.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "berth.h"

struct reader {
    struct arena *arena;              /* what is read lives as long as this and the document */
    struct berth_err *err;            /* never NULL */
    bool copy_text;                   /* strings too go to the arena: they outlive the document */
    size_t item;                      /* of the list in which reading failed; SIZE_MAX: in none */
    const char *resource;             /* whose amounts are being read */
    const struct berth_label *labels; /* of the workload at hand */
    size_t labels_len;
};

struct key;
typedef int key_read(struct reader *r, const struct key *key, const json_t *value, void *object);

struct key {
    const char *name, *form, *help;
    key_read *read;
    size_t at;     /* of the field in the object */
    size_t len_at; /* of the field with a list's length */
    const void *arg;
};

struct key_table {
    const char *name;
    const struct key *keys;
    size_t len;
};

/* A row; after the reader come .at, .len_at and .arg as it needs them. */
#define KEY(name_, form_, help_, read_, ...)                                                                           \
    {                                                                                                                  \
        .name = name_, .form = form_, .help = help_, .read = read_, __VA_ARGS__                                        \
    }

#define KEY_TABLE(variable, title, rows)                                                                               \
    const struct key_table variable = {.name = (title), .keys = (rows), .len = sizeof(rows) / sizeof *(rows)}

/* An object whose keys come from several tables, each for a struct of its own. */
struct part {
    const struct key_table *table;
    void *object;
};

void reader_init(struct reader *r, struct arena *arena, struct berth_err *err);
int object_read(struct reader *r, const json_t *value, const struct part *parts, size_t parts_len);
int table_read(struct reader *r, const json_t *value, const struct key_table *table, void *object);

/* "expected WHAT, found ...". */
int expected(struct reader *r, const char *what, const json_t *found);
/* Say where the failing value stands: in a list, or under a name. Pass rc through; nothing when it is 0. */
int in_item(struct reader *r, size_t i, int rc);
int in_member(struct reader *r, const char *name, int rc);
/* A key that must be there is not. */
int missing(struct reader *r, const char *key);

static inline void *key_field(const struct key *key, void *object)
{
    return (char *)object + key->at;
}

void list_set(const struct key *key, void *object, const void *at, size_t len);

/* ---- one value ---- */

/* The text itself, or a copy that outlives the document. */
const char *text_keep(struct reader *r, const char *text);
/* A string, or a whole number taken as text. */
int text_of(struct reader *r, const json_t *value, const char **ret);
/* The same for a label, where true and false are text too. */
int label_text_of(struct reader *r, const json_t *value, const char **ret);
/* An amount of this resource, not below 0. */
int amount_of(struct reader *r, const char *resource, const json_t *value, int64_t *ret);

key_read text_read, bool_read, u32_read, i32_read, i64_read, u64_read, time_read, duration_read;
key_read moment_read;   /* a time after 1970 */
key_read choice_read;   /* int field: 0 or 1; tells "no" from "not said" */
key_read word_read;     /* arg: struct word[], ended by NULL */
key_read quantity_read; /* arg: the resource, or NULL for r->resource */
key_read raw_read;      /* const json_t * field */

struct word {
    const char *name;
    unsigned value;
};
/* The value of a word, whatever its case. */
int word_find(struct reader *r, const struct word *words, const char *text, unsigned *ret);

/* ---- lists and maps ---- */

key_read texts_read;   /* of strings; one alone may stand without brackets */
key_read amounts_read; /* {resource: amount} */
key_read times_read;   /* {resource: time} */
key_read ratios_read;  /* {resource: ratio} in thousandths */
key_read labels_read;  /* {key: value} */

/* arg of objects_read; a single one may stand without brackets. */
struct object_kind {
    const struct key_table *table;
    size_t size;
    const void *initial; /* of `size` bytes; NULL: zeroes */
    /* For what is no object: a short form. NULL: refused. */
    int (*read_short)(struct reader *r, const json_t *value, void *item);
    /* After the keys were read: defaults and what must be there. NULL: nothing. */
    int (*finish)(struct reader *r, void *item);
};
key_read objects_read;
