/* nvml_file.h - device files in /dev that are needed to use a GPU. */
#pragma once

#include <stddef.h>

enum { NVML_FILES_MAX = 160 };
/* Device numbers of /dev/nvidiaN, fixed in the kernel's list of devices. The last two minor numbers belong to no
 * GPU. */
enum { NVML_MAJOR = 195, NVML_MINOR_MODESET = 254, NVML_MINOR_CONTROL = 255 };

struct nvml_file {
    char path[64];
    unsigned major, minor;
};
struct nvml_files {
    struct nvml_file at[NVML_FILES_MAX];
    size_t len;
};

/* Adds the files of /dev/nvidiaGPU, of its MIG device with these ids (-1: the whole GPU), and those that all GPUs need.
 * Missing files and duplicates are skipped. */
void nvml_files_add(struct nvml_files *to, int gpu, int instance, int compute);
/* Returns the major number of the files in /dev/nvidia-caps, which give access to MIG devices; 0: there are none. */
unsigned nvml_caps_major(void);
