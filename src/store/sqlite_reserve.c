/* sqlite_reserve.c - a file that reserves disk space, released when the disk is full.
 *
 * A deletion writes before it frees space, so on a full disk nothing could be deleted. The first failure with ENOSPC
 * removes the reserve. From then on only transactions that delete are accepted, until there is space for the reserve
 * again.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "store/sqlite.h"

#define RESERVE_FILE "reserve"
enum { RESERVE_BYTES = 4 * 1024 * 1024 };

int folder_reserve(const struct store_folder *f)
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

bool folder_reserve_release(const struct store_folder *f)
{
    return unlinkat(f->fd, RESERVE_FILE, 0) == 0;
}

/* Returns whether the transaction deletes something. Such a transaction may also append a record. */
static bool deletes_something(const struct queued *q)
{
    for (size_t i = 0; i < q->txn.ops_len; i++)
        if (q->txn.ops[i].gone)
            return true;
    return false;
}

void reserve_batch_cut(struct txn_queue *batch, struct txn_queue *out)
{
    struct txn_queue kept = {0};
    for (struct queued *q; (q = queued_pop(batch));) {
        if (deletes_something(q)) {
            queued_push(&kept, q);
            continue;
        }
        queued_fail(q, ENOSPC, "the disk of the store is full; only deletions are accepted until space is freed");
        queued_push(out, q);
    }
    *batch = kept;
}
