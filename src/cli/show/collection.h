/* collection.h - the kinds of object the API has, as the command line knows them: words, columns, filters, order.
 *
 * To add a kind: a row in collection.c, at its place in the order of dependence: manifests are applied in this order.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"
#include "cli/lib/cli.h"
#include "cli/lib/options.h"

enum column_form {
    COLUMN_TEXT,   /* a text, a number, or true and false */
    COLUMN_STATE,  /* a word with a colour */
    COLUMN_AGE,    /* time since then */
    COLUMN_UNTIL,  /* time until then */
    COLUMN_PART,   /* "2/3": the value at `path` of the one at `of` */
    COLUMN_AMOUNT, /* of the resource that is the path's last word */
    COLUMN_COUNT,  /* how many; of GPUs each entry may count for several */
    COLUMN_YES,    /* "yes" or nothing */
    COLUMN_MILLI,  /* thousandths as "42%" */
    COLUMN_WORDS,  /* a list, joined */
    COLUMN_PAIRS,  /* an object as k=v, joined */
};

struct column {
    const char *title;
    enum column_form form;
    const char *path; /* of keys, with dots; several with '|' between: the first that is there */
    const char *of;   /* of COLUMN_PART */
    unsigned flags;   /* of enum table_flag */
    bool wide;        /* only with -o wide */
};

struct collection {
    const char *kind, *plural; /* "app", "apps" */
    const char *others;        /* words that mean the same, with a space between; NULL: none */
    bool manifest;             /* may stand in a manifest, and be edited */
    bool workload;             /* its status follows its instances */
    const char *filters;       /* that the server knows, with a space between; NULL: none */
    const struct column *columns;
    size_t columns_len;
};

extern const struct collection collections[];
extern const size_t collections_len;
/* Every word of every kind, for completion; ends with NULL. */
extern const char *const collection_words[];

/* NULL: no such kind. Takes "app", "apps" and the other words, in any case. */
const struct collection *collection_find(const char *word);
/* The kind nearest to a wrong word, or NULL. */
const char *collection_near(const char *word);
bool collection_filters(const struct collection *c, const char *filter);

/* What a verb is to work on: "KIND ID...", or "KIND/ID...". */
struct target {
    const struct collection *collection;
    const char *id; /* NULL: all of the kind */
};
struct targets {
    struct target *at;
    size_t len, cap;
};
/* Returns an enum exit_code, told. With `whole` a KIND alone is fine. */
int targets_parse(const struct cli *cli, const struct operands *operands, bool whole, struct targets *ret);
static inline void targets_cleanup(struct targets *t)
{
    vec_done(t);
}

/* The value at a path of keys, "a.b|c"; NULL: none. */
const json_t *value_at(const json_t *object, const char *path);
/* An object's id as text in the caller's buffer; "" where it has none. */
enum { ID_TEXT_MAX = 256 };
const char *object_id(const json_t *object, char buf[static ID_TEXT_MAX]);

/* As a manifest has it: `kind` first, the id, then the rest. A resource's own kind is called `type` there. A new
 * reference. */
json_t *object_to_manifest(const struct collection *c, const json_t *object);
/* Back: without `kind`. Changes the object. */
void object_from_manifest(const struct collection *c, json_t *object);
