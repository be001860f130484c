/* document.h - a file in JSON or YAML becomes a tree of values.
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

static inline void json_cleanup(json_t **doc)
{
    json_decref(*doc);
}
