/* page_size.c - refuses a node that is restricted to another huge-page size than the requested one. */
#include "core/filter/filters.h"

static bool applies(const struct attempt *t)
{
    return turn_rules(t)->page_size_bytes != 0;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    int64_t want = turn_rules(t)->page_size_bytes;
    EACH_NODE (p, blocks, bits) {
        int64_t held_to = t->c->l->body[p]->page_size_bytes;
        if (held_to && held_to != want)
            REFUSE_NODE(p, blocks, bits);
    }
}

const struct filter filter_page_size = {
    .name = "page_size",
    .text = "can use the requested huge-page size",
    .reason = REASON_PAGE_SIZE,
    .when = FILTER_STATIC,
    .applies = applies,
    .mask = mask,
};
