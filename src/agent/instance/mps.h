/* mps.h - shares of a GPU through NVIDIA's MPS: the driver itself holds a process to its part of time and memory.
 *
 * One control daemon for each GPU and owner, begun with the first of the owner's instances that has a share there and ended
 * with the last. It runs as the owner: a fault in one client ends all clients of its server, so owners do not share one. It
 * lives in a control group of its own and outlives the agent. Whom it serves is a file each in its folder, so that a later
 * agent knows.
 *
 * Not for containers and parts of GPUs: these are watched only.
 */
#pragma once

#include "agent/instance/gpu.h"

struct arena;
struct run;
struct user;

struct mps_share {
    const char *pipes; /* CUDA_MPS_PIPE_DIRECTORY */
    const char *limit; /* CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; NULL: none */
    unsigned percent;  /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE */
};

/* On a launcher's thread. Texts are the arena's. -ENOENT: MPS is not installed; another errno with what went wrong: the
 * share can be used without it, and is not enforced then. */
int mps_join(struct run *r, const struct gpu_grant *grant, const struct user *user, struct arena *arena,
             struct mps_share *ret, struct berth_err *err);
/* The instance is over; on any thread. Nothing of a daemon is left whose last one it was. -EBUSY: not yet. */
int mps_leave(struct run *r);
