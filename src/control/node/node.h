/* node.h - nodes as objects: their verbs, and the reports of their agents. crud.h tells how they are written.
 *
 * `state`, `since` and `disabled` of a node belong to the daemon: verbs and reports change them, writing the document
 * back does not. What a node offers (capabilities) and what steers its use (settings) are parts of its document with
 * routes of their own.
 */
#pragma once

#include "control/api/crud.h"

/* Returns -EBUSY if instances use devices or ports that the new document removes. (node_holdings.c) */
int node_check_in_use(struct request *c, const char *id, const json_t *old, const json_t *doc);
/* Returns the status of a draining node: {"left": N, "waiting": [{"instance", "workload", "for"}]}, for some of its
 * instances. `for` is "own end", "stop", "fence", "min_available" (the replacement is not ready), "plan" (the next plan
 * looks for a replacement) or "place" (the last plan found no node). A new reference. (node_holdings.c) */
json_t *node_drain_status(const struct request *c, const struct object *node);
/* Returns whether the instance still uses its node. An ended task does not; its record belongs to the job.
 * (node_holdings.c) */
bool instance_holds_node(const struct object *instance);
/* Returns the number of instances on the node that have not ended. O(instances and records of ended tasks there). */
size_t node_instances(const struct node_view *node);
/* Returns the workload's document from which the instance was placed. A new reference; NULL: not known any more. */
json_t *instance_work_doc(const struct state *s, const struct object *instance);
/* Releases a node. -EBUSY, naming some instances, if it still has any; with ?force=true they are deleted with
 * everything else of the node. */
int node_release(struct request *c, const char *id);

/* Returns a workload that mounts the volume; NULL: none. (node_volume.c) */
const char *volume_mounted_by(struct request *c, const char *id);

/* Parts of a node's document, for /openapi.json. (node_verbs.c) */
extern const char *const node_capability_keys[], *const node_setting_keys[];

request_verb node_disable, node_enable, node_cordon, node_drain, node_put_capabilities, node_put_settings;
request_verb node_report; /* report.c */

/* Records what an agent reports about its machine; `allocatable` is lowered where the machine has less than before.
 * Unusable values are left out; -EINVAL if it is not such an object. (join_probed.c) */
int node_probed(struct request *c, const char *node, const json_t *probed);
/* For streams of a node's agent, which pass `?epoch=N`: -EAGAIN if a newer agent is known. An open stream ends when a
 * newer agent reports. (join.c) */
int node_epoch_check(struct request *c, const char *node);
