/* window.c - windows: nodes kept for somebody, or for maintenance, for a while. */
#include <errno.h>

#include "control/queue.h"

static int check(struct call *c, const struct crud *k, const char *id, const json_t *old, const json_t *doc)
{
    struct window_doc d;
    (void)k;
    (void)id;
    (void)old;
    int rc = window_doc_read(doc, &c->arena, &d, &c->err);
    if (rc == 0)
        rc = people_check(c, d.users, d.users_len, d.groups, d.groups_len);
    for (size_t i = 0; rc == 0 && i < d.nodes_len; i++)
        if (!change_rest_on(&c->change, KIND_NODE, d.nodes[i]))
            rc = err_set(&c->err, EINVAL, "nodes[%zu]: there is no node %.80s; 'berth get nodes' lists them", i,
                         d.nodes[i]);
    if (rc == 0 && d.end_ns <= c->now_ns &&
        (!old || !json_equal(json_object_get(old, "end"), json_object_get(doc, "end"))))
        rc = err_set(&c->err, EINVAL, "end: is over already");
    return rc;
}

static void show(const struct call *c, const struct object *o, json_t *doc)
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
