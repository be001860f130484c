/* probe.h - probes the resources of this machine and their use.
 *
 * Reads /proc and /sys below a root, so that tests can present other machines. Usage of instances is counted in
 * cgroup.h; plugins (plugin.h) report devices that the kernel does not know.
 *
 * To add a label or a list: a row or a function in probe.c, a line in docs/agent.md.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

struct probe_config {
    const char *root;        /* "" or NULL: the real root; clocks and addresses are queried only there */
    const char *plugins;     /* plugin directory (docs/agent.md); NULL: none */
    const char *disk;        /* directory whose file system counts as `storage`; NULL: none */
    int64_t bandwidth_bytes; /* bytes per second in each direction: `network`; 0: not offered */
    const char *reserve; /* reserved for the system; NULL: "cpu=100m,memory=256Mi", or less on a very small machine */
};

/* Returns {"allocatable": {cpu, memory, storage, network, "hugepages-2Mi", ...}, "arch", "labels": {"arch", "os",
 * "os-version", "kernel", "hostname", ...}, "numa": [{"id", "cpus": "0-3", "memory"}], "disks": [{"name", "size",
 * "rotational"}], "networks": [{"name", "speed", "address"}], "runtimes": ["process", "oci"], "address", "model",
 * "devices": {...}, "conditions": [{"type": "PluginFailed", "text"}]}: the keys of a node's document (allocatable,
 * arch, labels, runtimes, address) and further information for users. Amounts are text with units; `speed` is in
 * megabits per second. Unknown values are omitted. The same machine gives the same bytes.
 *
 * -EINVAL: the reserve is invalid or larger than the machine. -ENOENT: /proc is not mounted. Plugins may take 5 s, so
 * it needs a thread that may wait.
 */
int probe_machine(const struct probe_config *config, json_t **ret, struct berth_err *err);

/* Returns a value that changes with the number of huge pages of any size: then the machine should be probed again.
 * Reads one file per size. */
uint64_t probe_pools(const struct probe_config *config);

/* Usage of the whole machine between two calls, rounded to hide noise. */
struct probe_use;                                                   /* state of the last call */
struct probe_use *probe_use_new(const struct probe_config *config); /* texts are copied */
void probe_use_free(struct probe_use *p);                           /* NULL is fine */
/* Returns {"usage": {cpu, memory, storage, "network-in", "network-out", "hugepages-2Mi", ...}, "conditions": [{"type":
 * "DiskPressure", "text"}]}; a new reference. Rates need a second call. Amounts have two significant digits (cpu at
 * least 50m steps) and stay unchanged until they differ by three quarters of a step; conditions have hysteresis. Texts
 * of conditions contain no changing numbers. Plugins run once a minute and may take 5 s, so it needs a thread that may
 * wait. */
json_t *probe_use_poll(struct probe_use *p, int64_t steady_ns);
