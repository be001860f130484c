/* image_manifest_fuzz.c - arbitrary manifests: blobs are requested under valid file names, and never twice. */
#include "machine/image/image_layout.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/mount/mount_tree.h"

static int part(void *ctx, const char *digest, uint64_t size, int blobs)
{
    const char *hex = digest + strlen("sha256:");
    (void)ctx;
    assert(image_digest_valid(digest) && !strchr(hex, '/') && strlen(hex) == 64 && size <= INT64_MAX);
    assert(faccessat(blobs, hex, F_OK, AT_SYMLINK_NOFOLLOW) < 0);
    CLEANUP(close_fd) int fd = openat(blobs, hex, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert(fd >= 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char none[] = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    char path[] = "/tmp/berth-fuzz-XXXXXX", digest[IMAGE_DIGEST_MAX] = "";
    struct berth_err err = {0};
    if (!mkdtemp(path))
        abort();
    CLEANUP(close_fd) int to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = layout_make((const char *)data, size, to, "app:1", part, NULL, digest, &err);
    assert(rc == -err.code);
    if (rc < 0)
        assert(err.text[0] && !*digest);
    else
        assert(image_digest_valid(digest));
    (void)index_lists((const char *)data, size, none);
    assert(tree_empty(to) == 0 && rmdir(path) == 0);
    return 0;
}
