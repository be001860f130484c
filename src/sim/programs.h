/* programs.h - what runs on one machine, without a daemon or an agent having a say: started, ready, ended, failed.
 *
 * A stand-in: programs take a while to start and to stop, tasks end by themselves, some things fail. The list outlives the
 * agent, as processes do; what was started once is never started again.
 */
#pragma once

#include "sim/world.h"

enum program_state { PROGRAM_STARTING, PROGRAM_RUNNING, PROGRAM_STOPPING, PROGRAM_OVER };

struct program {
    uint64_t id; /* of the instance */
    char workload[ID_OWNED_MAX + 1];
    uint32_t ordinal;
    uint64_t generation;
    bool job, twice; /* may two of it run while one is cut off? */
    bool listens;    /* has endpoints */
    uint32_t port;
    enum program_state state;
    const char *end; /* of one that is over: "ended", "failed" or "stopped" */
    bool ready;
    bool wanted;      /* is in the configuration */
    int64_t next_ns;  /* when it changes by itself */
    int64_t fence_ns; /* without a word from the daemon it may run this long; 0: for ever */
    uint32_t restarts;
};

struct programs {
    VEC(struct program) at;
};

static inline bool program_lives(const struct program *p)
{
    return p->state != PROGRAM_OVER;
}

struct program *programs_find(struct programs *p, uint64_t id);
/* An instance of the configuration: starts it, tells it to stop, or leaves it as it is. */
void programs_want(struct world *w, struct programs *p, const json_t *instance);
/* Time passes. `silent_ns`: how long the agent has heard nothing. */
void programs_pass(struct world *w, struct programs *p, int64_t silent_ns);
/* Those that are not wanted are killed, those that are over and not wanted forgotten. */
void programs_sweep(struct programs *p);
/* For a report: a new array. */
json_t *programs_report(struct world *w, const struct programs *p);
