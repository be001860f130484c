/* port_guard.h - keeps the ports of an app from being bound by other instances of the node.
 *
 * Consists of a table with the owner of each reserved port, and a BPF program (cgroup/bind4 and bind6) on the cgroup of
 * every instance: bind() of a port that is reserved for another owner fails with EPERM and is counted. Unreserved ports
 * are free for all. Existing bindings stay; port_guard_poll finds their holders. Needs a cgroup v2 hierarchy, which may
 * be one without controllers beside v1. The programs stay attached when the agent exits; the next agent replaces them
 * by its own with its own table. Sockets that the agent creates and passes on are not checked.
 *
 * Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct port_guard;

struct port_guard *port_guard_new(void);
void port_guard_free(struct port_guard *g); /* the programs stay attached; NULL is fine */

/* Reserves `count` ports from `start` for the instance `id` of `owner`, any number but 0; instances of one owner may
 * reserve the same ports. */
void port_guard_reserve(struct port_guard *g, uint64_t id, uint16_t start, uint16_t count, uint64_t owner);
/* Attaches the program to the instance's cgroup (a directory of a cgroup v2 hierarchy). -EOPNOTSUPP: the kernel does
 * not support it, or the agent lacks the privilege. */
int port_guard_put(struct port_guard *g, uint64_t id, const char *group, uint64_t owner, struct berth_err *err);
/* Removes the instance's reservations and counters. */
void port_guard_drop(struct port_guard *g, uint64_t id);
/* Finds reserved ports that another instance had bound before. Takes time proportional to the machine's listening
 * sockets. */
void port_guard_poll(struct port_guard *g);
/* True: since the last call the instance was denied a port that is reserved for another owner, or was found to have
 * bound one; `ret` is the last such port. */
bool port_guard_claimed(struct port_guard *g, uint64_t id, uint16_t *ret);
