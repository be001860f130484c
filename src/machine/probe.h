/* probe.h - what this machine has, and how much of it is in use.
 *
 * Reads /proc and /sys below a root, so that tests can show it other machines.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

struct probe_config {
    const char *root;       /* "" for the real one */
    const char *plugins;    /* folder of programs that tell of further devices (docs/agent.md); NULL: none */
    const char *disk;       /* folder whose file system counts as `storage` */
    const char *reserve;    /* "cpu=100m,memory=256Mi": kept for the system; NULL: that */
};

/* {"allocatable": {cpu, memory, storage, "hugepages-2Mi", ...}, "arch", "labels": {"arch", "os", "kernel", ...}, "numa":
 * [{"id", "cpus", "memory"}], "disks": [{"name", "size", "rotational"}], "networks": [{"name", "speed", "address"}],
 * "runtimes": ["process", "oci"], "address", "devices": {...}}: keys that a node's document takes, plus what is for people. */
int probe_machine(const struct probe_config *config, json_t **ret, struct berth_err *err);

/* Use of the whole machine between two looks, rounded so that noise does not show. */
struct probe_use; /* remembers the last look */
struct probe_use *probe_use_new(const struct probe_config *config);
void probe_use_free(struct probe_use *p);
/* {"usage": {cpu, memory, storage, "network-in", "network-out", ...}, "conditions": [{"type": "DiskPressure", "text"}]} */
json_t *probe_use_look(struct probe_use *p, int64_t steady_ns);
