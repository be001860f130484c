/* client_answer.c - parses an HTTP/1.1 answer that arrives in pieces of any size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench/load/client.h"

enum { LINE_MAX_BYTES = 16384 };

void bench_answer_done(struct bench_answer *a)
{
    str_done(&a->line);
    str_done(&a->body);
    *a = (struct bench_answer){0};
}

void bench_answer_reset(struct bench_answer *a)
{
    struct str line = a->line, body = a->body;

    str_clear(&line);
    str_clear(&body);
    *a = (struct bench_answer){.line = line, .body = body};
}

static int bad(struct berth_err *err, const char *what, const char *line)
{
    return err_set(err, EPROTO, "the server does not speak HTTP as expected: %s '%.80s'", what, line);
}

/* Parses digits of a base up to a character of `ends`; nothing else may precede it. */
static bool number(const char *text, int base, const char *ends, uint64_t *ret)
{
    char *end;

    if (!strchr("0123456789abcdefABCDEF", *text) || !*text)
        return false;
    errno = 0;
    unsigned long long n = strtoull(text, &end, base);
    if (errno || (*end && !strchr(ends, *end)))
        return false;
    *ret = n;
    return true;
}

static int status_line(struct bench_answer *a, const char *line, struct berth_err *err)
{
    uint64_t status;

    if (strncmp(line, "HTTP/1.", 7) != 0 || !line[7] || line[8] != ' ' || !number(line + 9, 10, " ", &status) ||
        status < 100 || status > 599)
        return bad(err, "status", line);
    a->status = (int)status;
    a->at = ANSWER_HEADER;
    return 0;
}

static int header_line(struct bench_answer *a, const char *line, struct berth_err *err)
{
    const char *colon = strchr(line, ':');

    if (!colon)
        return bad(err, "header", line);
    size_t len = (size_t)(colon - line);
    const char *value = colon + 1 + strspn(colon + 1, " \t");
#define IS(name) (len == sizeof(name) - 1 && strncasecmp(line, name, len) == 0)
    if (IS("Content-Length")) {
        if (!number(value, 10, " \t", &a->left))
            return bad(err, "length", line);
        a->sized = true;
    } else if (IS("Transfer-Encoding")) {
        if (strcasecmp(value, "chunked") != 0)
            return bad(err, "encoding", line);
        a->chunked = true;
    } else if (IS("Connection")) {
        a->closes = strcasecmp(value, "close") == 0;
    } else if (IS("Berth-Revision")) {
        if (!number(value, 10, " \t", &a->revision))
            return bad(err, "revision", line);
    }
#undef IS
    return 0;
}

static void header_end(struct bench_answer *a)
{
    if (a->status / 100 == 1) { /* an interim answer; the final one follows */
        a->at = ANSWER_STATUS;
        a->sized = a->chunked = a->closes = false;
        a->left = 0;
    } else if (a->status == 204 || a->status == 304) {
        a->at = ANSWER_COMPLETE;
    } else if (a->chunked) {
        a->at = ANSWER_CHUNK_SIZE;
    } else {
        a->at = a->sized && a->left == 0 ? ANSWER_COMPLETE : ANSWER_BODY;
        a->closes = a->closes || !a->sized;
    }
}

static int line_read(struct bench_answer *a, const char *line, struct berth_err *err)
{
    switch (a->at) {
    case ANSWER_STATUS: return status_line(a, line, err);
    case ANSWER_HEADER:
        if (*line)
            return header_line(a, line, err);
        header_end(a);
        return 0;
    case ANSWER_CHUNK_SIZE:
        if (!number(line, 16, " ;", &a->left))
            return bad(err, "size of a chunk", line);
        a->at = a->left ? ANSWER_CHUNK : ANSWER_TRAILER;
        return 0;
    case ANSWER_CHUNK_END:
        if (*line)
            return bad(err, "end of a chunk", line);
        a->at = ANSWER_CHUNK_SIZE;
        return 0;
    case ANSWER_TRAILER:
        if (!*line)
            a->at = ANSWER_COMPLETE;
        return 0;
    case ANSWER_BODY:
    case ANSWER_CHUNK:
    case ANSWER_COMPLETE: break;
    }
    return 0;
}

/* Parses a line, or stores an incomplete one. */
static ssize_t line_feed(struct bench_answer *a, const char *at, size_t len, struct berth_err *err)
{
    const char *end = memchr(at, '\n', len);
    size_t take = end ? (size_t)(end - at) + 1 : len;

    str_add_bytes(&a->line, at, take);
    if (a->line.len > LINE_MAX_BYTES)
        return bad(err, "line", str_text(&a->line));
    if (!end)
        return (ssize_t)take;
    a->line.len--;
    if (a->line.len && a->line.at[a->line.len - 1] == '\r')
        a->line.len--;
    a->line.at[a->line.len] = '\0';
    int rc = line_read(a, a->line.at, err);
    str_clear(&a->line);
    return rc < 0 ? rc : (ssize_t)take;
}

static size_t body_feed(struct bench_answer *a, const char *at, size_t len)
{
    bool endless = a->at == ANSWER_BODY && !a->sized;
    size_t take = !endless && a->left < len ? (size_t)a->left : len;

    str_add_bytes(&a->body, at, take);
    if (endless)
        return take;
    a->left -= take;
    if (a->left == 0)
        a->at = a->at == ANSWER_CHUNK ? ANSWER_CHUNK_END : ANSWER_COMPLETE;
    return take;
}

ssize_t bench_answer_feed(struct bench_answer *a, const char *at, size_t len, struct berth_err *err)
{
    size_t done = 0;

    while (done < len && a->at != ANSWER_COMPLETE) {
        if (a->at == ANSWER_BODY || a->at == ANSWER_CHUNK) {
            done += body_feed(a, at + done, len - done);
            continue;
        }
        ssize_t n = line_feed(a, at + done, len - done, err);
        if (n < 0)
            return n;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

bool bench_answer_ended(struct bench_answer *a)
{
    if (a->at == ANSWER_BODY && !a->sized)
        a->at = ANSWER_COMPLETE;
    return a->at == ANSWER_COMPLETE;
}
