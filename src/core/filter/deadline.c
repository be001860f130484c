/* deadline.c - refuses every node if the pod could not end by its deadline. */
#include "core/backfill/reservation.h"
#include "core/filter/filters.h"

const struct filter filter_deadline = {
    .name = "deadline",
    .text = "can complete the job before its deadline",
    .reason = REASON_DEADLINE,
    .when = FILTER_ATTEMPT,
    .always = true,
    .timed = true,
    .applies = deadline_missed,
    .mask = deadline_mask_all,
};
