/* sha256_fd.c - computes the digest of a file that is too large for memory. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/tls/tls.h"

enum { BLOCK_BYTES = 1 << 20, SUM_BYTES = 32 };

static int write_whole(int fd, const char *at, size_t len)
{
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int digest_content(gnutls_hash_hd_t hash, int fd, int to, uint64_t max, uint64_t *ret_len, struct berth_err *err)
{
    CLEANUP(mem) char *block = mem_alloc(BLOCK_BYTES);
    uint64_t len = 0;
    for (;;) {
        ssize_t n = read(fd, block, BLOCK_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, errno, "cannot read: %s", strerror(errno));
        if (n == 0)
            break;
        len += (uint64_t)n;
        if (len > max)
            return err_set(err, EFBIG, "larger than %llu bytes", (unsigned long long)max);
        if (gnutls_hash(hash, block, (size_t)n) < 0)
            return err_set(err, EIO, "cannot compute a hash");
        int rc = to < 0 ? 0 : write_whole(to, block, (size_t)n);
        if (rc < 0)
            return err_set(err, -rc, "cannot write: %s", strerror(-rc));
    }
    *ret_len = len;
    return 0;
}

int sha256_fd(int fd, int to, uint64_t max, char ret[static SHA256_TEXT_MAX], uint64_t *ret_len, struct berth_err *err)
{
    unsigned char sum[SUM_BYTES];
    gnutls_hash_hd_t hash;
    uint64_t len = 0;
    int rc = gnutls_hash_init(&hash, GNUTLS_DIG_SHA256);
    if (rc < 0)
        return err_set(err, EIO, "cannot compute a hash: %s", gnutls_strerror(rc));
    rc = digest_content(hash, fd, to, max, &len, err);
    gnutls_hash_deinit(hash, sum);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < sizeof sum; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
    if (ret_len)
        *ret_len = len;
    return 0;
}
