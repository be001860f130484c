/* agent_parts.h - internal types and functions of the agent; only for src/agent.
 *
 * The event loop's thread owns all state. Blocking work runs on worker threads: the `launchers` start several instances
 * in parallel, so that they share disk syncs and a slow start does not delay the others; the `cleaner` kills instances
 * and removes what they leave; the `puller` fetches images. Each worker processes its jobs in order. While an instance
 * is `busy`, a worker owns it and no other thread accesses it.
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

enum instance_phase {
    INSTANCE_PREPARING, /* fetching secrets and images */
    INSTANCE_LAUNCHING, /* a launcher thread owns the instance */
    INSTANCE_RUNNING,
    INSTANCE_REAPING,  /* the shim has exited; cgroup, mounts and bundle are being removed */
    INSTANCE_ENDED,    /* ended; the daemon has not confirmed the outcome yet */
    INSTANCE_REMOVING, /* the instance directory is being removed */
};

struct instance_port {
    char *endpoint;
    uint16_t port;
};

/* An instance on this machine. */
struct agent_instance {
    struct agent *agent;
    uint64_t id;
    char group[24]; /* name of its cgroup */
    json_t *config;
    json_t *next;    /* configuration received while `busy`; NULL: none */
    json_t *secrets; /* {secret: {key: text}}, only while they are needed */
    size_t fetching; /* number of secret requests in flight */
    char *trouble;   /* why the preparation failed; NULL: it did not */
    enum instance_phase phase;
    bool busy;
    bool cleared; /* compose_clear has completed */
    bool last;    /* no other instance of its owner was here when its removal began */
    bool stop_asked, stop_now;
    struct launch_result launched; /* pidfd -1: no shim */
    int pid_fd;                    /* pidfd of the instance's first process; -1: none */
    struct loop_source *source;
    struct loop_source *timer; /* next step of a stop, or next attempt to clean up */
    bool warned, signalled;    /* checkpoint signal sent; stop signal sent */
    int64_t grace_until_ns;    /* virtual machine after the stop signal: when it is killed */
    VEC(struct instance_port) ports;
    json_t *exclusive; /* {resource: name} of claimed exclusive resources; NULL: none */
    struct health *health;
    size_t awaited; /* index of the next port of the configuration to wait for */
    struct limit_watch limits, gpu_limits, disk_limits;
    char unenforced[CGROUP_LIST_MAX];
    char gpu_unenforced[CGROUP_LIST_MAX]; /* the GPU limits among them */
    char over[CGROUP_LIST_MAX];           /* exceeded limits, without GPUs and disk */
    bool gpu_over, disk_over;
    char killed[LAUNCH_TEXT_MAX]; /* why the agent killed the instance; "": it did not */
    bool oom_killed;              /* the kernel killed one of its processes at the memory limit */
    struct cgroup_usage used;     /* at the last poll */
    int64_t used_ns;
    bool counted;          /* its network traffic is counted */
    struct net_counts net; /* at the last poll; totals after the end */
    int64_t net_ns;
    bool disk_unknown;           /* the last disk count failed */
    bool disk_due;               /* a disk count was due at the last poll */
    int64_t disk_bytes, disk_ns; /* result and time of the last count; 0: never counted */
    int64_t guest_bytes;         /* virtual machine: memory at its start, including qemu; 0: none */
    int watched;                 /* inotify watch; -1: none */
    bool alone;                  /* no other instance of its owner was here at its launch */
    unsigned tries;              /* failed attempts to clean up */
    /* Timer of the next attempt to apply a changed configuration; NULL: none was needed. Separate from `timer`, because
     * a stop may use that one meanwhile. */
    struct loop_source *rechange;
    unsigned change_tries;
    /* Results of the last worker job. */
    int rc;
    struct berth_err err;
    int exit;
    char exit_text[LAUNCH_TEXT_MAX];
};

struct disks;
struct killed_program;
struct agent_sessions;
struct agent_optasks;
struct usage_poll;
struct net_limiter;

struct agent {
    const struct agent_options *options;
    const struct log *log;
    FILE *ready;
    struct node_identity identity;
    struct loop *loop;
    struct worker *launchers[LAUNCHERS]; /* NULL: not started yet */
    unsigned launcher;                   /* index of the next launcher (round robin) */
    struct worker *cleaner, *puller;
    struct state_dir *state_dir;
    struct cgroups *cgroups;
    struct net_limiter *nets;
    struct port_guard *guard;
    struct disks *disks;
    struct user_table *users;
    struct gpu_monitor *gpus;
    pthread_mutex_t mps_lock; /* protects directories and cgroups of MPS */
    struct node_agent *node;
    struct daemon_link *link;
    struct usage_poll *look;
    struct agent_sessions *sessions;
    struct agent_optasks *optasks;
    struct killed_program *killed_program; /* killed helper programs (exec, probes) that have not been reaped */
    struct exclusive_claims *claims;
    struct loop_source *tick, *renew;
    int64_t tick_ns;                    /* deadline of `tick` on the loop's clock */
    uint64_t configs;                   /* number of configurations received */
    bool told;                          /* readiness was announced */
    const char *oci;                    /* path of the OCI runtime; NULL: none */
    bool hide_processes;                /* processes see only processes of their own user */
    bool pid_namespaces;                /* each job has its own PID namespace on this node */
    bool user_namespaces;               /* containers can have user namespaces */
    pthread_mutex_t userns_reason_lock; /* protects userns_reason */
    struct berth_err userns_reason;     /* last logged reason for a container without user namespace */
    char *shim;
    char *new_key, *new_pem;  /* key and certificate of a renewal in progress */
    struct berth_err failure; /* why the agent must exit; code 0: it need not */
    bool superseded, trimming;
    bool unguarded;                    /* it was logged that ports cannot be guarded here */
    VEC(struct agent_instance *) runs; /* sorted by id */
};

int64_t agent_clock_ns(void);    /* since 1970 */
int64_t agent_boottime_ns(void); /* includes time in which the machine was suspended */
#define NOTE(a, level, event, ...) log_write((a)->log, agent_clock_ns(), level, event, ##__VA_ARGS__)

/* instance.c: implements the machine interface of node/node.h. */
extern const struct node_machine agent_machine;
struct agent_instance *instance_find(const struct agent *a, uint64_t id);
struct agent_instance *instance_list_add(struct agent *a, uint64_t id, const json_t *config);
void instance_free(struct agent_instance *r);
/* Called after the shim has exited: cleans up the instance, retrying as long as needed, then reports its outcome. */
void instance_reap(struct agent_instance *r);
/* Called for an instance whose shim was still starting when this agent started: waits for the shim on a launcher's
 * thread, then continues as after a launch. */
void instance_await(struct agent_instance *r);
/* Watches the shim, whose pidfd is known, for its exit. */
void instance_watch(struct agent_instance *r);
/* Starts probes and usage polling. */
void instance_start_probes(struct agent_instance *r);
const char *instance_owner(const struct agent_instance *r); /* owner of the instance; "berth" if none is configured */
uint16_t instance_port(const struct agent_instance *r, const char *endpoint);
/* Sets the instance's timer, replacing a pending one. */
void instance_set_timer(struct agent_instance *r, loop_call *call, int64_t after_ns);
#define RETRY_NS (SECOND_NS / 4) /* delay before a failed step is retried */

/* stop.c: stops a running instance, as gracefully as stop_now, its configuration and the signals already sent allow. */
void instance_stop(struct agent_instance *r);
/* Kills all processes of the instance with SIGKILL. Does nothing while the instance is `busy`; the caller then calls it
 * again. */
void instance_kill(struct agent_instance *r);
/* Returns the number of a signal name without "SIG": "TERM" is 15. -1: unknown name. */
int signal_number(const char *name);

/* compose.c, on a launcher's thread: executes every step from the configuration to exec. Returns 0, or a negative errno
 * with the text in r->err. */
int compose_launch(struct agent_instance *r);
/* On the cleaner's thread: applies changed limits, settings and files to a running instance. */
int compose_change(struct agent_instance *r);
/* On the cleaner's thread: removes everything of the instance except its directory. -EBUSY: not possible yet. */
int compose_clear(struct agent_instance *r);
/* Removes files that the owner left in world-writable directories. For the last instance of an owner on this node. */
void compose_leftovers(struct agent_instance *r);
/* Called once at startup: checks whether PID namespaces and user namespaces are available, and logs why not. */
void compose_check(struct agent *a);
const char *instance_secret(void *ctx, const char *secret, const char *key);

/* power.c: sends an ACPI power-down to a virtual machine once; if qemu does not accept the command, sends SIGTERM to
 * qemu. */
void instance_power_down(struct agent_instance *r);

/* adopt.c: takes over the instances of an earlier agent; called before node_begin. */
int adopt_all(struct agent *a, struct berth_err *err);

/* limits.c, on the thread that owns the instance: creates its cgroup; limits that cannot be enforced are listed in
 * r->unenforced. */
int limits_begin(struct agent_instance *r);
int limits_change(struct agent_instance *r);
/* For an instance that an earlier agent started: applies all limits again, which also shows which of them are not
 * enforced. */
void limits_adopt(struct agent_instance *r);
/* Called before the cgroup is removed. */
void limits_end(struct agent_instance *r);
/* Reports the usage of the instance and acts on exceeded limits. */
void limits_poll(struct agent_instance *r, int64_t now_ns);
/* Reports the limits that are not enforced and those that are exceeded. */
void limits_report(struct agent_instance *r);
/* Stops an instance that exceeds a limit or has used up its traffic. `text` becomes the reason; `now` skips the
 * graceful stop. */
void limits_stop(struct agent_instance *r, const char *text, bool now);
/* Counts the bytes of instances' files on its own thread. */
struct disks *disks_new(struct agent *a);
void disks_free(struct disks *d); /* NULL is fine */

/* usage_poll.c: polls usage and watches progress. */
int usage_poll_new(struct agent *a, struct usage_poll **ret, struct berth_err *err);
void usage_poll_free(struct usage_poll *l);
/* Probes the whole machine now, before the regular time. */
void usage_poll_probe(struct usage_poll *l);
void usage_poll_begin(struct agent_instance *r);
void usage_poll_end(struct agent_instance *r);

/* instance_exec.c: helper programs of instances (exec, probes). Returns the exit code, or 128 + the signal; -1: still
 * running. */
int exec_process_exit(int pidfd);
/* Closes the descriptors, which no event source may use any more, and kills the program; does not wait for it to
 * die. */
void exec_process_kill(struct agent *a, struct exec_process *b);
/* Stops waiting for killed programs. */
void exec_processes_release(struct agent *a);

/* image_trim.c: removes unused images above the size limit, on the puller's thread. */
void trim_images(struct agent *a);

/* session.c: logs, exec and signals for users. */
struct agent_sessions *sessions_new(struct agent *a);
void sessions_free(struct agent_sessions *e);
void sessions_handle_line(struct agent_sessions *e, const json_t *line);
void sessions_close_all(struct agent_sessions *e);
