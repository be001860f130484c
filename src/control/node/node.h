/* node.h - nodes as objects, their verbs, and what agents report. See crud.h for how they are written.
 *
 * `state`, `since` and `disabled` of a node are the daemon's: verbs and reports change them, a document that is written
 * back leaves them alone. What a node may offer (capabilities) and what steers its use (settings) are parts of its
 * document that have routes of their own.
 */
#pragma once

#include "control/api/crud.h"

/* -EBUSY when instances hold devices or ports that the new document takes from them. (node_holdings.c) */
int node_held_check(struct call *c, const char *id, const json_t *old, const json_t *doc);
/* Of a node that is to become empty: {"left": N, "waiting": [{"instance", "workload", "for"}]}, of some of them. `for` is
 * "own end", "stop", "fence", "min_available" (its replacement is not ready), "plan" (the next plan looks for one) or
 * "place" (the last plan found none). A new reference. (node_holdings.c) */
json_t *node_drain_status(const struct call *c, const struct object *node);
/* Has the instance still a hold on its node? A task that is done has not: its record is the job's. (node_holdings.c) */
bool instance_holds_node(const struct object *instance);
/* Instances on the node that have not ended. O(instances and records of ended tasks there). */
size_t node_instances(const struct node_view *node);
/* The document of a workload as an instance was placed from it. A new reference; NULL: it is not known any more. */
json_t *instance_work_doc(const struct state *s, const struct object *instance);
/* Its instances are still there: -EBUSY naming some, or with ?force=true they go too, and all else that is the
 * node's. */
int node_release(struct call *c, const char *id);

/* Is the volume mounted by any workload's description? NULL: no. (node_volume.c) */
const char *volume_user(struct call *c, const char *id);

/* Parts of a node's document, by table, for /openapi.json. (node_verbs.c) */
extern const char *const node_capability_keys[], *const node_setting_keys[];

call_run node_disable, node_enable, node_cordon, node_drain, node_put_capabilities, node_put_settings;
call_run node_report; /* report.c */

/* An agent's report says what its machine has: recorded, and `allocatable` follows where it is less than before. What
 * cannot be used is left out; -EINVAL for what is no such object. (join_probed.c) */
int node_probed(struct call *c, const char *node, const json_t *probed);
/* For streams of a node's agent, which say `?epoch=N`: -EAGAIN where a newer agent is known. A stream that was opened after
 * this ends when a newer agent reports. (join.c) */
int node_epoch_check(struct call *c, const char *node);
