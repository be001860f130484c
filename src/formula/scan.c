/* scan.c - scans the text of a formula; skips strings and comments as Lua's own lexer does. */
#include "formula/scan.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns the number of = in a long bracket "[==["; -1: there is no long bracket. */
static int long_level(const char *at)
{
    int level = 0;
    if (*at != '[')
        return -1;
    for (at++; *at == '='; at++)
        level++;
    return *at == '[' ? level : -1;
}

/* Returns the position after the end of "[==[ ... ]==]". */
static const char *skip_long(const char *at, int level)
{
    for (at += level + 2; *at; at++) {
        int n = 0;
        if (*at != ']')
            continue;
        while (at[1 + n] == '=')
            n++;
        if (n == level && at[1 + n] == ']')
            return at + n + 2;
    }
    return at;
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

/* Returns the position after the characters that follow a backslash: an end of line, which may be two characters; z
 * with all white space after it; or any other character. */
static const char *skip_escape(const char *at)
{
    if (*at == 'z')
        return at + 1 + strspn(at + 1, " \t\n\v\f\r");
    if (is_line_end(*at))
        return at + (is_line_end(at[1]) && at[1] != *at ? 2 : 1);
    return *at ? at + 1 : at;
}

static const char *skip_quoted(const char *at)
{
    char quote = *at++;
    while (*at && *at != quote && !is_line_end(*at))
        at = *at == '\\' ? skip_escape(at + 1) : at + 1;
    return *at == quote ? at + 1 : at;
}

static const char *skip_comment(const char *at)
{
    int level = long_level(at + 2);
    if (level >= 0)
        return skip_long(at + 2, level);
    return at + strcspn(at, "\r\n");
}

static const char *skip_word(const char *at)
{
    while (is_letter(*at))
        at++;
    return at;
}

static int refuse(const char *text, const char *at, const char *why, struct berth_err *err)
{
    int line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return err_set(err, EINVAL, "line %d: %s", line, why);
}

int scan_check(const char *text, struct berth_err *err)
{
    const char *at = text;
    while (*at) {
        int level = long_level(at);
        if (level >= 0) {
            at = skip_long(at, level);
        } else if (*at == '"' || *at == '\'') {
            at = skip_quoted(at);
        } else if (at[0] == '-' && at[1] == '-') {
            at = skip_comment(at);
        } else if (is_letter(*at)) {
            const char *end = skip_word(at);
            if (end - at == 4 && memcmp(at, "_ENV", 4) == 0)
                return refuse(text, at, "_ENV cannot be used in a formula", err);
            at = end;
        } else if (*at == '^') {
            return refuse(text, at, "^ cannot be used in a formula; write pow(x, y)", err);
        } else if (at[0] == '.' && at[1] == '.') {
            return refuse(text, at, ".. cannot be used in a formula: the result is a number, not text", err);
        } else {
            at++;
        }
    }
    return 0;
}

bool scan_contains_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at++)
        if ((at == text || !is_letter(at[-1])) && !is_letter(at[len]))
            return true;
    return false;
}
