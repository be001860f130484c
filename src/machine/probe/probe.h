/* probe.h - what this machine has, and how much of it is in use.
 *
 * Reads /proc and /sys below a root, so that tests can show it other machines. What instances use is not counted here
 * (cgroup.h); which devices there are beyond those of the kernel is asked of plugins (plugin.h).
 *
 * To add a label or a list: a row or a function in probe.c, a line in docs/agent.md.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

struct probe_config {
    const char *root; /* "" or NULL for the real one; clocks and addresses are asked of the kernel for that one only */
    const char *plugins;     /* folder of programs that tell of further devices (docs/agent.md); NULL: none */
    const char *disk;        /* folder whose file system counts as `storage`; NULL: there is none */
    int64_t bandwidth_bytes; /* a second, each way: `network`; 0: it is not offered */
    const char *reserve; /* "cpu=100m,memory=256Mi": kept for the system; NULL: that, or less on a very small machine */
};

/* {"allocatable": {cpu, memory, storage, network, "hugepages-2Mi", ...}, "arch", "labels": {"arch", "os", "os-version", "kernel",
 * "hostname", ...}, "numa": [{"id", "cpus": "0-3", "memory"}], "disks": [{"name", "size", "rotational"}], "networks":
 * [{"name", "speed", "address"}], "runtimes": ["process", "oci"], "address", "model", "devices": {...}, "conditions":
 * [{"type": "PluginFailed", "text"}]}: keys that a node's document takes (allocatable, arch, labels, runtimes, address), plus
 * what is for people. Amounts are text with units; `speed` is in megabits a second. What is not known is left out. The
 * same machine gives the same bytes.
 *
 * -EINVAL: the reserve makes no sense, or is more than there is. -ENOENT: /proc is not there. Plugins may take 5 s: for a
 * thread that may wait. */
int probe_machine(const struct probe_config *config, json_t **ret, struct berth_err *err);

/* Another number when there are more or fewer huge pages of any size: then it is time to probe again. Reads a file for each size. */
uint64_t probe_pools(const struct probe_config *config);

/* Use of the whole machine between two looks, rounded so that noise does not show. */
struct probe_use;                                                   /* remembers the last look */
struct probe_use *probe_use_new(const struct probe_config *config); /* texts are copied */
void probe_use_free(struct probe_use *p);                           /* NULL is fine */
/* {"usage": {cpu, memory, storage, "network-in", "network-out", "hugepages-2Mi", ...}, "conditions": [{"type":
 * "DiskPressure", "text"}]}; a new reference. What is a rate is there from the second look on. Amounts keep two digits
 * (cpu at least 50m steps) and stay until they differ by three quarters of a step; conditions end later than they begin.
 * Texts of conditions hold no numbers that change. Plugins are asked once a minute, which may take 5 s: for a thread that
 * may wait. */
json_t *probe_use_look(struct probe_use *p, int64_t steady_ns);
