/* launch.h - starts an instance under its own shim, finds it again after a restart, reads its log, runs programs beside
 * it.
 *
 * The shim (src/shim) is the instance's parent process: it outlives the agent, bounds the log, records the outcome, and
 * fences the instance when the agent is silent. The agent holds a pidfd of the shim; when the pidfd becomes readable,
 * the instance has ended and its outcome is on disk. The shim is a child of init, so nothing needs to reap it.
 *
 * Every process of an instance is a descendant of its shim and a member of its cgroups. The shim exits after all of
 * them have ended. If the shim itself was killed (no `exit` file), the kernel kills the first process with it (of a
 * container, the agent does by bundle_end), and the agent kills the rest by cgroup_kill. A shim that cannot kill a
 * process within ten seconds says so in the text of `exit`. In all cases an instance is over only when its cgroup is
 * empty (cgroup_empty).
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
    const char *source, *target; /* a missing target is created privately; its path must not contain links */
    const char *type;            /* NULL: bind */
    const char *data;            /* tmpfs options: "size=64m,mode=0700" */
    bool read_only;
};

struct launch_rlimit {
    int resource; /* for example RLIMIT_NOFILE */
    rlim_t soft, hard;
};

struct launch {
    uint64_t id;
    const char *shim; /* path of berth-shim */
    /* NULL-terminated. The shim adds LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES for sockets, and BERTH_PROGRESS_FD */
    const char *const *argv, *const *env;
    const char *cwd; /* NULL: $HOME, or "/" */
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t groups_len;
    const struct launch_rlimit *rlimits;
    size_t rlimits_len;
    const char *const *procs_paths; /* cgroup.procs files (machine/cgroup/cgroup.h) */
    size_t procs_paths_len;
    const struct launch_mount *mounts; /* process only: in its own mount namespace */
    size_t mounts_len;
    const int *sockets; /* passed as descriptors 3 and up; the caller keeps its copies */
    const char *const *socket_names;
    size_t sockets_len;
    uint64_t log_bytes;  /* of one file; 0: 10 MiB */
    unsigned log_files;  /* log, log.1, ...; 0: 2 */
    int64_t fence_ns;    /* 0: never */
    bool all_syscalls;   /* no seccomp filter (machine/launch/syscalls.h) */
    bool hide_processes; /* process only: sees only processes of its own user (proc_view.h); needs root */
    /* File of the shared PID namespace (machine/launch/pid_namespace.h), for a process with hide_processes; NULL: the
     * node's namespace. Orphaned processes in the namespace are not descendants of the shim any more: only the cgroups
     * find them. */
    const char *pid_namespace;
    int stop_signal; /* sent when the instance is fenced; SIGKILL follows at once */
    bool trusted;    /* an administrator's script: no_new_privs and the seccomp filter are not applied */
    /* Container only: path of the runtime ("/usr/bin/crun") and of the bundle; NULL: a process. Arguments, environment,
     * user, mounts and rlimits then come from the bundle. Descriptors 3 to 3 + sockets_len - 1 are the sockets, 3 +
     * sockets_len is for progress; the bundle's environment says so (LISTEN_FDS=N, LISTEN_PID=1,
     * BERTH_PROGRESS_FD=3+N). The container is named "berth-ID". */
    const char *runtime, *bundle;
};

struct launch_result {
    int pidfd;          /* of the shim; the caller closes it */
    pid_t shim, pid;    /* pid: the instance's first process */
    uint64_t pid_start; /* start time of `pid`, as the number may be reused */
};

/* Starts the shim and waits (some seconds at most) for the exec of the program. On failure returns -errno with the
 * reason; only the instance directory is left. The start is durable before any process of the instance runs
 * (state_dir_sync). A process takes some milliseconds, a container as long as its runtime. Thread-safe. */
int launch_start(struct state_dir *p, const struct launch *l, struct launch_result *ret, struct berth_err *err);
/* Finds the shim of an earlier launch; not for an instance that this agent is starting. -ESRCH: no shim is running and
 * none will start; see launch_exit. -EAGAIN: the shim is starting, which a container may take long for, or is about to
 * exit; call again. */
int launch_find(const struct state_dir *p, uint64_t id, struct launch_result *ret, struct berth_err *err);
/* Like launch_find, but waits for a starting shim as long as launch_start would. Thread-safe. -EAGAIN: it makes no
 * progress. */
int launch_adopt(const struct state_dir *p, uint64_t id, struct launch_result *ret, struct berth_err *err);
/* Returns a pidfd of the instance's first process, which the caller closes; -ESRCH: it has ended. */
int launch_first_process(const struct launch_result *l);
/* Called after launch_start or launch_adopt has failed: ensures that no shim of the instance runs or will start. Kills
 * a running shim and, with it, a process; a container is ended by bundle_end. */
void launch_prevent(const struct state_dir *p, uint64_t id);
/* Reads the outcome that the shim recorded: the exit code (128 + signal; -1: never ran). `ret_text`: a sentence, for
 * example if it could not be executed or was fenced; "" if there is none. -ENOENT: the shim died without recording
 * it. */
enum { LAUNCH_TEXT_MAX = 256 };
int launch_exit(const struct state_dir *p, uint64_t id, int *ret_code, char ret_text[static LAUNCH_TEXT_MAX]);
/* Reads the last progress: thousandths, or -1, and a note. The shim replaces the file by rename at most four times a
 * second. */
int launch_progress(const struct state_dir *p, uint64_t id, int *ret_milli, char ret_note[static LAUNCH_TEXT_MAX]);

/* ---- programs beside an instance (exec.c) ----------------------------------------------------------------------- */

/* Standard streams of the program. SILENT: no input, output is discarded. */
enum exec_stdio { EXEC_PIPES, EXEC_TERMINAL, EXEC_SILENT };

struct exec_process {
    pid_t pid;               /* child of the caller, which reaps it (waitid by pidfd) */
    int pidfd, in, out, err; /* -1: none; with a terminal `in` and `out` are equal, and `err` is -1 */
    int word;                /* for exec_process_error */
};
/* Runs a program with the user, groups, cgroups, mounts, working directory and environment of a running instance (plus
 * `env`). It ends with the instance at the latest, as a member of its cgroups. Does not wait for the exec, which may
 * take long in a cgroup with little CPU. */
int exec_process_start(const struct state_dir *p, uint64_t id, const char *const *argv, const char *const *env,
                       enum exec_stdio kind, unsigned rows, unsigned columns, struct exec_process *ret,
                       struct berth_err *err);
/* For a program that has ended: 0, or -errno with the reason why it was never executed. */
int exec_process_error(const struct exec_process *b, struct berth_err *err);
void exec_process_resize(const struct exec_process *b, unsigned rows, unsigned columns);
void exec_process_close(struct exec_process *b); /* closes the descriptors; the program continues */

/* ---- log of an instance (logfile.c) ----------------------------------------------------------------------------- */

struct logfile; /* a reader that follows the log over rotations */
/* Starts at the last `tail_lines` lines; -1: at the oldest byte. -ENOENT: there is no log (any more). */
int logfile_open(const struct state_dir *p, uint64_t id, int64_t tail_lines, struct logfile **ret,
                 struct berth_err *err);
/* A cursor names a position in a log: the file and the offset in it. A rename of the file leaves the cursor valid. */
enum { LOGFILE_CURSOR_MAX = 64 };
/* Returns the position behind the last byte that logfile_read returned. */
void logfile_cursor(const struct logfile *l, char ret[static LOGFILE_CURSOR_MAX]);
/* Opens the log at a cursor. If the file of the cursor was removed, the reader starts at the oldest file and *ret_gap
 * is true. -EINVAL: the text is no cursor. */
int logfile_open_at(const struct state_dir *p, uint64_t id, const char *cursor, struct logfile **ret, bool *ret_gap,
                    struct berth_err *err);
/* Reads up to `size` bytes; 0: nothing more for now. */
ssize_t logfile_read(struct logfile *l, void *buf, size_t size);
void logfile_free(struct logfile *l); /* NULL is fine */
/* Sets the retention time of the log of an instance that is about to be forgotten. Without a log nothing happens. */
int log_keep(const struct state_dir *p, uint64_t id, int64_t keep_ns, struct berth_err *err);
/* Removes logs of forgotten instances: those past their retention time or older than `age_ns_max`, then the oldest ones
 * until the rest is within `bytes_max`. `now_ns`: since 1970. */
void logs_trim(struct state_dir *p, uint64_t bytes_max, int64_t age_ns_max, int64_t now_ns);
