/* poll.h - an object that is looked at again and again, until it is as somebody waits for it to be.
 *
 * The server may go and come back meanwhile, as what is waited for goes on without it. Does not wait itself: who looks has
 * a pace, a time limit and a Ctrl-C of his own. For a stream of changes see watch_rows.h.
 */
#pragma once

#include "cli/show/object.h"

struct look {
    bool answered; /* it has, so that it is worth waiting for; who has just asked for something begins with true */
    bool away;     /* it was there, and is not now */
    bool told;     /* that it is away */
    struct api_trouble trouble;
};

/* As object_get; also EXIT_OK, with *ret NULL, where the server is away: call look_tell and look again. */
int look_get(struct look *l, struct api *a, const struct target *target, json_t **ret);
/* Warns, once for each time that it goes away. Clear the terminal's last line first. True: it did. */
bool look_tell(struct look *l, const struct api *a);
