/* domain.c - refuses a node outside the required domains. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return turn_rules(t)->domains.len > 0;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    const struct syms *want = &turn_rules(t)->domains;
    EACH_NODE (p, blocks, bits)
        if (!syms_have(want, t->c->l->domain[p]))
            REFUSE_NODE(p, blocks, bits);
}

const struct filter filter_domain = {
    .name = "domain",
    .text = "is in one of the domains",
    .reason = REASON_DOMAIN,
    .when = FILTER_STATIC,
    .applies = applies,
    .mask = mask,
};
