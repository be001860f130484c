/* launch_spawn.h - a program of the agent's own with just these descriptors, quickly: without copying the agent. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Descriptor i of the new process is fds[i]; -1: /dev/null. There are no others. Signals are as at the start of the world. `argv` and `env` end with NULL. */
int spawn_with(const char *program, const char *const *argv, const char *const *env, const int *fds, size_t fds_len,
               pid_t *ret);
