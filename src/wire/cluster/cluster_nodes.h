/* cluster_nodes.h - the nodes and profiles of a cluster file as descriptions, for those who make clusters of their own of them.
 *
 * The whole file is checked as for a cluster (cluster_file.h); what else it holds is not used.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "berth.h"

struct cluster_nodes {
    struct arena arena; /* all that is pointed to */
    struct berth_node *nodes;
    size_t nodes_len;
    const struct berth_profile *profiles;
    size_t profiles_len;
};

/* Path "-" is standard input. On failure *ret is untouched. */
int cluster_nodes_read(const char *path, struct cluster_nodes *ret, struct berth_err *err);
void cluster_nodes_done(struct cluster_nodes *n);
