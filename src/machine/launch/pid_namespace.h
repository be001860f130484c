/* pid_namespace.h - a PID namespace that the instances of a job share on a node while one of them runs.
 *
 * Tasks of one job have a common numbering of processes, as MPI needs it, and cannot see or signal processes of other
 * jobs. A namespace ends with its first process, and instances come and go; so the first process is a separate program,
 * `berth-shim hold FILE`, which outlives shims and agents. It reaps orphans and exits when no shim uses the namespace
 * any more; the kernel then kills all processes that are left in it.
 *
 * FILE contains the pid of the first process. Record locks on three of its bytes: JOINING is held while a process
 * joins; LIFE is held shared by all shims that have joined, and the first process waits to get it exclusively; FIRST is
 * held by the first process while it lives, and the kernel releases it before the namespace stops accepting processes.
 */
#pragma once

#include "base/err.h"

/* Returns 0 if PID namespaces can be created here; -errno otherwise: -EPERM without root. */
int pid_namespace_check(void);

/* Makes later forks of this process start in the namespace of `file`; `shim` creates the namespace if it does not
 * exist. Returns a descriptor: the namespace lives while it is open, here or in a fork. */
int pid_namespace_join(const char *file, const char *shim, struct berth_err *err);

/* Makes later forks of this process start in its own namespace again. */
void pid_namespace_leave(void);

/* Called by the first process of a namespace, which holds its lock by its standard input: returns when no shim uses the
 * namespace. */
int pid_namespace_hold(const char *file);

/* Removes unused files, for example of namespaces that ended with a machine crash. */
void pid_namespaces_trim(const char *folder);
