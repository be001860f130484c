/* machine.h - one machine of the simulation: process trees that outlive the agent, and what is kept on its disk.
 *
 * Implements what src/node asks of a machine, as src/machine does with a kernel: that something is being started is on disk
 * before any process of it runs; a shim beside each tree writes down how it ended and fences it, agent or not. Programs take
 * a while to start and to stop, some only stop by force, tasks end by themselves, some things fail.
 */
#pragma once

#include "node/node.h"
#include "sim/cluster/world.h"

struct agent;

enum tree_state {
    TREE_MARKED, /* on disk, and nothing of it runs */
    TREE_LIVES,
    TREE_OVER,
};

enum { TREE_PORTS_MAX = 4 };

/* An instance's folder, and its processes. */
struct tree {
    uint64_t id;
    char workload[ID_OWNED_MAX + 1];
    uint32_t ordinal;
    json_t *config;  /* as it was started from, and changed since */
    bool job, fails; /* fails: it never comes to run */
    bool stubborn;   /* stops by force only */
    bool twice;      /* rather than not at all, as its workload was when it was placed */
    bool disputed;   /* two machines speak for its node: whatever is said of it may be the other one's word */
    enum tree_state state;
    uint64_t life;                          /* of the agent that is starting it */
    int64_t fence_ns;                       /* as its shim was told; 0: never */
    struct node_port ports[TREE_PORTS_MAX]; /* endpoints are in `names` */
    char names[TREE_PORTS_MAX][ID_MAX + 1];
    size_t ports_len;
    int64_t next_ns, stop_ns, kill_ns, armed_ns; /* world's time; INT64_MAX: not */
    bool ready, told;                            /* told: the agent knows of its end */
    bool kept;                                   /* how it ended is on disk */
    struct node_outcome end;
    int64_t cpu, memory;
    int progress;
};

struct machine {
    struct agent *agent;
    bool off; /* taken away */
    int64_t booted_ns;
    /* On disk. */
    uint64_t epoch;
    int64_t heard_ns; /* by the machine's clock, of this boot; 0: never */
    VEC(struct tree *) trees;
};

extern const struct node_machine sim_machine;

void machine_init(struct machine *m, struct agent *agent, int64_t booted_ns);
void machine_done(struct machine *m);
/* CLOCK_BOOTTIME. */
int64_t machine_steady_ns(const struct machine *m);
struct tree *machine_find(const struct machine *m, uint64_t id);
/* What an agent that starts finds on disk, told to its logic. */
void machine_find_all(struct machine *m, struct node *logic);
/* The folders of another one, and none of its processes. */
void machine_copy_disk(struct machine *to, const struct machine *from);
/* All processes are gone, and nobody wrote down how. */
void machine_cut_power(struct machine *m);
/* The agent's process is gone: what it was about to launch never will be. */
void machine_agent_died(struct machine *m);
/* All comes to rest: what would go on for long does so soon. */
void machine_calm(struct machine *m);
/* The agent measures: use and progress of all that runs. */
void machine_measure(struct machine *m, struct node *logic);
