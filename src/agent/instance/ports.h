/* ports.h - ports and exclusive resources of an instance: picks free ones, passes them to the instance and records
 * them.
 *
 * A port is taken from the endpoint's port block and passed as a listening socket or by an environment variable. Of an
 * exclusive resource the first piece is taken that no instance on this node has.
 */
#pragma once

#include "agent/agent_parts.h"

struct bound_ports {
    struct {
        const char *endpoint; /* points into the configuration */
        uint16_t port;
    } ports[ENDPOINTS_MAX];
    size_t ports_len;
    int sockets[ENDPOINTS_MAX];
    const char *socket_names[ENDPOINTS_MAX];
    size_t sockets_len;
    json_t *exclusive; /* {resource: name} */
};

/* Claims a port for each endpoint and the exclusive resources. -EADDRINUSE: all ports of a block are in use by
 * processes outside Berth. */
int bound_ports_make(struct agent_instance *r, struct bound_ports *ret, struct berth_err *err);
/* Adds PORT, PORT_NAME and BERTH_EXCLUSIVE_NAME to the environment. */
void bound_ports_env(const struct bound_ports *b, struct arena *arena,
                     void (*add)(void *ctx, const char *name, const char *value), void *ctx);
/* Writes the ports into the instance directory, for a restarted agent, and into `r`. */
int bound_ports_save(struct agent_instance *r, const struct bound_ports *b, struct berth_err *err);
/* Restores ports and claims of an adopted instance from its directory. */
void bound_ports_read(struct agent_instance *r);
void bound_ports_done(struct bound_ports *b);
/* Denies the instance, before any of its processes runs, ports in the blocks of other workloads, if the kernel supports
 * it. `group`: its cgroup v2 directory; NULL: none. */
void ports_guard(struct agent_instance *r, const char *group);
/* Reports a port of another workload's block that the instance tried to bind or has bound. */
void ports_poll(struct agent_instance *r);
