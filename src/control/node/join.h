/* join.h - how a machine becomes a node: invitation, join with a one-time token, renewal of its certificate.
 *
 * A node's agent is identified by a certificate of the cluster's CA with the common name "node:ID". Its serial number
 * contains the number of the join; the node's document has that number, too (`joined`). When a node is released, added
 * again or joins again, all earlier certificates become invalid at once, whatever their dates say. The resources that
 * the machine reports (`probed`) are accepted in full at the join; later only decreases are: see join_probed.c.
 */
#pragma once

#include "control/node/node.h"

/* Creates a node, unless it exists, and an invitation token for it. */
request_verb node_invite;
/* Lets a machine with an invitation token become the node. */
request_verb node_join;
/* Issues another certificate to a node's own agent. */
request_verb node_certificate;
/* Accepts, for an administrator, the resources that the machine has beyond its ceiling. */
request_verb node_accept;

/* Checks a list of addresses, "https://A:3981,https://B:3981", that is safe to paste into a shell. */
int agent_addresses_check(const char *text, struct berth_err *err);

/* ---- resources of a machine (join_probed.c) --------------------------------------------------------------------- */

/* Checks that `probed` is an object of limited size with amounts. -EINVAL. */
int probed_check(const json_t *probed, struct berth_err *err);
/* At a join: sets the ceiling and all values that the administrator left open in the node's document. */
void probed_apply(json_t *doc, const json_t *probed);
/* Makes `allocatable`, as set by an administrator, the ceiling of a node that has been probed. -EINVAL: it exceeds the
 * machine. */
int probed_ceiling(const json_t *old, json_t *doc, struct berth_err *err);
/* Sets the document's GPUs if it has none, or updates them to the machine's (`replace`): known GPUs keep their index; a
 * new GPU takes the index of a removed one, or the end. (join_gpus.c) */
void probed_gpus_apply(json_t *doc, const json_t *probed, bool replace);
/* Returns the machine's number of GPUs if some of them are not in its document, else 0. (join_gpus.c) */
int64_t probed_gpus_grown(const json_t *doc);
/* Returns the resources beyond the ceiling: {resource: amount}; NULL: none. A new reference. */
json_t *probed_grown(const json_t *doc);
