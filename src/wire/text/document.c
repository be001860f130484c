/* document.c - reads files; JSON by jansson, YAML by yaml.c. */
#include "wire/text/document.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "wire/text/yaml.h"

enum { READ_STEP = 256 * 1024 };

/* Counts values and depth before a tree is built, so that neither can exhaust memory or stack. Malformed text is
 * counted approximately; the parser rejects it. */
static int json_measure(const char *text, size_t len, const char *name, struct berth_err *err)
{
    size_t nodes = 1, depth = 0, line = 1, line_at = 0;
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\n') {
            line++;
            line_at = i + 1;
        }
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
            continue;
        }
        if (c == '"')
            quoted = true;
        else if (c == '{' || c == '[')
            depth++, nodes++;
        else if (c == '}' || c == ']')
            depth -= depth > 0;
        else if (c == ',' || c == ':')
            nodes++;
        if (depth > DOCUMENT_DEPTH_MAX)
            return err_set(err, E2BIG, "%s:%zu:%zu: nested deeper than %d levels", name, line, i - line_at + 1,
                           DOCUMENT_DEPTH_MAX);
        if (nodes > DOCUMENT_NODES_MAX)
            return err_set(err, E2BIG, "%s:%zu:%zu: more than %d values", name, line, i - line_at + 1,
                           DOCUMENT_NODES_MAX);
    }
    return 0;
}

static int json_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err)
{
    int rc = json_measure(text, len, name, err);
    if (rc < 0)
        return rc;

    json_error_t problem;
    json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &problem);
    if (!doc)
        return err_set(err, json_error_code(&problem) == json_error_out_of_memory ? ENOMEM : EINVAL, "%s:%d:%d: %s",
                       name, problem.line, problem.column, problem.text);
    *ret = doc;
    return 0;
}

/* Returns the offset of the text after a byte-order mark and blanks; `len` for blank text. */
static size_t content_at(const char *text, size_t len)
{
    size_t at = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

    while (at < len && text[at] && strchr(" \t\r\n", text[at]))
        at++;
    return at;
}

static bool is_json(char first)
{
    return first == '{' || first == '[';
}

int document_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err)
{
    if (len > DOCUMENT_BYTES_MAX)
        return err_set(err, EFBIG, "%s: larger than %zu bytes", name, DOCUMENT_BYTES_MAX);
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte-order mark */
        text += 3;
        len -= 3;
    }
    size_t first = content_at(text, len);
    if (first == len)
        return err_set(err, EINVAL, "%s: empty", name);
    if (is_json(text[first]))
        return json_parse(text, len, name, ret, err);
    return yaml_parse(text, len, name, ret, err);
}

static void documents_add(void *ctx, json_t *root, size_t line)
{
    struct documents *d = ctx;
    struct document document = {root, line};

    vec_push(d, document);
}

void documents_done(struct documents *d)
{
    for (size_t i = 0; i < d->len; i++)
        json_decref(d->at[i].root);
    vec_done(d);
}

/* Parses JSON values separated by white space or a line `---`. */
static int json_parse_each(const char *text, size_t len, const char *name, struct documents *ret, struct berth_err *err)
{
    size_t line = 1, at = content_at(text, len), counted = 0;
    int rc = json_measure(text, len, name, err);

    while (rc == 0 && at < len) {
        for (; counted < at; counted++)
            line += text[counted] == '\n';
        if (!is_json(text[at]))
            return err_set(err, EINVAL, "%s:%zu: expected { or [; all documents of a JSON file must be JSON", name,
                           line);
        json_error_t problem;
        json_t *root = json_loadb(text + at, len - at, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &problem);
        if (!root)
            return err_set(err, json_error_code(&problem) == json_error_out_of_memory ? ENOMEM : EINVAL,
                           "%s:%zu:%d: %s", name, line + (size_t)problem.line - 1, problem.column, problem.text);
        documents_add(ret, root, line);
        at += (size_t)problem.position;
        at += content_at(text + at, len - at);
        if (len - at >= 3 && memcmp(text + at, "---", 3) == 0) {
            at += 3;
            at += content_at(text + at, len - at);
        }
    }
    return rc;
}

int documents_parse(const char *text, size_t len, const char *name, struct documents *ret, struct berth_err *err)
{
    if (len > DOCUMENT_BYTES_MAX)
        return err_set(err, EFBIG, "%s: larger than %zu bytes", name, DOCUMENT_BYTES_MAX);
    size_t first = content_at(text, len);
    int rc;

    *ret = (struct documents){0};
    if (first == len)
        return 0;
    assert(text);
    if (is_json(text[first]))
        rc = json_parse_each(text, len, name, ret, err);
    else
        rc = yaml_parse_each(text, len, name, documents_add, ret, err);
    if (rc != 0)
        documents_done(ret);
    return rc;
}

static void fd_cleanup(int *fd)
{
    if (*fd > STDIN_FILENO)
        (void)close(*fd);
}

struct text_buffer {
    char *at;
    size_t len, cap;
};

static void text_cleanup(struct text_buffer *text)
{
    vec_done(text);
}

static const char *path_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* Reads a whole file, or standard input for the path "-". */
static int text_read(const char *path, struct text_buffer *ret, struct berth_err *err)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = path_name(path);
    CLEANUP(fd) int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_set(err, errno, "%s: %s", name, strerror(errno));

    struct stat st;
    size_t expect = READ_STEP;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uintmax_t)st.st_size > DOCUMENT_BYTES_MAX)
            return err_set(err, EFBIG, "%s: larger than %zu bytes", name, DOCUMENT_BYTES_MAX);
        expect = (size_t)st.st_size + 1; /* one byte more, to detect the end of the file */
    }

    int rc = 0;
    vec_reserve(ret, expect);
    while (rc == 0) {
        if (ret->len == ret->cap)
            vec_reserve(ret, ret->len + READ_STEP);
        ssize_t n = read(fd, ret->at + ret->len, ret->cap - ret->len);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            rc = err_set(err, errno, "%s: %s", name, strerror(errno));
        else if (n > 0)
            ret->len += (size_t)n;
        if (ret->len > DOCUMENT_BYTES_MAX)
            rc = err_set(err, EFBIG, "%s: larger than %zu bytes", name, DOCUMENT_BYTES_MAX);
    }
    return rc;
}

int document_read(const char *path, json_t **ret, struct berth_err *err)
{
    CLEANUP(text) struct text_buffer text = {0};
    int rc = text_read(path, &text, err);
    if (rc < 0)
        return rc;
    assert(text.at); /* has room for at least the final NUL */
    return document_parse(text.at, text.len, path_name(path), ret, err);
}

int documents_read(const char *path, struct documents *ret, struct berth_err *err)
{
    CLEANUP(text) struct text_buffer text = {0};
    int rc = text_read(path, &text, err);

    *ret = (struct documents){0};
    return rc == 0 ? documents_parse(text.at, text.len, path_name(path), ret, err) : rc;
}
