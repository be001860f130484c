/* machine.h - a simulated machine: instances whose processes outlive the agent, and the contents of the machine's disk.
 *
 * Implements struct node_machine of src/node, as src/machine does for a real machine. The start of an instance is
 * recorded on disk before any of its processes runs. A shim beside each instance records its end and fences it, with or
 * without an agent. Programs need time to start and to stop, some stop only with SIGKILL, tasks end by themselves, some
 * starts fail.
 */
#pragma once

#include "node/node.h"
#include "sim/cluster/world.h"

struct sim_agent;

enum sim_instance_state {
    INSTANCE_RECORDED, /* on disk, but no process runs */
    INSTANCE_ALIVE,
    INSTANCE_OVER,
};

enum { INSTANCE_PORTS_MAX = 4 };

/* The directory of an instance, and its processes. */
struct sim_instance {
    uint64_t id;
    char workload[ID_OWNED_MAX + 1];
    uint32_t ordinal;
    json_t *config;     /* as started, with later changes */
    bool job, fails;    /* fails: the start fails */
    bool stubborn;      /* stops only with SIGKILL */
    bool twice;         /* the workload preferred two copies over none when it was placed */
    bool is_duplicated; /* two machines report for its node: reports about it may come from the other one */
    enum sim_instance_state state;
    uint64_t life;                              /* number of the agent process that starts it */
    int64_t fence_ns;                           /* as told to its shim; 0: never */
    struct node_port ports[INSTANCE_PORTS_MAX]; /* names of endpoints are stored in `names` */
    char names[INSTANCE_PORTS_MAX][ID_MAX + 1];
    size_t ports_len;
    int64_t next_ns, stop_ns, kill_ns, armed_ns; /* simulation time; INT64_MAX: not set */
    bool ready, told;                            /* told: the agent knows of its end */
    bool kept;                                   /* its outcome is on disk */
    struct node_outcome end;
    int64_t cpu, memory;
    int progress;
};

struct sim_node_machine {
    struct sim_agent *agent;
    bool off; /* removed from the cluster */
    int64_t booted_ns;
    /* On disk. */
    uint64_t epoch;
    int64_t heard_ns; /* when the daemon last answered, by the clock of this boot; 0: never */
    VEC(struct sim_instance *) sim_instances;
};

extern const struct node_machine sim_machine;

void machine_init(struct sim_node_machine *m, struct sim_agent *agent, int64_t booted_ns);
void machine_done(struct sim_node_machine *m);
/* Returns the machine's CLOCK_BOOTTIME. */
int64_t machine_steady_ns(const struct sim_node_machine *m);
struct sim_instance *machine_find(const struct sim_node_machine *m, uint64_t id);
/* Reports to a starting agent's logic what is on disk. */
void machine_find_all(struct sim_node_machine *m, struct node_agent *logic);
/* Copies the instance directories of another machine, without processes. */
void machine_copy_disk(struct sim_node_machine *to, const struct sim_node_machine *from);
/* Ends all processes without recording their outcomes. */
void machine_cut_power(struct sim_node_machine *m);
/* Called when the agent process has ended: pending launches are dropped. */
void machine_agent_died(struct sim_node_machine *m);
/* Begins the calm phase: long waits end soon. */
void machine_calm(struct sim_node_machine *m);
/* Reports usage and progress of all running instances. */
void machine_measure(struct sim_node_machine *m, struct node_agent *logic);
