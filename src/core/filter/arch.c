/* arch.c - refuses a node of another or of an unknown architecture. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return turn_rules(t)->arch != 0;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    sym want = turn_rules(t)->arch;
    EACH_NODE (p, blocks, bits)
        if (t->c->l->arch[p] != want)
            REFUSE_NODE(p, blocks, bits);
}

const struct filter filter_arch = {
    .name = "arch",
    .text = "has the required architecture",
    .reason = REASON_ARCH,
    .when = FILTER_STATIC,
    .applies = applies,
    .mask = mask,
};
