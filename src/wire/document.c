/* document.c - reading files; JSON by jansson, YAML by yaml.c. */
#include "wire/document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "wire/yaml.h"

enum { READ_STEP = 256 * 1024 };

/* Counts values and depth before a tree is built, so that neither can exhaust memory or stack. Malformed text is
 * measured as well as it goes; the parser refuses it. */
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

int document_parse(const char *text, size_t len, const char *name, json_t **ret, struct berth_err *err)
{
    if (len > DOCUMENT_BYTES_MAX)
        return err_set(err, EFBIG, "%s: larger than %zu bytes", name, DOCUMENT_BYTES_MAX);
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte-order mark */
        text += 3;
        len -= 3;
    }
    size_t first = 0;
    while (first < len && strchr(" \t\r\n", text[first]) && text[first])
        first++;
    if (first == len)
        return err_set(err, EINVAL, "%s: empty", name);
    if (text[first] == '{' || text[first] == '[')
        return json_parse(text, len, name, ret, err);
    return yaml_parse(text, len, name, ret, err);
}

static void fd_cleanup(int *fd)
{
    if (*fd > STDIN_FILENO)
        (void)close(*fd);
}

int document_read(const char *path, json_t **ret, struct berth_err *err)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    CLEANUP(fd) int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_set(err, errno, "%s: %s", name, strerror(errno));

    struct stat st;
    size_t expect = READ_STEP;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uintmax_t)st.st_size > DOCUMENT_BYTES_MAX)
            return err_set(err, EFBIG, "%s: larger than %zu bytes", name, DOCUMENT_BYTES_MAX);
        expect = (size_t)st.st_size + 1; /* room to see the end */
    }

    VEC(char) text = {0};
    int rc = 0;
    vec_reserve(&text, expect);
    while (rc == 0) {
        if (text.len == text.cap)
            vec_reserve(&text, text.len + READ_STEP);
        ssize_t n = read(fd, text.at + text.len, text.cap - text.len);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            rc = err_set(err, errno, "%s: %s", name, strerror(errno));
        else if (n > 0)
            text.len += (size_t)n;
        if (text.len > DOCUMENT_BYTES_MAX)
            rc = err_set(err, EFBIG, "%s: larger than %zu bytes", name, DOCUMENT_BYTES_MAX);
    }
    if (rc == 0)
        rc = document_parse(text.at, text.len, name, ret, err);
    vec_done(&text);
    return rc;
}
