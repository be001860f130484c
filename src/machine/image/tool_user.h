/* tool_user.h - drops privileges before a system program is executed; only oci_tool.c includes it. */
#pragma once

#include <sys/types.h>

#include "machine/image/oci_tool.h"

/* Builds the environment: allowed variables of this process, and the user's home. NULL-terminated. */
char **tool_user_env(const struct tool_user *user);
void tool_env_cleanup(char ***env);
/* Like fork, with a new PID namespace if this process may create one: then no descendant is left after the child was
 * reaped. */
pid_t tool_user_fork(void);
/* In the child, as root; standard output must be a pipe to the parent. -1: the reason was written to standard error. */
int tool_user_become(const struct tool_user *user);
