/* gpu.h - the node's NVIDIA GPUs: polls them every few seconds, reports them, assigns them to instances and watches
 * their use.
 *
 * The driver is queried on a separate thread, so a hanging driver does not block the agent for long. Until the driver
 * has answered, no GPU is assigned and none can be opened. GPUs are identified by UUID; if neither the daemon nor the
 * driver gives a UUID, by index. The GPU memory and time of an instance are those of the processes in its cgroup.
 * Shares of a GPU are enforced through MPS if enabled (mps.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/gpu/nvml.h"

struct agent;
struct gpu_monitor;
/* Starts polling. The first caller that needs an answer waits up to some seconds for it. */
struct gpu_monitor *gpu_monitor_new(struct agent *a);
void gpu_monitor_free(struct gpu_monitor *g); /* NULL is fine */

/* GPUs assigned to an instance. */
struct gpu_assignment {
    bool nvidia; /* an NVIDIA driver is or may be present: device access must be restricted */
    struct assigned_gpu {
        char uuid[NVML_UUID_MAX]; /* "": only the index is known */
        int number, minor;        /* minor -1: unknown */
        int instance, compute;    /* MIG instance ids; -1: not a MIG device */
        int64_t memory_bytes;     /* -1: unknown */
    } at[NVML_GPUS_MAX];
    size_t len;
    int share_milli;     /* share of the single device in thousandths; 0: whole devices */
    int64_t share_bytes; /* share of the device's memory; 0: unlimited */
};
/* Reads `gpus`, `gpu_uuids`, `gpu_milli` and `gpu_memory` of an instance's configuration. On any thread except the
 * loop's, because it may wait. -ENODEV: a GPU is missing or unhealthy, or the driver does not answer. */
int gpu_monitor_assign(struct gpu_monitor *g, const json_t *config, struct gpu_assignment *ret, struct berth_err *err);
/* Restricts a cgroup, before any process enters it, to the GPU device files in `grant`. Negative errno: the kernel does
 * not support the rule, or the device numbers are unknown (-ENODATA; then only device files that are known to belong to
 * other GPUs are denied). */
int gpu_monitor_confine(const struct agent *a, const char *group, const struct gpu_assignment *grant);

/* Adds GPU usage and conditions to a report's "node"; on any thread. */
void gpu_monitor_report(struct gpu_monitor *g, json_t *self);
/* Tells whether GPUs or their health have changed since gpu_monitor_add_inventory. On any thread. */
bool gpu_monitor_changed(struct gpu_monitor *g);
/* Adds the GPUs to the result of probe_machine; on any thread. */
void gpu_monitor_add_inventory(struct gpu_monitor *g, json_t *machine);
