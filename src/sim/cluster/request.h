/* request.h - a running request of the simulation; for request.c and daemon.c. */
#pragma once

#include <stdlib.h>

#include "sim/cluster/world.h"

struct sim_pending_request {
    struct sim_world *world;
    uint64_t number, life;
    struct arena arena; /* memory of the texts */
    struct sim_request ask;
    bool answered;
    int status;
    uint64_t revision;
    json_t *body;
    struct str text;
    struct stream *stream;
};

static inline void json_text_cleanup(char **text)
{
    free(*text);
}
