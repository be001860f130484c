/* suggest.h - "did you mean": of many names the few that are nearest to a wrong one. */
#pragma once

#include <stddef.h>

enum { SUGGEST_MAX = 3 };

struct suggest {
    const char *wrong;
    const char *at[SUGGEST_MAX]; /* nearest first; of equals the one offered first */
    size_t distance[SUGGEST_MAX];
    size_t len;
};

void suggest_init(struct suggest *s, const char *wrong);
/* Keeps `name` (not copied) if it is near enough: a third of the letters may differ, or the wrong one is its start. */
void suggest_offer(struct suggest *s, const char *name);

/* Insertions, deletions, replacements and swaps of neighbours that lead from a to b; anything longer than 64 bytes is
 * cut. O(length of a * length of b). */
size_t suggest_distance(const char *a, const char *b);
