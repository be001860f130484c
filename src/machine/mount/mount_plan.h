/* mount_plan.h - parses and checks mounts, files and settings of an instance's configuration; changes nothing on the
 * node.
 *
 * Paths are absolute, without "." and "..", unique, and neither "/" nor in the reserved directories /proc, /sys and
 * /dev. To add a kind of mount: a member of enum plan_kind, a case in mount_plan.c, and one in volume.c.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum { PLAN_MOUNTS_MAX = 256, PLAN_FILES_MAX = 1024, PLAN_TEXT_MAX = 4 << 20 };

/* Directory and file name of an instance's settings. */
#define SETTINGS_FOLDER "/run/berth"
#define SETTINGS_FILE "settings.json"

enum plan_kind { PLAN_LOCAL, PLAN_BIND, PLAN_TMPFS };

struct plan_mount {
    enum plan_kind kind;
    const char *path;   /* in the instance */
    const char *volume; /* LOCAL: name of the volume */
    const char *source; /* BIND: path on the node */
    int64_t bytes;      /* TMPFS */
    bool read_only;
};

struct plan_file {
    const char *path;          /* in the instance */
    const char *folder, *name; /* directory and file name of `path` */
    const char *text;          /* NULL: a secret */
    size_t text_len;
    const char *secret, *key;
    unsigned mode;
};

struct mount_plan {
    struct plan_mount *mounts; /* sorted by path, so that parents come first */
    size_t mounts_len;
    struct plan_file *files; /* sorted by path */
    size_t files_len;
    const json_t *settings; /* borrowed from the configuration; NULL: none */
};

/* Lists are allocated from the arena; texts point into the configuration or the arena. -EINVAL with the path in the
 * text. */
int mount_plan_read(const json_t *config, struct arena *arena, struct mount_plan *ret, struct berth_err *err);
