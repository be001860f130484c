/* taints.c - refuses a node with a taint (NoSchedule, NoExecute) that the pod does not tolerate. */
#include "core/filter/filters.h"

bool taint_tolerated(const struct taint *taint, const struct tolerations *tolerations)
{
    for (uint32_t i = 0; i < tolerations->len; i++) {
        const struct toleration *t = &tolerations->at[i];
        if (t->effect != BERTH_EFFECT_ANY && t->effect != taint->effect)
            continue;
        if (t->key != 0 && t->key != taint->key)
            continue;
        if (t->exists || (t->key != 0 && t->value == taint->value))
            return true;
    }
    return false;
}

static bool applies(const struct attempt *t)
{
    (void)t;
    return true;
}

static void mask(const struct attempt *t, struct block_range blocks, uint64_t *bits)
{
    const struct tolerations *tolerations = &turn_rules(t)->tolerations;
    for (uint32_t b = blocks.from; b < blocks.to; b++)
        BITS_EACH (lane, bits[b - blocks.from] & t->c->l->tainted[b]) {
            const struct node_body *body = t->c->l->body[b * BLOCK + lane];
            for (uint32_t i = 0; i < body->taints_len; i++)
                if (body->taints[i].effect != BERTH_PREFER_NO_SCHEDULE &&
                    !taint_tolerated(&body->taints[i], tolerations))
                    bits[b - blocks.from] &= ~((uint64_t)1 << lane);
        }
}

const struct filter filter_taints = {
    .name = "taints",
    .text = "has no untolerated taint",
    .reason = REASON_TAINT,
    .when = FILTER_STATIC,
    .applies = applies,
    .mask = mask,
};
