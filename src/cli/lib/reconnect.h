/* reconnect.h - reconnects to the server after a lost connection.
 *
 * The first connection must succeed: a server that was never reached is an error at once. After that each attempt is
 * followed by a longer pause, up to 5 s, until the server answers or has been unreachable for RECONNECT_S_MAX. The user
 * gets one warning for each outage of the server, whatever the number of connections of the verb. See poll.h for verbs
 * that wait for an object without a time limit.
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
    int64_t since_ns; /* when the connection was lost; 0: it is established */
    unsigned attempts;
};

/* Returns the pause before the next attempt in ns; negative: the server has been unreachable for too long. */
int64_t reconnect_pause_ns(struct reconnect *r, int64_t now_ns);
/* Warns once that `what` was interrupted, and pauses. Returns false after giving up, with the reason in *trouble. */
bool reconnect_wait(struct reconnect *r, const struct api *a, const char *what, struct api_error *trouble);
/* Marks the connection as established: the server has answered. */
void reconnect_done(struct reconnect *r);
