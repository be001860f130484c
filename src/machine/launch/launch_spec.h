/* launch_spec.h - what a shim is told, as a file: STATE/instances/ID/spec.
 *
 * Cells that end with a NUL byte, so that arguments and environment are what exec takes, byte for byte: a version, then
 * for each thing a key and as many cells as the key has. A key that is not known is refused. To add one: a row in the
 * table of launch_spec.c.
 */
#pragma once

#include "base/str.h"
#include "machine/launch/launch.h"

struct spec {
    struct launch launch; /* its texts are in `text`, its lists are owned; `sockets` is NULL */
    const char *logs;     /* folder of its log */
    const char *heard;    /* STATE/heard */
    char *text;
};

/* -EINVAL: no command, or more of something than anybody needs. */
int spec_write(const struct launch *l, const char *logs, const char *heard, struct str *ret, struct berth_err *err);
/* Takes `text` (mem_free), also on failure. */
int spec_read(char *text, size_t len, struct spec *ret, struct berth_err *err);
void spec_done(struct spec *s);

/* The value of a name in an environment; NULL: not there. */
const char *env_find(const char *const *env, const char *name);

/* STATE/instances/ID/shim: who the shim is, and the instance's first process; `pid` 0: not yet. */
struct shim_mark {
    pid_t shim, pid;
    uint64_t shim_start, pid_start;
    char boot[40];
};
enum { SHIM_MARK_MAX = 160 };
size_t shim_mark_text(const struct shim_mark *m, char ret[static SHIM_MARK_MAX]);
bool shim_mark_parse(const char *text, struct shim_mark *ret);

/* How the shim answers launch_start over its socket, in one message each: at first with its pidfd beside it, then once
 * more when the program runs or could not be started. */
struct shim_word {
    int32_t code; /* positive errno: it did not start */
    int32_t shim, pid;
    uint64_t pid_start; /* as process_start says it */
    char text[LAUNCH_TEXT_MAX];
};
enum { SHIM_STATUS_FD = 3, SHIM_SOCKETS_FD = 4, LAUNCH_SOCKETS_MAX = 64 };
