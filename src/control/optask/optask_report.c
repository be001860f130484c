/* optask_report.c - OpTasks and nodes: agents' reports, nodes that wait for OpTasks, released nodes. */
#include <errno.h>
#include <string.h>

#include "control/control_parts.h"
#include "control/node/join.h"
#include "control/optask/optask.h"

bool opsteps_block_join(const struct state *s, const char *node)
{
    size_t len;
    const struct object *const *steps = opsteps_of_node(s, node, &len);
    for (size_t i = 0; i < len; i++)
        if (steps[i]->opstep->init && steps[i]->opstep->state != OPSTEP_DONE &&
            state_find(s, KIND_OPTASK, steps[i]->opstep->optask))
            return true;
    return false;
}

json_t *opsteps_show(const struct state *s, const char *node)
{
    size_t len;
    const struct object *const *steps = opsteps_of_node(s, node, &len);
    json_t *shown = NULL;
    for (size_t i = 0; i < len; i++) {
        const struct opstep_view *v = steps[i]->opstep;
        if (v->state == OPSTEP_DONE || v->state == OPSTEP_UNDONE)
            continue;
        if (!shown)
            shown = json_array();
        (void)json_array_append_new(shown,
                                    json_pack("{s:s, s:s}", "optask", v->optask, "state", opstep_state_name(v->state)));
    }
    return shown;
}

void opsteps_release(struct request *c, const char *node)
{
    size_t len;
    const struct object *const *steps = opsteps_of_node(c->state, node, &len);
    for (size_t i = 0; i < len; i++)
        change_delete(&c->change, KIND_OPSTEP, steps[i]->id);
}

static void event_add(struct request *c, const char *optask, const char *node, const struct opstep_report *report)
{
    const char *state = opstep_state_name((enum opstep_state)report->state);
    struct object_event event = {
        .type = report->fault ? "OpTaskFailed" : "OpTask",
        .kind = KIND_OPTASK,
        .id = optask,
        .owner = "",
        .group = "",
        .message = arena_fmt(&c->arena, "%s on %s%s%s", state, node, report->error ? ": " : "",
                             report->error ? report->error : ""),
    };
    events_later(c, &event);
}

/* Returns whether the report counts. A step that was given up as lost may still report how it ended; a reported end is
 * final. */
static bool report_counts(const struct opstep_view *v, const struct opstep_report *report)
{
    if (report->attempt != v->attempt)
        return report->attempt > v->attempt && opstep_listed(v);
    return opstep_listed(v) || (v->state == OPSTEP_FAILED && v->fault == OPFAULT_LOST);
}

static void report_apply(struct request *c, const struct object *step, const struct opstep_report *report)
{
    const struct opstep_view *v = step->opstep;
    if (report->state == (unsigned)v->state && report->attempt == v->attempt) /* no news */
        return;
    json_t *doc = change_edit(&c->change, KIND_OPSTEP, step->id);
    opstep_move(doc, (enum opstep_state)report->state, c->now_ns);
    (void)json_object_set_new(doc, "attempt", json_integer((json_int_t)report->attempt));
    if (!v->undo || report->fault) /* an undone step keeps showing its failure */
        opstep_clear_fault(doc);
    if (report->fault)
        (void)json_object_set_new(doc, "fault", json_string(opstep_fault_name((enum opstep_fault)report->fault)));
    if (report->error && *report->error)
        (void)json_object_set_new(doc, "error", json_string(report->error));
    if (report->exit_reported)
        (void)json_object_set_new(doc, "exit", json_integer(report->exit));
    event_add(c, v->optask, v->node, report);
}

int optask_report(struct request *c)
{
    struct opstep_report report = {0};
    const char *node = NULL, *optask = NULL;
    int rc = crud_id(c, KIND_NODE, c->args[0], &node);
    if (rc < 0 || !state_find(c->state, KIND_NODE, node) || !permit(&c->caller, PERMIT_REPORT, node, ""))
        return crud_not_found(c, KIND_NODE, c->args[0]);
    rc = node_epoch_check(c, node);
    if (rc == 0)
        rc = opstep_report_read(c->body, &c->arena, &report, &c->err);
    if (rc == 0)
        rc = crud_id(c, KIND_OPTASK, c->args[1], &optask);
    if (rc < 0)
        return rc;
    const struct object *step = state_find(c->state, KIND_OPSTEP, opstep_id(&c->arena, node, optask));
    if (!step)
        return crud_not_found(c, KIND_OPTASK, c->args[1]);
    crud_name(c, KIND_OPTASK, optask, "report");
    if (report_counts(step->opstep, &report))
        report_apply(c, step, &report);
    c->answer.body = json_object();
    return 0;
}
