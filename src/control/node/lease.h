/* lease.h - which nodes are heard of, by the steady clock, in memory only.
 *
 * A node that has an agent (its document has an epoch) holds a lease that every report renews. A daemon that starts grants
 * each a fresh one. When it runs out the node is written down as lost, once; its next report brings it back. A node is known
 * by its name and the revision that made it: one that was removed and added again is another one.
 */
#pragma once

#include "control/control.h"

struct leases;
struct leases *leases_new(void);
void leases_free(struct leases *l);

void lease_heard(struct leases *l, const struct object *node, uint64_t epoch, uint64_t seq, int64_t steady_ns);
bool lease_last(const struct leases *l, const struct object *node, uint64_t *ret_epoch, uint64_t *ret_seq);
/* Writes down the nodes whose lease has run out; returns when to look again (steady). O(nodes with a lease). */
int64_t leases_expire(struct control *c, int64_t steady_ns);
