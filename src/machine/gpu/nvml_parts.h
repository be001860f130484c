/* nvml_parts.h - the used prototypes, structures and constants of NVML, following its documentation. For nvml*.c. */
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
    NVML_ABSENT = -1 /* not NVML's: the library lacks the function */
};
enum { NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0, NVML_P2P_NVLINK = 2, NVML_NVLINKS_MAX = 18 };
#define NVML_NOT_AVAILABLE UINT64_MAX

struct nvml_device; /* NVML's opaque handle */

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

/* NVML's functions; NULL: the library lacks it. */
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

/* Calls a function of NVML; NVML_ABSENT if the library lacks it. */
#define NVML_ASK(n, call, ...) ((n)->calls.call ? (n)->calls.call(__VA_ARGS__) : NVML_ABSENT)

/* Last known state of a GPU, used when it stops answering. */
struct nvml_cached_gpu {
    struct nvml_gpu gpu; /* without its list of processes */
    unsigned long long sampled_us;
    struct nvml_device *handle; /* current handle; NULL: the GPU does not answer */
};

struct nvml {
    char *path;
    void *library;
    struct nvml_calls calls;
    bool begun;                                  /* nvmlInit has succeeded */
    char why[NVML_TROUBLE_MAX];                  /* why the library cannot be used */
    struct nvml_cached_gpu known[NVML_GPUS_MAX]; /* every GPU ever seen, in order of discovery */
    size_t known_len;
};

/* nvml_read.c: adds a GPU and its MIG devices to `look`. `handles` gets the handle of each added device, NULL for one
 * that does not answer, whose error is `gone`. */
void nvml_read(struct nvml *n, struct nvml_cached_gpu *k, int gone, struct nvml_snapshot *look,
               struct nvml_device **handles);
/* Adds a GPU in its last known state, with the driver's problem. */
void nvml_read_silent(const struct nvml_cached_gpu *k, struct nvml_snapshot *look);
/* Returns NVML's text of an error code. */
const char *nvml_error(const struct nvml *n, int code);
