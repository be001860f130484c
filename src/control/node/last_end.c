#include "control/node/last_end.h"

#include "base/mem.h"
#include "control/job/outcome.h"
#include "wire/text/document.h"

static const char *end_word(enum report_state state)
{
    return state == REPORT_ENDED ? "ended" : state == REPORT_FAILED ? "failed" : "stopped";
}

/* Returns the outcome of the end; OUTCOME_NONE: the instance was told to stop without a reason that is an outcome. */
static enum work_outcome outcome_of_end(const struct instance_view *v, const struct report_item *item)
{
    if (v->outcome)
        return v->outcome;
    if (item->state == REPORT_FAILED)
        return item->words.oom_killed ? OUTCOME_OUT_OF_MEMORY : OUTCOME_FAILED;
    return item->state == REPORT_ENDED ? OUTCOME_SUCCEEDED : OUTCOME_NONE;
}

static json_t *end_of(const struct request *c, const struct object *instance, const struct report_item *item)
{
    const struct instance_view *v = instance->instance;
    char since[TIMESTAMP_MAX];
    json_t *end =
        json_pack("{s:I, s:I, s:s, s:s, s:s}", "instance", (json_int_t)v->number, "ordinal", (json_int_t)v->ordinal,
                  "node", v->node, "state", end_word(item->state), "since", timestamp_text(c->now_ns, since));
    enum work_outcome outcome = outcome_of_end(v, item);
    if (outcome)
        (void)json_object_set_new(end, "outcome", json_string(work_outcome_name(outcome)));
    if (item->words.exit_reported)
        (void)json_object_set_new(end, "exit", json_integer(item->words.exit));
    if (item->error && *item->error)
        (void)json_object_set_new(end, "error", json_string(item->error));
    return end;
}

void last_end_note(struct request *c, const struct object *instance, const struct report_item *item)
{
    const struct instance_view *v = instance->instance;
    if (!state_find_work(c->state, v->workload))
        return;
    const json_t *old = change_read(&c->change, KIND_LAST_END, v->workload);
    json_t *items = json_array();
    (void)json_array_append_new(items, end_of(c, instance, item));
    size_t i;
    json_t *end;
    json_array_foreach(json_object_get(old, "items"), i, end)
    {
        bool same = json_integer_value(json_object_get(end, "ordinal")) == (json_int_t)v->ordinal;
        if (!same && json_array_size(items) < LAST_ENDS_MAX)
            (void)json_array_append(items, end);
    }
    change_put(&c->change, KIND_LAST_END, v->workload, json_pack("{s:o}", "items", items));
}

json_t *last_end_show(const struct state *s, const char *workload)
{
    const struct object *o = state_find(s, KIND_LAST_END, workload);
    CLEANUP(json) json_t *doc = o ? object_doc(o) : NULL;
    return json_incref(json_object_get(doc, "items"));
}
