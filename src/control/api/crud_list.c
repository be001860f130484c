/* crud_list.c - the parts of crud.h that show objects: lists, single objects and watches. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/crud.h"
#include "control/api/page.h"
#include "control/watch/watch.h"
#include "wire/doc/api.h"

enum {
    LIST_MAX = 10000,
    LIST_DEFAULT = 1000,
    /* Work of one step, before other accounts have their turn. */
    STEP_BYTES = 128 << 10,
    STEP_OBJECTS = 20000,
};

/* A list in progress. */
struct list_progress {
    struct list_page page;
    uint64_t revision; /* state when the list began; a watch from this revision misses nothing */
    char *last, *seen; /* ids: the last one on the page, and the last one examined; NULL: none */
};

void crud_redact(const struct caller *caller, const struct object *o, json_t *doc)
{
    if (o->kind == KIND_TOKEN)
        (void)json_object_del(doc, "hash");
    if (o->kind == KIND_SECRET)
        (void)json_object_del(doc, "sealed");
    if (kind_is_workload(o->kind) && !permit(caller, PERMIT_MANAGE, o->owner, o->group))
        (void)json_object_del(doc, "install");
}

json_t *crud_show_object(const struct request *c, const struct crud *k, const struct object *o)
{
    json_t *doc = object_doc(o);
    crud_redact(&c->caller, o, doc);
    (void)json_object_set_new(doc, "revision", json_integer((json_int_t)o->revision));
    if (k->show)
        k->show(c, o, doc);
    return doc;
}

int crud_get(struct request *c, const struct crud *k)
{
    const struct object *o = request_object(c, k->kind, c->args[0], c->route->need);
    if (!o && k->implied && c->err.code == ENOENT)
        c->answer.body = k->implied(c, c->args[0]);
    if (!o && !c->answer.body)
        return -c->err.code;
    if (o)
        c->answer.body = crud_show_object(c, k, o);
    c->answer.revision = state_revision(c->state);
    return 0;
}

/* Compares ids in the order of the state: numbers (without leading zeros) by value, all other ids by bytes. */
static int id_compare(enum kind kind, const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    if (kinds[kind].grammar == ID_NUMBER && a_len != b_len)
        return a_len < b_len ? -1 : 1;
    return strcmp(a, b);
}

/* Returns the number of objects before `after`; `with` includes `after` itself. */
static size_t list_position(const struct object *const *list, size_t len, enum kind kind, const char *after, bool with)
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

static bool passes(const struct request *c, const struct crud *k, const struct object *o)
{
    const char *owner = request_query(c, "owner"), *group = request_query(c, "group");
    if (!request_may_see(c, o) || (owner && strcmp(owner, o->owner) != 0) || (group && strcmp(group, o->group) != 0))
        return false;
    return !k->pass || k->pass(c, o);
}

/* Parses ?order, on routes that accept it: ascending or descending ids. */
static int query_order(struct request *c, bool *ret_down)
{
    const char *order = request_query(c, "order");
    *ret_down = order && strcmp(order, "desc") == 0;
    if (!order || *ret_down || strcmp(order, "asc") == 0)
        return 0;
    return err_set(&c->err, EINVAL, "order: expected asc or desc");
}

static void list_progress_free(void *progress)
{
    struct list_progress *l = progress;
    json_decref(l->page.items);
    mem_free(l->last);
    mem_free(l->seen);
    mem_free(l);
}

/* Returns the list that this request has begun, or a new one. */
static struct list_progress *list_progress_of(struct request *c)
{
    if (c->progress)
        return c->progress;
    struct list_progress *l = mem_zalloc(sizeof *l);
    const char *after = request_query(c, "after");
    l->page.items = json_array();
    l->revision = state_revision(c->state);
    l->seen = after ? mem_strdup(after) : NULL;
    c->progress = l;
    c->progress_free = list_progress_free;
    return l;
}

static void id_keep(char **to, const char *id)
{
    mem_free(*to);
    *to = mem_strdup(id);
}

/* Adds objects to the page for one step. Returns false if the step is over and objects remain. */
static bool list_step(struct request *c, const struct crud *k, struct list_progress *l, uint64_t limit, bool down,
                      bool *ret_more)
{
    size_t len = 0, i = 0, looked = 0, bytes = l->page.bytes;
    const struct object *const *list = state_list(c->state, k->kind, &len);
    if (l->seen)
        i = down ? len - list_position(list, len, k->kind, l->seen, false)
                 : list_position(list, len, k->kind, l->seen, true);
    *ret_more = false;
    for (; i < len; i++) {
        const struct object *o = list[down ? len - 1 - i : i];
        bool full = json_array_size(l->page.items) >= limit;
        if (looked++ >= STEP_OBJECTS || (!full && l->page.bytes - bytes >= STEP_BYTES)) {
            id_keep(&l->seen, list[down ? len - i : i - 1]->id);
            return false;
        }
        if (!passes(c, k, o)) /* *ret_more is set only for a visible object, so that a next page is never empty */
            continue;
        if (full || !page_fits(&l->page, o->doc.len) || !page_add(&l->page, crud_show_object(c, k, o), o->doc.len)) {
            *ret_more = true;
            break;
        }
        id_keep(&l->last, o->id);
    }
    return true;
}

int crud_list(struct request *c, const struct crud *k)
{
    uint64_t limit = 0, from = 0;
    bool down = false, more;
    int rc = request_query_number(c, "limit", 1, LIST_MAX, LIST_DEFAULT, &limit);
    if (rc == 0)
        rc = request_query_number(c, "watch", 0, INT64_MAX, 0, &from);
    if (rc == 0)
        rc = query_order(c, &down);
    if (rc < 0)
        return rc;
    if (request_query(c, "watch"))
        return watch_open(c, k->kind, from);

    struct list_progress *l = list_progress_of(c);
    if (!list_step(c, k, l, limit, down, &more)) {
        c->unfinished = true;
        return 0;
    }
    json_t *body = json_object();
    (void)json_object_set(body, "items", l->page.items);
    (void)json_object_set_new(body, "revision", json_integer((json_int_t)l->revision));
    if (more)
        (void)json_object_set_new(body, "continue", json_string(l->last));
    c->answer.body = body;
    c->answer.revision = l->revision;
    return 0;
}
