#include "control/unit_group.h"

#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

/* What actions may have in common. Two keys that are joined by an action are one group. */
struct group_key {
    uint64_t hash;
    uint32_t parent; /* itself: the first of its group */
};

struct unit_groups {
    const struct state *state;
    VEC(struct group_key) keys;
    struct map map;
};

enum key_kind { KEY_GANG = 1, KEY_AWAITED, KEY_POD, KEY_NODE };

static uint64_t text_key(enum key_kind kind, const char *text, uint64_t number)
{
    return hash_pair(hash_bytes(text, strlen(text), kind), number);
}

static bool same_key(const void *ctx, uint32_t at, const void *hash)
{
    return ((const struct unit_groups *)ctx)->keys.at[at].hash == *(const uint64_t *)hash;
}

static uint32_t key_find(const struct unit_groups *g, uint64_t hash)
{
    return map_find(&g->map, hash, same_key, g, &hash);
}

static void key_add(struct unit_groups *g, uint64_t hash)
{
    if (key_find(g, hash) != MAP_NONE)
        return;
    struct group_key key = {hash, (uint32_t)g->keys.len};
    map_add(&g->map, hash, key.parent);
    vec_push(&g->keys, key);
}

static uint32_t root_of(struct unit_groups *g, uint32_t at)
{
    while (g->keys.at[at].parent != at) {
        g->keys.at[at].parent = g->keys.at[g->keys.at[at].parent].parent;
        at = g->keys.at[at].parent;
    }
    return at;
}

/* ---- what an action has in common with others ---------------------------------------------------------------------- */

static const char *gang_of(const struct unit_groups *g, const char *workload)
{
    const struct object *work = state_find_work(g->state, workload);
    return work ? work->work->gang : "";
}

static bool is_drop(const struct unit_groups *g, const struct berth_action *a)
{
    char text[24];
    const struct object *o =
        a->op == BERTH_STOP ? state_find(g->state, KIND_INSTANCE, str_u64(a->instance, text)) : NULL;
    return o && o->instance->state == BERTH_RESERVED;
}

/* Keys that bring a group into being. */
static void action_add(struct unit_groups *g, const struct berth_action *a)
{
    const char *gang = gang_of(g, a->workload);
    if (*gang)
        key_add(g, text_key(KEY_GANG, gang, 0));
    for (size_t i = 0; a->op == BERTH_RESERVE && i < a->waits_len; i++)
        key_add(g, text_key(KEY_AWAITED, "", a->waits[i]));
    if (a->op == BERTH_LOSE)
        key_add(g, text_key(KEY_POD, a->workload, a->ordinal));
    if (is_drop(g, a))
        key_add(g, text_key(KEY_NODE, a->node, 0));
}

/* Calls back for every key of a group that the action belongs to. */
static void action_keys(struct unit_groups *g, const struct berth_action *a,
                        void (*tell)(struct unit_groups *g, uint32_t key, void *ctx), void *ctx)
{
    const char *gang = gang_of(g, a->workload);
    bool places = a->op == BERTH_PLACE || a->op == BERTH_RESERVE;
    uint64_t hashes[4];
    size_t len = 0;
    if (*gang)
        hashes[len++] = text_key(KEY_GANG, gang, 0);
    if (a->op == BERTH_STOP)
        hashes[len++] = text_key(KEY_AWAITED, "", a->instance);
    if (a->op == BERTH_LOSE || places)
        hashes[len++] = text_key(KEY_POD, a->workload, a->ordinal);
    if (places || a->op == BERTH_PROMOTE || is_drop(g, a))
        hashes[len++] = text_key(KEY_NODE, a->node, 0);
    for (size_t i = 0; i < len + (a->op == BERTH_RESERVE ? a->waits_len : 0); i++) {
        uint32_t key = key_find(g, i < len ? hashes[i] : text_key(KEY_AWAITED, "", a->waits[i - len]));
        if (key != MAP_NONE)
            tell(g, key, ctx);
    }
}

static void join(struct unit_groups *g, uint32_t key, void *ctx)
{
    uint32_t *first = ctx, root = root_of(g, key);
    if (*first == MAP_NONE)
        *first = root;
    else
        g->keys.at[root].parent = root_of(g, *first);
}

static void keep_first(struct unit_groups *g, uint32_t key, void *ctx)
{
    uint32_t *first = ctx;
    if (*first == MAP_NONE)
        *first = root_of(g, key);
}

/* ---- the plan ------------------------------------------------------------------------------------------------------ */

struct unit_groups *unit_groups_new(const struct state *s, const struct berth_plan *plan)
{
    struct unit_groups *g = mem_zalloc(sizeof *g);
    g->state = s;
    for (size_t i = 0; i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        action_add(g, &a);
    }
    for (size_t i = 0; g->keys.len && i < berth_plan_actions(plan); i++) {
        struct berth_action a = berth_plan_action(plan, i);
        uint32_t first = MAP_NONE;
        action_keys(g, &a, join, &first);
    }
    return g;
}

void unit_groups_free(struct unit_groups *g)
{
    if (!g)
        return;
    vec_done(&g->keys);
    map_done(&g->map);
    mem_free(g);
}

uint64_t unit_group_of(struct unit_groups *g, const struct berth_action *a)
{
    uint32_t first = MAP_NONE;
    if (g->keys.len)
        action_keys(g, a, keep_first, &first);
    return first == MAP_NONE ? 0 : (uint64_t)first + 1;
}
