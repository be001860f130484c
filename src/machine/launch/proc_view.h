/* proc_view.h - a /proc in which a user sees its own processes only.
 *
 * A mount of its own for each instance, with `hidepid=invisible` (Linux 5.8; earlier ones had one setting for all of
 * them, so they are not asked). Processes keep their numbers, so tasks of one job reach each other's memory as MPI
 * does.
 */
#pragma once

/* A mount that is nowhere yet, to be closed or moved; -errno: -EPERM without root, -EINVAL on an older kernel. */
int proc_view_make(void);
