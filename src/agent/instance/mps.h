/* mps.h - GPU shares through NVIDIA's MPS: the driver enforces the share of compute time and memory of a process.
 *
 * There is one MPS control daemon for each GPU and owner, started with the owner's first instance that has a share
 * there and stopped with the last. It runs as the owner: a fault in one client ends all clients of its server, so
 * owners do not share a daemon. It has its own cgroup and outlives the agent. Its directory has one file for each
 * instance that uses it, which a restarted agent reads.
 *
 * Containers and MIG devices do not use MPS: their shares are only watched.
 */
#pragma once

#include "agent/instance/gpu.h"

struct arena;
struct agent_instance;
struct instance_user;

struct mps_share {
    const char *pipes; /* CUDA_MPS_PIPE_DIRECTORY */
    const char *limit; /* CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; NULL: none */
    unsigned percent;  /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE */
};

/* Registers the instance with the MPS daemon of its GPU and owner, starting the daemon if needed. On a launcher's
 * thread. Texts are allocated from the arena. -ENOENT: MPS is not installed. On any error the share can be used but is
 * not enforced. */
int mps_join(struct agent_instance *r, const struct gpu_assignment *grant, const struct instance_user *user,
             struct arena *arena, struct mps_share *ret, struct berth_err *err);
/* Unregisters an ended instance; on any thread. Stops and removes each daemon without instances. -EBUSY: not possible
 * yet. */
int mps_leave(struct agent_instance *r);
