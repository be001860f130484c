/* log_stream.h - follows the log of one instance over lost connections.
 *
 * The log comes in lines of JSON (docs/api.md), each piece with the cursor behind it. When the connection is lost, the
 * stream connects again and asks for what follows the last cursor of the same instance, so that no byte is missing or
 * comes twice. Prints nothing but warnings; the bytes go to `piece`.
 */
#pragma once

#include "cli/lib/reconnect.h"

struct log_stream {
    struct api *api;
    const char *path;                                     /* of the first request, with its query but without "lines" */
    const char *label;                                    /* of the pod, for warnings */
    bool (*piece)(void *ctx, const char *at, size_t len); /* false: ends the stream */
    void *ctx;
    struct reconnect_notice *notice;
};

/* Until the log ends. Returns an enum exit_code; *ret_trouble says what failed. */
int log_stream_follow(const struct log_stream *s, struct api_trouble *ret_trouble);
