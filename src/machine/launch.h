/* launch.h - starts an instance under a shim of its own, finds it again, looks into its log, runs programs beside it.
 *
 * The shim (src/shim) is the instance's parent: it outlives the agent, keeps the log within bounds, writes down how it
 * ended, and fences it when the agent is silent. The agent holds a pidfd of the shim; when that becomes readable, the
 * instance is over and its exit is on disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/place.h"

struct launch_mount {
    const char *source, *target; /* the target is made where it is missing */
    const char *type;            /* NULL: bind */
    const char *data;            /* options of a tmpfs: "size=64m,mode=0700" */
    bool read_only;
};

struct launch_rlimit {
    int resource; /* RLIMIT_NOFILE */
    rlim_t soft, hard;
};

struct launch {
    uint64_t id;
    const char *shim;               /* the program */
    const char *const *argv, *const *env; /* end with NULL; env is all of it */
    const char *cwd;                /* NULL: the home, or "/" */
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t groups_len;
    const struct launch_rlimit *rlimits;
    size_t rlimits_len;
    const char *const *entrances;   /* cgroup.procs files (machine/cgroup.h) */
    size_t entrances_len;
    const struct launch_mount *mounts; /* of a process: in a mount namespace of its own */
    size_t mounts_len;
    const int *sockets;             /* handed over as descriptors 3 and on; stay the caller's */
    const char *const *socket_names;
    size_t sockets_len;
    uint64_t log_bytes;
    unsigned log_files;
    int64_t fence_ns;               /* 0: never */
    int stop_signal;                /* by which the shim fences politely; SIGKILL follows at once */
    const char *runtime, *bundle;   /* of a container: "/usr/bin/crun" and its bundle; NULL: a process */
};

struct launched {
    int pidfd; /* of the shim; close it */
    pid_t shim, pid; /* pid: of the instance's first process */
};

/* Spawns the shim and waits (at most some seconds) until the program has been exec'ed or could not be: then -errno with the
 * reason, and nothing of it is left but its folder. */
int launch_start(const struct place *p, const struct launch *l, struct launched *ret, struct berth_err *err);
/* The shim of an instance from before. -ESRCH: there is none any more; see launch_exit. */
int launch_adopt(const struct place *p, uint64_t id, struct launched *ret, struct berth_err *err);
/* How it ended, as its shim wrote it: 0 and the code (128 + signal); -ENOENT: the shim died without a word. `ret_text`: a
 * sentence where there is one ("" else): it could not be exec'ed, it was fenced. */
enum { LAUNCH_TEXT_MAX = 256 };
int launch_exit(const struct place *p, uint64_t id, int *ret_code, char ret_text[static LAUNCH_TEXT_MAX]);
/* The last word on progress: thousandths, or -1, and a note. */
int launch_progress(const struct place *p, uint64_t id, int *ret_milli, char ret_note[static LAUNCH_TEXT_MAX]);

/* ---- beside it (exec.c) ---- */

struct beside {
    pid_t pid;
    int pidfd, in, out, err; /* with a terminal `in` and `out` are the same one, and `err` is -1 */
};
/* Runs a program with the user, groups, cgroup, mounts, folder and environment of a living instance (plus `env`). */
int beside_start(const struct place *p, uint64_t id, const char *const *argv, const char *const *env, bool terminal,
                 unsigned rows, unsigned columns, struct beside *ret, struct berth_err *err);
void beside_resize(const struct beside *b, unsigned rows, unsigned columns);

/* ---- its log (logfile.c) ---- */

struct logfile; /* a reader: the last lines, then what comes, over rotations */
int logfile_open(const struct place *p, uint64_t id, int64_t tail_lines, struct logfile **ret, struct berth_err *err);
/* Up to `size` bytes; 0: nothing more for now. */
ssize_t logfile_read(struct logfile *l, void *buf, size_t size);
void logfile_free(struct logfile *l);
/* Removes logs of forgotten instances: the oldest beyond these bounds. */
void logs_trim(struct place *p, uint64_t bytes_max, int64_t age_ns_max, int64_t now_ns);
