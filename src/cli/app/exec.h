/* exec.h - a command beside what runs in a pod, with our standard input and terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cli/lib/cli.h"

struct exec_ask {
    const char *pod; /* as cli/app/session.h has it */
    bool interactive, terminal;
    const char *const *env; /* NAME=VALUE */
    size_t env_len;
    const char *const *command;
    size_t command_len;
    bool *ret_ended; /* it has run to its end, and what is returned is its own code; NULL: whatever */
};

/* To its end. Returns its exit code, or an enum exit_code, told. Threads it started go on until the process ends. */
int exec_in(struct cli *cli, const struct exec_ask *ask);
