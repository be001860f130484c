/* agent_parts.h - the inside of the agent; for src/agent only.
 *
 * The loop's thread owns everything. What may block runs on threads beside it: `launchers` start instances, some at a time,
 * so that they share the syncs and nobody waits for one that is slow; `cleaner` ends them and clears up, `puller` fetches
 * images, each in order. A run that is with one of them (`busy`) is touched by nobody else.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>

#include "agent/instance/gpu.h"
#include "agent/net/identity.h"
#include "agent/net/link.h"
#include "agent/options.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "machine/cgroup/cgroup.h"
#include "machine/cgroup/limit_watch.h"
#include "machine/container/user.h"
#include "machine/health/health.h"
#include "machine/image/image.h"
#include "machine/image/image_name.h"
#include "machine/launch/instance_dir.h"
#include "machine/launch/launch.h"
#include "machine/mount/mount.h"
#include "machine/net/net_meter.h"
#include "machine/net/port_guard.h"
#include "machine/probe/probe.h"
#include "machine/vm/vm.h"
#include "net/loop.h"
#include "node/node.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"

#define SECOND_NS INT64_C(1000000000)

enum { LAUNCHERS = 4 };

enum run_phase {
    RUN_PREPARING, /* secrets and images are being fetched */
    RUN_LAUNCHING, /* a launcher has it */
    RUN_LIVING,
    RUN_REAPING, /* its shim has ended; what is left of it is being cleared away */
    RUN_OVER,    /* the daemon has yet to know */
    RUN_LEAVING, /* being forgotten */
};

struct run_port {
    char *endpoint;
    uint16_t port;
};

/* An instance on this machine. */
struct run {
    struct agent *agent;
    uint64_t id;
    char group[24]; /* its cgroup */
    json_t *config;
    json_t *next;    /* a configuration that came while it was busy; NULL: none */
    json_t *secrets; /* {secret: {key: text}}, while they are needed */
    size_t fetching; /* secrets that are under way */
    char *trouble;   /* why it cannot be prepared */
    enum run_phase phase;
    bool busy;
    bool cleared; /* compose_clear has done its work */
    bool last;    /* of its owner on this machine, when it began to be forgotten */
    bool stop_asked, stop_now;
    struct launched launched; /* pidfd -1: none */
    int pid_fd;               /* of its first process; -1: none */
    struct loop_source *source;
    struct loop_source *timer; /* of the next step of a stop, or of another try to clear up */
    bool warned, signalled;    /* sent its checkpoint's signal; the one that it is to end by */
    int64_t grace_until_ns;    /* of a virtual machine that was signalled: when it is ended by force */
    VEC(struct run_port) ports;
    json_t *exclusive; /* {resource: name} that it took; NULL: nothing */
    struct health *health;
    size_t awaited; /* ports that were tried and accept connections, of those that the configuration lists */
    struct limit_watch limits, gpu_limits, disk_limits;
    char unenforced[CGROUP_LIST_MAX];
    char gpu_unenforced[CGROUP_LIST_MAX]; /* of it, what concerns GPUs */
    char over[CGROUP_LIST_MAX];           /* without GPUs and the disk */
    bool gpu_over, disk_over;
    char killed[LAUNCH_TEXT_MAX]; /* why the agent itself ended it; "": it did not */
    bool oom_killed;              /* a process of it was killed for using more memory than its limit */
    struct cgroup_usage used;     /* at the last look */
    int64_t used_ns;
    bool counted;          /* what it sends and receives is */
    struct net_counts net; /* at the last look; when it is over, in all */
    int64_t net_ns;
    bool disk_unknown;           /* the last time it could not be counted */
    bool disk_due;               /* it is to be counted, at the last look */
    int64_t disk_bytes, disk_ns; /* at the last count; 0: there was none */
    int64_t guest_bytes;         /* of a virtual machine: the memory that it began with, qemu's included; 0: none */
    int watched;                 /* by inotify; -1: not */
    bool alone;                  /* nothing else of its owner was here when it was launched */
    unsigned tries;              /* to clear it away */
    /* Of another try to change it; NULL: none was needed. Not `timer`, by which it may be killed meanwhile. */
    struct loop_source *rechange;
    unsigned change_tries;
    /* What a thread brought back. */
    int rc;
    struct berth_err err;
    int exit;
    char exit_text[LAUNCH_TEXT_MAX];
};

struct disks;
struct dying;
struct errands;
struct optasks;
struct look;
struct nets;

struct agent {
    const struct agent_options *options;
    const struct log *log;
    FILE *ready;
    struct identity identity;
    struct loop *loop;
    struct worker *launchers[LAUNCHERS]; /* NULL: not needed yet */
    unsigned launcher;                   /* whose turn it is */
    struct worker *cleaner, *puller;
    struct place *place;
    struct cgroups *cgroups;
    struct nets *nets;
    struct port_guard *guard;
    struct disks *disks;
    struct users *users;
    struct gpus *gpus;
    pthread_mutex_t mps_lock; /* of the folders and groups of MPS */
    struct node *node;
    struct link *link;
    struct look *look;
    struct errands *errands;
    struct optasks *optasks;
    struct dying *dying; /* programs beside instances that were killed */
    struct claims *claims;
    struct loop_source *tick, *renew;
    int64_t tick_ns;            /* what the first is set to, by the loop's clock */
    uint64_t configs;           /* that have come */
    bool told;                  /* that it is ready */
    const char *oci;            /* the runtime of containers; NULL: none */
    bool hide_processes;        /* processes see those of their own user only */
    bool pid_namespaces;        /* processes share one with those of their job only */
    bool user_namespaces;       /* containers may have them */
    pthread_mutex_t plain_lock; /* of what follows */
    struct berth_err plain_why; /* the last word on why a container had none */
    char *shim;
    char *new_key, *new_pem;  /* of a certificate that is being renewed; with the certificate, while that is tried */
    struct berth_err failure; /* why it cannot go on; code 0: it can */
    bool superseded, trimming;
    bool unguarded;         /* it was said that ports cannot be guarded here */
    VEC(struct run *) runs; /* in order of ids */
};

int64_t agent_clock_ns(void);    /* since 1970 */
int64_t agent_boottime_ns(void); /* goes on while the machine sleeps */
#define NOTE(a, level, event, ...) log_write((a)->log, agent_clock_ns(), level, event, ##__VA_ARGS__)

/* instance.c: the machine as node/ wants it. */
extern const struct node_machine agent_machine;
struct run *run_find(const struct agent *a, uint64_t id);
struct run *run_add(struct agent *a, uint64_t id, const json_t *config);
void run_free(struct run *r);
/* Its shim has ended: clears away what is left of it, for as long as it takes, and then tells how it went. */
void run_reap(struct run *r);
/* Its shim was on its way when this agent began: waits for it, on a launcher's thread, then all is as after a start. */
void run_await(struct run *r);
/* Its shim is known: watches it. */
void run_watch(struct run *r);
/* Health checks and usage from here on. */
void run_well(struct run *r);
const char *run_owner(const struct run *r); /* whom it belongs to */
uint16_t run_port(const struct run *r, const char *endpoint);
/* Its one timer: what is to be done next. */
void run_timer(struct run *r, loop_call *call, int64_t after_ns);
#define RUN_AGAIN_NS (SECOND_NS / 4) /* what could not be done is tried again */

/* stop.c: one that lives and is to end, as gently as stop_now, its configuration and what was sent before allow. */
void run_stop(struct run *r);
/* By force, all of it; where a thread has it, that must ask again. */
void run_kill(struct run *r);
/* "TERM" is 15; -1: there is none of that name. */
int signal_number(const char *name);

/* compose.c: on a launcher's thread. Everything from configuration to exec; 0, or what went wrong in r->err. */
int compose_launch(struct run *r);
/* On the cleaner's thread: other limits, settings and files for what lives. */
int compose_change(struct run *r);
/* On the cleaner's thread: nothing of it is left but its folder. -EBUSY: not yet. */
int compose_clear(struct run *r);
/* What its owner has left where all may write; where nothing of that owner is here any more. */
void compose_leftovers(struct run *r);
/* Whether containers can have user namespaces here; says why not. At the start. */
void compose_check(struct agent *a);
const char *run_secret(void *ctx, const char *secret, const char *key);

/* power.c: asks a virtual machine to power down, once; where qemu has no ear for that, it is told to end. */
void run_power_down(struct run *r);

/* adopt.c: what an earlier agent has left; before node_begin. */
int adopt_all(struct agent *a, struct berth_err *err);

/* limits.c: on the thread that has the run. Makes its control group; what is not enforced is in r->unenforced. */
int limits_begin(struct run *r);
int limits_change(struct run *r);
/* Of one that an earlier agent has started: all are put once more, so that it is known again which of them are not enforced. */
void limits_adopt(struct run *r);
/* Before its control group is removed. */
void limits_end(struct run *r);
/* Tells what it uses, and acts where that is too much. */
void limits_look(struct run *r, int64_t now_ns);
/* Tells what of its limits is not enforced, and what it uses above them. */
void limits_trouble(struct run *r);
/* It takes what was promised to others, or has had its part: ended, at once or as it is used to, and this is why. */
void limits_stop(struct run *r, const char *text, bool now);
/* Counts files, on a thread of its own. */
struct disks *disks_new(struct agent *a);
void disks_free(struct disks *d); /* NULL is fine */

/* usage_poll.c: usage and progress, now and then. */
int look_new(struct agent *a, struct look **ret, struct berth_err *err);
void look_free(struct look *l);
/* Looks at the machine as a whole now, not when it is due. */
void look_probe(struct look *l);
void look_begin(struct run *r);
void look_end(struct run *r);

/* instance_exec.c: programs beside instances. The code of one that has ended, or 128 + its signal; -1: it has not. */
int beside_exit(int pidfd);
/* Closes its descriptors, which nobody may watch any more, and kills it; that it may be long in dying holds nobody up. */
void beside_kill(struct agent *a, struct beside *b);
/* Waits for none of them any more. */
void beside_end(struct agent *a);

/* image_trim.c: removes images beyond the bound, soon. */
void trim_images(struct agent *a);

/* session.c: for people. */
struct errands *errands_new(struct agent *a);
void errands_free(struct errands *e);
void errands_line(struct errands *e, const json_t *line);
void errands_drop(struct errands *e);
