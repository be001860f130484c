/* optask_report.c - reports the state of OpTasks to the daemon until it has received them. */
#include <inttypes.h>
#include <stdlib.h>

#include "agent/optask/optask_parts.h"

#define SAY_AGAIN_NS (2 * SECOND_NS)

struct optask_post {
    struct agent_optasks *all;
    char *key;
    uint64_t changes;
};

static void post(struct op *op, const json_t *body, uint64_t changes, link_answered *answered)
{
    CLEANUP(str) struct str path = {0};
    char *text = json_dumps(body, JSON_COMPACT);
    struct optask_post *s = mem_zalloc(sizeof *s);
    *s = (struct optask_post){op->all, mem_strdup(op->key), changes};
    str_addf(&path, "/optasks/%s?epoch=%" PRIu64, op->key, op->all->epoch);
    link_post(op->all->agent->link, path.at, NULL, text, strlen(text), answered, s);
    free(text);
}

/* Frees the context of a request. Returns its OpTask; NULL: it does not exist any more. */
static struct op *find_optask_of_post(struct optask_post *s, int status, uint64_t *ret_changes)
{
    struct op *op = status == LINK_GONE ? NULL : op_find(s->all, s->key);
    *ret_changes = s->changes;
    mem_free(s->key);
    mem_free(s);
    return op;
}

static bool is_accepted_status(int status)
{
    return status == 200 || status == 404; /* 404: the daemon does not know this OpTask any more */
}

static void schedule_op(struct op *op, struct loop_source **timer, loop_call *call)
{
    struct loop *loop = op->all->agent->loop;
    if (!*timer)
        *timer = loop_timer_new(loop, call, op);
    loop_timer_set(*timer, loop_now_ns(loop) + SAY_AGAIN_NS);
}

/* ---- reports of the record -------------------------------------------------------------------------------------- */

static void post_report(void *ctx)
{
    op_report(ctx);
}

static void on_post_answered(void *ctx, int status, const char *body, size_t len)
{
    uint64_t changes;
    struct op *op = find_optask_of_post(ctx, status, &changes);
    (void)body;
    (void)len;
    if (!op)
        return;
    op->saying = false;
    if (!is_accepted_status(status)) {
        schedule_op(op, &op->say_timer, post_report);
    } else if (op->changes != changes) {
        op_report(op);
    } else if (!op_in_progress(op)) {
        (void)json_object_set_new(op->record, "said", json_true());
        (void)op_save(op);
    }
}

void op_report(struct op *op)
{
    static const char *const keys[] = {"attempt", "state", "fault", "error", "exit"};
    CLEANUP(json) json_t *body = json_object();
    if (op->saying || op->unsettled || json_is_true(json_object_get(op->record, "said")))
        return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(op->record, keys[i]))
            (void)json_object_set(body, keys[i], json_object_get(op->record, keys[i]));
    op->saying = true;
    post(op, body, op->changes, on_post_answered);
}

/* ---- declined attempts ------------------------------------------------------------------------------------------ */

static void post_decline(void *ctx);

static void on_decline_answered(void *ctx, int status, const char *body, size_t len)
{
    uint64_t changes;
    struct op *op = find_optask_of_post(ctx, status, &changes);
    (void)body;
    (void)len;
    if (!op)
        return;
    op->declining = false;
    if (!is_accepted_status(status)) {
        schedule_op(op, &op->decline_timer, post_decline);
    } else if (op->declines != changes) {
        post_decline(op);
    } else {
        op->decline_heard = true;
    }
}

static void post_decline(void *ctx)
{
    struct op *op = ctx;
    if (op->declining || op->decline_heard)
        return;
    op->declining = true;
    post(op, op->declined, op->declines, on_decline_answered);
}

void op_decline(struct op *op, const json_t *item, enum opstep_fault fault, const char *why)
{
    json_decref(op->declined);
    op->declined = json_pack("{s:O, s:s, s:s, s:s}", "attempt", json_object_get(item, "attempt"), "state",
                             opstep_state_name(OPSTEP_FAILED), "fault", opstep_fault_name(fault), "error", why);
    op->declines++;
    op->decline_heard = false;
    post_decline(op);
}

bool op_declined(struct op *op, uint64_t attempt)
{
    const char *fault = json_string_value(json_object_get(op->declined, "fault"));
    if (!fault || strcmp(fault, opstep_fault_name(OPFAULT_REFUSED)) == 0 ||
        attempt > (uint64_t)json_integer_value(json_object_get(op->declined, "attempt")))
        return false;
    op->declines++;
    op->decline_heard = false;
    post_decline(op);
    return true;
}
