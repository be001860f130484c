/* tool_user.h - how a program of the system's becomes somebody without rights; oci_tool.c alone includes it. */
#pragma once

#include <sys/types.h>

#include "machine/image/oci_tool.h"

/* What it may know of this process's environment, and its own home. Ends with NULL. */
char **tool_user_env(const struct tool_user *user);
void tool_env_cleanup(char ***env);
/* As fork, in a PID namespace of its own where this process may make one: then nothing of it is left once it was waited for. */
pid_t tool_user_fork(void);
/* In the child, which is root: standard output must be a pipe to the parent. -1: said why on standard error. */
int tool_user_become(const struct tool_user *user);
