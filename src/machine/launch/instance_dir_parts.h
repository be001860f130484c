/* instance_dir_parts.h - internals shared by instance_dir.c and started_file.c; nothing else includes it. */
#pragma once

#include <pthread.h>

#include "base/vec.h"
#include "machine/launch/instance_dir.h"
#include "machine/launch/state_file.h"

struct state_dir {
    char *dir;
    char boot[BOOT_ID_MAX];
    uint64_t epoch;
    bool fetches_as_other;
    uid_t fetch_uid;
    gid_t fetch_gid;
    struct image_bounds bounds;
    int dir_fd, instances_fd, lock_fd, heard_fd;
    /* STATE/started. Lock order: `sync_lock`, held during a sync, then `append_lock`, held during a write. */
    pthread_mutex_t sync_lock, append_lock;
    int started_fd;
    uint64_t appended, synced;            /* lines written by this agent; lines synced */
    uint64_t started_bytes, started_base; /* current size; size after the last rewrite */
    bool damaged; /* a sync failed: the kernel may have dropped any page, so the file must be rewritten */
};

struct instance_ids {
    uint64_t *at;
    size_t len, cap;
};

/* Opens the instance directory; -ENOENT: it does not exist. */
int instance_dir_open(const struct state_dir *p, uint64_t id);
/* Lists the ids of instance directories, sorted. */
int instance_dirs_list(const struct state_dir *p, struct instance_ids *ret);

/* Reads STATE/started, recreates directories that a power failure has lost, and rewrites the file without ended
 * instances. */
int started_open(struct state_dir *p, struct berth_err *err);
/* Appends a line with '+' or '-'; does not sync. */
int started_append(struct state_dir *p, char sign, uint64_t id);
