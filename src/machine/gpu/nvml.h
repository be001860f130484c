/* nvml.h - the NVIDIA GPUs of this machine, as their driver tells of them.
 *
 * NVML (libnvidia-ml.so.1) is loaded when it is first needed; nothing of it is needed to build. Each function of it that is
 * missing, and each question that the driver does not answer, leaves its field unknown (-1, "") and the rest is read all the
 * same. A GPU that no longer answers (fallen off the bus, to be reset, its driver silent) stays in the list under the name it
 * had, with what is wrong with it. Which of them instances get is not decided here.
 *
 * To ask for more: a prototype in nvml_parts.h, a row in nvml.c, a field here, a function in nvml_read.c, and the same in
 * nvml_fake.c, the library that tests load.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { NVML_GPUS_MAX = 64, NVML_UUID_MAX = 96, NVML_TEXT_MAX = 96, NVML_TROUBLE_MAX = 192, NVML_PROCESSES_MAX = 512 };

/* Of two GPUs, the nearest way between them first. */
enum nvml_link {
    NVML_LINK_UNKNOWN,
    NVML_LINK_NVLINK,
    NVML_LINK_BOARD,  /* on one board */
    NVML_LINK_SWITCH, /* one PCIe switch, or several */
    NVML_LINK_BRIDGE, /* one host bridge */
    NVML_LINK_NUMA,   /* one NUMA node */
    NVML_LINK_SYSTEM, /* across NUMA nodes */
};

/* A process that has memory on the GPU, or a context. Of the machine's numbering. */
struct nvml_process {
    pid_t pid;
    int64_t memory_bytes; /* -1: the driver does not say */
    int milli;            /* thousandths of the GPU's time that it was busy for it lately; -1: not known */
};

/* A GPU, or a part of one (MIG) that has a name of its own. */
struct nvml_gpu {
    char uuid[NVML_UUID_MAX];   /* "GPU-..." or "MIG-..." */
    char parent[NVML_UUID_MAX]; /* of a part: the GPU it is of; "" else */
    char model[NVML_TEXT_MAX];
    char bus[32];          /* "00000000:01:00.0" */
    int minor;             /* /dev/nvidiaN; -1: not known */
    int instance, compute; /* of a part: its GPU instance and compute instance; -1 else */
    bool split;            /* has parts, or is to have some: nothing runs on it as a whole */
    int64_t memory_bytes, used_bytes;
    int milli;          /* thousandths of the time that something ran; -1: not known */
    int64_t ecc_errors; /* that could not be corrected, since the driver was loaded; -1: not known */
    int mode;           /* compute mode: 0 anybody, 2 nobody, 3 one process at a time; -1: not known */
    int nvlinks;        /* links that are up */
    bool healthy;
    char trouble[NVML_TROUBLE_MAX]; /* what is wrong with it, one sentence without numbers that change; "": nothing */
    struct nvml_process *processes;
    size_t processes_len;
};

struct nvml_look {
    bool there; /* the library is there, so there is a driver or there was one */
    char driver[NVML_TEXT_MAX];
    char trouble[NVML_TROUBLE_MAX]; /* of the library or the driver as a whole; "": none */
    struct nvml_gpu *gpus;          /* parts follow the GPU that they are of */
    size_t gpus_len;
    uint8_t link[NVML_GPUS_MAX][NVML_GPUS_MAX]; /* enum nvml_link, by places in `gpus` */
};

struct nvml;
/* `path`: NULL for $BERTH_NVML or, where that is not set, the usual name. Opens nothing yet. */
struct nvml *nvml_new(const char *path);
void nvml_free(struct nvml *n); /* NULL is fine */

/* Looks at everything; never fails, `trouble` tells. One thread at a time. Some milliseconds for each GPU. */
void nvml_look(struct nvml *n, struct nvml_look *ret);
void nvml_look_done(struct nvml_look *l);
static inline void nvml_look_cleanup(struct nvml_look *l)
{
    nvml_look_done(l);
}
/* "nvlink", "switch", ...; "" where it is not known. */
const char *nvml_link_name(enum nvml_link link);
