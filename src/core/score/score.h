/* score.h - scores: which of the nodes that may take a pod is the best.
 *
 * A score is a number from 0 to SCORE_ONE (a STATIC one also down to -SCORE_ONE), times its weight in the profile. The
 * node with the highest sum wins, then the one with the lowest position. A score is pure and works on columns:
 *
 *     NODE    is summed into the key of each node (its own part less the shape's part): profile.c and cycle.c;
 *     STATIC  depends on fixed properties of the node and the preferences of the class: one column per preferences;
 *     BLOCK   is evaluated when a block is opened, and has an upper bound before.
 *
 * To add one: score/<name>.c, score/<name>_test.c and a row in score/table.c. State its node part, its shape part and
 * its bound; a loose bound costs time, but never changes the result.
 */
#pragma once

#include "core/snapshot/snapshot.h"

enum { SCORE_SPLIT = 60, SCORE_ONE = SCORE_SPLIT << SHARE_BITS };

struct cycle;
struct attempt;

enum score_when { SCORE_NODE, SCORE_STATIC, SCORE_BLOCK };

struct score {
    const char *name; /* stable: users write it in profiles */
    const char *text;
    enum score_when when;
    bool stepped;   /* BLOCK: it applies the steps of a profile */
    bool gpus_only; /* BLOCK: SCORE_ONE on every node without GPUs */
    /* STATIC: adds weight times the score of each node to the column. May do nothing if the preferences are neutral. */
    void (*fill)(const struct cycle *c, const struct preferences *preferences, int32_t weight, int32_t *column);
    /* BLOCK: returns false if the score is the same for every node; then it is left out. */
    bool (*applies)(const struct attempt *t);
    /* BLOCK: adds weight times the score of each node in `bits`. */
    void (*add)(const struct attempt *t, uint32_t block, uint64_t bits, int32_t weight, int32_t out[BLOCK]);
    /* BLOCK: returns an upper bound for the nodes under this entry; NULL: SCORE_ONE. */
    int32_t (*bound)(const struct attempt *t, uint32_t level, uint32_t entry);
};

extern const struct score *const score_rows[];
extern const size_t scores_len;
