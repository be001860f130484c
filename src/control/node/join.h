/* join.h - how a machine becomes a node: it is invited, joins by a one-time token, and renews its certificate.
 *
 * A node's agent is known by a certificate of the cluster's authority with the common name "node:ID". Its serial number has
 * the number of the join it came from, which the node's document has too (`joined`): when a node is released, added again or
 * joins again, all earlier certificates are worthless at once, whatever their dates say. What the machine says it has
 * (`probed`) is taken as it is at the join, and afterwards only if it is less: see join_probed.c.
 */
#pragma once

#include "control/node/node.h"

/* Makes a node (if it is not there) and a token for it. */
call_run node_invite;
/* A machine with such a token becomes the node. */
call_run node_join;
/* Another certificate for a node's own agent. */
call_run node_certificate;
/* What the machine has more than it may use: an administrator lets it. */
call_run node_accept;

/* "https://A:3981,https://B:3981": safe to be pasted into a shell. */
int agent_addresses_check(const char *text, struct berth_err *err);

/* ---- what a machine has (join_probed.c) ---- */

/* Is it of a bearable size, and an object with amounts? -EINVAL. */
int probed_check(const json_t *probed, struct berth_err *err);
/* At a join: fills in what the administrator has left open in the node's document, and the ceiling. */
void probed_take(json_t *doc, const json_t *probed);
/* `allocatable` has been set by an administrator: that is the ceiling now, of a node that has been probed. -EINVAL: it
 * is more than the machine has. */
int probed_ceiling(const json_t *old, json_t *doc, struct berth_err *err);
/* GPUs of the document, where it has none, or (`replace`) as the machine says now: each stays in its place, what is new comes
 * for one that is gone or at the end. (join_gpus.c) */
void probed_gpus_take(json_t *doc, const json_t *probed, bool replace);
/* How many GPUs the machine has, if some of them are not in its document; else 0. (join_gpus.c) */
int64_t probed_gpus_grown(const json_t *doc);
/* What the machine has beyond the ceiling: {resource: amount}; NULL: nothing. A new reference. */
json_t *probed_grown(const json_t *doc);
