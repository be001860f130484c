/* spread_json.c - topology constraints of a pod: spread, affinity (near) and anti-affinity (apart). */
#include <errno.h>

#include "wire/doc/objects.h"

/* Without `select`, a constraint selects the pods with the labels of the workload itself. */
static int select_default(struct reader *r, struct berth_term *select)
{
    if (select->exprs)
        return 0;
    if (!r->labels_len)
        return err_set(r->err, EINVAL, "select: missing, and the workload has no labels to use instead");
    struct berth_expr *exprs = ARENA_ARRAY(r->arena, struct berth_expr, r->labels_len);
    for (size_t i = 0; i < r->labels_len; i++) {
        const char **value = ARENA_NEW(r->arena, const char *);
        *value = r->labels[i].value ? r->labels[i].value : "";
        exprs[i] = (struct berth_expr){r->labels[i].key, BERTH_IN, value, 1};
    }
    select->exprs = exprs;
    select->exprs_len = r->labels_len;
    return 0;
}

/* ---- spread ------------------------------------------------------------------------------------------------------ */

static const struct enum_word spread_words[] = {
    {"possible",  BERTH_SPREAD_POSSIBLE },
    {"all",       BERTH_SPREAD_ALL      },
    {"required",  BERTH_SPREAD_REQUIRED },
    {"tolerated", BERTH_SPREAD_TOLERATED},
    {"both",      BERTH_SPREAD_BOTH     },
    {NULL,        0                     },
};

#define AT(field) offsetof(struct berth_spread, field)
static const struct key spread_rows[] = {
    KEY("topology", "text", "`node`, `zone`, `rack`, or a label whose values define the domains", text_read,
        .at = AT(topology)),
    KEY("select", "conditions",
        "condition on the labels of workloads whose pods count; default: the workload's "
        "own labels",
        select_read, .at = AT(select)),
    KEY("max_skew", "whole number", "maximum skew above the emptiest domain; default: 1", u32_read, .at = AT(max_skew)),
    KEY("soft", "true or false", "a preference, not a requirement", bool_read, .at = AT(soft)),
    KEY("min_domains", "whole number", "minimum number of domains; with fewer, the emptiest counts as empty", u32_read,
        .at = AT(min_domains)),
    KEY("nodes", "`possible`, `all`, `required`, `tolerated` or `both`",
        "which nodes and domains count: see below; default: `possible`", word_read, .at = AT(nodes),
        .arg = spread_words),
};
#undef AT
KEY_TABLE(spread_keys, "spread", spread_rows);

static int spread_short(struct reader *r, const json_t *value, void *item)
{
    return text_of(r, value, &((struct berth_spread *)item)->topology);
}

static int spread_finish(struct reader *r, void *item)
{
    struct berth_spread *s = item;
    return s->topology ? select_default(r, &s->select) : missing(r, "topology");
}

static const struct berth_spread spread_initial = {.max_skew = 1};
const struct object_kind spread_kind = {.table = &spread_keys,
                                        .size = sizeof(struct berth_spread),
                                        .initial = &spread_initial,
                                        .read_short = spread_short,
                                        .finish = spread_finish};

/* ---- near and apart ---------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct berth_affinity, field)
static const struct key near_rows[] = {
    KEY("topology", "text", "`node`, `zone`, `rack`, or a label whose values define the domains", text_read,
        .at = AT(topology)),
    KEY("select", "conditions",
        "condition on the labels of the other pods' workloads; default: the workload's own "
        "labels",
        select_read, .at = AT(select)),
    KEY("weight", "1 to 100", "weight of a preference; default: a requirement", i32_read, .at = AT(select.weight)),
};
#undef AT
KEY_TABLE(near_keys, "near and apart", near_rows);

static int near_short(struct reader *r, const json_t *value, void *item)
{
    return text_of(r, value, &((struct berth_affinity *)item)->topology);
}

static int near_finish(struct reader *r, void *item)
{
    struct berth_affinity *n = item;
    return n->topology ? select_default(r, &n->select) : missing(r, "topology");
}

struct near_list {
    const struct berth_affinity *at;
    size_t len;
};

/* `near` and `apart` are added to the same list. */
int near_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct object_kind kind = {
        .table = &near_keys, .size = sizeof(struct berth_affinity), .read_short = near_short, .finish = near_finish};
    static const struct key into = {
        .at = offsetof(struct near_list, at), .len_at = offsetof(struct near_list, len), .arg = &kind};
    struct near_list more = {0};
    int rc = objects_read(r, &into, value, &more);
    if (rc < 0)
        return rc;

    struct berth_shape *shape = object;
    struct berth_affinity *all = ARENA_ARRAY(r->arena, struct berth_affinity, shape->near_len + more.len);
    for (size_t i = 0; i < shape->near_len; i++)
        all[i] = shape->near[i];
    for (size_t i = 0; i < more.len; i++) {
        all[shape->near_len + i] = more.at[i];
        all[shape->near_len + i].apart = key->arg != NULL;
    }
    list_set(key, object, all, shape->near_len + more.len);
    return 0;
}
