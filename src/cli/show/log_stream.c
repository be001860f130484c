#include "cli/show/log_stream.h"

#include <errno.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "wire/text/document.h"

enum { LINE_BYTES_MAX = 1024 * 1024 };

struct follower {
    const struct log_stream *stream;
    struct reconnect reconnect;
    struct str line, cursor, node;
    json_int_t instance;    /* 0: not known yet */
    bool plain;             /* an older daemon: the log comes as raw bytes */
    bool over, hung_up;     /* the log has ended; `piece` returned false */
    bool refused, too_long; /* the daemon ended the log with an error; a line exceeds LINE_BYTES_MAX */
    char error[512];        /* reason of the daemon for the end or interruption; "": none */
};

static void line_parse(struct follower *f, const char *at, size_t len)
{
    CLEANUP(json) json_t *line = json_loadb(at, len, 0, NULL);
    CLEANUP(str) struct str bytes = {0};
    const json_t *out = json_object_get(line, "out");
    const char *cursor = json_string_value(json_object_get(line, "cursor"));
    const char *node = json_string_value(json_object_get(line, "node"));
    const char *error = json_string_value(json_object_get(line, "error"));

    if (node) {
        f->instance = json_integer_value(json_object_get(line, "instance"));
        str_clear(&f->node);
        str_add(&f->node, node);
    }
    if (json_is_true(json_object_get(line, "gap")))
        cli_warn(f->stream->api->cli, "%s: a part of the log was lost to rotation", f->stream->label);
    if (json_is_string(out) && str_add_base64_bytes(&bytes, json_string_value(out), json_string_length(out)) &&
        bytes.len > 0)
        f->hung_up = !f->stream->piece(f->stream->ctx, str_text(&bytes), bytes.len);
    if (cursor) {
        str_clear(&f->cursor);
        str_add(&f->cursor, cursor);
    }
    f->over |= json_is_true(json_object_get(line, "end"));
    if (error) {
        (void)snprintf(f->error, sizeof f->error, "%s", error);
        f->refused = !json_is_true(json_object_get(line, "again"));
    }
}

/* Returns whether this is the head line of a log in JSON lines. An older daemon sends the raw log instead. */
static bool is_head(const struct str *line)
{
    static const char *const heads[] = {"{\"instance\":", "{\"node\":"};

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (strncmp(str_text(line), heads[i], strlen(heads[i])) == 0)
            return true;
    return false;
}

/* Handles the first line of a raw log from an older daemon. */
static void raw_log_begin(struct follower *f)
{
    f->plain = true;
    str_add_char(&f->line, '\n');
    f->hung_up = !f->stream->piece(f->stream->ctx, str_text(&f->line), f->line.len);
    str_clear(&f->line);
}

static bool piece_parse(void *ctx, const char *at, size_t len)
{
    struct follower *f = ctx;

    reconnect_done(&f->reconnect);
    while (len > 0 && !f->hung_up && !f->over && !f->plain) {
        const char *end = memchr(at, '\n', len);
        size_t part = end ? (size_t)(end - at) : len;
        str_add_bytes(&f->line, at, part);
        f->too_long = f->line.len > LINE_BYTES_MAX;
        if (!end || f->too_long)
            return !f->too_long;
        if (f->node.len == 0 && f->line.len > 0 && !is_head(&f->line))
            raw_log_begin(f);
        else if (f->line.len > 0)
            line_parse(f, str_text(&f->line), f->line.len);
        str_clear(&f->line);
        at += part + 1;
        len -= part + 1;
    }
    if (f->plain && len > 0 && !f->hung_up)
        f->hung_up = !f->stream->piece(f->stream->ctx, at, len);
    return !f->hung_up && !f->over;
}

/* Builds the path for the rest of the same instance's log; without a cursor, for new output only. */
static void rest_path(const struct follower *f, struct str *path)
{
    str_addf(path, "/v1/instances/%" JSON_INTEGER_FORMAT "/logs?follow=true&lines=true", f->instance);
    query_add(path, "node", str_text(&f->node));
    if (f->cursor.len > 0)
        query_add(path, "cursor", str_text(&f->cursor));
    else
        query_add(path, "tail", "0");
}

/* Follows the log over one connection until the connection ends. Returns true if the log continues over a new
 * connection; *trouble then has the reason for the end. */
static bool connection_follow(struct follower *f, struct api_error *trouble)
{
    CLEANUP(str) struct str path = {0};
    bool known = f->instance > 0;

    if (known)
        rest_path(f, &path);
    else
        str_add(&path, f->stream->path);
    if (!known)
        query_add(&path, "lines", "true");
    str_clear(&f->line);
    f->error[0] = '\0';
    *trouble = (struct api_error){0};
    int rc = api_stream(f->stream->api, str_text(&path), piece_parse, f, trouble);
    if (f->node.len == 0 && f->line.len > 0) /* last line of a raw log, without '\n' */
        f->hung_up = !f->stream->piece(f->stream->ctx, str_text(&f->line), f->line.len);
    if (f->over || f->hung_up)
        *trouble = (struct api_error){0};
    if (f->over || f->hung_up || (f->node.len == 0 && rc == EXIT_OK))
        return false;
    if (f->refused || f->too_long) {
        trouble->code = EXIT_FAILED;
        err_set(&trouble->err, EPIPE, "%s: the log ends here: %s", f->stream->label,
                f->too_long ? "the server sent a line that is too long" : f->error);
        return false;
    }
    if (f->error[0] || rc == EXIT_OK) {
        trouble->code = EXIT_UNREACHABLE;
        err_set(&trouble->err, ECONNRESET, "%s", f->error[0] ? f->error : "the connection was closed");
    }
    return f->instance > 0 && api_error_is_transient(trouble);
}

int log_stream_follow(const struct log_stream *s, struct api_error *ret_trouble)
{
    struct follower f = {.stream = s, .reconnect = {.notice = s->notice}};
    CLEANUP(str) struct str what = {0};

    str_addf(&what, "the log of %s", s->label);
    while (connection_follow(&f, ret_trouble) && reconnect_wait(&f.reconnect, s->api, str_text(&what), ret_trouble))
        ;
    reconnect_done(&f.reconnect);
    str_done(&f.line);
    str_done(&f.cursor);
    str_done(&f.node);
    return (int)ret_trouble->code;
}
