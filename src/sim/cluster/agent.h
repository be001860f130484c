/* agent.h - the inside of the agents; for agents.c, network.c, impostor.c, machine.c and processes.c.
 *
 * An agent is a process: it is started, killed, paused. What it does is src/node; what it asks of the world goes through
 * network.c and machine.c. Whatever happens to a process happens by agent_post: never when it is dead, later when it is
 * paused.
 */
#pragma once

#include "sim/cluster/machine.h"

/* What the daemon has been told under a node's name, as a judge knows it. */
struct heard_of {
    int64_t ns;          /* when it last took a report */
    uint64_t epoch, seq; /* of that one, */
    uint64_t life;       /* and which daemon that was */
};

struct agent {
    struct world *w;
    char node[ID_MAX + 1], token[TOKEN_TEXT_MAX];
    bool removed;
    bool rivalled;    /* since its process started a second machine has spoken for its node */
    struct agent *of; /* this one is a second machine with that one's disk; NULL: it is not */
    struct machine machine;

    /* Its process. */
    struct node *logic; /* NULL: it is dead */
    uint64_t life;      /* counts starts */
    int64_t paused_ns;  /* until when */
    int64_t wake_ns;
    uint64_t awaiting;   /* the report under way; 0: none */
    uint64_t reading;    /* the question for the configuration under way; 0: none */
    uint64_t asked;      /* such questions so far */
    bool gave_way;       /* it was told that another one speaks for its node, */
    int64_t gave_way_ns; /* and when */

    /* Its link: until when nothing gets through, to the daemon and from it. */
    int64_t mute_ns, deaf_ns;
    int64_t flap_ns; /* until when it comes and goes */
    bool pushing;    /* a configuration is about to be pushed */

    /* For judges. */
    struct heard_of heard; /* of a second machine: that of the first counts */
    json_t *listed;        /* the latest configuration that reached this process */
    uint64_t listed_revision;
    VEC(uint64_t) unknown; /* the daemon said that these are not to be here */
};

struct agents {
    VEC(struct agent *) at;
    struct map started; /* instances that ever were */
    VEC(uint64_t) ids;
};

static inline struct heard_of *agent_heard(struct agent *a)
{
    return a->of ? &a->of->heard : &a->heard;
}

/* Runs it in the agent's process after a while; dropped if that is another one by then. */
void agent_post(struct agent *a, int64_t delay_ns, void (*run)(struct agent *a, void *arg), void *arg,
                void (*drop)(void *arg));
/* Does a second machine speak for its node, or has it while this process ran, or is it that one? */
bool agent_disputed(const struct agent *a);
/* Starts a process of it; nothing if one runs or the machine is off. */
void agent_start(struct agent *a);
void agent_kill(struct agent *a);
/* Kills it after the event that runs, and starts it again a moment later. */
void agent_crash_soon(struct agent *a);
struct agent *agent_new(struct world *w, const char *node, const char *token);
/* The machine is gone with all that runs on it. */
void agent_take_away(struct agent *a);

/* ---- network.c ---- */

/* node_env.report and node_env.reread. */
void network_report(struct agent *a, uint64_t seq, char *text);
void network_reread(struct agent *a);
/* A claim in the agent's name that it never made. The text is taken. */
struct claim {
    const char *node; /* whose */
    uint64_t epoch, seq;
    char *text;
    bool stale; /* must be refused; not sent at all where the daemon could not know better */
};
void network_claim(struct agent *a, const struct claim *claim);

/* ---- processes.c: judges of what runs ---- */

void trees_asked_to_start(struct agent *a, uint64_t id, const json_t *config);
void trees_asked_to_stop(struct agent *a, const struct tree *t);
void trees_began(struct agent *a, struct tree *t);
void trees_forgotten(struct agent *a, const struct tree *t);
bool agent_lists(const struct agent *a, uint64_t id);
