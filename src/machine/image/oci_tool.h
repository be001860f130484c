/* oci_tool.h - runs a system program (skopeo, umoci, runc) to its end: without a shell, and it never outlives the call.
 */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Unprivileged user for programs that process untrusted data (tool_user.c). */
struct tool_user {
    uid_t uid;
    gid_t gid;
    const char *home; /* absolute path: working directory, $HOME and $TMPDIR */
    int given;        /* descriptor that the program gets as TOOL_GIVEN_FD; -1: none */
};
enum { TOOL_GIVEN_FD = 3 };

struct tool {
    const char *const *argv; /* argv[0]: a name in PATH or an absolute path; NULL-terminated */
    int dir;                 /* working directory; -1: "/" */
    int64_t timeout_ns;
    uint64_t spare_bytes; /* killed when the disk of `dir` has less free space; 0: no limit */
    uint64_t bytes_max;   /* killed when `dir` contains more: -EFBIG; also limits each file; 0: no limit */
    uint64_t entries_max; /* killed when `dir` has more files and directories; 0: no limit */
    /* cgroup.procs files (cgroup.h) of a cgroup for the program and its children; NULL-terminated. The caller handles
     * processes that are left in it: a daemon may not have its own session yet when the program has ended. NULL:
     * none. */
    const char *const *procs_paths;
    const struct tool_user *user; /* user to run as; its children end with it if the kernel can; NULL: unchanged */
    const char *what;             /* purpose, for errors: "cannot pull app:1" */
};

/* Finds a program in $PATH or in the system's usual directories. -ENOENT: not found. */
int tool_find(const char *name, char ret[static PATH_MAX]);

/* Runs the program and waits for its end. `ret_out` (may be NULL): its standard output, at most TOOL_OUT_MAX bytes. An
 * exit code other than 0: -EIO (-ENOSPC if the program reports that) with its last message. -ENOENT: not installed;
 * -ETIMEDOUT. */
enum { TOOL_OUT_MAX = 1 << 20 };
int tool_run(const struct tool *tool, struct str *ret_out, struct berth_err *err);
