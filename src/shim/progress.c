/* progress.c - what an instance says of its progress, a line each: "42%", "0.42 epoch 3", "420/1000 text", or a note. */
#include "shim/shim.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A decimal number in millionths, without a sign; digits beyond do not count. False: there is none here. */
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

/* Thousandths at the start of a line, and what comes after; -1: the line is a note. */
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
    /* Where the product would not fit, nobody sees the digits that are dropped. */
    return (int)(x > UINT64_MAX / 1000 ? x / (of / 1000) : x * 1000 / of);
}

/* Notes are for people's screens: no control characters, no spaces at its ends. */
static void note_take(struct progress *p, const char *text)
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

static void line_take(struct progress *p)
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

void progress_take(struct progress *p, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            line_take(p);
            p->len = 0;
        } else if (p->len + 1 < sizeof p->line) {
            p->line[p->len++] = bytes[i]; /* the rest of a longer line does not count */
        }
    }
}

void progress_write(struct progress *p, int dir)
{
    char text[LAUNCH_TEXT_MAX + 16];
    int n;

    if (!p->news)
        return;
    n = snprintf(text, sizeof text, "%d %s\n", p->milli, p->note);
    (void)file_write(dir, "progress", text, (size_t)n, false); /* the next word may find a disk with room */
    p->news = false;
}
