/* name.c - refuses every node except the required one. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return turn_rules(t)->node != 0;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    sym want = turn_rules(t)->node;
    EACH_NODE (p, blocks, bits)
        if (t->c->l->id[p] != want)
            REFUSE_NODE(p, blocks, bits);
}

const struct filter filter_name = {
    .name = "name",
    .text = "is the requested node",
    .reason = REASON_NAME,
    .when = FILTER_STATIC,
    .applies = applies,
    .mask = mask,
};
