/* vm_disk.c - writes a virtual machine's disk in the format qcow2, version 3, on top of a shared image.
 *
 * Not by qemu-img, which would parse the untrusted image with the agent's privileges; only the first fields of its
 * header are read here. Clusters have 64 KiB. The file has four of them: the header, the refcount table, one refcount
 * block, and the L1 table, which is empty.
 */
#include "machine/vm/vm.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/launch/state_file.h"

#define CLUSTER_BITS 16
#define CLUSTER (UINT64_C(1) << CLUSTER_BITS)
#define L2_BYTES (CLUSTER / 8 * CLUSTER) /* disk bytes behind one entry of the L1 table */
#define DATA_FILE UINT64_C(4)            /* incompatible feature: data in an external file */
#define MAGIC UINT32_C(0x514649fb)
#define FORMAT_EXTENSION UINT32_C(0xe2792aca)
#define DISK_BYTES_MAX (CLUSTER / 8 * L2_BYTES)
enum { AT_REFCOUNTS = 1, AT_BLOCK, AT_L1, CLUSTERS };

struct qcow2_header { /* big-endian */
    uint32_t magic, version;
    uint64_t backing_at;
    uint32_t backing_len, cluster_bits;
    uint64_t bytes;
    uint32_t encryption, l1_len;
    uint64_t l1_at, refcounts_at;
    uint32_t refcounts_clusters, snapshots;
    uint64_t snapshots_at, incompatible, compatible, autoclear;
    uint32_t refcount_order, header_len;
};
_Static_assert(sizeof(struct qcow2_header) == 104, "as the format has it");

int vm_disk_inspect(int fd, uint64_t *ret_bytes, bool *ret_raw)
{
    struct qcow2_header h = {0};
    struct stat st;
    ssize_t n = pread(fd, &h, sizeof h, 0);
    if (n < 0 || fstat(fd, &st) < 0)
        return -errno;
    bool raw = n < 72 || be32toh(h.magic) != MAGIC;
    uint64_t bytes = raw ? (uint64_t)st.st_size : be64toh(h.bytes);
    uint32_t version = be32toh(h.version);
    bool outside = h.backing_at || (version == 3 && n == sizeof h && be64toh(h.incompatible) & DATA_FILE);
    if (!raw && ((version != 2 && version != 3) || h.encryption || outside))
        return -EINVAL;
    if (bytes > DISK_BYTES_MAX)
        return -EFBIG;
    *ret_bytes = bytes;
    *ret_raw = raw;
    return 0;
}

static int put(int fd, uint64_t at, const void *bytes, size_t len)
{
    ssize_t n = pwrite(fd, bytes, len, (off_t)at);
    return n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
}

/* Writes the header, the extension with the image's format, the end of the extensions, and the image's name. */
static int header_put(int fd, uint64_t bytes, const char *image, bool raw)
{
    const char *format = raw ? "raw" : "qcow2";
    uint32_t extension[] = {htobe32(FORMAT_EXTENSION), htobe32((uint32_t)strlen(format)), 0, 0, 0, 0};
    uint64_t name_at = sizeof(struct qcow2_header) + sizeof extension;
    struct qcow2_header h = {
        .magic = htobe32(MAGIC),
        .version = htobe32(3),
        .backing_at = htobe64(name_at),
        .backing_len = htobe32((uint32_t)strlen(image)),
        .cluster_bits = htobe32(CLUSTER_BITS),
        .bytes = htobe64(bytes),
        .l1_len = htobe32((uint32_t)((bytes + L2_BYTES - 1) / L2_BYTES)),
        .l1_at = htobe64(AT_L1 * CLUSTER),
        .refcounts_at = htobe64(AT_REFCOUNTS * CLUSTER),
        .refcounts_clusters = htobe32(1),
        .refcount_order = htobe32(4),
        .header_len = htobe32(sizeof(struct qcow2_header)),
    };
    memcpy(&extension[2], format, strlen(format));
    int rc = put(fd, 0, &h, sizeof h);
    if (rc == 0)
        rc = put(fd, sizeof h, extension, sizeof extension);
    return rc == 0 ? put(fd, name_at, image, strlen(image)) : rc;
}

int vm_disk_write(int fd, uint64_t bytes, const char *image, bool raw)
{
    const uint64_t block = htobe64(AT_BLOCK * CLUSTER);
    uint16_t counts[CLUSTERS];
    bytes = (bytes + 511) / 512 * 512;
    if (bytes > DISK_BYTES_MAX || strlen(image) > 1023)
        return -EINVAL;
    for (size_t i = 0; i < CLUSTERS; i++)
        counts[i] = htobe16(1);
    int rc = ftruncate(fd, CLUSTERS * CLUSTER) < 0 ? -errno : header_put(fd, bytes, image, raw);
    if (rc == 0)
        rc = put(fd, AT_REFCOUNTS * CLUSTER, &block, sizeof block);
    return rc == 0 ? put(fd, AT_BLOCK * CLUSTER, counts, sizeof counts) : rc;
}
