/* net_frame.h - what the two halves of the agent say to each other: frames of a fixed head and a bounded rest.
 *
 * The root half takes the network half for an enemy: whatever comes from there is a frame of a kind that may come from there,
 * no longer than its kind allows, or the end of that process. Numbers are as the machine has them: both halves are one
 * program. A request is one frame; an answer is any number of pieces and an end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

enum half_kind {
    HALF_IDENTITY = 1, /* to the network half: certificates, from now on */
    HALF_START,        /* a request */
    HALF_CANCEL,       /* nobody waits for it any more */
    HALF_ASK,          /* a single request, to whoever has the key that is pinned: a join */
    HALF_KNOWN,        /* to the root half: until when the certificate is good, or what is wrong */
    HALF_PIECE,        /* of an answer */
    HALF_END,          /* how a request went */
    HALF_KINDS,
};

enum { HALF_HEAD_BYTES = 12, HALF_PIECE_BYTES_MAX = 65536, HALF_TEXT_BYTES_MAX = 512 };
#define HALF_REQUEST_BYTES_MAX ((size_t)64 << 20)

struct half_frame {
    enum half_kind kind;
    uint32_t call;  /* which request, or which identity */
    const char *at; /* within what was read */
    size_t len;
};

/* The first frame of these bytes. Its length, with its head; 0: not all of it is there yet; -EPROTO: no frame that may go to
 * this half. */
ssize_t half_frame_read(const char *bytes, size_t len, bool to_root, struct half_frame *ret);

/* A frame is begun, filled with the functions of str.h, and ended. */
size_t half_frame_begin(struct str *to, enum half_kind kind, uint32_t call);
void half_frame_end(struct str *to, size_t began);

void half_add_number(struct str *to, int64_t number);
void half_add_text(struct str *to, const char *text); /* with its end */
/* Each takes its part off the front. False: it is not there. A text stays where it is; only what came from the root half has
 * any. */
bool half_take_number(struct half_frame *f, int64_t *ret);
bool half_take_text(struct half_frame *f, const char **ret);
/* The rest as a line for people, without what could be more than that. */
void half_take_words(const struct half_frame *f, char ret[static HALF_TEXT_BYTES_MAX + 1]);

/* Of HALF_START. Texts are never NULL, `type` may be empty. */
struct half_request {
    int64_t timeout_ns, stream;
    const char *method, *url, *type;
    const char *body;
    size_t body_len;
};
void half_request_add(struct str *to, uint32_t call, const struct half_request *q);
bool half_request_take(struct half_frame *f, struct half_request *ret);
