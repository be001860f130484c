/* typical_pods.h - the pods that usually come, and how much of a node's idle GPUs is useless to them.
 *
 * Pods are counted by request (cpu, share, number and models of GPUs; nothing else matters here), the most frequent first,
 * until 95 % are covered. They are those that the policy names, or else those of the snapshot's own workloads.
 *
 * F(node) is the expectation, over these pods, of the idle milli-GPU on the node that such a pod cannot use: all of it when
 * the pod wants no GPU or another model or the node lacks the cpu, else what lies on devices too full for it. After "Beware
 * of Fragmentation" (ATC'23). It is a sum of doubles in a fixed order, for equal states must come out equal: first what each
 * reason makes useless, pod by pod, then the reasons.
 */
#pragma once

#include "berth.h"
#include "core/snapshot/snapshot.h"

/* What is asked for of GPUs. Several typical pods may share one such request. */
struct typical_gpu {
    uint32_t count, milli;
    const char *const *models; /* any of these; none: any */
    uint32_t models_len;
};

struct typical_pod {
    int64_t cpu;
    uint32_t gpu;
    double share; /* of all pods that are typical */
};

struct typical {
    const struct typical_pod *at;
    const struct typical_gpu *gpus;
    uint32_t len, gpus_len;
};

/* In the arena; copies what it needs of the demand. O(classes + workloads), or O(demand). */
const struct typical *typical_new(const struct berth_snapshot *s, const struct berth_demand *demand, size_t demand_len,
                                  struct arena *arena);

/* Nodes with equal lists of models: which devices are of a model that each request may use. */
struct typical_kind {
    const struct device *devices;
    uint32_t len;
    const uint64_t *suits; /* [gpu]: a bit per device */
    struct typical_kind *next;
};

/* That of a node; added to the list if it is new. */
const struct typical_kind *typical_kind_of(struct typical_kind **list, const struct berth_snapshot *s,
                                           const struct typical *t, const struct device *devices, uint32_t len,
                                           struct arena *arena);

/* F of a node with so much cpu, and so many thousandths of each device, free. */
double typical_useless(const struct typical *t, const struct typical_kind *kind, int64_t cpu, const int32_t *milli);
