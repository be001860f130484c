/* port.h - allocation of ports: a block for each app by its index, fixed ports for the system, no overlaps.
 *
 * An app with endpoints has an index, and with it the ports from PORT_BASE + PORT_BLOCK * index on, below PORT_END. The
 * lowest free index is used. Ports of the system are in one table, which is checked against the blocks and for
 * duplicates.
 */
#pragma once

#include "control/state/change.h"

struct system_port {
    const char *name;
    uint16_t port;
    enum berth_protocol protocol;
};
/* Returns NULL past the end. */
const struct system_port *system_port_at(size_t i);

/* Takes the lowest index that no app has and whose block contains no system port; -EDQUOT: none is left. Considers the
 * change's documents, and guards against another transaction that takes the same index (KIND_COUNTER "ports"). */
int port_index_take(struct change *c, int32_t *ret, struct berth_err *err);
