/* oci_tool.h - runs a program of the system's (skopeo, umoci, runc) to its end. No shell, and it never outlives the call. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Somebody without rights whom a program becomes before it runs (tool_user.c), for what reads strangers' bytes. */
struct tool_user {
    uid_t uid;
    gid_t gid;
    const char *home; /* absolute: it runs there and keeps there what it would keep at home or in /tmp */
    int given;        /* a descriptor that it has as TOOL_GIVEN_FD; -1: none */
};
enum { TOOL_GIVEN_FD = 3 };

struct tool {
    const char *const *argv; /* argv[0]: a name on the path, or an absolute path; ends with NULL */
    int dir;                 /* it runs in this folder; -1: "/" */
    int64_t timeout_ns;
    uint64_t spare_bytes; /* it is ended when the disk of `dir` has less room than this; 0: never */
    uint64_t bytes_max;   /* it is ended when what lies in `dir` takes more: -EFBIG; 0: never. No file becomes larger */
    uint64_t entries_max; /* and when there are more files and folders there; 0: never */
    /* cgroup.procs files (cgroup.h) of a group that it, and all it starts, is in; ends with NULL. What it leaves behind
     * there is the caller's: a daemon may not yet be in a session of its own when the program has ended. NULL: none. */
    const char *const *entrances;
    const struct tool_user *user; /* all it starts ends with it, where the kernel can; NULL: it stays who this is */
    const char *what;             /* what it is for, in errors: "cannot pull app:1" */
};

/* Where a program is: on $PATH, or in the usual folders of the system's. -ENOENT. */
int tool_find(const char *name, char ret[static PATH_MAX]);

/* Waits for its end. `ret_out`: what it wrote to standard output, at most TOOL_OUT_MAX bytes; may be NULL. An exit other
 * than 0: -EIO (-ENOSPC where it says so), with what it said last. -ENOENT: it is not installed; -ETIMEDOUT. */
enum { TOOL_OUT_MAX = 1 << 20 };
int tool_run(const struct tool *tool, struct str *ret_out, struct berth_err *err);
