/* exec.h - runs a command in a running pod, with the standard input and terminal of this program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/lib/cli.h"

struct exec_request {
    const char *pod; /* the pod's name as in cli/app/session.h */
    bool interactive, terminal;
    const char *const *env; /* NAME=VALUE */
    size_t env_len;
    const char *const *command;
    size_t command_len;
    bool *ret_ended; /* set to true if the command ended by itself and the result is its exit code; may be NULL */
};

/* Runs the command to its end. Returns the command's exit code, or an enum exit_code after printing an error. Threads
 * that it starts continue until the process ends. */
int exec_run(struct cli *cli, const struct exec_request *ask);
