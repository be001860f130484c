/* window.c - refuses a node in a window of others that the pod might overlap. */
#include "core/backfill/reservation.h"
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return windows_bind(t) != 0;
}

static uint32_t aspects(const struct attempt *t)
{
    return (uint32_t)__builtin_popcountll(windows_bind(t));
}

/* Returns the window of the aspect: windows are numbered by the order of their bits. */
static uint32_t window_of(const struct attempt *t, uint32_t aspect)
{
    uint64_t windows = windows_bind(t);
    while (aspect--)
        windows &= windows - 1;
    return bits_low(windows);
}

static void mask_aspect(const struct attempt *t, uint32_t aspect, struct block_range blocks, uint64_t *bits)
{
    window_mask(t, window_of(t, aspect), blocks, bits);
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    BITS_EACH (i, windows_bind(t))
        window_mask(t, (uint32_t)i, blocks, bits);
}

static const char *aspect_name(const struct attempt *t, uint32_t aspect)
{
    return window_name(t, window_of(t, aspect));
}

const struct filter filter_window = {
    .name = "window",
    .text = "is not reserved by a window before the pod would end",
    .reason = REASON_WINDOW,
    .when = FILTER_ATTEMPT,
    .always = true,
    .timed = true,
    .applies = applies,
    .mask = mask,
    .aspects = aspects,
    .mask_aspect = mask_aspect,
    .aspect_name = aspect_name,
};
