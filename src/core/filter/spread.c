/* spread.c - refuses a node whose domain would get too far above the emptiest one, or that has no domain. */
#include "core/filter/filters.h"

static bool applies(const struct turn *t)
{
    return ties_any(t, TIE_SPREAD, true);
}

static void mask(const struct turn *t, struct range blocks, uint64_t *bits)
{
    for (uint32_t i = 0; i < t->ties_len; i++) {
        const struct tie_state *ts = &t->ties[i];
        if (!ts->eligible)
            continue;
        int32_t most = ts->least + (int32_t)ts->tie->max_skew - (ts->self ? 1 : 0);
        EACH_NODE (p, blocks, bits) {
            uint32_t d = tie_domain(ts, p);
            if (d == NONE || ts->count[d] > most ||
                (ts->gone != NONE && ts->count[d] - (d == ts->gone) > most - ts->least + ts->gone_least))
                NODE_REFUSES(p, blocks, bits);
        }
    }
}

const struct filter filter_spread = {
    .name = "spread",
    .text = "keeps the pods evenly spread",
    .reason = REASON_SPREAD,
    .when = FILTER_BLOCK,
    .applies = applies,
    .mask = mask,
};
