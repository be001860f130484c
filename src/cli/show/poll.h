/* poll.h - polls an object until the object reaches a state that a verb waits for.
 *
 * The server may become unreachable and return meanwhile. This module does not sleep: the caller has its own poll
 * interval, time limit and handling of Ctrl-C. For a stream of changes see watch_rows.h.
 */
#pragma once

#include "cli/show/object.h"

struct object_poll {
    /* the server has answered before; a caller that has just sent a successful request sets this to true */
    bool answered;
    bool away; /* the server answered before, and is unreachable now */
    bool told; /* the warning about the outage was printed */
    struct api_error trouble;
};

/* Like object_get, but also returns EXIT_OK with *ret NULL while the server is unreachable; the caller then calls
 * object_poll_warn and polls again later. */
int object_poll_get(struct object_poll *l, struct api *a, const struct object_target *target, json_t **ret);
/* Prints one warning per outage. The caller clears the terminal's last line first. Returns true if a warning was
 * printed. */
bool object_poll_warn(struct object_poll *l, const struct api *a);
