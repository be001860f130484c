#include "agent/net/net_frame.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Direction and body length of each kind. */
static const struct {
    bool to_root;
    size_t bytes_min, bytes_max;
} kinds[HALF_KINDS] = {
    [HALF_IDENTITY] = {false, 2,                   1 << 20                              },
    [HALF_START] = {false, 2 * sizeof(int64_t), HALF_REQUEST_BYTES_MAX               },
    [HALF_CANCEL] = {false, 0,                   0                                    },
    [HALF_ASK] = {false, 2,                   HALF_REQUEST_BYTES_MAX               },
    [HALF_KNOWN] = {true,  sizeof(int64_t),     sizeof(int64_t) + HALF_TEXT_BYTES_MAX},
    [HALF_PIECE] = {true,  1,                   HALF_PIECE_BYTES_MAX                 },
    [HALF_END] = {true,  sizeof(int64_t),     sizeof(int64_t) + HALF_TEXT_BYTES_MAX},
};

struct head {
    uint32_t len, kind, call;
};
_Static_assert(sizeof(struct head) == HALF_HEAD_BYTES, "the header of a frame has no gaps");

ssize_t half_frame_read(const char *bytes, size_t len, bool to_root, struct half_frame *ret)
{
    struct head head;
    if (len < sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    if (head.kind < HALF_IDENTITY || head.kind >= HALF_KINDS || kinds[head.kind].to_root != to_root ||
        head.len < kinds[head.kind].bytes_min || head.len > kinds[head.kind].bytes_max)
        return -EPROTO;
    if (len - sizeof head < head.len)
        return 0;
    *ret = (struct half_frame){
        .kind = (enum half_kind)head.kind, .call = head.call, .at = bytes + sizeof head, .len = head.len};
    return (ssize_t)(sizeof head + head.len);
}

size_t half_frame_begin(struct str *to, enum half_kind kind, uint32_t call)
{
    size_t began = to->len;
    const struct head head = {.kind = (uint32_t)kind, .call = call};
    str_add_bytes(to, &head, sizeof head);
    return began;
}

void half_frame_end(struct str *to, size_t began)
{
    struct head head;
    memcpy(&head, to->at + began, sizeof head);
    size_t len = to->len - began - sizeof head;
    assert(len >= kinds[head.kind].bytes_min && len <= kinds[head.kind].bytes_max);
    head.len = (uint32_t)len;
    memcpy(to->at + began, &head, sizeof head);
}

void half_add_number(struct str *to, int64_t number)
{
    str_add_bytes(to, &number, sizeof number);
}

void half_add_text(struct str *to, const char *text)
{
    str_add_bytes(to, text, strlen(text) + 1);
}

bool half_take_number(struct half_frame *f, int64_t *ret)
{
    if (f->len < sizeof *ret)
        return false;
    memcpy(ret, f->at, sizeof *ret);
    f->at += sizeof *ret;
    f->len -= sizeof *ret;
    return true;
}

bool half_take_text(struct half_frame *f, const char **ret)
{
    const char *end = f->len ? memchr(f->at, '\0', f->len) : NULL;
    if (!end)
        return false;
    *ret = f->at;
    f->len -= (size_t)(end - f->at) + 1;
    f->at = end + 1;
    return true;
}

void half_take_words(const struct half_frame *f, char ret[static HALF_TEXT_BYTES_MAX + 1])
{
    size_t len = f->len < HALF_TEXT_BYTES_MAX ? f->len : HALF_TEXT_BYTES_MAX;
    for (size_t i = 0; i < len; i++)
        ret[i] = f->at[i] >= ' ' && f->at[i] < 0x7f ? f->at[i] : '?';
    ret[len] = '\0';
}

void half_request_add(struct str *to, uint32_t call, const struct half_request *q)
{
    size_t began = half_frame_begin(to, HALF_START, call);
    half_add_number(to, q->timeout_ns);
    half_add_number(to, q->stream);
    half_add_text(to, q->method);
    half_add_text(to, q->url);
    half_add_text(to, q->type);
    str_add_bytes(to, q->body, q->body_len);
    half_frame_end(to, began);
}

bool half_request_take(struct half_frame *f, struct half_request *ret)
{
    struct half_request q = {0};
    if (!half_take_number(f, &q.timeout_ns) || !half_take_number(f, &q.stream) || !half_take_text(f, &q.method) ||
        !half_take_text(f, &q.url) || !half_take_text(f, &q.type))
        return false;
    q.body = f->at;
    q.body_len = f->len;
    *ret = q;
    return true;
}
