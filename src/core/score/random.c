/* random.c - a pseudo-random score from the snapshot's seed, the workload's id and the node's id. */
#include <string.h>

#include "base/hash.h"
#include "core/score/scores.h"

static bool applies(const struct attempt *t)
{
    (void)t;
    return true;
}

static int32_t score_of(const struct attempt *t, uint32_t p)
{
    const struct berth_snapshot *s = t->c->s;
    const char *workload = snapshot_text(s, t->w->id), *node = snapshot_text(s, t->c->l->id[p]);
    uint64_t h = hash_bytes(node, strlen(node), hash_bytes(workload, strlen(workload), s->seed));
    return (int32_t)(h % (SCORE_ONE + 1));
}

SCORE_ADD(score_of)

const struct score score_random = {
    .name = "random",
    .text = "a random value from the snapshot's seed",
    .when = SCORE_BLOCK,
    .applies = applies,
    .add = add,
};
