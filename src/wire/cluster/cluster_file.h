/* cluster_file.h - parses a file that describes a whole cluster.
 *
 * docs/cluster-file.md describes the format. Its keys are in one table per object (node_json.c, shape_json.c,
 * workload_json.c, ...); the tables reject unknown keys and print the reference. The model decides which values are
 * valid (berth_node_put and similar functions); this module only parses them.
 *
 * To add a key: a row in the table of its object, and a line in docs/cluster-file.md.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "berth.h"

/* Limits, because `count` could turn a small file into a huge cluster. */
enum {
    CLUSTER_FILE_VERSION = 1,
    CLUSTER_FILE_NODES_MAX = 1024 * 1024,
    CLUSTER_FILE_WORKLOADS_MAX = 16 * 1024 * 1024,
};

struct cluster_file {
    struct berth_cluster *cluster;
    int64_t now_ns;
    uint64_t seed;
    const struct berth_profile *profiles; /* the file's profiles; NULL: none */
    size_t profiles_len;
    struct arena arena; /* owns the strings of the profiles */
};

/* Called from time to time with the number of objects read so far and in all. */
typedef void cluster_file_progress(void *ctx, size_t done, size_t total);

/* Path "-" is standard input. progress may be NULL. On failure *ret is untouched and err names the object and the key:
 * `workloads[3] "web": replicas: expected a whole number, found "three"`. */
int cluster_file_read(const char *path, cluster_file_progress *progress, void *ctx, struct cluster_file *ret,
                      struct berth_err *err);
int cluster_file_parse(const json_t *doc, cluster_file_progress *progress, void *ctx, struct cluster_file *ret,
                       struct berth_err *err);
/* Frees the cluster too, unless the caller has set it to NULL. Accepts a zeroed struct. */
void cluster_file_done(struct cluster_file *f);

/* Finds a profile by name, first in the file, then among the built-in ones; NULL: none. */
const struct berth_profile *cluster_file_profile(const struct cluster_file *f, const char *name);

/* Prints every object with its keys as Markdown tables. */
void cluster_file_keys_print(FILE *to);
