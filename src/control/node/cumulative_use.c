#include "control/node/cumulative_use.h"

#include <string.h>

#include "base/mem.h"
#include "control/state/change.h"
#include "wire/doc/api.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"
#include "wire/text/quantity.h"

/* Returns whether an object declares the resource cumulative. */
static bool cumulative(const struct state *s, const char *resource, int64_t *ret_period_ns)
{
    struct doc_meta meta;
    struct berth_resource r = {0};
    struct arena arena;
    const struct object *o = state_find(s, KIND_RESOURCE, resource);
    if (!o)
        return false;
    CLEANUP(json) json_t *doc = object_doc(o);
    arena_init(&arena);
    bool is = resource_doc_read(doc, &arena, &meta, &r, NULL) == 0 && r.kind == BERTH_CUMULATIVE;
    arena_done(&arena);
    *ret_period_ns = is ? r.period_ns : 0;
    return is;
}

int64_t cumulative_period_ns(const struct state *s, const char *resource)
{
    int64_t period_ns = 0;
    (void)cumulative(s, resource, &period_ns);
    return period_ns;
}

static int64_t amount_in(const char *resource, const json_t *value)
{
    int64_t amount = 0;
    return quantity_parse(resource, value, &amount, NULL) == 0 && amount > 0 ? amount : 0;
}

/* Returns what was used between two reports. A counter that has gone down was reset: its whole value counts. */
static int64_t increase_of(const char *resource, const json_t *was, const json_t *now)
{
    int64_t before = amount_in(resource, json_object_get(json_object_get(was, resource), "used"));
    int64_t after = amount_in(resource, json_object_get(json_object_get(now, resource), "used"));
    return after >= before ? after - before : after;
}

/* Gets when the resource's present period began. Returns false if nothing records that. */
static bool period_start(const json_t *node, const char *resource, int64_t *ret_ns)
{
    const json_t *own = json_object_get(json_object_get(node, "consumed_begun"), resource);
    return timestamp_parse(own ? own : json_object_get(node, "consumed_since"), ret_ns, NULL) == 0;
}

/* Starts a period now: as the common start of all resources if there is none yet, else as the resource's own. */
static void period_begin(json_t *node, const char *resource, int64_t now_ns)
{
    char text[TIMESTAMP_MAX];
    json_t *now = json_string(timestamp_text(now_ns, text)), *own = json_object_get(node, "consumed_begun");
    if (!json_object_get(node, "consumed_since")) {
        (void)json_object_set_new(node, "consumed_since", now);
        return;
    }
    if (!own)
        (void)json_object_set_new(node, "consumed_begun", own = json_object());
    (void)json_object_set_new(own, resource, now);
}

/* Drops the consumption of a period that is over and starts the next one; each resource has its own period. If the
 * start is in the future because the clock was set back, the period starts now. */
static void period_end(const struct state *s, json_t *node, const char *resource, int64_t now_ns)
{
    json_t *consumed = json_object_get(node, "consumed");
    int64_t since_ns = 0, period_ns = cumulative_period_ns(s, resource);
    bool known = json_object_get(consumed, resource) && period_start(node, resource, &since_ns);
    bool over = known && period_ns && now_ns - since_ns >= period_ns;
    if (over)
        (void)json_object_del(consumed, resource);
    if (!known || over || since_ns > now_ns)
        period_begin(node, resource, now_ns);
}

static void add(json_t *node, const char *resource, int64_t amount)
{
    char text[QUANTITY_TEXT_MAX];
    json_t *consumed = json_object_get(node, "consumed");
    int64_t sum = amount_in(resource, json_object_get(consumed, resource));
    if (!consumed)
        (void)json_object_set_new(node, "consumed", consumed = json_object());
    sum = amount < BERTH_AMOUNT_MAX - sum ? sum + amount : BERTH_AMOUNT_MAX;
    (void)json_object_set_new(consumed, resource, json_string(quantity_print(resource, sum, text)));
}

void cumulative_use_note(struct request *c, const char *node, const json_t *was, const json_t *now)
{
    json_t *before = json_object_get(was, "usage"), *after = json_object_get(now, "usage"), *value;
    const char *resource;
    int64_t period_ns;
    json_object_foreach(after, resource, value)
    {
        int64_t amount = increase_of(resource, before, after);
        if (!amount || !cumulative(c->state, resource, &period_ns))
            continue;
        const json_t *present = change_read(&c->change, KIND_NODE, node);
        if (!json_object_get(json_object_get(present, "allocatable"), resource))
            continue;
        json_t *doc = change_edit(&c->change, KIND_NODE, node);
        if (!doc)
            return;
        period_end(c->state, doc, resource, c->now_ns);
        add(doc, resource, amount);
    }
}
