/* suggest.h - "did you mean": finds the few names nearest to a misspelled name. */
#pragma once

#include <stddef.h>

enum { SUGGEST_MAX = 3 };

struct suggestions {
    const char *wrong;
    const char *at[SUGGEST_MAX]; /* nearest first; of equal distances the name offered first */
    size_t distance[SUGGEST_MAX];
    size_t len;
};

void suggest_init(struct suggestions *s, const char *wrong);
/* Keeps `name` (not copied) if it is near enough: at most a third of the letters differ, or the misspelled name is a
 * prefix of `name`. */
void suggest_offer(struct suggestions *s, const char *name);

/* Returns the number of insertions, deletions, replacements and swaps of neighbours that turn a into b. Only the first
 * 64 bytes are compared. O(length of a * length of b). */
size_t suggest_distance(const char *a, const char *b);
