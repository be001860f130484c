/* launch.h - starts an instance under a shim of its own, finds it again, looks into its log, runs programs beside it.
 *
 * The shim (src/shim) is the instance's parent: it outlives the agent, keeps the log within bounds, writes down how it
 * ended, and fences it when the agent is silent. The agent holds a pidfd of the shim; when that becomes readable, the
 * instance is over and its exit is on disk. The shim is nobody's child but init's: nothing needs to wait for it.
 *
 * Every process an instance brings forth is a descendant of its shim and a member of its cgroups, whatever it forks. The
 * shim ends once all of them have ended. Where the shim itself was killed (no `exit`), the kernel kills the first process
 * with it (of a container: the agent does, by bundle_end); the agent kills the rest by cgroup_kill. A shim that cannot kill
 * something within ten seconds says so in the text of `exit`. Either way an instance is over only when cgroup_empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine/launch/instance_dir.h"

struct launch_mount {
    const char *source, *target; /* a missing target is the instance's alone; no link may be on the way to it */
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
    const char *shim;                     /* the program */
    const char *const *argv, *const *env; /* end with NULL; env is all of it but for what the shim adds: LISTEN_FDS,
                                             LISTEN_PID, LISTEN_FDNAMES where there are sockets, and BERTH_PROGRESS_FD */
    const char *cwd;                      /* NULL: $HOME, or "/" */
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t groups_len;
    const struct launch_rlimit *rlimits;
    size_t rlimits_len;
    const char *const *entrances; /* cgroup.procs files (machine/cgroup/cgroup.h) */
    size_t entrances_len;
    const struct launch_mount *mounts; /* of a process: in a mount namespace of its own */
    size_t mounts_len;
    const int *sockets; /* handed over as descriptors 3 and on; stay the caller's */
    const char *const *socket_names;
    size_t sockets_len;
    uint64_t log_bytes;  /* of one file; 0: 10 MiB */
    unsigned log_files;  /* log, log.1, ...; 0: 2 */
    int64_t fence_ns;    /* 0: never */
    bool all_syscalls;   /* it may ask anything of the kernel (machine/launch/syscalls.h) */
    bool hide_processes; /* of a process: it sees those of its own user only (machine/launch/proc_view.h); needs root */
    /* Of a process that is hidden from others: the file of the PID namespace that it shares (machine/launch/pid_namespace.h); NULL: the
     * node's. Whoever loses its parent in there is no descendant of the shim's any more: only its cgroups find it. */
    const char *pid_namespace;
    int stop_signal; /* by which the shim fences politely; SIGKILL follows at once */
    bool
        trusted; /* an administrator's: it may gain privileges and ask of the kernel what any program of its user may */
    /* Of a container: "/usr/bin/crun" and its bundle; NULL: a process. Arguments, environment, user, mounts and rlimits are
     * the bundle's then. Its descriptors 3 to 3 + sockets_len - 1 are the sockets, 3 + sockets_len is for its progress: the
     * bundle's environment says so (LISTEN_FDS=N, LISTEN_PID=1, BERTH_PROGRESS_FD=3+N). The container is "berth-ID". */
    const char *runtime, *bundle;
};

struct launched {
    int pidfd;          /* of the shim; close it */
    pid_t shim, pid;    /* pid: of the instance's first process */
    uint64_t pid_start; /* when that began: its number may be another's by now */
};

/* Spawns the shim and waits (at most some seconds) until the program has been exec'ed or could not be: then -errno with the
 * reason, and nothing of it is left but its folder. Its start is durable before anything of it runs (place_sync). A process
 * takes some milliseconds, a container as long as its runtime; may be called on any thread. */
int launch_start(struct place *p, const struct launch *l, struct launched *ret, struct berth_err *err);
/* The shim of an instance from before; not for one that this agent is just starting. -ESRCH: there is none any more, and
 * none will come even if one was just on its way; see launch_exit. -EAGAIN: it is on its way, as a container's may be for a
 * while, or about to end; ask again. */
int launch_look(const struct place *p, uint64_t id, struct launched *ret, struct berth_err *err);
/* The same, but waits for one that is on its way as long as launch_start would; may be called on any thread. -EAGAIN: it
 * does not come on. */
int launch_adopt(const struct place *p, uint64_t id, struct launched *ret, struct berth_err *err);
/* A pidfd of its first process, to be closed; -ESRCH: that has ended. */
int launch_first(const struct launched *l);
/* After launch_start or launch_adopt has failed: no shim of it lives any more, and none will come. Kills one that does, and
 * with it a process; a container is bundle_end's. */
void launch_refuse(const struct place *p, uint64_t id);
/* How it ended, as its shim wrote it: 0 and the code (128 + signal; -1: it never ran); -ENOENT: the shim died without a
 * word. `ret_text`: a sentence where there is one ("" else): it could not be exec'ed, it was fenced. */
enum { LAUNCH_TEXT_MAX = 256 };
int launch_exit(const struct place *p, uint64_t id, int *ret_code, char ret_text[static LAUNCH_TEXT_MAX]);
/* The last word on progress: thousandths, or -1, and a note. The file is replaced by rename at most four times a second. */
int launch_progress(const struct place *p, uint64_t id, int *ret_milli, char ret_note[static LAUNCH_TEXT_MAX]);

/* ---- beside it (exec.c) ---- */

/* What the program reads and writes. SILENT: it reads nothing, and its words go nowhere. */
enum beside_kind { BESIDE_PIPES, BESIDE_TERMINAL, BESIDE_SILENT };

struct beside {
    pid_t pid; /* a child of the caller's, who waits for it (waitid by pidfd) and so learns how it ended */
    int pidfd, in, out, err; /* -1: none; with a terminal `in` and `out` are the same one, and there is no `err` */
    int word;                /* for beside_failed */
};
/* Runs a program with the user, groups, cgroup, mounts, folder and environment of a living instance (plus `env`). It ends
 * with the instance at the latest, as a member of its cgroups. Does not wait for it to begin: in a group that gets little
 * of the machine that may take long. */
int beside_start(const struct place *p, uint64_t id, const char *const *argv, const char *const *env,
                 enum beside_kind kind, unsigned rows, unsigned columns, struct beside *ret, struct berth_err *err);
/* Of one that has ended: 0, or -errno and the reason why the program was never run. */
int beside_failed(const struct beside *b, struct berth_err *err);
void beside_resize(const struct beside *b, unsigned rows, unsigned columns);
void beside_close(struct beside *b); /* its descriptors; it goes on */

/* ---- its log (logfile.c) ---- */

struct logfile; /* a reader: the last lines, then what comes, over rotations */
/* `tail_lines` -1: all there is. -ENOENT: there is no log of it (any more). */
int logfile_open(const struct place *p, uint64_t id, int64_t tail_lines, struct logfile **ret, struct berth_err *err);
/* A cursor names a position in a log: the file and the offset in it. A rename of the file leaves the cursor valid. */
enum { LOGFILE_CURSOR_MAX = 64 };
/* The position behind the last byte that logfile_read returned. */
void logfile_cursor(const struct logfile *l, char ret[static LOGFILE_CURSOR_MAX]);
/* Opens the log at a cursor. If the file of the cursor was removed, the reader starts at the oldest file and *ret_gap
 * is true. -EINVAL: the text is no cursor. */
int logfile_open_at(const struct place *p, uint64_t id, const char *cursor, struct logfile **ret, bool *ret_gap,
                    struct berth_err *err);
/* Up to `size` bytes; 0: nothing more for now. */
ssize_t logfile_read(struct logfile *l, void *buf, size_t size);
void logfile_free(struct logfile *l); /* NULL is fine */
/* Of an instance that is about to be forgotten: its log is not wanted for longer than this. Without a log nothing. */
int log_keep(const struct place *p, uint64_t id, int64_t keep_ns, struct berth_err *err);
/* Removes logs of forgotten instances: those that are not wanted any more or older than `age_ns_max`, then the oldest beyond `bytes_max` in all. `now_ns`:
 * since 1970. */
void logs_trim(struct place *p, uint64_t bytes_max, int64_t age_ns_max, int64_t now_ns);
