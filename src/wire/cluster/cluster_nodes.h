/* cluster_nodes.h - reads only the nodes and profiles of a cluster file, for simulations that build their own clusters.
 *
 * The whole file is validated as by cluster_file.h; its other objects are ignored.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "berth.h"

struct cluster_nodes {
    struct arena arena; /* owns everything below */
    struct berth_node *nodes;
    size_t nodes_len;
    const struct berth_profile *profiles;
    size_t profiles_len;
};

/* Path "-" is standard input. On failure *ret is untouched. */
int cluster_nodes_read(const char *path, struct cluster_nodes *ret, struct berth_err *err);
void cluster_nodes_done(struct cluster_nodes *n);
