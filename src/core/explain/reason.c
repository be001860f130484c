/* reason.c - the words and sentences of the reasons. */
#include "core/explain/reason.h"

#include "berth.h"

/* clang-format off */
const struct reason_row reasons[REASONS_LEN] = {
    [REASON_STATE]         = {"state",         "are cordoned or not ready"},
    [REASON_OVER]          = {"over",          "have more allocated than allocatable"},
    [REASON_PRESSURE]      = {"pressure",      "are under memory pressure"},
    [REASON_TARGET]        = {"target",        "are not the target of the migration"},
    [REASON_NAME]          = {"name",          "are not the requested node"},
    [REASON_LABELS]        = {"labels",        "do not match the required labels"},
    [REASON_TAINT]         = {"taint",         "have an untolerated taint"},
    [REASON_DOMAIN]        = {"domain",        "are in another domain"},
    [REASON_RUNTIME]       = {"runtime",       "do not have the required runtime"},
    [REASON_ARCH]          = {"arch",          "have another architecture"},
    [REASON_PAGE_SIZE]     = {"page-size",     "are limited to another huge-page size"},
    [REASON_GPU_KIND]      = {"gpu-kind",      "do not have enough GPUs of the requested model and memory"},
    [REASON_SHORT]         = {"short",         "have too little left"},
    [REASON_GPU]           = {"gpu",           "have too few GPUs left"},
    [REASON_PORT]          = {"port",          "have the port in use"},
    [REASON_VOLUME]        = {"volume",        "cannot access the volume, or another node uses it"},
    [REASON_ATTACH]        = {"attach",        "cannot attach more volumes"},
    [REASON_SPREAD]        = {"spread",        "would violate the spread constraint"},
    [REASON_AFFINITY]      = {"affinity",      "do not satisfy the required pod affinity"},
    [REASON_ANTI_AFFINITY] = {"anti-affinity", "do not satisfy the required pod anti-affinity"},
    [REASON_PER_NODE]      = {"per-node",      "have the maximum number of pods of this workload"},
    [REASON_HEADROOM]      = {"headroom",      "are in a zone or domain that reserves its free resources for more "
                                               "urgent work"},
    [REASON_RESERVED]      = {"reserved",      "have room, but not for long enough: it is reserved for jobs ahead "
                                               "in the queue"},
    [REASON_WINDOW]        = {"window",        "are reserved for others or for maintenance before the pod would end"},
    [REASON_DEADLINE]      = {"deadline",      "cannot complete the job before its deadline"},
    [REASON_GANG]          = {"gang",          "the whole gang does not fit at once"},
    [REASON_NO_NODES]      = {"no-nodes",      "there are no nodes"},
    [REASON_STOPPING]      = {"stopping",      "waits for an earlier instance to stop"},
    [REASON_QUOTA]         = {"quota",         "a quota is used up"},
    [REASON_TOTAL]         = {"total",         "the quota of this period is used up"},
    [REASON_BEHIND]        = {"behind",        "waits for a job ahead of it in the queue"},
    [REASON_SPARE]         = {"spare",         "waits until the minimum size of its gang is placed"},
    [REASON_STARTING]      = {"starting",      "waits until earlier pods of this user have started"},
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
