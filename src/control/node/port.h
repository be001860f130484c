/* port.h - the table of ports: blocks for apps by index, fixed ones for the system, none twice.
 *
 * An app with endpoints gets an index, and with it the ports PORT_BASE + PORT_BLOCK * index and on, below PORT_END. Indexes
 * are recycled: the lowest free one. Ports of the system stand in one table, checked against the blocks and each other.
 */
#pragma once

#include "control/state/change.h"

struct system_port {
    const char *name;
    uint16_t port;
    enum berth_protocol protocol;
};
/* NULL past the end. */
const struct system_port *system_port_at(size_t i);

/* The lowest index that no app has and whose block holds no system port; -EDQUOT: none is left. Looks through the change,
 * and guards against a second app that takes it at the same time (KIND_COUNTER "ports"). */
int port_index_take(struct change *c, int32_t *ret, struct berth_err *err);
