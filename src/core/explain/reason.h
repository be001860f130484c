/* reason.h - the reasons why a pod has no place: a stable word and a sentence for each. */
#pragma once

#include <stddef.h>

enum reason {
    REASON_STATE,
    REASON_OVER,
    REASON_PRESSURE,
    REASON_TARGET,
    REASON_NAME,
    REASON_LABELS,
    REASON_TAINT,
    REASON_DOMAIN,
    REASON_RUNTIME,
    REASON_ARCH,
    REASON_PAGE_SIZE,
    REASON_GPU_KIND,
    REASON_SHORT,
    REASON_GPU,
    REASON_PORT,
    REASON_VOLUME,
    REASON_ATTACH,
    REASON_SPREAD,
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_PER_NODE,
    REASON_HEADROOM,
    REASON_RESERVED,
    REASON_WINDOW,
    REASON_DEADLINE,
    /* reasons that are not about nodes */
    REASON_GANG,
    REASON_NO_NODES,
    REASON_STOPPING,
    REASON_QUOTA,
    REASON_TOTAL,
    REASON_BEHIND,
    REASON_SPARE,
    REASON_STARTING,
    REASONS_LEN,
};

struct reason_row {
    const char *word;
    const char *sentence; /* about the nodes that refuse */
};

extern const struct reason_row reasons[REASONS_LEN];
