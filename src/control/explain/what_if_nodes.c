#include "control/explain/what_if_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

#define AT(field) offsetof(struct what_if_node, field)
static const struct key node_rows[] = {
    KEY("like", "node", "copies of this node", text_read, .at = AT(like)),
    KEY("label", "text", "instead: copies of the nodes with this label, `KEY=VALUE` or `KEY`", text_read,
        .at = AT(label)),
    KEY("count", "whole number", "the number of nodes to add; below 0: to remove", i32_read, .at = AT(count)),
};
#undef AT
static KEY_TABLE(node_keys_of, "what-if node", node_rows);

static int node_finish(struct reader *r, void *item)
{
    const struct what_if_node *n = item;
    if (!n->like == !n->label)
        return err_set(r->err, EINVAL, "give either `like`, a node, or `label`, KEY=VALUE");
    if (n->count == 0 || abs(n->count) > WHAT_IF_NODES_MAX)
        return err_set(r->err, EINVAL, "count: expected the number of nodes to add, or below 0 to remove; at most %d",
                       WHAT_IF_NODES_MAX);
    return 0;
}

const struct object_kind what_if_node_kind = {.table = &node_keys_of,
                                              .size = sizeof(struct what_if_node),
                                              .finish = node_finish};

/* ---- matching nodes --------------------------------------------------------------------------------------------- */

/* The criterion of "like that node" or "with that label". */
struct node_pattern {
    const struct object *like; /* NULL: by label */
    struct node_doc doc;       /* of `like` */
    const char *key, *value;   /* the label; value NULL: any */
    const char *text;          /* the label as JSON text, for a quick search; NULL: needs escapes */
};

static bool has_label(const struct berth_node *n, const char *key, const char *value)
{
    for (size_t i = 0; i < n->labels_len; i++)
        if (strcmp(n->labels[i].key, key) == 0)
            return !value || strcmp(n->labels[i].value ? n->labels[i].value : "", value) == 0;
    return false;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_model(const char *a, const char *b)
{
    return strcasecmp(a ? a : "", b ? b : "") == 0;
}

static bool same_hardware(const struct berth_node *a, const struct berth_node *b)
{
    if (a->gpus_len != b->gpus_len || !same_text(a->arch, b->arch))
        return false;
    for (size_t i = 0; i < a->gpus_len; i++)
        if (!same_model(a->gpus[i].model, b->gpus[i].model) || a->gpus[i].memory_bytes != b->gpus[i].memory_bytes)
            return false;
    return true;
}

/* Returns the label as JSON text; NULL if a character would need an escape. */
static const char *label_text(struct arena *arena, const char *key, const char *value)
{
    for (const char *text = key; text; text = text == key ? value : NULL)
        for (const char *at = text; *at; at++)
            if (*at < ' ' || *at == '"' || *at == '\\' || *at > '~')
                return NULL;
    CLEANUP(str) struct str text = {0};
    str_addf(&text, "\"%s\":\"", key);
    if (value)
        str_addf(&text, "%s\"", value);
    return arena_strdup(arena, text.at);
}

/* A quick check before the document is parsed, because nodes may be many. */
static bool may_match(const struct request *c, const struct node_pattern *p, const struct object *node)
{
    static const char *const of[] = {"cpu", "memory", "gpu"};
    if (!p->like)
        return !p->text || memmem(node->doc.at, node->doc.len, p->text, strlen(p->text));
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        struct berth_node_use a = {0}, b = {0};
        (void)berth_node_use(state_cluster(c->state), p->like->id, of[i], &a);
        (void)berth_node_use(state_cluster(c->state), node->id, of[i], &b);
        if (a.there != b.there)
            return false;
    }
    return strcmp(p->like->node->domain, node->node->domain) == 0;
}

static bool matches(const struct request *c, const struct node_pattern *p, const struct object *node,
                    struct arena *arena)
{
    struct node_doc d;
    CLEANUP(json) json_t *doc = NULL;
    if (node == p->like)
        return true;
    if (!may_match(c, p, node))
        return false;
    doc = object_doc(node);
    struct arena_mark mark = arena_mark(arena);
    bool is = node_doc_read(doc, arena, &d, NULL) == 0 &&
              (p->like ? same_hardware(&p->doc.node, &d.node) : p->key && has_label(&d.node, p->key, p->value));
    arena_rewind(arena, mark);
    return is;
}

/* ---- drafts ----------------------------------------------------------------------------------------------------- */

struct node_draft {
    struct request *c;
    struct arena *arena;
    struct what_if_nodes *to;
    const struct object **by_load; /* every node, least loaded first; NULL: not sorted yet */
    bool *gone;                    /* nodes of `by_load` that are removed already */
    size_t nodes_len;
    unsigned number; /* number of the last added node */
};

static void draft_add(struct node_draft *d, const char *id, json_t *doc, bool gone)
{
    (void)json_array_append_new(d->to->docs, doc);
    d->to->drafts[d->to->drafts_len++] =
        (struct forecast_draft){.kind = KIND_NODE, .id = arena_strdup(d->arena, id), .doc = doc, .gone = gone};
}

/* Adds a copy of a node as if it had just joined: keeps the hardware, and removes the node's own state. */
static void draft_new(struct node_draft *d, const struct object *like)
{
    static const char *const own[] = {"address",  "disabled",       "was",           "epoch", "seq",
                                      "joined",   "probed",         "ceiling",       "since", "used",
                                      "consumed", "consumed_since", "consumed_begun"};
    char id[32];
    json_t *doc = object_doc(like);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        (void)json_object_del(doc, own[i]);
    size_t at;
    json_t *gpu;
    json_array_foreach(json_object_get(doc, "gpus"), at, gpu)
    {
        (void)json_object_del(gpu, "unhealthy");
        (void)json_object_del(gpu, "uuid");
    }
    do
        (void)snprintf(id, sizeof id, "what-if-%u", ++d->number);
    while (state_find(d->c->state, KIND_NODE, id));
    (void)json_object_set_new(doc, "id", json_string(id));
    (void)json_object_set_new(doc, "state", json_string(berth_node_state_name(BERTH_NODE_READY)));
    if (*like->node->domain)
        (void)json_object_set_new(doc, "domain", json_string(like->node->domain));
    draft_add(d, id, doc, false);
    d->to->added++;
}

static void draft_removed(struct node_draft *d, const struct object *node)
{
    char now[TIMESTAMP_MAX];
    json_t *doc = object_doc(node);
    (void)json_object_set_new(doc, "state", json_string(berth_node_state_name(BERTH_NODE_DRAINING)));
    (void)json_object_set_new(doc, "since", json_string(timestamp_text(d->c->now_ns, now)));
    draft_add(d, node->id, doc, true);
}

static int by_load(const void *a, const void *b)
{
    const struct object *x = *(const struct object *const *)a, *y = *(const struct object *const *)b;
    if (x->node->instances_len != y->node->instances_len)
        return x->node->instances_len < y->node->instances_len ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void nodes_sort(struct node_draft *d)
{
    size_t len;
    const struct object *const *nodes = state_list(d->c->state, KIND_NODE, &len);
    if (d->by_load)
        return;
    d->by_load = ARENA_ARRAY(d->arena, const struct object *, len + 1);
    d->gone = ARENA_ARRAY(d->arena, bool, len + 1);
    d->nodes_len = len;
    memcpy(d->by_load, nodes, len * sizeof *nodes);
    qsort(d->by_load, len, sizeof *d->by_load, by_load);
}

/* Removes nodes. Nodes that accept no work are skipped: they have no effect. */
static int remove_nodes(struct node_draft *d, const struct node_pattern *p, size_t count)
{
    size_t left = count;
    nodes_sort(d);
    for (size_t i = 0; i < d->nodes_len && left; i++) {
        const struct object *node = d->by_load[i];
        if (d->gone[i] || node->node->state != BERTH_NODE_READY || !matches(d->c, p, node, d->arena))
            continue;
        draft_removed(d, node);
        d->gone[i] = true;
        left--;
    }
    return left ? err_set(&d->c->err, EINVAL, "nodes: count: only %zu such nodes are ready, not %zu", count - left,
                          count)
                : 0;
}

/* Returns the matching node with the lowest id. */
static const struct object *first_like(struct node_draft *d, const struct node_pattern *p)
{
    size_t len;
    const struct object *const *nodes = state_list(d->c->state, KIND_NODE, &len);
    for (size_t i = 0; i < len && !p->like; i++)
        if (matches(d->c, p, nodes[i], d->arena))
            return nodes[i];
    return p->like;
}

static int pattern_read(struct node_draft *d, const struct what_if_node *spec, struct node_pattern *ret,
                        json_t **ret_doc)
{
    char quoted[QUOTE_MAX];
    *ret = (struct node_pattern){0};
    if (spec->label) {
        char *key = arena_strdup(d->arena, spec->label), *is = strchr(key, '=');
        if (is)
            *is = 0;
        ret->key = key;
        ret->value = is ? is + 1 : NULL;
        ret->text = label_text(d->arena, key, ret->value);
        return *key ? 0 : err_set(&d->c->err, EINVAL, "nodes: label: expected KEY=VALUE, or KEY");
    }
    ret->like = state_find(d->c->state, KIND_NODE, spec->like);
    if (!ret->like)
        return err_set(&d->c->err, ENOENT, "no node %s; see 'berth get nodes'", quote(spec->like, quoted));
    *ret_doc = object_doc(ret->like); /* the parsed node refers to its texts */
    return node_doc_read(*ret_doc, d->arena, &ret->doc, &d->c->err);
}

static int draft(struct node_draft *d, const struct what_if_node *spec)
{
    struct node_pattern pattern;
    CLEANUP(json) json_t *doc = NULL;
    char quoted[QUOTE_MAX];
    int rc = pattern_read(d, spec, &pattern, &doc);
    if (rc < 0)
        return rc;
    if (spec->count < 0)
        return remove_nodes(d, &pattern, (size_t)-spec->count);
    const struct object *like = first_like(d, &pattern);
    if (!like)
        return err_set(&d->c->err, ENOENT, "no node has the label %s; see 'berth get nodes -o yaml'",
                       quote(spec->label, quoted));
    for (int32_t i = 0; i < spec->count; i++)
        draft_new(d, like);
    return 0;
}

int what_if_nodes(struct request *c, const struct what_if_node *spec, size_t len, struct arena *arena,
                  struct what_if_nodes *ret)
{
    size_t all = 0;
    int rc = 0;
    for (size_t i = 0; i < len && i < WHAT_IF_LISTED_MAX; i++)
        all += (size_t)abs(spec[i].count);
    if (len > WHAT_IF_LISTED_MAX || all > WHAT_IF_NODES_MAX)
        return err_set(&c->err, EINVAL, "nodes: at most %d entries and %d nodes are allowed", WHAT_IF_LISTED_MAX,
                       WHAT_IF_NODES_MAX);
    struct what_if_nodes made = {.docs = json_array(), .drafts = ARENA_ARRAY(arena, struct forecast_draft, all + 1)};
    struct node_draft d = {.c = c, .arena = arena, .to = &made};
    for (size_t i = 0; i < len && rc == 0; i++)
        rc = draft(&d, &spec[i]);
    if (rc < 0)
        what_if_nodes_done(&made);
    *ret = rc < 0 ? (struct what_if_nodes){0} : made;
    return rc;
}

void what_if_nodes_done(struct what_if_nodes *n)
{
    json_decref(n->docs);
    n->docs = NULL;
}
