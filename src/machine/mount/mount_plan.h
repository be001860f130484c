/* mount_plan.h - what an instance's object says of mounts, files and settings, read and checked; nothing is touched.
 *
 * Paths are absolute, without "." and "..", none twice, none of them "/" or in /proc, /sys, /dev: those are the system's. To
 * add a kind of mount: a member of enum plan_kind, a case in mount_plan.c, and one in volume.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { PLAN_MOUNTS_MAX = 256, PLAN_FILES_MAX = 1024, PLAN_TEXT_MAX = 4 << 20 };

/* Where the folder with an instance's settings is, and what the file is called. */
#define SETTINGS_FOLDER "/run/berth"
#define SETTINGS_FILE "settings.json"

enum plan_kind { PLAN_LOCAL, PLAN_BIND, PLAN_TMPFS };

struct plan_mount {
    enum plan_kind kind;
    const char *path;   /* in the instance */
    const char *volume; /* LOCAL: its name */
    const char *source; /* BIND: on the node */
    int64_t bytes;      /* TMPFS */
    bool read_only;
};

struct plan_file {
    const char *path;          /* in the instance */
    const char *folder, *name; /* its two parts */
    const char *text;          /* NULL: a secret */
    size_t text_len;
    const char *secret, *key;
    unsigned mode;
};

struct mount_plan {
    struct plan_mount *mounts; /* by path, so that what holds another comes before it */
    size_t mounts_len;
    struct plan_file *files; /* by path */
    size_t files_len;
    const json_t *settings; /* the config's; NULL: none */
};

/* Lists are the arena's, texts the config's or the arena's. -EINVAL: a sentence that names the path. */
int mount_plan_read(const json_t *config, struct arena *arena, struct mount_plan *ret, struct berth_err *err);
