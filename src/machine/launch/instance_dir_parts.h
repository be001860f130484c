/* instance_dir_parts.h - what the files place*.c share; nobody else includes it. */
#pragma once

#include <pthread.h>

#include "base/vec.h"
#include "machine/launch/instance_dir.h"
#include "machine/launch/state_file.h"

struct place {
    char *dir;
    char boot[BOOT_ID_MAX];
    uint64_t epoch;
    bool fetches_as_other;
    uid_t fetch_uid;
    gid_t fetch_gid;
    struct place_bounds bounds;
    int dir_fd, instances_fd, lock_fd, heard_fd;
    /* STATE/started. `sync_lock` is taken first, for as long as a sync takes; `append_lock` for a write. */
    pthread_mutex_t sync_lock, append_lock;
    int started_fd;
    uint64_t appended, synced;            /* lines of this agent's, so far */
    uint64_t started_bytes, started_base; /* now, and when it was last made anew */
    bool damaged; /* a sync failed: what the kernel has dropped is not known, so the file must be made anew */
};

struct ids {
    uint64_t *at;
    size_t len, cap;
};

/* The instance's folder; -ENOENT. */
int instance_open(const struct place *p, uint64_t id);
/* Folders of instances, sorted. */
int instances_list(const struct place *p, struct ids *ret);

/* Reads STATE/started, makes folders anew that a power failure has taken, and the file without what is over. */
int started_open(struct place *p, struct berth_err *err);
/* One more line, '+' or '-'; not synced. */
int started_append(struct place *p, char sign, uint64_t id);
