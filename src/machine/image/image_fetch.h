/* image_fetch.h - fetches untrusted data by unprivileged programs, and takes over the results file by file.
 *
 * A program that fetches (skopeo, curl) runs as the user of state_dir_set_fetcher, in a directory that belongs to this
 * user only while the program runs. Its results are untrusted: names and links that it chose are not used, and a file
 * is accepted only after that user can no longer change it and its digest was computed from the final content. All
 * other files are removed with the directory without being read. Without state_dir_set_fetcher, the program runs as
 * this process's user, with the same checks.
 */
#pragma once

#include <stdint.h>

#include "machine/image/image_name.h"
#include "machine/image/oci_tool.h"
#include "machine/launch/instance_dir.h"

struct image_fetch {
    int folder;  /* descriptor of tmp/fetch */
    int secrets; /* memory file with the content given to fetch_secrets; -1: none */
    bool other;  /* the program runs as another user than this process */
    uid_t uid;   /* user whose files are accepted */
    gid_t gid;
    char path[STATE_PATH_MAX]; /* path of `folder` */
};
void fetch_cleanup(struct image_fetch *f);

/* Prepares a fetch in `tmp`, an empty directory, which the caller removes with its content. */
int fetch_begin(const struct state_dir *p, int tmp, struct image_fetch *ret, struct berth_err *err);
/* Lets the program read a file of this process without writing it to disk: `ret` is its path for the program. -ENOENT:
 * no such file. */
int fetch_secrets(struct image_fetch *f, const char *path, char ret[static STATE_PATH_MAX]);
/* Runs the program by tool_run in the directory. When it returns, no process of it is left, if this process may create
 * PID namespaces. */
int fetch_run(struct image_fetch *f, const struct tool *tool, struct str *ret_out, struct berth_err *err);

/* Moves a file of the program (of `size` bytes; UINT64_MAX: any) to `to`/`name`, which must not exist, owned by this
 * process with mode 0600; copies it if a process may still write to it. Takes the time of reading it. -EBADMSG: wrong
 * digest or size. -EINVAL: not a regular file of the fetch user with a single name. On failure `name` does not
 * exist. */
int fetch_take(const struct image_fetch *f, const char *path, uint64_t size, const char *digest, int to,
               const char *name);
/* Reads a small file of the program, NUL-terminated; free with mem_free. -EINVAL as above, -EFBIG: larger than
 * `max`. */
int fetch_read(const struct image_fetch *f, const char *path, size_t max, char **ret, size_t *ret_len);
