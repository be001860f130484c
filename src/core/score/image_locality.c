/* image_locality.c - prefers nodes that already have the images, by their size; a gibibyte per image is worth all. */
#include "core/score/scores.h"

static void fill(const struct cycle *c, const struct taste *taste, int32_t weight, int32_t *column)
{
    const int64_t each = (int64_t)1 << 30, full = taste->images.len * each;
    if (full == 0)
        return;
    for (uint32_t p = 0; p < c->len; p++) {
        const struct node_body *body = c->l->body[p];
        int64_t there = 0;
        for (uint32_t i = 0; i < body->images_len; i++)
            if (syms_have(&taste->images, body->images[i].name))
                there += body->images[i].size_bytes < each ? body->images[i].size_bytes : each;
        if (there > full)
            there = full;
        column[p] += weight * (int32_t)((__int128)there * SCORE_ONE / full);
    }
}

const struct score score_image_locality = {
    .name = "image_locality",
    .text = "prefers nodes that already have the images",
    .when = SCORE_STATIC,
    .fill = fill,
};
