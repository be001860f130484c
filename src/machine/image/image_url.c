/* image_url.c - disks of virtual machines: a file of the node, or fetched from a URL by an unprivileged user
 * (image_fetch.h) and stored under its digest.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/image/image_parts.h"
#include "machine/image/oci_tool.h"
#include "machine/mount/mount_tree.h"
#include "wire/text/document.h"

#define FETCH_NS (INT64_C(3600) * 1000000000)
#define SPEED_BYTES "4096" /* bytes per second, averaged over SPEED_S */
#define SPEED_S "60"

static int disk_fetch(const struct state_dir *p, struct image_fetch *f, const struct image_name *n,
                      struct berth_err *err)
{
    char what[256];
    (void)snprintf(what, sizeof what, "cannot fetch image %.180s", n->path);
    /* -q: no configuration files; -g: no URL globbing. The speed limit aborts a stalled server: images are fetched one
     * after the other, so it would block the others. */
    const char *const argv[] = {"curl",        "-q",           "-g",          "--fail",
                                "--silent",    "--show-error", "--location",  "--max-redirs",
                                "5",           "--proto",      "=http,https", "--proto-redir",
                                "=http,https", "--output",     "disk",        "--speed-limit",
                                SPEED_BYTES,   "--speed-time", SPEED_S,       "--connect-timeout",
                                SPEED_S,       "--url",        n->path,       NULL};
    const struct tool t = {.argv = argv,
                           .timeout_ns = FETCH_NS,
                           .spare_bytes = spare_bytes(f->folder),
                           .bytes_max = image_bounds(p).image_bytes,
                           .what = what};
    return fetch_run(f, &t, NULL, err);
}

/* The error does not contain the actual digest: it would allow users to probe the content of internal pages by
 * guessing. */
static int disk_take(const struct image_fetch *f, const struct image_name *n, int root, struct berth_err *err)
{
    int rc = fetch_take(f, "disk", UINT64_MAX, n->digest, root, "disk");
    if (rc == -EBADMSG || rc == -ENOENT) /* curl creates no file for empty content */
        return err_set(err, EBADMSG, "image %.180s: the sha256 of the file differs from vm.sha256", n->path);
    if (rc == -ENOSPC)
        return err_set(err, ENOSPC, "cannot fetch image %.180s: the disk is full", n->path);
    return rc < 0 ? err_set(err, -rc, "image %.180s: cannot take over the downloaded file: %s", n->path, strerror(-rc))
                  : 0;
}

int url_fetch(const struct state_dir *p, const struct image_name *n, int tmp, struct berth_err *err)
{
    CLEANUP(fetch) struct image_fetch f = {.folder = -1, .secrets = -1};
    CLEANUP(close_fd) int unpacked = tree_folder(tmp, "unpacked", 0700);
    CLEANUP(close_fd) int root = unpacked < 0 ? unpacked : tree_folder(unpacked, "rootfs", 0700);
    CLEANUP(json) json_t *config = json_object();
    if (root < 0)
        return err_set(err, -root, "image %.180s: cannot create a folder: %s", n->path, strerror(-root));
    int rc = fetch_begin(p, tmp, &f, err);
    if (rc == 0)
        rc = disk_fetch(p, &f, n, err);
    if (rc == 0)
        rc = disk_take(&f, n, root, err);
    if (rc < 0)
        return rc;
    /* Readable by any user, because the instance's user reads it where it is mounted; writable by none. */
    rc = fchmodat(root, "disk", 0444, 0) < 0 ? -errno : unpacked_complete(unpacked, config);
    return rc < 0 ? err_set(err, -rc, "image %.180s: cannot store it: %s", n->path, strerror(-rc)) : 0;
}

int file_open(const char *path, const char *what, int *ret, struct berth_err *err)
{
    struct stat st;
    /* O_NONBLOCK, because opening a FIFO might block for ever. */
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "%s %.180s: cannot open it on this node: %s", what, path, strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(err, EINVAL, "%s %.180s: is not a regular file", what, path);
    *ret = take_fd(&fd);
    return 0;
}
