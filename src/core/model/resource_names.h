/* resource_names.h - takes the resource names of an accepted description before the description is put.
 *
 * A cluster holds at most BERTH_RESOURCES_MAX names. Between the check of a description (describe_node and others) and its
 * berth_node_put, other descriptions are checked: those of the same transaction, and those of requests that arrive before
 * the commit. Each of them may fit alone, and all together may not; what is committed and does not fit can never be put. So
 * the caller takes the names as soon as a description is accepted. A name stays taken until the cluster is built anew.
 *
 * Each function expects a description that its check found good for this cluster.
 */
#pragma once

#include "core/model/cluster.h"

void resource_names_of_node(struct berth_cluster *c, const struct berth_node *n);
void resource_names_of_workload(struct berth_cluster *c, const struct berth_workload *w);
void resource_names_of_volume(struct berth_cluster *c, const struct berth_volume *v);
void resource_names_of_quota(struct berth_cluster *c, const struct berth_quota *q);

/* How many names a workload or a quota would add; a name that a description has twice may count twice. */
size_t resource_names_new_of_workload(const struct berth_cluster *c, const struct berth_workload *w);
size_t resource_names_new_of_quota(const struct berth_cluster *c, const struct berth_quota *q);
