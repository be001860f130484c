/* agent.h - internal declarations of the simulated agents; for agents.c, network.c, impostor.c, machine.c and
 * processes.c.
 *
 * An agent is a process that is started, killed and paused. Its logic is src/node; its environment is network.c and
 * machine.c. All events of an agent process go through agent_post, which drops them for a dead process and delays them
 * for a paused one.
 */
#pragma once

#include "sim/cluster/machine.h"

/* What the daemon has accepted under a node's name, as known to the invariant checks. */
struct accepted_reports {
    int64_t ns;          /* when the daemon last accepted a report */
    uint64_t epoch, seq; /* of that report */
    uint64_t life;       /* number of that daemon process */
};

struct sim_agent {
    struct sim_world *w;
    char node[ID_MAX + 1], token[TOKEN_TEXT_MAX];
    bool removed;
    bool was_duplicated;  /* a second machine has reported for its node since this process started */
    struct sim_agent *of; /* this is a second machine with a copy of that agent's disk; NULL: it is not */
    struct sim_node_machine machine;

    /* The process. */
    struct node_agent *logic; /* NULL: not running */
    uint64_t life;            /* number of starts */
    int64_t paused_ns;        /* end of the pause */
    int64_t wake_ns;
    uint64_t awaiting;     /* number of the report in transit; 0: none */
    uint64_t reading;      /* number of the configuration request in transit; 0: none */
    uint64_t asked;        /* number of configuration requests so far */
    bool was_superseded;   /* the daemon said that another agent was superseding this one */
    int64_t superseded_ns; /* time of that message */

    /* The link: until when no message gets to the daemon (mute), or from the daemon (deaf). */
    int64_t mute_ns, deaf_ns;
    int64_t flap_ns; /* until when the link is intermittent */
    bool pushing;    /* a configuration is about to be pushed */

    /* For invariant checks. */
    struct accepted_reports heard; /* a second machine uses that of the first */
    json_t *listed;                /* the latest configuration that reached this process */
    uint64_t listed_revision;
    VEC(uint64_t) unknown; /* instances that the daemon has reported as unknown */
};

struct sim_agents {
    VEC(struct sim_agent *) at;
    struct map started; /* all instances that were ever started */
    VEC(uint64_t) ids;
};

static inline struct accepted_reports *agent_accepted_reports(struct sim_agent *a)
{
    return a->of ? &a->of->heard : &a->heard;
}

/* Runs a function in the agent's process after a delay; dropped if the process has been replaced by then. */
void agent_post(struct sim_agent *a, int64_t delay_ns, void (*run)(struct sim_agent *a, void *arg), void *arg,
                void (*drop)(void *arg));
/* Returns whether two machines report, or have reported while this process ran, for the agent's node. */
bool agent_is_duplicated(const struct sim_agent *a);
/* Starts a process; does nothing if one runs or the machine is off. */
void agent_start(struct sim_agent *a);
void agent_kill(struct sim_agent *a);
/* Kills the process after the current event, and restarts it a moment later. */
void agent_crash_soon(struct sim_agent *a);
struct sim_agent *agent_new(struct sim_world *w, const char *node, const char *token);
/* Removes the machine with everything that runs on it. */
void agent_remove(struct sim_agent *a);

/* ---- network.c ---- */

/* Implement node_env.report and node_env.reread. */
void network_report(struct sim_agent *a, uint64_t seq, char *text);
void network_reread(struct sim_agent *a);
/* A forged report in the agent's name. network_forged_report takes ownership of the text. */
struct forged_report {
    const char *node; /* the node that the report names */
    uint64_t epoch, seq;
    char *text;
    bool stale; /* must be rejected; not sent if the daemon cannot know that it is outdated */
};
void network_forged_report(struct sim_agent *a, const struct forged_report *forged_report);

/* ---- processes.c: invariant checks of running processes --------------------------------------------------------- */

void instance_start_check(struct sim_agent *a, uint64_t id, const json_t *config);
void instance_stop_check(struct sim_agent *a, const struct sim_instance *t);
void instance_began_check(struct sim_agent *a, struct sim_instance *t);
void instance_forgotten_check(struct sim_agent *a, const struct sim_instance *t);
bool agent_lists(const struct sim_agent *a, uint64_t id);
