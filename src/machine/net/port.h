/* port.h - finds a free port by trying to bind each port of a range.
 *
 * First come, first served (requirement P11); the resulting number is reported afterwards. The socket may be kept and
 * passed to the instance, which then has the port for sure; or it is closed, and the number is passed in $PORT: then
 * the caller remembers the assigned numbers until their instances have bound them, and passes them as `taken`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum port_protocol { PORT_TCP, PORT_UDP };

struct port_request {
    enum port_protocol protocol;
    uint16_t start, count; /* range start to start + count - 1; count 0: one port */
    const char *address;   /* IPv4 or IPv6 address; NULL: all addresses of the machine */
    const uint16_t *taken; /* assigned to others, which may not have bound them yet */
    size_t taken_len;
    bool keep_socket;
};

/* Returns the first free port. `ret_fd`: its socket, bound, for TCP listening, close-on-exec; -1 without keep_socket.
 * -EADDRINUSE: none is free; the text names the range. -EINVAL: invalid address or range. */
int port_find(const struct port_request *request, uint16_t *ret_port, int *ret_fd, struct berth_err *err);
