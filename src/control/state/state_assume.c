/* state_assume.c - assumptions: planned changes that are not committed yet, in the cluster but in no document.
 *
 * A concurrent change of an assumed instance does not end the assumption: the commit batch of the instance will meet a
 * conflict and revert it. Until then other objects in the cluster may depend on the assumption. If a document conflicts
 * with the assumptions, all of them are dropped.
 */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "control/state/state_parts.h"

/* ---- instances -------------------------------------------------------------------------------------------------- */

static bool same_assumed(const void *ctx, uint32_t at, const void *id)
{
    return ((const struct state *)ctx)->assumed.at[at].id == *(const uint64_t *)id;
}

static uint32_t assumed_position(const struct state *s, uint64_t id)
{
    return map_find(&s->assumed_map, hash_u64(id), same_assumed, s, &id);
}

const struct assumed_change *assumed_find(const struct state *s, uint64_t id)
{
    uint32_t at = assumed_position(s, id);
    return at == MAP_NONE ? NULL : &s->assumed.at[at];
}

static void assumed_add(struct state *s, struct assumed_change a)
{
    uint32_t at = assumed_position(s, a.id);
    if (at != MAP_NONE) { /* assumed again before the first assumption was settled */
        s->assumed.at[at] = a;
        return;
    }
    map_add(&s->assumed_map, hash_u64(a.id), (uint32_t)s->assumed.len);
    vec_push(&s->assumed, a);
}

void assumed_settle(struct state *s, uint64_t id)
{
    uint32_t at = assumed_position(s, id), last = (uint32_t)s->assumed.len - 1;
    if (at == MAP_NONE)
        return;
    map_drop(&s->assumed_map, hash_u64(id), at);
    if (at != last) {
        struct assumed_change moved = s->assumed.at[last];
        map_drop(&s->assumed_map, hash_u64(moved.id), last);
        s->assumed.at[at] = moved;
        map_add(&s->assumed_map, hash_u64(moved.id), at);
    }
    s->assumed.len--;
}

bool assumed_confirms(const struct assumed_change *a, const struct berth_instance *i)
{
    return a->fresh || i->state == BERTH_ENDED || (!a->gone && i->state == a->state);
}

int state_assume(struct state *s, const struct berth_instance *instance, struct berth_err *err)
{
    char id[24];
    int rc = berth_instance_put(s->cluster, instance, err);
    if (rc < 0)
        return rc;
    struct assumed_change a = {.id = instance->id,
                               .node = state_entry(s, KIND_NODE, instance->node),
                               .fresh = !state_find(s, KIND_INSTANCE, str_u64(instance->id, id)),
                               .state = instance->state,
                               .since_ns = instance->since_ns};
    assumed_add(s, a);
    return 0;
}

int state_assume_removed(struct state *s, uint64_t id, struct berth_err *err)
{
    int rc = berth_instance_remove(s->cluster, id, err);
    if (rc < 0)
        return rc;
    struct assumed_change a = {.id = id, .gone = true};
    assumed_add(s, a);
    return 0;
}

size_t state_assumed(const struct state *s)
{
    return s->assumed.len;
}

uint64_t state_assumption_losses(const struct state *s)
{
    return s->dropped;
}

/* Removes all assumed instances before their documents are restored, so that they cannot conflict in any order. */
void assumed_drop_all(struct state *s)
{
    VEC(uint64_t) ids = {0};
    char text[24];
    for (size_t i = 0; i < s->assumed.len; i++) {
        vec_push(&ids, s->assumed.at[i].id);
        (void)berth_instance_remove(s->cluster, s->assumed.at[i].id, NULL);
    }
    s->assumed.len = 0;
    map_done(&s->assumed_map);
    s->dropped++;
    for (size_t i = 0; i < ids.len; i++) {
        const struct object *o = state_find(s, KIND_INSTANCE, str_u64(ids.at[i], text));
        if (o)
            (void)object_sync(s, s->cluster, o, NULL); /* may fail: its node may be removed */
    }
    vec_done(&ids);
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

static bool same_fact(const void *ctx, uint32_t at, const void *id)
{
    return strcmp(((const struct state *)ctx)->assumed_facts.at[at], id) == 0;
}

static uint64_t fact_hash(const char *id)
{
    return hash_bytes(id, strlen(id), 0);
}

static uint32_t fact_position(const struct state *s, const char *id)
{
    return map_find(&s->facts_map, fact_hash(id), same_fact, s, id);
}

int state_assume_fact(struct state *s, const struct berth_fact *fact, struct berth_err *err)
{
    int rc = berth_fact_put(s->cluster, fact, err);
    if (rc < 0)
        return rc;
    struct arena_mark mark = arena_mark(&s->scratch);
    const char *id = fact_doc_id(fact, &s->scratch);
    if (fact_position(s, id) == MAP_NONE) {
        map_add(&s->facts_map, fact_hash(id), (uint32_t)s->assumed_facts.len);
        vec_push(&s->assumed_facts, mem_strdup(id));
    }
    arena_rewind(&s->scratch, mark);
    return 0;
}

void state_fact_settle(struct state *s, const char *id)
{
    uint32_t at = fact_position(s, id), last = (uint32_t)s->assumed_facts.len - 1;
    if (at == MAP_NONE)
        return;
    map_drop(&s->facts_map, fact_hash(id), at);
    mem_free(s->assumed_facts.at[at]);
    if (at != last) {
        char *moved = s->assumed_facts.at[last];
        map_drop(&s->facts_map, fact_hash(moved), last);
        s->assumed_facts.at[at] = moved;
        map_add(&s->facts_map, fact_hash(moved), at);
    }
    s->assumed_facts.len--;
}

/* ---- instances and facts ---------------------------------------------------------------------------------------- */

bool state_is_assumed(const struct state *s, enum kind kind, const char *id)
{
    int64_t number;
    if (kind == KIND_FACT)
        return fact_position(s, id) != MAP_NONE;
    return kind == KIND_INSTANCE && str_parse_i64(id, &number) && assumed_find(s, (uint64_t)number);
}

void state_revert(struct state *s, enum kind kind, const char *id)
{
    const struct object *o = state_find(s, kind, id);
    int64_t number;
    if (kind == KIND_INSTANCE && str_parse_i64(id, &number)) {
        assumed_settle(s, (uint64_t)number);
        (void)berth_instance_remove(s->cluster, (uint64_t)number, NULL); /* may fail: already removed */
    }
    if (kind == KIND_FACT)
        state_fact_settle(s, id);
    if (!o || object_sync(s, s->cluster, o, NULL) != -EBUSY)
        return; /* other failures are harmless: the document was in the cluster before; its node may be removed */
    assumed_drop_all(s);
    (void)object_sync(s, s->cluster, o, NULL);
}

void assumed_done(struct state *s)
{
    for (size_t i = 0; i < s->assumed_facts.len; i++)
        mem_free(s->assumed_facts.at[i]);
    vec_done(&s->assumed);
    vec_done(&s->assumed_facts);
    map_done(&s->assumed_map);
    map_done(&s->facts_map);
}
