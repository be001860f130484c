/* manifest.h - files that say what shall be on a server: documents with a `kind`, in YAML or JSON.
 *
 * A file holds one document or several (`---`), a JSON array, or what 'berth get -o json' prints. A folder stands for
 * all *.yaml, *.yml and *.json below it, in the order of their names. Nothing here talks to a server.
 */
#pragma once

#include "base/err.h"
#include "cli/show/collection.h"

struct manifest {
    const struct collection *collection;
    json_t *object; /* as the API takes it: without `kind` and without what the daemon adds */
    char *id;       /* NULL: a new job */
    char *place;    /* "photos.yaml:12" */
};

struct manifests {
    struct manifest *at;
    size_t len, cap;
};

/* Appends what a file, a folder or standard input ("-") holds. -EINVAL with its place for a document that cannot be one
 * of a manifest. */
int manifests_read(const char *path, struct manifests *to, struct berth_err *err);
/* Likewise one document. Takes no reference. `line` is where it starts. */
int manifests_add(struct manifests *to, const json_t *document, const char *name, size_t line, struct berth_err *err);
/* By the order of dependence of the kinds; within a kind as they came. */
void manifests_sort(struct manifests *m);
/* -EEXIST for two documents of one object, naming both places. */
int manifests_check(const struct manifests *m, struct berth_err *err);
void manifests_done(struct manifests *m);
static inline void manifests_cleanup(struct manifests *m)
{
    manifests_done(m);
}
