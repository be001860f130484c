/* runtime.c - refuses a node that lists its runtimes and lacks the required one. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return turn_rules(t)->runtime != 0;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    sym want = turn_rules(t)->runtime;
    EACH_NODE (p, blocks, bits) {
        const struct syms *has = &t->c->l->body[p]->runtimes;
        if (has->len && !syms_have(has, want))
            REFUSE_NODE(p, blocks, bits);
    }
}

const struct filter filter_runtime = {
    .name = "runtime",
    .text = "has the required runtime",
    .reason = REASON_RUNTIME,
    .when = FILTER_STATIC,
    .applies = applies,
    .mask = mask,
};
