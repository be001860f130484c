/* stuck_pods.h - pods that could not be deleted: they count as stopping for a while, and only then may be asked to go again.
 *
 * Whoever was refused at once, and tried again at once, would ask as fast as plans are made. The pause doubles with each refusal of the same pod. When it
 * is over, whoever waits for the pod to go gives its place back: nobody is going for it.
 */
#pragma once

#include "base/vec.h"
#include "kube/cache/cache.h"

struct stuck_pod {
    uint64_t instance;
    int64_t until_ns; /* INT64_MAX: it counts as what it is again */
    uint32_t failures;
};

struct stuck {
    struct project *project;
    VEC(struct stuck_pod) pods;
    /* Of each that gives its place back, before it does; NULL: nobody listens. */
    void (*gives_back)(void *ctx, const struct project_pod *pod);
    void *ctx;
};

void stuck_done(struct stuck *s);
/* Its deletion was refused; returns when to look. All moments are of one clock, whichever. */
int64_t stuck_note(struct stuck *s, uint64_t instance, int64_t now_ns);
/* What is over is over; when to look again, INT64_MAX: nothing is left. */
int64_t stuck_look(struct stuck *s, int64_t now_ns);
