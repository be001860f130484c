/* sqlite_reserve.c - a file that keeps some room on the disk, to be given up when the disk is full.
 *
 * A deletion writes before it frees anything, so on a full disk nothing could be deleted. The first failure for want of room
 * removes the reserve; from then on only transactions that delete something are taken, until the disk has room for the
 * reserve again.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "store/sqlite.h"

#define RESERVE_FILE "reserve"
enum { RESERVE_BYTES = 4 * 1024 * 1024 };

int folder_reserve(const struct folder *f)
{
    int fd = openat(f->fd, RESERVE_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int code = posix_fallocate(fd, 0, RESERVE_BYTES);
    (void)close(fd);
    if (code)
        (void)unlinkat(f->fd, RESERVE_FILE, 0);
    return code == EDQUOT ? -ENOSPC : -code;
}

bool folder_reserve_release(const struct folder *f)
{
    return unlinkat(f->fd, RESERVE_FILE, 0) == 0;
}

/* A transaction of which something goes; a record comes with each. */
static bool frees(const struct queued *q)
{
    for (size_t i = 0; i < q->txn.ops_len; i++)
        if (q->txn.ops[i].gone)
            return true;
    return false;
}

void reserve_batch_cut(struct queue *batch, struct queue *out)
{
    struct queue kept = {0};
    for (struct queued *q; (q = queued_pop(batch));) {
        if (frees(q)) {
            queued_push(&kept, q);
            continue;
        }
        queued_fail(q, ENOSPC, "the disk of the store is full; only deletions are accepted until space is freed");
        queued_push(out, q);
    }
    *batch = kept;
}
