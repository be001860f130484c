/* document.h - a file in JSON or YAML becomes a tree of values, or several of them.
 *
 * The format is told by the content: what starts with { or [ is JSON, everything else YAML. Both give the same tree:
 * objects keep their order, a key stands once, strings are UTF-8 without NUL. Everything a hostile file could grow is
 * bounded here, so that what reads the tree may recurse. What a document means is not known here; see cluster_file.h.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define DOCUMENT_BYTES_MAX ((size_t)1 << 30)
enum {
    DOCUMENT_NODES_MAX = 64 * 1024 * 1024, /* values and keys, each alias counted as what it stands for */
    DOCUMENT_DEPTH_MAX = 64,
};

/* Reads a whole file, or standard input when path is "-". On success *ret is a new reference of the caller's. Errors
 * say where: "lab.yaml:12:5: ...". */
int document_read(const char *path, json_t **ret, struct berth_err *err);

/* The same from memory; `name` stands in errors. */
int document_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err);

/* A file of several documents: YAML with `---` between them, or JSON values one after the other. What is empty counts as
 * none, so there may be no document at all. */
struct document {
    json_t *root;
    size_t line; /* where it starts, from 1 */
};

struct documents {
    struct document *at;
    size_t len, cap;
};

/* As document_read and document_parse. On failure *ret is empty. */
int documents_read(const char *path, struct documents *ret, struct berth_err *err);
int documents_parse(const char *text, size_t len, const char *name, struct documents *ret, struct berth_err *err);
void documents_done(struct documents *d);

static inline void json_cleanup(json_t **doc)
{
    json_decref(*doc);
}
