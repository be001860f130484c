/* collection.h - the API's kinds of object as the command line uses them: names, columns, filters, order.
 *
 * To add a kind: a row in collection.c, at its place in the order of dependence. Manifests are applied in this order.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"
#include "cli/lib/cli.h"
#include "cli/lib/options.h"

enum column_form {
    COLUMN_TEXT,   /* a string, a number or a boolean */
    COLUMN_STATE,  /* a state, with its colour */
    COLUMN_AGE,    /* time since then */
    COLUMN_UNTIL,  /* time until then */
    COLUMN_PART,   /* "2/3": the value at `path` of the value at `of` */
    COLUMN_AMOUNT, /* a quantity of the resource named by the path's last key */
    COLUMN_COUNT,  /* number of entries; a GPU entry may count for several GPUs */
    COLUMN_YES,    /* "yes" or nothing */
    COLUMN_MILLI,  /* thousandths as "42%" */
    COLUMN_WORDS,  /* the items of a list, joined */
    COLUMN_PAIRS,  /* an object as k=v, joined */
};

struct column {
    const char *title;
    enum column_form form;
    const char *path; /* dotted keys; alternatives separated by '|': the first present one is used */
    const char *of;   /* path of the total of COLUMN_PART */
    unsigned flags;   /* of enum table_flag */
    bool wide;        /* shown only with -o wide */
};

struct collection {
    const char *kind, *plural; /* "app", "apps" */
    const char *others;        /* aliases, separated by spaces; NULL: none */
    bool manifest;             /* may be in a manifest, and be edited */
    bool workload;             /* status depends on its instances */
    const char *filters;       /* filters of the server, separated by spaces; NULL: none */
    const struct column *columns;
    size_t columns_len;
};

extern const struct collection collections[];
extern const size_t collections_len;
/* Every name of every kind, for completion; ends with NULL. */
extern const char *const collection_words[];

/* Finds a kind by "app", "apps" or an alias, ignoring case. Returns NULL if there is no such kind. */
const struct collection *collection_find(const char *word);
/* Returns the kind nearest to a misspelled name, or NULL. */
const char *collection_near(const char *word);
bool collection_filters(const struct collection *c, const char *filter);

/* An object named on the command line by "KIND ID..." or "KIND/ID...". */
struct object_target {
    const struct collection *collection;
    const char *id; /* NULL: all objects of the kind */
};
struct object_targets {
    struct object_target *at;
    size_t len, cap;
};
/* Parses the operands into targets. With `whole`, a KIND without ids names all its objects. Returns an enum exit_code
 * and prints the error. */
int targets_parse(const struct cli *cli, const struct operands *operands, bool whole, struct object_targets *ret);
static inline void targets_cleanup(struct object_targets *t)
{
    vec_done(t);
}

/* Returns the value at a path of dotted keys, "a.b|c"; NULL: not present. */
const json_t *value_at(const json_t *object, const char *path);
/* Writes an object's id as text to the caller's buffer; "" for an object without id. */
enum { ID_TEXT_MAX = 256 };
const char *object_id(const json_t *object, char buf[static ID_TEXT_MAX]);

/* Returns the object as in a manifest: `kind` first, then the id, then the rest. A resource's own kind is named `type`
 * there. The result is a new reference. */
json_t *object_to_manifest(const struct collection *c, const json_t *object);
/* Converts a manifest's object in place to the API's form, without `kind`. */
void object_from_manifest(const struct collection *c, json_t *object);
