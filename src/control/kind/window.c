/* window.c - windows: nodes reserved for some users, or for maintenance, for a time. */
#include <errno.h>
#include <string.h>

#include "control/kind/queue.h"
#include "core/plan/policy.h"

static bool is_finished(const struct request *c, const json_t *doc)
{
    struct window_doc d;
    struct arena arena;
    arena_init(&arena);
    bool over = window_doc_read(doc, &arena, &d, NULL) < 0 || d.end_ns <= c->now_ns;
    arena_done(&arena);
    return over;
}

/* A plan uses at most WINDOWS_MAX windows. Windows of the same transaction count, too. */
static int windows_max_check(struct request *c, const char *id)
{
    size_t len, others = 0;
    const struct object *const *windows = state_list(c->state, KIND_WINDOW, &len);
    for (size_t i = 0; i < len; i++)
        others += strcmp(windows[i]->id, id) != 0 && windows[i]->window->end_ns > c->now_ns;
    for (size_t i = 0; i < c->change.items.len; i++) {
        const struct change_item *item = &c->change.items.at[i];
        if (item->kind == KIND_WINDOW && item->write && strcmp(item->id, id) != 0) {
            const struct object *was = state_find(c->state, KIND_WINDOW, item->id);
            others += item->doc && !is_finished(c, item->doc);
            others -= was && was->window->end_ns > c->now_ns;
        }
    }
    return others < WINDOWS_MAX ? 0
                                : err_set(&c->err, EINVAL,
                                          "there are %zu active or future windows; at most %d are "
                                          "allowed",
                                          others, WINDOWS_MAX);
}

static int check(struct request *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct window_doc d;
    (void)k;
    int rc = window_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = users_groups_check(c, d.users, d.users_len, d.groups, d.groups_len);
    for (size_t i = 0; rc == 0 && i < d.nodes_len; i++)
        if (!change_guard(&c->change, KIND_NODE, d.nodes[i]))
            rc = err_set(&c->err, EINVAL, "nodes[%zu]: there is no node %.80s; see 'berth get nodes'", i, d.nodes[i]);
    if (rc == 0 && d.end_ns <= c->now_ns &&
        (!old || !json_equal(json_object_get(old, "end"), json_object_get(doc, "end"))))
        rc = err_set(&c->err, EINVAL, "end: is in the past");
    if (rc == 0 && (!old || is_finished(c, old)) && d.end_ns > c->now_ns)
        rc = windows_max_check(c, id);
    return rc;
}

static void show(const struct request *c, const struct object *o, json_t *doc)
{
    const char *state = c->now_ns < o->window->start_ns ? "coming" : c->now_ns < o->window->end_ns ? "open" : "over";
    (void)json_object_set_new(doc, "status", json_pack("{s:s}", "state", state));
}

const struct crud window_crud = {
    .kind = KIND_WINDOW,
    .make = PERMIT_NODES,
    .change = PERMIT_NODES,
    .check = check,
    .show = show,
};
