/* answer.h - parses HTTP/1.1 answers from a buffer: the end of the header, and the length of the body.
 *
 * The parser has no connection and uses no heap: the caller calls it again when more bytes have arrived. Only for
 * async_lane.c; libcurl parses its own answers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWER_HEAD_MAX = 65536 }; /* maximum size of a header; a larger one is malformed */

struct answer_head {
    int status;
    size_t len;            /* of the header including its empty line, and of preceding interim answers (1xx) */
    int64_t body_len;      /* -1: not given */
    bool chunked;          /* the body uses chunked encoding */
    bool closes;           /* the server closes the connection afterwards */
    int64_t retry_after_s; /* 0: not given, or not in seconds */
};

/* Returns 1 if the header is complete, 0 if more bytes are needed, -EPROTO if the bytes are not an HTTP answer. Changes
 * *ret only with 1. */
int answer_head_read(const char *p, size_t len, struct answer_head *ret);

/* Decodes a chunked body in place. Returns 1 if the body is complete, 0 if more bytes are needed, -EPROTO if the body
 * is malformed. With 1, the body is at p and *ret_len is its length. */
int answer_chunks_join(char *p, size_t len, size_t *ret_len);
