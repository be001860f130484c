/* launch_spawn.h - starts a program with exactly the given descriptors, by posix_spawn, without copying the agent's
 * memory.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* Descriptor i of the new process is fds[i]; -1: /dev/null. It has no others, default signal handlers and an empty
 * signal mask. `argv` and `env` are NULL-terminated. */
int spawn_with(const char *program, const char *const *argv, const char *const *env, const int *fds, size_t fds_len,
               pid_t *ret);
