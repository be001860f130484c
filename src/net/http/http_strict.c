/* http_strict.c - checks the bytes of a header strictly.
 *
 * libmicrohttpd before 0.9.77 accepts bare line feeds as line ends, folded lines, and any text as a name. A proxy in
 * front of the daemon may parse such a header differently and see other requests than the daemon. libmicrohttpd parses
 * in place: each line stays at its position in the buffer; NULs replace the blanks of the first line, the colons and
 * the line ends, and a CR LF becomes two NULs. The check walks the buffer to find the lines again: every name must
 * begin where the preceding line has ended with CR LF, and the last line must end where the header ends. A NUL in the
 * request, a folded line and a bare CR or LF break the walk. Later versions of libmicrohttpd reject all of these
 * themselves (MHD_OPTION_CLIENT_DISCIPLINE_LVL, http.c).
 */
#include <string.h>

#include "net/http/http_inner.h"

/* Returns the position after a line that ends with CR LF, which libmicrohttpd has replaced by NULs. NULL: no such
 * end. */
static const char *line_end(const char *text, size_t len, const char *end)
{
    const char *at = text + len;
    return at <= end - 2 && at[0] == 0 && at[1] == 0 ? at + 2 : NULL;
}

/* Returns whether the text is a token of RFC 9110. */
static bool is_token(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";
    size_t len = strspn(text, letters);
    return len > 0 && text[len] == 0;
}

struct header_scan {
    const char *at, *end; /* start of the next line; end of the header */
    const char *fault;
};

static enum MHD_Result walk_line(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct header_scan *w = ctx;

    (void)kind;
    if (!is_token(name))
        w->fault = "the name of a header has a blank or another character that no name has";
    else if (!HTTP_STRICT_CHECK)
        return MHD_YES;
    else if (name != w->at || !value || value <= name + strlen(name) || value > w->end)
        w->fault = "a line of the header is folded, or does not end with CR LF";
    else if (!(w->at = line_end(value, strlen(value), w->end)))
        w->fault = "a line of the header has a NUL, or does not end with CR LF";
    return w->fault ? MHD_NO : MHD_YES;
}

const char *strict_fault(const struct http_request *x, const char *method, const char *version, size_t header_bytes)
{
    struct header_scan w = {.end = method + header_bytes};

    if (!is_token(method))
        return "the method is no word";
    if (strcmp(version, MHD_HTTP_VERSION_1_1) != 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
        return "the version is neither HTTP/1.1 nor HTTP/1.0";
    if (HTTP_STRICT_CHECK &&
        (x->line_target != method + strlen(method) + 1 || version != x->line_target + x->line_target_len + 1))
        return "the first line is not METHOD TARGET VERSION with one blank between";
    if (HTTP_STRICT_CHECK && !(w.at = line_end(version, strlen(version), w.end)))
        return "the first line does not end with CR LF";
    (void)MHD_get_connection_values(x->conn->mhd, MHD_HEADER_KIND, walk_line, &w);
    if (w.fault || !HTTP_STRICT_CHECK)
        return w.fault;
    return line_end(w.at, 0, w.end) == w.end ? NULL : "the header does not end with CR LF CR LF";
}
