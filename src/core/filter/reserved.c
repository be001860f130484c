/* reserved.c - refuses a node on which the pod would delay a reservation, see core/backfill/reservation.h. */
#include "core/backfill/reservation.h"
#include "core/filter/filters.h"

const struct filter filter_reserved = {
    .name = "reserved",
    .text = "has room beside what is reserved there for work that comes first",
    .reason = REASON_RESERVED,
    .when = FILTER_BLOCK,
    .always = true,
    .timed = true,
    .applies = future_binds,
    .mask = future_mask,
};
