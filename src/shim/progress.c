/* progress.c - parses the progress messages of an instance, one per line: "42%", "0.42 epoch 3", "420/1000 text", or a
 * note.
 */
#include "shim/shim.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Parses an unsigned decimal number in millionths; further digits are ignored. False: there is no number. */
static bool micro_parse(const char **at, uint64_t *ret)
{
    const char *p = *at;
    uint64_t whole = 0, part = 0, unit = 1000000;

    if (!isdigit((unsigned char)*p))
        return false;
    for (; isdigit((unsigned char)*p); p++)
        if (whole < UINT64_C(1000000000000))
            whole = whole * 10 + (uint64_t)(*p - '0');
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++)
            if (unit > 1) {
                unit /= 10;
                part += unit * (uint64_t)(*p - '0');
            }
    *at = p;
    *ret = whole * 1000000 + part;
    return true;
}

/* Parses thousandths at the start of a line and advances `*at` behind them; -1: the line is a note. */
static int milli_parse(const char **at)
{
    const char *p = *at;
    uint64_t x, of = 1000000;

    if (!micro_parse(&p, &x))
        return -1;
    if (*p == '%') {
        p++;
        of = 100 * 1000000;
    } else if (*p == '/') {
        p++;
        if (!micro_parse(&p, &of) || of == 0)
            return -1;
    } else if (x > of) {
        return -1;
    }
    if (*p && *p != ' ' && *p != '\t' && *p != '\r')
        return -1;
    *at = p;
    if (x >= of)
        return 1000;
    /* On overflow the divisor is reduced instead; the lost digits do not matter. */
    return (int)(x > UINT64_MAX / 1000 ? x / (of / 1000) : x * 1000 / of);
}

/* Keeps a note for display: control characters become spaces, leading and trailing spaces are removed. */
static void note_take(struct progress_reader *p, const char *text)
{
    size_t len;

    text += strspn(text, " \t\r");
    (void)snprintf(p->note, sizeof p->note, "%.*s", (int)sizeof p->note - 1, text);
    for (char *c = p->note; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    for (len = strlen(p->note); len > 0 && p->note[len - 1] == ' ';)
        p->note[--len] = 0;
}

static void line_take(struct progress_reader *p)
{
    const char *at = p->line;
    int milli;

    p->line[p->len] = 0;
    at += strspn(at, " \t\r");
    if (!*at)
        return;
    milli = milli_parse(&at);
    if (milli >= 0)
        p->milli = milli;
    note_take(p, at);
    p->news = true;
}

void progress_take(struct progress_reader *p, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            line_take(p);
            p->len = 0;
        } else if (p->len + 1 < sizeof p->line) {
            p->line[p->len++] = bytes[i]; /* the rest of a longer line is ignored */
        }
    }
}

void progress_write(struct progress_reader *p, int dir)
{
    char text[LAUNCH_TEXT_MAX + 16];
    int n;

    if (!p->news)
        return;
    n = snprintf(text, sizeof text, "%d %s\n", p->milli, p->note);
    /* an error is ignored; the next message is written again */
    (void)file_write(dir, "progress", text, (size_t)n, false);
    p->news = false;
}
