/* watch_event.h - parses watches and lists of the API server: frames, events, items.
 *
 * The stateless part of kube/client/watch.h, for fuzzing. Only names are copied, to be NUL-terminated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/client/watch.h"

/* The largest event or line; the API server itself takes no object beyond 3 MB. */
#define WATCH_FRAME_MAX ((size_t)16 << 20)

enum watch_kind { WATCH_PUT, WATCH_DROP, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_event {
    enum watch_kind kind;
    struct kube_object object; /* of a put or a drop; of a bookmark only its version */
    bool complete;             /* of a bookmark: the initial state is complete */
    const char *error;         /* of an error: the Status, for kube_status_code */
    size_t error_len;
};

/* Buffers that an event points into beside the frame; free them after each event. */
struct watch_room {
    char text[768];
    json_t *doc;
    char *error; /* of an error in JSON */
};
void watch_room_done(struct watch_room *room);

/* Returns the length of the first frame including its header and end; *ret_at and *ret_len are its content. 0:
 * incomplete. Negative: invalid. */
int64_t watch_frame(enum kube_format format, const char *p, size_t len, const char **ret_at, size_t *ret_len);

/* Parses one frame. -EPROTO with a message if it is no event; -ENOENT for an event of an unknown type, to be
 * skipped. */
int watch_event_read(enum kube_format format, const char *p, size_t len, struct watch_room *room,
                     struct watch_event *ret, struct berth_err *err);

/* Parses a page of a list. `item` is called for each object; `version` is that of the list, `next` the continue token
 * ("" at the end), truncated to its buffer. */
struct watch_page {
    uint64_t version;
    char next[1024];
};
typedef void watch_item(void *ctx, const struct kube_object *o);
int watch_page_read(enum kube_format format, const char *p, size_t len, watch_item *item, void *ctx,
                    struct watch_page *ret, struct berth_err *err);
