/* watch_event.h - what a watch or a list of the API server says, out of its bytes: frames, events, items.
 *
 * A part of kube/client/watch.h, without its state; for fuzzing. Nothing is copied but names, which get their NULs.
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
    bool complete;             /* of a bookmark: all that was there has been sent */
    const char *error;         /* of an error: the Status, for kube_status_code */
    size_t error_len;
};

/* What an event points into beside the frame; done with after each. */
struct watch_room {
    char text[768];
    json_t *doc;
    char *error; /* of JSON */
};
void watch_room_done(struct watch_room *room);

/* How many of these bytes the first frame takes, its header and end counted; *ret_at and *ret_len is what is in it. 0:
 * it is not complete. Negative: it can never be. */
int64_t watch_frame(enum kube_format format, const char *p, size_t len, const char **ret_at, size_t *ret_len);

/* One frame. -EPROTO with a sentence for what is not an event. An event of an unknown type is -ENOENT, to be passed over. */
int watch_event_read(enum kube_format format, const char *p, size_t len, struct watch_room *room,
                     struct watch_event *ret, struct berth_err *err);

/* A page of a list. `item` is called for each; the texts at the end are the version of all and where to go on ("" at the
 * end), cut to their room. */
struct watch_page {
    uint64_t version;
    char next[1024];
};
typedef void watch_item(void *ctx, const struct kube_object *o);
int watch_page_read(enum kube_format format, const char *p, size_t len, watch_item *item, void *ctx,
                    struct watch_page *ret, struct berth_err *err);
