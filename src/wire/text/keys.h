/* keys.h - parses objects by tables of keys, with one loop for all objects.
 *
 * A table has a row for each key: its name, the form of its value, its meaning, and the function that parses the value
 * into a field of a C struct. The same rows reject unknown keys and print the reference. A key whose value is null
 * counts as absent.
 *
 * A reader function returns 0 or a negative errno with the message in r->err; its caller prepends the name of the key.
 * Stored strings point into the document, or into r->arena.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "berth.h"

struct reader {
    struct arena *arena;              /* results live as long as this arena and the document */
    struct berth_err *err;            /* never NULL */
    bool copy_text;                   /* copy strings to the arena, so that they outlive the document */
    size_t item;                      /* index of the list item with the error; SIZE_MAX: none */
    const char *resource;             /* resource of the amounts being parsed */
    const struct berth_label *labels; /* of the current workload */
    size_t labels_len;
};

struct key;
typedef int key_read(struct reader *r, const struct key *key, const json_t *value, void *object);

struct key {
    const char *name, *form, *help;
    key_read *read;
    size_t at;     /* offset of the field in the object */
    size_t len_at; /* offset of the field with a list's length */
    const void *arg;
};

struct key_table {
    const char *name;
    const struct key *keys;
    size_t len;
};

/* A row; the optional arguments after the reader set .at, .len_at and .arg. */
#define KEY(name_, form_, help_, read_, ...)                                                                           \
    {                                                                                                                  \
        .name = name_, .form = form_, .help = help_, .read = read_, __VA_ARGS__                                        \
    }

#define KEY_TABLE(variable, title, rows)                                                                               \
    const struct key_table variable = {.name = (title), .keys = (rows), .len = sizeof(rows) / sizeof *(rows)}

/* One of several tables of an object, each with its own struct. */
struct object_part {
    const struct key_table *table;
    void *object;
};

void reader_init(struct reader *r, struct arena *arena, struct berth_err *err);
int object_read(struct reader *r, const json_t *value, const struct object_part *parts, size_t parts_len);
int table_read(struct reader *r, const json_t *value, const struct key_table *table, void *object);

/* Sets the error "expected WHAT, found ...". */
int expected(struct reader *r, const char *what, const json_t *found);
/* Prepend the list index or member name to the error. Return rc; do nothing if rc is 0. */
int in_item(struct reader *r, size_t i, int rc);
int in_member(struct reader *r, const char *name, int rc);
/* Sets the error for a missing required key. */
int missing(struct reader *r, const char *key);

static inline void *key_field(const struct key *key, void *object)
{
    return (char *)object + key->at;
}

void list_set(const struct key *key, void *object, const void *at, size_t len);

/* ---- one value ---- */

/* Returns the text itself, or with copy_text a copy that outlives the document. */
const char *text_keep(struct reader *r, const char *text);
/* Reads a string, or an integer as text. */
int text_of(struct reader *r, const json_t *value, const char **ret);
/* Like text_of for a label, where true and false are also text. */
int label_text_of(struct reader *r, const json_t *value, const char **ret);
/* Reads an amount of this resource, not below 0. */
int amount_of(struct reader *r, const char *resource, const json_t *value, int64_t *ret);

key_read text_read, bool_read, u32_read, i32_read, i64_read, u64_read, time_read, duration_read;
key_read moment_read;   /* a time after 1970 */
key_read choice_read;   /* int field: 0 or 1; its initial value means "not given" */
key_read word_read;     /* arg: struct enum_word[], ends with NULL */
key_read quantity_read; /* arg: the resource, or NULL for r->resource */
key_read raw_read;      /* const json_t * field */

struct enum_word {
    const char *name;
    unsigned value;
};
/* Finds the value of a word, ignoring case. */
int word_find(struct reader *r, const struct enum_word *words, const char *text, unsigned *ret);

/* ---- lists and maps ---- */

key_read texts_read;   /* list of strings; a single string needs no brackets */
key_read amounts_read; /* {resource: amount} */
key_read times_read;   /* {resource: time} */
key_read ratios_read;  /* {resource: ratio} in thousandths */
key_read labels_read;  /* {key: value} */

/* arg of objects_read; a single object needs no brackets. */
struct object_kind {
    const struct key_table *table;
    size_t size;
    const void *initial; /* `size` bytes; NULL: zeroes */
    /* Parses a non-object shorthand; NULL rejects one. */
    int (*read_short)(struct reader *r, const json_t *value, void *item);
    /* Called after all keys: sets defaults and checks required keys; may be NULL. */
    int (*finish)(struct reader *r, void *item);
};
key_read objects_read;
