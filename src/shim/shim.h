/* shim.h - the program berth-shim: the parent of one instance, for as long as that runs.
 *
 *   berth-shim run DIR     DIR is STATE/instances/ID; descriptor 3 is a socket to launch_start, 4 and on are the instance's
 *   berth-shim exec DIR    becomes a program beside a living instance (machine/launch/exec.c), or its parent where it is to join a PID namespace
 *   berth-shim hold FILE   the first process of a PID namespace (machine/launch/pid_namespace.h)
 *
 * `run` daemonises, takes the lock on DIR/shim, forks the instance (instance.c, or container.c by an OCI runtime), says
 * over the socket whether its program was exec'ed, and watches (watch.c): its log (log.c), its word on progress
 * (progress.c), the time since the daemon was heard (fence). When the first process has ended it kills all the others
 * (tree.c), writes DIR/exit, and ends. One thread, no allocation after the start.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/launch/launch_spec.h"
#include "machine/launch/state_file.h"

enum { EXIT_BYTES = 512 }; /* of DIR/exit, for which there is room from the beginning */

struct shim {
    struct spec spec;
    int dir;                   /* of the instance */
    int lock;                  /* DIR/shim */
    int pid_namespace;         /* held for as long as this lives; -1: the node's */
    int status;                /* to launch_start; -1: it has been told */
    int log_out, progress_out; /* the instance's ends; -1 once it has them */
    int log_in, progress_in;   /* ours */
    pid_t pid;                 /* of the first process; 0: it never was */
    int ended;                 /* its status as of waitpid; -1: it lives */
    struct shim_mark mark;
};

/* ---- instance.c: from a fork to exec ---- */

/* Forks and execs the instance; 0 once the program runs. On failure nothing is left. */
int instance_start(struct shim *s, struct berth_err *err);

/* The kernel kills this process with its parent; `parent` as getppid says it. -ECHILD: the parent has died. */
int parent_bind(pid_t parent, struct berth_err *err);
enum { PARENT_OUTSIDE = 0 }; /* of the PID namespace */
/* Enters the cgroups; takes rlimits, groups, gid and uid, and gives up ever getting more, and what may be asked of the kernel. */
int cgroups_enter(const struct launch *l, struct berth_err *err);
int user_become(const struct launch *l, struct berth_err *err);
/* Changes to the folder, as the user. */
int folder_enter(const struct launch *l, struct berth_err *err);
void signals_reset(void);
/* The agent and the shim are spared when memory is short; what they run for others is not. */
void oom_score_reset(void);
/* 0 is /dev/null, 1 and 2 the log, then sockets and progress, and `*failed` until exec: its new number. Nothing else. */
int descriptors_arrange(const struct shim *s, int *failed, struct berth_err *err);
/* Only returns where it failed. argv[0] without a slash is looked for in the environment's PATH. */
int program_exec(const char *const *argv, const char *const *env, struct berth_err *err);

/* ---- mounts.c ---- */

/* A mount namespace of its own with these in it. */
int mounts_enter(const struct launch *l, struct berth_err *err);

/* ---- container.c ---- */

/* By the runtime: create, start. */
int container_start(struct shim *s, struct berth_err *err);
/* By the runtime: delete, by force. */
void container_end(struct shim *s);
/* Becomes the runtime's exec of a process that a descriptor describes. Only returns where it failed. */
int container_exec(const struct launch *l, int process, bool terminal, struct berth_err *err);

/* ---- tree.c ---- */

/* Waits for whoever has ended; notes it in s->ended where it was the first process. True: there are no children left. */
bool tree_reap(struct shim *s);
/* Kills whatever is left of the instance and waits for it; false: after ten seconds something still stays. */
bool tree_kill(struct shim *s);

/* ---- log.c ---- */

struct log_out {
    int dir, fd;
    uint64_t bytes, bytes_max, lost;
    unsigned files;
};
int log_open(struct log_out *log, const char *dir, uint64_t bytes_max, unsigned files);
/* What cannot be written (a full disk) is counted and dropped, so that the instance does not stand still. */
void log_put(struct log_out *log, const char *bytes, size_t len);

/* ---- progress.c ---- */

struct progress {
    char line[512]; /* not complete yet */
    size_t len;
    bool news; /* not yet written */
    int milli;
    char note[LAUNCH_TEXT_MAX];
};
void progress_take(struct progress *p, const char *bytes, size_t len);
void progress_write(struct progress *p, int dir);

/* ---- watch.c ---- */

/* Its time is over before it began: the agent was held up for so long that the daemon may have given it away. */
bool fence_past(const struct shim *s);
/* Until the first process has ended or must; then until all have. Writes DIR/exit. */
void watch(struct shim *s);

/* ---- run.c, beside.c ---- */

int shim_run(const char *dir);
int shim_exec(const char *dir);
