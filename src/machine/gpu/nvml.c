/* nvml.c - loads NVIDIA's library, reads all GPUs, and finds how they are linked. */
#include "machine/gpu/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "machine/gpu/nvml_parts.h"

#define AT(field) offsetof(struct nvml_calls, field)
/* Newer versions of a function are preferred: the structures of nvml_parts.h are theirs. */
static const struct {
    size_t at;
    bool needed;
    const char *name;
} rows[] = {
    {AT(init),         true,  "nvmlInit_v2"                               },
    {AT(shutdown),     true,  "nvmlShutdown"                              },
    {AT(error_text),   false, "nvmlErrorString"                           },
    {AT(driver),       false, "nvmlSystemGetDriverVersion"                },
    {AT(count),        true,  "nvmlDeviceGetCount_v2"                     },
    {AT(by_index),     true,  "nvmlDeviceGetHandleByIndex_v2"             },
    {AT(uuid),         true,  "nvmlDeviceGetUUID"                         },
    {AT(name),         false, "nvmlDeviceGetName"                         },
    {AT(minor),        false, "nvmlDeviceGetMinorNumber"                  },
    {AT(pci),          false, "nvmlDeviceGetPciInfo_v3"                   },
    {AT(memory),       false, "nvmlDeviceGetMemoryInfo"                   },
    {AT(rates),        false, "nvmlDeviceGetUtilizationRates"             },
    {AT(mode),         false, "nvmlDeviceGetComputeMode"                  },
    {AT(ecc),          false, "nvmlDeviceGetTotalEccErrors"               },
    {AT(remapped),     false, "nvmlDeviceGetRemappedRows"                 },
    {AT(compute),      false, "nvmlDeviceGetComputeRunningProcesses_v3"   },
    {AT(mps),          false, "nvmlDeviceGetMPSComputeRunningProcesses_v3"},
    {AT(graphics),     false, "nvmlDeviceGetGraphicsRunningProcesses_v3"  },
    {AT(samples),      false, "nvmlDeviceGetProcessUtilization"           },
    {AT(mig_mode),     false, "nvmlDeviceGetMigMode"                      },
    {AT(mig_max),      false, "nvmlDeviceGetMaxMigDeviceCount"            },
    {AT(mig),          false, "nvmlDeviceGetMigDeviceHandleByIndex"       },
    {AT(mig_instance), false, "nvmlDeviceGetGpuInstanceId"                },
    {AT(mig_compute),  false, "nvmlDeviceGetComputeInstanceId"            },
    {AT(nvlink),       false, "nvmlDeviceGetNvLinkState"                  },
    {AT(p2p),          false, "nvmlDeviceGetP2PStatus"                    },
    {AT(ancestor),     false, "nvmlDeviceGetTopologyCommonAncestor"       },
};
#undef AT

struct nvml *nvml_new(const char *path)
{
    struct nvml *n = mem_zalloc(sizeof *n);
    const char *other = getenv("BERTH_NVML");
    n->path = mem_strdup(path ? path : other && *other ? other : "libnvidia-ml.so.1");
    return n;
}

static void end(struct nvml *n)
{
    if (n->begun)
        (void)n->calls.shutdown();
    n->begun = false;
    if (n->library)
        (void)dlclose(n->library);
    n->library = NULL;
}

void nvml_free(struct nvml *n)
{
    if (!n)
        return;
    end(n);
    mem_free(n->path);
    mem_free(n);
}

const char *nvml_error(const struct nvml *n, int code)
{
    const char *text = n->calls.error_text ? n->calls.error_text(code) : NULL;
    return text ? text : "unknown error";
}

/* ---- initialization --------------------------------------------------------------------------------------------- */

/* False: there is no library, or it cannot be used; then `why` has the reason. */
static bool library_open(struct nvml *n)
{
    if (n->library)
        return true;
    n->library = dlopen(n->path, RTLD_NOW | RTLD_LOCAL);
    if (!n->library)
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *symbol = dlsym(n->library, rows[i].name);
        memcpy((char *)&n->calls + rows[i].at, &symbol, sizeof symbol);
        if (symbol || !rows[i].needed)
            continue;
        (void)snprintf(n->why, sizeof n->why, "%s has no %s; install the library of driver version 450 or later",
                       n->path, rows[i].name);
        (void)dlclose(n->library);
        n->library = NULL;
        return false;
    }
    return true;
}

static bool begin(struct nvml *n)
{
    *n->why = '\0';
    if (!library_open(n))
        return false;
    int rc = n->begun ? NVML_SUCCESS : n->calls.init();
    n->begun = rc == NVML_SUCCESS;
    if (n->begun)
        return true;
    const char *help = rc == NVML_MISMATCH ? "; the driver was replaced under a running one: restart the machine"
                       : rc == NVML_DRIVER_NOT_LOADED ? "; load the driver (modprobe nvidia)"
                                                      : "";
    (void)snprintf(n->why, sizeof n->why, "the NVIDIA driver does not answer: %.60s%s", nvml_error(n, rc), help);
    /* Unloads the library, so that a newly installed one is used the next time. */
    end(n);
    return false;
}

/* ---- links ------------------------------------------------------------------------------------------------------ */

static enum nvml_link link_between(struct nvml *n, struct nvml_device *a, struct nvml_device *b)
{
    static const struct {
        unsigned level;
        enum nvml_link link;
    } levels[] = {
        {0,  NVML_LINK_BOARD },
        {20, NVML_LINK_SWITCH},
        {30, NVML_LINK_BRIDGE},
        {40, NVML_LINK_NUMA  },
        {50, NVML_LINK_SYSTEM},
    };
    unsigned answer = 0;
    if (NVML_ASK(n, p2p, a, b, NVML_P2P_NVLINK, &answer) == NVML_SUCCESS && answer == 0)
        return NVML_LINK_NVLINK;
    if (NVML_ASK(n, ancestor, a, b, &answer) == NVML_SUCCESS)
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
            if (answer <= levels[i].level)
                return levels[i].link;
    return NVML_LINK_UNKNOWN;
}

static void links_read(struct nvml *n, struct nvml_device *const *handles, struct nvml_snapshot *look)
{
    for (size_t i = 0; i < look->gpus_len; i++)
        for (size_t k = 0; k < i; k++) {
            if (!handles[i] || !handles[k] || look->gpus[i].parent[0] || look->gpus[k].parent[0])
                continue;
            enum nvml_link link = link_between(n, handles[i], handles[k]);
            look->link[i][k] = look->link[k][i] = (uint8_t)link;
        }
}

const char *nvml_link_name(enum nvml_link link)
{
    static const char *const names[] = {
        [NVML_LINK_UNKNOWN] = "",      [NVML_LINK_NVLINK] = "nvlink", [NVML_LINK_BOARD] = "board",
        [NVML_LINK_SWITCH] = "switch", [NVML_LINK_BRIDGE] = "bridge", [NVML_LINK_NUMA] = "numa",
        [NVML_LINK_SYSTEM] = "system",
    };
    return names[link];
}

/* ---- all GPUs --------------------------------------------------------------------------------------------------- */

/* Remembers a GPU by UUID, because indices change when a GPU is lost. */
static void remember_gpu(struct nvml *n, const char *uuid, struct nvml_device *handle)
{
    size_t i = 0;
    while (i < n->known_len && strcmp(n->known[i].gpu.uuid, uuid) != 0)
        i++;
    if (i == NVML_GPUS_MAX)
        return;
    if (i == n->known_len) {
        n->known[i] = (struct nvml_cached_gpu){0};
        (void)snprintf(n->known[i].gpu.uuid, sizeof n->known[i].gpu.uuid, "%s", uuid);
        n->known_len++;
    }
    n->known[i].handle = handle;
}

/* Updates the known GPUs. Returns the last error of a GPU that does not answer; sets `trouble` if its UUID is
 * unknown. */
static int update_known_gpus(struct nvml *n, unsigned count, struct nvml_snapshot *look)
{
    char uuid[NVML_UUID_MAX];
    size_t before = n->known_len, silent = 0, missing = 0;
    int gone = NVML_NOT_FOUND;
    for (size_t i = 0; i < n->known_len; i++)
        n->known[i].handle = NULL;
    for (unsigned i = 0; i < count && i < NVML_GPUS_MAX; i++) {
        struct nvml_device *d = NULL;
        int rc = n->calls.by_index(i, &d);
        if (rc == NVML_SUCCESS)
            rc = n->calls.uuid(d, uuid, sizeof uuid);
        if (rc == NVML_SUCCESS)
            remember_gpu(n, uuid, d);
        else
            gone = rc;
        silent += rc != NVML_SUCCESS;
    }
    for (size_t i = 0; i < before; i++)
        missing += !n->known[i].handle;
    if (silent > missing)
        (void)snprintf(look->trouble, sizeof look->trouble, "a GPU does not report its UUID: %.60s",
                       nvml_error(n, gone));
    return gone;
}

/* Adds all known GPUs as unhealthy, because the driver does not answer. */
static void all_silent(struct nvml *n, struct nvml_snapshot *look)
{
    for (size_t i = 0; i < n->known_len; i++)
        nvml_read_silent(&n->known[i], look);
}

void nvml_snapshot_take(struct nvml *n, struct nvml_snapshot *ret)
{
    struct nvml_device *handles[NVML_GPUS_MAX] = {0};
    unsigned count = 0;
    memset(ret, 0, sizeof *ret);
    ret->gpus = mem_zarray(NVML_GPUS_MAX, sizeof *ret->gpus);
    bool begun = begin(n);
    ret->there = begun || *n->why || n->known_len;
    (void)snprintf(ret->trouble, sizeof ret->trouble, "%s",
                   !begun && n->known_len && !*n->why ? "the NVIDIA driver's library has been removed" : n->why);
    if (!begun) {
        all_silent(n, ret);
        return;
    }
    (void)NVML_ASK(n, driver, ret->driver, sizeof ret->driver);
    int rc = n->calls.count(&count);
    if (rc != NVML_SUCCESS) {
        (void)snprintf(ret->trouble, sizeof ret->trouble, "the NVIDIA driver does not report the number of GPUs: %.60s",
                       nvml_error(n, rc));
        end(n);
        all_silent(n, ret);
        return;
    }
    int gone = update_known_gpus(n, count, ret);
    for (size_t i = 0; i < n->known_len; i++)
        nvml_read(n, &n->known[i], gone, ret, handles);
    links_read(n, handles, ret);
}

void nvml_snapshot_done(struct nvml_snapshot *l)
{
    for (size_t i = 0; i < l->gpus_len; i++)
        mem_free(l->gpus[i].processes);
    mem_free(l->gpus);
    l->gpus = NULL;
    l->gpus_len = 0;
}
