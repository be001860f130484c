/* log_stream.h - follows the log of one instance across lost connections.
 *
 * The daemon sends the log as lines of JSON (docs/api.md), each with the cursor behind its bytes. When the connection
 * is lost, the stream reconnects and requests the log after the last cursor of the same instance, so that no byte is
 * lost or repeated. Prints nothing but warnings; the bytes go to `piece`.
 */
#pragma once

#include "cli/lib/reconnect.h"

struct log_stream {
    struct api *api;
    /* path of the first request, with its query but without "lines" */
    const char *path;
    const char *label;                                    /* the pod's name, for warnings */
    bool (*piece)(void *ctx, const char *at, size_t len); /* returns false to end the stream */
    void *ctx;
    struct reconnect_notice *notice;
};

/* Follows the log until it ends. Returns an enum exit_code; the error is in *ret_trouble. */
int log_stream_follow(const struct log_stream *s, struct api_error *ret_trouble);
