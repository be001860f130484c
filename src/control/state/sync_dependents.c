/* sync_dependents.c - updates the cluster objects that depend on a changed user, group, queue, domain or setting. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "control/state/sync.h"
#include "control/system/settings_table.h"

static uint64_t terms_hash(const struct queue_doc *d)
{
    uint64_t hash =
        hash_pair((uint64_t)d->priority_class, hash_pair((uint64_t)d->time_limit_ns, (uint64_t)d->max_time_ns));
    for (size_t i = 0; i < d->domains_len; i++)
        hash = hash_pair(hash, hash_bytes(d->domains[i], strlen(d->domains[i]), i));
    return hash;
}

struct dependents_before dependents_before(const struct state_entry *e)
{
    struct dependents_before was = {.there = e};
    const char *parent = NULL;
    if (!e)
        return was;
    switch (e->object.kind) {
    case KIND_USER:
        was.disabled = e->view.user.disabled;
        was.level = e->view.user.level;
        parent = e->view.user.group;
        break;
    case KIND_GROUP: was.level = e->object.group_doc->level; break;
    case KIND_SETTING:
        if (strcmp(e->object.id, SETTINGS_ID) == 0)
            was.node_pods = system_setting_number_of(&e->object, SETTING_NODE_PODS);
        break;
    case KIND_QUEUE:
        parent = e->object.queue->parent;
        was.terms = terms_hash(e->object.queue);
        break;
    default: break;
    }
    if (parent)
        (void)snprintf(was.parent, sizeof was.parent, "%s", parent);
    return was;
}

static bool is_finished(const struct object *work)
{
    return work->work->cancelled || work->work->failed || work->work->ended;
}

typedef bool touches(const struct state *s, const struct object *work, const char *id);

static bool of_owner(const struct state *s, const struct object *work, const char *id)
{
    (void)s;
    return strcmp(work->owner, id) == 0;
}

static bool of_group(const struct state *s, const struct object *work, const char *id)
{
    (void)s;
    return strcmp(work->group, id) == 0;
}

static bool of_queue(const struct state *s, const struct object *work, const char *id)
{
    return queue_within(s, work->work->queue, id);
}

/* Updates the dependent workloads. Finished workloads depend on nothing. */
static int sync_workloads_again(struct state *s, const char *id, touches *touched, struct berth_err *err)
{
    for (unsigned k = KIND_APP; k <= KIND_VM; k++)
        for (size_t i = 0; i < s->tables[k].len; i++) {
            const struct object *o = s->tables[k].at[i];
            int rc = !is_finished(o) && touched(s, o, id) ? object_sync(s, s->cluster, o, err) : 0;
            if (rc < 0)
                return rc;
        }
    return 0;
}

/* Updates all nodes, or only those whose domain has changed. */
static int sync_nodes_again(struct state *s, bool all, struct berth_err *err)
{
    for (size_t i = 0; i < s->tables[KIND_NODE].len; i++) {
        struct state_entry *e = (struct state_entry *)s->tables[KIND_NODE].at[i];
        struct parsed_doc parsed;
        struct arena_mark mark = arena_mark(&s->scratch);
        json_t *doc = object_doc(&e->object);
        int rc = doc_parse(KIND_NODE, doc, &s->scratch, &parsed, err);
        if (rc == 0 && (all || strcmp(node_domain(s, e->object.id, &parsed.node.node), e->view.node.domain) != 0)) {
            rc = sync_put(s, s->cluster, &e->object, &parsed, &s->scratch, err);
            view_domain(s, e, &parsed.node.node);
        }
        json_decref(doc);
        arena_rewind(&s->scratch, mark);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int sync_queues_again(struct state *s, struct berth_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < s->tables[KIND_QUEUE].len && rc == 0; i++)
        rc = object_sync(s, s->cluster, s->tables[KIND_QUEUE].at[i], err);
    return rc;
}

int sync_dependents(struct state *s, enum kind kind, const char *id, const struct dependents_before *was,
                    const struct object *o, struct berth_err *err)
{
    if (s->loading)
        return 0;
    struct dependents_before is = dependents_before(o ? (const struct state_entry *)o : NULL);
    bool level = was->level != is.level, parent = strcmp(was->parent, is.parent) != 0;
    switch (kind) {
    case KIND_USER:
        return was->disabled != is.disabled || level || parent || !o ? sync_workloads_again(s, id, of_owner, err) : 0;
    case KIND_GROUP: return level ? sync_workloads_again(s, id, of_group, err) : 0;
    case KIND_QUEUE: {
        int rc = parent ? sync_queues_again(s, err) : 0;
        bool told = parent || was->terms != is.terms; /* priority and policy of a queue are not stored with its jobs */
        return rc < 0 || !told ? rc : sync_workloads_again(s, id, of_queue, err);
    }
    case KIND_DOMAIN: return sync_nodes_again(s, false, err);
    case KIND_SETTING: return was->node_pods != is.node_pods ? sync_nodes_again(s, true, err) : 0;
    default: return 0;
    }
}
