/* place.h - the agent's folder on disk: what is kept where.
 *
 *   STATE/lock                 one agent at a time
 *   STATE/epoch                grows with each start
 *   STATE/heard                when the daemon last heard of this node (CLOCK_BOOTTIME), and of which boot; shims read it
 *   STATE/users                uids that were given to owners
 *   STATE/instances/ID/        one folder per instance that was ever told to start and is not forgotten
 *       config.json            as it was started from; its being there, on disk, is the mark that nothing starts twice
 *       shim.json              what its shim was told (shim/spec.h)
 *       shim                   the shim's process number and start time, written by the shim
 *       exit                   how it went, written by the shim at the end: "CODE\n" or "error TEXT\n"
 *       progress               last word of the instance on its progress
 *       files/ secrets/        what is mounted into it; secrets on a tmpfs
 *       bundle/                of a container
 *   STATE/logs/ID/log, log.1   bounded; stay after the instance for a while
 *   STATE/volumes/ID/          persistent volumes
 *   STATE/homes/OWNER/         home folders
 *   STATE/images/              images as pulled, and unpacked
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct place; /* an open state folder */

/* Makes what is missing, takes the lock (-EBUSY: another agent has it), reads the epoch and writes the next. */
int place_open(const char *dir, struct place **ret, struct berth_err *err);
void place_free(struct place *p);
const char *place_dir(const struct place *p);
uint64_t place_epoch(const struct place *p);

/* STATE/WHAT/NAME or STATE/instances/ID/FILE in the caller's buffer; names with '/' or dots alone are refused: -EINVAL. */
enum { PLACE_PATH_MAX = 4096 };
int place_path(const struct place *p, const char *what, const char *name, char ret[static PLACE_PATH_MAX]);
int place_instance(const struct place *p, uint64_t id, const char *file, char ret[static PLACE_PATH_MAX]);

/* Makes the instance's folder with its config.json, durably. -EEXIST: it was told to start before. */
int place_begin(struct place *p, uint64_t id, const char *config, struct berth_err *err);
/* Removes all of the folder. Nothing may be mounted in it. */
int place_end(struct place *p, uint64_t id, struct berth_err *err);
int place_each(const struct place *p, void (*each)(void *ctx, uint64_t id), void *ctx);

/* Files of an instance's folder, whole. */
int place_read(const struct place *p, uint64_t id, const char *file, char **ret, struct berth_err *err);
int place_write(struct place *p, uint64_t id, const char *file, const char *text, struct berth_err *err);

/* The time that shims fence by. Cheap: a write without sync. 0 where the boot was another one. */
void place_heard(struct place *p, int64_t boottime_ns);
int64_t place_last_heard(const struct place *p);
