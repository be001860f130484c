/* net_frame.h - message format between the agent (root) and the net sandbox: frames with a fixed header and a bounded
 * body.
 *
 * The root process does not trust the net sandbox: a frame of a kind that the sandbox may not send, or longer than its
 * kind allows, terminates the sandbox. Numbers are in native byte order, since both processes run the same program. A
 * request is one frame; an answer is any number of HALF_PIECE frames and one HALF_END.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

enum half_kind {
    HALF_IDENTITY = 1, /* to the sandbox: certificates to use from now on */
    HALF_START,        /* to the sandbox: a request */
    HALF_CANCEL,       /* to the sandbox: a request is cancelled */
    HALF_ASK,          /* to the sandbox: one join request to the server with the pinned key */
    HALF_KNOWN,        /* to root: the certificate's expiry time, or an error */
    HALF_PIECE,        /* to root: part of an answer */
    HALF_END,          /* to root: result of a request */
    HALF_KINDS,
};

enum { HALF_HEAD_BYTES = 12, HALF_PIECE_BYTES_MAX = 65536, HALF_TEXT_BYTES_MAX = 512 };
#define HALF_REQUEST_BYTES_MAX ((size_t)64 << 20)

struct half_frame {
    enum half_kind kind;
    uint32_t call;  /* number of the request or of the identity */
    const char *at; /* points into the bytes that were read */
    size_t len;
};

/* Parses the first frame of `bytes`. Returns its length including the header; 0: incomplete; -EPROTO: a frame that this
 * receiver may not get. */
ssize_t half_frame_read(const char *bytes, size_t len, bool to_root, struct half_frame *ret);

/* Usage: begin a frame, add its body with the functions of str.h, end it. */
size_t half_frame_begin(struct str *to, enum half_kind kind, uint32_t call);
void half_frame_end(struct str *to, size_t began);

void half_add_number(struct str *to, int64_t number);
void half_add_text(struct str *to, const char *text); /* including the terminating NUL */
/* Each removes one value from the front of the body. False: the value is missing. A text is not copied. Only frames
 * from the root process contain texts. */
bool half_take_number(struct half_frame *f, int64_t *ret);
bool half_take_text(struct half_frame *f, const char **ret);
/* Copies the rest of the body as printable text: other bytes become '?'. */
void half_take_words(const struct half_frame *f, char ret[static HALF_TEXT_BYTES_MAX + 1]);

/* Body of HALF_START. Texts are never NULL; `type` may be empty. */
struct half_request {
    int64_t timeout_ns, stream;
    const char *method, *url, *type;
    const char *body;
    size_t body_len;
};
void half_request_add(struct str *to, uint32_t call, const struct half_request *q);
bool half_request_take(struct half_frame *f, struct half_request *ret);
