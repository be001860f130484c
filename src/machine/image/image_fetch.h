/* image_fetch.h - what strangers send is fetched by programs without rights, and taken from them file by file.
 *
 * A program that fetches (skopeo, curl) runs as the user of place_fetch_as, in a folder that is his while it runs and nobody
 * else's afterwards. What he left there is a stranger's: nothing is used by the name he gave it, no link of his is followed,
 * and no byte of a file counts before it is out of his reach and its digest was computed from what cannot change any more.
 * All that was not asked for by name goes with the folder, unseen. Where place_fetch_as was not said, it runs as this process
 * does, and the same is looked at.
 */
#pragma once

#include <stdint.h>

#include "machine/image/image_name.h"
#include "machine/image/oci_tool.h"
#include "machine/launch/instance_dir.h"

struct fetch {
    int folder;  /* tmp/fetch */
    int secrets; /* what fetch_secrets was given, in memory; -1: nothing */
    bool other;  /* it runs as somebody else than this process */
    uid_t uid;   /* whose files are taken */
    gid_t gid;
    char path[PLACE_PATH_MAX]; /* of the folder */
};
void fetch_cleanup(struct fetch *f);

/* In `tmp`, an empty folder of the caller's, which removes it with all that is in it. */
int fetch_begin(const struct place *p, int tmp, struct fetch *ret, struct berth_err *err);
/* Has it read a file of this process's: `ret` is its name for that. Nothing of it comes to the disk. -ENOENT: no such file. */
int fetch_secrets(struct fetch *f, const char *path, char ret[static PLACE_PATH_MAX]);
/* tool_run of it in that folder. When this returns nothing of it runs, where the kernel has PID namespaces for this process. */
int fetch_run(struct fetch *f, const struct tool *tool, struct str *ret_out, struct berth_err *err);

/* Moves a file (of `size` bytes; UINT64_MAX: any) that it left to `to`/`name`, which is not there yet, as this process's own, 0600;
 * a copy where somebody might still write to it. Time of reading it. -EBADMSG: it has another digest or size. -EINVAL: it is
 * no file of its own making, with one name. On failure there is no `name`. */
int fetch_take(const struct fetch *f, const char *path, uint64_t size, const char *digest, int to, const char *name);
/* A small file that it left, with a NUL behind it; mem_free. -EINVAL as above, -EFBIG. */
int fetch_read(const struct fetch *f, const char *path, size_t max, char **ret, size_t *ret_len);
