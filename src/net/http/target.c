/* target.c - percent-decoding and parsing of the query. */
#include "net/http/target.h"

#include <string.h>

#include "base/str.h"

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decodes the bytes before `end` and returns the end of the output; NULL if the encoding is invalid. With `plus`, as in
 * a query, a plus sign is a blank. */
static char *decode(const char *raw, const char *end, bool plus, char *to)
{
    while (raw < end) {
        char c = *raw++;
        if (c == '%') {
            int high = raw < end ? digit_of(raw[0]) : -1;
            int low = high >= 0 && raw + 1 < end ? digit_of(raw[1]) : -1;
            if (low < 0 || (high == 0 && low == 0))
                return NULL;
            c = (char)(high * 16 + low);
            raw += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        *to++ = c;
    }
    *to = '\0';
    return to;
}

/* Finds U+0000 to U+001F and U+007F to U+009F, in valid UTF-8 text. */
static bool has_control(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < len; i++)
        if (p[i] < 0x20 || p[i] == 0x7f || (p[i] == 0xc2 && p[i + 1] < 0xa0))
            return true;
    return false;
}

/* Returns whether the text contains a blank or a control character that is not encoded. */
static bool has_blank(const char *raw)
{
    for (const unsigned char *p = (const unsigned char *)raw; *p; p++)
        if (*p <= ' ' || *p == 0x7f)
            return true;
    return false;
}

size_t target_room(const char *raw)
{
    size_t n = strlen(raw) + 3;
    /* A parameter without '=' has an empty value. */
    for (const char *p = strchr(raw, '&'); p; p = strchr(p + 1, '&'))
        n++;
    return n;
}

const char *target_param(const struct request_target *t, const char *name)
{
    const char *p = t->text + strlen(t->text) + 1;
    for (size_t i = 0; i < t->params; i++) {
        const char *value = p + strlen(p) + 1;
        if (strcmp(p, name) == 0)
            return value;
        p = value + strlen(value) + 1;
    }
    return NULL;
}

/* Appends the name and value of one parameter to *t and advances *end. Returns NULL, or the error. */
static const char *param_parse(const char *raw, const char *raw_end, struct request_target *t, char **end)
{
    const char *equals = memchr(raw, '=', (size_t)(raw_end - raw));
    const char *value_raw = equals ? equals + 1 : raw_end;
    char *name = *end, *name_end = decode(raw, equals ? equals : raw_end, true, name);
    char *value = name_end ? name_end + 1 : NULL, *value_end = value ? decode(value_raw, raw_end, true, value) : NULL;

    if (!value_end)
        return "a percent sign in the query is not followed by two digits other than 00";
    if (name_end == name)
        return "a parameter of the query has no name";
    if (!str_utf8_valid(name, (size_t)(name_end - name)) || !str_utf8_valid(value, (size_t)(value_end - value)))
        return "the query is not UTF-8";
    if (target_param(t, name))
        return "a parameter of the query is given twice";
    if (t->params == TARGET_PARAMS_MAX)
        return "the query has too many parameters";
    t->params++;
    *end = value_end + 1;
    return NULL;
}

bool target_parse(const char *raw, char *room, struct request_target *ret, const char **why)
{
    struct request_target t = {.text = room};
    const char *query = strchr(raw, '?');
    char *end = decode(raw, query ? query : raw + strlen(raw), false, room);

    if (raw[0] != '/')
        *why = "the target of the request does not begin with a slash";
    else if (has_blank(raw))
        *why = "the target of the request has a blank or a control character";
    else if (strchr(raw, '#'))
        *why = "the target of the request has a fragment";
    else if (!end)
        *why = "a percent sign in the path is not followed by two digits other than 00";
    else if (!str_utf8_valid(room, (size_t)(end - room)))
        *why = "the path is not UTF-8";
    else if (has_control(room, (size_t)(end - room)))
        *why = "the path has control characters";
    else
        *why = NULL;
    if (*why)
        return false;

    end++;
    for (const char *p = query ? query + 1 : ""; *p;) {
        const char *stop = strchrnul(p, '&');
        if (stop > p && (*why = param_parse(p, stop, &t, &end)))
            return false;
        p = *stop ? stop + 1 : stop;
    }
    *ret = t;
    return true;
}
