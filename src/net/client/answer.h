/* answer.h - the answer to an HTTP/1.1 request, as bytes that are there: where its header ends, how long its body is.
 *
 * No connection and no heap: whoever reads asks again when more has come. For async_lane.c; what libcurl reads it reads itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWER_HEAD_MAX = 65536 }; /* bytes of a header; more is malformed */

struct answer_head {
    int status;
    size_t len;            /* of the header, with the empty line at its end; of interim answers (1xx) before it, too */
    int64_t body_len;      /* -1: not said */
    bool chunked;          /* the body comes in chunks */
    bool closes;           /* the server ends the connection afterwards */
    int64_t retry_after_s; /* 0: not said, or not in seconds */
};

/* 1: it is there; 0: more is needed; -EPROTO: this is no answer. *ret is untouched but by 1. */
int answer_head_read(const char *p, size_t len, struct answer_head *ret);

/* A body in chunks: 1 when all of it is there, 0 when more is needed, -EPROTO when it is malformed. With 1 the chunks were
 * joined at p, and *ret_len is the body's length. */
int answer_chunks_join(char *p, size_t len, size_t *ret_len);
