/* ports.h - the ports of an instance: found within its block, handed over listening or told by name, written down.
 *
 * And pieces of exclusive resources, by the same rule: the first that nobody here has.
 */
#pragma once

#include "agent/agent_parts.h"

struct bound {
    struct {
        const char *endpoint; /* the configuration's */
        uint16_t port;
    } ports[ENDPOINTS_MAX];
    size_t ports_len;
    int sockets[ENDPOINTS_MAX];
    const char *socket_names[ENDPOINTS_MAX];
    size_t sockets_len;
    json_t *exclusive; /* {resource: name} */
};

/* Takes a port for each endpoint. -EADDRINUSE: the whole block is taken, and by whom nobody knows. */
int bound_make(struct run *r, struct bound *ret, struct berth_err *err);
/* PORT, PORT_NAME, BERTH_EXCLUSIVE_NAME. */
void bound_env(const struct bound *b, struct arena *arena, void (*add)(void *ctx, const char *name, const char *value),
               void *ctx);
/* Writes them into the instance's folder, so that the next agent knows them, and into the run. */
int bound_keep(struct run *r, const struct bound *b, struct berth_err *err);
/* The other way round, for an instance that was found. */
void bound_read(struct run *r);
void bound_done(struct bound *b);
/* Before anything of the instance runs: keeps it from ports of others' blocks, where the kernel can. `group`: its folder in a cgroup v2
 * hierarchy; NULL: there is none. */
void ports_guard(struct run *r, const char *group);
/* Tells of a port of another's block that it was refused, or has bound. */
void ports_look(struct run *r);
