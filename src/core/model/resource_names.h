/* resource_names.h - reserves the resource names of an accepted description before the description is put.
 *
 * A cluster holds at most BERTH_RESOURCES_MAX names. Between the check of a description (describe_node and others) and
 * its berth_node_put, other descriptions are checked: those of the same transaction, and those of requests that arrive
 * before the commit. Each may fit alone while all together do not, and a committed description that does not fit can
 * never be put. So the caller reserves the names as soon as it accepts a description. A name stays reserved until the
 * cluster is built again.
 *
 * Each function expects a description that its check accepted for this cluster.
 */
#pragma once

#include "core/model/cluster.h"

void resource_names_of_node(struct berth_cluster *c, const struct berth_node *n);
void resource_names_of_workload(struct berth_cluster *c, const struct berth_workload *w);
void resource_names_of_volume(struct berth_cluster *c, const struct berth_volume *v);
void resource_names_of_quota(struct berth_cluster *c, const struct berth_quota *q);

/* Returns how many names a workload or a quota would add; a name that occurs twice in a description may count twice. */
size_t resource_names_new_of_workload(const struct berth_cluster *c, const struct berth_workload *w);
size_t resource_names_new_of_quota(const struct berth_cluster *c, const struct berth_quota *q);
