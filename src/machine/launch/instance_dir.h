/* instance_dir.h - the agent's state directory and the directories of instances in it.
 *
 *     STATE/lock                 held by the one running agent
 *     STATE/epoch                increases with each start
 *     STATE/heard                time of the last contact with the daemon (CLOCK_BOOTTIME) and boot id; read by shims
 *     STATE/users                uids assigned to owners by this node
 *     STATE/users.cluster        uids assigned to owners by the daemon
 *     STATE/started              "+ID" for each started instance, "-ID" when it is forgotten
 *     STATE/instances/ID/        one directory for each started instance that is not forgotten
 *         config.json            configuration at the start
 *         changed.json           last changed configuration, marked "unapplied" until fully applied; absent: unchanged
 *         gpu-unenforced         limits of its GPUs that are not enforced; absent: none
 *         spec                   instructions for its shim (machine/launch/launch_spec.h)
 *         shim                   the shim's pid and start time; locked by the shim while it lives
 *         exit                   outcome, written by the shim at the end: "CODE TEXT\n" or "error TEXT\n"
 *         progress               last progress message of the instance: "MILLI TEXT\n"
 *         files/ secrets/        mounted into the instance; secrets on a tmpfs
 *         bundle/                OCI bundle of a container
 *     STATE/pid-namespaces/JOB   PID namespace of a running job (machine/launch/pid_namespace.h)
 *     STATE/logs/ID/log, log.1   bounded; kept for a while after the instance
 *     STATE/volumes/ID/          persistent volumes
 *     STATE/homes/OWNER/         home directories
 *     STATE/images/              images, as pulled and unpacked
 *     STATE/roots/ID             entry to a container's root (machine/container/bundle_gate.h)
 *
 * An instance never starts twice, because "+ID" is on disk before any process of the instance runs. Only this line must
 * be synced, and one sync covers all earlier lines: call instance_dir_create for many instances, then state_dir_sync
 * once. Everything else in an instance directory matters only during the current boot, and the page cache outlives the
 * agent. After a power failure state_dir_open recreates missing directories of recorded instances (with "{}" as
 * configuration), so that they count as started and ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct state_dir; /* an open state directory */

/* Creates missing directories, takes the lock (-EBUSY: another agent has it), and increments the epoch. */
int state_dir_open(const char *dir, struct state_dir **ret, struct berth_err *err);
void state_dir_free(struct state_dir *p);              /* NULL is fine */
const char *state_dir_path(const struct state_dir *p); /* absolute path */
uint64_t state_dir_epoch(const struct state_dir *p);

/* Sets the unprivileged user that fetches images from the network (image_fetch.h); called once before the first fetch.
 * Default: the user of this process. */
void state_dir_set_fetcher(struct state_dir *p, uid_t uid, gid_t gid);
/* False: not set. */
bool state_dir_fetcher(const struct state_dir *p, uid_t *ret_uid, gid_t *ret_gid);

/* Maximum size of one image on disk, as fetched or unpacked, and its maximum number of files; set once before the first
 * fetch. Default: 50 GiB and 2,000,000. */
struct image_bounds {
    uint64_t image_bytes, image_files;
};
void state_dir_set_image_bounds(struct state_dir *p, const struct image_bounds *bounds);
struct image_bounds image_bounds(const struct state_dir *p);

/* Builds STATE/WHAT/NAME or STATE/instances/ID/FILE. -EINVAL: a name contains '/' or consists of dots. */
enum { STATE_PATH_MAX = 4096 };
int state_dir_entry_path(const struct state_dir *p, const char *what, const char *name,
                         char ret[static STATE_PATH_MAX]);
int instance_dir_path(const struct state_dir *p, uint64_t id, const char *file, char ret[static STATE_PATH_MAX]);

/* Creates the instance directory with its config.json and records the start; durable after state_dir_sync. -EEXIST: it
 * was started before. */
int instance_dir_create(struct state_dir *p, uint64_t id, const char *config, struct berth_err *err);
/* Makes all earlier instance_dir_create calls durable by one sync; free if nothing is new. launch_start calls it; a
 * caller that starts many instances calls it once before the first launch. Thread-safe with instance_dir_create. */
int state_dir_sync(struct state_dir *p, struct berth_err *err);
/* Removes the instance directory. -EBUSY: a file system is mounted in it; its content is not touched. */
int instance_dir_remove(struct state_dir *p, uint64_t id, struct berth_err *err);
/* Calls `each` in order of ids; `each` may create and remove instances. */
int instance_dirs_each(const struct state_dir *p, void (*each)(void *ctx, uint64_t id), void *ctx);

/* Read and write whole files of an instance directory (free *ret with mem_free). Files are replaced by rename, so a
 * reader sees the old or the new content. */
int instance_dir_read(const struct state_dir *p, uint64_t id, const char *file, char **ret, struct berth_err *err);
int instance_dir_write(struct state_dir *p, uint64_t id, const char *file, const char *text, struct berth_err *err);

/* Stores and reads the time from which shims count the fence time. Cheap: a write without sync. state_dir_contact_ns
 * returns 0 after a reboot. */
void state_dir_set_contact_ns(struct state_dir *p, int64_t boottime_ns);
int64_t state_dir_contact_ns(const struct state_dir *p);
