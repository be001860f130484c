/* nvml_parts.h - NVML as its documentation describes it: prototypes, structures and numbers that are used. For nvml*.c. */
#pragma once

#include "machine/gpu/nvml.h"

enum {
    NVML_SUCCESS = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_MISMATCH = 18,
    NVML_ABSENT = -1 /* ours: the library has no such function */
};
enum { NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0, NVML_P2P_NVLINK = 2, NVML_NVLINKS_MAX = 18 };
#define NVML_NOT_AVAILABLE UINT64_MAX

struct nvml_device; /* NVML's */

struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_rates {
    unsigned gpu, memory; /* percent */
};
struct nvml_pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
};
struct nvml_process_info {
    unsigned pid;
    unsigned long long used;
    unsigned instance, compute;
};
struct nvml_sample {
    unsigned pid;
    unsigned long long at_us;
    unsigned sm, memory, encoder, decoder; /* percent */
};

/* What is called; a NULL is a function that this library does not have. */
struct nvml_calls {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_text)(int code);
    int (*driver)(char *text, unsigned size);
    int (*count)(unsigned *ret);
    int (*by_index)(unsigned index, struct nvml_device **ret);
    int (*uuid)(struct nvml_device *d, char *text, unsigned size);
    int (*name)(struct nvml_device *d, char *text, unsigned size);
    int (*minor)(struct nvml_device *d, unsigned *ret);
    int (*pci)(struct nvml_device *d, struct nvml_pci *ret);
    int (*memory)(struct nvml_device *d, struct nvml_memory *ret);
    int (*rates)(struct nvml_device *d, struct nvml_rates *ret);
    int (*mode)(struct nvml_device *d, unsigned *ret);
    int (*ecc)(struct nvml_device *d, int type, int counter, unsigned long long *ret);
    int (*remapped)(struct nvml_device *d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                    unsigned *failed);
    int (*compute)(struct nvml_device *d, unsigned *len, struct nvml_process_info *ret);
    int (*mps)(struct nvml_device *d, unsigned *len, struct nvml_process_info *ret);
    int (*graphics)(struct nvml_device *d, unsigned *len, struct nvml_process_info *ret);
    int (*samples)(struct nvml_device *d, struct nvml_sample *ret, unsigned *len, unsigned long long since_us);
    int (*mig_mode)(struct nvml_device *d, unsigned *now, unsigned *later);
    int (*mig_max)(struct nvml_device *d, unsigned *ret);
    int (*mig)(struct nvml_device *d, unsigned index, struct nvml_device **ret);
    int (*mig_instance)(struct nvml_device *d, unsigned *ret);
    int (*mig_compute)(struct nvml_device *d, unsigned *ret);
    int (*nvlink)(struct nvml_device *d, unsigned link, unsigned *ret_active);
    int (*p2p)(struct nvml_device *a, struct nvml_device *b, int what, unsigned *ret);
    int (*ancestor)(struct nvml_device *a, struct nvml_device *b, unsigned *ret);
};

/* The function's answer, or NVML_ABSENT. */
#define NVML_ASK(n, call, ...) ((n)->calls.call ? (n)->calls.call(__VA_ARGS__) : NVML_ABSENT)

/* What is remembered of a GPU, for when it does not answer any more. */
struct nvml_known {
    struct nvml_gpu gpu; /* its lists are empty */
    unsigned long long sampled_us;
    struct nvml_device *handle; /* at this look; NULL: it does not answer */
};

struct nvml {
    char *path;
    void *library;
    struct nvml_calls calls;
    bool begun;                             /* init has succeeded */
    char why[NVML_TROUBLE_MAX];             /* why not */
    struct nvml_known known[NVML_GPUS_MAX]; /* every GPU that was ever seen, in the order in which they were */
    size_t known_len;
};

/* nvml_read.c: adds a GPU, and its parts, to the look. `handles` gets the handle of each that was added, NULL for one that
 * does not answer; why it does not is `gone`. */
void nvml_read(struct nvml *n, struct nvml_known *k, int gone, struct nvml_look *look, struct nvml_device **handles);
/* Adds a GPU as it was, with the trouble of the driver as a whole. */
void nvml_read_silent(const struct nvml_known *k, struct nvml_look *look);
/* What a code means, in NVML's words. */
const char *nvml_error(const struct nvml *n, int code);
