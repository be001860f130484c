/* port_holder.h - lists which cgroup has bound which port on this machine (NETLINK_SOCK_DIAG). */
#pragma once

#include <stdint.h>

/* Calls `each` for every listening TCP socket and every unconnected UDP socket in this process's network namespace.
 * `group`: id of the socket's cgroup in the v2 hierarchy, which is the inode of its directory. -errno: the kernel did
 * not answer, or not completely. */
int port_holders_each(void (*each)(void *ctx, uint16_t port, uint64_t group), void *ctx);
