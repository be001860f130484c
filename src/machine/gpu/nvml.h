/* nvml.h - the NVIDIA GPUs of this machine, as reported by their driver.
 *
 * NVML (libnvidia-ml.so.1) is loaded when it is first needed; it is not needed to build. A missing function, or a query
 * that the driver does not answer, leaves its field unknown (-1, ""), and the rest is still read. A GPU that stops
 * answering (fallen off the bus, needs a reset, driver hangs) stays in the list under its UUID, with the problem. The
 * assignment to instances is not decided here.
 *
 * To read more: a prototype in nvml_parts.h, a row in nvml.c, a field here, a function in nvml_read.c, and the same in
 * nvml_fake.c, the library that tests load.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { NVML_GPUS_MAX = 64, NVML_UUID_MAX = 96, NVML_TEXT_MAX = 96, NVML_TROUBLE_MAX = 192, NVML_PROCESSES_MAX = 512 };

/* Connection between two GPUs, fastest first. */
enum nvml_link {
    NVML_LINK_UNKNOWN,
    NVML_LINK_NVLINK,
    NVML_LINK_BOARD,  /* same board */
    NVML_LINK_SWITCH, /* through one or several PCIe switches */
    NVML_LINK_BRIDGE, /* through one PCIe host bridge */
    NVML_LINK_NUMA,   /* within one NUMA node */
    NVML_LINK_SYSTEM, /* across NUMA nodes */
};

/* A process with memory or a context on the GPU. The pid is of the machine's PID namespace. */
struct nvml_process {
    pid_t pid;
    int64_t memory_bytes; /* -1: unknown */
    int milli;            /* recent share of the GPU's time in thousandths; -1: unknown */
};

/* A GPU, or a MIG device with its own UUID. */
struct nvml_gpu {
    char uuid[NVML_UUID_MAX];   /* "GPU-..." or "MIG-..." */
    char parent[NVML_UUID_MAX]; /* MIG device: UUID of its GPU; else "" */
    char model[NVML_TEXT_MAX];
    char bus[32];          /* "00000000:01:00.0" */
    int minor;             /* /dev/nvidiaN; -1: unknown */
    int instance, compute; /* MIG device: GPU instance and compute instance; else -1 */
    bool split;            /* in MIG mode: not usable as a whole */
    int64_t memory_bytes, used_bytes;
    int milli;          /* utilization in thousandths; -1: unknown */
    int64_t ecc_errors; /* uncorrectable errors since the driver was loaded; -1: unknown */
    int mode;           /* compute mode: 0 default, 2 prohibited, 3 exclusive process; -1: unknown */
    int nvlinks;        /* number of active links */
    bool healthy;
    char trouble[NVML_TROUBLE_MAX]; /* problem: one sentence without changing numbers; "": none */
    struct nvml_process *processes;
    size_t processes_len;
};

struct nvml_snapshot {
    bool there; /* a driver is installed, or was */
    char driver[NVML_TEXT_MAX];
    char trouble[NVML_TROUBLE_MAX]; /* problem of the library or the driver; "": none */
    struct nvml_gpu *gpus;          /* MIG devices follow their GPU */
    size_t gpus_len;
    uint8_t link[NVML_GPUS_MAX][NVML_GPUS_MAX]; /* enum nvml_link, by index in `gpus` */
};

struct nvml;
/* `path`: of the library; NULL: $BERTH_NVML or, if unset, libnvidia-ml.so.1. Loads nothing yet. */
struct nvml *nvml_new(const char *path);
void nvml_free(struct nvml *n); /* NULL is fine */

/* Reads all GPUs; never fails, errors are in `trouble`. Not thread-safe. Takes some milliseconds per GPU. */
void nvml_snapshot_take(struct nvml *n, struct nvml_snapshot *ret);
void nvml_snapshot_done(struct nvml_snapshot *l);
static inline void nvml_snapshot_cleanup(struct nvml_snapshot *l)
{
    nvml_snapshot_done(l);
}
/* Returns "nvlink", "switch", ...; "" if unknown. */
const char *nvml_link_name(enum nvml_link link);
