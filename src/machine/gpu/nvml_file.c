/* nvml_file.c - device files in /dev of a GPU or a MIG device. */
#include "machine/gpu/nvml_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/probe/probe_parts.h"

static void file_add(struct nvml_files *to, const char *path)
{
    struct stat st;
    for (size_t i = 0; i < to->len; i++)
        if (strcmp(to->at[i].path, path) == 0)
            return;
    if (to->len == NVML_FILES_MAX || stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
        return;
    struct nvml_file *f = &to->at[to->len++];
    (void)snprintf(f->path, sizeof f->path, "%s", path);
    f->major = major(st.st_rdev);
    f->minor = minor(st.st_rdev);
}

static void caps_see(void *ctx, const char *name)
{
    unsigned *number = ctx;
    struct stat st;
    char path[64];
    (void)snprintf(path, sizeof path, "/dev/nvidia-caps/%.32s", name);
    if (stat(path, &st) == 0 && S_ISCHR(st.st_mode))
        *number = major(st.st_rdev);
}

/* Reads "511 nvidia-caps" in /proc/devices, else the major number of the device files. */
unsigned nvml_caps_major(void)
{
    static const char key[] = " nvidia-caps\n";
    unsigned number = 0;
    CLEANUP(str) struct str text = {0};
    const char *at = probe_file("", &text, "proc/devices") ? strstr(str_text(&text), key) : NULL;
    while (at && at > text.at && at[-1] >= '0' && at[-1] <= '9')
        at--;
    if (!at || sscanf(at, "%u", &number) != 1)
        probe_each("", "dev/nvidia-caps", caps_see, &number);
    return number;
}

/* Adds the device file of a capability: "DeviceFileMinor: 12" is /dev/nvidia-caps/nvidia-cap12. */
static void capability_add(struct nvml_files *to, const char *capability)
{
    char path[64];
    CLEANUP(str) struct str text = {0};
    static const char key[] = "DeviceFileMinor: ";
    if (!probe_file("", &text, "proc/driver/nvidia/capabilities/%s", capability))
        return;
    const char *at = strstr(str_text(&text), key);
    int number = -1;
    if (!at || sscanf(at + sizeof key - 1, "%d", &number) != 1 || number < 0)
        return;
    (void)snprintf(path, sizeof path, "/dev/nvidia-caps/nvidia-cap%d", number);
    file_add(to, path);
}

void nvml_files_add(struct nvml_files *to, int gpu, int instance, int compute)
{
    static const char *const all[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};
    char text[96];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        file_add(to, all[i]);
    if (gpu < 0)
        return;
    (void)snprintf(text, sizeof text, "/dev/nvidia%d", gpu);
    file_add(to, text);
    if (instance < 0 || compute < 0)
        return;
    (void)snprintf(text, sizeof text, "gpu%d/mig/gi%d/access", gpu, instance);
    capability_add(to, text);
    (void)snprintf(text, sizeof text, "gpu%d/mig/gi%d/ci%d/access", gpu, instance, compute);
    capability_add(to, text);
}
