/* port_guard.h - keeps the ports that an app was given from all other instances of the node.
 *
 * A table of ports, of which each may be reserved for an owner, and a small program (BPF, cgroup/bind4 and bind6) on the control
 * group of every instance: bind() of a port that is reserved for another owner fails with EPERM, and is counted. Ports that nobody has
 * reserved are free for all; what is bound already stays bound, and port_guard_look finds out who has it. It needs a cgroup v2 hierarchy, which may be
 * one without controllers beside v1. The programs stay with the groups when the agent ends; the next agent puts its own, with its own
 * table, in their place. Sockets that the agent makes and hands over are not looked at.
 *
 * May be used by several threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct port_guard;

struct port_guard *port_guard_new(void);
void port_guard_free(struct port_guard *g); /* leaves the programs on their groups; NULL is fine */

/* Reserves `count` ports from `start` for the instance `id` of `owner`, any number but 0; several instances of an owner may have the same. */
void port_guard_reserve(struct port_guard *g, uint64_t id, uint16_t start, uint16_t count, uint64_t owner);
/* Puts the program on the instance's group (a folder of a cgroup v2 hierarchy). -EOPNOTSUPP: this kernel cannot, or the agent may not. */
int port_guard_put(struct port_guard *g, uint64_t id, const char *group, uint64_t owner, struct berth_err *err);
/* Forgets the instance: its ports, and what was counted of it. */
void port_guard_drop(struct port_guard *g, uint64_t id);
/* Looks for ports that another than their owner has bound, before they were reserved. Time of all sockets of this machine that listen. */
void port_guard_look(struct port_guard *g);
/* True: since this was last asked the instance was refused a port that is reserved for another, or was found to have bound one; `ret` is
 * the last one. */
bool port_guard_claimed(struct port_guard *g, uint64_t id, uint16_t *ret);
