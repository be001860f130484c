/* net_frame.h - message format between the agent (root) and the net sandbox: frames with a fixed header and a bounded
 * body.
 *
 * The root process does not trust the net sandbox: a frame of a kind that the sandbox may not send, or longer than its
 * kind allows, terminates the sandbox. Numbers are in native byte order, since both processes run the same program. A
 * request is one frame; an answer is any number of NET_FRAME_DATA frames and one NET_FRAME_RESULT.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

enum net_frame_kind {
    NET_FRAME_IDENTITY = 1, /* to the sandbox: certificates to use from now on */
    NET_FRAME_REQUEST,      /* to the sandbox: a request */
    NET_FRAME_CANCEL,       /* to the sandbox: a request is cancelled */
    NET_FRAME_JOIN,         /* to the sandbox: one join request to the server with the pinned key */
    NET_FRAME_CERTIFICATE,  /* to root: the certificate's expiry time, or an error */
    NET_FRAME_DATA,         /* to root: part of an answer */
    NET_FRAME_RESULT,       /* to root: result of a request */
    NET_FRAME_KINDS,
};

enum { NET_FRAME_HEADER_BYTES = 12, NET_FRAME_DATA_BYTES_MAX = 65536, NET_FRAME_TEXT_BYTES_MAX = 512 };
#define NET_FRAME_REQUEST_BYTES_MAX ((size_t)64 << 20)

struct net_frame {
    enum net_frame_kind kind;
    uint32_t call;  /* number of the request or of the identity */
    const char *at; /* points into the bytes that were read */
    size_t len;
};

/* Parses the first frame of `bytes`. Returns its length including the header; 0: incomplete; -EPROTO: a frame that this
 * receiver may not get. */
ssize_t net_frame_read(const char *bytes, size_t len, bool to_root, struct net_frame *ret);

/* Usage: begin a frame, add its body with the functions of str.h, end it. */
size_t net_frame_begin(struct str *to, enum net_frame_kind kind, uint32_t call);
void net_frame_end(struct str *to, size_t began);

void net_frame_add_number(struct str *to, int64_t number);
void net_frame_add_text(struct str *to, const char *text); /* including the terminating NUL */
/* Each removes one value from the front of the body. False: the value is missing. A text is not copied. Only frames
 * from the root process contain texts. */
bool net_frame_take_number(struct net_frame *f, int64_t *ret);
bool net_frame_take_text(struct net_frame *f, const char **ret);
/* Copies the rest of the body as printable text: other bytes become '?'. */
void net_frame_take_printable(const struct net_frame *f, char ret[static NET_FRAME_TEXT_BYTES_MAX + 1]);

/* Body of NET_FRAME_REQUEST. Texts are never NULL; `type` may be empty. */
struct net_frame_request {
    int64_t timeout_ns, stream;
    const char *method, *url, *type;
    const char *body;
    size_t body_len;
};
void net_frame_add_request(struct str *to, uint32_t call, const struct net_frame_request *q);
bool net_frame_take_request(struct net_frame *f, struct net_frame_request *ret);
