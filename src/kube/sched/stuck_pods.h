/* stuck_pods.h - victims whose deletion failed: they count as stopping for a pause, and only then may be deleted again.
 *
 * Without the pause, a deletion that fails at once would be repeated as fast as plans are made. The pause doubles with
 * each failure for the same pod. When it is over, the pod that waits for the victim loses its reservation, because the
 * victim is not going.
 */
#pragma once

#include "base/vec.h"
#include "kube/cache/cache.h"

struct stuck_pod {
    uint64_t instance;
    int64_t until_ns; /* INT64_MAX: the pod no longer counts as stopping */
    uint32_t failures;
};

struct stuck_pods {
    struct cache *cache;
    VEC(struct stuck_pod) pods;
    /* Called for each pod that loses its reservation, before it does; NULL: no callback. */
    void (*gives_back)(void *ctx, const struct cache_pod_view *pod);
    void *ctx;
};

void stuck_pods_done(struct stuck_pods *s);
/* Records a failed deletion; returns when to call stuck_pods_check. All times are of one clock, any clock. */
int64_t stuck_pods_add(struct stuck_pods *s, uint64_t instance, int64_t now_ns);
/* Ends pauses that are over; returns when to call again, INT64_MAX: never. */
int64_t stuck_pods_check(struct stuck_pods *s, int64_t now_ns);
