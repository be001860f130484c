#include "control/node/node_status.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "control/control_parts.h"
#include "control/journal/journal_note.h"
#include "control/watch/derived.h"
#include "wire/text/quantity.h"

struct used_amount {
    char *resource;
    int64_t amount;
};

struct node_status_condition {
    char *type, *text;
};

/* The value in the last journal record. */
struct recorded_usage {
    char *resource;
    int percent; /* a multiple of USAGE_STEP */
};
enum { USAGE_STEP = 10 };

struct node_status {
    char *node;
    uint64_t created; /* revision that created the node: a node that was removed and added again is a different one */
    int64_t heard_ns;
    VEC(struct used_amount) usage;
    VEC(struct recorded_usage) recorded;
    VEC(struct node_status_condition) conditions;
    struct node_config config;
    uint64_t config_revision; /* state revision of `config` */
};

struct node_statuses {
    VEC(struct node_status *) at;
    struct map map; /* by node */
};

struct node_statuses *node_statuses_new(void)
{
    return mem_zalloc(sizeof(struct node_statuses));
}

static void usage_clear(struct node_status *e)
{
    for (size_t i = 0; i < e->usage.len; i++)
        mem_free(e->usage.at[i].resource);
    e->usage.len = 0;
}

static void recorded_clear(struct node_status *e)
{
    for (size_t i = 0; i < e->recorded.len; i++)
        mem_free(e->recorded.at[i].resource);
    e->recorded.len = 0;
}

static void conditions_clear(struct node_status *e)
{
    for (size_t i = 0; i < e->conditions.len; i++) {
        mem_free(e->conditions.at[i].type);
        mem_free(e->conditions.at[i].text);
    }
    e->conditions.len = 0;
}

void node_statuses_free(struct node_statuses *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->at.len; i++) {
        usage_clear(l->at.at[i]);
        conditions_clear(l->at.at[i]);
        recorded_clear(l->at.at[i]);
        vec_done(&l->at.at[i]->usage);
        vec_done(&l->at.at[i]->recorded);
        vec_done(&l->at.at[i]->conditions);
        node_config_done(&l->at.at[i]->config);
        mem_free(l->at.at[i]->node);
        mem_free(l->at.at[i]);
    }
    vec_done(&l->at);
    map_done(&l->map);
    mem_free(l);
}

static bool same_node(const void *ctx, uint32_t at, const void *key)
{
    return strcmp(((const struct node_statuses *)ctx)->at.at[at]->node, key) == 0;
}

/* Returns the node's entry; NULL: this very node has not reported. */
static struct node_status *find(const struct node_statuses *l, const struct object *node)
{
    uint32_t at = map_find(&l->map, hash_bytes(node->id, strlen(node->id), 0), same_node, l, node->id);
    return at == MAP_NONE || l->at.at[at]->created != node->created ? NULL : l->at.at[at];
}

/* An entry stays when its node is deleted: names are few, and are used again. */
static struct node_status *entry(struct node_statuses *l, const struct object *node)
{
    uint64_t hash = hash_bytes(node->id, strlen(node->id), 0);
    uint32_t at = map_find(&l->map, hash, same_node, l, node->id);
    if (at == MAP_NONE) {
        struct node_status *fresh = mem_zalloc(sizeof *fresh);
        fresh->node = mem_strdup(node->id);
        at = (uint32_t)l->at.len;
        map_add(&l->map, hash, at);
        vec_push(&l->at, fresh);
    }
    struct node_status *e = l->at.at[at];
    if (e->created != node->created) {
        usage_clear(e);
        recorded_clear(e);
        conditions_clear(e);
        e->created = node->created;
        e->heard_ns = 0;
        node_config_done(&e->config);
    }
    return e;
}

void node_statuses_report(struct node_statuses *l, const struct object *node, const struct report_doc *said,
                          int64_t now_ns)
{
    struct node_status *e = entry(l, node);
    e->heard_ns = now_ns;
    if (!said->machine_reported)
        return;
    usage_clear(e);
    for (size_t i = 0; i < said->usage_len; i++) {
        struct used_amount used = {mem_strdup(said->usage[i].resource), said->usage[i].amount};
        vec_push(&e->usage, used);
    }
    conditions_clear(e);
    for (size_t i = 0; i < said->conditions_len; i++) {
        struct node_status_condition c = {mem_strdup(said->conditions[i].type), mem_strdup(said->conditions[i].text)};
        vec_push(&e->conditions, c);
    }
}

void node_statuses_show(const struct node_statuses *l, const struct object *node, json_t *status)
{
    const struct node_status *e = find(l, node);
    char text[TIMESTAMP_MAX], amount[QUANTITY_TEXT_MAX];
    if (!e || !e->heard_ns)
        return;
    (void)json_object_set_new(status, "heard", json_string(timestamp_text(e->heard_ns, text)));
    json_t *usage = json_object(), *conditions = json_array();
    for (size_t i = 0; i < e->usage.len; i++)
        (void)json_object_set_new(usage, e->usage.at[i].resource,
                                  json_string(quantity_print(e->usage.at[i].resource, e->usage.at[i].amount, amount)));
    for (size_t i = 0; i < e->conditions.len; i++)
        (void)json_array_append_new(
            conditions, json_pack("{s:s, s:s}", "type", e->conditions.at[i].type, "text", e->conditions.at[i].text));
    (void)json_object_set_new(status, "usage", usage);
    (void)json_object_set_new(status, "conditions", conditions);
}

const struct node_config *node_statuses_config(struct node_statuses *l, const struct state *s,
                                               const struct object *node)
{
    struct node_status *e = entry(l, node);
    uint64_t revision = state_revision(s);

    if (!e->config.hash[0] || e->config_revision != revision)
        node_config_update(&e->config, s, node);
    e->config_revision = revision;
    return &e->config;
}

/* ---- for the journal -------------------------------------------------------------------------------------------- */

/* Returns the percentage to record for a resource. It changes only when use is a whole step away from it, so that use
 * at the edge of two steps is not recorded repeatedly. *ret_changed is set to true if it changes, else untouched. */
static int usage_record(struct node_status *e, const char *resource, int percent, bool *ret_changed)
{
    size_t at = 0;
    while (at < e->recorded.len && strcmp(e->recorded.at[at].resource, resource) != 0)
        at++;
    bool known = at < e->recorded.len;
    int apart = known ? percent - e->recorded.at[at].percent : 0;
    if (known && apart < USAGE_STEP && apart > -USAGE_STEP)
        return e->recorded.at[at].percent;
    int rounded = (percent + USAGE_STEP / 2) / USAGE_STEP * USAGE_STEP;
    if (known) {
        e->recorded.at[at].percent = rounded;
    } else {
        struct recorded_usage fresh = {mem_strdup(resource), rounded};
        vec_push(&e->recorded, fresh);
    }
    *ret_changed = true;
    return rounded;
}

/* Appends the node if some of its use has changed by a step. */
static void node_record(const struct state *s, const struct object *node, struct node_status *e, struct str *to)
{
    CLEANUP(str) struct str row = {0};
    bool changed = false;
    size_t told = 0;
    for (size_t i = 0; i < e->usage.len; i++) {
        const struct used_amount *used = &e->usage.at[i];
        struct berth_node_use use;
        if (!berth_node_use(state_cluster((struct state *)s), node->id, used->resource, &use) || use.there <= 0)
            continue;
        __int128 percent = (__int128)used->amount * 100 / use.there;
        str_add(&row, told++ ? "," : "");
        str_add_json(&row, used->resource);
        str_addf(&row, ":%d", usage_record(e, used->resource, percent > 1000 ? 1000 : (int)percent, &changed));
    }
    if (!changed)
        return;
    str_add(to, to->len ? ",[" : "[");
    str_add_json(to, node->id);
    str_addf(to, ",{%s}]", str_text(&row));
}

void node_statuses_journal(struct control *c)
{
    CLEANUP(str) struct str rows = {0};
    CLEANUP(str) struct str extra = {0};
    size_t len;
    const struct object *const *nodes = state_list(c->state, KIND_NODE, &len);
    for (size_t i = 0; i < len; i++) {
        struct node_status *e = find(c->lives, nodes[i]);
        if (e && e->heard_ns)
            node_record(c->state, nodes[i], e, &rows);
    }
    if (!rows.len)
        return;
    str_addf(&extra, "{\"usage\":[%s]}", str_text(&rows));
    (void)journal_note(c, "node.usage", &extra); /* a failed record is made up for by the next step */
}

/* Appends text escaped as a Prometheus label value. */
static void label_add(struct str *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            str_add_char(to, '\\');
        if (*text == '\n')
            str_add(to, "\\n");
        else
            str_add_char(to, *text);
    }
}

void node_statuses_metrics(const struct node_statuses *l, const struct state *s, struct str *to)
{
    size_t len;
    const struct object *const *nodes = state_list(s, KIND_NODE, &len);
    str_add(to, "# HELP berth_node_used What a node said it uses, in units and thousandths of a core.\n"
                "# TYPE berth_node_used gauge\n");
    for (size_t n = 0; n < len; n++) {
        const struct node_status *e = find(l, nodes[n]);
        for (size_t i = 0; e && i < e->usage.len; i++) {
            str_addf(to, "berth_node_used{node=\"%s\",resource=\"", e->node);
            label_add(to, e->usage.at[i].resource);
            str_addf(to, "\"} %" PRId64 "\n", e->usage.at[i].amount);
        }
    }
    str_add(to, "# HELP berth_node_conditions What is wrong with a node, by its own words.\n"
                "# TYPE berth_node_conditions gauge\n");
    for (size_t n = 0; n < len; n++) {
        const struct node_status *e = find(l, nodes[n]);
        if (e && e->heard_ns)
            str_addf(to, "berth_node_conditions{node=\"%s\"} %zu\n", e->node, e->conditions.len);
    }
}
