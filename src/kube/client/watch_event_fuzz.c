/* watch_event_fuzz.c - arbitrary bytes as frames, events, lists and errors: rejected with a message, or names are valid
 * text. The first byte selects the format and the parser.
 */
#include "kube/client/watch_event.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "kube/client/known_objects.h"
#include "kube/client/status.h"

static void hold(const struct kube_object *o)
{
    assert(o->name[0] && o->uid[0]);
    assert(strlen(o->namespace) + strlen(o->name) + strlen(o->uid) <= KNOWN_TEXT_MAX);
}

static void item(void *ctx, const struct kube_object *o)
{
    (void)ctx;
    hold(o);
}

static void frames(enum kube_format format, const char *p, size_t len)
{
    const char *at;
    size_t frame_len;
    int64_t n;
    for (; (n = watch_frame(format, p, len, &at, &frame_len)) > 0; p += n, len -= (size_t)n) {
        struct watch_room room = {0};
        struct watch_event e = {0};
        struct berth_err err = {0};
        assert((size_t)n <= len && at >= p && at + frame_len <= p + len);
        int rc = watch_event_read(format, at, frame_len, &room, &e, &err);
        if (rc == 0 && (e.kind == WATCH_PUT || e.kind == WATCH_DROP))
            hold(&e.object);
        if (rc == 0 && e.kind == WATCH_ERROR)
            assert(kube_status_code(0, e.error, e.error_len, &err) < 0 && err.text[0]);
        watch_room_done(&room);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    enum kube_format format = data[0] & 1 ? KUBE_JSON : KUBE_PROTOBUF;
    CLEANUP(mem) char *text = mem_zalloc(size);
    memcpy(text, data + 1, size - 1);
    struct watch_page page;
    struct berth_err err = {0};
    frames(format, text, size - 1);
    if (watch_page_read(format, text, size - 1, item, NULL, &page, &err) < 0)
        assert(err.text[0]);
    (void)kube_status_code(500, text, size - 1, &err);
    return 0;
}
