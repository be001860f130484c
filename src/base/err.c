/* err.c - error texts. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Replaces control characters, so that an error stays one line even if a hostile name contains line breaks. */
static void text_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

/* Formats into a separate buffer, so that the old error text may be among the arguments. Returns the truncated
 * length. */
static size_t format(char text[static BERTH_ERR_TEXT_MAX], const char *fmt, va_list ap)
{
    text[0] = 0;
    (void)vsnprintf(text, BERTH_ERR_TEXT_MAX, fmt, ap);
    return strlen(text);
}

static size_t append(char text[static BERTH_ERR_TEXT_MAX], size_t len, const char *more)
{
    size_t room = BERTH_ERR_TEXT_MAX - 1 - len, more_len = strnlen(more, room);
    memcpy(text + len, more, more_len);
    text[len + more_len] = 0;
    return len + more_len;
}

static void text_set(struct berth_err *err, const char *text, size_t len)
{
    memcpy(err->text, text, len + 1);
    text_clean(err->text);
}

int err_set(struct berth_err *err, int code, const char *fmt, ...)
{
    if (!err)
        return -code;

    char text[BERTH_ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    size_t len = format(text, fmt, ap);
    va_end(ap);
    text_set(err, text, len);
    err->code = code;
    return -code;
}

int err_prefix(struct berth_err *err, const char *fmt, ...)
{
    if (!err)
        return -1;

    char text[BERTH_ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    size_t len = format(text, fmt, ap);
    va_end(ap);
    len = append(text, len, ": ");
    text_set(err, text, append(text, len, err->text));
    return -err->code;
}
