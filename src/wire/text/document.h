/* document.h - parses a JSON or YAML file into a tree of values, or several trees.
 *
 * The format follows from the content: text that starts with { or [ is JSON, everything else YAML. Both give the same
 * kind of tree: objects keep their order, keys are unique, strings are UTF-8 without NUL. All sizes that a hostile file
 * could inflate are limited here, so that code that reads the tree may recurse. The meaning of a document is decided
 * elsewhere; see wire/cluster/cluster_file.h.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define DOCUMENT_BYTES_MAX ((size_t)1 << 30)
enum {
    DOCUMENT_NODES_MAX = 64 * 1024 * 1024, /* values and keys; an alias counts as all values that it repeats */
    DOCUMENT_DEPTH_MAX = 64,
};

/* Reads a whole file, or standard input for the path "-". On success the caller owns the reference *ret. Errors name
 * the place: "lab.yaml:12:5: ...". */
int document_read(const char *path, json_t **ret, struct berth_err *err);

/* Parses text in memory; `name` is used in errors. */
int document_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err);

/* A file of several documents: YAML separated by `---`, or JSON values in sequence. Empty documents are skipped, so
 * there may be none. */
struct document {
    json_t *root;
    size_t line; /* first line, from 1 */
};

struct documents {
    struct document *at;
    size_t len, cap;
};

/* Like document_read and document_parse. On failure *ret is empty. */
int documents_read(const char *path, struct documents *ret, struct berth_err *err);
int documents_parse(const char *text, size_t len, const char *name, struct documents *ret, struct berth_err *err);
void documents_done(struct documents *d);

static inline void json_cleanup(json_t **doc)
{
    json_decref(*doc);
}
