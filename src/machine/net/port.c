#include "machine/net/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/launch/state_file.h"

enum { LISTEN_QUEUE = 4096 };

struct bind_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
    socklen_t len;
    bool dual;
};

static bool bind_address_parse(const char *address, struct bind_address *ret)
{
    *ret = (struct bind_address){.len = sizeof ret->v4};
    if (inet_pton(AF_INET, address, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        return true;
    }
    *ret = (struct bind_address){.len = sizeof ret->v6};
    ret->v6.sin6_family = AF_INET6;
    return inet_pton(AF_INET6, address, &ret->v6.sin6_addr) == 1;
}

/* Chooses a dual-stack socket if the machine supports IPv6. */
static void bind_address_any(struct bind_address *ret)
{
    CLEANUP(close_fd) int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int off = 0;

    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0) {
        *ret = (struct bind_address){.len = sizeof ret->v6, .dual = true};
        ret->v6.sin6_family = AF_INET6;
        return;
    }
    *ret = (struct bind_address){.len = sizeof ret->v4};
    ret->v4.sin_family = AF_INET;
}

/* Tries to bind the port. */
static int try(const struct bind_address *w, enum port_protocol protocol, uint16_t port)
{
    struct bind_address at = *w;
    CLEANUP(close_fd) int fd = -1;
    int on = 1, v6only = w->dual ? 0 : 1;

    fd = socket(at.any.sa_family, (protocol == PORT_UDP ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (at.any.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only))
        return -errno;
    /* Ignores lingering connections of the port's last user. Not for UDP, because it would allow sharing the port. */
    if (protocol == PORT_TCP && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on))
        return -errno;
    if (at.any.sa_family == AF_INET6)
        at.v6.sin6_port = htons(port);
    else
        at.v4.sin_port = htons(port);
    if (bind(fd, &at.any, at.len))
        return -errno;
    /* Two sockets with SO_REUSEADDR may be bound to one port, but only one can listen. */
    if (protocol == PORT_TCP && listen(fd, LISTEN_QUEUE))
        return -errno;
    return take_fd(&fd);
}

static bool is_port_used(const struct port_request *request, uint16_t port)
{
    for (size_t i = 0; i < request->taken_len; i++)
        if (request->taken[i] == port)
            return true;
    return false;
}

int port_find(const struct port_request *request, uint16_t *ret_port, int *ret_fd, struct berth_err *err)
{
    unsigned count = request->count ? request->count : 1, last = request->start + count - 1;
    struct bind_address bind_address;

    if (request->start == 0 || last > UINT16_MAX)
        return err_set(err, EINVAL, "invalid port range %u to %u", (unsigned)request->start, last);
    if (!request->address)
        bind_address_any(&bind_address);
    else if (!bind_address_parse(request->address, &bind_address))
        return err_set(err, EINVAL, "'%s' is not an address; use one such as 10.0.0.1 or fd00::1", request->address);
    for (unsigned port = request->start; port <= last; port++) {
        int fd =
            is_port_used(request, (uint16_t)port) ? -EADDRINUSE : try(&bind_address, request->protocol, (uint16_t)port);

        if (fd == -EADDRINUSE || fd == -EACCES)
            continue;
        if (fd < 0)
            return err_set(err, -fd, "cannot bind port %u: %s", port, strerror(-fd));
        *ret_fd = request->keep_socket ? fd : -1;
        if (!request->keep_socket)
            close(fd);
        *ret_port = (uint16_t)port;
        return 0;
    }
    return err_set(err, EADDRINUSE, "no %s port from %u to %u is free", request->protocol == PORT_UDP ? "UDP" : "TCP",
                   (unsigned)request->start, last);
}
