/* answer.c - parser of HTTP headers and chunked bodies. */
#include "net/client/answer.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum { CHUNK_DIGITS_MAX = 15, NUMBER_DIGITS_MAX = 17 };

/* Returns the start of the next line, with the length of the line without its end in *ret_len; NULL: the line is
 * incomplete. */
static const char *line_end(const char *at, const char *end, size_t *ret_len)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!newline)
        return NULL;
    *ret_len = (size_t)(newline - at);
    if (*ret_len && at[*ret_len - 1] == '\r')
        (*ret_len)--;
    return newline + 1;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int status_read(const char *line, size_t len)
{
    if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ' || !is_digit(line[9]) || !is_digit(line[10]) ||
        !is_digit(line[11]) || (len > 12 && line[12] != ' '))
        return -EPROTO;
    return (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
}

/* Parses the whole text as a number; returns -1 if it is none. */
static int64_t number_read(const char *at, size_t len)
{
    int64_t number = 0;
    if (len == 0 || len > NUMBER_DIGITS_MAX)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(at[i]))
            return -1;
        number = number * 10 + (at[i] - '0');
    }
    return number;
}

static bool is_name(const char *line, size_t len, const char *name)
{
    return len == strlen(name) && strncasecmp(line, name, len) == 0;
}

static bool ends_with(const char *value, size_t len, const char *word)
{
    size_t word_len = strlen(word);
    return len >= word_len && strncasecmp(value + len - word_len, word, word_len) == 0;
}

static int field_read(const char *line, size_t len, struct answer_head *head)
{
    const char *colon = memchr(line, ':', len);
    if (!colon || colon == line)
        return -EPROTO;
    size_t name_len = (size_t)(colon - line);
    const char *value = colon + 1;
    size_t value_len = len - name_len - 1;
    for (; value_len && (*value == ' ' || *value == '\t'); value++)
        value_len--;
    while (value_len && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
        value_len--;
    if (is_name(line, name_len, "Content-Length")) {
        int64_t body_len = number_read(value, value_len);
        if (body_len < 0 || (head->body_len >= 0 && head->body_len != body_len))
            return -EPROTO;
        head->body_len = body_len;
    } else if (is_name(line, name_len, "Transfer-Encoding")) {
        head->chunked = ends_with(value, value_len, "chunked");
        return head->chunked ? 0 : -EPROTO;
    } else if (is_name(line, name_len, "Connection")) {
        head->closes = head->closes || ends_with(value, value_len, "close");
    } else if (is_name(line, name_len, "Retry-After")) {
        int64_t wait_s = number_read(value, value_len);
        head->retry_after_s = wait_s > 0 ? wait_s : 0;
    }
    return 0;
}

static bool has_body(int status)
{
    return status != 204 && status != 304;
}

int answer_head_read(const char *p, size_t len, struct answer_head *ret)
{
    struct answer_head head = {.body_len = -1};
    const char *at = p, *end = p + len;
    bool in_fields = false;
    for (;;) {
        size_t line_len = 0;
        const char *next = line_end(at, end, &line_len);
        if (!next)
            return len > ANSWER_HEAD_MAX ? -EPROTO : 0;
        int rc = in_fields && line_len ? field_read(at, line_len, &head) : 0;
        if (!in_fields) {
            head = (struct answer_head){.body_len = -1, .status = status_read(at, line_len)};
            head.closes = line_len > 7 && at[7] == '0';
            rc = head.status < 100 ? -EPROTO : 0;
        }
        if (rc < 0)
            return rc;
        at = next;
        bool over = in_fields && line_len == 0;
        in_fields = !over;
        if (over && head.status >= 200) /* an interim answer precedes the final one */
            break;
    }
    if (!has_body(head.status) || head.chunked)
        head.body_len = head.chunked && has_body(head.status) ? -1 : 0;
    head.chunked = head.chunked && has_body(head.status);
    head.len = (size_t)(at - p);
    *ret = head;
    return 1;
}

/* ---- chunks ----------------------------------------------------------------------------------------------------- */

/* Parses the chunk size at the start of a line; -1: invalid. */
static int64_t chunk_size(const char *line, size_t len)
{
    int64_t size = 0;
    size_t i = 0;
    for (; i < len && i < CHUNK_DIGITS_MAX; i++) {
        char c = line[i];
        int digit = is_digit(c)            ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            break;
        size = size * 16 + digit;
    }
    bool ended = i == len || line[i] == ';' || line[i] == ' ' || line[i] == '\t';
    return i == 0 || !ended ? -1 : size;
}

/* Reads the chunk at *at: returns its bytes in *ret_data and *ret_len, and moves *at behind it. */
static int chunk_next(const char **at, const char *end, const char **ret_data, size_t *ret_len)
{
    size_t line_len = 0;
    const char *data = line_end(*at, end, &line_len);
    if (!data)
        return end - *at > ANSWER_HEAD_MAX ? -EPROTO : 0;
    int64_t size = chunk_size(*at, line_len);
    if (size < 0)
        return -EPROTO;
    if (size == 0) {
        *ret_len = 0;
        *at = data;
        return 1;
    }
    if (end - data < size + 2)
        return 0;
    if (data[size] != '\r' || data[size + 1] != '\n')
        return -EPROTO;
    *ret_data = data;
    *ret_len = (size_t)size;
    *at = data + size + 2;
    return 1;
}

/* Skips the trailer after the last chunk: ignored fields and an empty line. */
static int trailer_skip(const char *at, const char *end)
{
    size_t line_len = 1;
    while (line_len) {
        const char *next = line_end(at, end, &line_len);
        if (!next)
            return end - at > ANSWER_HEAD_MAX ? -EPROTO : 0;
        at = next;
    }
    return 1;
}

static int chunks_walk(const char *p, size_t len, char *to, size_t *ret_len)
{
    const char *at = p, *end = p + len, *data = NULL;
    size_t all = 0, size = 0;
    int rc;
    while ((rc = chunk_next(&at, end, &data, &size)) > 0 && size) {
        if (to)
            memmove(to + all, data, size);
        all += size;
    }
    if (rc > 0)
        rc = to ? 1 : trailer_skip(at, end); /* the joined body may have overwritten the trailer */
    *ret_len = all;
    return rc;
}

int answer_chunks_join(char *p, size_t len, size_t *ret_len)
{
    size_t all;
    int rc = chunks_walk(p, len, NULL, &all);
    if (rc > 0)
        rc = chunks_walk(p, len, p, ret_len);
    return rc;
}
