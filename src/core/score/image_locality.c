/* image_locality.c - prefers nodes that already have the images, by size; a gibibyte of each image gives the full
 * score.
 */
#include "core/score/scores.h"

/* Returns the bytes of an image on the node, which may list the image more than once. */
static int64_t bytes_of(const struct node_body *body, sym image, int64_t each)
{
    uint32_t low = 0, high = body->images_len;
    int64_t bytes = 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (body->images[middle].name < image)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < body->images_len && body->images[low].name == image; low++)
        bytes += body->images[low].size_bytes < each ? body->images[low].size_bytes : each;
    return bytes;
}

static void fill(const struct cycle *c, const struct preferences *preferences, int32_t weight, int32_t *column)
{
    const int64_t each = (int64_t)1 << 30, full = preferences->images.len * each;
    if (full == 0)
        return;
    for (uint32_t p = 0; p < c->len; p++) {
        const struct node_body *body = c->l->body[p];
        int64_t there = 0;
        for (uint32_t i = 0; i < preferences->images.len; i++)
            there += bytes_of(body, preferences->images.at[i], each);
        if (there > full)
            there = full;
        column[p] += weight * (int32_t)((__int128)there * SCORE_ONE / full);
    }
}

const struct score score_image_locality = {
    .name = "image_locality",
    .text = "prefers nodes that already have the container images",
    .when = SCORE_STATIC,
    .fill = fill,
};
