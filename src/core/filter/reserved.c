/* reserved.c - refuses a node on which the pod would delay a reservation, see core/backfill/reservation.h. */
#include "core/backfill/reservation.h"
#include "core/filter/filters.h"

const struct filter filter_reserved = {
    .name = "reserved",
    .text = "has room beside the reservations of jobs ahead in the queue",
    .reason = REASON_RESERVED,
    .when = FILTER_BLOCK,
    .always = true,
    .timed = true,
    .applies = reservations_bind,
    .mask = reservations_mask,
};
