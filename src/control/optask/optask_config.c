/* optask_config.c - OpTasks in a node's configuration. */
#include "base/hash.h"
#include "control/optask/optask.h"
#include "control/watch/derived_out.h"

void optasks_config_write(struct json_out *o, const struct state *s, const char *node)
{
    size_t len, listed = 0;
    const struct object *const *steps = opsteps_of_node(s, node, &len);
    for (size_t i = 0; i < len; i++) {
        const struct opstep_view *v = steps[i]->opstep;
        const struct object *task = opstep_listed(v) ? state_find(s, KIND_OPTASK, v->optask) : NULL;
        if (!task)
            continue;
        const struct optask_doc *d = task->optask;
        if (listed++ == 0)
            json_out_open(o, "optasks", '[');
        json_out_open(o, NULL, '{');
        json_out_text(o, "key", task->id);
        json_out_number(o, "attempt", v->attempt);
        json_out_text(o, "do", v->undo ? "undo" : "run");
        out_text_if_set(o, "content", d->content);
        json_out_text(o, "language", optask_language_name((enum optask_language)d->language));
        json_out_text(o, "script", d->script);
        out_text_if_set(o, "sha256", d->sha256);
        out_text_if_set(o, "undo", d->undo);
        out_text_if_set(o, "undo_sha256", d->undo_sha256);
        json_out_open(o, "args", '[');
        for (size_t k = 0; k < d->args_len; k++)
            json_out_text(o, NULL, d->args[k]);
        json_out_close(o, ']');
        json_out_number(o, "timeout_ns", (uint64_t)d->timeout_ns);
        json_out_close(o, '}');
    }
    if (listed)
        json_out_close(o, ']');
}

uint64_t optasks_config_mark(const struct state *s, const char *node)
{
    size_t len;
    uint64_t mark = 0;
    const struct object *const *steps = opsteps_of_node(s, node, &len);
    for (size_t i = 0; i < len; i++) {
        const struct object *task =
            opstep_listed(steps[i]->opstep) ? state_find(s, KIND_OPTASK, steps[i]->opstep->optask) : NULL;
        if (task)
            mark = hash_pair(hash_pair(mark, steps[i]->revision), task->revision);
    }
    return mark;
}
