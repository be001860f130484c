/* pid_namespace.h - the PID namespace that the instances of a job share on a node, as long as one of them lives.
 *
 * Tasks of one job number their processes together, as MPI needs it, and number, see and signal nobody else's. A namespace
 * ends with its first process, and instances come and go: so the first is a program of its own, `berth-shim hold FILE`, which
 * outlives shims and agents. It reaps whoever loses a parent, and ends when no shim is left that has joined; the kernel then
 * kills what is left in there.
 *
 * FILE has the number of the first process. Three bytes of it are locked: one by whoever joins, for that moment; one is shared
 * by all shims that have joined, and the first process waits until it can have it alone; and one is the first process's for as
 * long as it lives: the kernel gives it back before the namespace takes no more processes.
 */
#pragma once

#include "base/err.h"

/* 0: namespaces can be made here; -errno: EPERM without root. */
int pid_namespace_check(void);

/* What this process forks from here on is in the namespace of the file, which `shim` makes where there is none. A
 * descriptor: while it is open, here or in a fork, the namespace lives. */
int pid_namespace_join(const char *file, const char *shim, struct berth_err *err);

/* What this process forks from here on is in its own namespace again. */
void pid_namespace_leave(void);

/* Of the first process of a namespace, whose lock is its standard input: returns when no shim needs it any more. */
int pid_namespace_hold(const char *file);

/* Removes the files that nobody uses: of namespaces that ended without a word, as with the machine. */
void pid_namespaces_trim(const char *folder);
