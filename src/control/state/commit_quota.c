/* commit_quota.c - detects changes after which committed instances may count for more, or against other quotas.
 *
 * Instances that are only assumed count here, too: their commit batch may be committed before this change.
 *
 * A commit batch is checked against quotas when it is submitted. Transactions that were submitted earlier are committed
 * between that check and the commit of the batch. A transaction that this file detects writes LEDGER_QUOTAS, which
 * every commit batch guards, so a batch behind such a transaction meets a conflict and is planned again.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "control/state/commit.h"
#include "control/state/sync.h"
#include "core/queue/quota_ledger.h"

static const char *text_at(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

static bool is_true(const json_t *doc, const char *key)
{
    return json_is_true(json_object_get(doc, key));
}

static bool is_finished(const json_t *doc)
{
    return is_true(doc, "cancelled") || is_true(doc, "failed") || is_true(doc, "ended");
}

static const char *queue_of(enum kind kind, const json_t *doc)
{
    const char *queue = text_at(doc, "queue");
    return kind != KIND_JOB ? "" : *queue ? queue : QUEUE_DEFAULT;
}

/* Tells whether the workload has instances that are committed or assumed. */
static bool work_has_instances(struct state *s, const char *id)
{
    const struct berth_cluster *c = state_cluster(s);
    uint32_t slot = cluster_workload_find(c, id);
    return (slot != NONE && cluster_workload(c, slot)->first != NONE) || quota_ledger_has(state_ledger(s), c, id);
}

/* The same for any workload that counts against this quota. */
static bool quota_is_used(struct state *s, const char *kind, const char *id)
{
    const struct berth_cluster *c = state_cluster(s);
    char name[OBJECT_KEY_MAX];
    (void)snprintf(name, sizeof name, "%s/%s", kind, id);
    uint32_t slot = cluster_quota_find(c, name);
    if (slot == NONE)
        return false;
    for (size_t i = 0; i < c->quotas.at[slot].books.len; i++)
        if (c->quotas.at[slot].books.at[i].active || c->quotas.at[slot].books.at[i].later)
            return true;
    return quota_ledger_counts(state_ledger(s), c, slot);
}

static bool work_changes_quota_use(struct state *s, const struct change_item *item)
{
    const struct object *o = state_find(s, item->kind, item->id);
    if (!work_has_instances(s, item->id))
        return false;
    if (!o)
        return true; /* instances left from a deleted workload of this name now belong to the new one */
    const struct work_view *was = o->work;
    bool was_over = was->cancelled || was->failed || was->ended;
    return (was_over && !is_finished(item->doc)) || (was->system && !is_true(item->doc, "system")) ||
           strcmp(was->owner, text_at(item->doc, "owner")) != 0 ||
           strcmp(was->queue, queue_of(item->kind, item->doc)) != 0;
}

/* Tells whether the instance is deleted, ends, or begins to stop. */
static bool instance_frees_quota(const struct object *o, const json_t *now)
{
    const char *state = text_at(now, "state");
    bool stops = strcmp(state, berth_state_name(BERTH_STOPPING)) == 0 && o->instance->state != BERTH_STOPPING;
    return !now || stops || strcmp(state, berth_state_name(BERTH_ENDED)) == 0;
}

static bool follows(const void *ctx, uint32_t value, const void *key)
{
    return cluster_instance(ctx, value)->replaces == *(const uint64_t *)key;
}

/* Tells whether two instances replace the same one: with the replaced instance they count once, without it each
 * counts. */
static bool is_replaced_twice(struct state *s, const struct object *o)
{
    const struct berth_cluster *c = state_cluster(s);
    uint64_t number = o->instance->number;
    bool some = map_find(&c->replacements_by_old, hash_u64(number), follows, c, &number) != MAP_NONE;
    uint32_t slot = some ? cluster_workload_find(c, o->instance->workload) : NONE, n = 0;
    for (uint32_t at = slot == NONE ? NONE : cluster_workload(c, slot)->first; at != NONE;
         at = cluster_instance(c, at)->next_of_workload)
        n += cluster_instance(c, at)->replaces == number;
    return n > 1 || quota_ledger_followers(state_ledger(s), number) > 1;
}

static bool item_changes_quota_use(struct state *s, const struct change_item *item)
{
    const struct object *o = state_find(s, item->kind, item->id);
    const char *parent = NULL;
    switch (item->kind) {
    case KIND_USER:
        parent = text_at(item->doc, "group");
        return *parent && strcmp(o ? o->user->group : "", parent) != 0 && quota_is_used(s, "user", item->id);
    case KIND_QUEUE:
        parent = text_at(item->doc, "parent");
        return *parent && strcmp(o && o->queue->parent ? o->queue->parent : "", parent) != 0 &&
               quota_is_used(s, "queue", item->id);
    case KIND_APP:
    case KIND_JOB:
    case KIND_VM: return item->doc && work_changes_quota_use(s, item);
    case KIND_INSTANCE: return o && instance_frees_quota(o, item->doc) && is_replaced_twice(s, o);
    default: return false;
    }
}

bool commit_affects_quotas(struct state *s, const struct change *change)
{
    for (size_t i = 0; i < change->items.len; i++)
        if (change->items.at[i].write && item_changes_quota_use(s, &change->items.at[i]))
            return true;
    return false;
}
