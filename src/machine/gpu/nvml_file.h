/* nvml_file.h - which files of /dev it takes to use a GPU. */
#pragma once

#include <stddef.h>

enum { NVML_FILES_MAX = 160 };
/* Of /dev/nvidiaN: the kernel's list of devices has it so. The last two are of no GPU. */
enum { NVML_MAJOR = 195, NVML_MINOR_MODESET = 254, NVML_MINOR_CONTROL = 255 };

struct nvml_file {
    char path[64];
    unsigned major, minor;
};
struct nvml_files {
    struct nvml_file at[NVML_FILES_MAX];
    size_t len;
};

/* Adds those of /dev/nvidiaGPU, of the part of it with these numbers (-1: all of it), and those that all of them need. What
 * is not there is left out, what is in the list already stays once. */
void nvml_files_add(struct nvml_files *to, int gpu, int instance, int compute);
/* The major number of what is in /dev/nvidia-caps, by which parts of GPUs are used; 0: there are none. */
unsigned nvml_caps_major(void);
