/* proc_view.h - a mount of /proc in which a user sees only its own processes.
 *
 * Each instance has its own mount with `hidepid=invisible` (Linux 5.8). Earlier kernels have one setting for all mounts
 * of /proc and are not supported. Processes keep their pids, so tasks of one job can access each other's memory, as MPI
 * does.
 */
#pragma once

/* Returns a detached mount, which the caller closes or moves; -EPERM without root, -EINVAL on an older kernel. */
int proc_view_make(void);
