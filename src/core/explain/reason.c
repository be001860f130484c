/* reason.c - the words and sentences of the reasons. */
#include "core/explain/reason.h"

#include "berth.h"

/* clang-format off */
const struct reason_row reasons[REASONS_LEN] = {
    [REASON_STATE]         = {"state",         "are not ready for new work"},
    [REASON_OVER]          = {"over",          "hold more than fits"},
    [REASON_PRESSURE]      = {"pressure",      "run out of memory"},
    [REASON_TARGET]        = {"target",        "are not where the pod is to move"},
    [REASON_NAME]          = {"name",          "are not the node that was named"},
    [REASON_LABELS]        = {"labels",        "do not have the labels that are required"},
    [REASON_TAINT]         = {"taint",         "have a taint that is not tolerated"},
    [REASON_DOMAIN]        = {"domain",        "are in another domain"},
    [REASON_RUNTIME]       = {"runtime",       "do not have the runtime"},
    [REASON_ARCH]          = {"arch",          "have another architecture"},
    [REASON_PAGE_SIZE]     = {"page-size",     "are held to another huge-page size"},
    [REASON_GPU_KIND]      = {"gpu-kind",      "do not have that many GPUs of this model and memory"},
    [REASON_SHORT]         = {"short",         "have too little left"},
    [REASON_GPU]           = {"gpu",           "have too few GPUs left"},
    [REASON_PORT]          = {"port",          "have the port in use"},
    [REASON_VOLUME]        = {"volume",        "cannot reach the volume, or it is in use elsewhere"},
    [REASON_ATTACH]        = {"attach",        "cannot attach more volumes"},
    [REASON_SPREAD]        = {"spread",        "would make the spread too uneven"},
    [REASON_AFFINITY]      = {"affinity",      "are not near the pods that are required"},
    [REASON_ANTI_AFFINITY] = {"anti-affinity", "are near pods that must stay apart"},
    [REASON_PER_NODE]      = {"per-node",      "have as many pods of the workload as allowed"},
    [REASON_HEADROOM]      = {"headroom",      "are in a zone or domain that keeps what is left for more urgent work"},
    [REASON_RESERVED]      = {"reserved",      "have room, but not for so long: jobs that come first will need it"},
    [REASON_WINDOW]        = {"window",        "are kept for others or for maintenance before it would have ended"},
    [REASON_DEADLINE]      = {"deadline",      "could not let it end by its deadline"},
    [REASON_GANG]          = {"gang",          "the whole gang does not fit at once"},
    [REASON_NO_NODES]      = {"no-nodes",      "there are no nodes"},
    [REASON_STOPPING]      = {"stopping",      "waits for an earlier instance to stop"},
    [REASON_QUOTA]         = {"quota",         "a quota is used up"},
    [REASON_TOTAL]         = {"total",         "what may be used in this period is used up"},
    [REASON_BEHIND]        = {"behind",        "waits behind a job that comes first"},
    [REASON_SPARE]         = {"spare",         "waits until the minimum of its gang is placed"},
    [REASON_STARTING]      = {"starting",      "waits until nodes begin with pods of the same user that were placed before"},
};
/* clang-format on */

const char *berth_reason_at(size_t i, const char **ret_sentence)
{
    if (i >= REASONS_LEN)
        return NULL;
    if (ret_sentence)
        *ret_sentence = reasons[i].sentence;
    return reasons[i].word;
}
