/* launch_spec.h - the instructions for a shim, as a file: STATE/instances/ID/spec.
 *
 * NUL-terminated cells, so that arguments and environment are passed to exec byte for byte: a version, then entries of
 * a key and as many values as the key has. Unknown keys are rejected. To add a key: a row in the table of
 * launch_spec.c.
 */
#pragma once

#include "base/str.h"
#include "machine/launch/launch.h"

struct launch_spec {
    struct launch launch; /* texts point into `text`, lists are owned; `sockets` is NULL */
    const char *logs;     /* log directory */
    const char *heard;    /* path of STATE/heard */
    char *text;
};

/* -EINVAL: no command, or a list exceeds its bound. */
int spec_write(const struct launch *l, const char *logs, const char *heard, struct str *ret, struct berth_err *err);
/* Takes ownership of `text` (mem_free), also on failure. */
int spec_read(char *text, size_t len, struct launch_spec *ret, struct berth_err *err);
void spec_done(struct launch_spec *s);

/* Returns the value of a variable; NULL: not set. */
const char *env_find(const char *const *env, const char *name);

/* Content of STATE/instances/ID/shim: the shim and the instance's first process, with start times; `pid` 0: not started
 * yet. */
struct shim_mark {
    pid_t shim, pid;
    uint64_t shim_start, pid_start;
    char boot[40];
};
enum { SHIM_MARK_MAX = 160 };
size_t shim_mark_text(const struct shim_mark *m, char ret[static SHIM_MARK_MAX]);
bool shim_mark_parse(const char *text, struct shim_mark *ret);

/* Message of the shim to launch_start: first when the shim is ready, with its pidfd attached; then with the result of
 * the exec. */
struct shim_message {
    int32_t code; /* positive errno: start failed; 0: success */
    int32_t shim, pid;
    uint64_t pid_start; /* as process_start returns it */
    char text[LAUNCH_TEXT_MAX];
};
enum { SHIM_STATUS_FD = 3, SHIM_SOCKETS_FD = 4, LAUNCH_SOCKETS_MAX = 64 };
