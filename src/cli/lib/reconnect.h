/* reconnect.h - a verb that waits while the server is away, and connects again.
 *
 * The first connection must succeed: a server that was never reached is an error at once. After that each attempt is
 * followed by a longer pause, up to 5 s, until the server answers or has been away for RECONNECT_S_MAX. The user is
 * told once for each time that the server goes away, however many connections the verb has. See poll.h for a verb that
 * waits for an object without an end.
 */
#pragma once

#include <pthread.h>

#include "cli/lib/api.h"

enum { RECONNECT_S_MAX = 600 };

/* State that all connections of one verb share. */
struct reconnect_notice {
    pthread_mutex_t lock;
    size_t away; /* connections that are lost now */
};
#define RECONNECT_NOTICE_INIT                                                                                          \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                                              \
    }

struct reconnect {
    struct reconnect_notice *notice;
    int64_t since_ns; /* when the connection was lost; 0: it is there */
    unsigned attempts;
};

/* The pause before the next attempt in ns; negative: the server has been away for too long. */
int64_t reconnect_pause_ns(struct reconnect *r, int64_t now_ns);
/* Tells the user once that `what` was interrupted, and pauses. False: gave up, and *trouble says so. */
bool reconnect_wait(struct reconnect *r, const struct api *a, const char *what, struct api_trouble *trouble);
/* The server has answered. */
void reconnect_done(struct reconnect *r);
