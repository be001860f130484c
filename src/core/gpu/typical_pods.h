/* typical_pods.h - typical pods, and how much of a node's idle GPUs is useless to them.
 *
 * Pods are counted by request (cpu, share, number and models of GPUs; nothing else matters here), the most frequent
 * first, until 95 % are covered. They come from the policy's list, or else from the snapshot's workloads.
 *
 * F(node) is the expectation, over these pods, of the idle milli-GPU on the node that such a pod cannot use: all of it
 * if the pod requests no GPU or another model, or if the node lacks the cpu; otherwise the idle part of devices that
 * are too full for the pod. After "Beware of Fragmentation" (ATC'23). F is a sum of doubles in a fixed order, because
 * equal states must give equal results: first pod by pod for each reason, then over the reasons.
 */
#pragma once

#include "berth.h"
#include "core/snapshot/snapshot.h"

/* A GPU request. Several typical pods may share one. */
struct typical_gpu {
    uint32_t count, milli;
    const char *const *models; /* any of these models; empty: any model */
    uint32_t models_len;
};

struct typical_pod {
    int64_t cpu;
    uint32_t gpu;
    double share; /* of all typical pods */
};

struct typical_pods {
    const struct typical_pod *at;
    const struct typical_gpu *gpus;
    uint32_t len, gpus_len;
};

/* Makes the typical pods in the arena; copies what it needs of the demand. O(classes + workloads), or O(demand). */
const struct typical_pods *typical_pods_new(const struct berth_snapshot *s, const struct berth_typical_pod *demand,
                                            size_t demand_len, struct arena *arena);

/* Nodes with equal lists of models: the devices that each request may use. */
struct typical_kind {
    const struct device *devices;
    uint32_t len;
    const uint64_t *suits; /* [gpu]: a bit for each device */
    struct typical_kind *next;
};

/* Returns the kind of a node; adds a new kind to the list. */
const struct typical_kind *typical_kind_of(struct typical_kind **list, const struct berth_snapshot *s,
                                           const struct typical_pods *t, const struct device *devices, uint32_t len,
                                           struct arena *arena);

/* Returns F of a node with this much free cpu and so many free thousandths of each device. */
double typical_pods_useless_milli(const struct typical_pods *t, const struct typical_kind *kind, int64_t cpu,
                                  const int32_t *milli);
