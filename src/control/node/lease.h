/* lease.h - leases of nodes: detects nodes that stop reporting, by the steady clock, in memory only.
 *
 * A node with an agent (its document has an epoch) has a lease that every report renews. A daemon grants each node a
 * fresh lease at its start. When a lease expires, the node is recorded as lost, once; its next report brings it back. A
 * node is identified by its name and the revision that created it, so a node that was removed and added again is a
 * different one.
 */
#pragma once

#include "control/control.h"

struct node_leases;
struct node_leases *leases_new(void);
void leases_free(struct node_leases *l);

void lease_note_report(struct node_leases *l, const struct object *node, uint64_t epoch, uint64_t seq,
                       int64_t steady_ns);
bool lease_last(const struct node_leases *l, const struct object *node, uint64_t *ret_epoch, uint64_t *ret_seq);
/* Records as lost the nodes whose lease has expired. Returns when to call again (steady time). O(nodes with a
 * lease). */
int64_t leases_expire(struct control *c, int64_t steady_ns);
