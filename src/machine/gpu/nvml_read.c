/* nvml_read.c - reads one GPU: properties, health, processes, MIG devices. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "machine/gpu/nvml_parts.h"

enum { SAMPLES_MAX = 1024, PERCENT_MILLI = 10, PARTS_MAX = 16 };

static bool is_device_lost(int rc)
{
    return rc == NVML_LOST || rc == NVML_RESET_REQUIRED;
}

/* Marks the GPU as unhealthy; the first reason is kept. */
static void mark_unhealthy(struct nvml_gpu *g, const char *what, const char *text)
{
    if (g->healthy)
        (void)snprintf(g->trouble, sizeof g->trouble, "%s%s%.80s", what, *text ? ": " : "", text);
    g->healthy = false;
}

/* Checks the result of a query that every working GPU answers: an error may mean that the GPU is lost. */
static bool check_answer(struct nvml *n, struct nvml_gpu *g, int rc)
{
    if (is_device_lost(rc))
        mark_unhealthy(g, "the GPU no longer responds", nvml_error(n, rc));
    return rc == NVML_SUCCESS;
}

/* ---- health ----------------------------------------------------------------------------------------------------- */

static void memory_read(struct nvml *n, struct nvml_device *d, struct nvml_gpu *g)
{
    struct nvml_memory memory = {0};
    if (!check_answer(n, g, NVML_ASK(n, memory, d, &memory)) || memory.total > INT64_MAX || memory.used > memory.total)
        return;
    g->memory_bytes = (int64_t)memory.total;
    g->used_bytes = (int64_t)memory.used;
}

static void health_read(struct nvml *n, struct nvml_device *d, struct nvml_gpu *g)
{
    struct nvml_rates rates = {0};
    unsigned long long errors = 0;
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0, mode = 0;
    if (check_answer(n, g, NVML_ASK(n, rates, d, &rates)) && rates.gpu <= 100)
        g->milli = (int)rates.gpu * PERCENT_MILLI;
    if (NVML_ASK(n, mode, d, &mode) == NVML_SUCCESS)
        g->mode = (int)mode;
    if (check_answer(n, g, NVML_ASK(n, ecc, d, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &errors)) &&
        errors <= INT64_MAX)
        g->ecc_errors = (int64_t)errors;
    if (g->ecc_errors > 0)
        mark_unhealthy(g, "its memory has uncorrectable ECC errors; reset the GPU or restart the machine", "");
    if (NVML_ASK(n, remapped, d, &corrected, &uncorrected, &pending, &failed) == NVML_SUCCESS && failed)
        mark_unhealthy(g, "remapping of its memory rows failed; replace the GPU", "");
    if (g->mode == 2)
        mark_unhealthy(g, "its compute mode is Prohibited; allow it with 'nvidia-smi -c 0'", "");
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

static struct nvml_process *process_of(struct nvml_gpu *g, unsigned pid)
{
    for (size_t i = 0; i < g->processes_len; i++)
        if (g->processes[i].pid == (pid_t)pid)
            return &g->processes[i];
    if (g->processes_len == NVML_PROCESSES_MAX)
        return NULL;
    if (!g->processes)
        g->processes = mem_zarray(NVML_PROCESSES_MAX, sizeof *g->processes);
    struct nvml_process *p = &g->processes[g->processes_len++];
    *p = (struct nvml_process){.pid = (pid_t)pid, .memory_bytes = -1, .milli = -1};
    return p;
}

/* A process may be in several lists, with the same memory in each: the maximum counts. */
static void processes_add(struct nvml_gpu *g, const struct nvml_process_info *list, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        struct nvml_process *p = process_of(g, list[i].pid);
        if (p && list[i].used <= INT64_MAX && (int64_t)list[i].used > p->memory_bytes)
            p->memory_bytes = (int64_t)list[i].used;
    }
}

/* For a GPU in MIG mode its MIG devices are queried instead; the list of a MIG device contains only its own
 * processes. */
static void processes_read(struct nvml *n, struct nvml_device *d, struct nvml_gpu *g)
{
    struct nvml_process_info list[NVML_PROCESSES_MAX];
    unsigned len = NVML_PROCESSES_MAX;
    if (check_answer(n, g, NVML_ASK(n, compute, d, &len, list)))
        processes_add(g, list, len);
    len = NVML_PROCESSES_MAX;
    if (NVML_ASK(n, mps, d, &len, list) == NVML_SUCCESS)
        processes_add(g, list, len);
    len = NVML_PROCESSES_MAX;
    if (NVML_ASK(n, graphics, d, &len, list) == NVML_SUCCESS)
        processes_add(g, list, len);
}

/* Averages the samples since the last call; a process without samples was idle. */
static void samples_read(struct nvml *n, struct nvml_device *d, struct nvml_gpu *g, unsigned long long *since_us)
{
    struct nvml_sample *list = mem_zarray(SAMPLES_MAX, sizeof *list);
    unsigned len = SAMPLES_MAX;
    int rc = NVML_ASK(n, samples, d, list, &len, *since_us);
    for (size_t i = 0; (rc == NVML_SUCCESS || rc == NVML_NOT_FOUND) && i < g->processes_len; i++) {
        int sum = 0, count = 0;
        for (unsigned k = 0; rc == NVML_SUCCESS && k < len; k++)
            if (list[k].pid == (unsigned)g->processes[i].pid && list[k].sm <= 100) {
                sum += (int)list[k].sm;
                count++;
            }
        g->processes[i].milli = count ? sum * PERCENT_MILLI / count : 0;
    }
    for (unsigned k = 0; rc == NVML_SUCCESS && k < len; k++)
        *since_us = list[k].at_us > *since_us ? list[k].at_us : *since_us;
    mem_free(list);
}

/* ---- MIG devices ------------------------------------------------------------------------------------------------ */

static void part_read(struct nvml *n, struct nvml_device *d, const struct nvml_gpu *of, struct nvml_gpu *g)
{
    unsigned number = 0;
    (void)snprintf(g->parent, sizeof g->parent, "%s", of->uuid);
    (void)snprintf(g->bus, sizeof g->bus, "%s", of->bus);
    if (NVML_ASK(n, name, d, g->model, sizeof g->model) != NVML_SUCCESS)
        (void)snprintf(g->model, sizeof g->model, "%.80s MIG", of->model);
    g->minor = of->minor;
    g->instance = NVML_ASK(n, mig_instance, d, &number) == NVML_SUCCESS ? (int)number : -1;
    g->compute = NVML_ASK(n, mig_compute, d, &number) == NVML_SUCCESS ? (int)number : -1;
    g->milli = -1; /* the driver does not report it for MIG devices */
    g->ecc_errors = g->mode = -1;
    g->memory_bytes = g->used_bytes = -1;
    g->healthy = true;
    memory_read(n, d, g);
    processes_read(n, d, g);
    if (!of->healthy)
        mark_unhealthy(g, of->trouble, "");
}

static void parts_read(struct nvml *n, struct nvml_device *d, size_t of, struct nvml_snapshot *look,
                       struct nvml_device **handles)
{
    unsigned most = 0;
    if (NVML_ASK(n, mig_max, d, &most) != NVML_SUCCESS)
        most = 0;
    for (unsigned i = 0; i < most && i < PARTS_MAX && look->gpus_len < NVML_GPUS_MAX; i++) {
        struct nvml_device *part = NULL;
        struct nvml_gpu *g = &look->gpus[look->gpus_len];
        if (NVML_ASK(n, mig, d, i, &part) != NVML_SUCCESS ||
            n->calls.uuid(part, g->uuid, sizeof g->uuid) != NVML_SUCCESS)
            continue; /* indices may be unused */
        part_read(n, part, &look->gpus[of], g);
        handles[look->gpus_len++] = part;
    }
}

/* ---- one GPU ---------------------------------------------------------------------------------------------------- */

static void what_read(struct nvml *n, struct nvml_device *d, struct nvml_gpu *g)
{
    struct nvml_pci pci = {0};
    unsigned number = 0, later = 0;
    if (NVML_ASK(n, name, d, g->model, sizeof g->model) != NVML_SUCCESS)
        (void)snprintf(g->model, sizeof g->model, "NVIDIA GPU");
    g->minor = NVML_ASK(n, minor, d, &number) == NVML_SUCCESS ? (int)number : -1;
    if (NVML_ASK(n, pci, d, &pci) == NVML_SUCCESS)
        (void)snprintf(g->bus, sizeof g->bus, "%.31s", pci.bus_id);
    g->split = NVML_ASK(n, mig_mode, d, &number, &later) == NVML_SUCCESS && number;
    for (unsigned i = 0; i < NVML_NVLINKS_MAX; i++)
        g->nvlinks += NVML_ASK(n, nvlink, d, i, &number) == NVML_SUCCESS && number;
}

/* Adds a GPU that does not answer any more, in its last known state without usage values. */
static void lost_add(const struct nvml_gpu *known, const char *what, const char *text, struct nvml_snapshot *look)
{
    struct nvml_gpu *g = &look->gpus[look->gpus_len++];
    *g = *known;
    g->healthy = true;
    mark_unhealthy(g, what, text);
    g->used_bytes = g->ecc_errors = g->milli = -1;
}

void nvml_read_silent(const struct nvml_cached_gpu *k, struct nvml_snapshot *look)
{
    if (look->gpus_len < NVML_GPUS_MAX)
        lost_add(&k->gpu, look->trouble, "", look);
}

void nvml_read(struct nvml *n, struct nvml_cached_gpu *k, int gone, struct nvml_snapshot *look,
               struct nvml_device **handles)
{
    struct nvml_device *d = k->handle;
    size_t at = look->gpus_len;
    struct nvml_gpu *g = &look->gpus[at];
    if (at == NVML_GPUS_MAX)
        return;
    if (!d) {
        lost_add(&k->gpu, "the GPU no longer responds", nvml_error(n, gone), look);
        return;
    }
    (void)snprintf(g->uuid, sizeof g->uuid, "%s", k->gpu.uuid);
    g->instance = g->compute = g->milli = g->mode = -1;
    g->memory_bytes = g->used_bytes = g->ecc_errors = -1;
    g->healthy = true;
    what_read(n, d, g);
    memory_read(n, d, g);
    health_read(n, d, g);
    if (!g->split) {
        processes_read(n, d, g);
        samples_read(n, d, g, &k->sampled_us);
    }
    if (g->healthy) {
        k->gpu = *g;
        k->gpu.processes = NULL;
        k->gpu.processes_len = 0;
    }
    handles[look->gpus_len++] = d;
    if (g->split)
        parts_read(n, d, at, look, handles);
}
