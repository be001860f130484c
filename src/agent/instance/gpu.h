/* gpu.h - the GPUs of this machine: looked at every few seconds, told to the daemon, given to instances, watched.
 *
 * They are asked for on a thread of their own: a driver that hangs holds up nobody for long. As long as it has not answered no GPU is
 * given, and none can be opened: what is not known is refused. What an instance gets is by the names
 * that the driver knows them by; where neither the daemon nor the driver says a name, by their numbers. Memory and time that
 * an instance uses of them are those of the processes in its control group. Shares go to owners through MPS, where that is
 * wanted (mps.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "machine/gpu/nvml.h"

struct agent;
struct gpus;
/* Begins to look; whoever needs an answer waits for the first, some seconds at most. */
struct gpus *gpus_new(struct agent *a);
void gpus_free(struct gpus *g); /* NULL is fine */

/* What an instance gets. */
struct gpu_grant {
    bool nvidia; /* this machine has a driver for GPUs, or may have one: what is not given is to be refused */
    struct gpu_given {
        char uuid[NVML_UUID_MAX]; /* "": only its number is known */
        int number, minor;        /* minor -1: not known */
        int instance, compute;    /* of a part; -1 else */
        int64_t memory_bytes;     /* -1: not known */
    } at[NVML_GPUS_MAX];
    size_t len;
    int share_milli;     /* of the one device; 0: it is all of them alone */
    int64_t share_bytes; /* its part of that device's memory; 0: no bound */
};
/* From `gpus`, `gpu_uuids`, `gpu_milli` and `gpu_memory` of an instance's object; on any thread but the loop's. -ENODEV: one of
 * them is not there, or not well, or the driver does not tell. */
int gpus_grant(struct gpus *g, const json_t *config, struct gpu_grant *ret, struct berth_err *err);
/* A group without processes may open what is granted of GPUs, and nothing else of them. -errno: the kernel takes no such rule, or
 * nobody knows what it would be (-ENODATA: then what is known to be others' is refused). */
int gpus_confine(const struct agent *a, const char *group, const struct gpu_grant *grant);

/* Adds what is used and what is wrong to a report's "node"; on any thread. */
void gpus_tell(struct gpus *g, json_t *self);
/* Has something changed since gpus_probed, of what there is or whether it is well? On any thread. */
bool gpus_changed(struct gpus *g);
/* Adds what there is to what probe_machine gave; on any thread. */
void gpus_probed(struct gpus *g, json_t *machine);
