/* domain.c - domains: sets of nodes that belong together. A node is in at most one domain: lists are kept disjoint
 * here; of domains with matching labels the first by name counts (sync_domain.c).
 */
#include <errno.h>
#include <string.h>

#include "control/kind/queue.h"
#include "control/state/sync.h"
#include "wire/text/document.h"

static bool among(const char *const *texts, size_t len, const char *text)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(texts[i], text) == 0)
            return true;
    return false;
}

/* Newly listed nodes must exist. A listed node that was deleted may stay in the list, and rejoins the domain by its
 * name. */
static int nodes_check(struct request *c, const json_t *old, const struct domain_doc *d)
{
    struct domain_doc was = {0};
    if (old && domain_doc_read(old, &c->arena, &was, NULL) < 0)
        was = (struct domain_doc){0};
    for (size_t i = 0; i < d->nodes_len; i++)
        if (!among(was.nodes, was.nodes_len, d->nodes[i]) && !change_guard(&c->change, KIND_NODE, d->nodes[i]))
            return err_set(&c->err, EINVAL, "nodes[%zu]: there is no node %.80s; see 'berth get nodes'", i,
                           d->nodes[i]);
    return 0;
}

/* Reads, and so guards, every domain that lists nodes: two concurrent writes cannot both get a node. */
static int domain_disjoint_from(struct request *c, const char *other, const struct domain_doc *d)
{
    struct domain_doc than;
    const json_t *doc = change_read(&c->change, KIND_DOMAIN, other);
    if (!doc || domain_doc_read(doc, &c->arena, &than, NULL) < 0)
        return 0;
    for (size_t i = 0; i < d->nodes_len; i++)
        if (among(than.nodes, than.nodes_len, d->nodes[i]))
            return err_set(&c->err, EINVAL, "nodes[%zu]: %.80s is in domain %s; remove it there first", i, d->nodes[i],
                           other);
    return 0;
}

static int domains_disjoint(struct request *c, const char *id, const struct domain_doc *d)
{
    size_t len, items = c->change.items.len;
    const struct object *const *domains = state_list(c->state, KIND_DOMAIN, &len);
    int rc = 0;
    if (d->nodes_len == 0)
        return 0;
    /* A counter of domains that list nodes, so that a domain being created is seen, too. */
    json_int_t count = (json_int_t)state_next_number(c->state, KIND_DOMAIN);
    (void)change_guard(&c->change, KIND_COUNTER, kinds[KIND_DOMAIN].plural);
    change_put_unguarded(&c->change, KIND_COUNTER, kinds[KIND_DOMAIN].plural, json_pack("{s:I}", "last", count));
    for (size_t i = 0; i < len && rc == 0; i++)
        if (strcmp(domains[i]->id, id) != 0)
            rc = domain_disjoint_from(c, domains[i]->id, d);
    for (size_t i = 0; i < items && rc == 0; i++)
        if (c->change.items.at[i].kind == KIND_DOMAIN && strcmp(c->change.items.at[i].id, id) != 0)
            rc = domain_disjoint_from(c, c->change.items.at[i].id, d);
    return rc;
}

static int check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct domain_doc d;
    (void)k;
    int rc = domain_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = nodes_check(c, old, &d);
    return rc < 0 ? rc : domains_disjoint(c, id, &d);
}

static int on_delete(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *next)
{
    size_t len;
    (void)k;
    (void)old;
    const struct object *const *queues = state_list(c->state, KIND_QUEUE, &len);
    for (size_t i = 0; !next && i < len; i++)
        if (among(queues[i]->queue->domains, queues[i]->queue->domains_len, id) &&
            change_guard(&c->change, KIND_QUEUE, queues[i]->id))
            return err_set(&c->err, EBUSY, "queue %s uses domain %s; change the queue first", queues[i]->id, id);
    return 0;
}

/* Adds a node whose labels match, but that is in another domain. */
static void other_domain_add(const struct request *c, const struct object *o, const struct object *node, json_t *to)
{
    struct node_doc d;
    struct arena arena;
    CLEANUP(json) json_t *doc = object_doc(node);
    arena_init(&arena);
    if (node_doc_read(doc, &arena, &d, NULL) == 0 && domain_has(o->domain, node->id, &d.node))
        (void)json_array_append_new(to, json_pack("{s:s, s:s}", "node", node->id, "domain", node->node->domain));
    arena_done(&arena);
    (void)c;
}

static void show(const struct request *c, const struct object *o, json_t *doc)
{
    size_t len;
    json_t *in = json_array(), *others = json_array();
    const struct object *const *nodes = state_list(c->state, KIND_NODE, &len);
    for (size_t i = 0; i < len; i++) {
        if (strcmp(nodes[i]->node->domain, o->id) == 0)
            (void)json_array_append_new(in, json_string(nodes[i]->id));
        else if (c->args[0]) /* only for a single domain */
            other_domain_add(c, o, nodes[i], others);
    }
    json_t *status = json_pack("{s:o}", "nodes", in);
    if (json_array_size(others))
        (void)json_object_set(status, "elsewhere", others);
    json_decref(others);
    (void)json_object_set_new(doc, "status", status);
}

const struct crud domain_crud = {
    .kind = KIND_DOMAIN,
    .make = PERMIT_NODES,
    .change = PERMIT_NODES,
    .check = check,
    .leaving = on_delete,
    .show = show,
};
