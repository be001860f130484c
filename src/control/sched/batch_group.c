#include "control/sched/batch_group.h"

#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "control/kind/queue.h"

/* A key that several actions share. Two keys that one action has are in one group (union-find). */
struct group_key {
    uint64_t hash;
    uint32_t parent; /* index of the parent; its own index: root of the group */
};

struct group_keys {
    VEC(struct group_key) at;
    struct map map;
};

struct batch_groups {
    const struct state *state;
    struct group_keys keys;
    struct group_keys given; /* pods, nodes, volumes and quotas that the plan uses; not groups by themselves */
    bool frees_at_once;      /* some instance goes without having to stop first */
    bool frees;              /* some instance goes at all */
};

typedef void key_tell(struct batch_groups *g, uint64_t hash, void *ctx);

enum key_kind { KEY_GANG = 1, KEY_AWAITED, KEY_POD, KEY_NODE, KEY_RESERVED, KEY_VOLUME, KEY_QUOTA };

static uint64_t text_key(enum key_kind kind, const char *text, uint64_t number)
{
    return hash_pair(hash_bytes(text, strlen(text), kind), number);
}

static bool same_key(const void *ctx, uint32_t at, const void *hash)
{
    return ((const struct group_keys *)ctx)->at.at[at].hash == *(const uint64_t *)hash;
}

static uint32_t key_find(const struct group_keys *k, uint64_t hash)
{
    return map_find(&k->map, hash, same_key, k, &hash);
}

static void key_add(struct group_keys *k, uint64_t hash)
{
    if (key_find(k, hash) != MAP_NONE)
        return;
    struct group_key key = {hash, (uint32_t)k->at.len};
    map_add(&k->map, hash, key.parent);
    vec_push(&k->at, key);
}

static uint32_t root_of(struct group_keys *k, uint32_t at)
{
    while (k->at.at[at].parent != at) {
        k->at.at[at].parent = k->at.at[k->at.at[at].parent].parent;
        at = k->at.at[at].parent;
    }
    return at;
}

/* ---- keys that actions share ------------------------------------------------------------------------------------ */

static const char *gang_of(const struct batch_groups *g, const char *workload)
{
    const struct object *work = state_find_work(g->state, workload);
    return work ? work->work->gang : "";
}

void batch_groups_reserved(struct batch_groups *g, const char *node)
{
    key_add(&g->given, text_key(KEY_RESERVED, node, 0));
}

static bool has_reservations(const struct batch_groups *g, const char *node)
{
    const struct object *o = state_find(g->state, KIND_NODE, node);
    for (size_t i = 0; o && i < o->node->instances_len; i++)
        if (o->node->instances[i]->instance->state == BERTH_RESERVED)
            return true;
    return key_find(&g->given, text_key(KEY_RESERVED, node, 0)) != MAP_NONE;
}

/* Returns whether the action frees reserved resources on its node. */
static bool makes_room(const struct batch_groups *g, const struct berth_action *a)
{
    return a->op == BERTH_STOP && has_reservations(g, a->node);
}

static bool places(const struct berth_action *a)
{
    return a->op == BERTH_PLACE || a->op == BERTH_RESERVE;
}

static const struct object *instance_of(const struct batch_groups *g, const struct berth_action *a)
{
    char text[24];
    return a->instance ? state_find(g->state, KIND_INSTANCE, str_u64(a->instance, text)) : NULL;
}

/* Returns whether the action frees everything that the instance uses at once, cluster-wide resources included. */
static bool frees_at_once(const struct batch_groups *g, const struct berth_action *a)
{
    const struct object *o = a->op == BERTH_STOP ? instance_of(g, a) : NULL;
    return a->op == BERTH_LOSE || (o && o->instance->state == BERTH_RESERVED);
}

/* Calls back for the action's volumes: a volume that becomes free on one node may be used on another. */
static void each_volume(struct batch_groups *g, const struct berth_action *a, key_tell *tell, void *ctx)
{
    if (!g->frees_at_once || (!places(a) && !frees_at_once(g, a)))
        return;
    const struct object *work = state_find_work(g->state, a->workload), *o = instance_of(g, a);
    const struct object *spec = o ? state_spec(g->state, a->workload, o->instance->generation) : NULL;
    json_t *doc = spec ? object_doc(spec) : work ? object_doc(work) : NULL, *volumes = json_object_get(doc, "volumes");
    if (json_is_string(volumes))
        tell(g, text_key(KEY_VOLUME, json_string_value(volumes), 0), ctx);
    for (size_t i = 0; i < json_array_size(volumes); i++)
        if (json_is_string(json_array_get(volumes, i)))
            tell(g, text_key(KEY_VOLUME, json_string_value(json_array_get(volumes, i)), 0), ctx);
    json_decref(doc);
}

static bool goes(const struct berth_action *a)
{
    return a->op == BERTH_LOSE || a->op == BERTH_STOP;
}

static bool takes(const struct berth_action *a)
{
    return places(a) || a->op == BERTH_PROMOTE;
}

/* Returns whether the document limits concurrent use. */
static bool has_limits(const struct object *o, const char *word)
{
    return o && memmem(o->doc.at, o->doc.len, word, strlen(word));
}

/* Calls back for each quota with limits that counts the action's workload: freed quota may be used by any other
 * workload that the quota counts. */
static void each_quota(struct batch_groups *g, const struct berth_action *a, key_tell *tell, void *ctx)
{
    const struct object *work = g->frees && (goes(a) || takes(a)) ? state_find_work(g->state, a->workload) : NULL;
    if (!work)
        return;
    const struct object *user = state_find(g->state, KIND_USER, work->owner);
    const char *group = user ? user->user->group : "", *queue = work->kind == KIND_JOB ? work->work->queue : "";
    if (has_limits(user, "\"limits\""))
        tell(g, text_key(KEY_QUOTA, user->id, KIND_USER), ctx);
    if (*group && has_limits(state_find(g->state, KIND_GROUP, group), "\"limits\""))
        tell(g, text_key(KEY_QUOTA, group, KIND_GROUP), ctx);
    for (unsigned above = 0; queue && *queue && above <= QUEUE_DEPTH_MAX; above++) {
        const struct object *at = state_find(g->state, KIND_QUEUE, queue);
        if (has_limits(at, "\"limits\""))
            tell(g, text_key(KEY_QUOTA, queue, KIND_QUEUE), ctx);
        queue = at ? at->queue->parent : NULL;
    }
    if (work->kind == KIND_JOB && has_limits(work, "\"parallel\""))
        tell(g, text_key(KEY_QUOTA, work->id, KIND_JOB), ctx);
}

static void used_key_add(struct batch_groups *g, uint64_t hash, void *ctx)
{
    (void)ctx;
    key_add(&g->given, hash);
}

static void freed_key_add(struct batch_groups *g, uint64_t hash, void *ctx)
{
    (void)ctx;
    if (key_find(&g->given, hash) != MAP_NONE)
        key_add(&g->keys, hash);
}

static void used_add(struct batch_groups *g, const struct berth_action *a)
{
    if (places(a))
        each_volume(g, a, used_key_add, NULL);
    if (places(a))
        key_add(&g->given, text_key(KEY_POD, a->workload, a->ordinal));
    if (takes(a))
        key_add(&g->given, text_key(KEY_NODE, a->node, 0));
    if (takes(a))
        each_quota(g, a, used_key_add, NULL);
    if (a->op == BERTH_RESERVE)
        batch_groups_reserved(g, a->node);
}

/* Adds the keys that make a group. */
static void action_add(struct batch_groups *g, const struct berth_action *a)
{
    const char *gang = gang_of(g, a->workload);
    uint64_t pod = text_key(KEY_POD, a->workload, a->ordinal), node = text_key(KEY_NODE, a->node, 0);
    if (*gang)
        key_add(&g->keys, text_key(KEY_GANG, gang, 0));
    for (size_t i = 0; a->op == BERTH_RESERVE && i < a->waits_len; i++)
        key_add(&g->keys, text_key(KEY_AWAITED, "", a->waits[i]));
    if (goes(a) && key_find(&g->given, pod) != MAP_NONE)
        key_add(&g->keys, pod);
    if (key_find(&g->given, node) != MAP_NONE && makes_room(g, a))
        key_add(&g->keys, node);
    if (frees_at_once(g, a))
        each_volume(g, a, freed_key_add, NULL);
    if (goes(a))
        each_quota(g, a, freed_key_add, NULL);
}

struct group_visitor {
    void (*tell)(struct batch_groups *g, uint32_t key, void *ctx);
    void *ctx;
    bool any; /* `tell` was called */
};

static void group_key_visit(struct batch_groups *g, uint64_t hash, void *ctx)
{
    struct group_visitor *t = ctx;
    uint32_t key = key_find(&g->keys, hash);
    if (key == MAP_NONE)
        return;
    t->tell(g, key, t->ctx);
    t->any = true;
}

/* Calls back for every group key of the action. An otherwise independent action that uses freed quota is committed
 * later, in a batch of its own. */
static void action_keys(struct batch_groups *g, const struct berth_action *a,
                        void (*tell)(struct batch_groups *g, uint32_t key, void *ctx), void *ctx)
{
    const char *gang = gang_of(g, a->workload);
    struct group_visitor telling = {tell, ctx, false};
    if (*gang)
        group_key_visit(g, text_key(KEY_GANG, gang, 0), &telling);
    if (a->op == BERTH_STOP)
        group_key_visit(g, text_key(KEY_AWAITED, "", a->instance), &telling);
    if (goes(a) || places(a))
        group_key_visit(g, text_key(KEY_POD, a->workload, a->ordinal), &telling);
    if (takes(a) || makes_room(g, a))
        group_key_visit(g, text_key(KEY_NODE, a->node, 0), &telling);
    for (size_t i = 0; a->op == BERTH_RESERVE && i < a->waits_len; i++)
        group_key_visit(g, text_key(KEY_AWAITED, "", a->waits[i]), &telling);
    each_volume(g, a, group_key_visit, &telling);
    if (goes(a) || telling.any)
        each_quota(g, a, group_key_visit, &telling);
}

static void join(struct batch_groups *g, uint32_t key, void *ctx)
{
    uint32_t *first = ctx, root = root_of(&g->keys, key);
    if (*first == MAP_NONE)
        *first = root;
    else
        g->keys.at.at[root].parent = root_of(&g->keys, *first);
}

static void keep_first(struct batch_groups *g, uint32_t key, void *ctx)
{
    uint32_t *first = ctx;
    if (*first == MAP_NONE)
        *first = root_of(&g->keys, key);
}

/* ---- the plan --------------------------------------------------------------------------------------------------- */

struct batch_groups *batch_groups_new(const struct state *s)
{
    struct batch_groups *g = mem_zalloc(sizeof *g);
    g->state = s;
    return g;
}

void batch_groups_read(struct batch_groups *g, const struct berth_plan *plan)
{
    size_t len = berth_plan_actions(plan);
    for (size_t i = 0; i < len && !g->frees_at_once; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        g->frees_at_once = frees_at_once(g, &a);
    }
    for (size_t i = 0; i < len && !g->frees; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        g->frees = goes(&a);
    }
    for (size_t i = 0; i < len; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        used_add(g, &a);
    }
    for (size_t i = 0; i < len; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        action_add(g, &a);
    }
    for (size_t i = 0; g->keys.at.len && i < len; i++) {
        struct berth_action a = berth_plan_action(plan, i);
        uint32_t first = MAP_NONE;
        action_keys(g, &a, join, &first);
    }
}

void batch_groups_free(struct batch_groups *g)
{
    if (!g)
        return;
    vec_done(&g->keys.at);
    map_done(&g->keys.map);
    vec_done(&g->given.at);
    map_done(&g->given.map);
    mem_free(g);
}

uint64_t batch_group_of(struct batch_groups *g, const struct berth_action *a)
{
    uint32_t first = MAP_NONE;
    if (g->keys.at.len)
        action_keys(g, a, keep_first, &first);
    return first == MAP_NONE ? 0 : (uint64_t)first + 1;
}
