#include "cli/lib/suggest.h"

#include <stdbool.h>
#include <string.h>

enum { LETTERS_MAX = 64 };

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t suggest_distance(const char *a, const char *b)
{
    size_t a_len = strnlen(a, LETTERS_MAX), b_len = strnlen(b, LETTERS_MAX);
    size_t rows[3][LETTERS_MAX + 1]; /* of the dynamic programming table: row i is rows[i % 3] */

    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = min(above[j - 1] + (a[i - 1] != b[j - 1]), min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min(row[j], above2[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

void suggest_init(struct suggestions *s, const char *wrong)
{
    *s = (struct suggestions){.wrong = wrong};
}

void suggest_offer(struct suggestions *s, const char *name)
{
    size_t wrong_len = strlen(s->wrong);
    size_t distance = suggest_distance(s->wrong, name);
    size_t longer = wrong_len > strlen(name) ? wrong_len : strlen(name);
    bool starts = wrong_len >= 2 && strncmp(name, s->wrong, wrong_len) == 0;

    if (distance * 3 > longer && !starts)
        return;
    size_t at = s->len < SUGGEST_MAX ? s->len : SUGGEST_MAX;
    while (at > 0 && s->distance[at - 1] > distance)
        at--;
    if (at == SUGGEST_MAX)
        return;
    for (size_t i = min(s->len, SUGGEST_MAX - 1); i > at; i--) {
        s->at[i] = s->at[i - 1];
        s->distance[i] = s->distance[i - 1];
    }
    s->at[at] = name;
    s->distance[at] = distance;
    s->len = min(s->len + 1, SUGGEST_MAX);
}
