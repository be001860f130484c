/* sync_domain.c - determines the domain of a node. */
#include <string.h>

#include "base/str.h"
#include "control/state/sync.h"

static const char *label_of(const struct berth_node *n, const char *key)
{
    for (size_t i = 0; i < n->labels_len; i++)
        if (strcmp(n->labels[i].key, key) == 0)
            return n->labels[i].value ? n->labels[i].value : "";
    return NULL;
}

static bool among(const char *const *texts, size_t len, const char *text)
{
    for (size_t i = 0; i < len; i++)
        if (strcmp(texts[i], text) == 0)
            return true;
    return false;
}

/* Evaluates an expression as defined at struct berth_expr in berth.h. */
static bool expr_holds(const struct berth_expr *e, const struct berth_node *n)
{
    const char *value = label_of(n, e->key);
    int64_t is, than;
    switch (e->match) {
    case BERTH_IN: return value && among(e->values, e->values_len, value);
    case BERTH_NOT_IN: return !value || !among(e->values, e->values_len, value);
    case BERTH_EXISTS: return value;
    case BERTH_NOT_EXISTS: return !value;
    case BERTH_GT:
    case BERTH_LT: break;
    }
    if (!value || e->values_len != 1 || !str_parse_i64(value, &is) || !str_parse_i64(e->values[0], &than))
        return false;
    return e->match == BERTH_GT ? is > than : is < than;
}

static bool term_holds(const struct berth_term *t, const struct berth_node *n)
{
    for (size_t i = 0; i < t->exprs_len; i++)
        if (!expr_holds(&t->exprs[i], n))
            return false;
    return t->exprs_len > 0;
}

bool domain_has(const struct domain_doc *d, const char *id, const struct berth_node *node)
{
    if (among(d->nodes, d->nodes_len, id))
        return true;
    for (size_t i = 0; i < d->require_len; i++)
        if (term_holds(&d->require[i], node))
            return true;
    return false;
}

const char *node_domain(const struct state *s, const char *id, const struct berth_node *node)
{
    const struct object_table *domains = &s->tables[KIND_DOMAIN];
    const struct object *found = NULL;
    for (size_t i = 0; i < domains->len; i++) {
        const struct object *o = domains->at[i];
        if (among(o->domain->nodes, o->domain->nodes_len, id))
            return o->id;
        /* While loading, the list may not be sorted yet. */
        if ((!found || strcmp(o->id, found->id) < 0) && domain_has(o->domain, id, node))
            found = o;
    }
    return found ? found->id : node->domain ? node->domain : "";
}
