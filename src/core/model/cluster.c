/* cluster.c - creates and frees a cluster; resources, ports and volumes, facts. */
#include "core/model/cluster.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/str.h"
#include "core/snapshot/layout.h"

struct berth_cluster *berth_cluster_new(void)
{
    struct berth_cluster *c = mem_zalloc(sizeof *c);
    intern_init(&c->names);
    shapes_init(&c->shapes);
    pages_init(&c->nodes, sizeof(struct node));
    pages_init(&c->workloads, sizeof(struct workload));
    pages_init(&c->instances, sizeof(struct instance));
    pages_init(&c->ports_and_volumes, sizeof(struct port_or_volume));
    pages_init(&c->holds, sizeof(struct port_or_volume_hold));
    pages_init(&c->usages, sizeof(struct usage));
    pages_init(&c->waits, sizeof(struct instance_wait));
    pages_init(&c->label_sets, sizeof(struct label_set));
    pages_init(&c->facts, sizeof(struct fact));
    pages_init(&c->gangs, sizeof(struct gang));
    pages_init(&c->claims, sizeof(struct claim));
    pages_init(&c->pairs, sizeof(struct label_pair));
    pages_init(&c->postings, sizeof(struct label_posting));
    pages_init(&c->uses, sizeof(struct anti_affinity_use));
    pages_init(&c->topology_constraint_uses, sizeof(uint32_t));
    c->apart_unanchored = NONE;
    c->expires_ns = BERTH_NEVER_NS;
    (void)cluster_resource_put(c, "cpu");
    (void)cluster_resource_put(c, "memory");
    (void)cluster_resource_put(c, "pods");
    (void)cluster_label_set_put(c, NULL, 0);
    return c;
}

void berth_cluster_free(struct berth_cluster *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->nodes.len; i++) {
        const struct node *n = cluster_node(c, i);
        mem_free(n->devices);
        mem_free(n->use);
        if (n->body)
            node_body_unref(n->body);
    }
    layout_unref(c->layout);
    struct pages *tables[] = {&c->nodes,    &c->workloads, &c->instances, &c->ports_and_volumes,
                              &c->holds,    &c->usages,    &c->waits,     &c->label_sets,
                              &c->facts,    &c->pairs,     &c->uses,      &c->topology_constraint_uses,
                              &c->postings, &c->gangs};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        pages_done(tables[i]);
    struct map *maps[] = {
        &c->nodes_by_id,          &c->workloads_by_id,  &c->instances_by_id, &c->ports_and_volumes_by_name,
        &c->label_sets_by_labels, &c->facts_by_subject, &c->pairs_by_label,  &c->gangs_by_id,
        &c->replacements_by_old};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        map_done(maps[i]);
    slot_list *free_lists[] = {&c->nodes_free,  &c->workloads_free, &c->instances_free, &c->holds_free,
                               &c->usages_free, &c->waits_free,     &c->facts_free,     &c->uses_free};
    for (size_t i = 0; i < sizeof free_lists / sizeof *free_lists; i++)
        vec_done(free_lists[i]);
    for (size_t r = 0; r < c->books.len; r++)
        vec_done(&c->books.at[r]);
    vec_done(&c->books);
    quotas_done(c);
    vec_done(&c->use_books);
    vec_done(&c->gpu_counts);
    vec_done(&c->resources);
    vec_done(&c->unsettled);
    vec_done(&c->watched);
    vec_done(&c->leaving);
    vec_done(&c->by_id);
    vec_done(&c->by_id_new);
    vec_done(&c->ranks);
    shapes_done(&c->shapes);
    intern_done(&c->names);
    mem_free(c);
}

uint32_t slot_take(struct pages *table, slot_list *unused)
{
    if (unused->len == 0)
        return pages_push(table);
    uint32_t slot = unused->at[--unused->len];
    memset(pages_edit(table, slot), 0, table->record);
    return slot;
}

/* ---- resources -------------------------------------------------------------------------------------------------- */

uint32_t cluster_resource_put(struct berth_cluster *c, const char *name)
{
    sym s = intern_put(&c->names, name);
    for (uint32_t r = 0; r < c->resources.len; r++) /* few, and the common ones come first */
        if (c->resources.at[r].name == s)
            return r;
    struct resource fresh = {.name = s,
                             .page_size_bytes = describe_page_size(name),
                             .optional = strcmp(name, "pods") == 0 || strncmp(name, "attach-", 7) == 0};
    vec_push(&c->resources, fresh);
    if (fresh.optional) { /* every node has it from now on */
        layout_unref(c->layout);
        c->layout = NULL;
    }
    vec_resize(&c->books, c->resources.len);
    return (uint32_t)c->resources.len - 1;
}

bool cluster_resource_known(const struct berth_cluster *c, const char *name)
{
    sym s = intern_find(&c->names, name);
    for (uint32_t r = 0; s != MAP_NONE && r < c->resources.len; r++)
        if (c->resources.at[r].name == s)
            return true;
    return false;
}

int berth_resource_put(struct berth_cluster *c, const struct berth_resource *r, struct berth_err *err)
{
    int rc = describe_resource(c, r, err);
    if (rc)
        return rc;
    uint32_t at = cluster_resource_put(c, r->name); /* may move the table: no address of it is taken before */
    struct resource *to = &c->resources.at[at];
    to->kind = r->kind;
    to->period_ns = r->period_ns;
    c->revision++;
    return 0;
}

struct amount_book *cluster_book(struct berth_cluster *c, uint32_t resource, uint32_t node)
{
    __typeof__(c->books.at) column = &c->books.at[resource];
    if (node >= column->len)
        vec_resize(column, c->nodes.len);
    return &column->at[node];
}

/* ---- ports and volumes ------------------------------------------------------------------------------------------ */

struct port_or_volume_key {
    enum port_or_volume_kind kind;
    sym name;
};

static bool port_or_volume_same(const void *ctx, uint32_t value, const void *key)
{
    const struct port_or_volume *t = pages_at(&((const struct berth_cluster *)ctx)->ports_and_volumes, value);
    const struct port_or_volume_key *k = key;
    return t->kind == k->kind && t->name == k->name;
}

static uint64_t port_or_volume_hash(struct port_or_volume_key k)
{
    return hash_pair(k.kind, k.name);
}

static uint32_t port_or_volume_find(const struct berth_cluster *c, struct port_or_volume_key k)
{
    return map_find(&c->ports_and_volumes_by_name, port_or_volume_hash(k), port_or_volume_same, c, &k);
}

static uint32_t port_or_volume_put(struct berth_cluster *c, struct port_or_volume_key k)
{
    uint32_t found = port_or_volume_find(c, k);
    if (found != MAP_NONE)
        return found;
    uint32_t ix = pages_push(&c->ports_and_volumes);
    *(struct port_or_volume *)pages_edit(&c->ports_and_volumes, ix) = (struct port_or_volume){
        .kind = k.kind, .name = k.name, .driver = NONE, .first = NONE, .whole = NONE, .parts = NONE, .next_part = NONE};
    map_add(&c->ports_and_volumes_by_name, port_or_volume_hash(k), ix);
    return ix;
}

uint32_t cluster_port_put(struct berth_cluster *c, const struct berth_port *port, uint32_t n)
{
    static const char *const names[] = {[BERTH_TCP] = "tcp", [BERTH_UDP] = "udp", [BERTH_SCTP] = "sctp"};
    char text[BERTH_NAME_MAX + 32];
    size_t len = strlen(names[port->protocol]);

    memcpy(text, names[port->protocol], len);
    text[len++] = '/';
    len += strlen(str_u64(port->port + n, text + len));
    uint32_t whole = port_or_volume_put(c, (struct port_or_volume_key){HELD_PORT, intern_put(&c->names, text)});
    if (port_everywhere(port))
        return whole;
    text[len++] = '@';
    memcpy(text + len, port->address, strlen(port->address) + 1);
    uint32_t part = port_or_volume_put(c, (struct port_or_volume_key){HELD_PORT, intern_put(&c->names, text)});
    struct port_or_volume *t = pages_edit(&c->ports_and_volumes, part);
    if (t->whole == NONE) {
        struct port_or_volume *of = pages_edit(&c->ports_and_volumes, whole);
        t = pages_edit(&c->ports_and_volumes, part);
        t->whole = whole;
        t->next_part = of->parts;
        of->parts = part;
    }
    return part;
}

uint32_t cluster_volume_find(const struct berth_cluster *c, const char *id)
{
    sym s = intern_find(&c->names, id);
    return s == MAP_NONE ? NONE : port_or_volume_find(c, (struct port_or_volume_key){HELD_VOLUME, s});
}

int berth_volume_put(struct berth_cluster *c, const struct berth_volume *v, struct berth_err *err)
{
    int rc = describe_volume(c, v, err);
    if (rc)
        return rc;
    char name[BERTH_NAME_MAX + 8] = "attach-";
    memcpy(name + 7, v->driver ? v->driver : "", v->driver ? strlen(v->driver) + 1 : 1);
    bool attached = name[7] != 0;
    uint32_t known = cluster_volume_find(c, v->id);
    const struct port_or_volume *old = known == NONE ? NULL : pages_at(&c->ports_and_volumes, known);
    if (old && old->first != NONE) { /* check before anything is added to the cluster */
        const char *has = old->driver == NONE ? "" : intern_text(&c->names, c->resources.at[old->driver].name);
        if (strcmp(has, attached ? name : "") != 0)
            return err_set(err, EBUSY, "volume \"%s\": its driver cannot change while it is in use", v->id);
    }
    uint32_t driver = attached ? cluster_resource_put(c, name) : NONE;
    uint32_t ix = port_or_volume_put(c, (struct port_or_volume_key){HELD_VOLUME, intern_put(&c->names, v->id)});
    struct port_or_volume *t = pages_edit(&c->ports_and_volumes, ix);
    t->zone = intern_put(&c->names, v->zone);
    t->node = intern_put(&c->names, v->node);
    t->shared = v->shared;
    t->driver = driver;
    c->revision++;
    return 0;
}

uint32_t cluster_hold(struct berth_cluster *c, uint32_t port_or_volume, uint32_t node, uint32_t instance, uint32_t more)
{
    uint32_t ix = slot_take(&c->holds, &c->holds_free);
    struct port_or_volume *t = pages_edit(&c->ports_and_volumes, port_or_volume);
    *(struct port_or_volume_hold *)pages_edit(&c->holds, ix) =
        (struct port_or_volume_hold){port_or_volume, node, instance, t->first, NONE, more};
    if (t->first != NONE)
        ((struct port_or_volume_hold *)pages_edit(&c->holds, t->first))->prev = ix;
    t->first = ix;
    return ix;
}

void cluster_unhold(struct berth_cluster *c, uint32_t hold)
{
    struct port_or_volume_hold h = *(const struct port_or_volume_hold *)pages_at(&c->holds, hold);
    if (h.prev != NONE)
        ((struct port_or_volume_hold *)pages_edit(&c->holds, h.prev))->next = h.next;
    else
        ((struct port_or_volume *)pages_edit(&c->ports_and_volumes, h.port_or_volume))->first = h.next;
    if (h.next != NONE)
        ((struct port_or_volume_hold *)pages_edit(&c->holds, h.next))->prev = h.prev;
    vec_push(&c->holds_free, hold);
}

bool cluster_holds(const struct berth_cluster *c, uint32_t port_or_volume, uint32_t node, uint32_t but)
{
    const struct port_or_volume_hold *h;
    for (uint32_t i = ((const struct port_or_volume *)pages_at(&c->ports_and_volumes, port_or_volume))->first;
         i != NONE; i = h->next) {
        h = pages_at(&c->holds, i);
        if (h->node == node && h->instance != but)
            return true;
    }
    return false;
}

bool berth_volume_used(const struct berth_cluster *c, const char *volume, const char *node)
{
    uint32_t port_or_volume = cluster_volume_find(c, volume), at = cluster_node_find(c, node);
    return port_or_volume != NONE && at != NONE && cluster_holds(c, port_or_volume, at, NONE);
}

/* ---- facts ------------------------------------------------------------------------------------------------------ */

/* The key identifies a fact only if it has no subject; otherwise it is part of the content. */
static uint64_t fact_hash(const struct fact *f)
{
    return hash_pair(hash_pair(f->kind, f->subject), f->subject ? 0 : f->key);
}

static bool fact_same(const void *ctx, uint32_t value, const void *key)
{
    const struct fact *a = pages_at(&((const struct berth_cluster *)ctx)->facts, value), *b = key;
    return a->kind == b->kind && a->subject == b->subject && (a->subject || a->key == b->key);
}

int berth_fact_put(struct berth_cluster *c, const struct berth_fact *from, struct berth_err *err)
{
    if (from->kind > BERTH_FACT_PRESSURE)
        return err_set(err, EINVAL, "fact: kind %d is unknown", (int)from->kind);
    if (from->key && strlen(from->key) > BERTH_NAME_MAX)
        return err_set(err, EINVAL, "fact: the key is longer than %d bytes", BERTH_NAME_MAX);
    struct fact f = {from->kind, from->subject, intern_put(&c->names, from->key), from->value, from->at_ns, true};
    uint32_t found = map_find(&c->facts_by_subject, fact_hash(&f), fact_same, c, &f);
    c->revision++;
    if (from->over) {
        if (found == MAP_NONE)
            return 0;
        ((struct fact *)pages_edit(&c->facts, found))->live = false;
        map_drop(&c->facts_by_subject, fact_hash(&f), found);
        vec_push(&c->facts_free, found);
        return 0;
    }
    if (found == MAP_NONE) {
        found = slot_take(&c->facts, &c->facts_free);
        map_add(&c->facts_by_subject, fact_hash(&f), found);
    }
    *(struct fact *)pages_edit(&c->facts, found) = f;
    return 0;
}
