/* crud_list.c - the parts of crud.h that show objects: lists, one object, watches. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/crud.h"
#include "control/page.h"
#include "control/watch.h"
#include "wire/api.h"

enum { LIST_MAX = 10000, LIST_DEFAULT = 1000 };

void crud_hide(const struct caller *caller, const struct object *o, json_t *doc)
{
    if (o->kind == KIND_TOKEN)
        (void)json_object_del(doc, "hash");
    if (o->kind == KIND_SECRET)
        (void)json_object_del(doc, "sealed");
    if (kind_is_workload(o->kind) && !permit(caller, PERMIT_MANAGE, o->owner, o->group))
        (void)json_object_del(doc, "install");
}

json_t *crud_shown(const struct call *c, const struct crud *k, const struct object *o)
{
    json_t *doc = object_doc(o);
    crud_hide(&c->caller, o, doc);
    (void)json_object_set_new(doc, "revision", json_integer((json_int_t)o->revision));
    if (k->show)
        k->show(c, o, doc);
    return doc;
}

int crud_get(struct call *c, const struct crud *k)
{
    const struct object *o = call_object(c, k->kind, c->args[0], c->route->need);
    if (!o)
        return -c->err.code;
    c->answer.body = crud_shown(c, k, o);
    c->answer.revision = state_revision(c->state);
    return 0;
}

/* As the state sorts: numbers without leading zeros by value, everything else by bytes. */
static int id_compare(enum kind kind, const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    if (kinds[kind].grammar == ID_NUMBER && a_len != b_len)
        return a_len < b_len ? -1 : 1;
    return strcmp(a, b);
}

/* How many stand before `after`, and with it if `with`. */
static size_t place_of(const struct object *const *list, size_t len, enum kind kind, const char *after, bool with)
{
    size_t low = 0, high = len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = id_compare(kind, list[mid]->id, after);
        if (order < 0 || (with && order == 0))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool passes(const struct call *c, const struct crud *k, const struct object *o)
{
    const char *owner = call_query(c, "owner"), *group = call_query(c, "group");
    if (!call_sees(c, o) || (owner && strcmp(owner, o->owner) != 0) || (group && strcmp(group, o->group) != 0))
        return false;
    return !k->pass || k->pass(c, o);
}

/* Only where the route takes it: as ids grow, or against it. */
static int query_order(struct call *c, bool *ret_down)
{
    const char *order = call_query(c, "order");
    *ret_down = order && strcmp(order, "desc") == 0;
    if (!order || *ret_down || strcmp(order, "asc") == 0)
        return 0;
    return err_set(&c->err, EINVAL, "order: expected asc or desc");
}

int crud_list(struct call *c, const struct crud *k)
{
    uint64_t limit = 0, from = 0;
    bool down = false;
    int rc = call_query_number(c, "limit", 1, LIST_MAX, LIST_DEFAULT, &limit);
    if (rc == 0)
        rc = call_query_number(c, "watch", 0, INT64_MAX, 0, &from);
    if (rc == 0)
        rc = query_order(c, &down);
    if (rc < 0)
        return rc;
    if (call_query(c, "watch"))
        return watch_open(c, k->kind, from);

    size_t len = 0, i = 0;
    const char *after = call_query(c, "after"), *last = NULL;
    const struct object *const *list = state_list(c->state, k->kind, &len);
    json_t *body = json_object();
    struct page page = {.items = json_array()};
    if (after && down)
        i = len - place_of(list, len, k->kind, after, false);
    else if (after)
        i = place_of(list, len, k->kind, after, true);
    for (; i < len && json_array_size(page.items) < limit; i++) {
        const struct object *o = list[down ? len - 1 - i : i];
        if (!passes(c, k, o))
            continue;
        if (!page_fits(&page, o->doc.len) || !page_add(&page, crud_shown(c, k, o), o->doc.len))
            break;
        last = o->id;
    }
    while (i < len && !passes(c, k, list[down ? len - 1 - i : i])) /* only what can be seen is worth going on for */
        i++;
    (void)json_object_set_new(body, "items", page.items);
    (void)json_object_set_new(body, "revision", json_integer((json_int_t)state_revision(c->state)));
    if (i < len)
        (void)json_object_set_new(body, "continue", json_string(last));
    c->answer.body = body;
    c->answer.revision = state_revision(c->state);
    return 0;
}
