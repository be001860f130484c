#include "agent/net/net_frame.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Direction and body length of each kind. */
static const struct {
    bool to_root;
    size_t bytes_min, bytes_max;
} kinds[NET_FRAME_KINDS] = {
    [NET_FRAME_IDENTITY] = {false, 2,                   1 << 20                                   },
    [NET_FRAME_REQUEST] = {false, 2 * sizeof(int64_t), NET_FRAME_REQUEST_BYTES_MAX               },
    [NET_FRAME_CANCEL] = {false, 0,                   0                                         },
    [NET_FRAME_JOIN] = {false, 2,                   NET_FRAME_REQUEST_BYTES_MAX               },
    [NET_FRAME_CERTIFICATE] = {true,  sizeof(int64_t),     sizeof(int64_t) + NET_FRAME_TEXT_BYTES_MAX},
    [NET_FRAME_DATA] = {true,  1,                   NET_FRAME_DATA_BYTES_MAX                  },
    [NET_FRAME_RESULT] = {true,  sizeof(int64_t),     sizeof(int64_t) + NET_FRAME_TEXT_BYTES_MAX},
};

struct frame_head {
    uint32_t len, kind, call;
};
_Static_assert(sizeof(struct frame_head) == NET_FRAME_HEADER_BYTES, "the header of a frame has no gaps");

ssize_t net_frame_read(const char *bytes, size_t len, bool to_root, struct net_frame *ret)
{
    struct frame_head head;
    if (len < sizeof head)
        return 0;
    memcpy(&head, bytes, sizeof head);
    if (head.kind < NET_FRAME_IDENTITY || head.kind >= NET_FRAME_KINDS || kinds[head.kind].to_root != to_root ||
        head.len < kinds[head.kind].bytes_min || head.len > kinds[head.kind].bytes_max)
        return -EPROTO;
    if (len - sizeof head < head.len)
        return 0;
    *ret = (struct net_frame){
        .kind = (enum net_frame_kind)head.kind, .call = head.call, .at = bytes + sizeof head, .len = head.len};
    return (ssize_t)(sizeof head + head.len);
}

size_t net_frame_begin(struct str *to, enum net_frame_kind kind, uint32_t call)
{
    size_t began = to->len;
    const struct frame_head head = {.kind = (uint32_t)kind, .call = call};
    str_add_bytes(to, &head, sizeof head);
    return began;
}

void net_frame_end(struct str *to, size_t began)
{
    struct frame_head head;
    memcpy(&head, to->at + began, sizeof head);
    size_t len = to->len - began - sizeof head;
    assert(len >= kinds[head.kind].bytes_min && len <= kinds[head.kind].bytes_max);
    head.len = (uint32_t)len;
    memcpy(to->at + began, &head, sizeof head);
}

void net_frame_add_number(struct str *to, int64_t number)
{
    str_add_bytes(to, &number, sizeof number);
}

void net_frame_add_text(struct str *to, const char *text)
{
    str_add_bytes(to, text, strlen(text) + 1);
}

bool net_frame_take_number(struct net_frame *f, int64_t *ret)
{
    if (f->len < sizeof *ret)
        return false;
    memcpy(ret, f->at, sizeof *ret);
    f->at += sizeof *ret;
    f->len -= sizeof *ret;
    return true;
}

bool net_frame_take_text(struct net_frame *f, const char **ret)
{
    const char *end = f->len ? memchr(f->at, '\0', f->len) : NULL;
    if (!end)
        return false;
    *ret = f->at;
    f->len -= (size_t)(end - f->at) + 1;
    f->at = end + 1;
    return true;
}

void net_frame_take_printable(const struct net_frame *f, char ret[static NET_FRAME_TEXT_BYTES_MAX + 1])
{
    size_t len = f->len < NET_FRAME_TEXT_BYTES_MAX ? f->len : NET_FRAME_TEXT_BYTES_MAX;
    for (size_t i = 0; i < len; i++)
        ret[i] = f->at[i] >= ' ' && f->at[i] < 0x7f ? f->at[i] : '?';
    ret[len] = '\0';
}

void net_frame_add_request(struct str *to, uint32_t call, const struct net_frame_request *q)
{
    size_t began = net_frame_begin(to, NET_FRAME_REQUEST, call);
    net_frame_add_number(to, q->timeout_ns);
    net_frame_add_number(to, q->stream);
    net_frame_add_text(to, q->method);
    net_frame_add_text(to, q->url);
    net_frame_add_text(to, q->type);
    str_add_bytes(to, q->body, q->body_len);
    net_frame_end(to, began);
}

bool net_frame_take_request(struct net_frame *f, struct net_frame_request *ret)
{
    struct net_frame_request q = {0};
    if (!net_frame_take_number(f, &q.timeout_ns) || !net_frame_take_number(f, &q.stream) ||
        !net_frame_take_text(f, &q.method) || !net_frame_take_text(f, &q.url) || !net_frame_take_text(f, &q.type))
        return false;
    q.body = f->at;
    q.body_len = f->len;
    *ret = q;
    return true;
}
