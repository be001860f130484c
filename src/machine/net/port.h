/* port.h - a port that is free, by trying: from a start upwards, as many as one may.
 *
 * First come, first served (requirement P11). Who binds first has it; the number is reported afterwards. The socket may be
 * kept and handed to the instance, which then has the port for sure; or closed, and the number said in $PORT: then the
 * caller keeps the numbers it has given away until their instances have bound them, and passes them as `taken`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum port_protocol { PORT_TCP, PORT_UDP };

struct port_wish {
    enum port_protocol protocol;
    uint16_t start, count; /* start to start + count - 1; count 0: one */
    const char
        *address; /* an IPv4 or IPv6 address; NULL: every one of the machine's, both kinds where there are both */
    const uint16_t *taken; /* given to others who may not have bound them yet */
    size_t taken_len;
    bool keep_socket;
};

/* The first that is free. `ret_fd`: the socket, bound, listening where it is TCP, closed on exec; -1 without keep_socket.
 * -EADDRINUSE: none is; the text names the range. -EINVAL: no such address, or no such range. */
int port_find(const struct port_wish *wish, uint16_t *ret_port, int *ret_fd, struct berth_err *err);
