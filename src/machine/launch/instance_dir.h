/* instance_dir.h - the agent's folder on disk: what is kept where.
 *
 *   STATE/lock                 one agent at a time
 *   STATE/epoch                grows with each start
 *   STATE/heard                when the daemon last heard of this node (CLOCK_BOOTTIME), and of which boot; shims read it
 *   STATE/users                uids that were given to owners
 *   STATE/started              "+ID" of each instance that was told to start, "-ID" when it was forgotten
 *   STATE/instances/ID/        one folder per instance that was ever told to start and is not forgotten
 *       config.json            as it was started from
 *       changed.json           as it was changed to since, "unapplied" until all of it is so; not there: it was not
 *       gpu-unenforced         limits of its GPUs that nobody enforces, if there are some
 *       spec                   what its shim was told (machine/launch/launch_spec.h)
 *       shim                   the shim's process number and start time, locked by the shim for as long as it lives
 *       exit                   how it went, written by the shim at the end: "CODE TEXT\n" or "error TEXT\n"
 *       progress               last word of the instance on its progress: "MILLI TEXT\n"
 *       files/ secrets/        what is mounted into it; secrets on a tmpfs
 *       bundle/                of a container
 *   STATE/pid-namespaces/JOB   of a job that runs here (machine/launch/pid_namespace.h)
 *   STATE/logs/ID/log, log.1   bounded; stay after the instance for a while
 *   STATE/volumes/ID/          persistent volumes
 *   STATE/homes/OWNER/         home folders
 *   STATE/images/              images as pulled, and unpacked
 *
 * Nothing starts twice because "+ID" is on disk before any process of the instance runs. That line is all that must be
 * synced, and one sync serves every line before it: begin many, then place_sync once. What else is in an instance's
 * folder matters only while this boot lasts, and the page cache outlives the agent. After a power failure place_open
 * makes anew the folders whose lines are there (with "{}" for their configuration), so they read as begun, and dead.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct place; /* an open state folder */

/* Makes what is missing, takes the lock (-EBUSY: another agent has it), reads the epoch and writes the next. */
int place_open(const char *dir, struct place **ret, struct berth_err *err);
void place_free(struct place *p);             /* NULL is fine */
const char *place_dir(const struct place *p); /* absolute */
uint64_t place_epoch(const struct place *p);

/* Whom programs that fetch from the network run as (image_fetch.h): somebody without rights, said once before the first of them.
 * Unsaid: as this process does. */
void place_fetch_as(struct place *p, uid_t uid, gid_t gid);
/* False: unsaid. */
bool place_fetcher(const struct place *p, uid_t *ret_uid, gid_t *ret_gid);

/* The most that one image may take on disk, fetched or unpacked, and how many files it may have; said once before the first of them.
 * Unsaid: 50 GiB and 2,000,000. */
struct place_bounds {
    uint64_t image_bytes, image_files;
};
void place_bound(struct place *p, const struct place_bounds *bounds);
struct place_bounds place_bounds(const struct place *p);

/* STATE/WHAT/NAME or STATE/instances/ID/FILE in the caller's buffer; names with '/' or dots alone are refused: -EINVAL. */
enum { PLACE_PATH_MAX = 4096 };
int place_path(const struct place *p, const char *what, const char *name, char ret[static PLACE_PATH_MAX]);
int place_instance(const struct place *p, uint64_t id, const char *file, char ret[static PLACE_PATH_MAX]);

/* Makes the instance's folder with its config.json and marks it as begun; durable after place_sync. -EEXIST: it was told to
 * start before. */
int place_begin(struct place *p, uint64_t id, const char *config, struct berth_err *err);
/* All that was begun before this call is durable, by one sync; free where nothing is new. launch_start does this itself:
 * whoever starts many calls it once before the first of them. May run on a thread of its own beside place_begin. */
int place_sync(struct place *p, struct berth_err *err);
/* Removes all of the folder. -EBUSY: something is mounted in it; what is mounted is not touched. */
int place_end(struct place *p, uint64_t id, struct berth_err *err);
/* In order of ids; `each` may begin and end instances. */
int place_each(const struct place *p, void (*each)(void *ctx, uint64_t id), void *ctx);

/* Files of an instance's folder, whole (free with mem_free); written by rename, so a reader sees the old or the new. */
int place_read(const struct place *p, uint64_t id, const char *file, char **ret, struct berth_err *err);
int place_write(struct place *p, uint64_t id, const char *file, const char *text, struct berth_err *err);

/* The time that shims fence by. Cheap: a write without sync. 0 where the boot was another one. */
void place_heard(struct place *p, int64_t boottime_ns);
int64_t place_last_heard(const struct place *p);
