/* manifest.h - reads files that describe the desired objects of a server: documents with a `kind`, in YAML or JSON.
 *
 * A file contains one document, several documents (`---`), a JSON array, or the output of 'berth get -o json'. A folder
 * stands for all *.yaml, *.yml and *.json files below it, in the order of their names. This module never connects to a
 * server.
 */
#pragma once

#include "base/err.h"
#include "cli/show/collection.h"

struct manifest {
    const struct collection *collection;
    json_t *object; /* in the API's form: without `kind` and without fields that the daemon adds */
    char *id;       /* NULL: a new job */
    char *place;    /* "photos.yaml:12" */
};

struct manifests {
    struct manifest *at;
    size_t len, cap;
};

/* Appends the documents of a file, a folder or standard input ("-"). Returns -EINVAL, with file and line, for a
 * document that is not a valid manifest. */
int manifests_read(const char *path, struct manifests *to, struct berth_err *err);
/* Appends one document, which starts at `line` of the file `name`. Takes no reference. */
int manifests_add(struct manifests *to, const json_t *document, const char *name, size_t line, struct berth_err *err);
/* Sorts by the order of dependence of the kinds; keeps the order within a kind. */
void manifests_sort(struct manifests *m);
/* Returns -EEXIST if two documents describe the same object; the error names both places. */
int manifests_check(const struct manifests *m, struct berth_err *err);
void manifests_done(struct manifests *m);
static inline void manifests_cleanup(struct manifests *m)
{
    manifests_done(m);
}
