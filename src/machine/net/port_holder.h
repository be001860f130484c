/* port_holder.h - which control group has bound which port on this machine, as the kernel tells (NETLINK_SOCK_DIAG). */
#pragma once

#include <stdint.h>

/* Calls `each` for every TCP socket that listens and every UDP socket, of this process's network. `group`: the number of the socket's group in
 * the cgroup v2 hierarchy, which is the inode of the group's folder. -errno: the kernel cannot tell, or not all of it. */
int port_holders_each(void (*each)(void *ctx, uint16_t port, uint64_t group), void *ctx);
