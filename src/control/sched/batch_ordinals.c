#include "control/sched/batch_ordinals.h"

#include "base/arena.h"
#include "base/bits.h"

enum { FEW = 64, ORDINALS_MAX = 1 << 20 };

bool batch_ordinal_used(struct batch_used_ordinals *t, const struct state *s, const struct object *work,
                        uint32_t ordinal, struct arena *arena)
{
    const struct object *const *at = (const struct object *const *)work->work->instances;
    uint64_t len = 0;
    if (work->work->instances_len < FEW)
        return true;
    if (t->work != work || t->revision != state_revision(s)) {
        for (size_t i = 0; i < work->work->instances_len; i++)
            if (at[i]->instance->ordinal >= len)
                len = (uint64_t)at[i]->instance->ordinal + 1;
        if (len > ORDINALS_MAX)
            return true;
        *t = (struct batch_used_ordinals){work, state_revision(s), len, ARENA_ARRAY(arena, uint64_t, bits_words(len))};
        for (size_t i = 0; i < work->work->instances_len; i++)
            bits_add(t->bits, at[i]->instance->ordinal);
    }
    return ordinal < t->len && bits_has(t->bits, ordinal);
}
