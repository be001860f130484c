/* words.c - quotes text and suggests words. */
#include "wire/text/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 48, WORD_MAX = 48 };

static const char *cut(const char *text, const char *mark, char buf[static QUOTE_MAX])
{
    size_t len = strnlen(text, SHOWN_MAX + 1);
    const char *more = "";
    if (len > SHOWN_MAX) {
        len = SHOWN_MAX;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) /* within a UTF-8 character */
            len--;
        more = "...";
    }
    (void)snprintf(buf, QUOTE_MAX, "%s%.*s%s%s", mark, (int)len, text, more, mark);
    return buf;
}

const char *quote(const char *text, char buf[static QUOTE_MAX])
{
    return cut(text, "\"", buf);
}

const char *shorten(const char *text, char buf[static QUOTE_MAX])
{
    return cut(text, "", buf);
}

/* Returns the number of changes, insertions, deletions and swaps of neighbours that turn a into b. Ignores case, and
 * '-' against '_'. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *here = rows[2];
    for (size_t j = 0; j <= b_len; j++)
        above[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        here[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (here[j - 1] + 1 < best)
                best = here[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            here[j] = best;
        }
        size_t *free_row = before;
        before = above;
        above = here;
        here = free_row;
    }
    return above[b_len];
}

static size_t fold(const char *word, char out[static WORD_MAX])
{
    size_t len = strnlen(word, WORD_MAX);
    for (size_t i = 0; i < len; i++)
        out[i] = word[i] == '-' ? '_' : (char)tolower((unsigned char)word[i]);
    return len;
}

const char *suggest(const char *word, const char *(*candidate)(const void *ctx, size_t i), const void *ctx)
{
    char a[WORD_MAX], b[WORD_MAX];
    if (strnlen(word, WORD_MAX + 1) > WORD_MAX)
        return NULL;
    size_t a_len = fold(word, a), best = a_len < 4 ? 2 : 3; /* larger distances are not similar */
    const char *found = NULL, *name;
    for (size_t i = 0; (name = candidate(ctx, i)); i++) {
        size_t b_len = fold(name, b), d = distance(a, a_len, b, b_len);
        if (d < best) {
            best = d;
            found = name;
        }
    }
    return found;
}
