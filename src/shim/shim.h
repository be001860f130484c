/* shim.h - the program berth-shim: parent process of one instance while it runs.
 *
 *     berth-shim run DIR     DIR is STATE/instances/ID; descriptor 3: socket to launch_start; 4 and up: sockets
 *     berth-shim exec DIR    runs a program beside a running instance (machine/launch/exec.c), in its PID namespace
 *     berth-shim hold FILE   first process of a PID namespace (machine/launch/pid_namespace.h)
 *
 * `run` daemonizes, locks DIR/shim, forks the instance (instance.c, or container.c through an OCI runtime), reports the
 * result of exec over the socket, and watches (watch.c) the log (log.c), progress messages (progress.c) and the fence
 * time. After the first process has ended, it kills all other processes of the instance (tree.c), writes DIR/exit and
 * exits. Single-threaded, no allocation after the start.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/launch/launch_spec.h"
#include "machine/launch/state_file.h"

enum { EXIT_BYTES = 512 }; /* size of DIR/exit, whose disk space is reserved at the start */

struct shim {
    struct launch_spec spec;
    int dir;                   /* descriptor of the instance directory */
    int lock;                  /* descriptor of DIR/shim */
    int pid_namespace;         /* kept open while the shim lives; -1: the node's namespace */
    int status;                /* socket to launch_start; -1: the result was sent */
    int log_out, progress_out; /* the instance's pipe ends; -1 after it has inherited them */
    int log_in, progress_in;   /* the shim's pipe ends */
    pid_t pid;                 /* first process; 0: never started */
    int ended;                 /* its wait status; -1: it runs */
    struct shim_mark mark;
};

/* ---- instance.c: fork and exec ---------------------------------------------------------------------------------- */

/* Forks and execs the instance; returns 0 after a successful exec. On failure no process is left. */
int instance_start(struct shim *s, struct berth_err *err);

/* Makes the kernel kill this process when its parent dies. `parent`: the expected getppid(). -ECHILD: the parent has
 * died. */
int parent_bind(pid_t parent, struct berth_err *err);
enum { PARENT_OUTSIDE = 0 }; /* getppid() if the parent is outside this process's PID namespace */
/* cgroups_enter joins the cgroups. user_become sets rlimits, groups, gid and uid, then no_new_privs and the seccomp
 * filter. */
int cgroups_enter(const struct launch *l, struct berth_err *err);
int user_become(const struct launch *l, struct berth_err *err);
/* Changes to the working directory, as the user. */
int folder_enter(const struct launch *l, struct berth_err *err);
void signals_reset(void);
/* Resets oom_score_adj to 0: the agent and the shim are protected from the OOM killer, instances are not. */
void oom_score_reset(void);
/* Arranges the descriptors of the instance: 0 is /dev/null, 1 and 2 are the log, then sockets and progress; `*failed`
 * gets a new number and is closed by exec. All others are closed. */
int descriptors_arrange(const struct shim *s, int *failed, struct berth_err *err);
/* Executes the program; returns only on failure. argv[0] without a slash is looked up in PATH of `env`. */
int program_exec(const char *const *argv, const char *const *env, struct berth_err *err);

/* ---- mounts.c ---- */

/* Creates a mount namespace with the mounts of `l`. */
int mounts_enter(const struct launch *l, struct berth_err *err);

/* ---- container.c ---- */

/* Starts the container by the runtime's create and start. */
int container_start(struct shim *s, struct berth_err *err);
/* Removes the container by the runtime's delete --force. */
void container_end(struct shim *s);
/* Executes the runtime's exec for the process description in descriptor `process`. Returns only on failure. */
int container_exec(const struct launch *l, int process, bool terminal, struct berth_err *err);

/* ---- tree.c ---- */

/* Reaps ended children; sets s->ended if the first process is among them. True: no children are left. */
bool tree_reap(struct shim *s);
/* Kills and reaps all processes of the instance; false: after ten seconds some are still alive. */
bool tree_kill(struct shim *s);

/* ---- log.c ---- */

struct log_out {
    int dir, fd;
    uint64_t bytes, bytes_max, lost;
    unsigned files;
};
int log_open(struct log_out *log, const char *dir, uint64_t bytes_max, unsigned files);
/* Appends to the log. Bytes that cannot be written (full disk) are counted and dropped, so that the instance does not
 * block. */
void log_put(struct log_out *log, const char *bytes, size_t len);

/* ---- progress.c ---- */

struct progress_reader {
    char line[512]; /* incomplete line */
    size_t len;
    bool news; /* not written to disk yet */
    int milli;
    char note[LAUNCH_TEXT_MAX];
};
void progress_take(struct progress_reader *p, const char *bytes, size_t len);
void progress_write(struct progress_reader *p, int dir);

/* ---- watch.c ---- */

/* Tells whether the fence time has passed before the instance was started: the agent was delayed so long that the
 * daemon may have replaced the instance. */
bool fence_past(const struct shim *s);
/* Runs until the first process has ended or the fence time has passed, then kills the rest. Writes DIR/exit. */
void watch(struct shim *s);

/* ---- run.c, exec.c ---- */

int shim_run(const char *dir);
int shim_exec(const char *dir);
