#include "control/journal/replay_input.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

static void forget(struct replay_touches *t, unsigned kind)
{
    for (size_t i = 0; i < REPLAY_TOUCHES_MAX; i++) {
        mem_free(t->last[kind][i].key);
        t->last[kind][i].key = NULL;
    }
    t->len[kind] = 0;
}

void replay_touches_done(struct replay_touches *t)
{
    for (unsigned k = 0; k < KINDS; k++)
        forget(t, k);
}

void replay_touch(struct replay_touches *t, enum kind kind, uint64_t record, const char *key)
{
    struct replay_touch *at = &t->last[kind][t->len[kind]++ % REPLAY_TOUCHES_MAX];
    mem_free(at->key);
    *at = (struct replay_touch){record, mem_strdup(key)};
}

static void write_touched_ids(const struct replay_touches *t, unsigned kind, struct str *to)
{
    uint64_t len = t->len[kind], kept = len < REPLAY_TOUCHES_MAX ? len : REPLAY_TOUCHES_MAX;
    str_addf(to, "the first input that differs is among the %s", kinds[kind].plural);
    if (len == 0)
        str_add(to, ", none of which was written since they last agreed");
    for (uint64_t i = len - kept; i < len; i++) {
        const struct replay_touch *at = &t->last[kind][i % REPLAY_TOUCHES_MAX];
        str_addf(to, "%s%s by record %" PRIu64, i == len - kept ? "; written since they last agreed: " : ", ", at->key,
                 at->record);
    }
    if (len > kept)
        str_addf(to, ", and %" PRIu64 " before", len - kept);
}

void replay_inputs_compare(struct replay_touches *t, const struct state *s, const json_t *recorded, struct str *to)
{
    if (!recorded)
        return;
    for (unsigned k = 0; k < KINDS; k++) {
        const char *text = json_string_value(json_object_get(recorded, kinds[k].plural));
        uint32_t was = text ? (uint32_t)strtoul(text, NULL, 16) : 0;
        if (was == (uint32_t)state_hash_of(s, (enum kind)k))
            forget(t, k);
        else if (to->len == 0)
            write_touched_ids(t, k, to);
    }
}
