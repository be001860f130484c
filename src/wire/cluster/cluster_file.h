/* cluster_file.h - a file that describes a whole cluster becomes a cluster.
 *
 * The format is described in docs/cluster-file.md; its keys stand in one table per object (node_json.c, shape_json.c,
 * workload_json.c, ...), from which unknown keys are refused and the reference is printed. What a value may be is
 * decided by the model (berth_node_put and its kin); here is only how it is spelled.
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

/* `count` could make a small file a huge cluster. */
enum {
    CLUSTER_FILE_VERSION = 1,
    CLUSTER_FILE_NODES_MAX = 1024 * 1024,
    CLUSTER_FILE_WORKLOADS_MAX = 16 * 1024 * 1024,
};

struct cluster_file {
    struct berth_cluster *cluster;
    int64_t now_ns;
    uint64_t seed;
    const struct berth_profile *profiles; /* defined in the file; NULL: none */
    size_t profiles_len;
    struct arena arena; /* what the profiles point into */
};

/* Told now and then how many objects are in the cluster, of how many. */
typedef void cluster_file_progress(void *ctx, size_t done, size_t total);

/* Path "-" is standard input. progress may be NULL. On failure *ret is untouched and err names the object and the key:
 * `workloads[3] "web": replicas: expected a whole number, found "three"`. */
int cluster_file_read(const char *path, cluster_file_progress *progress, void *ctx, struct cluster_file *ret,
                      struct berth_err *err);
int cluster_file_parse(const json_t *doc, cluster_file_progress *progress, void *ctx, struct cluster_file *ret,
                       struct berth_err *err);
/* Frees the cluster too; take it out first to keep it. A zeroed struct is fine. */
void cluster_file_done(struct cluster_file *f);

/* A profile by name: the file's own first, then those built in; NULL: none. */
const struct berth_profile *cluster_file_profile(const struct cluster_file *f, const char *name);

/* Writes every object with its keys as Markdown tables. */
void cluster_file_keys_print(FILE *to);
